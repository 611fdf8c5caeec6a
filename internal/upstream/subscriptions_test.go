package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A board is a server with resources that knows who is subscribed to them.
type board struct {
	*mcpserver.MCPServer
	changed chan struct{} // capacity 1: subscribed has changed

	mu         sync.Mutex
	subscribed map[string]map[any]mcpserver.ClientSession // by URI, and by session or request
	begun      map[string]int                             // subscriptions so far, by URI
	over       map[string]bool                            // sessions that have ended
	twice      []string                                   // URIs that one session was subscribed to twice
}

func newBoard() *board {
	b := &board{changed: make(chan struct{}, 1), subscribed: make(map[string]map[any]mcpserver.ClientSession), begun: make(map[string]int), over: make(map[string]bool)}
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeSubscribe(func(ctx context.Context, _ any, r *mcp.SubscribeRequest) {
		s := mcpserver.ClientSessionFromContext(ctx)
		b.add(r.Params.URI, s.SessionID(), s)
	})
	hooks.AddBeforeUnsubscribe(func(ctx context.Context, _ any, r *mcp.UnsubscribeRequest) {
		b.remove(r.Params.URI, mcpserver.ClientSessionFromContext(ctx).SessionID())
	})
	hooks.AddBeforeSubscriptionsListen(func(ctx context.Context, _ any, r *mcp.SubscriptionsListenRequest) {
		for _, uri := range r.Params.Notifications.ResourceSubscriptions {
			b.add(uri, ctx, mcpserver.ClientSessionFromContext(ctx))
			context.AfterFunc(ctx, func() { b.remove(uri, ctx) })
		}
	})
	hooks.AddOnUnregisterSession(func(_ context.Context, s mcpserver.ClientSession) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.over[s.SessionID()] = true
		for uri := range b.subscribed {
			b.removeLocked(uri, s.SessionID())
		}
	})
	b.MCPServer = mcpserver.NewMCPServer("board", "1", mcpserver.WithResourceCapabilities(true, true), mcpserver.WithHooks(hooks))
	return b
}

func (b *board) add(uri string, by any, s mcpserver.ClientSession) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over[s.SessionID()] { // the request was given up
		return
	}
	if b.subscribed[uri] == nil {
		b.subscribed[uri] = make(map[any]mcpserver.ClientSession)
	}
	if b.subscribed[uri][by] != nil {
		b.twice = append(b.twice, uri)
	}
	b.subscribed[uri][by] = s
	b.begun[uri]++
	tell(b.changed)
}

func (b *board) remove(uri string, by any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeLocked(uri, by)
}

func (b *board) removeLocked(uri string, by any) {
	delete(b.subscribed[uri], by)
	tell(b.changed)
}

// count returns how many subscriptions there are to a URI, and how many there have been.
func (b *board) count(uri string) (now, ever int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subscribed[uri]), b.begun[uri]
}

// await returns when there are n subscriptions to a URI.
func (b *board) await(t *testing.T, uri string, n int) {
	t.Helper()
	for late := time.After(20 * time.Second); ; {
		if now, _ := b.count(uri); now == n {
			return
		}
		select {
		case <-b.changed:
		case <-late:
			now, _ := b.count(uri)
			t.Fatalf("there are %d subscriptions to %s, not %d", now, uri, n)
		}
	}
}

// update tells those that are subscribed to of that uri has changed.
func (b *board) update(of, uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subscribed[of] {
		n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
			Method: mcp.MethodNotificationResourceUpdated, Params: mcp.NotificationParams{AdditionalFields: map[string]any{"uri": uri}},
		}}
		if s.SessionID() == "" {
			s.NotificationChannel() <- n
		} else {
			_ = b.SendNotificationToSpecificClient(s.SessionID(), n.Method, n.Params.AdditionalFields)
		}
	}
}

// overBoards runs a test with a board in this process and over HTTP, with both generations of
// the protocol.
func overBoards(t *testing.T, test func(t *testing.T, b *board, cfg config.Server)) {
	for _, protocol := range []string{mcp.LATEST_LEGACY_PROTOCOL_VERSION, mcp.ProtocolVersion20260728} {
		t.Run(protocol+" in process", func(t *testing.T) {
			b := newBoard()
			test(t, b, config.Server{Name: "b", InProcess: b.MCPServer, Protocol: protocol})
		})
		t.Run(protocol+" http", func(t *testing.T) {
			b := newBoard()
			web := mcpserver.NewStreamableHTTPServer(b.MCPServer, mcpserver.WithStateful(true))
			s := httptest.NewServer(web)
			t.Cleanup(s.Close)
			test(t, b, config.Server{Name: "b", URL: s.URL, Protocol: protocol})
		})
	}
}

