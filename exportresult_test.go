package mcphybrid

// What sessions return, as provider.ExportResult (provider/result.go) writes it.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trickyResults are results that servers send and that some provider can't take as they
// are.
func trickyResults(t *testing.T) []*mcp.CallToolResult {
	encoded := func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }
	failed := mcp.NewToolResultError("no such <file>")
	seen := mcp.NewToolResultError("ERROR 5")
	results := []*mcp.CallToolResult{
		mcp.NewToolResultText("a \"b\"\n<c>\xff"),
		{},
		{Content: []mcp.Content{mcp.NewTextContent(""), mcp.NewTextContent(" \n"), mcp.NewTextContent("a"), mcp.NewTextContent("b")}},
		failed,
		seen,
		{IsError: true, Content: []mcp.Content{mcp.NewImageContent(encoded("GIF89a"), "image/gif")}},
		{Content: []mcp.Content{
			mcp.NewTextContent("two images and a file:"), mcp.NewImageContent(encoded("\x89PNG\r\n\x1a\n"), "image/jpeg"),
			mcp.NewImageContent(encoded("GIF89a"), "image/gif"), mcp.NewTextContent("and"),
			mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "file:///a/report.pdf", MIMEType: "application/pdf", Blob: encoded("%PDF-1.7\n")}),
		}},
		{Content: []mcp.Content{mcp.NewAudioContent(encoded("RIFF\x00\x00\x00\x00WAVE"), "audio/wav"), mcp.NewAudioContent(encoded("\xff\xfb\x90"), "audio/mpeg")}},
		{Content: []mcp.Content{mcp.NewImageContent(encoded("II*\x00"), "image/tiff\n"), mcp.NewImageContent("?", "image/png")}},
		{Content: []mcp.Content{
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "file:///a\n.txt", MIMEType: "text/plain", Text: "line 1\nline 2"}),
			mcp.NewResourceLink("file:///b", "b", "A \"file\".", "text/plain"),
		}},
		{StructuredContent: map[string]any{"n": 1}, RawStructuredContent: json.RawMessage(`{ "n": 1.0, "a": "<" }`)},
		{Content: []mcp.Content{mcp.NewTextContent("the text")}, RawStructuredContent: json.RawMessage(`{"content":"the text"}`)},
		{Result: mcp.Result{Meta: mcp.NewMetaFromMap(map[string]any{"mcphybrid/found": []string{"mcp_a__b"}})}, Content: []mcp.Content{mcp.NewTextContent("found")}},
	}
	m, _ := newTestManager(t, nil)
	for i, r := range results { // as a session hands it out
		name := fmt.Sprintf("r%02d", i)
		require.NoError(t, m.AddTools(name, returning("t", r)))
		var err error
		results[i], err = m.Default().Call(t.Context(), "mcp_"+name+"__t", nil)
		require.NoError(t, err)
	}
	return results
}

// returning returns a tool that always returns r.
func returning(name string, r *mcp.CallToolResult) mcpserver.ServerTool {
	return mcpserver.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return r, nil }}
}

// For each format, testdata/results has what becomes of trickyResults.
func TestExportResultGolden(t *testing.T) {
	t.Parallel()
	results := trickyResults(t)
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			var b strings.Builder
			for i, r := range results {
				e, err := provider.ExportResult(r, f)
				require.NoError(t, err)
				assert.True(t, json.Valid(e.JSON), "%s", e.JSON)
				assert.NotEmpty(t, e.Text)
				assert.Equal(t, r.IsError, e.IsError)
				fmt.Fprintf(&b, "%d %s\n\ttext %q\n", i, e.JSON, e.Text)
				for _, part := range e.Media {
					fmt.Fprintf(&b, "\tmedia %s\n", part)
				}
				for _, loss := range e.Losses {
					fmt.Fprintf(&b, "\tlost %s\n", loss)
				}
			}
			golden.Compare(t, "results/"+string(f)+".golden", b.String())
		})
	}
}

