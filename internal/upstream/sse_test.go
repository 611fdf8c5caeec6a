package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// older serves a real server over the older transport, behind wrap.
func older(t *testing.T, wrap func(http.Handler) http.Handler, tools ...mcpserver.ServerTool) (web *httptest.Server, s *mcpserver.MCPServer) {
	s = mcptest.Server("web", tools...)
	web = httptest.NewUnstartedServer(nil)
	sse := mcpserver.NewSSEServer(s, mcpserver.WithUseFullURLForMessageEndpoint(false))
	web.Config.Handler = sse
	if wrap != nil {
		web.Config.Handler = wrap(sse)
	}
	web.Start()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web, s
}

// A server of the older transport is found out, or named; its changes are seen, and
// it is found again after it went away.
func TestOlderTransport(t *testing.T) {
	for _, named := range []bool{false, true} {
		web, s := older(t, nil, mcptest.Chores("a", 3)...)
		srv := started(t, config.Server{Name: "web", URL: web.URL + "/sse", SSE: named, Headers: map[string]string{"X-Key": "k"}}, config.Limits{Reconnect: 10 * time.Millisecond})
		tools, _ := srv.listed()
		assert.Len(t, tools, 3)
		for range 5 {
			_, err := srv.call(t.Context(), "tool_000")
			require.NoError(t, err)
		}
		s.AddTools(mcptest.Echo("late", "Comes later"))
		mcptest.Soon(t, func() bool { tools, _ := srv.listed(); return len(tools) == 4 })
		web.CloseClientConnections()
		mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "late"); return err == nil })
		srv.Close()
	}
}

// A call ends with the stream, with its own timeout, and with its caller.
func TestOlderTransportHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	hangs := func(name string) (tool mcpserver.ServerTool, called chan struct{}) {
		called = make(chan struct{})
		tool = mcptest.Echo(name, "Hangs")
		tool.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(called)
			<-release
			return mcp.NewToolResultText("late"), nil
		}
		return tool, called
	}
	one, _ := hangs("one")
	two, twoCalled := hangs("two")
	three, threeCalled := hangs("three")
	web, _ := older(t, nil, one, two, three)
	srv := started(t, config.Server{Name: "web", URL: web.URL + "/sse", SSE: true}, config.Limits{CallTimeout: 100 * time.Millisecond})
	_, err := srv.call(t.Context(), "one")
	assert.ErrorContains(t, err, "no answer within 100ms")
	srv = started(t, config.Server{Name: "web", URL: web.URL + "/sse", SSE: true}, config.Limits{CallTimeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-twoCalled; cancel() }()
	_, err = srv.call(ctx, "two")
	assert.ErrorIs(t, err, context.Canceled)
	go func() { <-threeCalled; web.CloseClientConnections() }()
	_, err = srv.call(t.Context(), "three")
	assert.ErrorIs(t, err, ErrDown)

	for name, handler := range map[string]http.HandlerFunc{
		"no headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no endpoint": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		web := httptest.NewServer(handler)
		srv := newTest(t, config.Server{Name: "web", URL: web.URL, SSE: true}, config.Limits{StartTimeout: 100 * time.Millisecond})
		begun := time.Now()
		assert.ErrorContains(t, srv.Start(t.Context()), "no answer within 100ms", name)
		srv.Close()
		web.CloseClientConnections()
		web.Close()
		assert.Less(t, time.Since(begun), 20*time.Second)
	}
}

// Only the request fails whose answer is too long.
func TestOlderTransportLimits(t *testing.T) {
	tool := mcptest.Echo("long", "Answers at length")
	tool.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.Repeat("long ", 4000)), nil
	}
	web, s := older(t, nil, tool, mcptest.Echo("echo", "Echoes"))
	var notified atomic.Int32
	srv := started(t, config.Server{Name: "web", URL: web.URL + "/sse", SSE: true, OnNotification: func(mcp.JSONRPCNotification) { notified.Add(1) }},
		config.Limits{MaxMessage: 8000, MaxUnasked: 20, Reconnect: time.Hour})
	_, err := srv.call(t.Context(), "long")
	assert.ErrorContains(t, err, "more bytes than the limit of 8000")
	_, err = srv.call(t.Context(), "echo")
	require.NoError(t, err)
	s.SendNotificationToAllClients("notifications/hello", nil)
	mcptest.Soon(t, func() bool { return notified.Load() > 0 })
	for range 100 {
		s.SendNotificationToAllClients("notifications/hello", nil)
	}
	mcptest.Soon(t, func() bool { return srv.Status().State == Down })
	assert.ErrorContains(t, srv.Status().Err, "more messages unasked than the limit of 20")
}

