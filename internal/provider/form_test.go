package provider

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestForms(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	tests := []struct {
		form *Form
		want string
	}{
		{OpenAIChat, `{"type":"function","function":{"name":"n","description":"d","parameters":{"type":"object","properties":{}}}}`},
		{OpenAIResponses, `{"type":"function","name":"n","description":"d","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`},
		{AnthropicMessages, `{"name":"n","description":"d","input_schema":{"type":"object","properties":{}},"defer_loading":true}`},
		{GeminiFunctions, `{"name":"n","description":"d","parametersJsonSchema":{"type":"object","properties":{}}}`},
	}
	for _, test := range tests {
		for range 2 { // a form is not changed by its use
			tool, losses := test.form.Tool("n", "d", schema, test.form.Defers)
			assert.JSONEq(t, test.want, string(tool))
			assert.Empty(t, losses)
		}
		assert.True(t, test.form.Accepts("a-b_1"))
		assert.False(t, test.form.Accepts("a.b"))
		assert.Equal(t, test.form != GeminiFunctions, test.form.Accepts("1st"))
	}
	assert.Equal(t, `{"name":"n","inputSchema":{"type":"object","properties":{}}}`, string(MCPTool("n", "", schema)))
}

func TestRenamed(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{}`)
	for raw, want := range map[string]string{
		`{"title": "T", "name": "a", "inputSchema": {"b": 1}}`: `{"title":"T","name":"n","inputSchema":{"b":1}}`,
		`{"name": "a", "inputSchema": null, "x": 1.0}`:         `{"name":"n","inputSchema":{},"x":1.0}`,
		`{"Name": "a"}`: `{"name":"n","Name":"a","inputSchema":{}}`,
	} {
		renamed, err := Renamed(json.RawMessage(raw), "n", schema)
		assert.NoError(t, err)
		assert.Equal(t, want, string(renamed))
	}
	_, err := Renamed(json.RawMessage(`[]`), "n", schema)
	assert.Error(t, err)
}
