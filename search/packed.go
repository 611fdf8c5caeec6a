package search

import (
	"compress/flate"
	"io"
	"strings"
)

// Texts are embedded without what only readers of the source need, and compressed.
//
//go:generate go test -run ^TestPacked$ . -update

// unpack returns a text that TestPacked packed.
func unpack(packed string) string {
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(packed)))
	if err != nil {
		panic(err) // there is a test for it
	}
	return string(text)
}
