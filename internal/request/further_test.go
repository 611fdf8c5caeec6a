package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/dialect"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTakeExamples(t *testing.T) {
	t.Parallel()
	const open = `{"type":"object","properties":{"a":{"type":"integer","minimum":1}}`
	long := func(n int) string { return `{"b":"` + strings.Repeat("x", n-len(`{"b":""}`)) + `"}` }
	for _, test := range []struct{ name, give, rest, want, loss string }{
		{"none", open + `}`, open + `}`, "", ""},
		{"empty", open + `,"examples":[]}`, open + `,"examples":[]}`, "", ""},
		{"all", `{"examples":[{"a":1.50},{}],"type":"object"}`, `{"type":"object"}`, `[{"a":1.50},{}]`, ""},
		{"not valid", open + `,"examples":[{"a":0},{"a":"1"},"x",null,[{}]]}`, open + `,"examples":[{"a":0},{"a":"1"},"x",null,[{}]]}`, "", ""},
		{"some valid", open + `,"examples":[{"a":0},{"a":1}]}`, open + `}`, `[{"a":1}]`, "/examples: 1 of 2 left out, not valid or too many"},
		{"too many", open + `,"examples":[{"a":1},{"a":2},{"a":3},{"a":4}]}`, open + `}`, `[{"a":1},{"a":2},{"a":3}]`, "/examples: 1 of 4 left out, not valid or too many"},
		{"too long", open + `,"examples":[` + long(2<<10+1) + `,{"a":2}]}`, open + `}`, `[{"a":2}]`, "/examples: 1 of 2 left out, not valid or too many"},
		{"long", open + `,"examples":[` + long(2<<10) + `]}`, open + `}`, `[` + long(2<<10) + `]`, ""},
		{"a member twice", open + `,"examples":[{"a":1,"a":2}]}`, open + `,"examples":[{"a":1,"a":2}]}`, "", ""},
		{"a format", `{"properties":{"d":{"format":"date"}},"examples":[{"d":"now"},{"d":"2026-11-23"}]}`, `{"properties":{"d":{"format":"date"}}}`, `[{"d":"2026-11-23"}]`, "/examples: 1 of 2 left out, not valid or too many"},
		{"a pattern that Go lacks", `{"properties":{"d":{"pattern":"^(?=a)"}},"examples":[{}]}`, `{"properties":{"d":{"pattern":"^(?=a)"}},"examples":[{}]}`, "", ""},
		{"a reference", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"null"}},"examples":[{"a":1},{"a":null}]}`, `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"null"}}}`, `[{"a":null}]`, "/examples: 1 of 2 left out, not valid or too many"},
	} {
		rest, examples, loss := takeExamples(json.RawMessage(test.give))
		assert.Equal(t, test.rest, string(rest), test.name)
		assert.Equal(t, test.want, string(examples), test.name)
		assert.Equal(t, test.loss, loss, test.name)
	}
}

// Whatever the schema, each example that is taken is valid by it, for a validator that knows
// nothing of ours, and there are few.
func FuzzTakeExamples(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"pattern":"^a","format":"email"}},"required":["a"]}`, `[{"a":"a@b.c"},{"a":""},{"b":1e400}]`)
	f.Add(`{"$ref":"#/$defs/A","$defs":{"A":{"minProperties":1}},"$schema":"http://json-schema.org/draft-04/schema#"}`, `[{},{"a":1},{"a":2,"a":3}]`)
	f.Add(`{"properties":{"a":{"$dynamicRef":"#"}},"unevaluatedProperties":false}`, `[{"a":{"a":{}}},{"b":{}}]`)
	f.Fuzz(func(t *testing.T, given, examples string) {
		given = strings.TrimSuffix(string(text.Compact(json.RawMessage(given))), "}") + `,"examples":` + examples + `}`
		schema := text.Compact(json.RawMessage(strings.Replace(given, "{,", "{", 1)))
		if !json.Valid(schema) || schema[0] != '{' {
			return
		}
		converted, _ := dialect.Convert(schema, dialect.Anthropic)
		rest, taken, _ := takeExamples(converted)
		list := text.Elements(taken)
		if list == nil {
			require.Equal(t, string(converted), string(rest))
			return
		}
		require.LessOrEqual(t, len(list), 3)
		require.LessOrEqual(t, len(taken), 2<<10+3+1)
		again, losses := dialect.Convert(rest, dialect.Anthropic)
		require.Equal(t, string(rest), string(again), "the rest is taken as it is")
		require.Nil(t, losses)
		read := func(raw json.RawMessage) any {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
			require.NoError(t, err)
			return v
		}
		c := jsonschema.NewCompiler()
		require.NoError(t, c.AddResource("x.json", read(rest)))
		compiled, err := c.Compile("x.json")
		require.NoError(t, err)
		for _, e := range list {
			require.NoError(t, compiled.Validate(read(e)), "%s\n%s", rest, e)
		}
	})
}

type answering struct {
	plain
	output string
}

func (a answering) OutputSchema() json.RawMessage { return json.RawMessage(a.output) }

func TestOutputSchema(t *testing.T) {
	t.Parallel()
	large := `{"type":"object","properties":{},"description":"` + strings.Repeat("x", maxOutput-len(`{"type":"object","properties":{},"description":""}`)) + `"}`
	for _, test := range []struct{ give, want string }{
		{"", ""},
		{`{"type":"object"}`, `{"type":"object","properties":{}}`},
		{` { "properties" : { "a" : { "type" : "number" , "default" : 1.0 } } , "$schema" : "https://json-schema.org/draft/2020-12/schema" } `, `{"type":"object","properties":{"a":{"type":"number","default":1.0}}}`},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"null"},"B":{}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"null"}}}`},
		{`{"type":"array","items":{}}`, ""},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, ""},
		{`{"type":"object","properties":{"a":{"pattern":"("}}}`, ""},
		{`[]`, ""}, {`true`, ""}, {`{`, ""}, {`null`, ""}, {large, large}, {strings.Replace(large, "x", "xx", 1), ""},
	} {
		for _, form := range []*Form{OpenAIResponses, OpenAIChat, Anthropic, Gemini, MCP} {
			tool, err := form.Tool(answering{plain{"n", "", `{"type":"object","properties":{}}`}, test.give}, Listed)
			require.NoError(t, err)
			want := ""
			if form == OpenAIResponses && test.want != "" {
				want = fmt.Sprintf(`,"strict":false,"output_schema":%s}`, test.want)
			}
			if want == "" {
				assert.NotContains(t, string(tool.JSON), "output_schema")
			}
			assert.True(t, strings.HasSuffix(string(tool.JSON), want), "%s", tool.JSON)
		}
	}
}
