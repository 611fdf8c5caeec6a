package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC F8: when a server announces a change, we list its tools again and
// publish all changes at once. A tool that is still there stays the same.
func TestSpecF8ListChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: 6 s")
	}
	t.Parallel()
	for _, kind := range []string{"in process", "http", "old http"} {
		t.Run(kind, func(t *testing.T) {
			s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true))
			s.AddTools(echoTool("a", "First"), echoTool("b", "Second"))
			cfg := ServerConfig{Name: "live", InProcess: s}
			refresh := time.Duration(-1)
			if kind != "in process" {
				var opts []mcpserver.StreamableHTTPOption
				if kind == "old http" { // announces nothing, so we must ask
					opts = append(opts, mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
					refresh = 20 * time.Millisecond
				}
				cfg = ServerConfig{Name: "live", URL: serveHTTP(t, mcpserver.NewStreamableHTTPServer(s, opts...), "127.0.0.1:0")}
			}
			m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Limits: config.Limits{Refresh: refresh}, Servers: []ServerConfig{cfg}})
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
			assert.Contains(t, resultText(t, result), "mcp_live__b is gone: its server removed it at ")

			s.AddTools(echoTool("b", "Second"))
			soon(t, func() bool { _, err := sess.Call(t.Context(), "mcp_live__b", nil); return err == nil })
			assert.Equal(t, string(before[0].Raw()), string(m.cur.Load().tool("mcp_live__b").Raw()), "the same tool")

			s.AddTools(echoTool("a", "First, and changed"))
			soon(t, func() bool { return m.cur.Load().tool("mcp_live__a").Description() == "First, and changed" })
			soon(t, func() bool { _, registered := r.Get("mcp_live__a"); return !registered }) // it is another tool now
			assert.NoError(t, check(m, sess))
		})
	}
}

// A storm of notifications causes only a few listings.
func TestListChangedStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { lists.Add(1) })
		s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		s.AddTools(echoTool("tool_0", ""))
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "live", InProcess: s}}})
		for i := range 1000 {
			s.AddTools(echoTool(fmt.Sprintf("tool_%d", i), ""))
			time.Sleep(200 * time.Microsecond)
		}
		soon(t, func() bool { return m.Stats().Tools == 1000 })
		assert.Less(t, lists.Load(), int64(10))
	})
}

// A child that died is back for the next call. The call that killed it must not
// be made twice and reports that the server is down.
func TestServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{child(t, "mortal", "plain"), inProcess("other", 3)}})
	tools := m.InlineTools()
	for range 3 {
		_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
		require.ErrorIs(t, err, ErrServerDown)
		r, err := m.Call(t.Context(), "mcp_mortal__big", `{"n":3}`)
		require.NoError(t, err, "it does not wait for the time of the next attempt")
		assert.Equal(t, "xxx", resultText(t, r))
	}
	assert.Equal(t, tools, m.InlineTools(), "the same tools")
}

// A server that ended is started again even if nobody calls it.
func TestServerIsStartedAgainUncalled(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Limits: config.Limits{Reconnect: 10 * time.Millisecond}, Servers: []ServerConfig{child(t, "mortal", "plain")}})
	tools := m.InlineTools()
	for range 2 {
		_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
		require.ErrorIs(t, err, ErrServerDown)
		soon(t, func() bool { return m.Servers()[0].State == StateReady })
		assert.Equal(t, tools, m.InlineTools(), "the same tools")
	}
}

// If a tool is removed during its call, the call reports that it is gone.
func TestToolLeavesDuringItsCall(t *testing.T) {
	t.Parallel()
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

// Each state has the same name here and in package upstream.
func TestStates(t *testing.T) {
	t.Parallel()
	for own, of := range map[State]upstream.State{
		StateConfigured: upstream.Configured, StateCached: upstream.Cached, StateConnecting: upstream.Connecting,
		StateReady: upstream.Ready, StateDegraded: upstream.Degraded, StateDown: upstream.Down,
	} {
		assert.Equal(t, own, State(of))
	}
}

// Every setting of a server and every limit of its Manager reaches package
// upstream.
func TestSourceConfig(t *testing.T) {
	t.Parallel()
	src := &source{invalid: errors.New("invalid"), cfg: ServerConfig{
		Name: "n", Command: "c", Args: []string{"a"}, Env: map[string]string{"E": "e"}, Dir: "d", URL: "u", SSE: true, Headers: map[string]string{"H": "h"},
		InProcess: mcpserver.NewMCPServer("s", "1"), HeadersHelper: "x", LogLevel: mcp.LoggingLevelInfo,
		HeaderFunc: func(context.Context) (http.Header, error) { return nil, nil }, HTTPClient: new(http.Client), OnNotification: func(mcp.JSONRPCNotification) {}, StartTimeout: time.Hour, Secrets: []string{"s"},
	}}
	o := Options{Extensions: map[string]any{"e": 1}, Limits: config.Limits{IdleTimeout: time.Minute}}
	o.setDefaults()
	m := &Manager{tenant: &tenant{opts: o, owner: &owner{"u"}}, turns: upstream.NewTurns()}
	cfg, limits := m.upstreamConfig(src), src.limits(&o)
	for _, v := range []reflect.Value{reflect.ValueOf(cfg), reflect.ValueOf(limits)} {
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			assert.Equal(t, name == "NamesNone", v.Field(i).IsZero(), name)
		}
	}
	assert.NotNil(t, m.upstreamConfig(&source{cfg: ServerConfig{Name: "n", URL: "https://h"}}).NamesNone, "no header may hold a token")
	assert.Equal(t, "c a e d u h", strings.Join([]string{cfg.Command, cfg.Args[0], cfg.Env["E"], cfg.Dir, cfg.URL, cfg.Headers["H"]}, " "))
	want := o.Limits
	want.StartTimeout = time.Hour
	assert.Equal(t, want, limits)
}

// Before a Manager starts, no server's tools are waited for.
func TestSourcesBeforeTheStart(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{inProcess("a", 1)}})
	defer m.Close()
	assert.Len(t, m.sources, 1)
	assert.Empty(t, m.begunSources())
	r, err := m.NewSession(nil).Call(t.Context(), "mcp_a__tool_000", nil)
	assert.ErrorIs(t, err, ErrUnknownTool)
	assert.NotContains(t, resultText(t, r), "connecting")
}