// Headers go to the server only, whatever its stream says. The error of both
// transports is told if neither works.
func TestOlderTransportRefusals(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer other.Close()
	endpoint := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", to)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	for want, handler := range map[string]http.HandlerFunc{
		"names another host for requests": endpoint(other.URL + "/messages"),
		"refused a redirect to host":      http.RedirectHandler(other.URL, http.StatusTemporaryRedirect).ServeHTTP,
		"request failed with status 405":  endpoint("/messages"),
		"unexpected status code: 405":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"status 401":                      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"the server limits the rate": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				endpoint("/messages")(w, r)
				return
			}
			w.WriteHeader(http.StatusTooManyRequests)
		},
	} {
		web := httptest.NewServer(handler)
		srv := newTest(t, config.Server{Name: "web", URL: web.URL + "/?key=SECRET-SECRET", SSE: !strings.Contains(want, "unexpected"), Headers: map[string]string{"X-Key": "k"}}, config.Limits{})
		err := srv.Start(t.Context())
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "SECRET")
		srv.Close()
		web.CloseClientConnections()
		web.Close()
	}
}

// What an event stream may have, and what is left of it.
func TestEventBody(t *testing.T) {
	for _, test := range []struct{ in, want, err string }{
		{"data: {\"id\":1,\n: comment\r\ndata:\"result\":{}}\r\n\r\n\n\n", "event: message\ndata: {\"id\":1, \"result\":{}}\n\n", "EOF"},
		{"event: endpoint\ndata: /m?x\n\n", "event: endpoint\ndata: /m?x\n\n", "EOF"},
		{"event: endpoint\ndata: //other/m\n\n", "", "names another host"},
		{`data: {"id":1,"method":"ping"}` + "\n\n", "", "EOF"},
		{`data: {"method":"notifications/x"}` + "\n\n", "event: message\ndata: {\"method\":\"notifications/x\"}\n\n", "EOF"},
		{`data: {"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 1000) + `"}` + "\n\n", `"id":7,"error"`, "EOF"},
		{`data: {"result":"` + strings.Repeat("x", 3000) + `","id":8}` + "\n\n", `"id":8,"error"`, "EOF"},
		{`data: {"result":"` + strings.Repeat("x", 1000) + `"}` + "\n\n", "", "EOF"},
		{`data: {"id":7,"error":{"data":[` + strings.Repeat("[],", 60) + `1]}}` + "\n\n", `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"a message has more values than the limit of 100"}}`, "EOF"},
		{`data: {"id":7,"method":"a","params":[` + strings.Repeat("[],", 60) + `1]}` + "\n\n", "", "EOF"},
		{"data: " + strings.Repeat("x", 100_000), "", "more bytes than 16 times the limit"},
		{strings.Repeat(": comment\n", 2000), "", "more bytes than 16 times the limit"},
		{"data: {\"id\":1}", "", "EOF"},
		{strings.Repeat("data: {}\n\n", 100), "", "unasked"},
	} {
		got, err := readEvents(test.in, 500)
		assert.ErrorContains(t, err, test.err, test.in)
		if test.want != "" {
			assert.Contains(t, got, test.want)
		}
		if test.want == "" && test.err == "EOF" {
			assert.Empty(t, got, test.in)
		}
	}
}

// What just fits an event, and what does not. Names of fields and line breaks are no data.
func TestEventAtItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 500
	data := func(n int) string { return `{"id":7,"a":"` + strings.Repeat("x", n-len(`{"id":7,"a":""}`)) + `"}` }
	for name, test := range map[string]struct {
		in       string
		replaced bool
		err      string
	}{
		"just fits":                  {"event: message\r\nid: 1\r\ndata: " + data(limit) + "\r\n\r\n", false, "EOF"},
		"one byte more":              {"data: " + data(limit+1) + "\n\n", true, "EOF"},
		"in two lines":               {"data: " + data(limit)[:200] + "\ndata: " + data(limit)[200:] + "\n\n", true, "EOF"},
		"with much beside it":        {"data: " + data(100) + "\n: " + strings.Repeat("c", 600) + "\n\n", false, "EOF"},
		"as long as may be replaced": {"data: " + data(16*limit+7) + "\n\n", true, "EOF"},
		"too long":                   {"data: " + data(16*limit+8) + "\n\n", true, "more bytes than 16 times the limit of 500"},
	} {
		got, err := readEvents(test.in, limit)
		assert.ErrorContains(t, err, test.err, name)
		if test.err == "EOF" {
			assert.Equal(t, test.replaced, strings.Contains(got, `{"jsonrpc":"2.0","id":7,"error"`), "%s: %.100s", name, got)
			assert.Equal(t, !test.replaced, strings.Contains(got, "xxx"), name)
			assert.Equal(t, 1, strings.Count(got, "\n\n"), name)
		}
	}
}

