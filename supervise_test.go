package mcphybrid

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC F8: what a server says has changed is listed again and becomes one step
// of the catalog. What is still there stays the same tool.
func TestSpecF8ListChanged(t *testing.T) {
	for _, kind := range []string{"in process", "http", "old http"} {
		t.Run(kind, func(t *testing.T) {
			s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true))
			s.AddTools(echoTool("a", "First"), echoTool("b", "Second"))
			cfg := ServerConfig{Name: "live", InProcess: s}
			refresh := time.Duration(-1)
			if kind != "in process" {
				var opts []mcpserver.StreamableHTTPOption
				if kind == "old http" { // says nothing, so that it must be asked
					opts = append(opts, mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
					refresh = 20 * time.Millisecond
				}
				cfg = ServerConfig{Name: "live", URL: serveHTTP(t, mcpserver.NewStreamableHTTPServer(s, opts...), "127.0.0.1:0")}
			}
			m, r := newTestManager(t, &Options{MaxInline: -1, Refresh: refresh, Servers: []ServerConfig{cfg}})
			sess := m.NewSession(nil)
			m.ActivateTools([]string{"mcp_live__b", "mcp_live__a"})
			before := m.ActiveTools()

			s.AddTools(echoTool("c", "Third"))
			soon(t, func() bool { return len(m.DeferredTools()) == 1 })
			assert.Equal(t, before, m.ActiveTools())

			s.DeleteTools("b")
			soon(t, func() bool { return len(m.ActiveTools()) == 1 })
			assert.Equal(t, before[1:], m.ActiveTools())
			_, registered := r.Get("mcp_live__b")
			soon(t, func() bool { _, registered = r.Get("mcp_live__b"); return !registered })
			result, err := sess.Call(t.Context(), "mcp_live__b", nil)
			require.ErrorIs(t, err, ErrUnknownTool)
			var unknown *UnknownToolError
			require.ErrorAs(t, err, &unknown)
			assert.WithinDuration(t, time.Now(), unknown.Gone, time.Minute)
			assert.Contains(t, resultText(t, result), "mcp_live__b is gone: its server does not have it since ")

			s.AddTools(echoTool("b", "Second"))
			soon(t, func() bool { _, err := sess.Call(t.Context(), "mcp_live__b", nil); return err == nil })
			assert.Same(t, before[0].def, m.cur.Load().tool("mcp_live__b").def, "the same tool")

			s.AddTools(echoTool("a", "First, and changed"))
			soon(t, func() bool { return m.cur.Load().tool("mcp_live__a").Description() == "First, and changed" })
			soon(t, func() bool { _, registered := r.Get("mcp_live__a"); return !registered }) // it is another tool now
			assert.NoError(t, check(m, sess))
		})
	}
}

// A storm of notifications costs a few listings.
func TestListChangedStorm(t *testing.T) {
	var lists atomic.Int64
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { lists.Add(1) })
	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	s.AddTools(echoTool("tool_0", ""))
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "live", InProcess: s}}})
	for i := range 1000 {
		s.AddTools(echoTool(fmt.Sprintf("tool_%d", i), ""))
	}
	soon(t, func() bool { return m.Stats().Tools == 1000 })
	assert.Less(t, lists.Load(), int64(100))
}

// A child that dies is back for the next call; the call that killed it, and
// one that must not be made twice, says that it is down.
func TestServerIsStartedAgain(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{child(t, "mortal", "plain"), inProcess("other", 3)}})
	tools := m.InlineTools()
	for range 3 {
		_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
		require.ErrorIs(t, err, ErrServerDown)
		r, err := m.Call(t.Context(), "mcp_mortal__big", `{"n":3}`)
		require.NoError(t, err, "it does not wait for the time of the next attempt")
		assert.Equal(t, "xxx", resultText(t, r))
	}
	// Nobody has to call it.
	_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
	require.ErrorIs(t, err, ErrServerDown)
	soon(t, func() bool { return m.Servers()[0].State == StateReady })
	assert.Equal(t, tools, m.InlineTools(), "the same tools")
}

// A tool that leaves while it is called is told to be gone.
func TestToolLeavesDuringItsCall(t *testing.T) {
	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(echoTool("a", ""))
	var m *Manager
	m, _ = newTestManager(t, &Options{Servers: []ServerConfig{{Name: "live", InProcess: s}}, Middleware: []Middleware{func(next Handler) Handler {
		return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
			s.DeleteTools("a")
			soon(t, func() bool { return len(m.InlineTools()) == 0 })
			return next(ctx, c)
		}
	}}})
	_, err := m.Call(t.Context(), "mcp_live__a", nil)
	var unknown *UnknownToolError
	require.ErrorAs(t, err, &unknown)
	assert.False(t, unknown.Gone.IsZero())
}
