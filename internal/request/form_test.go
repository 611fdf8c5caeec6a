package request

import (
	"encoding/json"
	"strings"
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
	for _, asked := range []Described{tool, nil} { // what is kept is not written again
		for _, form := range []*Form{Anthropic, OpenAIResponses, MCP} {
			for _, in := range []Listing{Listed, Beside, Deferred} {
				want, failed := form.Tool(tool, in)
				if failed != nil {
					asked = tool
				}
				got, err := kept.Tool(asked, form, in)
				assert.Equal(t, want, got)
				assert.Equal(t, failed, err)
			}
		}
	}
}

// What a provider does not take is refused, and the tool named.
func TestToolsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		form       *Form
		in         Listing
		name, want string
		schema     string
	}{
		{Gemini, Deferred, "n", "the format gemini can't defer tools", `{}`},
		{Anthropic, Listed, "n", `tool "n": the input schema is not a JSON object`, `[]`},
		{Anthropic, Listed, "n", `tool "n": the input schema is not a JSON object`, `{`},
		{MCP, Listed, "n", `tool "n": the input schema is not a JSON object`, ``},
		{Gemini, Listed, "1st", `tool "1st" has a name that gemini does not accept`, `{}`},
		{OpenAIChat, Listed, "a b", `tool "a b" has a name that openai-chat does not accept`, `{}`},
		{Bedrock, Listed, "", `tool "" has a name that bedrock does not accept`, `{}`},
	} {
		got, err := test.form.Tool(plain{test.name, "", test.schema}, test.in)
		assert.EqualError(t, err, test.want)
		assert.Equal(t, provider.Tool{}, got)
	}
	_, err := MCP.Tool(plain{"a b", "", "{}"}, Listed)
	assert.NoError(t, err, "MCP takes all names")
}

type listed struct {
	plain
	raw string
}

func (l listed) Raw() json.RawMessage { return json.RawMessage(l.raw) }

// A program that reads MCP's form is told the $schema of the server's, models are not.
func TestSchemaOfASchema(t *testing.T) {
	t.Parallel()
	tool := listed{plain{"n", "", `{"type":"object","properties":{}}`}, `{"inputSchema":{"$schema":"x"}}`}
	got, err := MCP.Tool(tool, Listed)
	require.NoError(t, err)
	assert.Equal(t, `{"name":"n","inputSchema":{"$schema":"x","type":"object","properties":{}}}`, string(got.JSON))
	got, err = Anthropic.Tool(tool, Listed)
	require.NoError(t, err)
	assert.NotContains(t, string(got.JSON), "$schema")
}

// Only OpenAI's responses are told whether a schema is strict as it stands.
func TestStrictTools(t *testing.T) {
	t.Parallel()
	const strict = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for _, form := range []*Form{MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
		got, err := form.Tool(plain{"n", "", strict}, Listed)
		require.NoError(t, err)
		assert.Equal(t, form == OpenAIResponses, strings.Contains(string(got.JSON), `"strict":true`), form.format)
	}
}

// An example that is left out is told as a loss.
func TestLossOfExamples(t *testing.T) {
	t.Parallel()
	tool := plain{"n", "", `{"type":"object","properties":{"a":{"type":"integer"}},"examples":[{"a":1},{"a":"x"}]}`}
	got, err := Anthropic.Tool(tool, Listed)
	require.NoError(t, err)
	assert.Equal(t, []string{"/examples: 1 of 2 left out, not valid or too many"}, got.Losses)
	assert.Contains(t, string(got.JSON), `"input_examples":[{"a":1}]`)
	assert.NotContains(t, string(got.InputSchema), "examples")
	for _, in := range []Listing{Beside, Deferred} {
		got, err = Anthropic.Tool(tool, in)
		require.NoError(t, err)
		assert.NotContains(t, string(got.JSON), "input_examples", "only without deferred tools")
	}
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for _, form := range []*Form{MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
		got, err := FormOf(form.Format())
		assert.NoError(t, err)
		assert.Same(t, form, got)
	}
	_, err := FormOf("x")
	assert.EqualError(t, err, `there is no format "x"`)
}

// What each provider can do, as its documentation says.
func TestAbilitiesOfForms(t *testing.T) {
	t.Parallel()
	type abilities struct{ adds, defers, removes, searches, joins bool }
	for form, want := range map[*Form]abilities{
		MCP: {}, Gemini: {}, Bedrock: {}, OpenAIChat: {defers: true}, OpenAIResponses: {adds: true, defers: true, searches: true},
		Anthropic: {adds: true, defers: true, removes: true, joins: true},
	} {
		assert.Equal(t, want, abilities{form.CanAdd(), form.CanDefer(), form.Removes(), form.Searches(), form.Joins(true)}, form.format)
		assert.False(t, form.Joins(false), form.format)
		if form == Anthropic {
			assert.Equal(t, []string{"inline-tools-2026-09-15"}, form.Betas())
		} else {
			assert.Nil(t, form.Betas(), form.format)
		}
		tool := form.WithCallers(provider.Tool{JSON: json.RawMessage(`{"name":"n"}`)}, []string{"a", "b"})
		if form == Anthropic || form == OpenAIResponses {
			assert.Equal(t, `{"name":"n","allowed_callers":["a","b"]}`, string(tool.JSON), form.format)
		} else {
			assert.Equal(t, `{"name":"n"}`, string(tool.JSON), form.format)
		}
	}
}

// The search of OpenAI's responses, and its answer, with and without the call's id.
func TestToolSearch(t *testing.T) {
	t.Parallel()
	tool := OpenAIResponses.SearchTool(plain{"other", "Finds <tools>.", `{ "type": "object" }`})
	assert.Equal(t, `{"type":"tool_search","execution":"client","description":"Finds <tools>.","parameters":{"type":"object"}}`, string(tool.JSON))
	assert.Equal(t, "tool_search", tool.Name)
	assert.JSONEq(t, `{"type":"tool_search_output","execution":"client","status":"completed","tools":[]}`, string(Found(nil, nil)))
	assert.Contains(t, string(Found(json.RawMessage("5"), nil)), `"call_id":5`)
	assert.JSONEq(t, `{"type":"tool_search_output","execution":"client","status":"completed","call_id":"c","tools":[{"type":"namespace","name":"n","description":"d","tools":[{"name":"a"}]}]}`,
		string(Found(json.RawMessage(`"c"`), []Namespace{{"n", "d", []json.RawMessage{json.RawMessage(`{"name":"a"}`)}}})))
}