func telling(to chan string) func(string) { return func(uri string) { to <- uri } }

// However many listeners there are, the server has one subscription, until the last leaves. It
// is made again over a new connection, and the listeners are told that they may have missed
// something.
func TestSubscriptionIsShared(t *testing.T) {
	t.Parallel()
	overBoards(t, func(t *testing.T, b *board, cfg config.Server) {
		srv := started(t, cfg, Limits{MaxSubscriptions: 2, Reconnect: time.Millisecond})
		first, second, other := make(chan string, 9), make(chan string, 9), make(chan string, 9)
		stopFirst, err := srv.Subscribe(t.Context(), nil, "mem://a", telling(first))
		require.NoError(t, err)
		stopSecond, err := srv.Subscribe(t.Context(), nil, "mem://a", telling(second))
		require.NoError(t, err)
		stopOther, err := srv.Subscribe(t.Context(), nil, "mem://ab", telling(other))
		require.NoError(t, err)
		now, ever := b.count("mem://a")
		assert.Equal(t, []int{1, 1}, []int{now, ever})
		_, err = srv.Subscribe(t.Context(), nil, "mem://c", telling(other))
		assert.ErrorContains(t, err, "limit of 2, Limits.MaxSubscriptions")

		b.update("mem://a", "mem://a")
		b.update("mem://a", "mem://a/part")
		for _, to := range []chan string{first, second} {
			assert.Equal(t, "mem://a", <-to)
			assert.Equal(t, "mem://a/part", <-to)
		}
		stopFirst()
		stopFirst()
		b.update("mem://a", "mem://a")
		assert.Equal(t, "mem://a", <-second)

		srv.lose(srv.connection(), errors.New("it is gone"))
		assert.Equal(t, "mem://a", <-second)
		assert.Equal(t, "mem://ab", <-other)
		b.await(t, "mem://a", 1)
		b.update("mem://a", "mem://a")
		assert.Equal(t, "mem://a", <-second)
		stopSecond()
		b.await(t, "mem://a", 0)
		b.update("mem://ab", "mem://ab")
		assert.Equal(t, "mem://ab", <-other)
		stopOther()
		b.await(t, "mem://ab", 0)
		assert.Empty(t, first)
		assert.Empty(t, second)
		assert.Empty(t, other)
		again, err := srv.Subscribe(t.Context(), nil, "mem://a", telling(first))
		require.NoError(t, err)
		b.await(t, "mem://a", 1)
		again()
	})
}

// While some come and go and the connection is lost again and again, the server never has two
// subscriptions of one session to one resource; who is subscribed at the end is told, and
// when all have left, nothing is left.
func TestSubscriptionStorm(t *testing.T) {
	t.Parallel()
	overBoards(t, func(t *testing.T, b *board, cfg config.Server) {
		srv := started(t, cfg, Limits{MaxSubscriptions: 3, Reconnect: time.Millisecond})
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				uri := fmt.Sprint("mem://", i%3)
				for n := range 15 {
					ctx, cancel := context.WithCancel(t.Context())
					if n%5 == 4 {
						cancel()
					}
					stop, err := srv.Subscribe(ctx, nil, uri, func(string) {})
					if err == nil {
						srv.Server.mu.Lock()
						u := srv.subscriptions[uri]
						assert.True(t, u != nil && u.ctx.Err() == nil, "there is one to be told by")
						srv.Server.mu.Unlock()
						stop()
					}
					cancel()
					if i == 0 && n%3 == 0 {
						if c := srv.connection(); c != nil {
							srv.lose(c, errors.New("it is gone"))
						}
					}
				}
			})
		}
		wg.Wait()
		told := make(chan string, 9)
		var stop func()
		require.Eventually(t, func() bool { // it may be connecting
			var err error
			stop, err = srv.Subscribe(t.Context(), nil, "mem://0", telling(told))
			return err == nil
		}, 20*time.Second, time.Millisecond)
		b.await(t, "mem://0", 1)
		b.update("mem://0", "mem://0")
		assert.Equal(t, "mem://0", <-told)
		stop()
		for i := range 3 {
			b.await(t, fmt.Sprint("mem://", i), 0)
		}
		require.Eventually(t, func() bool {
			srv.Server.mu.Lock()
			defer srv.Server.mu.Unlock()
			return len(srv.subscriptions) == 0
		}, 20*time.Second, time.Millisecond)
		assert.Empty(t, b.twice)
	})
}

