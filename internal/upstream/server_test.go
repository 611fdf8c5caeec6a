package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that can't be started is down. A call before the next attempt fails
// at once and says so.
func TestDownServerFailsCalls(t *testing.T) {
	t.Parallel()
	srv := newTest(t, child(t, "broken", "dead"), config.Limits{Reconnect: time.Hour})
	require.ErrorContains(t, srv.Start(t.Context()), "exit status 3")
	st := srv.Status()
	assert.Equal(t, Down, st.State)
	assert.Equal(t, 1, st.Failures)
	assert.WithinRange(t, st.Retry, time.Now().Add(time.Hour*3/4), time.Now().Add(time.Hour))
	assert.ErrorIs(t, srv.Connect(t.Context()), ErrDown)
}

// A server that can't be started is tried again by itself.
func TestDownServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	srv := newTest(t, child(t, "broken", "dead"), config.Limits{Reconnect: time.Millisecond})
	require.ErrorContains(t, srv.Start(t.Context()), "exit status 3")
	mcptest.Soon(t, func() bool { return srv.Status().Failures >= 4 })
}

// It is tried less and less often.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Server: config.Server{Name: "x"}}, config.Limits{Reconnect: time.Second}, nil)
		defer s.Close()
		waits := func(failures int) time.Duration {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.status.Failures = failures
			s.retryLocked()
			return time.Until(s.status.Retry)
		}
		for failures, most := range []time.Duration{time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
			assert.LessOrEqual(t, waits(failures), most)
			assert.GreaterOrEqual(t, waits(failures), most*4/5)
		}
		assert.LessOrEqual(t, waits(1<<30), time.Minute)

		for reconnect, want := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
			s := New(Config{Server: config.Server{Name: "x"}}, config.Limits{Reconnect: reconnect}, nil)
			s.mu.Lock()
			s.retryLocked()
			s.mu.Unlock()
			assert.Equal(t, want, !s.Status().Retry.IsZero(), reconnect)
			s.Close()
		}
	})
}

// However long the first delay is, none is shorter, and nothing overflows.
func TestLongBackoff(t *testing.T) {
	for _, first := range []time.Duration{2 * time.Minute, 1 << 47, 1 << 60, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Server: config.Server{Name: "x"}}, config.Limits{Reconnect: first}, nil)
			defer s.Close()
			for failures := range 20 {
				assert.Equal(t, first, backoff(s.limits.Reconnect, failures))
				s.mu.Lock()
				s.status.Failures = failures
				s.retryLocked()
				s.mu.Unlock()
				assert.GreaterOrEqual(t, time.Until(s.Status().Retry), first/5*4, failures)
			}
		})
	}
}

// However short the first delay is, it doubles sixteen times at most.
func TestShortBackoff(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{-1: 1, 0: 1, 1: 2, 15: 1 << 15, 16: 1 << 16, 17: 1 << 16, math.MaxInt: 1 << 16} {
		assert.Equal(t, want*time.Microsecond, backoff(time.Microsecond, failures), failures)
	}
}

// A listing that fails is repeated less and less often, from the first delay on, or when the server
// asks for it, and a success begins anew.
func TestListingsThatFailAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		var at []time.Time
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			broken := fails.Load()
			at = append(at, time.Now())
			if broken {
				panic("no list today")
			}
		})
		s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		srv := started(t, config.Server{Name: "live", InProcess: s}, config.Limits{Reconnect: time.Second})
		for range 2 {
			fails.Store(true)
			at = nil
			srv.connection().tellChanged()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Len(t, at, 4)
			for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
				assert.Equal(t, want+coalesce, at[i+1].Sub(at[i]))
			}
			fails.Store(false)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			assert.Equal(t, Ready, srv.Status().State)
		}
	})
}

