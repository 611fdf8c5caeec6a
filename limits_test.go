package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	floodRequest      = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	floodNotification = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

// mostGoroutines runs f and returns how many more goroutines there were
// meanwhile than before.
func mostGoroutines(f func()) (most int) {
	before := runtime.NumGoroutine()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return most
		case <-time.After(time.Millisecond):
			most = max(most, runtime.NumGoroutine()-before)
		}
	}
}

// A child that floods us, reading nothing, is given up at the limit: before it
// is initialized, in the middle of that, and when it serves.
func TestFloodingChild(t *testing.T) {
	const limit = 100
	want := "it sends more messages unasked than the limit of 100 in a second"
	for name, line := range map[string]string{"requests": floodRequest, "notifications": floodNotification, "junk": "?", "nothing": ""} {
		for _, after := range []string{"", "initialize", "tools/list"} {
			t.Run(name+" after "+after, func(t *testing.T) {
				cfg := child(t, "flood", "flood")
				cfg.Env["FLOOD"], cfg.Env["AFTER"] = line, after
				m := NewManager(&Options{MaxUnasked: limit, Reconnect: -1, Servers: []ServerConfig{cfg, inProcess("good", 1)}})
				defer m.Close()
				var err error
				most := mostGoroutines(func() {
					err = m.Start(t.Context())
					soon(t, func() bool { return m.Servers()[0].State == StateDown })
				})
				assert.Less(t, most, 3*limit)
				if err != nil { // it may have come so far
					assert.ErrorContains(t, err, `mcphybrid: server "flood": `+want)
				} else {
					assert.Equal(t, "tools/list", after)
				}
				assert.ErrorContains(t, m.Servers()[0].Err, want)
				_, err = m.Call(t.Context(), "mcp_good__tool_000", nil)
				assert.NoError(t, err)
			})
		}
	}
}

// Over HTTP, a stream may bring no more than that either, be it the answer to
// a call or what is listened to. What the server does not take as an answer to
// its requests does not pile up.
func TestFloodingHTTP(t *testing.T) {
	const limit = 100
	var flooding atomic.Value // the method that is answered so
	flooding.Store("")
	s := mcpserver.NewMCPServer("web", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(echoTool("echo", "Echoes"))
	handler := mcpserver.NewStreamableHTTPServer(s)
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Method string }
		_ = json.Unmarshal(body, &message)
		switch message.Method {
		case flooding.Load():
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", floodRequest); err != nil {
					return
				}
			}
		case "": // an answer
			<-r.Context().Done()
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			handler.ServeHTTP(w, r)
		}
	}), "127.0.0.1:0")
	want := "it sends more messages unasked than the limit of 100 in a second"
	m, _ := newTestManager(t, &Options{MaxUnasked: limit, Reconnect: 10 * time.Millisecond, Servers: []ServerConfig{{Name: "web", URL: url}}})
	_, err := m.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)

	flooding.Store("tools/call")
	most := mostGoroutines(func() { _, err = m.Call(t.Context(), "mcp_web__echo", nil) })
	assert.ErrorIs(t, err, ErrServerDown)
	assert.ErrorContains(t, err, `of server "web"`)
	assert.ErrorContains(t, err, want)
	assert.Less(t, most, 20*limit, "each answer takes a few, here and at the server")

	flooding.Store("tools/list")
	err = m.AddServer(t.Context(), ServerConfig{Name: "another", URL: url})
	assert.ErrorContains(t, err, `mcphybrid: server "another": `)
	assert.ErrorContains(t, err, want)

	flooding.Store("subscriptions/listen")
	require.NoError(t, m.AddServer(t.Context(), ServerConfig{Name: "listen", URL: url}))
	soon(t, func() bool { st := m.Servers()[1]; return st.Err != nil && strings.Contains(st.Err.Error(), want) })
	flooding.Store("")
	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_web__echo", nil); return err == nil })
}

// As many messages as there are requests under way may be answers, whenever
// these were made; the others are counted second by second.
func TestUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unasked{max: 3}
		many := func(n int) (err error) {
			for range n {
				err = errors.Join(err, u.count())
			}
			return err
		}
		assert.NoError(t, many(3))
		assert.Error(t, many(1))
		time.Sleep(time.Second)
		for range 10 {
			u.ask()
		}
		assert.NoError(t, many(3))
		time.Sleep(time.Minute)
		assert.NoError(t, many(13), "late answers, and three more")
		assert.Error(t, many(1))
		for range 10 {
			u.answered()
		}
		time.Sleep(time.Second)
		assert.NoError(t, many(3))
		assert.Error(t, many(1))
	})
}