// A listener that takes its time is told of what has changed meanwhile, each once and not
// without end. Nobody waits for it.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	b := newBoard()
	srv := started(t, config.Server{Name: "b", InProcess: b.MCPServer}, Limits{MaxSubscriptions: 1})
	begun, release, told := make(chan struct{}, 1), make(chan struct{}), make(chan string, 200)
	_, err := srv.Subscribe(t.Context(), nil, "mem://a", func(uri string) {
		tell(begun)
		<-release
		told <- uri
	})
	require.NoError(t, err)
	quick := make(chan string, 200)
	_, err = srv.Subscribe(t.Context(), nil, "mem://a", telling(quick))
	require.NoError(t, err)
	b.update("mem://a", "mem://a/first")
	<-begun
	assert.Equal(t, "mem://a/first", <-quick)
	for i := range 64 + 1 {
		for range 2 {
			b.update("mem://a", fmt.Sprint("mem://a/", i))
		}
		for range 2 {
			if uri := <-quick; uri == fmt.Sprint("mem://a/", i) {
				break
			}
		}
	}
	close(release)
	assert.Equal(t, "mem://a/first", <-told)
	assert.Equal(t, "mem://a", <-told, "for all parts that wait")
}

// An idle server keeps the connection that a subscription needs.
func TestNoRestWithASubscription(t *testing.T) {
	t.Parallel()
	overBoards(t, func(t *testing.T, b *board, cfg config.Server) {
		if cfg.InProcess != nil {
			t.Skip("it never rests")
		}
		srv := started(t, cfg, Limits{MaxSubscriptions: 1, Idle: time.Hour})
		stop, err := srv.Subscribe(t.Context(), nil, "mem://a", func(string) {})
		require.NoError(t, err)
		c, _ := srv.conn.Peek()
		rests := func() bool {
			srv.mu.Lock()
			srv.called = time.Time{} // long ago
			srv.mu.Unlock()
			_, rests := srv.rest(c)
			return rests
		}
		assert.False(t, rests())
		assert.Equal(t, Ready, srv.Status().State)
		stop()
		require.Eventually(t, rests, 20*time.Second, time.Millisecond)
		assert.Equal(t, Cached, srv.Status().State)
	})
}

// A server that has no subscriptions, refuses one, or does not agree to it, leaves nothing.
func TestSubscriptionIsRefused(t *testing.T) {
	t.Parallel()
	plain := started(t, config.Server{Name: "p", InProcess: mcpserver.NewMCPServer("p", "1", mcpserver.WithResourceCapabilities(false, true))}, Limits{MaxSubscriptions: 9})
	_, err := plain.Subscribe(t.Context(), nil, "mem://a", func(string) {})
	assert.ErrorIs(t, err, errNoSubscriptions)
	hooks := &mcpserver.Hooks{}
	refuses := true
	hooks.AddBeforeSubscribe(func(_ context.Context, _ any, r *mcp.SubscribeRequest) {
		if refuses {
			r.Params.URI = ""
		}
	})
	hooks.AddBeforeSubscriptionsListen(func(_ context.Context, _ any, r *mcp.SubscriptionsListenRequest) {
		if refuses {
			r.Params.Notifications.ResourceSubscriptions = nil
		}
	})
	s := mcpserver.NewMCPServer("s", "1", mcpserver.WithResourceCapabilities(true, true), mcpserver.WithHooks(hooks))
	for protocol, want := range map[string]string{mcp.LATEST_LEGACY_PROTOCOL_VERSION: "uri is required", mcp.ProtocolVersion20260728: errNotAgreed.Error()} {
		refuses = true
		srv := started(t, config.Server{Name: "s", InProcess: s, Protocol: protocol}, Limits{MaxSubscriptions: 1})
		barred := errors.New("barred")
		_, err := srv.Subscribe(t.Context(), func() error { return barred }, "mem://a", func(string) {})
		assert.ErrorIs(t, err, barred)
		_, err = srv.Subscribe(t.Context(), nil, "mem://a", func(string) {})
		assert.ErrorContains(t, err, want)
		refuses = false
		stop, err := srv.Subscribe(t.Context(), nil, "mem://b", func(string) {})
		require.NoError(t, err)
		stop()
		srv.Close()
		_, err = srv.Subscribe(t.Context(), nil, "mem://b", func(string) {})
		assert.ErrorIs(t, err, ErrClosed)
	}
}
