package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// living counts the values that are still reachable.
func living[T any](values []weak.Pointer[T]) (n int) {
	for range 3 {
		runtime.GC()
	}
	for _, p := range values {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// A rememberingRegistry remembers weakly what it was given.
type rememberingRegistry struct {
	*ToolRegistry
	mu    sync.Mutex
	given []weak.Pointer[BridgeTool]
}

func (r *rememberingRegistry) Register(t Tool) {
	if b, ok := t.(*BridgeTool); ok {
		r.mu.Lock()
		r.given = append(r.given, weak.Make(b))
		r.mu.Unlock()
	}
	r.ToolRegistry.Register(t)
}

// Of what a server listed in the past nothing is kept, however often it changes
// the definitions or the names of its tools.
func TestPastListsAreForgotten(t *testing.T) {
	const rounds = 60
	for name, tools := range map[string]func(round int) []mcpserver.ServerTool{
		"new texts": func(round int) (tools []mcpserver.ServerTool) {
			for i := range 9 {
				tools = append(tools, echoTool(fmt.Sprint("tool", i), fmt.Sprint("as of ", round)))
			}
			return tools
		},
		"new names": func(round int) (tools []mcpserver.ServerTool) {
			for i := range 9 {
				tools = append(tools, echoTool(fmt.Sprintf("tool%d_%d", i, round), "same"))
			}
			return tools
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := mcpserver.NewMCPServer("a", "1", mcpserver.WithToolCapabilities(true))
				srv.SetTools(tools(-1)...)
				reg := &rememberingRegistry{ToolRegistry: NewRegistry()}
				m := NewManager(&Options{
					Inline: InlineOptions{Max: 3}, Registry: reg, Servers: []ServerConfig{{Name: "a", InProcess: srv}},
				})
				defer m.Close()
				require.NoError(t, m.Start(t.Context()))
				var listed []weak.Pointer[definition]
				for round := range rounds {
					srv.SetTools(tools(round)...)
					time.Sleep(time.Second)
					deferred := m.DeferredTools()
					require.Len(t, deferred, 6)
					m.ActivateToolIfDeferred(deferred[2].Name())
					for _, tool := range append(m.InlineTools(), deferred...) {
						listed = append(listed, weak.Make(tool.def))
					}
				}
				require.Len(t, listed, 9*rounds)
				require.GreaterOrEqual(t, len(reg.given), 3*rounds)
				assert.LessOrEqual(t, living(listed), 2*9, "definitions, of this list and of the one before")
				assert.LessOrEqual(t, living(reg.given), 2*4, "copies in the registry")
				assert.NoError(t, check(m))
			})
		})
	}
}

// Of servers and users that came and went nothing is kept that could be large.
func TestWhatWentIsForgotten(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("good", 3)}})
	defer m.Close()
	require.NoError(t, m.Start(t.Context()))
	var defs []weak.Pointer[definition]
	var users []weak.Pointer[Manager]
	for i := range 50 {
		name := fmt.Sprintf("tenant-%d", i)
		require.NoError(t, m.AddServer(t.Context(), serving(name, echoTool("run", "Runs"))))
		u, err := m.NewUser(name, &UserOptions{Servers: []ServerConfig{serving("own", echoTool("own", "Does"))}})
		require.NoError(t, err)
		require.NoError(t, u.Start(t.Context()))
		s := u.NewSession(&SessionOptions{Registry: NewRegistry()})
		r, err := s.Call(t.Context(), "mcp_own__own", nil)
		require.NoError(t, err)
		assert.False(t, r.IsError)
		assert.NotEmpty(t, s.Search("runs", 3))
		for _, tool := range m.cur.Load().tools {
			if tool.Server() == name {
				defs = append(defs, weak.Make(tool.def))
			}
		}
		users = append(users, weak.Make(u.own))
		u.Close()
		require.True(t, m.RemoveServer(name))
	}
	require.Len(t, defs, 50)
	soon(t, func() bool { return living(defs) <= 2 && living(users) <= 2 })
	assert.NoError(t, check(m))
}

