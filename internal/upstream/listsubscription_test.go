package upstream

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveSubscribed serves protocol 2026-07-28 over standard input and output. A call adds a
// tool, of which only subscribers are told. What it does with a subscription is in $LISTEN. It
// counts these by the bytes of the file $LISTENS.
func serveSubscribed() {
	subscription := ""
	open := make(map[string]bool) // IDs of subscriptions
	tools := `{"name":"a","inputSchema":{"type":"object"}}`
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var in struct {
			ID     json.RawMessage
			Method string
			Params struct {
				RequestID     json.RawMessage
				Notifications mcp.SubscriptionFilter
			}
		}
		_ = json.Unmarshal(lines.Bytes(), &in)
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", in.ID, result) }
		tell := func(method string) {
			fmt.Printf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`+"\n", method, subscription)
		}
		switch in.Method {
		case "server/discover":
			answer(discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`))
		case "resources/list":
			answer(`{"resources":[],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`)
		case "resources/templates/list":
			answer(`{"resourceTemplates":[],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`)
		case "notifications/cancelled": // as servers of the Go SDK, it forgets all subscriptions
			if in.ID = in.Params.RequestID; open[string(in.ID)] {
				subscription = ""
				delete(open, string(in.ID))
				if os.Getenv("LISTEN") != "unanswered" {
					answer(`{"resultType":"complete"}`)
				}
			}
		case "tools/list":
			answer(`{"tools":[` + tools + `],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`)
		case "tools/call":
			tools += `,{"name":"b","inputSchema":{"type":"object"}}`
			if subscription != "" {
				tell("notifications/tools/list_changed")
			}
			answer(`{"content":[],"resultType":"complete"}`)
			if os.Getenv("LISTEN") == "ends" {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`+"\n", subscription)
			}
		case "subscriptions/listen":
			f, _ := os.OpenFile(os.Getenv("LISTENS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			_, _ = f.WriteString(".")
			_ = f.Close()
			switch os.Getenv("LISTEN") {
			case "refused":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", in.ID)
			case "answered":
				answer(`{}`)
			case "ignored":
			case "blocking":
				subscription = string(in.ID)
				tell("notifications/subscriptions/acknowledged")
				select {}
			default:
				open[string(in.ID)] = true
				if len(in.Params.Notifications.ResourceSubscriptions) > 0 {
					fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`+"\n", in.ID)
					break
				}
				subscription = string(in.ID)
				tell("notifications/subscriptions/acknowledged")
			}
		}
	}
}

// subscribed returns the configuration of a child that does with subscriptions what listen
// says, and how many it was asked for.
func subscribed(t *testing.T, listen string) (cfg config.Server, listens func() int) {
	cfg = child(t, "told", "subscribed")
	file := filepath.Join(t.TempDir(), "listens")
	cfg.Env["LISTEN"], cfg.Env["LISTENS"] = listen, file
	return cfg, func() int {
		asked, err := os.ReadFile(file)
		require.NoError(t, err)
		return len(asked)
	}
}

// A child of protocol 2026-07-28 is subscribed to before its first listing. So nothing is
// missed, and the acknowledgement leads to no other listing.
func TestChildTellsSubscribers(t *testing.T) {
	cfg, listens := subscribed(t, "")
	srv := started(t, cfg, config.Limits{})
	c := srv.connection()
	assert.Empty(t, c.changed)
	_, lists := srv.listed()
	assert.Equal(t, 1, lists)
	_, err := srv.call(t.Context(), "a") // waits for the listing
	require.NoError(t, err)
	tools, lists := srv.listed()
	assert.Len(t, tools, 2)
	assert.Equal(t, 2, lists)
	assert.Equal(t, 1, listens())
	srv.Close()
	assert.Empty(t, mcptest.Children(os.Getpid()))
}

// Only changes that the server says it announces are subscribed to.
func TestWhatIsSubscribedTo(t *testing.T) {
	for can, want := range map[string]mcp.SubscriptionFilter{
		`{"tools":{}}`:                       {},
		`{"tools":{"listChanged":false}}`:    {},
		`{"tools":{"listChanged":true}}`:     {ToolsListChanged: true},
		`{"resources":{"subscribe":true}}`:   {},
		`{"resources":{"listChanged":true}}`: {ResourcesListChanged: true},
		`{"prompts":{}}`:                     {},
		`{"prompts":{"listChanged":true}}`:   {PromptsListChanged: true},
		`{}`:                                 {},
	} {
		t.Run(can, func(t *testing.T) {
			t.Parallel()
			s := goSDK(nil)
			s.can = can
			s.discovered = discovers(oldVersions, can)
			s.results["resources/list"], s.results["prompts/list"], s.results["resources/templates/list"] = `{"resources":[]}`, `{"prompts":[]}`, `{"resourceTemplates":[]}`
			srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{})
			assert.Equal(t, want, srv.connection().changes())
		})
	}
}

