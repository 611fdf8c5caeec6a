package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that is closed while its child waits for its turn is closed, and not canceled.
func TestClosedBeforeItsTurn(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 0
	srv := newTestOf(t, Config{Server: config.Server{Name: "s", Command: "no-such-program"}, Turns: turns}, config.Limits{})
	start := srv.Begin()
	require.Eventually(t, func() bool { return errors.Is(srv.Status().Err, errQueued) }, 20*time.Second, time.Millisecond)
	srv.Close()
	assert.Equal(t, ErrClosed, start(t.Context()))
	assert.Equal(t, ErrClosed, srv.Status().Err)
	assert.Empty(t, turns.waiting)
}

// Waiting for its turn is no part of an attempt: the status tells how long the attempt itself
// took, and no longer that it waits.
func TestTurnIsNoPartOfTheAttempt(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 0
	cfg := child(t, "s", "plain")
	srv := newTestOf(t, Config{Server: cfg, Turns: turns}, config.Limits{})
	start := srv.Begin()
	require.Eventually(t, func() bool { return errors.Is(srv.Status().Err, errQueued) }, 20*time.Second, time.Millisecond)
	long := time.Hour
	srv.Server.mu.Lock()
	srv.status.entered = srv.status.entered.Add(-long)
	srv.turn.change(func() { turns.free = 1 })
	srv.Server.mu.Unlock()
	require.NoError(t, start(t.Context()))
	assert.Less(t, srv.Status().Took, long)
	assert.NoError(t, srv.Status().Err)
	mcptest.Soon(t, func() bool { turns.mu.Lock(); defer turns.mu.Unlock(); return turns.free == 1 })
}

// A server that is closed in the moment in which it is connected keeps no connection.
func TestClosedWhileItConnects(t *testing.T) {
	t.Parallel()
	s := &slowServer{MCPServer: mcptest.Server("s"), during: func() {}}
	l := newTest(t, config.Server{Name: "limits"}, config.Limits{}).limits
	var srv *Server
	srv = New(Config{Server: config.Server{Name: "s", InProcess: s}}, l, func(context.Context, List) error {
		srv.end()
		return nil
	})
	assert.Equal(t, ErrClosed, srv.Start(t.Context()))
	assert.Equal(t, 1, srv.Status().Failures)
	srv.Close()
	assert.Zero(t, s.registered)
}

// A plan for the next attempt that is given up while it begins does nothing.
func TestRetryIsGivenUpAsItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTest(t, inProcess("s"), config.Limits{Reconnect: time.Second})
		s.Server.mu.Lock()
		s.status.Failures = 1
		s.retryLocked()
		time.Sleep(time.Until(s.status.Retry)) // it begins, and waits for mu
		s.stopRetryLocked()
		s.Server.mu.Unlock()
		synctest.Wait()
		assert.Equal(t, Configured, s.Status().State)
	})
}

// A server that wants a login over the older transport wants a login, whatever it says over the
// newer one. Else both errors are told.
func TestErrorsOfBothTransports(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusUnauthorized: errUnauthorized.Error(),
		http.StatusNotFound:     "and over the older transport: ",
	} {
		srv := newTest(t, answeredBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.WriteHeader(status)
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
		})), config.Limits{})
		err := srv.Start(t.Context())
		assert.ErrorContains(t, err, want)
		assert.Equal(t, status == http.StatusUnauthorized, errors.Is(err, ErrUnauthorized))
		assert.Equal(t, status != http.StatusUnauthorized, strings.Contains(err.Error(), "older transport"), err)
	}
}

// serveFickle offers protocol 2026-07-28, refuses it, and ends at the word initialize.
func serveFickle() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var in struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &in)
		switch in.Method {
		case "server/discover":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", in.ID, discovers(newVersions, `{"tools":{}}`))
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`+"\n", in.ID)
		case "initialize":
			os.Exit(5)
		}
	}
}

// A child that refuses the protocol that it offers, and ends when it is spoken to in another one,
// is known by both.
func TestChildEndsWithTheOlderProtocol(t *testing.T) {
	t.Parallel()
	err := newTest(t, child(t, "fickle", "fickle"), config.Limits{Reconnect: -1}).Start(t.Context())
	require.ErrorContains(t, err, "and with a protocol before 2026-07-28: exit status 5")
	assert.ErrorContains(t, err, "unsupported protocol version")
}

// A server is spoken to in an older protocol only if it refuses a newer one that nobody asked for.
func TestRefusalsThatAreNotOfTheProtocol(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]string{"older": "", "asked for": mcp.ProtocolVersion20260728} {
		s := both()
		if name == "older" {
			s.discovered = ""
		}
		s.results = nil
		s.lacks = func(w http.ResponseWriter, _ json.RawMessage, _ string) {
			http.Error(w, "no list", http.StatusBadRequest)
		}
		srv := newTest(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), Protocol: protocol}, config.Limits{Reconnect: -1})
		err := srv.Start(t.Context())
		assert.ErrorContains(t, err, "no list", name)
		assert.NotContains(t, err.Error(), "with a protocol before", name)
		assert.LessOrEqual(t, s.times("initialize")+s.times("initialize 2025-11-25"), 1, name)
	}
}

// Only an error of a deadline is told to be late.
func TestLate(t *testing.T) {
	t.Parallel()
	assert.NoError(t, late(nil, time.Second))
	assert.Equal(t, io.EOF, late(io.EOF, time.Second))
	err := late(fmt.Errorf("x: %w", context.DeadlineExceeded), time.Second)
	assert.EqualError(t, err, "no answer within 1s: x: context deadline exceeded")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// A server whose configuration is invalid, or that must not be tried again, has no next attempt;
// nor has one that asks to wait before that.
func TestWhenIsTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			reconnect time.Duration
			err       error
			invalid   error
			least     time.Duration // 0: none
		}{
			"soon":    {time.Second, io.EOF, nil, 800 * time.Millisecond},
			"never":   {-1, io.EOF, nil, 0},
			"invalid": {time.Second, io.EOF, io.EOF, 0},
			"asked":   {time.Second, &busyError{429, time.Minute}, nil, time.Minute},
		} {
			s := newTestOf(t, Config{Server: config.Server{Name: "s"}, Invalid: test.invalid}, config.Limits{Reconnect: test.reconnect})
			s.Server.mu.Lock()
			s.failLocked(test.err)
			retry := s.status.Retry
			s.Server.mu.Unlock()
			if test.least == 0 {
				assert.Zero(t, retry, name)
			} else {
				assert.InDelta(t, test.least, time.Until(retry), float64(201*time.Millisecond), name)
				assert.GreaterOrEqual(t, time.Until(retry), test.least, name)
			}
			s.Close()
		}
	})
}
