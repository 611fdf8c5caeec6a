package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"
)

// exportCases are input schemas that some provider refuses, with arguments that
// they allow and that must stay allowed.
var exportCases = []struct{ schema, arguments string }{
	{`{}`, `{"a":1}`},
	{`{"type":"object","properties":{"z":{"type":"integer","default":1},"a":{"type":"number","multipleOf":0.01}},"required":["z"],"additionalProperties":false}`, `{"z":2,"a":0.05}`},
	{`{"oneOf":[{"type":"object","properties":{"kind":{"const":"id"},"id":{"type":"integer"}},"required":["kind","id"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"],"additionalProperties":false}]}`, `{"kind":"url","url":"x"}`},
	{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":"x"}`},
	{`{"$ref":"#/$defs/Args","$defs":{"Args":{"allOf":[{"$ref":"#/$defs/Base"},{"properties":{"n":{"minimum":2}},"required":["n"]}]},"Base":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `{"n":2}`},
	{`{"type":"object","properties":{"tree":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"value":{"type":["string","null"]},"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["value"]}}}`, `{"tree":{"value":null,"kids":[{"value":"x","kids":[{"value":"y"}]}]}}`},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"n":0.5}`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"pair":{"type":"array","items":[{"type":"string"},{"type":"number"}],"additionalItems":false}}}`, `{"pair":["a",1]}`},
	{`{"type":"object","properties":{"m":{"type":"object","patternProperties":{"^(?!x)":{"type":"integer"}},"additionalProperties":false}}}`, `{"m":{"a":1}}`},
	{`{"type":"object","properties":{"u":{"oneOf":[{"type":"string","pattern":"^a"},{"type":"object","properties":{"k":{"enum":["x",1,true]}},"required":["k"]},{"type":"array"}]}}}`, `{"u":{"k":1}}`},
	{`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"b":{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false,"$defs":{"B":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`, `{"a":"x","b":{"n":1}}`},
	{`{"type":"object","properties":{"n":{"type":"integer"}},"examples":[{"n":1},{},{"n":"1"}]}`, `{"n":2}`},
	{`{"type":"object","properties":{"if":{"type":"string"}},"if":{"required":["if"]},"then":{"properties":{"then":true}},"dependentRequired":{"if":["then"]}}`, `{"if":"x","then":1}`},
}

// exporting returns a Manager with the tools of addExportTools, all inline, and
// the arguments of exportCases by registered name.
func exporting(t *testing.T) (*mcphybrid.Manager, map[string]string) {
	m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: mcphybrid.NoLimit, MaxTokens: mcphybrid.NoLimit}})
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	addExportTools(t, m)
	arguments := make(map[string]string)
	for i, c := range exportCases {
		arguments[fmt.Sprintf("mcp_cases__case_%d", i)] = c.arguments
	}
	return m, arguments
}

// addExportTools adds a tool for each schema of exportCases, and those of the
// published servers' catalogs if there are any.
func addExportTools(t *testing.T, m *mcphybrid.Manager) {
	add := func(server string, tools []mcp.Tool) {
		var list []mcpserver.ServerTool
		for _, tool := range tools {
			list = append(list, mcpserver.ServerTool{Tool: tool, Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(""), nil
			}})
		}
		require.NoError(t, m.AddTools(server, list...))
	}
	var cases []mcp.Tool
	for i, c := range exportCases {
		tool := mcp.NewToolWithRawSchema(fmt.Sprintf("case_%d", i), "Says <\"a\">.", json.RawMessage(c.schema))
		tool.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{"x":{"type":["number","null"],"minimum":0.5}},"required":["x"]}`)
		cases = append(cases, tool)
	}
	add("cases", cases)
	var paths []string
	if dir := os.Getenv("CATALOGS"); dir != "" {
		paths, _ = filepath.Glob(dir + "/*.json")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var catalog struct {
			Tools []struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(data, &catalog))
		var tools []mcp.Tool
		for _, tool := range catalog.Tools {
			tools = append(tools, mcp.NewToolWithRawSchema(tool.Name, tool.Description, tool.InputSchema))
		}
		add(strings.TrimSuffix(filepath.Base(path), ".json"), tools)
	}
	t.Logf("%d schemas of ours, %d catalogs", len(exportCases), len(paths))
}

// sdks read an exported tool with the official SDKs.
var sdks = []struct {
	format provider.Format
	read   func(data []byte) (any, error)
}{
	{provider.OpenAIChat, reads[openai.ChatCompletionToolUnionParam]},
	{provider.OpenAIResponses, reads[responses.ToolUnionParam]},
	{provider.Anthropic, reads[anthropic.ToolUnionParam]},
	{provider.Gemini, reads[genai.FunctionDeclaration]},
}

func reads[T any](data []byte) (any, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// An SDK that keeps members that it does not know would write any tool back unchanged.
func TestSDKsKnowEachMember(t *testing.T) {
	for _, sdk := range sdks {
		for _, unknown := range []string{
			`{"type":"function","name":"a","description":"d","unknown":1,"parameters":{},"parametersJsonSchema":{},"input_schema":{"type":"object"},"strict":true,"function":{"name":"a","unknown":1,"parameters":{}}}`,
			`{"type":"custom","name":"a","unknown":1,"input_schema":{"type":"object"}}`,
		} {
			v, err := sdk.read([]byte(unknown))
			require.NoError(t, err)
			again, err := json.Marshal(v)
			require.NoError(t, err)
			assert.NotContains(t, string(again), "unknown", sdk.format)
		}
	}
}

// What providers reward is where their SDKs have it.
func TestExportFurtherSDKs(t *testing.T) {
	m, _ := exporting(t)
	callers := []string{"direct"}
	sess := m.NewSession(&mcphybrid.SessionOptions{AllowedCallers: callers})
	defer sess.Close()
	strict, described, examples := 0, 0, 0
	for _, sdk := range sdks {
		for _, tool := range export(t, sess, sdk.format) {
			v, err := sdk.read(tool.JSON)
			require.NoError(t, err)
			ours := strings.HasPrefix(tool.Name, "mcp_cases__")
			switch v := v.(type) {
			case openai.ChatCompletionToolUnionParam:
				f := v.OfFunction.Function
				assert.Equal(t, f.Strict.Valid(), f.Strict.Value, "%s", tool.JSON)
				if ours && f.Strict.Value {
					strict++
				}
			case responses.ToolUnionParam:
				assert.True(t, v.OfFunction.Strict.Valid(), "%s", tool.JSON)
				assert.Equal(t, !strings.HasPrefix(tool.Name, "mcp_tool_"), slices.Equal(callers, v.OfFunction.AllowedCallers), "%s", tool.JSON)
				if ours && v.OfFunction.Strict.Value {
					strict++
				}
				if ours && v.OfFunction.OutputSchema["type"] == "object" {
					described++
				}
			case anthropic.ToolUnionParam:
				assert.False(t, v.OfTool.Strict.Valid(), "%s", tool.JSON)
				assert.Equal(t, !strings.HasPrefix(tool.Name, "mcp_tool_"), slices.Equal(callers, v.OfTool.AllowedCallers), "%s", tool.JSON)
				assert.True(t, v.OfTool.InputExamples == nil || v.OfTool.InputSchema.ExtraFields["examples"] == nil, "%s", tool.JSON)
				if ours {
					examples += len(v.OfTool.InputExamples)
				}
			}
		}
	}
	assert.Equal(t, 1, strict, "one tool, in responses")
	assert.Equal(t, len(exportCases), described)
	assert.Equal(t, 2, examples)
}

// export returns the session's tools. There may be too many for the format.
func export(t *testing.T, s *mcphybrid.Session, f provider.Format) []provider.Tool {
	t.Helper()
	tools, err := s.Export(f)
	if err != nil {
		require.ErrorContains(t, err, "openai-chat accepts at most 128 tools")
	}
	require.Len(t, tools, len(s.Tools()))
	return tools
}

// The official SDKs read each exported tool and write it back unchanged.
func TestExportSDKs(t *testing.T) {
	m, _ := exporting(t)
	sess := m.NewSession(nil)
	for _, sdk := range sdks {
		t.Run(string(sdk.format), func(t *testing.T) {
			tools := export(t, sess, sdk.format)
			for _, tool := range tools {
				requireRoundTrip(t, sdk.read, tool.JSON)
			}
		})
	}
}

// The SDKs that can defer tools accept the mark.
func TestExportDeferredSDKs(t *testing.T) {
	m, _ := exporting(t)
	all := len(m.InlineTools())
	m.Close()
	for _, sdk := range sdks[1:3] {
		t.Run(string(sdk.format), func(t *testing.T) {
			m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 5}})
			defer m.Close()
			addExportTools(t, m)
			sess := m.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider})
			defer sess.Close()
			tools, err := sess.Export(sdk.format)
			require.NoError(t, err)
			deferred := 0
			for _, tool := range tools {
				v := requireRoundTrip(t, sdk.read, tool.JSON)
				if deferLoading(v) {
					deferred++
				}
				assert.Equal(t, deferLoading(v), strings.Contains(string(tool.JSON), `"defer_loading":true`))
			}
			assert.Equal(t, all-5, deferred)
		})
	}
}

// deferLoading reports whether the mark is where the SDK has it.
func deferLoading(v any) bool {
	switch tool := v.(type) {
	case responses.ToolUnionParam:
		return tool.OfFunction.DeferLoading.Value
	case anthropic.ToolUnionParam:
		return tool.OfTool.DeferLoading.Value
	}
	return false
}

func TestToolReferencesSDK(t *testing.T) {
	for _, block := range provider.ToolReferences(provider.Anthropic, []string{"mcp_a__b", "<c>"}) {
		v := requireRoundTrip(t, reads[anthropic.ToolResultBlockParamContentUnion], block).(anthropic.ToolResultBlockParamContentUnion)
		require.NotNil(t, v.OfToolReference)
		assert.Contains(t, []string{"mcp_a__b", "<c>"}, v.OfToolReference.ToolName)
	}
}

// The official SDKs read each exported result and write it back unchanged, in the place
// that they have for it.
func TestExportResultSDKs(t *testing.T) {
	image := func(data, mime string) mcp.Content {
		return mcp.NewImageContent(base64.StdEncoding.EncodeToString([]byte(data)), mime)
	}
	results := []*mcp.CallToolResult{
		mcp.NewToolResultText("Says <\"a\">."),
		mcp.NewToolResultError("no"),
		{Content: []mcp.Content{
			mcp.NewTextContent("a"), image("\x89PNG\r\n\x1a\n", "image/png"), image("GIF89a", "image/gif"), image("II*\x00", "image/tiff"),
			mcp.NewAudioContent(base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WAVE")), "audio/wav"),
			mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "file:///a.pdf", MIMEType: "application/pdf", Blob: "JVBERi0xLjcK"}),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "file:///a", Text: "a"}), mcp.NewResourceLink("file:///b", "b", "", ""),
		}},
		{StructuredContent: map[string]any{"n": 1}},
	}
	contents := []struct {
		format provider.Format
		read   func(data []byte) (any, error)
		media  int // of the third result, which the SDK has as such
		count  func(v any) int
	}{
		{provider.OpenAIChat, reads[openai.ChatCompletionToolMessageParamContentUnion], 0, func(any) int { return 0 }},
		{provider.OpenAIResponses, reads[responses.ResponseFunctionCallOutputItemListParam], 3, func(v any) (n int) {
			for _, item := range v.(responses.ResponseFunctionCallOutputItemListParam) {
				if item.OfInputImage != nil || item.OfInputFile != nil {
					n++
				}
			}
			return n
		}},
		{provider.Anthropic, reads[[]anthropic.ToolResultBlockParamContentUnion], 3, func(v any) (n int) {
			for _, block := range v.([]anthropic.ToolResultBlockParamContentUnion) {
				if block.OfImage != nil || block.OfDocument != nil {
					n++
				}
			}
			return n
		}},
		{provider.Gemini, reads[genai.FunctionResponse], 2, func(v any) int { return len(v.(genai.FunctionResponse).Parts) }},
	}
	for _, sdk := range contents {
		t.Run(string(sdk.format), func(t *testing.T) {
			for i, r := range results {
				e, err := provider.ExportResult(r, sdk.format)
				require.NoError(t, err)
				v := requireRoundTrip(t, sdk.read, e.JSON)
				if i == 2 {
					assert.Equal(t, sdk.media, sdk.count(v))
				}
				for _, part := range e.Media {
					requireRoundTrip(t, reads[openai.ChatCompletionContentPartUnionParam], part)
				}
				assert.Equal(t, i == 2 && sdk.format == provider.OpenAIChat, len(e.Media) == 2*4)
			}
		})
	}
}

func requireRoundTrip(t *testing.T, read func([]byte) (any, error), data json.RawMessage) any {
	t.Helper()
	v, err := read(data)
	require.NoError(t, err, "%s", data)
	again, err := json.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(again))
	return v
}

// Every exported schema is valid by draft 2020-12. Arguments that the original
// allows stay allowed.
func TestExportSchemas(t *testing.T) {
	m, arguments := exporting(t)
	sess := m.NewSession(nil)
	for _, format := range []provider.Format{provider.MCP, provider.OpenAIChat, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		t.Run(string(format), func(t *testing.T) {
			tools := export(t, sess, format)
			checked := 0
			for _, tool := range tools {
				var e exported
				require.NoError(t, json.Unmarshal(tool.JSON, &e))
				e = e.flat()
				schema, err := compile(e.schema())
				require.NoError(t, err, "%s", tool.JSON)
				for _, example := range e.InputExamples {
					assert.NoError(t, schema.Validate(parse(t, string(example))), "%s", tool.JSON)
				}
				if e.OutputSchema != nil {
					_, err := compile(e.OutputSchema)
					require.NoError(t, err, "%s", tool.JSON)
				}
				if args, ok := arguments[e.Name]; ok {
					assert.NoError(t, schema.Validate(parse(t, args)), "%s", tool.JSON)
					checked++
				}
			}
			assert.Equal(t, len(exportCases), checked)
		})
	}
}

// exported has the members of all formats.
type exported struct {
	Name                 string
	Function             *exported
	InputSchema          json.RawMessage `json:"inputSchema"`
	Parameters           json.RawMessage
	AnthropicSchema      json.RawMessage `json:"input_schema"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`

	InputExamples []json.RawMessage `json:"input_examples"`
	OutputSchema  json.RawMessage   `json:"output_schema"`
}

func (e exported) flat() exported {
	if e.Function != nil {
		return *e.Function
	}
	return e
}

func (e exported) schema() json.RawMessage {
	return slices.Concat(e.InputSchema, e.Parameters, e.AnthropicSchema, e.ParametersJSONSchema)
}

// compile reads a schema, by draft 2020-12 unless it names another. Its regular
// expressions may be those of JavaScript.
func compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// anyPattern matches everything, because Go lacks the regular expressions of
// JavaScript.
type anyPattern string

func (p anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string          { return string(p) }

func parse(t *testing.T, data string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
	require.NoError(t, err)
	return v
}