// A server that connects and then dies is started less and less often by
// itself. If it was up for a while, it is started soon, and a call starts it at
// once.
func TestBackoffOfCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := started(t, inProcess("mortal", mcptest.Echo("a", "")), config.Limits{StartTimeout: time.Second, CallTimeout: time.Second, Reconnect: time.Second})
		defer s.Close()
		// lost returns the time until the next attempt.
		lost := func(after time.Duration) time.Duration {
			time.Sleep(after)
			c := s.connection()
			require.NotNil(t, c)
			s.lose(c, errors.New("it died"))
			wait := time.Until(s.Status().Retry)
			assert.Zero(t, s.Status().Failures)
			return wait
		}
		for _, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
			wait := lost(time.Second)
			assert.LessOrEqual(t, wait, most)
			assert.Greater(t, wait, most*3/4)
			time.Sleep(wait)
			synctest.Wait()
			require.Equal(t, Ready, s.Status().State)
		}
		assert.LessOrEqual(t, lost(maxBackoff), time.Second, "it was up for long enough")
		assert.NoError(t, s.Connect(t.Context()), "a call does not wait")
		assert.LessOrEqual(t, lost(0), time.Second)
	})
}

// A repeatable call is repeated once.
func TestRepeatableCallIsMadeAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "died")
	cfg := child(t, "mortal", "plain")
	cfg.Env["DIED"] = file
	srv := started(t, cfg, config.Limits{})
	r, err := srv.Call(t.Context(), Tool{Name: "once", Repeatable: true}, json.RawMessage("{}"))
	require.NoError(t, err)
	assert.Equal(t, "alive", mcptest.Text(t, r))
	died, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "x", string(died), "it died once")
	_, err = srv.Call(t.Context(), Tool{Name: "exit_read_only", Repeatable: true}, json.RawMessage("{}"))
	require.ErrorIs(t, err, ErrDown, "and not for ever")
}

// A server that was down for long is connected as soon as somebody needs it,
// before its next attempt is due.
func TestDownServerIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) {
			if away.Load() {
				panic("away")
			}
		})
		s := mcpserver.NewMCPServer("s", "1", mcpserver.WithHooks(hooks))
		s.AddTools(mcptest.Echo("echo", "Echoes"))
		srv := newTest(t, config.Server{Name: "s", InProcess: s}, config.Limits{Reconnect: time.Second})
		require.ErrorContains(t, srv.Start(t.Context()), "away")
		for srv.Status().Failures < 6 {
			time.Sleep(time.Until(srv.Status().Retry))
			synctest.Wait()
		}
		assert.Greater(t, time.Until(srv.Status().Retry), 20*time.Second)
		away.Store(false)
		time.Sleep(999 * time.Millisecond)
		assert.ErrorIs(t, srv.Connect(t.Context()), ErrDown, "the first step of the backoff has not passed")
		time.Sleep(time.Millisecond)
		assert.ErrorIs(t, srv.Connect(t.Context()), ErrDown, "it begins an attempt")
		assert.NoError(t, srv.Connect(t.Context()))
	})
}

// A call over a connection that is just being dropped reports that the
// connection was lost, not that the caller ended the call.
func TestConnectionIsGivenUpDuringACall(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	url := mcptest.ServeHTTP(t, mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION)), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
	require.NoError(t, srv.connection().client.Close())
	_, err := srv.call(t.Context(), "echo")
	assert.ErrorIs(t, err, ErrDown)
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return err == nil })

	closed := fmt.Errorf("transport error: %w", context.Canceled) // mcp-go's error if the connection closes a moment earlier
	assert.True(t, isLostIn(t.Context(), closed))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, isLostIn(ctx, closed))
}

// A login to a server that refuses nothing costs it no connection, only a listing.
func TestAgainKeepsTheConnection(t *testing.T) {
	t.Parallel()
	srv := started(t, inProcess("live", mcptest.Echo("echo", "Echoes")), config.Limits{})
	c := srv.connection()
	require.NoError(t, srv.Again(t.Context()))
	assert.Same(t, c, srv.connection())
	assert.Equal(t, Ready, srv.Status().State)
	mcptest.Soon(t, func() bool { _, lists := srv.listed(); return lists == 2 })
	assert.Same(t, c, srv.connection())
}

