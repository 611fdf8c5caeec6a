package upstream

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is hidden, and what is not.
func TestHidden(t *testing.T) {
	s := newSecrets(&Config{
		Command: "tool", Args: []string{"--key", "abcd", "--verbose", "plainvalue", "--color=always", "--token=xyz", "https://h/?a=12345678"},
		Env: map[string]string{"DEBUG": "true", "PORT": "8080", "TOKEN": "t0ken", "NAME": "very-long", "SHORT_KEY": "abc"},
	}, []string{"MY_SECRET=plainvalue", "OTHER_SECRET=unused-here", "PWD=tool"})
	for in, want := range map[string]string{
		"abcd and plainvalue":    "[hidden] and [hidden]",
		"true 8080 abc xyz tool": "true 8080 abc xyz tool",
		"a t0ken, very-longer":   "a [hidden], [hidden]er",
		"always unused-here":     "always unused-here",
		"12345678":               "[hidden]",
	} {
		assert.Equal(t, want, s.text(in))
	}
	assert.Equal(t, " and more", s.dropRest("y-long and more"))
	assert.Equal(t, "ong and more", s.dropRest("ong and more"), "too short to tell")
	var none error
	assert.NoError(t, s.error(none))
	err := fmt.Errorf("t0ken: %w", io.ErrUnexpectedEOF)
	assert.EqualError(t, s.error(err), "[hidden]: unexpected EOF")
	assert.ErrorIs(t, s.error(err), io.ErrUnexpectedEOF)
	assert.Equal(t, io.EOF, s.error(io.EOF))
}
