package listed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseToolKeepsBytes(t *testing.T) {
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
	d, err := ParseTool("github", json.RawMessage(raw), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, "github", d.Server)
	assert.Equal(t, "create_issue", d.Own)
	assert.Equal(t, "Create an issue", d.Title)
	assert.Equal(t, "Line one\nline <two> é", d.Description)
	assert.Equal(t, raw, string(d.Raw))
	assert.Equal(t, `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema",`+
		`"properties":{"z":{"$ref":"#/$defs/z"},`+
		`"a":{"oneOf":[{"type":"integer","maximum":9223372036854775807},{"type":"string","pattern":"^<\\d+>\u0026$"}],"x-foo":{"b":1.50,"a":null}}},`+
		`"required":["z"],"additionalProperties":false,`+
		`"$defs":{"z":{"type":"integer","minimum":18446744073709551616,"x-order":[3,1,2]}}}`, string(d.Input))
	assert.Equal(t, `{"type":"object","properties":{"id":{"const":9007199254740993}}}`, string(d.Output))
	assert.Equal(t, []string{"a"}, d.NoNull)
	assert.Equal(t, mcp.ToolAnnotation{Title: "x", ReadOnlyHint: mcp.ToBoolPtr(true), DestructiveHint: mcp.ToBoolPtr(false)}, d.Annotations)
}

func TestParseTool(t *testing.T) {
	t.Parallel()
	const noInput = `{"type":"object"}`
	tests := []struct {
		name, raw string
		want      Tool   // name, title, description, input and output are compared
		err       string // in the error; want is then unused
	}{
		{"only a name", `{"name":"a"}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"null inputSchema", `{"name":"a","inputSchema":null}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"empty inputSchema", `{"name":"a","inputSchema":{ }}`, Tool{Own: "a", Input: []byte(`{}`)}, ""},
		{"name twice", `{"name":"a","name":"b"}`, Tool{}, `"b" has the member "name" more than once`},
		{"schema in two spellings", `{"inputSchema":{},"name":"a","INPUTſCHEMA":{}}`, Tool{}, `"a" has the member "inputSchema" more than once`},
		{"title of annotations twice", `{"name":"a","annotations":{"title":"x","Title":"y"}}`, Tool{}, `"a" has the member "title" more than once`},
		{"_meta twice", `{"name":"a","_meta":{},"_META":{}}`, Tool{}, `"a" has the member "_meta" more than once`},
		{"true for an inputSchema", `{"name":"a","inputSchema":true}`, Tool{}, `the inputSchema of "a" is not a JSON object`},
		{"array for an inputSchema", `{"name":"a","inputSchema":[]}`, Tool{}, `the inputSchema of "a" is not a JSON object`},
		{"string for an inputSchema", `{"name":"a","inputSchema":"{}"}`, Tool{}, `the inputSchema of "a" is not a JSON object`},
		{"invalid UTF-8 in the inputSchema", "{\"name\":\"a\",\"inputSchema\":{\"x\":\"\xff\"}}", Tool{Own: "a", Input: []byte("{\"x\":\"\ufffd\"}")}, ""},

		{"no name", `{"title":"A"}`, Tool{}, "the name is missing"},
		{"empty name", `{"name":""}`, Tool{}, "the name is missing"},
		{"null name", `{"name":null}`, Tool{}, "the name is missing"},
		{"numeric name", `{"name":5}`, Tool{}, `"name" is a JSON number, want a string`},
		{"list for a name", `{"name":["a"]}`, Tool{}, `"name" is a JSON array, want a string`},
		{"any characters in a name", `{"name":"\u0000 文/\ud83d\ude00"}`, Tool{Own: "\x00 文/😀", Input: []byte(noInput)}, ""},

		{"numeric description", `{"name":"a","description":5}`, Tool{}, `"description" is a JSON number, want a string`},
		{"object for a description", `{"name":"a","description":{}}`, Tool{}, `"description" is a JSON object, want a string`},
		{"null description", `{"name":"a","description":null}`, Tool{Own: "a", Input: []byte(noInput)}, ""},

		{"numeric title", `{"name":"a","title":5}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"null title", `{"name":"a","title":null}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"list for annotations", `{"name":"a","annotations":[1]}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"string for annotations", `{"name":"a","annotations":"read-only"}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"null outputSchema", `{"name":"a","outputSchema":null}`, Tool{Own: "a", Input: []byte(noInput)}, ""},
		{"true for an outputSchema", `{"name":"a","outputSchema":true}`, Tool{Own: "a", Input: []byte(noInput)}, ""},

		{"a string", `"a"`, Tool{}, "is a JSON string, want an object"},
		{"an array", `[{"name":"a"}]`, Tool{}, "is a JSON array, want an object"},
		{"a number", `5`, Tool{}, "is a JSON number, want an object"},
		{"null", `null`, Tool{}, "the name is missing"},
		{"nothing", ``, Tool{}, "unexpected end of JSON input"},
		{"cut off", `{"name":"a"`, Tool{}, "unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := ParseTool("s", json.RawMessage(test.raw), 1<<20)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				assert.Nil(t, d)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want.Own, d.Own)
			assert.Equal(t, test.want.Title, d.Title)
			assert.Equal(t, test.want.Description, d.Description)
			assert.Equal(t, string(test.want.Input), string(d.Input))
			assert.Equal(t, string(test.want.Output), string(d.Output))
			assert.Equal(t, test.want.Output == nil, d.Output == nil)
			assert.Equal(t, test.raw, string(d.Raw))
		})
	}
}

