package mcphybrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
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
	assert.Equal(t, "github", d.Server)
	assert.Equal(t, "create_issue", d.Own)
	assert.Equal(t, "Create an issue", d.Title)
	assert.Equal(t, "Line one\nline <two> é", d.Description)
	assert.Equal(t, raw, string(d.Raw))
	assert.Equal(t, `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema",`+
		`"properties":{"z":{"$ref":"#/$defs/z"},`+
		`"a":{"oneOf":[{"type":"integer","maximum":9223372036854775807},{"type":"string","pattern":"^<\\d+>\u0026$"}],"x-foo":{"b":1.50,"a":null}}},`+
		`"required":["z"],"additionalProperties":false,`+
		`"$defs":{"z":{"type":"integer","minimum":18446744073709551616,"x-order":[3,1,2]}}}`, string(d.InputSchema))
	assert.Equal(t, `{"type":"object",`+string(d.InputSchema[len(`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema",`):]), string(d.Input()))
	assert.Equal(t, `{"type":"object","properties":{"id":{"const":9007199254740993}}}`, string(d.Output()))
	assert.Equal(t, mcp.ToolAnnotation{Title: "x", ReadOnlyHint: mcp.ToBoolPtr(true), DestructiveHint: mcp.ToBoolPtr(false)}, d.Annotations)
}

func TestParseDefinition(t *testing.T) {
	t.Parallel()
	const noInput = `{"type":"object"}`
	tests := []struct {
		name, raw string
		want      [2]string // the name and the input schema; there is nothing else
		err       string    // in the error; want is then unused
	}{
		{"only a name", `{"name":"a"}`, [2]string{"a", noInput}, ""},
		{"null inputSchema", `{"name":"a","inputSchema":null}`, [2]string{"a", noInput}, ""},
		{"empty inputSchema", `{"name":"a","inputSchema":{ }}`, [2]string{"a", `{}`}, ""},
		{"name twice", `{"name":"a","name":"b"}`, [2]string{}, `"b" has the member "name" more than once`},
		{"schema in two spellings", `{"inputSchema":{},"name":"a","INPUTſCHEMA":{}}`, [2]string{}, `"a" has the member "inputSchema" more than once`},
		{"title of annotations twice", `{"name":"a","annotations":{"title":"x","Title":"y"}}`, [2]string{}, `"a" has the member "title" more than once`},
		{"execution twice", `{"name":"a","execution":{},"execution":{"taskSupport":"required"}}`, [2]string{}, `"a" has the member "execution" more than once`},
		{"_meta twice", `{"name":"a","_meta":{},"_META":{}}`, [2]string{}, `"a" has the member "_meta" more than once`},
		{"true for an inputSchema", `{"name":"a","inputSchema":true}`, [2]string{}, `the inputSchema of "a" is not a JSON object`},
		{"array for an inputSchema", `{"name":"a","inputSchema":[]}`, [2]string{}, `the inputSchema of "a" is not a JSON object`},
		{"string for an inputSchema", `{"name":"a","inputSchema":"{}"}`, [2]string{}, `the inputSchema of "a" is not a JSON object`},
		{"invalid UTF-8 in the inputSchema", "{\"name\":\"a\",\"inputSchema\":{\"x\":\"\xff\"}}", [2]string{"a", "{\"x\":\"\ufffd\"}"}, ""},

		{"no name", `{"title":"A"}`, [2]string{}, "the name is missing"},
		{"empty name", `{"name":""}`, [2]string{}, "the name is missing"},
		{"null name", `{"name":null}`, [2]string{}, "the name is missing"},
		{"numeric name", `{"name":5}`, [2]string{}, `"name" is a JSON number, want a string`},
		{"list for a name", `{"name":["a"]}`, [2]string{}, `"name" is a JSON array, want a string`},
		{"any characters in a name", `{"name":"\u0000 文/\ud83d\ude00"}`, [2]string{"\x00 文/😀", noInput}, ""},

		{"numeric description", `{"name":"a","description":5}`, [2]string{}, `"description" is a JSON number, want a string`},
		{"object for a description", `{"name":"a","description":{}}`, [2]string{}, `"description" is a JSON object, want a string`},
		{"null description", `{"name":"a","description":null}`, [2]string{"a", noInput}, ""},

		{"numeric title", `{"name":"a","title":5}`, [2]string{"a", noInput}, ""},
		{"null title", `{"name":"a","title":null}`, [2]string{"a", noInput}, ""},
		{"list for annotations", `{"name":"a","annotations":[1]}`, [2]string{"a", noInput}, ""},
		{"string for annotations", `{"name":"a","annotations":"read-only"}`, [2]string{"a", noInput}, ""},
		{"null outputSchema", `{"name":"a","outputSchema":null}`, [2]string{"a", noInput}, ""},
		{"true for an outputSchema", `{"name":"a","outputSchema":true}`, [2]string{"a", noInput}, ""},

		{"a string", `"a"`, [2]string{}, "is a JSON string, want an object"},
		{"an array", `[{"name":"a"}]`, [2]string{}, "is a JSON array, want an object"},
		{"a number", `5`, [2]string{}, "is a JSON number, want an object"},
		{"null", `null`, [2]string{}, "the name is missing"},
		{"nothing", ``, [2]string{}, "unexpected end of JSON input"},
		{"cut off", `{"name":"a"`, [2]string{}, "unexpected end of JSON input"},
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
			assert.Equal(t, test.want, [2]string{d.Own, string(d.InputSchema)})
			assert.Empty(t, d.Title+d.Description)
			assert.Nil(t, d.Output())
			assert.Equal(t, test.raw, string(d.Raw))
		})
	}
}

