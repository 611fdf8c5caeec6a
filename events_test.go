package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eventsOf returns a function for Options.OnEvent and one that waits for the next event
// of a kind.
func eventsOf(t *testing.T) (tell func(Event), next func(EventKind) Event) {
	events := make(chan Event, 1000)
	return func(e Event) { events <- e }, func(kind EventKind) Event {
		t.Helper()
		for {
			select {
			case e := <-events:
				if e.Kind == kind {
					return e
				}
			case <-time.After(20 * time.Second):
				require.FailNow(t, "there is no event", kind)
			}
		}
	}
}

// The log and the host hear of a server that dies, of each attempt to connect, and that
// it is back.
func TestADeadServerIsHeard(t *testing.T) {
	t.Parallel()
	var log mcptest.Log
	tell, next := eventsOf(t)
	m, _ := newTestManager(t, &Options{
		Limits: config.Limits{Reconnect: time.Millisecond}, Servers: []ServerConfig{child(t, "mortal", "plain")},
		OnEvent: tell, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
	require.ErrorIs(t, err, ErrServerDown)
	for _, want := range []State{StateConnecting, StateReady, StateDown, StateConnecting, StateReady} {
		e := next(EventServer)
		assert.Equal(t, "mortal", e.Server)
		require.Equal(t, want, e.State)
		assert.Nil(t, e.Session)
		assert.Equal(t, want == StateDown, e.Err != nil, "%v", e.Err)
	}
	lines := log.String()
	assert.Equal(t, 2, strings.Count(lines, `msg="mcphybrid: a server is ready" server=mortal`), lines)
	assert.Regexp(t, `a server is ready" server=mortal tools=[1-9]\d* took=\d`, lines)
	assert.Regexp(t, `level=WARN msg="mcphybrid: a server is down" server=mortal error="exit status 4; its last words: .*" retry=`, lines)
}

// A host hears when calls to a server are given up for a while, and when they are sent
// again.
func TestAnOpenCircuitIsHeard(t *testing.T) {
	t.Parallel()
	silent := mcpserver.ServerTool{Tool: mcp.NewTool("silent"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	tell, next := eventsOf(t)
	m, _ := newTestManager(t, &Options{
		Limits: config.Limits{MaxTimeouts: 1}, OnEvent: tell,
		Servers: []ServerConfig{{Name: "a", InProcess: mcptest.Server("a", silent, echoTool("echo", "")), CallTimeout: 100 * time.Millisecond}},
	})
	_, err := m.Call(t.Context(), "mcp_a__silent", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var degraded Event
	for degraded.State != StateDegraded {
		degraded = next(EventServer)
	}
	assert.EqualError(t, degraded.Err, "it has not answered the last 1 calls")
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_a__echo", nil); return err == nil })
	assert.Equal(t, StateReady, next(EventServer).State)
}

// A host hears that a definition has changed, and that its tool is held back.
func TestAChangedToolIsHeard(t *testing.T) {
	t.Parallel()
	tell, next := eventsOf(t)
	s := changing(echoTool("log", "good"))
	newTestManager(t, &Options{Trust: TrustQuarantine, Servers: []ServerConfig{{Name: "git", InProcess: s}}, OnEvent: tell})
	s.AddTools(echoTool("log", "better"))
	e := next(EventChanged)
	assert.Equal(t, []string{"mcp_git__log"}, e.Tools)
	assert.Equal(t, "git", e.Server)
	assert.ErrorIs(t, e.Err, ErrQuarantined)
	var changed *ChangedError
	require.ErrorAs(t, e.Err, &changed)
	assert.True(t, changed.Quarantined)
}

// An event says which user's session or server it is about.
func TestEventsNameTheUser(t *testing.T) {
	t.Parallel()
	tell, next := eventsOf(t)
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 1)}, OnEvent: tell})
	for range 2 { // connecting, ready
		assert.Empty(t, next(EventServer).User)
	}
	u, err := m.NewUser("anna", nil)
	require.NoError(t, err)
	_, err = u.Default().Call(t.Context(), "mcp_a__tool_000", nil)
	require.NoError(t, err)
	assert.Equal(t, "anna", next(EventCall).User)
	require.NoError(t, u.AddServer(t.Context(), inProcess("own", 1)))
	e := next(EventServer)
	assert.Equal(t, "anna", e.User)
	assert.Equal(t, "own", e.Server)
	_, err = m.Call(t.Context(), "mcp_a__tool_000", nil)
	require.NoError(t, err)
	assert.Empty(t, next(EventCall).User)
}

// What hears of a server may remove it, and close the Manager.
func TestWhoHearsMayEndIt(t *testing.T) {
	t.Parallel()
	var m *Manager
	done := make(chan struct{})
	var removed, closed atomic.Bool
	m = NewManager(&Options{Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 1)}, OnEvent: func(e Event) {
		switch {
		case e.Server == "a" && e.State == StateReady:
			removed.Store(m.RemoveServer("a"))
			_ = m.AddServer(t.Context(), inProcess("c", 1))
		case e.Server == "c" && e.State == StateReady && !closed.Swap(true):
			m.Close()
			close(done)
		}
	}})
	_ = m.Start(t.Context()) // the end may come first
	<-done
	assert.True(t, removed.Load())
	m.Close()
}

