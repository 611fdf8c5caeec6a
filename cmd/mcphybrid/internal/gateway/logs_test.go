package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const logMessage = "notifications/message"

func setLevel(t *testing.T, c *client.Client, level mcp.LoggingLevel) {
	t.Helper()
	var r mcp.SetLevelRequest
	r.Params.Level = level
	require.NoError(t, c.SetLevel(t.Context(), r))
}

// A log message goes to the client whose call it is about, if the client asked
// for log messages.
func TestLogging(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		c, told := connect(t, open, "test", opts...)
		toolNames(t, c) // all servers are there
		setLevel(t, c, mcp.LoggingLevelInfo)
		assert.Equal(t, "logged", say(t, c, "mcp_kitchen__a_log", map[string]any{"text": "for me"}))
		n := wait(t, told, logMessage)
		assert.Equal(t, map[string]any{"level": "warning", "logger": "kitchen", "data": "for me"}, n.Params.AdditionalFields)

		setLevel(t, c, mcp.LoggingLevelError)
		say(t, c, "mcp_kitchen__a_log", map[string]any{"text": "too little"})
		say(t, c, "mcp_kitchen__a_arguments", nil) // later
		for len(told) > 0 {
			assert.NotEqual(t, logMessage, (<-told).Method)
		}
	})
}

// serverLogs has a server log.
func serverLogs(g *gateway, server, data string) {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method, n.Params.AdditionalFields = logMessage, map[string]any{"level": "error", "data": data}
	g.hear(server, n)
}

// heard returns the log messages that a client has got up to now.
func heard(t *testing.T, g *gateway, c *client.Client, told <-chan mcp.JSONRPCNotification) (list []any) {
	t.Helper()
	const last = "the last one"
	g.known(c.GetSessionId()).TellLog(map[string]string{"data": last}, 0)
	for {
		n := <-told
		if n.Method != logMessage {
			continue
		}
		if n.Params.AdditionalFields["data"] == last {
			return list
		}
		list = append(list, n.Params.AdditionalFields["data"])
	}
}

// A server of which two clients have called tools logs for nobody: its message may be
// about the other's call, also if that has ended, its client is gone, or had no session.
func TestLoggingOfOthers(t *testing.T) {
	type clients struct {
		g        *gateway
		url      string
		one, two *client.Client
	}
	secret := map[string]any{"text": "secret"}
	for name, before := range map[string]func(t *testing.T, c clients){
		"another called": func(t *testing.T, c clients) { say(t, c.two, "mcp_kitchen__a_gossip", secret) },
		"another called and left": func(t *testing.T, c clients) {
			say(t, c.two, "mcp_kitchen__a_gossip", secret)
			require.NoError(t, c.two.Close())
			for ctx := within(t); ; {
				c.g.mu.Lock()
				left := len(c.g.clients)
				c.g.mu.Unlock()
				if left == 1 {
					return
				}
				require.NoError(t, ctx.Err(), "it is still there")
			}
		},
		"one without a session called": func(t *testing.T, c clients) {
			modern, _ := connect(t, overHTTP(c.url), "modern", generations["modern"]...)
			say(t, modern, "mcp_kitchen__a_gossip", secret)
		},
		"another's call by another way": func(t *testing.T, c clients) {
			say(t, c.two, mcphybrid.CallToolName, map[string]any{"name": "mcp_kitchen__a_gossip", "arguments": secret})
		},
		"another's call runs": func(t *testing.T, c clients) {
			ctx := within(t)
			two, told := connect(t, overHTTP(c.url), "two", generations["legacy"]...)
			go func() { _, _ = callFor(ctx, two, 1, "mcp_kitchen__a_hang", nil) }()
			wait(t, told, "notifications/progress")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
			listening := overHTTP(url, transport.WithContinuousListening())
			one, told := connect(t, listening, "one", generations["legacy"]...)
			setLevel(t, one, mcp.LoggingLevelDebug)
			say(t, one, "mcp_kitchen__a_arguments", nil)
			hear := func() { serverLogs(g, "kitchen", "between calls") }
			hear()
			assert.Equal(t, "between calls", wait(t, told, logMessage).Params.AdditionalFields["data"], "it alone has called")
			two, toldTwo := connect(t, listening, "two", generations["legacy"]...)
			setLevel(t, two, mcp.LoggingLevelDebug)
			before(t, clients{g, url, one, two})
			hear()
			say(t, one, "mcp_kitchen__a_gossip", map[string]any{"text": "whose?"})
			hear()
			assert.Empty(t, heard(t, g, one, told))
			for len(toldTwo) > 0 {
				assert.NotEqual(t, logMessage, (<-toldTwo).Method)
			}
		})
	}
}

