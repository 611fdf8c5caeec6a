package gateway

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client's model finds a server's skill, loads it with its tools and reads its files. So
// does the client itself.
func TestSkillsPassThrough(t *testing.T) {
	docs := mcptest.NewSkilled("docs", mcptest.Echo("merge", "Merges pages"))
	docs.Has("merge-pages", "Merge with care.", `,"tools":["merge"]`, "a.md", "Alpha")
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "docs", InProcess: docs}}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "a client")
	ask := func(tool string, args map[string]any) string {
		t.Helper()
		var r mcp.CallToolRequest
		r.Params.Name, r.Params.Arguments = tool, args
		got, err := c.CallTool(t.Context(), r)
		require.NoError(t, err)
		return mcptest.Text(t, got)
	}
	tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.Subset(t, names, []string{mcphybrid.SkillSearchToolName, mcphybrid.SkillLoadToolName, mcphybrid.ResourceReadToolName})
	assert.Contains(t, ask(mcphybrid.SkillSearchToolName, map[string]any{"query": "merge pages"}), `"name":"mcp_docs__merge-pages","server":"docs"`)
	text := ask(mcphybrid.SkillLoadToolName, map[string]any{"name": "mcp_docs__merge-pages"})
	assert.Contains(t, text, "Merge with care.")
	assert.Contains(t, text, "mcp_docs__merge.")
	assert.Equal(t, "Alpha", ask(mcphybrid.ResourceReadToolName, map[string]any{"server": "docs", "uri": "skill://merge-pages/a.md"}))
	var r mcp.ReadResourceRequest
	r.Params.URI = "mcphybrid://docs/skill://merge-pages/a.md"
	got, err := c.ReadResource(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, "Alpha", got.Contents[0].(mcp.TextResourceContents).Text)
}