// Search takes a tool for one that reads if its server says so.
func TestDocumentReadOnly(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"name":"a","annotations":{"readOnlyHint":true}}`: true, `{"name":"a","annotations":{"readOnlyHint":true,"destructiveHint":true}}`: true,
		`{"name":"a","annotations":{"readOnlyHint":false}}`: false, `{"name":"a","annotations":{"readOnlyHint":"true"}}`: false, `{"name":"a"}`: false,
	} {
		d, err := parseDefinition("s", json.RawMessage(raw), 1<<20)
		require.NoError(t, err)
		assert.Equal(t, want, d.Document().ReadOnly, raw)
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
			assert.Equal(t, "A", d.Title)
			assert.Equal(t, mcp.ToolAnnotation{}, d.Annotations, "%s", raw)
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

// The schemas of a definition without spaces take no memory of their own.
func TestParseDefinitionKeepsBytesOnce(t *testing.T) {
	t.Parallel()
	const input, output = `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"b":{"type":"string"}}}`
	raw := json.RawMessage(`{"name":"a","inputSchema":` + input + `,"outputSchema":` + output + `}`)
	d, err := parseDefinition("s", raw, 1000)
	require.NoError(t, err)
	assert.Same(t, &raw[bytes.Index(raw, []byte(input))], &d.InputSchema[0])
	assert.Same(t, &raw[bytes.Index(raw, []byte(output))], &d.Output()[0])
	_ = append(d.InputSchema, "of a host"...)
	assert.JSONEq(t, `{"name":"a","inputSchema":`+input+`,"outputSchema":`+output+`}`, string(raw))

	d, err = parseDefinition("s", json.RawMessage(`{"name":"a","inputSchema":{"type": "object" } }`), 1000)
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"object"}`, string(d.InputSchema))
}

