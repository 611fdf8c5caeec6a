package mcphybrid

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// enabling is a server with a tool that adds the next one.
func enabling() *mcpserver.MCPServer {
	var s *mcpserver.MCPServer
	added := 0
	s = mcptest.Server("s", mcpserver.ServerTool{
		Tool: mcp.NewTool("enable"),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			added++
			s.AddTools(mcptest.Echo(fmt.Sprintf("enabled_%d", added), "Echoes"))
			return mcp.NewToolResultText("ok"), nil
		},
	})
	return s
}

// What a call enabled is there in the next request: the server announces it before the
// result, so the call waits until it is listed. The listings take no time here: the one after a
// slow one is put off for longer than a call waits.
func TestSpecH9CallEnablesATool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(&Options{Servers: []ServerConfig{{Name: "s", InProcess: enabling()}}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		s := m.NewSession(nil)
		turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
		for i := range 20 {
			_, err := s.Call(t.Context(), "mcp_s__enable", nil)
			require.NoError(t, err)
			turn := turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
			require.Len(t, turn.Added, 1)
			assert.Equal(t, fmt.Sprintf("mcp_s__enabled_%d", i+1), turn.Added[0].Name)
		}
		assert.NoError(t, check(m, s))
	})
}

// A server that announces tools and does not list them holds its own calls up for two
// seconds, and no other.
func TestSpecH9WaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		hooks := new(mcpserver.Hooks)
		listed := false
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			if listed {
				<-stuck
			}
			listed = true
		})
		server := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		server.AddTool(mcp.NewTool("enable"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddTools(mcptest.Echo("late", "Echoes"))
			return mcp.NewToolResultText("ok"), nil
		})
		m := NewManager(&Options{Servers: []ServerConfig{{Name: "s", InProcess: server}, inProcess("other", 1)}})
		require.NoError(t, m.Start(t.Context()))
		start := time.Now()
		_, err := m.Call(t.Context(), "mcp_s__enable", nil)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, time.Since(start))
		start = time.Now()
		_, err = m.Call(t.Context(), "mcp_other__tool_000", nil)
		require.NoError(t, err)
		assert.Zero(t, time.Since(start))
		close(stuck)
		require.NoError(t, m.Close())
	})
}

// A call without a result ends with its timeout, and waits for no tools.
func TestSpecH9NoWaitAfterTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hooks := new(mcpserver.Hooks)
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { time.Sleep(10 * time.Second) })
		server := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		server.AddTool(mcp.NewTool("enable"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			server.AddTools(mcptest.Echo("late", "Echoes"))
			<-ctx.Done()
			return nil, ctx.Err()
		})
		m := NewManager(&Options{Servers: []ServerConfig{{Name: "s", InProcess: server, CallTimeout: time.Second}}})
		require.NoError(t, m.Start(t.Context()))
		start := time.Now()
		_, err := m.Call(t.Context(), "mcp_s__enable", nil)
		require.ErrorContains(t, err, "no answer within 1s")
		assert.Equal(t, time.Second, time.Since(start))
		require.NoError(t, m.Close())
		time.Sleep(10 * time.Second) // the listing ignores its context
	})
}
