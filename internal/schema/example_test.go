package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExampleOf(t *testing.T) {
	t.Parallel()
	e, ok := ExampleOf(json.RawMessage(`{"properties":{"limit":{"type":"integer"},"query":{"type":"string"},"since":{}},"required":["query"]}`))
	assert.True(t, ok)
	assert.Equal(t, Example{Wrong: `{"query": "…", "limit": 0, "since": null}`, Right: `{"query": "…"}`}, e)
	_, ok = ExampleOf(json.RawMessage(`{"properties":{"query":{}},"required":["query"]}`))
	assert.False(t, ok, "nothing to leave out")
}

func FuzzExample(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		e, ok := ExampleOf(json.RawMessage(schema))
		if strings.ContainsAny(e.Wrong+e.Right, "\n\r") || ok == (e.Right == "") {
			t.Errorf("%q %q", e.Wrong, e.Right)
		}
	})
}
