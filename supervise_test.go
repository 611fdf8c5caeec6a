package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// soon waits until a condition holds that the rest of the world brings about.
func soon(t *testing.T, condition func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, condition, 15*time.Second, time.Millisecond, what...)
}

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

// serveHTTP serves h on a port of the loopback until the test ends, and
// returns the address of MCP there.
func serveHTTP(t *testing.T, h http.Handler, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	web := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(l)
	}()
	t.Cleanup(func() { web.Close(); <-served })
	return fmt.Sprintf("http://%s/mcp", l.Addr())
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

// A call that may be made twice is, once.
func TestRepeatableCallIsMadeAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "died")
	cfg := child(t, "mortal", "plain")
	cfg.Env["DIED"] = file
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{cfg}})
	r, err := m.Call(t.Context(), "mcp_mortal__once", nil)
	require.NoError(t, err)
	assert.Equal(t, "alive", resultText(t, r))
	died, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "x", string(died), "it died once")
	_, err = m.Call(t.Context(), "mcp_mortal__exit_read_only", nil)
	require.ErrorIs(t, err, ErrServerDown, "and not for ever")
}

// A server that can't be started is tried again, less and less often, and a
// call meanwhile says so at once.
func TestBackoff(t *testing.T) {
	m := NewManager(&Options{Reconnect: 10 * time.Millisecond, Servers: []ServerConfig{child(t, "broken", "dead")}})
	defer m.Close()
	require.ErrorContains(t, m.Start(t.Context()), `mcphybrid: server "broken": `)
	st := m.Servers()[0]
	assert.Equal(t, StateDown, st.State)
	assert.Equal(t, 1, st.Failures)
	soon(t, func() bool { return m.Servers()[0].Failures >= 4 && m.Servers()[0].State == StateDown })
	st = m.Servers()[0]
	wait := st.Retry.Sub(st.Since)
	assert.InDelta(t, 70, wait.Milliseconds(), 75, "10 ms, 20, 40, 80 or more, each up to a fifth less")
	_, err := m.sources[0].server.serving(t.Context())
	assert.ErrorIs(t, err, ErrServerDown)

	s := newServer(ServerConfig{Name: "x"}, nil, limits{reconnect: time.Second}, nil, nil)
	for failures, most := range []time.Duration{time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		s.mu.Lock()
		s.status.Failures = failures
		s.retryLocked()
		wait := time.Until(s.status.Retry)
		s.mu.Unlock()
		assert.LessOrEqual(t, wait, most)
		assert.Greater(t, wait, most*3/4)
	}
	s.status.Failures = 1 << 30
	s.retryLocked()
	s.close()
}

// A server over HTTP that is gone for a while, and comes back as a new one, is
// found again.
func TestHTTPServerComesBack(t *testing.T) {
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("echo", "Echoes"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	var web *http.Server
	serve := func(l net.Listener) {
		web = &http.Server{Handler: mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true))}
		go func(w *http.Server) { _ = w.Serve(l) }(web)
	}
	serve(l)
	m, _ := newTestManager(t, &Options{Reconnect: 10 * time.Millisecond, Servers: []ServerConfig{{Name: "web", URL: "http://" + address + "/mcp"}}})
	t.Cleanup(func() { web.Close() })
	_, err = m.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)

	require.NoError(t, web.Close())
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return errors.Is(err, ErrServerDown) })
	soon(t, func() bool { return m.Servers()[0].Failures > 1 })
	l, err = net.Listen("tcp", address)
	require.NoError(t, err)
	serve(l)
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return err == nil })
	assert.Equal(t, StateReady, m.Servers()[0].State)
}

