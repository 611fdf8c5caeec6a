package mcphybrid

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type hostKey struct{}

// A host that answers a request over HTTP may use the context of that request for calls
// of servers in its process. They see the host's values in it, but not that request.
func TestServerInProcessSeesItsOwnRequest(t *testing.T) {
	t.Parallel()
	inner := newArchive()
	inner.AddTool(mcp.NewTool("look"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		assert.Empty(t, r.Header)
		assert.Equal(t, "the host's", ctx.Value(hostKey{}))
		return mcp.NewToolResultText("seen"), nil
	})
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "inner", InProcess: inner}}})
	outer := mcpserver.NewMCPServer("outer", "1")
	outer.AddTool(mcp.NewTool("pass", mcp.WithString("tool")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx = context.WithValue(ctx, hostKey{}, "the host's")
		if _, err := m.Default().ReadResource(ctx, "inner", "mem://letters/1"); err != nil {
			return nil, err
		}
		return m.Call(ctx, r.GetString("tool", ""), nil)
	})
	for name, options := range map[string][]mcpserver.StreamableHTTPOption{"modern": nil, "with sessions": {mcpserver.WithStateful(true)}} {
		t.Run(name, func(t *testing.T) {
			web := mcpserver.NewStreamableHTTPServer(outer, options...)
			host, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "outer", URL: serveHTTP(t, web, "127.0.0.1:0")}}})
			r, err := host.Call(t.Context(), "mcp_outer__pass", map[string]any{"tool": "mcp_inner__look"})
			require.NoError(t, err)
			assert.Equal(t, "seen", resultText(t, r))
		})
	}
}
