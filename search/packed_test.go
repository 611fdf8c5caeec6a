package search

import (
	"bytes"
	"compress/flate"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "pack the embedded texts anew")

// What is embedded says the same as the file that people read.
func TestPacked(t *testing.T) {
	source, err := os.ReadFile("lexicon.txt")
	require.NoError(t, err)
	want := strings.Join(slices.DeleteFunc(strings.Split(string(source), "\n"), func(line string) bool {
		return line == "" || line[0] == '#'
	}), "\n")
	if *update {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		require.NoError(t, err)
		_, err = w.Write([]byte(want))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile("lexicon.packed", b.Bytes(), 0o644))
	}
	packed, err := os.ReadFile("lexicon.packed")
	require.NoError(t, err)
	assert.True(t, unpack(string(packed)) == want, "lexicon.txt and lexicon.packed differ: run go generate in this folder")
}