// A login counts for attempts that begin after it: the one under way may fail for want of it, and
// is followed by another. One that begins with the login tells its own error.
func TestAgainDuringAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		early   bool
		answers []bool
		want    bool
	}{
		"began before the login":           {true, []bool{false, true}, true},
		"began before it, and works":       {true, []bool{true}, true},
		"began before it, and so the next": {true, []bool{false, false}, false},
		"began with it":                    {false, []bool{false}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var attempts int
			hooks := &mcpserver.Hooks{}
			hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
				time.Sleep(time.Second)
				if attempts++; !test.answers[min(attempts, len(test.answers))-1] {
					panic("log in")
				}
			})
			srv := newTest(t, config.Server{Name: "s", InProcess: mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))}, config.Limits{Reconnect: time.Hour})
			if test.early {
				srv.Begin()
				time.Sleep(time.Second / 2)
			}
			err := srv.Again(t.Context())
			assert.Equal(t, test.want, err == nil, "%s: %v", name, err)
			assert.Equal(t, len(test.answers), attempts, name)
			if !test.want {
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				assert.ErrorIs(t, srv.Again(ended), context.Canceled, name)
			}
			srv.Close()
			time.Sleep(time.Second)
		})
	}
}

// After a login, a server that refused requests is connected anew; after a logout, one that is
// connected is given up, and no other is touched.
func TestLoginAndLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTest(t, inProcess("s", mcptest.Echo("a", "")), config.Limits{Reconnect: time.Hour})
		require.NoError(t, srv.LoggedOut(t.Context()))
		assert.Equal(t, Configured, srv.Status().State)
		require.NoError(t, srv.Start(t.Context()))
		first := srv.connection()
		srv.refused(first, errUnauthorized)
		time.Sleep(time.Nanosecond) // the next session has another name
		require.NoError(t, srv.Again(t.Context()))
		assert.NotSame(t, first, srv.connection())
		assert.Equal(t, Ready, srv.Status().State)
		require.NoError(t, srv.LoggedOut(t.Context()))
		assert.Nil(t, srv.connection())
		assert.Equal(t, Unauthorized, srv.Status().State)
		time.Sleep(time.Nanosecond)
		require.NoError(t, srv.Connect(t.Context()), "it works without a login")
		assert.Equal(t, Ready, srv.Status().State)
	})
}

// A logout waits for the attempt under way, which has a login still.
func TestLogoutDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { time.Sleep(time.Second) })
		srv := newTest(t, config.Server{Name: "s", InProcess: mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))}, config.Limits{Reconnect: time.Hour})
		srv.Begin()
		synctest.Wait()
		ended, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		assert.ErrorIs(t, srv.LoggedOut(ended), context.DeadlineExceeded)
		assert.Equal(t, Connecting, srv.Status().State)
		require.NoError(t, srv.LoggedOut(t.Context()))
		assert.Equal(t, Unauthorized, srv.Status().State)
		assert.Nil(t, srv.connection())
	})
}

// A new connection is not refused calls because the last one did not answer them.
func TestConnectionOfASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		run := mcptest.Echo("echo", "Echoes")
		answer := run.Handler
		run.Handler = func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case <-hang:
				return answer(ctx, r)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		srv := started(t, inProcess("live", run), config.Limits{CallTimeout: 50 * time.Millisecond, MaxTimeouts: 1})
		_, err := srv.call(t.Context(), "echo")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = srv.call(t.Context(), "echo")
		require.ErrorAs(t, err, new(*PausedError))
		close(hang)
		srv.lose(srv.connection(), errUnread)
		require.NoError(t, srv.Connect(t.Context()))
		_, err = srv.call(t.Context(), "echo")
		assert.NoError(t, err)
	})
}