// A server that leaves calls without an answer is not called for a while, and the
// model is told so at once. After the pause one call finds out.
func TestCallsWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var calls atomic.Int32
		run := mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls.Add(1)
			if hangs.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return mcp.NewToolResultText("ran"), nil
		}}
		m := NewManager(&Options{Limits: config.Limits{CallTimeout: 20 * time.Second}, Servers: []ServerConfig{serving("a", run), serving("b", echoTool("run", ""))}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		call := func() (string, time.Duration, error) {
			start := time.Now()
			r, err := m.Call(t.Context(), "mcp_a__run", nil)
			return resultText(t, r), time.Since(start), err
		}
		times := func(n int) {
			t.Helper()
			for range n {
				_, took, err := call()
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, 20*time.Second, took)
			}
		}
		refused := func() {
			t.Helper()
			begun := calls.Load()
			text, took, err := call()
			require.ErrorIs(t, err, ErrServerDown)
			assert.Zero(t, took)
			assert.Equal(t, begun, calls.Load(), "it was not called")
			assert.Regexp(t, `^mcp_a__run was not called: it has not answered the last \d calls\. Its server can be called again from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ on\. Go on without it\.$`, text)
			st := m.Servers()[0]
			assert.Equal(t, StateDegraded, st.State)
			assert.ErrorContains(t, st.Err, "it has not answered the last")
			assert.ErrorContains(t, err, st.Retry.UTC().Format(time.RFC3339))
			_, err = m.Call(t.Context(), "mcp_b__run", nil)
			assert.NoError(t, err, "another server")
		}

		hangs.Store(true)
		times(2)
		hangs.Store(false)
		_, _, err := call()
		require.NoError(t, err, "two in a row are not enough, and an answer counts")
		hangs.Store(true)
		times(3)
		for _, pause := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 160 * time.Second} {
			refused()
			time.Sleep(pause - time.Second)
			refused()
			time.Sleep(time.Second)
			probe := make(chan bool)
			go func() { times(1); close(probe) }()
			time.Sleep(time.Second)
			refused() // one call is under way
			<-probe
		}
		time.Sleep(160 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Call(ctx, "mcp_a__run", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the caller gave up: that says nothing of the server")
		hangs.Store(false)
		_, _, err = call()
		require.NoError(t, err)
		assert.Equal(t, StateReady, m.Servers()[0].State)
		hangs.Store(true)
		times(3)
		refused()
	})
}

// Of many calls at once after a pause, one is sent. When it has its answer, all are.
func TestOneCallFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var calls atomic.Int32
		hangs.Store(true)
		run := mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls.Add(1)
			if hangs.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(time.Second)
			return mcp.NewToolResultText("ran"), nil
		}}
		m := NewManager(&Options{Limits: config.Limits{CallTimeout: 10 * time.Second}, Servers: []ServerConfig{serving("a", run)}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		// many makes 32 calls at once and returns how many were sent, answered and refused.
		many := func() (sent, answered, refused int32) {
			before := calls.Load()
			var ok, down atomic.Int32
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					switch _, err := m.Call(t.Context(), "mcp_a__run", nil); {
					case err == nil:
						ok.Add(1)
					case errors.Is(err, ErrServerDown):
						down.Add(1)
					}
				})
			}
			wg.Wait()
			return calls.Load() - before, ok.Load(), down.Load()
		}
		sent, answered, refused := many()
		assert.Equal(t, []int32{32, 0, 0}, []int32{sent, answered, refused})
		for range 3 {
			sent, answered, refused = many()
			assert.Equal(t, []int32{0, 0, 32}, []int32{sent, answered, refused})
			time.Sleep(80 * time.Second)
			sent, answered, refused = many()
			assert.Equal(t, []int32{1, 0, 31}, []int32{sent, answered, refused})
		}
		hangs.Store(false)
		time.Sleep(80 * time.Second)
		sent, answered, refused = many()
		assert.Equal(t, []int32{1, 1, 31}, []int32{sent, answered, refused})
		sent, answered, refused = many()
		assert.Equal(t, []int32{32, 32, 0}, []int32{sent, answered, refused})
	})
}