// The last member of fields counts for the kind, and all data.
func TestFields(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"":                                   {"message", ""},
		"data":                               {"message", ""},
		"data:":                              {"message", ""},
		"data:  a\r\n":                       {"message", " a"},
		"data:a\ndata: b\ndata:\n":           {"message", "a b "},
		"event: endpoint \nevent:x\ndata: a": {"x", "a"},
		"id: 1\n:data: a\n data: b":          {"message", ""},
	} {
		kind, data := fields([]byte(in))
		assert.Equal(t, want, [2]string{kind, string(data)}, in)
	}
}

// A request has a method and an id; a notification, an answer and a text have not.
func TestIsRequest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		`{"id":1,"method":"a"}`: true, `{"method":"a"}`: false, `{"id":1}`: false, `{"id":1,"method":null}`: false,
		`{"id":1,"result":"\"method\""}`: false, `"method"`: false, `{"id":1,"method":"a"`: false, `{"id":1,"method":5}`: false,
	} {
		assert.Equal(t, want, isRequest([]byte(in)), in)
	}
}

func readEvents(in string, limit int) (string, error) {
	server, _ := url.Parse("https://host/sse")
	b := newEventBody(io.NopCloser(strings.NewReader(in)), server, limit, limit/5, &unsolicited{max: 50, maxBytes: limit})
	var out bytes.Buffer
	var err error
	for p := make([]byte, 7); err == nil; {
		var n int
		n, err = b.Read(p)
		out.Write(p[:n])
	}
	return out.String(), err
}

func FuzzEventBody(f *testing.F) {
	f.Add("event: endpoint\ndata: /x\n\ndata: {\"id\":1}\n\n")
	f.Add("data: {\"id\":1,\r\ndata: \"method\":\"x\"}\n\n")
	f.Add("data:" + strings.Repeat("x", 900) + "\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		out, err := readEvents(in, 200)
		require.Error(t, err)
		for event := range strings.SplitSeq(strings.TrimSuffix(out, "\n\n"), "\n\n") {
			kind, data, ok := strings.Cut(event, "\ndata: ")
			if event == "" {
				continue
			}
			require.True(t, ok && strings.HasPrefix(kind, "event: ") && !strings.Contains(data, "\n"), event)
			require.LessOrEqual(t, len(data), 400)
			var m struct {
				ID     *json.RawMessage
				Method *string
			}
			if kind == "event: message" && json.Unmarshal([]byte(data), &m) == nil {
				require.False(t, m.ID != nil && m.Method != nil && strings.Contains(data, `"method"`) && strings.Contains(data, `"id"`), data)
			}
			if kind == "event: endpoint" {
				to, err := url.Parse(data)
				require.True(t, err == nil && (to.Host == "" || to.Host == "host"), data)
			}
		}
		require.True(t, errors.Is(err, io.EOF) || strings.Contains(err.Error(), "limit") || strings.Contains(err.Error(), "host"), err)
	})
}
