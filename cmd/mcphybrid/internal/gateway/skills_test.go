package gateway

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
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

// A host that knows the extension lists, gets and loads the skills behind a gateway, as if they
// were the gateway's, whether the gateway has one server or several.
func TestSkillsForHosts(t *testing.T) {
	for _, several := range []bool{false, true} {
		docs := mcptest.NewSkilled("docs", mcptest.Echo("merge", "Merges pages"))
		docs.Has("merge-pages", "Merge with care.", `,"tools":["merge"],"metadata":{"version":"1.0"}`, "a.md", "Alpha")
		docs.Hides("split-pages", "Split with care.", "", "b.md", "Beta")
		servers, prefix := []mcphybrid.ServerConfig{{Name: "docs", InProcess: docs}}, ""
		if several {
			other := mcptest.NewSkilled("other", mcptest.Echo("pay", "Pays"))
			other.Has("merge-pages", "Not this one.", "")
			servers, prefix = append(servers, mcphybrid.ServerConfig{Name: "other", InProcess: other}), "mcphybrid://docs/"
		}
		_, url, _ := startHTTP(t, gatewayOptions{servers: servers}, web.Options{})
		for _, protocol := range []string{"2025-11-25", ""} {
			m := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{{Name: "gate", URL: url, Protocol: protocol}}})
			t.Cleanup(func() { assert.NoError(t, m.Close()) })
			require.NoError(t, m.Start(t.Context()))
			require.Empty(t, m.Problems())
			s := m.NewSession(nil)
			load := func(name string) string {
				t.Helper()
				got, err := s.Call(t.Context(), mcphybrid.SkillLoadToolName, map[string]any{"name": name, "server": "gate"})
				require.NoError(t, err)
				return mcptest.Text(t, got)
			}
			listed := s.ServerSkills()
			require.Len(t, listed, len(servers))
			assert.Equal(t, prefix+"skill://merge-pages/SKILL.md", listed[0].URI)
			assert.Contains(t, load(listed[0].Registered), "Merge with care.", "the digest and the front matter are right")
			got, err := s.ReadResource(t.Context(), "gate", prefix+"skill://merge-pages/a.md")
			require.NoError(t, err)
			assert.Equal(t, "Alpha", got.Contents[0].(mcp.TextResourceContents).Text)

			assert.Contains(t, load(prefix+"skill://split-pages/SKILL.md"), "Split with care.")
			got, err = s.ReadResource(t.Context(), "gate", prefix+"skill://split-pages/b.md")
			require.NoError(t, err)
			assert.Equal(t, "Beta", got.Contents[0].(mcp.TextResourceContents).Text)
			_, err = s.ServerSkill(t.Context(), "gate", prefix+"skill://gone/SKILL.md")
			assert.ErrorIs(t, err, mcp.ErrInvalidParams)
			_, err = s.ServerSkill(t.Context(), "gate", "mcphybrid://none/skill://merge-pages/SKILL.md")
			assert.ErrorIs(t, err, mcp.ErrInvalidParams)
		}
	}
}

// A client gets no skill by the extension that its token does not permit, or that is held back.
func TestSkillsForHostsAreHeldBack(t *testing.T) {
	docs := mcptest.NewSkilled("docs", mcptest.Echo("merge", "Merges pages"))
	docs.Has("merge-pages", "Merge.", "")
	docs.Has("denied", "Denied.", "")
	docs.Hides("split-pages", "Split.", "")
	file := filepath.Join(t.TempDir(), "trust.json")
	_, url, _ := startHTTP(t, gatewayOptions{
		servers: []mcphybrid.ServerConfig{{Name: "docs", InProcess: docs, Tools: mcphybrid.Access{Deny: []string{"denied"}}}},
		trust:   trust.Options{Policy: mcphybrid.TrustApprove, File: file},
	}, web.Options{})
	ask := func(method, params string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Method", method)
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	said := ask("skills/list", "{"+meta+"}")
	assert.Contains(t, said, `200 {"jsonrpc":"2.0","id":1,"result":{"cacheScope":"private","resultType":"complete","skills":[{"uri":"skill://merge-pages/SKILL.md"`)
	assert.NotContains(t, said, "denied")
	docs.Has("added", "Added.", "") // after the first list
	for _, name := range []string{"denied", "added", "split-pages", "gone"} {
		said = ask("skills/get", `{"uri":"skill://`+name+`/SKILL.md",`+meta+`}`)
		assert.Contains(t, said, `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,`, name)
	}
	said = ask("skills/get", `{"uri":"skill://merge-pages/SKILL.md",`+meta+`}`)
	assert.Contains(t, said, `"skill":{"uri":"skill://merge-pages/SKILL.md","frontmatter":{"name":"merge-pages"`)
	said = ask("server/discover", "{"+meta+"}")
	assert.Contains(t, said, `"io.modelcontextprotocol/skills":{}`)
}
