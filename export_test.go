package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var formats = []Format{FormatMCP, FormatOpenAIChat, FormatOpenAIResponses, FormatAnthropic, FormatGemini}

// trickyDefinitions are what servers send that some provider does not take.
var trickyDefinitions = []string{
	`{"name":"plain","title":"Plain","description":"Adds <a> & \"b\".","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"b":{"type":"number","default":1.0},"a":{"type":"integer","maximum":9007199254740993}},"required":["b"],"additionalProperties":false},"annotations":{"readOnlyHint":true},"_meta":{"x":1e3}}`,
	`{"name":"none"}`,
	`{"NAME":"shout","inputSchema":null,"description":""}`,
	`{"inputSchema":{"type":"object","properties":{"name":{"type":"string"}}},"name":"a.b/c","icons":[{"src":"data:,"}]}`,
	`{"name":"one_of","inputSchema":{"oneOf":[{"type":"object","title":"By id","properties":{"kind":{"const":"id"},"id":{"type":"integer"}},"required":["kind","id"],"additionalProperties":false},{"properties":{"kind":{"const":"url"},"url":{"type":"string","format":"uri"}},"required":["kind","url"],"additionalProperties":false},{"type":"null"}]}}`,
	`{"name":"any_required","inputSchema":{"type":"object","properties":{"route":{"type":"string"},"file":{"type":"string"}},"anyOf":[{"required":["route"]},{"required":["file"]}]}}`,
	`{"name":"all_of","inputSchema":{"allOf":[{"$ref":"#/definitions/Base"},{"properties":{"id":{"minLength":2},"more":{"type":"array"}},"required":["more"],"additionalProperties":false}],"definitions":{"Base":{"type":"object","description":"A base.","properties":{"id":{"type":"string"}},"required":["id"]}}}}`,
	`{"name":"recursive","inputSchema":{"type":"object","properties":{"root":{"$ref":"#/$defs/Node","description":"The first."},"again":{"$ref":"#/properties/root"},"self":{"$ref":"#"},"lost":{"$ref":"https://example.com/x"}},"$defs":{"Node":{"type":"object","description":"A node.","properties":{"next":{"$ref":"#/$defs/Node"},"value":{"$ref":"#/$defs/Value"}}},"Value":{"type":["string","null"],"enum":["a",2,null]}}}}`,
	`{"name":"old_drafts","inputSchema":{"type":"object","properties":{"pair":{"type":"array","items":[{"type":"string"},true],"additionalItems":false},"n":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false},"m":{"exclusiveMaximum":7,"multipleOf":0.5}},"dependencies":{"n":["m"]}}}`,
	`{"name":"malformed","inputSchema":{"type":"Object","properties":{"a":"string","b":{"type":["string","any"],"description":7,"enum":[],"minLength":-1,"required":true},"c":{"anyOf":[]},"d":false},"required":["a",5]}}`,
	`{"name":"names","inputSchema":{"type":"object","properties":{"$top":{"type":"integer"},"filter[id]":{"type":"string"},"ok.ok-1":{"type":"object","properties":{"@in":{"type":"string"}}}},"required":["$top","ok.ok-1","elsewhere"]}}`,
	`{"name":"regular","inputSchema":{"type":"object","properties":{"email":{"type":"string","pattern":"^(?!\\.)a","x-order":1},"id":{"type":"string","pattern":"^(?:a|\\(?=)$"}},"patternProperties":{"(?<=x)y":{},"^z":{"type":"array","items":{"oneOf":[{"const":true},{"not":{"type":"null"}}]}}}}}`,
	`{"name":"twice","inputSchema":{"type":"object","type":"object","properties":{"a":{"type":"string"},"a":{"type":"number"}}}}`,
}

func bridgeTool(t testing.TB, raw string) *BridgeTool {
	d, err := parseDefinition("s", json.RawMessage(raw), DefaultMaxDefinition)
	require.NoError(t, err, raw)
	return &BridgeTool{name: registeredName("s", "", d.name), def: d}
}

// schemaTool is a Tool of a host, with this input schema.
type schemaTool struct{ name, description, schema string }

func (t *schemaTool) Name() string                 { return t.name }
func (t *schemaTool) Description() string          { return t.description }
func (t *schemaTool) InputSchema() json.RawMessage { return json.RawMessage(t.schema) }
func (t *schemaTool) Call(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return nil, nil
}

// testdata/export has, for each format, what becomes of trickyDefinitions and
// what is lost of them.
func TestExportGolden(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			var b strings.Builder
			for _, raw := range trickyDefinitions {
				e, err := exportTool(bridgeTool(t, raw), f, false)
				require.NoError(t, err, raw)
				require.NoError(t, checkExport(f, e.JSON), "%s", e.JSON)
				fmt.Fprintf(&b, "%s\n", e.JSON)
				for _, loss := range e.Losses {
					fmt.Fprintf(&b, "\t%s\n", loss)
				}
			}
			path := filepath.Join("testdata", "export", string(f)+".golden")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), b.String(), "if the change is meant: go test -run ExportGolden -update .")
		})
	}
}

