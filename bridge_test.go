package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseDefinitionKeepsBytes(t *testing.T) {
	t.Parallel()
	const raw = `{
		"name" : "create_issue", "title": "Create an issue",
		"description": "Line one\nline <two> \u00e9",
		"inputSchema": {
			"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema",
			"properties": {
				"z": {"$ref": "#/$defs/z"},
				"a": {"oneOf": [{"type": "integer", "maximum": 9223372036854775807}, {"type": "string", "pattern": "^<\\d+>\u0026$"}], "x-foo": {"b": 1.50, "a": null}}
			},
			"required": ["z"], "additionalProperties": false,
			"$defs": {"z": {"type": "integer", "minimum": 18446744073709551616, "x-order": [3, 1, 2]}}
		},
		"outputSchema": {"type": "object", "properties": {"id": {"const": 9007199254740993}}},
		"annotations": {"title": "x", "readOnlyHint": true, "destructiveHint": false, "x-own": 1},
		"_meta": {"a/b": [1]}, "icons": []
	}`
	d, err := parseDefinition("github", json.RawMessage(raw), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, "github", d.server)
	assert.Equal(t, "create_issue", d.name)
	assert.Equal(t, "Create an issue", d.title)
	assert.Equal(t, "Line one\nline <two> é", d.description)
	assert.Equal(t, raw, string(d.raw))
	assert.Equal(t, `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema",`+
		`"properties":{"z":{"$ref":"#/$defs/z"},`+
		`"a":{"oneOf":[{"type":"integer","maximum":9223372036854775807},{"type":"string","pattern":"^<\\d+>\u0026$"}],"x-foo":{"b":1.50,"a":null}}},`+
		`"required":["z"],"additionalProperties":false,`+
		`"$defs":{"z":{"type":"integer","minimum":18446744073709551616,"x-order":[3,1,2]}}}`, string(d.input))
	assert.Equal(t, `{"type":"object","properties":{"id":{"const":9007199254740993}}}`, string(d.output))
	assert.Equal(t, []string{"a"}, d.noNull)
	assert.Equal(t, mcp.ToolAnnotation{Title: "x", ReadOnlyHint: mcp.ToBoolPtr(true), DestructiveHint: mcp.ToBoolPtr(false)}, d.annotations)
}

func TestParseDefinition(t *testing.T) {
	t.Parallel()
	const noInput = `{"type":"object"}`
	tests := []struct {
		name, raw string
		want      definition // name, title, description, input and output are compared
		err       string     // in the error; want is then unused
	}{
		{"only a name", `{"name":"a"}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"null inputSchema", `{"name":"a","inputSchema":null}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"empty inputSchema", `{"name":"a","inputSchema":{ }}`, definition{name: "a", input: []byte(`{}`)}, ""},
		{"name twice", `{"name":"a","name":"b"}`, definition{}, `"b" has the member "name" more than once`},
		{"schema in two spellings", `{"inputSchema":{},"name":"a","INPUTſCHEMA":{}}`, definition{}, `"a" has the member "inputSchema" more than once`},
		{"title of annotations twice", `{"name":"a","annotations":{"title":"x","Title":"y"}}`, definition{}, `"a" has the member "title" more than once`},
		{"_meta twice", `{"name":"a","_meta":{},"_META":{}}`, definition{}, `"a" has the member "_meta" more than once`},
		{"true for an inputSchema", `{"name":"a","inputSchema":true}`, definition{}, `the inputSchema of "a" is not a JSON object`},
		{"array for an inputSchema", `{"name":"a","inputSchema":[]}`, definition{}, `the inputSchema of "a" is not a JSON object`},
		{"string for an inputSchema", `{"name":"a","inputSchema":"{}"}`, definition{}, `the inputSchema of "a" is not a JSON object`},
		{"invalid UTF-8 in the inputSchema", "{\"name\":\"a\",\"inputSchema\":{\"x\":\"\xff\"}}", definition{name: "a", input: []byte("{\"x\":\"\ufffd\"}")}, ""},

		{"no name", `{"title":"A"}`, definition{}, "the name is missing"},
		{"empty name", `{"name":""}`, definition{}, "the name is missing"},
		{"null name", `{"name":null}`, definition{}, "the name is missing"},
		{"numeric name", `{"name":5}`, definition{}, `"name" is a JSON number, want a string`},
		{"list for a name", `{"name":["a"]}`, definition{}, `"name" is a JSON array, want a string`},
		{"any characters in a name", `{"name":"\u0000 文/\ud83d\ude00"}`, definition{name: "\x00 文/😀", input: []byte(noInput)}, ""},

		{"numeric description", `{"name":"a","description":5}`, definition{}, `"description" is a JSON number, want a string`},
		{"object for a description", `{"name":"a","description":{}}`, definition{}, `"description" is a JSON object, want a string`},
		{"null description", `{"name":"a","description":null}`, definition{name: "a", input: []byte(noInput)}, ""},

		{"numeric title", `{"name":"a","title":5}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"null title", `{"name":"a","title":null}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"list for annotations", `{"name":"a","annotations":[1]}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"string for annotations", `{"name":"a","annotations":"read-only"}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"null outputSchema", `{"name":"a","outputSchema":null}`, definition{name: "a", input: []byte(noInput)}, ""},
		{"true for an outputSchema", `{"name":"a","outputSchema":true}`, definition{name: "a", input: []byte(noInput)}, ""},

		{"a string", `"a"`, definition{}, "is a JSON string, want an object"},
		{"an array", `[{"name":"a"}]`, definition{}, "is a JSON array, want an object"},
		{"a number", `5`, definition{}, "is a JSON number, want an object"},
		{"null", `null`, definition{}, "the name is missing"},
		{"nothing", ``, definition{}, "unexpected end of JSON input"},
		{"cut off", `{"name":"a"`, definition{}, "unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := parseDefinition("s", json.RawMessage(test.raw), 1<<20)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				assert.Nil(t, d)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want.name, d.name)
			assert.Equal(t, test.want.title, d.title)
			assert.Equal(t, test.want.description, d.description)
			assert.Equal(t, string(test.want.input), string(d.input))
			assert.Equal(t, string(test.want.output), string(d.output))
			assert.Equal(t, test.want.output == nil, d.output == nil)
			assert.Equal(t, test.raw, string(d.raw))
		})
	}
}

