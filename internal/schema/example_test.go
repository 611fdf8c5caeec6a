package schema

import (
	"encoding/json"
	"fmt"
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

// An example has at most three required parameters: more would be noise.
func TestExampleIsShort(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		var properties, required []string
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"p%d":{}`, i))
			required = append(required, fmt.Sprintf(`"p%d"`, i))
		}
		schema := fmt.Sprintf(`{"properties":{%s,"o":{}},"required":[%s]}`, strings.Join(properties, ","), strings.Join(required, ","))
		_, ok := ExampleOf(json.RawMessage(schema))
		assert.Equal(t, n <= 3, ok, schema)
	}
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
