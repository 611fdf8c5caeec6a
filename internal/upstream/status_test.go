package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Who is slow to hear of states hears of the last sixty-four, in their order. A state that stays is
// told once.
func TestStatesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTest(t, inProcess("s"), config.Limits{})
		release, told := make(chan struct{}), []time.Time(nil)
		srv.OnStatus(func(_ context.Context, st Status) {
			<-release
			told = append(told, st.Since)
		})
		var entered []time.Time
		for i := range 2 * 66 {
			time.Sleep(time.Second)
			srv.Server.mu.Lock()
			srv.setLocked([]State{Ready, Degraded}[i/2%2], nil)
			srv.Server.mu.Unlock()
			if i%2 == 0 {
				entered = append(entered, time.Now())
			}
		}
		close(release)
		synctest.Wait()
		assert.Equal(t, append(entered[:1:1], entered[2:]...), told, "the first was told, the second is left out")
	})
}

// What a call is told of a server that is not there.
func TestWhyAServerIsDown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for want, st := range map[string]Status{
		"the server is down":      {State: Down},
		"the server is down: EOF": {State: Down, Err: io.EOF},
		"the server is down: EOF; the next attempt to connect is at 2026-11-29T12:00:00Z": {State: Down, Err: io.EOF, Retry: at},
		"the server is down; the next attempt to connect is at 2026-11-29T12:00:00Z":      {State: Connecting, Retry: at},
		errUnauthorized.Error(): {State: Unauthorized, Err: errUnauthorized, Retry: at},
	} {
		err := st.down()
		assert.EqualError(t, err, want)
		assert.Equal(t, st.State != Unauthorized, errors.Is(err, ErrDown))
		if st.Err != nil {
			assert.ErrorIs(t, err, st.Err)
		}
	}
	for state, away := range map[State]bool{Configured: false, Cached: false, Connecting: true, Ready: false, Degraded: false, Down: true, Unauthorized: true} {
		assert.Equal(t, away, Status{State: state}.IsAway(), state)
	}
}

// Tools from elsewhere count unless the server is connected or connecting. One that failed stays
// as it is.
func TestSetCached(t *testing.T) {
	t.Parallel()
	for state, after := range map[State]State{Configured: Cached, Cached: Cached, Down: Down, Unauthorized: Unauthorized, Connecting: "", Ready: "", Degraded: ""} {
		srv := newTest(t, inProcess("s"), config.Limits{})
		srv.Server.mu.Lock()
		srv.setLocked(state, io.EOF)
		srv.Server.mu.Unlock()
		assert.Equal(t, after != "", srv.SetCached(), state)
		if after == "" {
			after = state
		}
		assert.Equal(t, after, srv.Status().State)
		assert.Equal(t, after == Cached, srv.Status().Err == nil, state)
	}
}

// A listing that was overtaken is not published, nor is one for which there is no more time, and
// what the host refuses does not count.
func TestListingsThatDoNotCount(t *testing.T) {
	t.Parallel()
	srv := started(t, inProcess("s", mcptest.Echo("a", "")), config.Limits{})
	c := srv.connection()
	assert.Equal(t, 1, srv.published)
	require.NoError(t, srv.list(t.Context(), c), "the same connection")
	srv.published = 9
	assert.Equal(t, errOvertaken, srv.list(t.Context(), c))
	assert.Equal(t, 9, srv.published)
	c.number = 9
	assert.NoError(t, srv.list(t.Context(), c))
	ended, cancel := context.WithCancel(t.Context())
	srv.publishing <- struct{}{}
	cancel()
	assert.ErrorIs(t, srv.list(ended, c), context.Canceled)
	<-srv.publishing
	_, lists := srv.listed()
	assert.Equal(t, 3, lists)
}

// What a lost connection still lists does not fail the attempt to make the next one.
func TestListOfALostConnection(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	held, release := make(chan struct{}), make(chan struct{})
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
		if lists.Add(1) == 2 {
			close(held)
			<-release
		}
	})
	of := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	srv := started(t, config.Server{Name: "s", InProcess: of}, config.Limits{Reconnect: time.Hour})
	before := srv.connection()
	made := make(chan error, 1)
	go func() {
		next, err := srv.connect(t.Context())
		if err == nil {
			next.close(0)
		}
		made <- err
	}()
	<-held
	assert.NoError(t, srv.list(t.Context(), before))
	close(release)
	assert.NoError(t, <-made)
	assert.Equal(t, errOvertaken, srv.list(t.Context(), before))
}