// A server whose list can no longer be read still serves its old tools.
func TestDegraded(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
		if broken.Load() {
			panic("no list today")
		}
	})
	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	s.AddTools(mcptest.Echo("a", ""))
	srv := started(t, config.Server{Name: "live", InProcess: s}, config.Limits{})
	broken.Store(true)
	s.AddTools(mcptest.Echo("b", ""))
	mcptest.Soon(t, func() bool { return srv.Status().State == Degraded })
	assert.ErrorContains(t, srv.Status().Err, "no list today")
	_, err := srv.call(t.Context(), "a")
	assert.NoError(t, err)
	broken.Store(false)
	s.AddTools(mcptest.Echo("c", ""))
	mcptest.Soon(t, func() bool { return srv.Status().State == Ready })
	tools, _ := srv.listed()
	assert.Len(t, tools, 3)
}

// A server that stays degraded has entered that state once. Its error is the last one.
func TestDegradedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		var times atomic.Int32
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			if broken.Load() {
				panic(fmt.Sprint("failure ", times.Add(1)))
			}
		})
		s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		srv := newTest(t, config.Server{Name: "live", InProcess: s}, config.Limits{Reconnect: time.Second})
		var told []State
		srv.OnStatus(func(_ context.Context, st Status) { told = append(told, st.State) })
		require.NoError(t, srv.Start(t.Context()))
		broken.Store(true)
		s.AddTools(mcptest.Echo("b", ""))
		time.Sleep(coalesce)
		synctest.Wait()
		first := srv.Status()
		require.Equal(t, Degraded, first.State)
		require.ErrorContains(t, first.Err, "failure 1")
		time.Sleep(time.Minute)
		synctest.Wait()
		last := srv.Status()
		assert.Equal(t, Degraded, last.State)
		assert.Equal(t, first.Since, last.Since)
		assert.ErrorContains(t, last.Err, fmt.Sprint("failure ", times.Load()))
		assert.Greater(t, times.Load(), int32(3))
		assert.Equal(t, []State{Connecting, Ready, Degraded}, told)
	})
}

// Listing again has the start timeout too.
func TestListAgainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Bool
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) {
			if hang.Load() {
				<-ctx.Done()
			}
		})
		s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		srv := started(t, config.Server{Name: "live", InProcess: s}, config.Limits{StartTimeout: 100 * time.Millisecond})
		hang.Store(true)
		s.AddTools(mcptest.Echo("b", ""))
		time.Sleep(coalesce + 99*time.Millisecond)
		synctest.Wait()
		assert.Equal(t, Ready, srv.Status().State)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, Degraded, srv.Status().State)
		assert.ErrorContains(t, srv.Status().Err, "no answer within 100ms")
	})
}

// Listings go up byte for byte and in order, again after each announced change.
func TestListingsGoUpRaw(t *testing.T) {
	long := strings.Repeat("x", 100)
	cfg := child(t, "raw", "raw")
	cfg.Env["LIST"] = `{"tools":[{"name":"b","x":1.50},{"name":5},"what",{"name":"` + long + `"},{"name":"a"}]}`
	tools, lists := started(t, cfg, config.Limits{MaxDefinition: 50}).listed()
	assert.Equal(t, 1, lists)
	var raw []string
	for i, e := range tools {
		raw = append(raw, string(e.Raw))
		assert.Equal(t, i == 3, e.Problem != nil)
	}
	assert.Equal(t, []string{`{"name":"b","x":1.50}`, `{"name":5}`, `"what"`, "", `{"name":"a"}`}, raw)
	assert.EqualError(t, tools[3].Problem, "the definition has 111 bytes, more than the limit of 50")

	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(mcptest.Echo("a", ""))
	srv := started(t, config.Server{Name: "live", InProcess: s}, config.Limits{})
	s.AddTools(mcptest.Echo("b", ""))
	mcptest.Soon(t, func() bool { tools, _ := srv.listed(); return len(tools) == 2 })
}

