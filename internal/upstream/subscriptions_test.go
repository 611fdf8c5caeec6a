package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
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
		srv := started(t, cfg, config.Limits{MaxSubscriptions: 2, Reconnect: time.Millisecond})
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

		lost := srv.connection()
		srv.lose(lost, errors.New("it is gone"))
		var late mcp.JSONRPCNotification
		late.Params.AdditionalFields = map[string]any{"uri": "mem://a/late"}
		srv.hear(lost, late)
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
		srv := started(t, cfg, config.Limits{MaxSubscriptions: 3, Reconnect: time.Millisecond})
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
	srv := started(t, config.Server{Name: "b", InProcess: b.MCPServer}, config.Limits{MaxSubscriptions: 1})
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

// What is below a URI is a part of it, and nothing that merely begins as it does.
func TestPartsOfAResource(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]bool{
		"mem://a/b": true, "mem://a/b/c": true, "mem://a//": true, "mem://a": false, "mem://a/": false, "mem://ab": false, "mem://b/a": false, "mem://": false, "": false, "/b": false,
	} {
		assert.Equal(t, want, isPart(uri, "mem://a"), uri)
		assert.Equal(t, want, isPart(uri, "mem://a/"), uri)
		assert.False(t, isPart(uri, ""), uri)
	}
}

// A listener has sixty-four updates waiting, each once. With another one, all of them stand for
// the resource that it listens to; who has left, and who listens to another one, is told nothing.
func TestUpdatesThatWait(t *testing.T) {
	t.Parallel()
	s := newTest(t, inProcess("s"), config.Limits{})
	waiting := func(n int) []string {
		l := &listener{telling: true}
		u := &subscription{uri: "mem://a", listeners: map[*listener]struct{}{l: {}}}
		l.of = u
		s.Server.mu.Lock()
		defer s.Server.mu.Unlock()
		for i := range n {
			s.tellLocked(u, fmt.Sprint("mem://a/", i))
			if i < 64 {
				s.tellLocked(u, fmt.Sprint("mem://a/", i/2)) // once more
			}
		}
		return l.waiting
	}
	assert.Equal(t, []string{"mem://a/0", "mem://a/1", "mem://a/2"}, waiting(3))
	assert.Len(t, waiting(64), 64)
	assert.Equal(t, []string{"mem://a"}, waiting(65))
	assert.Equal(t, []string{"mem://a", "mem://a/65"}, waiting(66))
	s.Close()
	assert.Empty(t, waiting(1), "nobody is told after the end")
}

// A function that panics is told of in the log, and is called again.
func TestListenerPanics(t *testing.T) {
	t.Parallel()
	var log mcptest.Log
	b := newBoard()
	srv := newTestOf(t, Config{Server: config.Server{Name: "b", InProcess: b.MCPServer}, Log: slog.New(slog.NewTextHandler(&log, nil))}, config.Limits{MaxSubscriptions: 1})
	require.NoError(t, srv.Start(t.Context()))
	told := make(chan string, 9)
	_, err := srv.Subscribe(t.Context(), nil, "mem://a", func(uri string) {
		told <- uri
		panic("the host's")
	})
	require.NoError(t, err)
	for _, uri := range []string{"mem://a/1", "mem://a/2"} {
		b.update("mem://a", uri)
		assert.Equal(t, uri, <-told)
	}
	mcptest.Soon(t, func() bool { return strings.Count(log.String(), "the function for updates of a resource") == 2 })
}

// Listens are the streams that a server was asked for.
type listens struct {
	mu   sync.Mutex
	at   []time.Time
	last atomic.Int64 // how long they do, a time.Duration
}

func (l *listens) times() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.at)
}

// endsStreams returns the configuration of a server whose streams end after some time, 0 at first.
func endsStreams(s *wire) (config.Server, *listens) {
	cfg, to := answeredBy(s), new(listens)
	inner := cfg.HTTPClient.Transport
	cfg.HTTPClient = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get(mcp.HeaderMethod) != "subscriptions/listen" {
			return inner.RoundTrip(r)
		}
		to.mu.Lock()
		to.at = append(to.at, time.Now())
		to.mu.Unlock()
		id := idOf(r)
		said, out := io.Pipe()
		go func() {
			fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{%q:%s}}}\n\n", mcp.MetaKeySubscriptionID, id)
			select {
			case <-time.After(time.Duration(to.last.Load())):
			case <-r.Context().Done():
			}
			fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\"}}\n\n", id)
			out.Close()
		}()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: said, Request: r}, nil
	})}
	return cfg, to
}