// Trust compares what people and models see and what we act on, and nothing
// else.
func TestTrustComparesWhatIsSaid(t *testing.T) {
	t.Parallel()
	hash := func(text string) string {
		d, err := parseDefinition("git", json.RawMessage(text), 1000)
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

// decoded is what parseDefinition returns by definition, as encoding/json reads it, and the
// tool's output schema. It fails if raw can't be used.
func decoded(raw json.RawMessage) (t *definition, output json.RawMessage, ok bool) {
	var in struct {
		Name        string          `json:"name"`
		Title       json.RawMessage `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations json.RawMessage `json:"annotations"`
		Meta        json.RawMessage `json:"_meta"`
		Execution   json.RawMessage `json:"execution"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Name == "" || repeats(raw, "name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "execution") ||
		repeats(in.Annotations, "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint") {
		return nil, nil, false
	}
	if in.Input == nil || string(in.Input) == "null" {
		in.Input = json.RawMessage(`{"type":"object"}`)
	}
	if bytes.HasPrefix(in.Output, []byte("{")) {
		output = compacted(in.Output)
	}
	t = &definition{Own: in.Name}
	t.toolDocument = toolDocument{Name: in.Name, Description: in.Description, InputSchema: compacted(in.Input)}
	_ = json.Unmarshal(in.Title, &t.Title)
	if json.Unmarshal(in.Annotations, &t.Annotations) != nil {
		t.Annotations = mcp.ToolAnnotation{}
	}
	t.toolDocument.ReadOnly = t.Annotations.ReadOnlyHint != nil && *t.Annotations.ReadOnlyHint
	var execution mcp.ToolExecution
	t.Task = json.Unmarshal(in.Execution, &execution) == nil && execution.TaskSupport == mcp.TaskSupportRequired
	t.Needs = parseNeeds(in.Meta)
	t.Always, t.toolDocument.Hints = parseOfferHints(in.Meta)
	return t, output, t.InputSchema[0] == '{'
}

// repeats reports whether an object has one of these members twice, in whatever case.
func repeats(object json.RawMessage, names ...string) bool {
	members, _ := text.Members(object)
	times := make(map[string]int)
	for _, m := range members {
		for _, name := range names {
			if strings.EqualFold(m.Name, name) {
				times[name]++
			}
		}
	}
	return slices.Max(append(slices.Collect(maps.Values(times)), 0)) > 1
}

func compacted(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	_ = json.Compact(&b, raw)
	return bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))
}

// requireDecoded fails if got, the result of parseDefinition, is not what raw says.
func requireDecoded(t require.TestingT, raw json.RawMessage, got *definition, err error) {
	want, output, ok := decoded(raw)
	require.Equal(t, ok, err == nil, "%v", err)
	if !ok {
		require.Nil(t, got)
		return
	}
	want.Server = got.Server
	said := func(t *definition) []any {
		return []any{t.toolDocument, t.Own, t.Annotations, t.Needs, t.Always, t.Task}
	}
	require.Equal(t, said(want), said(got))
	require.Equal(t, schema.Prune(output), got.Output())
	require.Equal(t, string(raw), string(got.Raw))
}

func TestParseDefinitionOfCatalogs(t *testing.T) {
	t.Parallel()
	for server, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			for _, raw := range []json.RawMessage{raw, compacted(raw)} {
				got, err := parseDefinition(server, raw, 1<<20)
				require.NoError(t, err)
				requireDecoded(t, raw, got, nil)
			}
		}
	}
}

func FuzzParseDefinition(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"name":"a"}`, `{"name":5}`, `{"name":"a","inputSchema":true}`, `[{"name":"a"}]`,
		`{"name":"a","inputSchema":{"properties":{"p":{"type":"string"},"q":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["q"]}}`,
		`{"name":"a","title":1,"annotations":[],"outputSchema":{"x":[1, 2]}}`,
		"{\"name\":\"\xff\",\"inputSchema\":{\"\xff\":\"\xff\"}}",
		`{"NAME":"a","deſcription":"\ud800","inputSchema":{"x":"\\\""},"execution":{"taskSupport":"required"},"_meta":{"anthropic/alwaysLoad":true}}`,
		`{"name":"a","annotations":{"readOnlyHint":true,"title":5}} `, `{"name":"a","name":null}`, `{"name":"a","execution":1,"execution":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		d, err := parseDefinition("s", raw, 1<<20)
		require.Equal(t, string(before), string(raw), "the input was changed")
		requireDecoded(t, raw, d, err)
		if err != nil {
			return
		}
		for _, schema := range []json.RawMessage{d.InputSchema, d.Output()} {
			if schema == nil {
				continue
			}
			var object map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(schema, &object))
			require.NotNil(t, object, "%s is not an object", schema)
		}
		require.NotNil(t, d.InputSchema)
		args := json.RawMessage(`{"p":null}`)
		require.True(t, json.Valid(schema.DropNulls(args, d.InputSchema)))
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
		needs := parseNeeds(meta)
		if needs != nil && needs.err != nil {
			require.Nil(t, needs.names)
			return
		}
		require.LessOrEqual(t, len(needs.list()), maxNeeds)
		if len(meta) > 0 {
			require.True(t, json.Valid(meta))
		}
	})
}
