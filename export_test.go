package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var formats = []provider.Format{provider.MCP, provider.OpenAIChat, provider.OpenAIResponses, provider.Anthropic, provider.Gemini, provider.Bedrock}

// trickyDefinitions are definitions that servers send and that some provider
// refuses.
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
	`{"name":"strict","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"place":{"type":"object","properties":{"city":{"type":"string","description":"A city."}},"required":["city"],"additionalProperties":false},"unit":{"type":["string","null"],"enum":["C","F"]},"near":{"type":"array","items":{"$ref":"#/definitions/Spot"}}},"required":["near","place","unit"],"additionalProperties":false,"definitions":{"Spot":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/definitions/Spot"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}}},"outputSchema":{"type":"object","properties":{"degrees":{"type":"number"}},"required":["degrees"],"$schema":"http://json-schema.org/draft-07/schema#"}}`,
	`{"name":"examples","inputSchema":{"type":"object","properties":{"day":{"type":"string","format":"date"},"n":{"type":"integer","examples":[7]}},"required":["day"],"examples":[{"day":"2026-02-30"},{"day":"2026-11-23","n":1.0},{"n":2},"2026-11-23",{"day":"2026-11-24"},{"day":"2026-11-25","n":9007199254740993},{"day":"2026-11-26"}]},"outputSchema":{"type":"array"}}`,
	`{"name":"no_example_is_valid","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"examples":[{"n":"1"},3]},"outputSchema":{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}}`,
	`{"name":"twice","inputSchema":{"type":"object","type":"object","properties":{"a":{"type":"string"},"a":{"type":"number"}}}}`,
}

// exportTool returns t in a format.
func exportTool(t Tool, f provider.Format, deferLoading bool) (provider.Tool, error) {
	form, err := request.FormOf(f)
	if err != nil {
		return provider.Tool{}, err
	}
	if deferLoading {
		return exportOnce(t, form, request.Deferred)
	}
	return exportOnce(t, form, request.Listed)
}

func bridgeTool(t testing.TB, raw string) *BridgeTool {
	d, err := parseDefinition("s", json.RawMessage(raw), defaultMaxDefinition)
	require.NoError(t, err, raw)
	return &BridgeTool{name: names.Alone("s", "").Name(d.Own), def: d}
}

// A schemaTool is a Tool of a host with this input schema.
type schemaTool struct{ name, description, schema string }

func (t *schemaTool) Name() string                 { return t.name }
func (t *schemaTool) Description() string          { return t.description }
func (t *schemaTool) InputSchema() json.RawMessage { return json.RawMessage(t.schema) }
func (t *schemaTool) Call(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return nil, nil
}

// For each format, testdata/export has the export of trickyDefinitions and the
// losses.
func TestExportGolden(t *testing.T) {
	t.Parallel()
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
			golden.Compare(t, "export/"+string(f)+".golden", b.String())
		})
	}
}

func TestExportMCP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ give, want string }{
		{` { "name" : "a", "inputSchema" : {"x": 1.0 } , "_meta":{"name":"n"} }`, `{"name":"mcp_s__a","inputSchema":{"x":1.0}}`},
		{`{"inputSchema":{},"n\u0061me":"a"}`, `{"name":"mcp_s__a","inputSchema":{}}`},
		{`{"Name":"a"}`, `{"name":"mcp_s__a","inputSchema":{"type":"object"}}`},
		{`{"name":"a","inputSchema":null,"description":"<&>\u2028"}`, `{"name":"mcp_s__a","description":"<&>\u2028","inputSchema":{"type":"object"}}`},
	} {
		tool := bridgeTool(t, test.give)
		e, err := exportTool(tool, provider.MCP, false)
		require.NoError(t, err)
		assert.Equal(t, test.want, string(e.JSON))
		assert.Nil(t, e.Losses)
		assert.Equal(t, test.give, string(tool.Raw()))
	}
	e, err := exportTool(&schemaTool{"any name", "<D>", `{ "a": 1 }`}, provider.MCP, false)
	require.NoError(t, err)
	assert.Equal(t, `{"name":"any name","description":"<D>","inputSchema":{"a":1}}`, string(e.JSON))
}

