package upstream

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	tools := `{"name":"a","inputSchema":{"type":"object"}}`
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var in struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &in)
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", in.ID, result) }
		tell := func(method string) {
			fmt.Printf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`+"\n", method, subscription)
		}
		switch in.Method {
		case "server/discover":
			answer(discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true}}`))
		case "tools/list":
			answer(`{"tools":[` + tools + `],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`)
		case "tools/call":
			tools += `,{"name":"b","inputSchema":{"type":"object"}}`
			if subscription != "" {
				tell("notifications/tools/list_changed")
			}
			answer(`{"content":[],"resultType":"complete"}`)
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
	srv := started(t, cfg, Limits{})
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

// A child that has no subscriptions is listed again after Refresh, as before. It is asked again
// with each connection, since an answer costs no time.
func TestChildWithoutSubscriptions(t *testing.T) {
	for _, listen := range []string{"refused", "answered"} {
		t.Run(listen, func(t *testing.T) {
			cfg, listens := subscribed(t, listen)
			srv := started(t, cfg, Limits{Refresh: 20 * time.Millisecond})
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
			srv := started(t, cfg, Limits{StartTimeout: 8 * time.Second, Reconnect: time.Hour})
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
	srv := started(t, cfg, Limits{Reconnect: time.Hour})
	killGroup(srv.connection().process.cmd)
	mcptest.Soon(t, func() bool { return srv.Status().State == Down })
	assert.False(t, strings.Contains(srv.Status().Err.Error(), "transport"), srv.Status().Err)
	require.NoError(t, srv.Start(t.Context()))
	assert.Equal(t, 2, listens())
}
