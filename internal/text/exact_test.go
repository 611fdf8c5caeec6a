package text

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// exact returns s in a slice behind which there is nothing: who reads on panics.
func exact(s string) []byte { return slices.Clip(append(make([]byte, 0, len(s)), s...)) }

func TestUnquote(t *testing.T) {
	t.Parallel()
	for n := range 70 { // allocations have their own sizes, with room behind some
		said := strings.Repeat("x", n)
		got, ok := Unquote(exact(`"` + said + `"`))
		assert.True(t, ok)
		assert.Equal(t, said, got)
	}
	for raw, want := range map[string]string{`""`: "", `"a\nb"`: "a\nb", `"é"`: "é", `"\u00e9"`: "é", "\"\xff\"": "\ufffd"} {
		got, ok := Unquote(exact(raw))
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"", `"`, `"a`, `a"`, `"a"b"`, "5", "null", "\"a\nb\"", `["a"]`, `"\"`} {
		_, ok := Unquote(exact(raw))
		assert.False(t, ok, raw)
	}
}

func TestTextOfAScanner(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`""`: "", `"a"`: "a", ` "a b" ,`: "a b", `"a\nb"`: "a\nb", `"\u00e9"`: "é", "\"\xff\"": "\xff"} {
		s := Scan(exact(raw))
		got, ok := s.Text()
		assert.True(t, ok, raw)
		assert.Equal(t, want, string(got), raw)
	}
	for _, raw := range []string{"", `"`, `"a`, "5", "null", `{"a":1}`, `"\u00"`} {
		s := Scan(exact(raw))
		_, ok := s.Text()
		assert.False(t, ok, raw)
	}
	s := Scan(exact(`[1, 2] "a"`))
	_, ok := s.Text()
	assert.False(t, ok)
	got, ok := s.Text()
	assert.True(t, ok, "it has moved past the list")
	assert.Equal(t, "a", string(got))
}

// What is appended to a value that a Scanner returns does not change what stands behind it.
func TestValueOfAScannerIsClipped(t *testing.T) {
	t.Parallel()
	data := []byte(`{"a":1} [2]`)
	s := Scan(data)
	first := s.Value()
	assert.Equal(t, json.RawMessage(`{"a":1}`), first)
	_ = append(first, "xxxx"...)
	assert.Equal(t, json.RawMessage(`[2]`), s.Value())
	assert.Equal(t, `{"a":1} [2]`, string(data))
}

// A name counts within its own object.
func TestTwiceIsWithinAnObject(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"a":{"b":1},"b":2}`: "", `{"a":[{"b":1}],"b":2}`: "", `[{"a":1},{"a":1}]`: "", `{"a":[],"b":{},"c":1}`: "",
		`{"a":1,"a":2}`: "a", `{"x":{"a":1,"a":2}}`: "a", `{"a":{"b":1},"a":2}`: "a", `{"a":[1],"b":1,"b":2}`: "b",
	} {
		assert.Equal(t, want, Twice(json.RawMessage(raw)), raw)
	}
}