// A call to a server that was never up says that the server is down, and not that there
// is no such tool. Once it is up, the call is made.
func TestCallToAServerThatWasNeverUp(t *testing.T) {
	t.Parallel()
	inner := mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes")),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	var up atomic.Bool
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "not yet", http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r)
	}), "127.0.0.1:0")
	m := NewManager(&Options{
		Access: Access{Deny: []string{"mcp_web__secret"}}, Limits: config.Limits{Reconnect: time.Millisecond},
		Servers: []ServerConfig{{Name: "web", URL: url, Tools: Access{Deny: []string{"hidden"}}}},
	})
	defer m.Close()
	require.Error(t, m.Start(t.Context()))

	var r *mcp.CallToolResult
	var err error
	soon(t, func() bool { // unless it is connecting just now
		r, err = m.Call(t.Context(), "mcp_web__echo", nil)
		return errors.Is(err, ErrServerDown)
	})
	assert.NotErrorIs(t, err, ErrUnknownTool)
	assert.ErrorContains(t, err, `"web"`)
	assert.Equal(t, "mcp_web__echo can't be called now: its server is down. Go on without it.", resultText(t, r))
	for _, name := range []string{"mcp_web__secret", "mcp_web__hidden", "mcp_other__echo"} {
		_, err = m.Call(t.Context(), name, nil)
		assert.NotErrorIs(t, err, ErrServerDown, name)
	}
	_, err = m.NewSession(&SessionOptions{Access: Access{Deny: []string{"web/*"}}}).Call(t.Context(), "mcp_web__echo", nil)
	assert.NotErrorIs(t, err, ErrServerDown)

	up.Store(true)
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return err == nil })
	require.NoError(t, check(m))
}

// Four servers that are dead for half an hour take 20 lines of the log at most, and the status
// says since when.
func TestDeadServersAreLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log mcptest.Log
		opts := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 4 {
			hooks := &mcpserver.Hooks{}
			hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { panic("no disk") })
			opts.Servers = append(opts.Servers, ServerConfig{Name: fmt.Sprint("dead", i), InProcess: mcpserver.NewMCPServer("dead", "1", mcpserver.WithHooks(hooks))})
		}
		m := NewManager(&opts)
		defer m.Close()
		begun := time.Now()
		assert.Error(t, m.Start(t.Context()))
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		for _, st := range m.Servers() {
			assert.Equal(t, begun, st.Since, st.Name)
			assert.Greater(t, st.Failures, 25)
			assert.ErrorContains(t, st.Err, "no disk")
		}
		lines := log.String()
		assert.LessOrEqual(t, strings.Count(lines, "\n"), 20, lines)
		assert.Equal(t, 3, strings.Count(lines, `msg="mcphybrid: a server is down" server=dead0`), lines)
		assert.Contains(t, lines, "failures=16")
	})
}

