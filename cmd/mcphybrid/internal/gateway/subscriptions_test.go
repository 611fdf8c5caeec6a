package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A board is a server that knows how many subscriptions there are to its resources.
type board struct {
	*server.MCPServer
	mu         sync.Mutex
	subscribed map[string]int
	sessions   map[string]bool
}

func newBoard(name string) *board {
	b := &board{subscribed: make(map[string]int), sessions: make(map[string]bool)}
	hooks := &server.Hooks{}
	add := func(ctx context.Context, uri string, n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.subscribed[uri] += n
		b.sessions[server.ClientSessionFromContext(ctx).SessionID()] = true
	}
	hooks.AddBeforeSubscribe(func(ctx context.Context, _ any, r *mcp.SubscribeRequest) { add(ctx, r.Params.URI, 1) })
	hooks.AddBeforeUnsubscribe(func(ctx context.Context, _ any, r *mcp.UnsubscribeRequest) { add(ctx, r.Params.URI, -1) })
	b.MCPServer = server.NewMCPServer(name, "1", server.WithResourceCapabilities(true, true), server.WithHooks(hooks))
	for _, uri := range []string{"mem://a", "mem://b"} {
		b.AddResource(mcp.NewResource(uri, uri), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { return nil, nil })
	}
	return b
}

func (b *board) count(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.subscribed[uri]
}

func (b *board) update(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.sessions {
		_ = b.SendNotificationToSpecificClient(id, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
	}
}

func (b *board) config(name string) mcphybrid.ServerConfig {
	return mcphybrid.ServerConfig{Name: name, InProcess: b.MCPServer, Protocol: mcp.LATEST_LEGACY_PROTOCOL_VERSION}
}

// subscribe subscribes a client to a resource, until stop is called, as its protocol has it.
func subscribe(t *testing.T, c *client.Client, told <-chan mcp.JSONRPCNotification, uri string) (stop func(), err error) {
	t.Helper()
	if c.ProtocolVersion() < mcp.LATEST_PROTOCOL_VERSION {
		var r mcp.SubscribeRequest
		r.Params.URI = uri
		return func() {
			var r mcp.UnsubscribeRequest
			r.Params.URI = uri
			assert.NoError(t, c.Unsubscribe(t.Context(), r))
		}, c.Subscribe(within(t), r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	}()
	stop = func() { cancel(); <-ended }
	for {
		select {
		case n := <-told:
			if strings.HasSuffix(n.Method, "/list_changed") { // of the servers' start
				continue
			}
			require.Equal(t, mcp.MethodNotificationSubscriptionsAcknowledged, n.Method, "it comes first")
			if agreed := n.Params.AdditionalFields["notifications"].(map[string]any)["resourceSubscriptions"]; agreed != nil {
				assert.Equal(t, []any{uri}, agreed)
				return stop, nil
			}
		case <-ended: // mcp-go ends a stream with nothing to tell at once: its acknowledgement may come later, or never
			return stop, fmt.Errorf("not agreed to")
		}
	}
}

// overPipes serves one client over standard input and output.
func overPipes(t *testing.T, servers ...mcphybrid.ServerConfig) connector {
	return func(t *testing.T, more ...client.ClientOption) *client.Client {
		return through(newGateway(gatewayOptions{servers: servers, wait: patience, grace: time.Second, logLevel: mcp.LoggingLevelInfo, log: slog.New(slog.DiscardHandler)}))(t, more...)
	}
}

// through serves one client of a gateway over standard input and output.
func through(g *gateway) connector {
	return func(t *testing.T, more ...client.ClientOption) *client.Client {
		in, toGateway := io.Pipe()
		fromGateway, out := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- g.serveStdio(ctx, in, out) }()
		t.Cleanup(func() {
			cancel()
			assert.NoError(t, <-ended)
			g.close()
			_ = toGateway.Close()
		})
		return client.NewClient(transport.NewIO(fromGateway, toGateway, io.NopCloser(&emptyReader{})), more...)
	}
}

type emptyReader struct{}

func (*emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// A client of either generation, over either transport, is told of updates of what it is
// subscribed to, under its own URIs, until it ends that. The server has one subscription.
func TestUpdatesReachSubscribers(t *testing.T) {
	for generation, opts := range generations {
		for _, over := range []string{"http", "stdio"} {
			t.Run(over+" "+generation, func(t *testing.T) {
				b, other := newBoard("b"), newBoard("other")
				servers := []mcphybrid.ServerConfig{b.config("b"), other.config("other")}
				open := overPipes(t, servers...)
				if over == "http" {
					_, url, _ := startHTTP(t, gatewayOptions{servers: servers}, web.Options{})
					open = overHTTP(url)
					if generation == "legacy" {
						open = overHTTP(url, transport.WithContinuousListening())
					}
				}
				c, told := connect(t, open, "test", opts...)
				if over == "stdio" {
					_, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}) // the servers are there
					require.NoError(t, err)
				}
				for len(told) > 0 {
					<-told
				}
				const a = "mcphybrid://b/mem://a"
				_, err := subscribe(t, c, told, "mcphybrid://b/mem://c")
				require.Error(t, err)
				stop, err := subscribe(t, c, told, a)
				require.NoError(t, err)
				if generation == "legacy" {
					_, err = subscribe(t, c, told, a) // once more is no other one
					require.NoError(t, err)
				}
				assert.Equal(t, 1, b.count("mem://a"))
				assert.Zero(t, other.count("mem://a"))
				other.update("mem://a")
				b.update("mem://b")
				b.update("mem://a")
				n := wait(t, told, mcp.MethodNotificationResourceUpdated)
				assert.Equal(t, a, n.Params.AdditionalFields["uri"])
				assert.Equal(t, generation == "modern", n.Params.Meta[mcp.MetaKeySubscriptionID] != nil)
				stop()
				for ctx := within(t); b.count("mem://a") != 0; {
					require.NoError(t, ctx.Err())
				}
				for len(told) > 0 { // such as an acknowledgement that came late
					assert.NotEqual(t, mcp.MethodNotificationResourceUpdated, (<-told).Method)
				}
			})
		}
	}
}