// One slow tool does not close a server whose other tools answer, even if it is
// called several times at once.
func TestSlowToolAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := mcpserver.ServerTool{Tool: mcp.NewTool("slow"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		m := NewManager(&Options{Servers: []ServerConfig{serving("a", slow, echoTool("quick", ""))}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := m.Call(t.Context(), "mcp_a__slow", nil)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		time.Sleep(time.Second)
		_, err := m.Call(t.Context(), "mcp_a__quick", nil)
		require.NoError(t, err)
		wg.Wait()
		_, err = m.Call(t.Context(), "mcp_a__quick", nil)
		assert.NoError(t, err)
	})
}

// A line without end, and bytes without end on standard error, cost a while and
// then the server, perhaps before it has started.
func TestLineWithoutEnd(t *testing.T) {
	t.Parallel()
	cfg := child(t, "a", "endless")
	cfg.Env["AFTER"] = "tools/list"
	m := NewManager(&Options{Limits: config.Limits{Reconnect: -1, MaxMessage: 1 << 20}, Servers: []ServerConfig{cfg}})
	defer m.Close()
	const want = "a line has more bytes than 16 times the limit of 1048576"
	if err := m.Start(t.Context()); err != nil {
		assert.ErrorContains(t, err, want)
	}
	soon(t, func() bool { return m.Servers()[0].State == StateDown })
	assert.ErrorContains(t, m.Servers()[0].Err, want)
}

// However often a server is tried in vain, one timer waits for the next attempt.
func TestRetriesLeaveNoGoroutines(t *testing.T) {
	cfg := ServerConfig{Name: "a", Command: "/nonexistent/command"}
	m := NewManager(&Options{Limits: config.Limits{Reconnect: time.Millisecond}, Servers: []ServerConfig{cfg}})
	defer m.Close()
	require.Error(t, m.Start(t.Context()))
	before := runtime.NumGoroutine()
	soon(t, func() bool {
		_ = m.Preload(t.Context(), "*") // no tool is known, so it connects nothing
		src := m.sources[0]
		_ = src.server.Connect(t.Context())
		return m.Servers()[0].Failures > 200
	})
	assert.Less(t, runtime.NumGoroutine(), before+50)
}

// A server that limits its requests says so. It is asked again when it wants to be,
// but is not waited for without end.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, after string
		status      int
		least, most time.Duration // until the next attempt
		want        string
	}{
		{"seconds", "30", 429, 29 * time.Second, 30 * time.Second, "the server limits the rate of requests (HTTP status 429); it asks to wait 30s"},
		{"a date", "in five minutes", 429, 4 * time.Minute, 5 * time.Minute, "it asks to wait "},
		{"too long", "99999999999999999", 429, 9 * time.Minute, 10 * time.Minute, "it asks to wait 10m0s"},
		{"nothing", "", 429, 0, 20 * time.Second, "the server limits the rate of requests (HTTP status 429)"},
		{"nonsense", "-5s", 429, 0, 20 * time.Second, "the server limits the rate of requests (HTTP status 429)"},
		{"not available", "60", 503, 59 * time.Second, time.Minute, "the server is not available (HTTP status 503); it asks to wait 1m0s"},
		{"forbidden", "60", 403, 0, 20 * time.Second, "request failed with status 403"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				after := test.after
				if test.name == "a date" {
					after = time.Now().Add(5 * time.Minute).UTC().Format(http.TimeFormat)
				}
				w.Header().Set("Retry-After", after)
				w.WriteHeader(test.status)
			}))
			defer web.Close()
			m := NewManager(&Options{Limits: config.Limits{Reconnect: 20 * time.Second}, Servers: []ServerConfig{{Name: "a", URL: web.URL}}})
			defer m.Close()
			err := m.Start(t.Context())
			assert.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "legacy")
			st := m.Servers()[0]
			require.NotZero(t, st.Retry)
			sent := requests.Load()
			if test.least > 0 {
				assert.Error(t, m.sources[0].server.Connect(t.Context()))
				assert.Equal(t, sent, requests.Load(), "a call does not begin an attempt either")
			}
			assert.GreaterOrEqual(t, st.Retry.Sub(st.Since), test.least)
			assert.LessOrEqual(t, time.Until(st.Retry), test.most) // the attempt itself may have taken long
		})
	}
}