// The alarm of docs/operating.md fires once for a server that stays down, however often it is
// tried, and not for one that is back within minutes.
func TestAlarmOnAServerThatStaysDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		failing := func(name string, until time.Duration) ServerConfig {
			hooks := &mcpserver.Hooks{}
			hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) {
				if time.Since(begun) < until {
					panic("no disk")
				}
			})
			return ServerConfig{Name: name, InProcess: mcpserver.NewMCPServer(name, "1", mcpserver.WithHooks(hooks))}
		}
		m := NewManager(&Options{Servers: []ServerConfig{failing("dead", time.Hour), failing("slow", 2*time.Minute), failing("well", 0)}})
		defer m.Close()
		m.Watch()
		assert.Error(t, m.Start(t.Context()))
		alarms := make(map[string][]time.Duration) // when each began
		rings := make(map[string]bool)
		for range 30 * 60 / 15 {
			time.Sleep(15 * time.Second)
			for _, st := range m.Servers() {
				away := st.State == StateDown || st.State == StateUnauthorized || st.State == StateConnecting
				now := away && time.Since(st.Since) > 5*time.Minute
				if now && !rings[st.Name] {
					alarms[st.Name] = append(alarms[st.Name], time.Since(begun))
				}
				rings[st.Name] = now
			}
		}
		assert.Equal(t, map[string][]time.Duration{"dead": {5*time.Minute + 15*time.Second}}, alarms)
		assert.True(t, rings["dead"], "it rings until somebody comes")

		// To people, its attempts are one event.
		snap, err := m.Snapshot(0)
		require.NoError(t, err)
		var down []snapshot.Event
		for _, e := range snap.Events() {
			if e.Server == "dead" && e.State == string(StateDown) {
				down = append(down, e)
			}
		}
		require.Len(t, down, 1)
		assert.Greater(t, down[0].Times, 25)
		assert.Equal(t, begun, down[0].First)
		assert.Contains(t, down[0].Cause.What, "no disk")
		assert.LessOrEqual(t, len(snap.Events()), 7)
	})
}

// What a server enters is one event for people with what it entered before, if that says
// nothing new. An attempt whose end was not heard says as little as one that failed.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	first := time.Now()
	event := func(state State, after time.Duration, what string) snapshot.Event {
		return snapshot.Event{Kind: string(EventServer), State: string(state), At: first.Add(after), Cause: snapshot.Cause{What: what}}
	}
	many := func(times int, e snapshot.Event) snapshot.Event { e.Times, e.First = times, first; return e }
	down, again := event(StateDown, 0, "no disk"), event(StateDown, 5, "no disk")
	connecting := event(StateConnecting, 0, "")
	for name, test := range map[string]struct {
		old, now, both snapshot.Event
		one            bool
	}{
		"down once more":        {down, again, many(2, again), true},
		"down a third time":     {many(2, down), again, many(3, again), true},
		"down for another why":  {down, event(StateDown, 5, "no net"), event(StateDown, 5, "no net"), false},
		"tried while down":      {many(2, down), connecting, many(2, down), true},
		"tried, and not heard":  {connecting, event(StateConnecting, 5, ""), connecting, true},
		"down after an attempt": {connecting, again, again, false},
		"ready":                 {down, event(StateReady, 5, ""), event(StateReady, 5, ""), false},
		"lost":                  {event(StateReady, 0, ""), down, down, false},
	} {
		both, one := triedAgain(test.old, test.now)
		assert.Equal(t, test.one, one, name)
		assert.Equal(t, test.both, both, name)
	}
}

// A server that lists its tools again while all is being closed has not failed.
func TestClosingIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := serving("web", echoTool("echo", "Echoes"))
		states := make(chan State, 10)
		book := new(mcptest.Log)
		m := NewManager(&Options{Servers: []ServerConfig{cfg}, Logger: slog.New(slog.NewTextHandler(book, nil)), OnEvent: func(e Event) {
			if e.Kind == EventServer {
				states <- e.State
			}
		}})
		require.NoError(t, m.Start(t.Context()))
		synctest.Wait() // events of servers are told on their own goroutine
		m.NewSession(&SessionOptions{Registry: &lastWords{ToolRegistry: NewRegistry(), said: func() {
			mcpServer(cfg).AddTools(echoTool("late", "Comes late"))
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
		}}}).Tools()
		require.NoError(t, m.Close())
		require.Len(t, states, 2)
		assert.Equal(t, StateConnecting, <-states)
		assert.Equal(t, StateReady, <-states)
		assert.NotContains(t, book.String(), "WARN")
	})
}

// A lastWords is a table that says something when the first tool leaves it.
type lastWords struct {
	*ToolRegistry
	once sync.Once
	said func()
}

func (r *lastWords) Unregister(t Tool) {
	r.once.Do(r.said)
	r.ToolRegistry.Unregister(t)
}