// A hint of the wrong type is ignored. In particular, it does not mean false.
func TestParseToolWrongHints(t *testing.T) {
	t.Parallel()
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		for _, value := range []string{`"yes"`, `1`, `[true]`, `{}`, `null`} {
			raw := json.RawMessage(fmt.Sprintf(`{"name":"a","title":"A","annotations":{%q:%s}}`, hint, value))
			d, err := ParseTool("s", raw, 1<<20)
			require.NoError(t, err)
			assert.Equal(t, "A", d.Title)
			assert.Equal(t, mcp.ToolAnnotation{}, d.Annotations, "%s", raw)
		}
	}
}

func TestParseToolLimit(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"a","description":"` + strings.Repeat("x", 1000) + `"}`)
	_, err := ParseTool("s", raw, len(raw))
	require.NoError(t, err)
	_, err = ParseTool("s", raw, len(raw)-1)
	require.EqualError(t, err, fmt.Sprintf("the definition has %d bytes, more than the limit of %d", len(raw), len(raw)-1))
}

// Trust compares what people and models see and what we act on, and nothing
// else.
func TestTrustComparesWhatIsSaid(t *testing.T) {
	t.Parallel()
	hash := func(text string) string {
		d, err := ParseTool("git", json.RawMessage(text), 1000)
		require.NoError(t, err)
		return d.Trusted.Hash()
	}
	first := hash(`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"}}`)
	assert.Equal(t, first, hash(`{"inputSchema":{"type":"object"},"description":"\u0061", "name":"log","title":"Log","_meta":{"x":1}}`))
	for _, other := range []string{
		`{"name":"log","title":"Lag","description":"a","inputSchema":{"type":"object"}}`,
		`{"name":"log","title":"Log","description":"b","inputSchema":{"type":"object"}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object","properties":{"x":{}}}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"},"_meta":{"anthropic/alwaysLoad":true}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"},"_meta":{"anthropic/searchHint":"everything"}}`,
		`{"name":"log","title":"Log","description":"a","inputSchema":{"type":"object"},"_meta":{"mcphybrid/needs":["rm"]}}`,
	} {
		assert.NotEqual(t, first, hash(other), other)
	}
}

func FuzzParseTool(f *testing.F) {
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
		d, err := ParseTool("s", raw, 1<<20)
		require.Equal(t, string(before), string(raw), "the input was changed")
		if err != nil {
			require.Nil(t, d)
			return
		}
		require.NotEmpty(t, d.Own)
		require.Equal(t, string(raw), string(d.Raw))
		for _, schema := range []json.RawMessage{d.Input, d.Output} {
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
		require.NotNil(t, d.Input)
		args := json.RawMessage(`{"p":null}`)
		require.True(t, json.Valid(schema.DropNulls(args, d.NoNull)))
	})
}

func FuzzNeeds(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{"mcphybrid/needs":["a","b","a"]}`, `{"mcphybrid/needs":null}`,
		`{"mcphybrid/needs":[null]}`, `{"mcphybrid/needs":["\ud800"],"MCPHYBRID/needs":["x"]}`, `{"mcphybrid/needs":{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, meta []byte) {
		needs, err := parseNeeds(meta)
		if err != nil {
			require.Nil(t, needs)
			return
		}
		require.LessOrEqual(t, len(needs), MaxNeeds)
		if len(meta) > 0 {
			require.True(t, json.Valid(meta))
		}
	})
}