// Over standard input there is one client: what a server logs is its, whether or not it calls.
func TestLoggingToTheOnlyClient(t *testing.T) {
	_, _, list := twins()
	g := newGateway(gatewayOptions{servers: list, wait: patience, logLevel: mcp.LoggingLevelInfo, log: slog.New(slog.DiscardHandler)})
	c, told := connect(t, through(g), "test", generations["legacy"]...)
	setLevel(t, c, mcp.LoggingLevelDebug)
	said := func(server, text string) any {
		serverLogs(g, server, text)
		return wait(t, told, logMessage).Params.AdditionalFields["data"]
	}
	assert.Equal(t, "before a call", said("cats", "before a call"))
	say(t, c, "mcp_cats__search", nil)
	assert.Equal(t, "after one", said("cats", "after one"))
	assert.Equal(t, "of the other", said("dogs", "of the other"))
}

// With a token for each client, the sessions of a token are one client's: it gets a
// server's messages until another token's holder calls, whichever session ends meanwhile.
func TestLoggingOfOneHolder(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{servers: kitchenAndVault()}, web.Options{TokenFile: writeSecret(t, guestAndOwner)})
	open := func(token string) (*client.Client, <-chan mcp.JSONRPCNotification) {
		c, told := connect(t, overHTTP(url, bearing(token), transport.WithContinuousListening()), token, generations["legacy"]...)
		setLevel(t, c, mcp.LoggingLevelDebug)
		return c, told
	}
	one, toldOne := open("for-owner")
	two, toldTwo := open("for-owner")
	guest, toldGuest := open("for-guest")
	say(t, one, "mcp_kitchen__link", nil)
	say(t, two, "mcp_kitchen__link", nil)
	serverLogs(g, "kitchen", "for two")
	assert.Equal(t, []any{"for two"}, heard(t, g, two, toldTwo))
	assert.Empty(t, heard(t, g, one, toldOne))
	require.NoError(t, two.Close())
	say(t, one, "mcp_kitchen__link", nil)
	serverLogs(g, "kitchen", "for one")
	assert.Equal(t, []any{"for one"}, heard(t, g, one, toldOne))
	say(t, guest, "mcp_kitchen__link", nil)
	say(t, one, "mcp_kitchen__link", nil)
	serverLogs(g, "kitchen", "for nobody")
	assert.Empty(t, heard(t, g, one, toldOne))
	assert.Empty(t, heard(t, g, guest, toldGuest))
}