// A hint of the wrong type is ignored. In particular, it does not mean false.
func TestParseDefinitionWrongHints(t *testing.T) {
	t.Parallel()
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		for _, value := range []string{`"yes"`, `1`, `[true]`, `{}`, `null`} {
			raw := json.RawMessage(fmt.Sprintf(`{"name":"a","title":"A","annotations":{%q:%s}}`, hint, value))
			d, err := parseDefinition("s", raw, 1<<20)
			require.NoError(t, err)
			assert.Equal(t, "A", d.title)
			assert.Equal(t, mcp.ToolAnnotation{}, d.annotations, "%s", raw)
		}
	}
}

func TestParseDefinitionLimit(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"a","description":"` + strings.Repeat("x", 1000) + `"}`)
	_, err := parseDefinition("s", raw, len(raw))
	require.NoError(t, err)
	_, err = parseDefinition("s", raw, len(raw)-1)
	require.EqualError(t, err, fmt.Sprintf("the definition has %d bytes, more than the limit of %d", len(raw), len(raw)-1))
}

// parseAll is parseDefinitions for raw elements of one server.
func parseAll(t *testing.T, cfg ServerConfig, raw []json.RawMessage, maxBytes int) ([]*definition, []error) {
	t.Helper()
	var elements []upstream.Element
	for _, r := range raw {
		elements = append(elements, upstream.Element{Raw: r})
	}
	src := &source{listing: listing{name: cfg.Name, prefix: cfg.Prefix, claim: names.Alone(cfg.Name, cfg.Prefix), tools: cfg.Tools}, cfg: cfg}
	defs, problems, _, err := src.parseDefinitions(t.Context(), elements, names.NewBook(100), maxBytes)
	require.NoError(t, err)
	return defs, problems
}

func TestParseDefinitions(t *testing.T) {
	t.Parallel()
	const tooLarge = 200
	elements := []json.RawMessage{
		json.RawMessage(`{"name":"zeta"}`),
		json.RawMessage(`{"name":5}`),
		json.RawMessage(`{"name":"a/b","description":"first"}`),
		json.RawMessage(`"no object"`),
		json.RawMessage(`{"name":"a/b","description":"second"}`),
		json.RawMessage(`{"name":"secret"}`),
		json.RawMessage(`{"name":"secret"}`),
		json.RawMessage(`{"name":"large","description":"` + strings.Repeat("x", tooLarge) + `"}`),
		json.RawMessage(`{"name":"zeta"}`),
		json.RawMessage(`{"name":"Zeta"}`),
		json.RawMessage(`{"name":"alpha","inputSchema":[]}`),
		json.RawMessage(`{"name":"alpha"}`),
	}
	defs, problems := parseAll(t, ServerConfig{Name: "my-server", Tools: Access{Deny: []string{"secret"}}}, elements, tooLarge)

	var got []string
	for _, d := range defs {
		assert.Equal(t, "my-server", d.server)
		got = append(got, d.name+" "+d.registered+" "+d.description)
	}
	assert.Equal(t, []string{
		"zeta mcp_my_server__zeta ",
		"a/b " + names.Alone("my-server", "").Name("a/b") + " first",
		"Zeta mcp_my_server__Zeta ",
		"alpha mcp_my_server__alpha ",
	}, got)

	got = nil
	for _, problem := range problems {
		got = append(got, problem.Error())
	}
	assert.Equal(t, []string{
		`mcphybrid: server "my-server": tool 1: "name" is a JSON number, want a string`,
		`mcphybrid: server "my-server": tool 3: is a JSON string, want an object`,
		`mcphybrid: server "my-server": tool 4: another tool is named "a/b" too; the first is kept`,
		fmt.Sprintf(`mcphybrid: server "my-server": tool 7: the definition has %d bytes, more than the limit of 200`, len(elements[7])),
		`mcphybrid: server "my-server": tool 8: another tool is named "zeta" too; the first is kept`,
		`mcphybrid: server "my-server": tool 10: the inputSchema of "alpha" is not a JSON object`,
	}, got)

	defs, problems = parseAll(t, ServerConfig{Name: "s", Prefix: "ops"}, elements[:1], tooLarge)
	require.Len(t, defs, 1)
	assert.Empty(t, problems)
	assert.Equal(t, "mcp_ops__zeta", defs[0].registered)

	defs, problems = parseAll(t, ServerConfig{Name: "s", Tools: Access{Allow: []string{"other"}}}, elements[:1], tooLarge)
	assert.Empty(t, defs)
	assert.Empty(t, problems)

	defs, problems = parseAll(t, ServerConfig{Name: "s"}, nil, tooLarge)
	assert.Empty(t, defs)
	assert.Empty(t, problems)
}

func TestBridgeToolAccessors(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"a b","title":"A","description":"d","inputSchema":{"type":"object"},"outputSchema":{"x":1},"annotations":{"idempotentHint":true}}`)
	defs, problems := parseAll(t, ServerConfig{Name: "s-1"}, []json.RawMessage{raw}, 1<<20)
	require.Empty(t, problems)
	tool := &BridgeTool{name: defs[0].registered, def: defs[0]}
	assert.Equal(t, names.Alone("s-1", "").Name("a b"), tool.Name())
	assert.Equal(t, "a b", tool.OriginalName())
	assert.Equal(t, "s-1", tool.Server())
	assert.Equal(t, "A", tool.Title())
	assert.Equal(t, "d", tool.Description())
	assert.Equal(t, `{"type":"object"}`, string(tool.InputSchema()))
	assert.Equal(t, `{"x":1}`, string(tool.OutputSchema()))
	assert.Equal(t, mcp.ToolAnnotation{IdempotentHint: mcp.ToBoolPtr(true)}, tool.Annotations())
	assert.Equal(t, string(raw), string(tool.Raw()))
}

