package hostcode

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A counter that panics at each of a thousand texts fills no log.
func TestCounter(t *testing.T) {
	var b bytes.Buffer
	c := &Counter{What: "Options.Tokens", Log: slog.New(slog.NewTextHandler(&b, nil)), Estimate: func(text string) int { return len(text) / 4 },
		Of: func(text string) int {
			if text == "fine" {
				return 7
			}
			if text == "less" {
				return -1
			}
			panic(errors.New("no vocabulary"))
		}}
	for range 1000 {
		assert.Equal(t, 2, c.Count("12345678"))
	}
	assert.Equal(t, 7, c.Count("fine"))
	assert.Zero(t, c.Count("less"))
	assert.Equal(t, 1, strings.Count(b.String(), "Options.Tokens: panic: no vocabulary"))
}
