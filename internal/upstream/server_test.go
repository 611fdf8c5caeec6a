package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that can't be started is tried again, less and less often, and a
// call meanwhile says so at once.
func TestBackoff(t *testing.T) {
	srv := newTest(t, child(t, "broken", "dead"), Limits{Reconnect: 10 * time.Millisecond})
	require.ErrorContains(t, srv.Start(t.Context()), "exit status 3")
	st := srv.Status()
	assert.Equal(t, Down, st.State)
	assert.Equal(t, 1, st.Failures)
	mcptest.Soon(t, func() bool { return srv.Status().Failures >= 4 && srv.Status().State == Down })
	st = srv.Status()
	wait := st.Retry.Sub(st.Since)
	assert.InDelta(t, 70, wait.Milliseconds(), 75, "10 ms, 20, 40, 80 or more, each up to a fifth less")
	err := srv.Connect(t.Context())
	assert.ErrorIs(t, err, ErrDown)

	s := New(Config{Name: "x"}, Limits{Reconnect: time.Second}, nil)
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
	s.Close()
}

// A server that connects well and does not stay up is started less and less
// often, by itself; one that was up for a while soon, and by a call at once.
func TestBackoffOfCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := started(t, inProcess("mortal", mcptest.Echo("a", "")), Limits{StartTimeout: time.Second, CallTimeout: time.Second, Reconnect: time.Second})
		defer s.Close()
		// lost returns how long it is until the next attempt.
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

// A call that may be made twice is, once.
func TestRepeatableCallIsMadeAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "died")
	cfg := child(t, "mortal", "plain")
	cfg.Env["DIED"] = file
	srv := started(t, cfg, Limits{})
	r, err := srv.Call(t.Context(), "once", json.RawMessage("{}"), true)
	require.NoError(t, err)
	assert.Equal(t, "alive", mcptest.Text(t, r))
	died, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "x", string(died), "it died once")
	_, err = srv.Call(t.Context(), "exit_read_only", json.RawMessage("{}"), true)
	require.ErrorIs(t, err, ErrDown, "and not for ever")
}

// A server that was down for long is back as soon as somebody needs it, and not
// when its turn comes.
func TestDownServerIsNeeded(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	srv := newTest(t, Config{Name: "web", URL: "http://" + address + "/mcp"}, Limits{Reconnect: 50 * time.Millisecond})
	require.Error(t, srv.Start(t.Context()))
	var down Status
	mcptest.Soon(t, func() bool { down = srv.Status(); return down.Failures >= 6 && down.State == Down })
	mcptest.ServeHTTP(t, mcpserver.NewStreamableHTTPServer(s), address)
	mcptest.Soon(t, func() bool { return srv.Connect(t.Context()) == nil })
	assert.True(t, time.Now().Before(down.Retry), "%v later", time.Since(down.Retry))
}

// A call over a connection that is just being given up says that it was lost,
// and not that the caller has ended it.
func TestConnectionIsGivenUpDuringACall(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	url := mcptest.ServeHTTP(t, mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION)), "127.0.0.1:0")
	srv := started(t, Config{Name: "web", URL: url}, Limits{})
	require.NoError(t, srv.connection().client.Close())
	_, err := srv.call(t.Context(), "echo")
	assert.ErrorIs(t, err, ErrDown)
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return err == nil })

	closed := fmt.Errorf("transport error: %w", context.Canceled) // what mcp-go says if it is closed a moment earlier
	assert.True(t, isLostIn(t.Context(), closed))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, isLostIn(ctx, closed))
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
	s.AddTools(mcptest.Echo("a", ""))
	srv := started(t, Config{Name: "live", InProcess: s}, Limits{})
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

// A list that is asked for again has the start timeout, too.
func TestListAgainTimeout(t *testing.T) {
	var hang atomic.Bool
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) {
		if hang.Load() {
			<-ctx.Done()
		}
	})
	s := mcpserver.NewMCPServer("live", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	srv := started(t, Config{Name: "live", InProcess: s}, Limits{StartTimeout: 100 * time.Millisecond})
	hang.Store(true)
	s.AddTools(mcptest.Echo("b", ""))
	mcptest.Soon(t, func() bool { return srv.Status().State == Degraded })
	assert.ErrorContains(t, srv.Status().Err, "no answer within 100ms")
}