func TestExportDeferred(t *testing.T) {
	t.Parallel()
	tool := &schemaTool{"t", "D", `{"type":"object"}`}
	for f, want := range map[provider.Format]string{
		provider.Anthropic:       `{"name":"t","description":"D","input_schema":{"type":"object"},"defer_loading":true}`,
		provider.OpenAIResponses: `{"type":"function","name":"t","description":"D","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`,
		provider.OpenAIChat:      `{"type":"function","function":{"name":"t","description":"D","parameters":{"type":"object","properties":{}}},"defer_loading":true}`,
		provider.MCP:             "", provider.Gemini: "", provider.Bedrock: "",
	} {
		e, err := exportTool(tool, f, true)
		assert.Equal(t, want, string(e.JSON))
		if want == "" {
			assert.EqualError(t, err, "the format "+string(f)+" can't defer tools")
		}
	}
}

func TestExportErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tool   schemaTool
		format provider.Format
		want   string
	}{
		{schemaTool{"t", "", `{}`}, "yaml", `there is no format "yaml"`},
		{schemaTool{"t", "", ``}, provider.MCP, `tool "t": the input schema is not a JSON object`},
		{schemaTool{"t", "", `{`}, provider.Gemini, `tool "t": the input schema is not a JSON object`},
		{schemaTool{"t", "", `[]`}, provider.Anthropic, `tool "t": the input schema is not a JSON object`},
		{schemaTool{"a b", "", `{}`}, provider.OpenAIChat, `tool "a b" has a name that openai-chat does not accept`},
		{schemaTool{strings.Repeat("x", 65), "", `{}`}, provider.Anthropic, `tool "` + strings.Repeat("x", 63) + `…" has a name that anthropic does not accept`},
		{schemaTool{"1st", "", `{}`}, provider.Gemini, `tool "1st" has a name that gemini does not accept`},
		{schemaTool{"-", "", `{}`}, provider.Gemini, `tool "-" has a name that gemini does not accept`},
	} {
		e, err := exportTool(&test.tool, test.format, false)
		assert.EqualError(t, err, test.want)
		assert.Empty(t, e)
	}
	_, err := exportTool(&schemaTool{"1st", "", `{}`}, provider.OpenAIChat, false)
	assert.NoError(t, err)
	m, _ := newTestManager(t, nil)
	_, err = m.Default().Export("yaml")
	assert.EqualError(t, err, `mcphybrid: there is no format "yaml"`)
}

// A list with deferred tools has no examples: Anthropic documents neither that tool search
// takes them nor that it does not.
func TestExportExamplesNotBesideDeferred(t *testing.T) {
	t.Parallel()
	tool := mcp.NewToolWithRawSchema("a", "", json.RawMessage(`{"type":"object","examples":[{}]}`))
	var tools []mcpserver.ServerTool
	for range 3 {
		tools = append(tools, mcpserver.ServerTool{Tool: tool})
		tool.Name += "a"
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m.AddTools("s", tools...))
	for disclosure, want := range map[Disclosure]int{ByActivation: 1, ByProvider: 0} {
		list, err := m.NewSession(&SessionOptions{Disclosure: disclosure}).Export(provider.Anthropic)
		require.NoError(t, err)
		given := 0
		for _, e := range list {
			given += strings.Count(string(e.JSON), `"input_examples":[{}]`)
			if disclosure == ByProvider && strings.HasPrefix(e.Name, "mcp_s") {
				assert.Contains(t, string(e.InputSchema), `"examples":[{}]`)
			}
		}
		assert.Equal(t, want, given)
	}
}