// An unusable listing fails the start, and later makes the server degraded. It
// has the start timeout.
func TestPublishFails(t *testing.T) {
	s := mcptest.Server("live", mcptest.Echo("a", ""))
	refused := errors.New("refused")
	l := started(t, config.Server{Name: "limits", InProcess: s}, config.Limits{}).limits
	l.Refresh, l.Reconnect = time.Millisecond, -1
	var calls atomic.Int64
	srv := New(Config{Server: config.Server{Name: "live", InProcess: s}, Log: slog.New(slog.DiscardHandler)}, l, func(ctx context.Context, _ List) error {
		until, ok := ctx.Deadline()
		assert.True(t, ok && time.Until(until) <= l.StartTimeout)
		if calls.Add(1) != 2 {
			return refused
		}
		return nil
	})
	defer srv.Close()
	assert.ErrorIs(t, srv.Start(t.Context()), refused)
	assert.Equal(t, Down, srv.Status().State)
	require.NoError(t, srv.Start(t.Context()))
	mcptest.Soon(t, func() bool { return srv.Status().State == Degraded })
	assert.ErrorIs(t, srv.Status().Err, refused)
	assert.NoError(t, srv.Connect(t.Context()), "it serves on")
}

// The first call starts a cached server. It is stopped when nobody has called
// it for a while.
func TestCachedServer(t *testing.T) {
	url := mcptest.ServeHTTP(t, mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", ""))), "127.0.0.1:0")
	srv := newTest(t, config.Server{Name: "web", URL: url}, config.Limits{IdleTimeout: 20 * time.Millisecond})
	_, err := srv.call(t.Context(), "echo")
	assert.EqualError(t, err, "the server is down", "it was not started")
	srv.SetCached()
	assert.Equal(t, Cached, srv.Status().State)
	for n := 1; n <= 2; n++ {
		r, err := srv.call(t.Context(), "echo")
		require.NoError(t, err)
		assert.Equal(t, "echo {}", mcptest.Text(t, r))
		_, lists := srv.listed()
		assert.GreaterOrEqual(t, lists, n)
		mcptest.Soon(t, func() bool { return srv.Status().State == Cached })
	}
	assert.Nil(t, srv.connection())
}

// A connected server lists again when it is asked to, and is not taken for one that rests.
func TestListAgain(t *testing.T) {
	t.Parallel()
	srv := newTest(t, config.Server{Name: "s", InProcess: mcptest.Server("s", mcptest.Echo("echo", ""))}, config.Limits{})
	srv.ListAgain() // it is not connected
	require.NoError(t, srv.Start(t.Context()))
	_, before := srv.listed()
	assert.False(t, srv.SetCached())
	assert.Equal(t, Ready, srv.Status().State)
	srv.ListAgain()
	mcptest.Soon(t, func() bool { _, lists := srv.listed(); return lists == before+1 })
}

// However often other processes have other lists, the server lists less and less often for
// that. After a quiet time it does at once.
func TestListAgainLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refresh := range []time.Duration{-1, 5 * time.Minute} {
			srv := started(t, config.Server{Name: "s", InProcess: mcptest.Server("s", mcptest.Echo("echo", ""))}, config.Limits{Refresh: refresh})
			listed := func(during time.Duration, again bool) int {
				_, before := srv.listed()
				for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					if again {
						srv.ListAgain()
					}
				}
				synctest.Wait()
				_, lists := srv.listed()
				return lists - before
			}
			n := listed(time.Hour, true)
			t.Logf("%d in an hour, with Refresh %v", n, refresh)
			assert.LessOrEqual(t, n, 20+max(0, int(time.Hour/refresh)), "and those of Refresh")
			assert.GreaterOrEqual(t, n, 10)
			listed(5*time.Hour+10*time.Second, false) // Refresh is at another time
			for range 5 {
				assert.Equal(t, 1, listed(time.Second/2, true), "at once")
				listed(100*time.Second, false)
			}
		}
	})
}