func TestExportSchemas(t *testing.T) {
	const str = `{"type":"string"}`
	long := strings.Repeat("x", 65)
	tests := []struct {
		name       string
		format     Format
		give, want string
		losses     []string
	}{
		{"as it is", FormatAnthropic, `{"type":"object","properties":{"z":{"x-y":1.10,"type":"string"},"a":true}}`, `{"type":"object","properties":{"z":{"x-y":1.10,"type":"string"},"a":{}}}`, nil},
		{"no type", FormatAnthropic, `{"properties":{}}`, `{"type":"object","properties":{}}`, nil},
		{"nullable root", FormatAnthropic, `{"title":"T","type":["null","object"]}`, `{"title":"T","type":"object"}`, nil},
		{"another type", FormatAnthropic, `{"type":"string"}`, `{"type":"object"}`, []string{"/type: is now object"}},
		{"no properties", FormatOpenAIChat, `{"type":"object"}`, `{"type":"object","properties":{}}`, nil},
		{"no items", FormatOpenAIChat, `{"type":"object","properties":{"a":{"type":["array","null"]}}}`, `{"type":"object","properties":{"a":{"type":["array","null"],"items":{}}}}`, nil},
		{"no items, Gemini", FormatGemini, `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, nil},
		{"items are not needed", FormatAnthropic, `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array"}}}`, nil},
		{"enum at the root", FormatOpenAIResponses, `{"type":"object","properties":{},"not":{"required":["a"]},"enum":[{}],"const":{}}`, `{"type":"object","properties":{}}`,
			[]string{"/not: not taken at the root, left out", "/enum: not taken at the root, left out", "/const: not taken at the root, left out"}},
		{"not at the root", FormatAnthropic, `{"type":"object","not":{"required":["a"]}}`, `{"type":"object","not":{"required":["a"]}}`, nil},
		{"allOf at the root", FormatAnthropic, `{"type":"object","allOf":[{"properties":{"a":` + str + `},"required":["a"],"if":{},"$defs":{}},{"if":{"type":"null"}}],"required":["b"]}`,
			`{"type":"object","required":["b","a"],"properties":{"a":` + str + `},"if":{}}`, []string{"/if: there twice, the outer is taken"}},
		{"allOf within", FormatAnthropic, `{"type":"object","properties":{"a":{"allOf":[` + str + `]}}}`, `{"type":"object","properties":{"a":{"allOf":[` + str + `]}}}`, nil},
		{"unions keep what all require", FormatOpenAIChat, `{"oneOf":[{"required":["a","b"],"properties":{"a":` + str + `}},{"required":["b"],"minProperties":1}],"properties":{"b":` + str + `}}`,
			`{"type":"object","properties":{"b":` + str + `,"a":` + str + `},"required":["b"]}`,
			[]string{"/oneOf: not taken at the root; its alternatives became one list of properties", "/oneOf/1/minProperties: left out"}},
		{"unions within unions", FormatAnthropic, `{"anyOf":[{"anyOf":[{"required":["a"]},{"required":["a","b"]}]},{"allOf":[{"required":["c"]},{"required":["a"]}]}]}`,
			`{"type":"object","properties":{},"required":["a"]}`,
			[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf: not taken at the root; its alternatives became one list of properties"}},
		{"a property in two places", FormatAnthropic, `{"properties":{"a":` + str + `},"anyOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":` + str + `}}]}`,
			`{"type":"object","properties":{"a":` + str + `}}`,
			[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf/0/properties/a: described outside of the union too, left out"}},
		{"a reference at the root", FormatOpenAIChat, `{"$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"a":` + str + `}}}}`, `{"type":"object","properties":{"a":` + str + `}}`, nil},
		{"the same part twice is not recursive", FormatGemini, `{"oneOf":[{"allOf":[{"$ref":"#/$defs/B"}]},{"allOf":[{"$ref":"#/$defs/B"}]}],"$defs":{"B":{"properties":{"b":` + str + `},"required":["b"]}}}`,
			`{"type":"object","properties":{"b":` + str + `},"required":["b"]}`, []string{"/oneOf: not taken at the root; its alternatives became one list of properties"}},
		{"references that can stay", FormatAnthropic, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","title":"T"},"r":{"$ref":"#"}},"$defs":{"A":` + str + `}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","title":"T"},"r":{"$ref":"#"}},"$defs":{"A":` + str + `}}`, nil},
		{"references that may have moved", FormatOpenAIChat, `{"type":"object","properties":{"a":{"$ref":"#/properties/b~1c","title":"T"},"b/c":{"type":"string","title":"U"}}}`,
			`{"type":"object","properties":{"a":{"title":"T","type":"string"},"b/c":{"type":"string","title":"U"}}}`, []string{"/properties/a/title: there twice, the outer is taken"}},
		{"references for Gemini", FormatGemini, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A%20B"}},"$defs":{"A B":{"type":"integer","default":1}}}`, `{"type":"object","properties":{"a":{"type":"integer","default":1}}}`, nil},
		{"recursion to the root", FormatGemini, `{"type":"object","description":"D","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","description":"D","properties":{"a":{"type":"object","description":"D"}}}`,
			[]string{"/properties/a/$ref: is recursive, cut here"}},
		{"recursion without an end", FormatOpenAIChat, `{"$ref":"#/$defs/A","$defs":{"A":{"allOf":[{"$ref":"#/$defs/B"}]},"B":{"$ref":"#/$defs/A","title":"B"}}}`, `{"type":"object","title":"B","properties":{}}`, []string{"/$ref: is recursive, cut here"}},
		{"recursion at the root", FormatAnthropic, `{"$ref":"#"}`, `{"type":"object"}`, []string{"/$ref: is recursive, cut here"}},
		{"a name that is too long", FormatAnthropic, `{"type":"object","properties":{"` + long + `":{},"` + long[1:] + `":{}},"required":["` + long + `"]}`, `{"type":"object","properties":{"` + long[1:] + `":{}}}`,
			[]string{"/properties/" + long + ": a name that is not taken, left out, so that the tool can't be called with it", `/required: "` + long[:63] + `…" is not among the properties, left out`}},
		{"names for others", FormatOpenAIChat, `{"type":"object","properties":{"$top":{}}}`, `{"type":"object","properties":{"$top":{}}}`, nil},
		{"keywords that Gemini lacks", FormatGemini, `{"type":"object","properties":{"a":{"const":"x","uniqueItems":true,"oneOf":[{"type":"string"}]},"b":{"exclusiveMaximum":1,"maximum":2}},"$comment":"C"}`,
			`{"type":"object","properties":{"a":{"enum":["x"],"anyOf":[{"type":"string"}]},"b":{"maximum":2}}}`,
			[]string{"/$comment: not taken, left out", "/properties/a/uniqueItems: not taken, left out", "/properties/a/oneOf: not taken, became anyOf", "/properties/b/exclusiveMaximum: not taken, left out"}},
		{"an alternative of anything", FormatGemini, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},true]}}}`, `{"type":"object","properties":{"a":{}}}`, nil},
		{"allOf for Gemini", FormatGemini, `{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":1}],"title":"T"}}}`, `{"type":"object","properties":{"a":{"title":"T","type":"string","minLength":1}}}`, nil},
		{"enum for Gemini", FormatGemini, `{"type":"object","properties":{"a":{"enum":[true,false]},"b":{"enum":["x",1,null]},"c":{"enum":[]}}}`, `{"type":"object","properties":{"a":{},"b":{"enum":["x",1]},"c":{}}}`,
			[]string{"/properties/a/enum: other values than strings and numbers, left out", "/properties/b/enum: other values than strings and numbers, left out", "/properties/c/enum: malformed, left out"}},
		{"required for Gemini", FormatGemini, `{"type":"object","required":["a","b"],"properties":{"b":{}}}`, `{"type":"object","required":["b"],"properties":{"b":{}}}`, []string{`/required: "a" is not among the properties, left out`}},
		{"patterns that are lost", FormatGemini, `{"type":"object","patternProperties":{"^a":{}},"additionalProperties":false}`, `{"type":"object"}`,
			[]string{"/additionalProperties: left out with patternProperties", "/patternProperties: not taken, left out"}},
		{"a pattern that is lost", FormatOpenAIChat, `{"type":"object","properties":{},"patternProperties":{"^(?!b)":{},"^a":{}},"additionalProperties":{"type":"string"}}`, `{"type":"object","properties":{},"patternProperties":{"^a":{}}}`,
			[]string{"/additionalProperties: left out with patternProperties", "/patternProperties/^(?!b): a regular expression that looks ahead or behind, left out"}},
		{"patterns that are taken", FormatAnthropic, `{"type":"object","patternProperties":{"^(?!b)":{}},"additionalProperties":false}`, `{"type":"object","patternProperties":{"^(?!b)":{}},"additionalProperties":false}`, nil},
		{"alternatives that are closed", FormatAnthropic, `{"anyOf":[{"additionalProperties":false},{"additionalProperties":false,"patternProperties":{"^a":{}}}]}`, `{"type":"object","properties":{}}`,
			[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf/1/additionalProperties: left out", "/anyOf/1/patternProperties: left out"}},
		{"hidden characters in a place", FormatGemini, `{"type":"object","properties":{"a\u202e\n/~b":{"minContains":1}}}`, `{"type":"object","properties":{"a\u202e\n/~b":{}}}`, []string{"/properties/a ~1~0b/minContains: not taken, left out"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := exportTool(&schemaTool{"t", "", test.give}, test.format, false)
			require.NoError(t, err)
			require.NoError(t, checkExport(test.format, e.JSON), "%s", e.JSON)
			assert.Equal(t, test.want, string(exportedSchema(t, test.format, e.JSON)))
			slices.Sort(e.Losses)
			slices.Sort(test.losses)
			assert.Equal(t, test.losses, e.Losses)
		})
	}
}

// Of wrongly typed values, none reaches a provider, and each is told.
func TestExportMalformed(t *testing.T) {
	wrong := map[operand][]string{
		aSchema: {`1`, `"x"`, `null`}, aSchemaOrBool: {`1`, `[]`, `null`}, someSchemas: {`{}`, `[]`, `null`, `true`},
		namedSchemas: {`[]`, `true`}, aType: {`1`, `"any"`, `[]`, `["any"]`, `[1]`, `{}`}, aString: {`1`, `[]`, `null`}, aPattern: {`1`, `{}`},
		someStrings: {`true`, `"a"`, `[1]`, `{}`}, namedStrings: {`[]`, `{"a":1}`}, aNumber: {`"1"`, `true`, `null`}, aMultiple: {`0`, `-1`, `"1"`, `1e-999`},
		aCount: {`-1`, `1.5`, `"1"`, `true`}, aBool: {`0`, `"true"`}, someValues: {`{}`, `1`}, alternatives: {`[]`, `{}`, `"a"`}, outdated: {`1`},
	}
	for keyword, form := range keywords {
		for _, value := range wrong[form] {
			if keyword == "items" && value[0] == '[' || strings.HasPrefix(keyword, "exclusive") && value == "true" {
				continue
			}
			schema := fmt.Sprintf(`{"type":"object","properties":{"p":{%q:%s}}}`, keyword, value)
			for _, f := range formats[1:] {
				e, err := exportTool(&schemaTool{"t", "", schema}, f, false)
				require.NoError(t, err)
				require.NoError(t, checkExport(f, e.JSON), "%s", e.JSON)
				assert.Contains(t, string(e.JSON), `"p":{}`, "%s %s", f, schema)
				switch {
				case f != FormatGemini:
					assert.Len(t, e.Losses, 1, "%s %s", f, schema)
				case keyword != "$defs" && keyword != "definitions": // it has references replaced
					assert.NotEmpty(t, e.Losses, "%s %s", f, schema)
				}
			}
		}
		if form != anything {
			assert.NotEmpty(t, wrong[form], keyword)
		}
	}
}

func TestExportMCP(t *testing.T) {
	for _, test := range []struct{ give, want string }{
		{` { "name" : "a", "inputSchema" : {"x": 1.0 } , "_meta":{"name":"n"} }`, `{"name":"mcp_s__a","inputSchema":{"x":1.0},"_meta":{"name":"n"}}`},
		{`{"inputSchema":{},"n\u0061me":"a","name":"b"}`, `{"inputSchema":{},"n\u0061me":"mcp_s__b","name":"mcp_s__b"}`},
		{`{"Name":"a"}`, `{"name":"mcp_s__a","Name":"a","inputSchema":{"type":"object"}}`},
		{`{"name":"a","inputSchema":null,"description":"<&>\u2028"}`, `{"name":"mcp_s__a","inputSchema":{"type":"object"},"description":"<&>\u2028"}`},
	} {
		tool := bridgeTool(t, test.give)
		e, err := exportTool(tool, FormatMCP, false)
		require.NoError(t, err)
		assert.Equal(t, test.want, string(e.JSON))
		assert.Nil(t, e.Losses)
		clear(e.JSON) // it is the caller's
		assert.Equal(t, test.give, string(tool.Raw()))
	}
	e, err := exportTool(&schemaTool{"any name", "<D>", `{ "a": 1 }`}, FormatMCP, false)
	require.NoError(t, err)
	assert.Equal(t, `{"name":"any name","description":"<D>","inputSchema":{"a":1}}`, string(e.JSON))
}

func TestExportDeferred(t *testing.T) {
	tool := &schemaTool{"t", "D", `{"type":"object"}`}
	for f, want := range map[Format]string{
		FormatAnthropic:       `{"name":"t","description":"D","input_schema":{"type":"object"},"defer_loading":true}`,
		FormatOpenAIResponses: `{"type":"function","name":"t","description":"D","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`,
		FormatMCP:             "", FormatOpenAIChat: "", FormatGemini: "",
	} {
		e, err := exportTool(tool, f, true)
		assert.Equal(t, want, string(e.JSON))
		if want == "" {
			assert.EqualError(t, err, "mcphybrid: the format "+string(f)+" can't defer tools")
		}
	}
}

func TestExportErrors(t *testing.T) {
	for _, test := range []struct {
		tool   schemaTool
		format Format
		want   string
	}{
		{schemaTool{"t", "", `{}`}, "yaml", `mcphybrid: there is no format "yaml"`},
		{schemaTool{"t", "", ``}, FormatMCP, `mcphybrid: tool "t": the input schema is not a JSON object`},
		{schemaTool{"t", "", `{`}, FormatGemini, `mcphybrid: tool "t": the input schema is not a JSON object`},
		{schemaTool{"t", "", `[]`}, FormatAnthropic, `mcphybrid: tool "t": the input schema is not a JSON object`},
		{schemaTool{"a b", "", `{}`}, FormatOpenAIChat, `mcphybrid: tool "a b" has a name that openai-chat does not take`},
		{schemaTool{strings.Repeat("x", 65), "", `{}`}, FormatAnthropic, `mcphybrid: tool "` + strings.Repeat("x", 63) + `…" has a name that anthropic does not take`},
		{schemaTool{"1st", "", `{}`}, FormatGemini, `mcphybrid: tool "1st" has a name that gemini does not take`},
		{schemaTool{"-", "", `{}`}, FormatGemini, `mcphybrid: tool "-" has a name that gemini does not take`},
	} {
		e, err := exportTool(&test.tool, test.format, false)
		assert.EqualError(t, err, test.want)
		assert.Empty(t, e)
	}
	_, err := exportTool(&schemaTool{"1st", "", `{}`}, FormatOpenAIChat, false)
	assert.NoError(t, err)
}

func TestExportListNote(t *testing.T) {
	assert.Empty(t, exportListNote(FormatOpenAIChat, 128))
	assert.Equal(t, "openai-chat takes at most 128 tools, this list has 129", exportListNote(FormatOpenAIChat, 129))
	assert.Equal(t, "gemini takes at most 512 tools, this list has 513", exportListNote(FormatGemini, 513))
	assert.Equal(t, "anthropic takes at most 10000 tools, this list has 10001", exportListNote(FormatAnthropic, 10_001))
	assert.Empty(t, exportListNote(FormatMCP, 1<<20))
	assert.Empty(t, exportListNote(FormatOpenAIResponses, 1<<20))
}

func TestToolReferences(t *testing.T) {
	assert.Empty(t, ToolReferences(nil))
	assert.Equal(t, []json.RawMessage{
		json.RawMessage(`{"type":"tool_reference","tool_name":"b"}`), json.RawMessage(`{"type":"tool_reference","tool_name":"a\"<"}`),
	}, ToolReferences([]string{"b", `a"<`}))
}

// What real servers send is taken by each provider, and by most of them as it
// is.
func TestExportCatalogs(t *testing.T) {
	tools, losses := 0, make(map[Format]int)
	for _, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			tool := bridgeTool(t, string(raw))
			tools++
			for _, f := range formats {
				e, err := exportTool(tool, f, false)
				require.NoError(t, err)
				assert.NoError(t, checkExport(f, e.JSON), "%s %s", f, e.JSON)
				losses[f] += len(e.Losses)
				if f == FormatMCP {
					want := bytes.Replace(text.Compact(raw), text.Quote(tool.OriginalName()), text.Quote(tool.Name()), 1)
					assert.JSONEq(t, string(want), string(e.JSON))
				}
			}
		}
	}
	t.Logf("%d tools, losses %v", tools, losses)
	assert.Greater(t, tools, 400)
	assert.Equal(t, 0, losses[FormatMCP])
	assert.Equal(t, 0, losses[FormatOpenAIChat])
	assert.Equal(t, 0, losses[FormatAnthropic])
	assert.Less(t, losses[FormatGemini], tools/10)
}

// What is nested too deep is cut, in whatever it is nested.
func TestExportNesting(t *testing.T) {
	for _, open := range []string{`{"items":`, `{"additionalProperties":`, `{"anyOf":[`, `{"properties":{"a":`, `{"not":`} {
		end := strings.NewReplacer(`{`, `}`, `[`, `]`).Replace(strings.Join(regexp.MustCompile(`[\[{]`).FindAllString(open, -1), ""))
		end = string([]byte(end)[len(end)-1:]) + end[:len(end)-1]
		nest := func(n int) string {
			return `{"type":"object","properties":{"p":` + strings.Repeat(open, n) + `{"title":"T"}` + strings.Repeat(end, n) + `}}`
		}
		for n, want := range map[int]int{schema.MaxNesting - 2: 0, schema.MaxNesting - 1: 1, 4000: 1} {
			e, err := exportTool(&schemaTool{"t", "", nest(n)}, FormatAnthropic, false)
			require.NoError(t, err)
			require.Len(t, e.Losses, want, "%s %d", open, n)
			if want > 0 {
				assert.Regexp(t, "^/.*: nested too deep, left out$", e.Losses[0])
			}
		}
	}
}

// hostileSchemas are as large as a definition may be and made to take long.
func hostileSchemas() map[string]string {
	const size = DefaultMaxDefinition - 100
	fill := func(open, part, end string) string {
		n := (size - len(open) - len(end)) / len(part)
		return open + strings.Repeat(part, n-1) + strings.TrimSuffix(part, ",") + end
	}
	number := func(open, part, end string) string {
		b := strings.Builder{}
		for i := 0; b.Len() < size-len(open)-len(end)-len(part)-20; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(part, "%", fmt.Sprint(i)))
		}
		return open + b.String() + end
	}
	double := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 60 {
		double += fmt.Sprintf(`"a%d":{"properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}}},`, i, i+1, i+1, i+1)
	}
	double += `"a60":{"type":"string"}}}`
	return map[string]string{
		"deep":             strings.Repeat(`{"properties":{"a":`, 4900) + `{}` + strings.Repeat(`}}`, 4900),
		"deep allOf":       strings.Repeat(`{"allOf":[`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"deep anyOf":       strings.Repeat(`{"anyOf":[{},`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"deep default":     `{"default":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`,
		"doubling":         double,
		"many parts":       number(`{"allOf":[`, `{"properties":{"a%":{}}}`, `]}`),
		"same property":    number(`{"allOf":[`, `{"properties":{"a":{"maxLength":%}}}`, `]}`),
		"many choices":     number(`{"anyOf":[`, `{"properties":{"a":{"maxLength":%}},"required":["r%"]}`, `]}`),
		"many keywords":    number(`{"allOf":[{`, `"k%":%`, `}]}`),
		"the same name":    fill(`{"properties":{`, `"a":{},`, `}}`),
		"many references":  number(`{"properties":{`, `"p%":{"$ref":"#/properties/p%"}`, `}}`),
		"large reference":  fill(`{"properties":{"b":{"default":"`, `xxxxxxxxxx`, `"},"c":{"allOf":[`+strings.Repeat(`{"$ref":"#/properties/b"},`, 2000)+`{}]}}}`),
		"recursive":        fill(`{"properties":{"b":{"$ref":"#/properties/c"},"c":{"$ref":"#/properties/b","allOf":[`, `{"$ref":"#/properties/b"},`, `]}}}`),
		"references to #":  fill(`{"allOf":[`, `{"$ref":"#"},`, `]}`),
		"a long name":      number(`{"properties":{"`+strings.Repeat("n", 100_000)+`":{"properties":{`, `"p%":{"dependencies":1}`, `}}}}`),
		"a long reference": fill(`{"properties":{"a":{"$ref":"#`, `/properties`, `"}}}`),
		"a long pattern":   fill(`{"properties":{"a":{"pattern":"`, `(?:\\(`, `"}}}`),
	}
}

func TestExportHostile(t *testing.T) {
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(schema)))
			require.LessOrEqual(t, len(schema), DefaultMaxDefinition)
			for _, f := range []Format{FormatOpenAIChat, FormatAnthropic, FormatGemini} {
				start := time.Now()
				e, err := exportTool(&schemaTool{"t", "", schema}, f, false)
				require.NoError(t, err)
				assert.Less(t, time.Since(start), 10*time.Second, f) // 0.2 s without the race detector
				require.NoError(t, checkExport(f, e.JSON))
				checkSize(t, schema, e)
			}
		})
	}
}