// Many calls at once are not taken for a flood.
func TestManyAnswersAreNoFlood(t *testing.T) {
	m, _ := newTestManager(t, &Options{MaxUnasked: 1, Servers: []ServerConfig{child(t, "child", "plain")}})
	errs := make(chan error)
	for range 100 {
		go func() {
			_, err := m.Call(context.WithoutCancel(t.Context()), "mcp_child__big", nil)
			errs <- err
		}()
	}
	for range 100 {
		assert.NoError(t, <-errs)
	}
}

// A notification to a child that does not read heeds its context.
func TestNotificationHeedsContext(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	defer r.Close()
	tr := stdioTransport{transport.NewIO(strings.NewReader(""), w, nil), guard{unasked: new(unasked)}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, tr.SendNotification(ctx, mcp.JSONRPCNotification{}), context.DeadlineExceeded)
}

// Each limit of what a server sends, and of how long it takes, lets pass what
// is just within it; the error of what is not names the server and the limit.
// (A result above MaxResult is no error: it is cut.)
func TestLimits(t *testing.T) {
	start := func(t *testing.T, o Options) error {
		m := NewManager(&o)
		defer m.Close()
		return m.Start(t.Context())
	}
	call := func(t *testing.T, o Options, name string) error {
		m, _ := newTestManager(t, &o)
		_, err := m.Call(t.Context(), name, nil)
		return err
	}
	raw := func(t *testing.T, list string) ServerConfig {
		cfg := raw(t, list)
		cfg.Name = "limited"
		return cfg
	}
	paged := func(n int) ServerConfig {
		s := mcpserver.NewMCPServer("limited", "1", mcpserver.WithPaginationLimit(1))
		for i := range n {
			s.AddTools(echoTool(fmt.Sprint("tool", i), ""))
		}
		return ServerConfig{Name: "limited", InProcess: s}
	}
	waiting := func(o *Options) {
		o.Servers = []ServerConfig{serving("limited", mcpserver.ServerTool{
			Tool: mcp.NewTool("wait"),
			Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if o.CallTimeout > time.Minute {
					return mcp.NewToolResultText(""), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})}
	}
	for _, test := range []struct {
		name, limit string
		run         func(t *testing.T, over int) error // over is 0 or 1
	}{
		{"MaxTools", "limit of 9", func(t *testing.T, over int) error {
			return start(t, Options{MaxTools: 9, Servers: []ServerConfig{inProcess("limited", 9+over)}})
		}},
		{"MaxPages", "limit of 9", func(t *testing.T, over int) error {
			return start(t, Options{MaxPages: 9, Servers: []ServerConfig{paged(8 + over)}}) // mcp-go adds an empty page
		}},
		{"MaxDefinition", "limit of 50", func(t *testing.T, over int) error {
			tool := `{"name":"` + strings.Repeat("x", 50-len(`{"name":""}`)+over) + `"}`
			m, _ := newTestManager(t, &Options{MaxDefinition: 50, Servers: []ServerConfig{raw(t, `{"tools":[`+tool+`]}`)}})
			return errors.Join(m.Problems()...)
		}},
		{"MaxMessage", "limit of 1000", func(t *testing.T, over int) error {
			around := len(`{"result":{"tools":[],"x":""},"jsonrpc":"2.0","id":3}` + "\n")
			list := `{"tools":[],"x":"` + strings.Repeat("x", 1000-around+over) + `"}`
			return start(t, Options{MaxMessage: 1000, Servers: []ServerConfig{raw(t, list)}})
		}},
		{"MaxUnasked", "limit of 9", func(t *testing.T, over int) error {
			cfg := raw(t, `{"tools":[]}`)
			cfg.Env["UNASKED"] = fmt.Sprint(9 + over)
			return start(t, Options{MaxUnasked: 9, Servers: []ServerConfig{cfg}})
		}},
		{"StartTimeout", "no answer within 200ms", func(t *testing.T, over int) error {
			o := Options{Servers: []ServerConfig{child(t, "limited", []string{"plain", "silent"}[over])}}
			if over == 1 {
				o.StartTimeout = 200 * time.Millisecond
			}
			return start(t, o)
		}},
		{"CallTimeout", "no answer within 20ms", func(t *testing.T, over int) error {
			o := Options{CallTimeout: []time.Duration{time.Hour, 20 * time.Millisecond}[over]}
			waiting(&o)
			return call(t, o, "mcp_limited__wait")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.NoError(t, test.run(t, 0))
			err := test.run(t, 1)
			assert.ErrorContains(t, err, `server "limited"`)
			assert.ErrorContains(t, err, test.limit)
		})
	}
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
	m, _ := newTestManager(t, &Options{StartTimeout: 100 * time.Millisecond, Servers: []ServerConfig{{Name: "live", InProcess: s}}})
	hang.Store(true)
	s.AddTools(echoTool("b", ""))
	soon(t, func() bool { return m.Servers()[0].State == StateDegraded })
	assert.ErrorContains(t, m.Servers()[0].Err, "no answer within 100ms")
}