// Who gives up waiting for a restart leaves it alone.
func TestRestartGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { time.Sleep(time.Second) })
		srv := started(t, config.Server{Name: "s", InProcess: mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))}, config.Limits{Reconnect: time.Hour})
		first := srv.connection()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		assert.ErrorIs(t, srv.Restart(ctx), context.DeadlineExceeded)
		assert.Equal(t, Connecting, srv.Status().State)
		assert.Equal(t, errRestarted, srv.Status().Err)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, Ready, srv.Status().State)
		assert.NotSame(t, first, srv.connection())
		require.NoError(t, srv.Restart(t.Context()))
		_, lists := srv.listed()
		assert.Equal(t, 3, lists)
	})
}

// A server rests when nobody has called for its time, counted from the end of the last call. While
// a call runs, it looks each eighth of that time.
func TestWhenAServerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := both()
		s.events, s.discovered = false, discovers(newVersions, `{"tools":{}}`)
		srv := started(t, answeredBy(s), config.Limits{IdleTimeout: 8 * time.Second})
		call := func(takes time.Duration) {
			_, err := srv.request(t.Context(), "", false, nil, func(context.Context, *conn) (any, error) { time.Sleep(takes); return nil, nil })
			require.NoError(t, err)
		}
		rests := func(after time.Duration) {
			t.Helper()
			time.Sleep(after - time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, Ready, srv.Status().State)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, Cached, srv.Status().State)
		}
		time.Sleep(5 * time.Second)
		call(0)
		rests(8 * time.Second)
		call(0) // begins it anew
		call(20*time.Second + 500*time.Millisecond)
		rests(8 * time.Second)
		require.NoError(t, srv.Connect(t.Context()))
		srv.Server.mu.Lock()
		srv.calls++
		srv.called = time.Now().Add(-time.Hour)
		srv.Server.mu.Unlock()
		wait, rested := srv.rest(srv.connection())
		assert.False(t, rested)
		assert.Equal(t, time.Second, wait)
		srv.done()
	})
}

// Without reconnecting, a listing that fails is not repeated before something changes.
func TestListingThatFailsIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			if lists++; lists > 1 {
				panic("no list today")
			}
		})
		srv := started(t, config.Server{Name: "s", InProcess: mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))}, config.Limits{Reconnect: -1})
		for n := range 3 {
			srv.connection().tellChanged()
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.Equal(t, 2+n, lists)
			assert.Equal(t, Degraded, srv.Status().State)
		}
	})
}

// A server is told of the extensions of the host beside our own.
func TestSupportedExtensions(t *testing.T) {
	t.Parallel()
	assert.Equal(t, map[string]any{skillsExtension: struct{}{}}, (&Config{}).supported())
	for grant, has := range map[string]bool{config.ClientCredentials: true, "authorization_code": false} {
		all := (&Config{Server: config.Server{OAuth: &config.OAuth{GrantType: grant}}, Extensions: map[string]any{"x": 1, skillsExtension: 2}}).supported()
		assert.Equal(t, 1, all["x"])
		assert.Equal(t, 2, all[skillsExtension], "the host's counts")
		_, ok := all[clientCredentials]
		assert.Equal(t, has, ok, fmt.Sprint(grant))
	}
}

// A status says how long the last attempt took, whatever came of it.
func TestHowLongAnAttemptTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := time.Second
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			if time.Sleep(slow); slow > time.Second {
				panic("no list today")
			}
		})
		srv := newTest(t, config.Server{Name: "s", InProcess: mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))}, config.Limits{Reconnect: time.Hour})
		assert.Zero(t, srv.Status().Took)
		require.NoError(t, srv.Start(t.Context()))
		assert.Equal(t, time.Second, srv.Status().Took)
		slow = 3 * time.Second
		time.Sleep(time.Minute)
		require.Error(t, srv.Restart(t.Context()))
		assert.Equal(t, Down, srv.Status().State)
		assert.Equal(t, 3*time.Second, srv.Status().Took)
	})
}