func checkSize(t *testing.T, schema string, e ExportedTool) {
	t.Helper()
	assert.LessOrEqual(t, len(e.JSON), 8*(len(schema)+maxReplaced)+1000)
	assert.LessOrEqual(t, len(e.Losses), maxLosses+1)
	for _, loss := range e.Losses {
		assert.LessOrEqual(t, len(loss), 1000)
		assert.NotContains(t, loss, "\n")
	}
}

// Whatever the schema is, each provider is given one that it takes.
func FuzzExport(f *testing.F) {
	for _, raw := range trickyDefinitions {
		var d struct{ InputSchema json.RawMessage }
		require.NoError(f, json.Unmarshal([]byte(raw), &d))
		f.Add("t", "D", string(d.InputSchema))
	}
	f.Add("1st", "\xff\u2028", `{"properties":{"\ud800":{"$ref":"#/properties/\ufffd"}},"x":"`+"\xff"+`"}`)
	f.Add("", "", `{"$ref":"#/allOf/0","allOf":[{"properties":{"a":{"$ref":"#/allOf/0"}}}]}`)
	f.Fuzz(func(t *testing.T, name, description, schema string) {
		checkExports(t, &schemaTool{name, description, schema})
	})
}

// Like FuzzExport, of schemas made of keywords, so that more of them say
// something.
func TestExportRandom(t *testing.T) {
	names := slices.Sorted(maps.Keys(keywords))
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		var schema, value func(depth int) string
		schema = func(depth int) string {
			if depth <= 0 {
				return "{}"
			}
			var members []string
			for range r.IntN(5) {
				name := pick(pick(names...), pick("type", "properties", "$ref", "anyOf", "oneOf", "allOf", "$defs", "required", "enum", "const", "additionalProperties"))
				v := value(depth)
				switch keywords[name] {
				case aSchema, aSchemaOrBool:
					v = pick(schema(depth-1), "false", v)
				case someSchemas:
					v = "[" + schema(depth-1) + "," + schema(depth-1) + "]"
				case namedSchemas:
					v = fmt.Sprintf(`{"a":%s,%q:%s}`, schema(depth-1), pick("b", "a", "$c", "(?=d)"), schema(depth-1))
				case aString:
					v = pick(`"#/$defs/a"`, `"#/$defs/b"`, `"#"`, `"#/properties/a"`, `"#/allOf/0"`, `"#/anyOf/1"`, `"x"`, v)
				case aType:
					v = pick(`"object"`, `"array"`, `["object","null"]`, `"string"`, v)
				case someStrings:
					v = pick(`["a"]`, `["a","$c","b"]`, v)
				}
				members = append(members, fmt.Sprintf("%q:%s", name, v))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		value = func(depth int) string {
			if depth <= 0 {
				return pick("1", "true", `"a"`, "null", "{}")
			}
			return pick("-1.50", "true", "false", `"(?!x)"`, "[]", `["a",1,null]`, "["+schema(depth-1)+"]", schema(depth-1))
		}
		checkExports(t, &schemaTool{"t", "D", schema(5)})
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
}

// checkExports checks each export of a tool: that the provider takes it, that
// it is the same again and not too large, and that a schema that was converted
// needs no more of it.
func checkExports(t *testing.T, tool *schemaTool) {
	t.Helper()
	for _, format := range formats {
		e, err := exportTool(tool, format, false)
		if err != nil {
			assert.Empty(t, e)
			continue
		}
		require.NoError(t, checkExport(format, e.JSON), "%s\n%s", tool.schema, e.JSON)
		again, err := exportTool(tool, format, false)
		require.NoError(t, err)
		require.Equal(t, e, again)
		if format == FormatMCP {
			continue
		}
		converted := exportedSchema(t, format, e.JSON)
		checkSize(t, tool.schema, ExportedTool{converted, e.Losses})
		again, err = exportTool(&schemaTool{tool.name, tool.description, string(converted)}, format, false)
		require.NoError(t, err)
		require.Equal(t, string(e.JSON), string(again.JSON), tool.schema)
		require.Empty(t, again.Losses, tool.schema)
	}
}

// exportedSchema returns the schema in an exported tool.
func exportedSchema(t testing.TB, f Format, exported json.RawMessage) json.RawMessage {
	var e struct {
		Function             struct{ Parameters json.RawMessage }
		Parameters           json.RawMessage
		InputSchema          json.RawMessage `json:"input_schema"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
	}
	require.NoError(t, json.Unmarshal(exported, &e))
	return map[Format]json.RawMessage{
		FormatOpenAIChat: e.Function.Parameters, FormatOpenAIResponses: e.Parameters, FormatAnthropic: e.InputSchema, FormatGemini: e.ParametersJSONSchema,
	}[f]
}

var shortName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// checkExport returns the first rule of the provider that an exported tool
// breaks.
func checkExport(f Format, exported json.RawMessage) error {
	var e map[string]any
	if err := json.Unmarshal(exported, &e); err != nil {
		return err
	}
	if c := text.Compact(exported); !bytes.Equal(c, exported) {
		return fmt.Errorf("not compact, or not UTF-8")
	}
	want := map[Format]struct{ members, schema, name string }{
		FormatOpenAIChat:      {"description name parameters", "parameters", `^[a-zA-Z0-9_-]{1,64}$`},
		FormatOpenAIResponses: {"description name parameters strict type", "parameters", `^[a-zA-Z0-9_-]{1,64}$`},
		FormatAnthropic:       {"description input_schema name", "input_schema", `^[a-zA-Z0-9_-]{1,128}$`},
		FormatGemini:          {"description name parametersJsonSchema", "parametersJsonSchema", `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`},
	}[f]
	if f == FormatMCP {
		_, ok := e["inputSchema"].(map[string]any)
		if _, named := e["name"].(string); !ok || !named {
			return fmt.Errorf("no name or no input schema")
		}
		return nil
	}
	if f == FormatOpenAIChat {
		if len(e) != 2 || e["type"] != "function" {
			return fmt.Errorf("not a function")
		}
		e, _ = e["function"].(map[string]any)
	}
	if f == FormatOpenAIResponses && (e["type"] != "function" || e["strict"] != false) {
		return fmt.Errorf("not a function that is not strict")
	}
	for name := range e {
		if !slices.Contains(strings.Fields(want.members), name) {
			return fmt.Errorf("a member %q", name)
		}
	}
	if name, _ := e["name"].(string); !regexp.MustCompile(want.name).MatchString(name) {
		return fmt.Errorf("the name %q", name)
	}
	if d, ok := e["description"]; ok && d == "" {
		return fmt.Errorf("an empty description")
	}
	schema, ok := e[want.schema].(map[string]any)
	if !ok || schema["type"] != "object" {
		return fmt.Errorf("the schema is not of type object")
	}
	no := []string{"anyOf", "oneOf", "allOf"}
	if f == FormatOpenAIChat || f == FormatOpenAIResponses {
		no = append(no, "enum", "const", "not")
		if schema["properties"] == nil {
			return fmt.Errorf("no properties")
		}
	}
	for _, keyword := range no {
		if schema[keyword] != nil {
			return fmt.Errorf("%s at the root", keyword)
		}
	}
	if properties, _ := schema["properties"].(map[string]any); f == FormatAnthropic {
		for name := range properties {
			if !shortName.MatchString(name) {
				return fmt.Errorf("the property %q", name)
			}
		}
	}
	return checkExportedSchema(f, schema, schema, "")
}

// checkExportedSchema returns the first rule that a schema breaks, or one
// within it.
func checkExportedSchema(f Format, root, schema map[string]any, at string) error {
	isGemini := f == FormatGemini
	for keyword, value := range schema {
		at := at + "/" + keyword
		bad := fmt.Errorf("%.300s: %.100v", at, value)
		var within []any
		ok := true
		switch keyword {
		case "items", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema":
			within = []any{value}
		case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
			if _, isBool := value.(bool); !isBool {
				within = []any{value}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			within, ok = value.([]any)
			ok = ok && len(within) > 0
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			var named map[string]any
			named, ok = value.(map[string]any)
			for name, s := range named {
				within = append(within, s)
				if keyword == "patternProperties" && f != FormatAnthropic && strings.Contains(name, "(?=") && !strings.Contains(name, `\`) {
					return bad
				}
			}
		case "type":
			list, isList := value.([]any)
			if !isList {
				list = []any{value}
			}
			ok = len(list) > 0
			for i, s := range list {
				name, _ := s.(string)
				ok = ok && slices.Contains(schemaTypes, name) && !slices.Contains(list[:i], s)
			}
		case "enum":
			list, isList := value.([]any)
			ok = isList && len(list) > 0
			for _, v := range list {
				_, isString := v.(string)
				_, isNumber := v.(float64)
				ok = ok && (!isGemini || isString || isNumber)
			}
		case "required":
			var list []any
			list, ok = value.([]any)
			properties, _ := schema["properties"].(map[string]any)
			for i, v := range list {
				name, isString := v.(string)
				ok = ok && isString && !slices.Contains(list[:i], v) && (!isGemini || properties[name] != nil)
			}
		case "pattern", "title", "description", "format", "$schema", "$comment", "$id":
			_, ok = value.(string)
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			_, ok = value.(float64)
		case "multipleOf":
			n, isNumber := value.(float64)
			ok = isNumber && n > 0
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
			n, isNumber := value.(float64)
			ok = isNumber && n >= 0
		case "$ref":
			var ref string
			ref, ok = value.(string)
			parts := strings.Split(ref, "/")
			ok = ok && !isGemini && (ref == "#" || len(parts) == 3 && root[parts[1]] != nil)
		}
		if !ok || isGemini && !gemini.onlyWith[keyword] {
			return bad
		}
		for _, s := range within {
			inner, ok := s.(map[string]any)
			if !ok {
				return bad
			}
			if err := checkExportedSchema(f, root, inner, at); err != nil {
				return err
			}
		}
	}
	isArray := schema["type"] == "array"
	if list, ok := schema["type"].([]any); ok {
		isArray = slices.Contains(list, any("array"))
	}
	if isArray && f != FormatAnthropic && schema["items"] == nil {
		return fmt.Errorf("%.300s: no items", at)
	}
	if pattern, _ := schema["pattern"].(string); (f == FormatOpenAIChat || f == FormatOpenAIResponses) && strings.HasPrefix(pattern, "^(?!") {
		return fmt.Errorf("%.300s: lookaround", at)
	}
	return nil
}