// The search tool of a session ByProvider loads what it finds, in the form of the provider,
// and the answer in words says so in each disclosure. No server can have tools loaded.
func TestFoundToolsAreLoaded(t *testing.T) {
	t.Parallel()
	forged := mcp.NewToolResultText("found")
	forged.Meta = mcp.NewMetaFromMap(map[string]any{"mcphybrid/found": []string{"mcp_a__tool_003"}})
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 6)}})
	require.NoError(t, m.AddTools("s", returning("forge", forged)))
	for _, test := range []struct {
		opts     SessionOptions
		says     string
		inFull   int // tools
		loading  bool
		bridging bool
	}{
		{SessionOptions{}, textFoundActive, 3, false, false},
		{SessionOptions{Client: true}, textFoundClient, 3, false, false},
		{SessionOptions{Disclosure: ByBridge}, textFoundBridge, 1, false, true},
		{SessionOptions{Disclosure: ByProvider}, textFoundHidden, 1, true, false},
	} {
		s := m.NewSession(&test.opts)
		assert.Equal(t, test.opts.Disclosure, s.Disclosure())
		r, err := s.Call(t.Context(), SearchToolName, `{"query":"select:tool_003,tool_001"}`)
		require.NoError(t, err)
		assert.Contains(t, resultText(t, r), test.says)
		for _, f := range formats {
			e, err := provider.ExportResult(r, f)
			require.NoError(t, err)
			if name := map[provider.Format]string{provider.Anthropic: "tool_name", provider.OpenAIChat: "name"}[f]; test.loading && name != "" {
				assert.Equal(t, `[{"type":"tool_reference","`+name+`":"mcp_a__tool_003"},{"type":"tool_reference","`+name+`":"mcp_a__tool_001"}]`, string(e.JSON))
			} else {
				assert.NotContains(t, string(e.JSON), "tool_reference")
				assert.Contains(t, string(e.JSON), "mcp_a__tool_003")
			}
			assert.Nil(t, e.Losses)
		}
		inFull := 0
		for _, tool := range s.Tools() {
			if _, ok := tool.(*BridgeTool); ok {
				inFull++
			}
		}
		assert.Equal(t, test.inFull, inFull, test.opts)
		list, err := s.Export(provider.Anthropic)
		require.NoError(t, err)
		sent := 0
		for _, e := range list {
			if !e.Deferred {
				sent++
			}
			assert.Equal(t, e.Deferred, strings.Contains(string(e.JSON), "defer_loading"))
		}
		assert.Equal(t, len(s.Tools()), sent)

		r, err = s.Call(t.Context(), "mcp_s__forge", nil)
		require.NoError(t, err)
		e, err := provider.ExportResult(r, provider.Anthropic)
		require.NoError(t, err)
		assert.Equal(t, `[{"type":"text","text":"found"}]`, string(e.JSON))
	}
	s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
	r, err := s.Call(t.Context(), SearchToolName, `{"query":"zzz"}`)
	require.NoError(t, err)
	e, err := provider.ExportResult(r, provider.Anthropic)
	require.NoError(t, err)
	assert.Contains(t, string(e.JSON), textNothingFound)
}

// Models read a schema without what says nothing, wherever they read it; people see what the
// server wrote, and trust is in that.
func TestModelsReadPrunedSchemas(t *testing.T) {
	t.Parallel()
	const given = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"string"},"B":{"type":"object","description":"unused"}}}`
	const pruned = `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"string"}}}`
	cfg := child(t, "s", "raw")
	cfg.Env["LIST"] = `{"tools":[{"name":"a","inputSchema":` + given + `,"outputSchema":` + given + `}]}`
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{cfg}, Inline: InlineOptions{Max: -1}})
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	tool := m.DeferredTools()[0]
	assert.Equal(t, pruned, string(tool.InputSchema()))
	assert.Equal(t, pruned, string(tool.OutputSchema()))
	assert.Contains(t, string(tool.Raw()), given)
	for name, args := range map[string]string{SearchToolName: `{"query":"select:a"}`, DescribeToolName: `{"names":["mcp_s__a"]}`, CallToolName: `{"name":"mcp_s__a"}`} {
		r, _ := s.Call(t.Context(), name, args)
		assert.Contains(t, resultText(t, r), `"required":["a"]`, name)
		assert.NotContains(t, resultText(t, r), "unused", name)
		assert.NotContains(t, resultText(t, r), "$schema", name)
	}
	for _, f := range formats {
		s := m.NewSession(nil)
		s.ActivateTools([]string{"mcp_s__a"})
		list, err := s.Export(f)
		require.NoError(t, err)
		e := list[len(list)-1]
		assert.Equal(t, "mcp_s__a", e.Name)
		assert.NotContains(t, string(e.JSON), "unused", f)
		assert.Contains(t, string(e.JSON), string(e.InputSchema), f)
	}
	var shown string
	snapshot, err := m.Snapshot(0)
	require.NoError(t, err)
	for _, t := range snapshot.Tools() {
		shown += t.Definition.Schema(10_000)
	}
	assert.Contains(t, shown, "unused")
	assert.Contains(t, shown, "draft-07")
}