// One request may ask for several resources: the client is told which it has, and of each.
func TestSubscriptionsOfOneRequest(t *testing.T) {
	b := newBoard("b")
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{b.config("b")}}, web.Options{})
	c, told := connect(t, overHTTP(url), "test", generations["modern"]...)
	both := []string{"mcphybrid://b/mem://a", "mcphybrid://b/mem://b"}
	stop, err := c.ListenAsync(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: append(both, "mcphybrid://b/mem://c")}, func(error) {})
	require.NoError(t, err)
	n := wait(t, told, mcp.MethodNotificationSubscriptionsAcknowledged)
	assert.Equal(t, map[string]any{"resourceSubscriptions": []any{both[0], both[1]}}, n.Params.AdditionalFields["notifications"])
	for i, uri := range []string{"mem://b", "mem://a"} {
		b.update(uri)
		assert.Equal(t, both[1-i], wait(t, told, mcp.MethodNotificationResourceUpdated).Params.AdditionalFields["uri"])
	}
	stop()
	for ctx := within(t); b.count("mem://a")+b.count("mem://b") != 0; {
		require.NoError(t, ctx.Err(), "the server still has them")
	}
}

// A client is told of its own subscriptions only, and can't have one to what it may not read.
// What a client had ends with its session.
func TestSubscriptionsAreOnesOwn(t *testing.T) {
	for generation, opts := range generations {
		t.Run(generation, func(t *testing.T) {
			b := newBoard("b")
			file := filepath.Join(t.TempDir(), "tokens.json")
			require.NoError(t, os.WriteFile(file, []byte(`{"tokens": [{"name": "ann", "token": "anns-own-token"}, {"name": "bob", "token": "bobs-own-token", "deny": ["b/mem://a"]}]}`), 0o600))
			_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{b.config("b")}}, web.Options{TokenFile: file})
			as := func(token string) connector {
				more := []transport.StreamableHTTPCOption{transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token})}
				if generation == "legacy" {
					more = append(more, transport.WithContinuousListening())
				}
				return overHTTP(url, more...)
			}
			ann, toldAnn := connect(t, as("anns-own-token"), "ann", opts...)
			bob, toldBob := connect(t, as("bobs-own-token"), "bob", opts...)
			_, err := subscribe(t, ann, toldAnn, "mem://a")
			require.NoError(t, err)
			_, err = subscribe(t, bob, toldBob, "mem://a")
			assert.Error(t, err)
			_, err = subscribe(t, bob, toldBob, "mem://b")
			require.NoError(t, err)
			b.update("mem://a")
			b.update("mem://b")
			assert.Equal(t, "mem://a", wait(t, toldAnn, mcp.MethodNotificationResourceUpdated).Params.AdditionalFields["uri"])
			assert.Equal(t, "mem://b", wait(t, toldBob, mcp.MethodNotificationResourceUpdated).Params.AdditionalFields["uri"])
			assert.Empty(t, toldAnn)
			assert.Empty(t, toldBob)
			if generation == "legacy" { // mcp-go ends a session without the headers
				r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer anns-own-token")
				r.Header.Set(server.HeaderKeySessionID, ann.GetSessionId())
				answer, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				http.DefaultClient.CloseIdleConnections()
			}
			require.NoError(t, ann.Close())
			for ctx := within(t); b.count("mem://a") != 0; {
				require.NoError(t, ctx.Err())
			}
			assert.Equal(t, 1, b.count("mem://b"))
		})
	}
}