func TestBridgeToolCallArguments(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"run","inputSchema":{"properties":{"p":{"type":"string"},"q":{"type":["string","null"]}}}}`)
	d, err := parseDefinition("s", raw, 1<<20)
	require.NoError(t, err)
	var got string
	result := mcp.NewToolResultError("its own")
	d.call = func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		got = string(args)
		return result, nil
	}
	tool := &BridgeTool{name: "mcp_s__run", def: d}
	for in, want := range map[string]string{
		"":                                  `{}`,
		`{}`:                                `{}`,
		`{"q":null,"p":null,"x":1.0}`:       `{"q":null,"x":1.0}`,
		`{"p":"none","n":9007199254740993}`: `{"p":"none","n":9007199254740993}`,
	} {
		res, err := tool.Call(t.Context(), json.RawMessage(in))
		require.NoError(t, err)
		assert.Same(t, result, res)
		assert.Equal(t, want, got)
	}

	broken := errors.New("broken")
	d.call = func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return nil, broken }
	_, err = tool.Call(t.Context(), nil)
	require.ErrorIs(t, err, broken)
	assert.EqualError(t, err, `mcphybrid: tool "run" of server "s": broken`)
}

func FuzzParseDefinition(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"name":"a"}`, `{"name":5}`, `{"name":"a","inputSchema":true}`, `[{"name":"a"}]`,
		`{"name":"a","inputSchema":{"properties":{"p":{"type":"string"},"q":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["q"]}}`,
		`{"name":"a","title":1,"annotations":[],"outputSchema":{"x":[1, 2]}}`,
		"{\"name\":\"\xff\",\"inputSchema\":{\"\xff\":\"\xff\"}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		d, err := parseDefinition("s", raw, 1<<20)
		require.Equal(t, string(before), string(raw), "the input was changed")
		if err != nil {
			require.Nil(t, d)
			return
		}
		require.NotEmpty(t, d.name)
		require.Equal(t, string(raw), string(d.raw))
		for _, schema := range []json.RawMessage{d.input, d.output} {
			if schema == nil {
				continue
			}
			var object map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(schema, &object))
			require.NotNil(t, object, "%s is not an object", schema)
			var compacted bytes.Buffer
			require.NoError(t, json.Compact(&compacted, schema))
			require.Equal(t, compacted.String(), string(schema))
		}
		require.NotNil(t, d.input)
		args := json.RawMessage(`{"p":null}`)
		require.True(t, json.Valid(schema.DropNulls(args, d.noNull)))
	})
}