// A message goes to each client that waits for the server, once, and to no other of the
// holder's.
func TestLoggingOfRunningCalls(t *testing.T) {
	holder := &tokens.Holder{Name: "ana"}
	b := newCallBook([]mcphybrid.ServerConfig{{Name: "s"}})
	var clients []*conversation
	var calls []*clientCall
	var ends []func()
	for i := range 3 {
		c := &conversation{id: fmt.Sprint(i), of: holder}
		clients = append(clients, c)
		for range 2 {
			v := &clientCall{from: c}
			calls, ends = append(calls, v), append(ends, b.begin("s", v))
		}
	}
	ends[0]()
	got, _ := b.addressees("s")
	assert.Equal(t, []*clientCall{calls[1], calls[2], calls[4]}, got)
	b.gone(clients[1])
	for _, end := range ends {
		end()
	}
	got, last := b.addressees("s")
	assert.Empty(t, got)
	assert.Same(t, clients[2], last)
	b.gone(clients[2])
	got, last = b.addressees("s")
	assert.Empty(t, got)
	assert.Nil(t, last)
	b.begin("s", &clientCall{from: &conversation{id: "x", of: &tokens.Holder{}}})()
	got, last = b.addressees("s")
	assert.Empty(t, got)
	assert.Nil(t, last, "a token without a name is perhaps of several")
}

// What a client reads, gets or has completed reaches the server that has it, by whatever
// way, and no other. What is refused reaches none, and its server logs for whom it did.
func TestLoggingOfReads(t *testing.T) {
	read := func(uri string) func(*testing.T, *client.Client) {
		return func(t *testing.T, c *client.Client) {
			_, _ = c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
		}
	}
	tool := func(name string, args map[string]any) func(*testing.T, *client.Client) {
		return func(t *testing.T, c *client.Client) { _, _ = call(t.Context(), c, name, args) }
	}
	complete := func(ref any) func(*testing.T, *client.Client) {
		return func(t *testing.T, c *client.Client) {
			var r mcp.CompleteRequest
			r.Params.Ref = ref
			_, _ = c.Complete(t.Context(), r)
		}
	}
	both := []any{"kitchen", "vault"}
	for name, test := range map[string]struct {
		guest func(t *testing.T, c *client.Client)
		mine  []any // the servers of whose messages the owner still gets them
	}{
		"read":                  {read(wrapped + "kitchen/mem://kitchen"), both[1:]},
		"read without a server": {read("mem://kitchen"), both[1:]},
		"read by the model":     {tool(mcphybrid.ResourceReadToolName, map[string]any{"uri": "mem://kitchen"}), both[1:]},
		"prompt": {func(t *testing.T, c *client.Client) {
			_, _ = c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "mcp_kitchen__greet"}})
		}, both[1:]},
		"completion":                     {complete(mcp.ResourceReference{Type: "ref/resource", URI: "mem://kitchen/{page}"}), both[1:]},
		"unknown":                        {read("no:where"), both},
		"of an unknown server":           {read(wrapped + "nobody/mem://kitchen"), both},
		"not permitted":                  {read(wrapped + "vault/mem://vault"), both},
		"not permitted without a server": {read("mem://vault"), both},
		"not permitted to the model":     {tool(mcphybrid.ResourceReadToolName, map[string]any{"server": "vault", "uri": "mem://vault"}), both},
		"unknown to the model":           {tool(mcphybrid.CallToolName, map[string]any{"name": mcphybrid.ResourceReadToolName, "arguments": map[string]any{"uri": "no:where"}}), both},
		"prompt not permitted": {func(t *testing.T, c *client.Client) {
			_, _ = c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "mcp_vault__greet"}})
		}, both},
		"completion not permitted": {complete(mcp.ResourceReference{Type: "ref/resource", URI: wrapped + "vault/mem://vault/{page}"}), both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := new(logBook)
			g, url, _ := startHTTP(t, gatewayOptions{servers: kitchenAndVault(), log: book.logger(), logCalls: true}, web.Options{TokenFile: writeSecret(t, guestAndOwner)})
			guest, toldGuest := connect(t, overHTTP(url, bearing("for-guest"), transport.WithContinuousListening()), "guest", generations["legacy"]...)
			setLevel(t, guest, mcp.LoggingLevelDebug)
			test.guest(t, guest)
			serverLogs(g, "vault", "for nobody yet")
			assert.NotContains(t, heard(t, g, guest, toldGuest), "for nobody yet")
			assert.NotContains(t, book.String(), "server=vault")

			owner, told := connect(t, overHTTP(url, bearing("for-owner"), transport.WithContinuousListening()), "owner", generations["legacy"]...)
			setLevel(t, owner, mcp.LoggingLevelDebug)
			for _, server := range both {
				say(t, owner, fmt.Sprintf("mcp_%s__link", server), nil)
				serverLogs(g, server.(string), server.(string))
			}
			assert.Equal(t, test.mine, heard(t, g, owner, told))
		})
	}
}

