package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Arguments that were refused are told apart by their text or, without one, by why.
func TestWritten(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, test := range []struct {
		args any
		want string
	}{{json.RawMessage("{a"), "{a"}, {[]byte("{b"), "{b"}, {"{c", "{c"}, {5, "refused"}, {nil, "refused"}} {
		assert.Equal(t, test.want, string(Written(test.args, refused)))
	}
}

// What is no schema of parameters, or has long names, has no example.
func TestNoExample(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("x", maxParameterName)
	of := func(name string) json.RawMessage {
		return json.RawMessage(`{"properties":{"a":{},"` + name + `":{}},"required":["a"]}`)
	}
	e, ok := ExampleOf(of(name))
	assert.True(t, ok)
	assert.Contains(t, e.Wrong, name)
	for _, schema := range []json.RawMessage{of(name + "x"), of("a b"), json.RawMessage(`{"properties":{"a":{}},"required":"a"}`), json.RawMessage(`{"properties":[],"required":["a"]}`), json.RawMessage(`5`)} {
		e, ok := ExampleOf(schema)
		assert.False(t, ok, "%s", schema)
		assert.Zero(t, e)
	}
}