// Each provider accepts the exports of what real servers send, and most accept
// it unchanged.
func TestExportCatalogs(t *testing.T) {
	t.Parallel()
	tools, losses := 0, make(map[provider.Format]int)
	for _, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			tool := bridgeTool(t, string(raw))
			tools++
			for _, f := range formats {
				e, err := exportTool(tool, f, false)
				require.NoError(t, err)
				assert.NoError(t, checkExport(f, e.JSON), "%s %s", f, e.JSON)
				losses[f] += len(e.Losses)
				if f == provider.MCP {
					values, _ := text.Fields(tool.Raw(), "inputSchema")
					assert.Equal(t, string(schema.Named(tool.InputSchema(), values[0])), string(e.InputSchema))
				}
			}
		}
	}
	t.Logf("%d tools, losses %v", tools, losses)
	assert.Greater(t, tools, 400)
	assert.Equal(t, 0, losses[provider.MCP])
	assert.Equal(t, 0, losses[provider.OpenAIChat])
	assert.Equal(t, 0, losses[provider.Anthropic])
	assert.Less(t, losses[provider.Gemini], tools/10)
}

// Whatever the schema is, each provider gets one that it accepts.
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

// checkExports checks each export of a tool: the provider accepts it, it is not
// too large, a second export is the same, and a converted schema needs no
// further conversion.
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
		if format == provider.MCP {
			continue
		}
		converted := exportedSchema(t, format, e.JSON)
		again, err = exportTool(&schemaTool{tool.name, tool.description, string(converted)}, format, false)
		require.NoError(t, err)
		require.Equal(t, withoutExamples(e.JSON), withoutExamples(again.JSON), tool.schema)
		require.Empty(t, again.Losses, tool.schema)
	}
}

// withoutExamples returns an exported tool without the examples, which the schema does not
// have any more when it is exported again.
func withoutExamples(exported json.RawMessage) string {
	members, _ := text.Members(exported)
	return string(text.JoinMembers(slices.DeleteFunc(members, func(m text.Member) bool { return m.Name == "input_examples" })))
}