// A server that was down for long is back as soon as somebody needs it, and not
// when its turn comes.
func TestDownServerIsNeeded(t *testing.T) {
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("echo", "Echoes"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	m := NewManager(&Options{Reconnect: 50 * time.Millisecond, Servers: []ServerConfig{{Name: "web", URL: "http://" + address + "/mcp"}}})
	defer m.Close()
	require.Error(t, m.Start(t.Context()))
	var down ServerStatus
	soon(t, func() bool { down = m.Servers()[0]; return down.Failures >= 6 && down.State == StateDown })
	serveHTTP(t, mcpserver.NewStreamableHTTPServer(s), address)
	srv := m.sources[0].server
	soon(t, func() bool {
		_, err := srv.serving(t.Context())
		return err == nil
	})
	srv.done()
	assert.True(t, time.Now().Before(down.Retry), "%v later", time.Since(down.Retry))
}

// A server that was started anew while nobody called, and answers its old
// session with 400 instead of 404, is connected anew.
func TestHTTPServerForgetsItsSession(t *testing.T) {
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("echo", "Echoes"))
	inner := mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	var known sync.Map
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			if _, ok := known.Load(id); !ok {
				http.Error(w, "no valid session", http.StatusBadRequest)
				return
			}
		}
		inner.ServeHTTP(w, r)
		known.Store(w.Header().Get("Mcp-Session-Id"), true)
	}), "127.0.0.1:0")
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "web", URL: url}}})
	before := m.InlineTools()
	_, err := m.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)
	known.Clear()
	_, err = m.Call(t.Context(), "mcp_web__echo", nil)
	require.ErrorContains(t, err, "no valid session")
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return err == nil })
	assert.Equal(t, before, m.InlineTools())
}

// A call over a connection that is just being given up says that it was lost,
// and not that the caller has ended it.
func TestConnectionIsGivenUpDuringACall(t *testing.T) {
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("echo", "Echoes"))
	url := serveHTTP(t, mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION)), "127.0.0.1:0")
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "web", URL: url}}})
	srv := m.sources[0].server
	srv.mu.Lock()
	c := srv.conn.value
	srv.mu.Unlock()
	require.NoError(t, c.client.Close())
	_, err := m.Call(t.Context(), "mcp_web__echo", nil)
	assert.ErrorIs(t, err, ErrServerDown)
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return err == nil })

	closed := fmt.Errorf("transport error: %w", context.Canceled) // what mcp-go says if it is closed a moment earlier
	assert.True(t, isLostIn(t.Context(), closed))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, isLostIn(ctx, closed))
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

// A server whose list can't be read any more serves on with what it had.
func TestDegraded(t *testing.T) {
	var broken atomic.Bool
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
		if broken.Load() {
			panic("no list today")
		}
	})
	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	s.AddTools(echoTool("a", ""))
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "live", InProcess: s}}})
	broken.Store(true)
	s.AddTools(echoTool("b", ""))
	soon(t, func() bool { return m.Servers()[0].State == StateDegraded })
	assert.ErrorContains(t, m.Servers()[0].Err, "no list today")
	_, err := m.Call(t.Context(), "mcp_live__a", nil)
	assert.NoError(t, err)
	broken.Store(false)
	s.AddTools(echoTool("c", ""))
	soon(t, func() bool { return m.Servers()[0].State == StateReady && m.Stats().Tools == 3 })
}

// A server that connects well and does not stay up is started less and less
// often, by itself; one that was up for a while soon, and by a call at once.
func TestBackoffOfCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(inProcess("mortal", 1), nil, limits{startTimeout: time.Second, callTimeout: time.Second, maxMessage: 1 << 20, maxDefinition: 1 << 20, maxTools: 1, maxPages: 1, reconnect: time.Second, refresh: -1},
			slog.New(slog.DiscardHandler), func([]*definition, []error) error { return nil })
		defer s.close()
		require.NoError(t, s.start(t.Context()))
		// lost returns how long it is until the next attempt.
		lost := func(after time.Duration) time.Duration {
			time.Sleep(after)
			c := s.conn.value
			require.NotNil(t, c)
			s.lose(c, errors.New("it died"))
			wait := time.Until(s.snapshot().Retry)
			assert.Zero(t, s.snapshot().Failures)
			return wait
		}
		for _, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
			wait := lost(time.Second)
			assert.LessOrEqual(t, wait, most)
			assert.Greater(t, wait, most*3/4)
			time.Sleep(wait)
			synctest.Wait()
			require.Equal(t, StateReady, s.snapshot().State)
		}
		assert.LessOrEqual(t, lost(maxBackoff), time.Second, "it was up for long enough")
		_, err := s.serving(t.Context())
		assert.NoError(t, err, "a call does not wait")
		s.done()
		assert.LessOrEqual(t, lost(0), time.Second)
	})
}