// A client that ends a subscription while that begins, and begins another, has that one alone.
// One that asks twice at once has the answer when there is one.
func TestSubscriptionsOverlap(t *testing.T) {
	const uri = "mem://a"
	b := newBoard("b")
	var asked, answer chan struct{}
	cfg := b.config("b")
	cfg.InProcess = slowBoard{b, func() { asked <- struct{}{}; <-answer }}
	g, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{cfg}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	for _, ends := range []bool{true, false} {
		asked, answer = make(chan struct{}, 1), make(chan struct{})
		of := &g.open(c.GetSessionId()).subscribed
		begin := func() chan error {
			done := make(chan error, 1)
			go func() {
				var r mcp.SubscribeRequest
				r.Params.URI = uri
				done <- c.Subscribe(within(t), r)
			}()
			return done
		}
		end := func() {
			var r mcp.UnsubscribeRequest
			r.Params.URI = uri
			require.NoError(t, c.Unsubscribe(within(t), r))
		}
		first := begin()
		<-asked
		if ends {
			end()
		}
		second := begin()
		if ends {
			for ctx, begun := within(t), false; !begun; {
				require.NoError(t, ctx.Err())
				of.mu.Lock()
				_, begun = of.by[uri]
				of.mu.Unlock()
			}
		} else {
			select {
			case <-second:
				assert.Fail(t, "nothing is known yet")
			case <-time.After(50 * time.Millisecond):
			}
		}
		close(answer)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		assert.Equal(t, 1, b.count(uri))
		end()
		for ctx := within(t); b.count(uri) != 0; {
			require.NoError(t, ctx.Err())
		}
	}
}

// A slowBoard does something before it answers a subscription.
type slowBoard struct {
	*board
	before func()
}

func (b slowBoard) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	if bytes.Contains(message, []byte(`"resources/subscribe"`)) {
		b.before()
	}
	return b.board.HandleMessage(ctx, message)
}

// What a client is subscribed to outlives its server if that is replaced, and the client is told
// of it. What the other server does not have can't be subscribed to any more.
func TestSubscriptionsOutliveTheirServer(t *testing.T) {
	for generation, opts := range generations {
		t.Run(generation, func(t *testing.T) {
			was, is := newBoard("b"), newBoard("b")
			is.DeleteResources("mem://b")
			g, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{was.config("b"), newBoard("other").config("other")}}, web.Options{})
			open := overHTTP(url)
			if generation == "legacy" {
				open = overHTTP(url, transport.WithContinuousListening())
			}
			c, told := connect(t, open, "test", opts...)
			const a, b = "mcphybrid://b/mem://a", "mcphybrid://b/mem://b"
			for _, uri := range []string{b, a} { // the newer protocol's client then listens to the last one only
				_, err := subscribe(t, c, told, uri)
				require.NoError(t, err)
			}
			cfg := is.config("b")
			g.replace(g.begin, "b", &cfg)
			n := wait(t, told, mcp.MethodNotificationResourceUpdated)
			assert.Equal(t, a, n.Params.AdditionalFields["uri"], "it may have changed meanwhile")
			assert.Equal(t, 1, is.count("mem://a"))
			is.update("mem://a")
			n = wait(t, told, mcp.MethodNotificationResourceUpdated)
			assert.Equal(t, a, n.Params.AdditionalFields["uri"])
			_, err := subscribe(t, c, told, b)
			require.Error(t, err)

			g.replace(g.begin, "b", nil)
			_, err = subscribe(t, c, told, a)
			require.Error(t, err)
			for ctx := within(t); g.updates.count() > 0; { // a stream that the client leaves may end later
				require.NoError(t, ctx.Err())
			}
		})
	}
}

// count returns how many there are.
func (s *follows) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