// exportedSchema returns the schema in an exported tool.
func exportedSchema(t testing.TB, f provider.Format, exported json.RawMessage) json.RawMessage {
	var e struct {
		Function             struct{ Parameters json.RawMessage }
		Parameters           json.RawMessage
		InputSchema          json.RawMessage `json:"input_schema"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		ToolSpec             struct {
			InputSchema struct{ JSON json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal(exported, &e))
	return map[provider.Format]json.RawMessage{
		provider.OpenAIChat: e.Function.Parameters, provider.OpenAIResponses: e.Parameters, provider.Anthropic: e.InputSchema, provider.Gemini: e.ParametersJSONSchema, provider.Bedrock: e.ToolSpec.InputSchema.JSON,
	}[f]
}

// checkExport returns the first rule of the provider that an exported tool
// breaks. It checks only the type of the schema.
func checkExport(f provider.Format, exported json.RawMessage) error {
	var e map[string]any
	if err := json.Unmarshal(exported, &e); err != nil {
		return err
	}
	if c := text.Compact(exported); !bytes.Equal(c, exported) {
		return fmt.Errorf("not compact, or not UTF-8")
	}
	want := map[provider.Format]struct{ members, schema, name string }{
		provider.OpenAIChat:      {"description name parameters strict", "parameters", `^[a-zA-Z0-9_-]{1,64}$`},
		provider.OpenAIResponses: {"description name output_schema parameters strict type", "parameters", `^[a-zA-Z0-9_-]{1,64}$`},
		provider.Anthropic:       {"description input_examples input_schema name", "input_schema", `^[a-zA-Z0-9_-]{1,128}$`},
		provider.Gemini:          {"description name parametersJsonSchema", "parametersJsonSchema", `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`},
		provider.Bedrock:         {"description inputSchema name", "json", `^[a-zA-Z0-9_-]{1,64}$`},
	}[f]
	if f == provider.MCP {
		_, ok := e["inputSchema"].(map[string]any)
		if _, named := e["name"].(string); !ok || !named {
			return fmt.Errorf("no name or no input schema")
		}
		return nil
	}
	if f == provider.OpenAIChat {
		if len(e) != 2 || e["type"] != "function" {
			return fmt.Errorf("not a function")
		}
		e, _ = e["function"].(map[string]any)
	}
	if f == provider.Bedrock {
		if len(e) != 1 {
			return fmt.Errorf("not only a toolSpec")
		}
		e, _ = e["toolSpec"].(map[string]any)
	}
	if f == provider.OpenAIResponses && (e["type"] != "function" || e["strict"] == nil) {
		return fmt.Errorf("not a function that is or is not strict")
	}
	if strict, ok := e["strict"]; ok && strict == true && !isStrict(e["parameters"]) {
		return fmt.Errorf("not a strict schema")
	} else if ok && f == provider.OpenAIChat && strict != true {
		return fmt.Errorf("chat completions are told what is the default")
	}
	if examples, ok := e["input_examples"].([]any); ok {
		schema, _ := e["input_schema"].(map[string]any)
		if len(examples) == 0 || len(examples) > 3 || schema["examples"] != nil {
			return fmt.Errorf("examples: %v", examples)
		}
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
	if f == provider.Bedrock {
		e, _ = e["inputSchema"].(map[string]any)
		if len(e) != 1 {
			return fmt.Errorf("not only json: %v", e)
		}
	}
	if schema, _ := e[want.schema].(map[string]any); schema["type"] != "object" {
		return fmt.Errorf("the schema is not of type object")
	}
	return nil
}

// isStrict reports whether a schema obeys what OpenAI says of each strict schema, not the
// figures.
func isStrict(v any) bool {
	schema, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for keyword, value := range schema {
		switch keyword {
		case "type", "description", "title", "enum", "const", "required", "$ref":
		case "additionalProperties":
			ok = ok && value == false
		case "items":
			ok = ok && isStrict(value)
		case "anyOf":
			for _, s := range value.([]any) {
				ok = ok && isStrict(s)
			}
		case "properties", "$defs", "definitions":
			for _, s := range value.(map[string]any) {
				ok = ok && isStrict(s)
			}
		default:
			ok = false
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		_, described := properties[name.(string)]
		ok = ok && described
	}
	if isObject := schema["type"] == "object" || properties != nil; isObject {
		ok = ok && schema["additionalProperties"] == false && len(required) == len(properties)
	}
	said := schema["type"] != nil || schema["$ref"] != nil || schema["anyOf"] != nil
	return ok && said && (schema["$ref"] == nil || len(schema) == 1)
}

// One tool is exported for a session that has activated it and for a session
// ByProvider.
func TestExportDefersBySession(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_001"})
	one, err := s.Export(provider.Anthropic)
	require.NoError(t, err)
	assert.NotContains(t, string(one[len(one)-1].JSON), "defer_loading")
	two, err := m.NewSession(&SessionOptions{Disclosure: ByProvider}).Export(provider.Anthropic)
	require.NoError(t, err)
	deferred := 0
	for _, e := range two {
		deferred += strings.Count(string(e.JSON), `"defer_loading":true`)
	}
	assert.Equal(t, 2, deferred)
}

// What MCP clients are handed says what the library judged: a definition that has a
// member twice says one thing to one reader and another to the next.
func TestExportSaysWhatWasJudged(t *testing.T) {
	t.Parallel()
	for _, element := range []string{
		`{"name":"a","name":"b"}`, `{"name":"a","description":"Reads","Description":"Deletes"}`,
		`{"name":"a","inputSchema":{"type":"object"},"InputSchema":{}}`, `{"name":"a","annotations":{"readOnlyHint":false,"READONLYHINT":true}}`,
	} {
		cfg := child(t, "s", "raw")
		cfg.Env["LIST"] = `{"tools":[` + element + `,{"name":"fine"}]}`
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{cfg}})
		list, err := m.Default().Export(provider.MCP)
		require.NoError(t, err)
		require.Len(t, list, 1, element)
		assert.Contains(t, string(list[0].JSON), `"mcp_s__fine"`)
		assert.Regexp(t, `mcphybrid: server "s": tool 0: "[ab]" has the member "\w+" more than once`, errors.Join(m.Problems()...))
	}
}

// OpenAI's chat completions take 128 tools. Endpoints that defer tools have another limit.
func TestExportDeferredChat(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 140)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
	turn, err := s.Turn(provider.OpenAIChat, "")
	require.NoError(t, err)
	deferred := 0
	for _, e := range turn.Tools {
		assert.Equal(t, e.Deferred, strings.HasSuffix(string(e.JSON), `},"defer_loading":true}`), string(e.JSON))
		if e.Deferred {
			deferred++
		}
	}
	assert.Equal(t, 138, deferred)
}

// A host may let code that the model writes call the tools of servers.
func TestSpecH2AllowedCallers(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 6)}})
	callers := []string{"direct", "programmatic"}
	const member = `,"allowed_callers":["direct","programmatic"]}`
	for _, f := range formats {
		s := m.NewSession(&SessionOptions{AllowedCallers: callers})
		plain, err := m.NewSession(nil).Export(f)
		require.NoError(t, err)
		list, err := s.Export(f)
		require.NoError(t, err)
		turn, err := s.Turn(f, "")
		require.NoError(t, err)
		require.Len(t, list, len(plain))
		for i, e := range list {
			want := string(plain[i].JSON)
			if _, ok := s.Tools()[i].(*BridgeTool); ok && (f == provider.Anthropic || f == provider.OpenAIResponses) {
				want = strings.TrimSuffix(want, "}") + member
			}
			assert.Equal(t, want, string(e.JSON))
		}
		assert.Equal(t, list[0], turn.Tools[0])
	}
	s := m.NewSession(&SessionOptions{AllowedCallers: callers, Disclosure: ByProvider})
	_, err := s.Turn(provider.OpenAIResponses, "gpt-5.4")
	require.NoError(t, err)
	found, err := s.AnswerToolSearch(t.Context(), json.RawMessage(`{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"query":"select:tool_005"}}`))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(found), member), string(found))

	assert.PanicsWithValue(t, `mcphybrid: SessionOptions.AllowedCallers has "a b", which is no name`, func() { m.NewSession(&SessionOptions{AllowedCallers: []string{"a b"}}) })
	assert.PanicsWithValue(t, "mcphybrid: SessionOptions.AllowedCallers has 9 names, at most 8 are possible", func() { m.NewSession(&SessionOptions{AllowedCallers: make([]string, 9)}) })
}

// What is kept of a meta tool is what it is in each session: by disclosure, of a user with
// another number of results, and of a client, whose search tool says what it finds.
func TestExportOfMetaTools(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("many", 60)}})
	u, err := m.NewUser("ann", &UserOptions{SystemResults: 2, UserResults: 1})
	require.NoError(t, err)
	for range 2 { // made, and kept
		for _, s := range []*Session{
			m.NewSession(nil), m.NewSession(&SessionOptions{Disclosure: ByBridge}), u.NewSession(nil),
			m.NewSession(&SessionOptions{Client: true}), m.NewSession(&SessionOptions{Client: true, Disclosure: ByBridge}),
		} {
			for _, format := range formats {
				form, err := request.FormOf(format)
				require.NoError(t, err)
				for kind := range metaKinds {
					tool := metaTool{s, kind}
					want, err := form.Tool(tool, request.Listed)
					require.NoError(t, err)
					got, err := exportOnce(tool, form, request.Listed)
					require.NoError(t, err)
					assert.Equal(t, want, got, "%s %s", format, kind.name())
				}
			}
		}
	}
	s := m.NewSession(nil)
	assert.Less(t, testing.AllocsPerRun(10, func() {
		_, err := exportOnce(metaTool{s, metaSearch}, request.Anthropic, request.Listed)
		require.NoError(t, err)
	}), 5.0, "it is not written again")
}