// A call that waits for a connection keeps it from resting, as one under way does:
// otherwise the server could rest before the call that started it goes on.
func TestNoRestBeforeACall(t *testing.T) {
	t.Parallel()
	var srv *testServer
	calls := func() int {
		srv.Server.mu.Lock()
		defer srv.Server.mu.Unlock()
		return srv.calls
	}
	var while int
	var fails atomic.Bool
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
		while = calls()
		if fails.Load() {
			panic("away")
		}
	})
	s := mcpserver.NewMCPServer("s", "1", mcpserver.WithHooks(hooks))
	s.AddTools(mcptest.Echo("echo", ""))
	srv = newTest(t, config.Server{Name: "s", InProcess: s}, config.Limits{Reconnect: time.Hour})
	srv.SetCached()
	_, err := srv.call(t.Context(), "echo")
	require.NoError(t, err)
	assert.Equal(t, 1, while)
	assert.Zero(t, calls())

	fails.Store(true)
	srv.lose(srv.connection(), errors.New("it died"))
	_, err = srv.call(t.Context(), "echo")
	require.ErrorIs(t, err, ErrDown)
	assert.Equal(t, 1, while)
	assert.Zero(t, calls())
}

// An invalid configuration fails the start and is not tried again.
func TestInvalidConfig(t *testing.T) {
	invalid := errors.New("the url is no URL")
	srv := newTestOf(t, Config{Server: config.Server{Name: "x"}, Invalid: invalid}, config.Limits{Reconnect: time.Nanosecond})
	assert.Equal(t, invalid, srv.Start(t.Context()))
	st := srv.Status()
	assert.Equal(t, Status{State: Down, Since: st.Since, Took: st.Took, Err: invalid, Failures: 1, entered: st.entered}, st)
	_, err := srv.call(t.Context(), "a")
	assert.ErrorIs(t, err, ErrDown)
	assert.ErrorIs(t, err, invalid)
}

// The context of the start bounds the waiting for it: the attempt goes on. Nothing begins after
// Close.
func TestStartEnds(t *testing.T) {
	srv := newTest(t, child(t, "silent", "silent"), config.Limits{Reconnect: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, srv.Start(ctx), context.Canceled)
	assert.Zero(t, srv.Status().Failures)
	assert.Equal(t, Connecting, srv.Status().State)
	srv.Close()
	st := srv.Status()
	assert.Equal(t, Down, st.State)
	assert.ErrorIs(t, st.Err, ErrClosed)
	assert.True(t, st.Retry.IsZero())
	assert.Equal(t, ErrClosed, srv.Start(t.Context()))
	_, err := srv.call(t.Context(), "a")
	assert.ErrorIs(t, err, ErrDown)
	assert.ErrorIs(t, err, ErrClosed)
	_, lists := srv.listed()
	assert.Zero(t, lists)
}

// Servers that fail together do not reconnect together. The same server
// reconnects at the same times in each run.
func TestReconnectsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := func(name string) time.Duration {
			s := New(Config{Server: config.Server{Name: name}}, config.Limits{Reconnect: time.Second}, nil)
			defer s.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.status.Failures = 1
			s.retryLocked()
			return time.Until(s.status.Retry)
		}
		seen := make(map[time.Duration]bool)
		for i := range 20 {
			wait := retry(fmt.Sprint(i))
			assert.Equal(t, wait, retry(fmt.Sprint(i)))
			assert.LessOrEqual(t, wait, time.Second)
			assert.GreaterOrEqual(t, wait, 800*time.Millisecond)
			seen[wait] = true
		}
		assert.Len(t, seen, 20)
	})
}