// A subscription that ends again and again is made again less and less often, and as often as at
// first once it has lasted. The listeners are told each time.
func TestSubscriptionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := both()
		s.events = false
		s.discovered = discovers(newVersions, `{"tools":{},"resources":{"subscribe":true}}`)
		s.results["resources/list"], s.results["resources/templates/list"] = `{"resources":[]}`, `{"resourceTemplates":[]}`
		cfg, listens := endsStreams(s)
		srv := newTest(t, cfg, config.Limits{MaxSubscriptions: 1, Reconnect: time.Second})
		require.NoError(t, srv.Start(t.Context()))
		var told atomic.Int32
		stop, err := srv.Subscribe(t.Context(), nil, "mem://a", func(string) { told.Add(1) })
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Len(t, listens.times(), 5)
		for i, want := range []time.Duration{1, 2, 4, 8} {
			assert.Equal(t, want*time.Second, listens.times()[i+1].Sub(listens.times()[i]))
		}
		assert.Equal(t, int32(4), told.Load())
		listens.last.Store(int64(maxBackoff))
		time.Sleep(11*time.Second + maxBackoff) // the sixth begins after 16 seconds, and lasts
		synctest.Wait()
		require.Len(t, listens.times(), 6)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, listens.times(), 7, "as soon as at first")
		stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Len(t, listens.times(), 7)
		srv.Server.mu.Lock()
		assert.Empty(t, srv.subscriptions)
		srv.Server.mu.Unlock()
	})
}

// So it is with the subscription to changes of the lists, and after each new one they are listed.
func TestSubscriptionToListsThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := both()
		s.events = false
		cfg, listens := endsStreams(s)
		srv := started(t, cfg, config.Limits{Reconnect: time.Second})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Len(t, listens.times(), 5)
		for i, want := range []time.Duration{1, 2, 4, 8} {
			assert.Equal(t, want*time.Second, listens.times()[i+1].Sub(listens.times()[i]))
		}
		_, lists := srv.listed()
		assert.Contains(t, []int{5, 6}, lists, "the first one may end before it is heard")
		listens.last.Store(int64(maxBackoff))
		time.Sleep(11*time.Second + maxBackoff)
		synctest.Wait()
		require.Len(t, listens.times(), 6)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, listens.times(), 7)
	})
}

// An acknowledgement is of the stream with its id. If it names what is told of, and that is not the
// resource, the server does not agree.
func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id     any
		fields map[string]any
		is     bool
		agreed bool
	}{
		"plain":         {7, nil, true, true},
		"of another":    {8, nil, false, false},
		"of none":       {nil, nil, false, false},
		"names it":      {7, map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"mem://b", "mem://a"}}}, true, true},
		"names another": {7, map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"mem://b"}}}, true, false},
		"names nothing": {7, map[string]any{"notifications": map[string]any{}}, true, false},
		"no filter":     {7, map[string]any{"notifications": 5}, true, true},
	} {
		ctx, refuse := context.WithCancelCause(t.Context())
		var streams resourceStreams
		agreed := 0
		st := &resourceStream{uri: "mem://a", agreed: func() { agreed++ }, refuse: refuse, waiting: &streams}
		r := st.ask(transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(7)), Params: map[string]json.RawMessage{"_meta": json.RawMessage(`{"a":1}`)}})
		assert.Equal(t, "subscriptions/listen", r.Header.Get(mcp.HeaderMethod), name)
		params, err := json.Marshal(r.Params)
		require.NoError(t, err)
		assert.JSONEq(t, `{"_meta":{"a":1},"notifications":{"resourceSubscriptions":["mem://a"]}}`, string(params))
		n := mcp.JSONRPCNotification{Notification: mcp.Notification{Params: mcp.NotificationParams{Meta: map[string]any{mcp.MetaKeySubscriptionID: test.id}, AdditionalFields: test.fields}}}
		assert.Equal(t, test.is, streams.acknowledged(n), name)
		assert.Equal(t, test.agreed, agreed == 1, name)
		if test.is && !test.agreed {
			assert.Equal(t, errNotAgreed, context.Cause(ctx), name)
		} else {
			assert.NoError(t, ctx.Err(), name)
		}
		assert.Equal(t, !test.is, len(streams.byID) == 1, name)
		st.forget()
		assert.Empty(t, streams.byID, name)
		refuse(nil)
	}
}

// An idle server keeps the connection that a subscription needs.
func TestNoRestWithASubscription(t *testing.T) {
	t.Parallel()
	overBoards(t, func(t *testing.T, b *board, cfg config.Server) {
		if cfg.InProcess != nil {
			t.Skip("it never rests")
		}
		srv := started(t, cfg, config.Limits{MaxSubscriptions: 1, IdleTimeout: time.Hour})
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
	plain := started(t, config.Server{Name: "p", InProcess: mcpserver.NewMCPServer("p", "1", mcpserver.WithResourceCapabilities(false, true))}, config.Limits{MaxSubscriptions: 9})
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
		srv := started(t, config.Server{Name: "s", InProcess: s, Protocol: protocol}, config.Limits{MaxSubscriptions: 1})
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

// Who comes when the server is just closed is told that.
func TestSubscriptionAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("s", "1", mcpserver.WithResourceCapabilities(true, false))
	srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{MaxSubscriptions: 9})
	c := srv.connection()
	srv.Close()
	assert.Equal(t, ErrClosed, srv.join(t.Context(), c, "mem://a", &listener{}))
	assert.Empty(t, srv.subscriptions)
}