// A child that has no subscriptions is listed again after Refresh, as before. It is asked again
// with each connection, since an answer costs no time.
func TestChildWithoutSubscriptions(t *testing.T) {
	for _, listen := range []string{"refused", "answered"} {
		t.Run(listen, func(t *testing.T) {
			cfg, listens := subscribed(t, listen)
			srv := started(t, cfg, config.Limits{Refresh: 20 * time.Millisecond})
			_, err := srv.call(t.Context(), "a")
			require.NoError(t, err)
			mcptest.Soon(t, func() bool { tools, _ := srv.listed(); return len(tools) == 2 })
			assert.Equal(t, 1, listens())
			srv.lose(srv.connection(), errors.New("lost"))
			require.NoError(t, srv.Start(t.Context()))
			assert.Equal(t, 2, listens())
		})
	}
}

// A child that leaves a subscription without an answer, or everything that comes after one,
// is used without. It is subscribed to again only after Restart.
func TestChildThatCannotBeSubscribedTo(t *testing.T) {
	for _, listen := range []string{"ignored", "blocking"} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			cfg, listens := subscribed(t, listen)
			srv := started(t, cfg, config.Limits{StartTimeout: 8 * time.Second, Reconnect: time.Hour})
			_, err := srv.call(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, 1, listens())
			srv.lose(srv.connection(), errors.New("lost"))
			require.NoError(t, srv.Start(t.Context()))
			_, err = srv.call(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, 1, listens())
			require.NoError(t, srv.Restart(t.Context()))
			assert.Equal(t, 2, listens())
			assert.Equal(t, Ready, srv.Status().State)
		})
	}
}

// A subscribed child that ends tells why, and is subscribed to again.
func TestSubscribedChildEnds(t *testing.T) {
	cfg, listens := subscribed(t, "")
	srv := started(t, cfg, config.Limits{Reconnect: time.Hour})
	killGroup(srv.connection().process.cmd)
	mcptest.Soon(t, func() bool { return srv.Status().State == Down })
	assert.False(t, strings.Contains(srv.Status().Err.Error(), "transport"), srv.Status().Err)
	require.NoError(t, srv.Start(t.Context()))
	assert.Equal(t, 2, listens())
}

// A child that ends a subscription is subscribed to anew.
func TestChildEndsItsSubscription(t *testing.T) {
	t.Parallel()
	cfg, listens := subscribed(t, "ends")
	srv := started(t, cfg, config.Limits{Reconnect: time.Millisecond})
	c := srv.connection()
	for i := range 2 {
		_, err := srv.call(t.Context(), "a")
		require.NoError(t, err)
		mcptest.Soon(t, func() bool { return listens() == 2+i })
	}
	assert.Same(t, c, srv.connection())
}

// A child that forgets its other subscriptions with one to a resource is subscribed to anew, so
// that its tools are followed still. Not every child answers that a subscription has ended.
func TestChildForgetsSubscriptions(t *testing.T) {
	for _, listen := range []string{"", "unanswered"} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			cfg, listens := subscribed(t, listen)
			srv := started(t, cfg, config.Limits{MaxSubscriptions: 1, CallTimeout: 5 * time.Second})
			for i := range 3 {
				stop, err := srv.Subscribe(t.Context(), nil, "mem://a", func(string) {})
				require.NoError(t, err)
				stop()
				mcptest.Soon(t, func() bool { return listens() == 1+2*(i+1) }) // one for the lists, and each time two
			}
			_, err := srv.call(t.Context(), "a")
			require.NoError(t, err)
			mcptest.Soon(t, func() bool { tools, _ := srv.listed(); return len(tools) == 2 })
			assert.Equal(t, Ready, srv.Status().State)
		})
	}
}

// A server lists its tools once for each connection, over HTTP as over pipes: it is subscribed to
// before. One whose acknowledgement comes late lists them again when it comes, since a change before that
// was not announced.
func TestListedOnceOverHTTP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late  time.Duration // until the acknowledgement
		lists int64
	}{"at once": {0, 1}, "late": {time.Second, 2}} {
		synctest.Test(t, func(t *testing.T) {
			var lists, listens atomic.Int64
			web := roundTripper(func(r *http.Request) (*http.Response, error) {
				var in struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
					return nil, err
				}
				said, out := io.Pipe()
				res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: said, Request: r}
				event := func(text string) { _, _ = fmt.Fprintf(out, "event: message\ndata: %s\n\n", text) }
				go func() {
					switch in.Method {
					case "server/discover":
						event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, discovers(newVersions, `{"tools":{"listChanged":true}}`)))
					case "tools/list":
						lists.Add(1)
						event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, greets))
					case "subscriptions/listen":
						listens.Add(1)
						time.Sleep(test.late)
						event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, in.ID))
						<-r.Context().Done()
					}
					out.Close()
				}()
				return res, nil
			})
			srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: web}}}, config.Limits{})
			begun := time.Now()
			require.NoError(t, srv.Start(t.Context()))
			assert.LessOrEqual(t, time.Since(begun), 250*time.Millisecond, name)
			time.Sleep(10 * time.Second)
			assert.Equal(t, test.lists, lists.Load(), name)
			assert.Equal(t, int64(1), listens.Load(), name)
			srv.Close()
		})
	}
}