// 50 clients have servers log at once, half of them without sessions. No message reaches
// another client than the one it is about. Those with a server of their own get all.
func TestManyClientsLog(t *testing.T) {
	const clients, private, least = 50, 2, 3
	var until time.Time
	begin := make(chan struct{})
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "kitchen", "own0", "own1"))
	require.NoError(t, err)
	_, url, _ := startHTTP(t, gatewayOptions{servers: cfg.Servers}, web.Options{})
	var wg sync.WaitGroup
	var calls, foreign, own atomic.Int64
	for i := range clients {
		generation := generations["legacy"]
		if i%2 == 1 && i > private {
			generation = generations["modern"]
		}
		c := overHTTP(url, transport.WithContinuousListening())
		if i%2 == 1 && i > private {
			c = overHTTP(url)
		}
		mine := fmt.Sprintf("client %d", i)
		var got atomic.Int64
		one, told := connect(t, c, mine, generation...)
		setLevel(t, one, mcp.LoggingLevelDebug)
		gone := make(chan struct{})
		wg.Go(func() {
			for {
				select {
				case n := <-told:
					switch data := n.Params.AdditionalFields["data"]; {
					case n.Method != logMessage || data == "":
					case data == mine:
						got.Add(1)
					default:
						foreign.Add(1)
						t.Errorf("%s got a message about %q", mine, data)
					}
				case <-gone:
					return
				}
			}
		})
		wg.Go(func() {
			defer close(gone)
			<-begin
			sent := int64(0)
			for n := 0; n < least || time.Now().Before(until); n++ {
				if _, err := call(t.Context(), one, "mcp_kitchen__a_gossip", map[string]any{"text": mine}); !assert.NoError(t, err) {
					return
				}
				calls.Add(1)
				if i < private {
					if _, err := call(t.Context(), one, fmt.Sprintf("mcp_own%d__a_gossip", i), map[string]any{"text": mine}); !assert.NoError(t, err) {
						return
					}
					sent++
				}
			}
			if i < private {
				assert.Eventually(t, func() bool { return got.Load() >= 2*sent-1 }, patience, time.Millisecond, "%d calls", sent)
				own.Add(got.Load())
			}
		})
	}
	until = time.Now().Add(mcptest.Long(time.Minute, 2*time.Second))
	close(begin) // all are there
	wg.Wait()
	t.Logf("%d calls of the common server, %d messages of own servers, %d foreign", calls.Load(), own.Load(), foreign.Load())
	assert.Positive(t, own.Load())
}

// What a server that is added, or added again, logs belongs to who alone it has worked for.
func TestCallBookOfServersAddedAgain(t *testing.T) {
	t.Parallel()
	b := newCallBook(nil)
	one, other := &clientCall{from: &conversation{id: "one"}}, &clientCall{from: &conversation{id: "other"}}
	b.begin("late", one)
	calls, to := b.addressees("late")
	assert.Empty(t, calls, "nobody has added it")
	assert.Nil(t, to)

	b.add("late")
	b.begin("late", one)()
	b.add("late")
	calls, to = b.addressees("late")
	assert.Empty(t, calls, "it has ended")
	assert.Same(t, one.from, to)
	b.begin("late", other)
	b.add("late")
	b.begin("late", one)
	calls, to = b.addressees("late")
	assert.Empty(t, calls, "it may be about the other")
	assert.Nil(t, to)
}