// The timer of an attempt does nothing if a call has already connected.
func TestStaleRetryDoesNotConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := started(t, inProcess("a", mcptest.Echo("a", "")), config.Limits{Reconnect: 10 * time.Second})
		defer s.Close()
		c := s.connection()
		s.lose(c, errors.New("it died")) // the next attempt is due in 8 to 10 s
		time.Sleep(time.Second)
		require.NoError(t, s.Connect(t.Context()), "a call makes it now")
		time.Sleep(time.Second)
		s.lose(s.connection(), errors.New("it died again")) // 16 to 20 s from here
		later := s.Status().Retry
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, Down, s.Status().State, "the first timer has fired")
		time.Sleep(time.Until(later))
		synctest.Wait()
		assert.Equal(t, Ready, s.Status().State)
	})
}

// A server does not rest during a call, however long the call takes.
func TestNoRestDuringACall(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := mcpserver.ServerTool{Tool: mcp.NewTool("slow"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(asked)
		<-answer
		return mcp.NewToolResultText("at last"), nil
	}}
	url := mcptest.ServeHTTP(t, mcpserver.NewStreamableHTTPServer(mcptest.Server("web", slow)), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{IdleTimeout: time.Hour})
	type result struct {
		*mcp.CallToolResult
		error
	}
	called := make(chan result)
	go func() {
		r, err := srv.call(t.Context(), "slow")
		called <- result{r, err}
	}()
	<-asked
	c := srv.connection()
	srv.Server.mu.Lock()
	srv.called = time.Now().Add(-2 * time.Hour)
	srv.Server.mu.Unlock()
	_, resting := srv.rest(c)
	assert.False(t, resting)
	close(answer)
	r := <-called
	require.NoError(t, r.error)
	assert.Equal(t, "at last", mcptest.Text(t, r.CallToolResult))
	srv.Server.mu.Lock()
	srv.called = time.Now().Add(-2 * time.Hour)
	srv.Server.mu.Unlock()
	_, resting = srv.rest(c)
	assert.True(t, resting)
}

// Listing takes at most a fifth of the time, even if a server announces changes
// all the time.
func TestStormsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const listing = time.Second
		var lists atomic.Int64
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			lists.Add(1)
			time.Sleep(listing)
		})
		s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
		srv := started(t, config.Server{Name: "live", InProcess: s}, config.Limits{})
		defer srv.Close()
		c := srv.connection()
		before, begun := lists.Load(), time.Now()
		for time.Since(begun) < 100*listing {
			c.tellChanged()
			time.Sleep(listing / 10)
		}
		assert.LessOrEqual(t, lists.Load()-before, int64(20))
		assert.GreaterOrEqual(t, lists.Load()-before, int64(15), "it is listed all the same")
	})
}

// A call of a server that can't be started does not start it again.
func TestCallsDoNotStartAFailingServer(t *testing.T) {
	t.Parallel()
	srv := newTest(t, child(t, "broken", "dead"), config.Limits{Reconnect: time.Hour})
	require.Error(t, srv.Start(t.Context()))
	for range 5 {
		_, err := srv.call(t.Context(), "big")
		assert.ErrorIs(t, err, ErrDown)
	}
	assert.Equal(t, Down, srv.Status().State)
	assert.Equal(t, 1, srv.Status().Failures)
}

// However often a server is tried again, it is away since it was last connected, and why stays.
func TestAwaySince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st Status
		s := New(Config{Server: config.Server{Name: "s"}, Log: slog.New(slog.DiscardHandler)}, config.Limits{}, nil)
		defer s.Close()
		enter := func(state State, err error) {
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.setLocked(state, err)
			st = s.status
		}
		enter(Connecting, nil)
		tried := time.Now()
		enter(Down, ErrDown)
		enter(Connecting, nil)
		assert.Equal(t, tried, st.Since)
		enter(Ready, nil)
		assert.Equal(t, time.Now(), st.Since)
		enter(Down, ErrDown)
		lost := time.Now()
		for range 40 {
			enter(Connecting, st.Err)
			enter(Down, ErrDown)
		}
		enter(Unauthorized, ErrUnauthorized)
		assert.Equal(t, lost, st.Since)
		assert.Equal(t, time.Now(), st.entered)
		enter(Cached, nil)
		assert.Equal(t, time.Now(), st.Since)
	})
}