// A call that a server refuses for a while is not followed by others.
func TestRateLimitedCall(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("a", "1")
	s.AddTools(echoTool("run", ""))
	inner := mcpserver.NewStreamableHTTPServer(s)
	var limited atomic.Bool
	var refused atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limited.Load() {
			inner.ServeHTTP(w, r)
			return
		}
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"tools/call"`) {
			refused.Add(1)
		}
		w.Header().Set("Retry-After", "3600")
		http.Error(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"slow down"}}`, http.StatusTooManyRequests)
	}))
	t.Cleanup(web.Close) // after the Manager, whose stream keeps it open
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "a", URL: web.URL}}})
	_, err := m.Call(t.Context(), "mcp_a__run", nil)
	require.NoError(t, err)
	limited.Store(true)
	r, err := m.Call(t.Context(), "mcp_a__run", nil)
	require.Error(t, err)
	assert.Contains(t, resultText(t, r), "the server limits the rate of requests (HTTP status 429); it asks to wait 10m0s")
	for range 5 {
		r, err = m.Call(t.Context(), "mcp_a__run", nil)
		assert.ErrorIs(t, err, ErrServerDown)
		assert.Contains(t, resultText(t, r), "was not called: the server limits the rate of requests")
	}
	assert.Equal(t, int32(1), refused.Load())
	assert.Less(t, time.Until(m.Servers()[0].Retry), 11*time.Minute)
}

// The request that ends a session has the configured headers, as all others have.
func TestEndOfSessionHasHeaders(t *testing.T) {
	t.Parallel()
	inner := mcpserver.NewStreamableHTTPServer(mcpserver.NewMCPServer("a", "1"), mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	var mu sync.Mutex
	without := make(map[string]int) // requests without the header, by method
	ended := make(map[string]int)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Header.Get("Authorization") != "Bearer abc" {
			without[r.Method]++
		}
		ended[r.Method]++
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	defer web.Close()
	m := NewManager(&Options{Servers: []ServerConfig{{Name: "a", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer abc"}}}})
	require.NoError(t, m.Start(t.Context()))
	m.Close()
	assert.Equal(t, 1, ended[http.MethodDelete])
	assert.Empty(t, without)
}

// No error has an address of this process's memory, whoever wrote it.
func TestErrorsHaveNoAddresses(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("run", ""))
	inner := mcpserver.NewStreamableHTTPServer(s)
	var bad atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad.Load() {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","result":{},"error":{"code":1,"message":"x"}}`)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close) // after the Manager, whose stream keeps it open
	panics := mcpserver.ServerTool{Tool: mcp.NewTool("panics"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(struct{ p *int }{new(int)})
	}}
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "web", URL: web.URL}, serving("here", panics)}})
	require.NoError(t, m.AddTools("own", panics))
	bad.Store(true)
	for _, name := range []string{"mcp_web__run", "mcp_here__panics", "mcp_own__panics"} {
		r, err := m.Call(t.Context(), name, nil)
		require.Error(t, err, name)
		for _, text := range []string{err.Error(), resultText(t, r)} {
			assert.NotRegexp(t, `0x[0-9a-f]{6}`, text)
			assert.Contains(t, text, "0x…", name)
		}
	}
}

// The limits hold for lists from the cache too: the server is asked instead.
func TestCachedListsAreBounded(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("a", "1")
	s.AddTools(echoTool("one", strings.Repeat("x", 1000)), echoTool("two", strings.Repeat("x", 1000)))
	o := Options{
		Cache:   store.File(t.TempDir() + "/cache"),
		Servers: []ServerConfig{{Name: "a", URL: serveHTTP(t, mcpserver.NewStreamableHTTPServer(s), "127.0.0.1:0")}},
	}
	start := func(o Options) (*Manager, error) {
		m := NewManager(&o)
		t.Cleanup(func() { m.Close() })
		return m, m.Start(t.Context())
	}
	m, err := start(o)
	require.NoError(t, err)
	require.NoError(t, m.Close()) // saves the cache
	m, err = start(o)
	require.NoError(t, err)
	assert.Equal(t, StateCached, m.Servers()[0].State)
	for _, limits := range []config.Limits{{MaxListing: 2000}, {MaxCatalog: 2000}} {
		o.Limits = limits
		m, err := start(o)
		require.ErrorContains(t, err, "the limit of 2000")
		assert.Zero(t, m.Stats().Tools)
		assert.NoError(t, check(m))
	}
}

// The servers that were removed are remembered up to a number.
func TestRemovedServersAreBounded(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for i := range maxRemoved {
		m.removedServers = append(m.removedServers, fmt.Sprint("s", i))
	}
	require.NoError(t, m.AddTools("last", echoTool("run", "")))
	require.True(t, m.RemoveServer("last"))
	assert.Len(t, m.removedServers, maxRemoved)
	assert.Equal(t, "last", m.removedServers[maxRemoved-1])
}
