package request

import (
	"encoding/json"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type plain struct{ name, description, schema string }

func (p plain) Name() string                 { return p.name }
func (p plain) Description() string          { return p.description }
func (p plain) InputSchema() json.RawMessage { return json.RawMessage(p.schema) }

func TestForms(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	tests := []struct {
		form *Form
		want string
	}{
		{OpenAIChat, `{"type":"function","function":{"name":"n","description":"d","parameters":{"type":"object","properties":{}}},"defer_loading":true}`},
		{OpenAIResponses, `{"type":"function","name":"n","description":"d","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`},
		{Anthropic, `{"name":"n","description":"d","input_schema":{"type":"object","properties":{}},"defer_loading":true}`},
		{Gemini, `{"name":"n","description":"d","parametersJsonSchema":{"type":"object","properties":{}}}`},
		{Bedrock, `{"toolSpec":{"name":"n","description":"d","inputSchema":{"json":{"type":"object","properties":{}}}}}`},
	}
	for _, test := range tests {
		in := Listed
		if test.form.defers {
			in = Deferred
		}
		for range 2 { // a form is not changed by its use
			tool, err := test.form.Tool(plain{"n", "d", string(schema)}, in)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(tool.JSON))
			tool.JSON = nil
			assert.Equal(t, provider.Tool{Name: "n", Description: "d", InputSchema: schema, Deferred: test.form.defers}, tool)
		}
		assert.True(t, test.form.accepts("a-b_1"))
		assert.False(t, test.form.accepts("a.b"))
		assert.Equal(t, test.form != Gemini, test.form.accepts("1st"))
	}
	tool, err := MCP.Tool(plain{"n", "", string(schema)}, Listed)
	require.NoError(t, err)
	assert.Equal(t, `{"name":"n","inputSchema":{"type":"object","properties":{}}}`, string(tool.JSON))
}

func TestFormsHaveLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		form *Form
		most int
		want string
	}{
		{OpenAIChat, 128, "openai-chat accepts at most 128 tools, this list has 129"},
		{Gemini, 512, "gemini accepts at most 512 tools, this list has 513"},
		{Anthropic, 10_000, "anthropic accepts at most 10000 tools, this list has 10001"},
	} {
		assert.NoError(t, test.form.Check(test.most, 0))
		assert.EqualError(t, test.form.Check(test.most+1, 0), test.want)
	}
	assert.NoError(t, MCP.Check(1<<20, 0))
	assert.NoError(t, OpenAIResponses.Check(1<<20, 0))
	assert.NoError(t, OpenAIChat.Check(1<<20, 1), "not at OpenAI")
}

// What is kept of a tool is of one form and one kind of list.
func TestExportsAreKeptApart(t *testing.T) {
	t.Parallel()
	tool := plain{"n", "d", `{"type":"object","properties":{"a":{"type":"integer"}},"examples":[{"a":1}]}`}
	var kept ExportCache
	for range 2 {
		for _, form := range []*Form{Anthropic, OpenAIResponses, MCP} {
			for _, in := range []Listing{Listed, Beside, Deferred} {
				want, failed := form.Tool(tool, in)
				got, err := kept.Tool(tool, form, in)
				assert.Equal(t, want, got)
				assert.Equal(t, failed, err)
			}
		}
	}
}