// Why a server is down stays while it is tried again, however long that takes. Only a first
// attempt says why it takes long.
func TestWhyStaysWhileTriedAgain(t *testing.T) {
	t.Parallel()
	s := New(Config{Server: config.Server{Name: "s"}, Log: slog.New(slog.DiscardHandler)}, config.Limits{}, nil)
	defer s.Close()
	s.turn = new(turn)
	connecting := func(before, late error) error {
		s.mu.Lock()
		s.setLocked(Connecting, before)
		s.lateLocked(late)
		s.mu.Unlock()
		return s.Status().Err
	}
	assert.Equal(t, errQueued, connecting(nil, errQueued))
	gone := errors.New("package not found")
	assert.Equal(t, gone, connecting(gone, errQueued))
	s.works(s.turn, true)
	assert.Equal(t, gone, s.Status().Err)
	s.mu.Lock()
	s.setLocked(Connecting, nil)
	s.mu.Unlock()
	s.works(s.turn, true)
	assert.Equal(t, errAtWork, s.Status().Err)
}

func TestTriedAgainInVain(t *testing.T) {
	srv := newTest(t, config.Server{Name: "gone", Command: filepath.Join(t.TempDir(), "gone")}, config.Limits{Reconnect: time.Millisecond})
	heard := make(chan Status, 100)
	srv.OnStatus(func(_ context.Context, st Status) { heard <- st })
	require.Error(t, srv.Start(t.Context()))
	first := <-heard
	assert.Equal(t, Connecting, first.State)
	require.NoError(t, first.Err)
	down := <-heard
	assert.Equal(t, Down, down.State)
	again := <-heard
	assert.Equal(t, Connecting, again.State)
	assert.Equal(t, first.Since, again.Since)
	assert.Equal(t, down.Err, again.Err)
	assert.Equal(t, 1, again.Failures)
}

// What is listed is published in the order in which it was listed, one after the other, also if
// the connection is lost while the host still works on its list.
func TestListingsArePublishedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := mcptest.Server("s", mcptest.Echo("a", ""))
		cfg := inProcess("s")
		cfg.InProcess = of
		var mu sync.Mutex
		var atOnce, most, last, published int
		limits := config.Limits{
			StartTimeout: time.Minute, CallTimeout: time.Minute, MaxMessage: 1 << 20, MaxDefinition: 1 << 20, MaxValues: 1000, MaxListing: 1 << 20,
			MaxTools: 10, MaxPages: 10, MaxUnasked: 100, Reconnect: time.Second, Refresh: -1,
		}
		s := New(Config{Server: cfg, Log: slog.New(slog.DiscardHandler)}, limits, func(_ context.Context, all List) error {
			mu.Lock()
			atOnce++
			most, published = max(most, atOnce), published+1
			slow := published == 2
			mu.Unlock()
			if slow {
				time.Sleep(10 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			atOnce, last = atOnce-1, len(all.Elements[Tools])
			return nil
		})
		defer s.Close()
		require.NoError(t, s.Start(t.Context()))
		of.AddTools(mcptest.Echo("b", ""))
		time.Sleep(time.Second) // the host works on that list
		of.AddTools(mcptest.Echo("c", ""))
		c, _ := s.conn.Peek()
		s.lose(c, errors.New("lost"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, Ready, s.Status().State)
		assert.Equal(t, 1, most, "published at once")
		assert.Equal(t, 3, last, "tools of the list that was published last")
	})
}
