package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host may have replaced http.DefaultTransport.
func TestForeignDefaultTransport(t *testing.T) {
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	http.DefaultTransport = struct{ http.RoundTripper }{standard}
	srv := newTest(t, config.Server{Name: "web", URL: "http://127.0.0.1:1/"}, config.Limits{})
	assert.ErrorContains(t, srv.Start(t.Context()), "connection refused")
}

// A connection that ends within an answer counts as lost.
func TestHTTPAnswerBreaksOff(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	handler := mcpserver.NewStreamableHTTPServer(s)
	for _, kind := range []string{"text/event-stream", "application/json"} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), `"tools/call"`) {
				r.Body = io.NopCloser(bytes.NewReader(body))
				handler.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}))
		srv := newTest(t, config.Server{Name: "web", URL: web.URL + "/mcp"}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		_, err := srv.call(t.Context(), "echo")
		assert.ErrorIs(t, err, ErrDown, kind)
		srv.Close()
		web.Close()
	}
}

// No error has a secret of the URL or a page of text.
func TestHTTPErrorsAreClean(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"page": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, strings.Repeat("<p>sorry</p>\n", 100_000))
		},
		"hang up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"hang up after initialize": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), `"initialize"`) {
				if strings.Contains(string(body), "server/discover") {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`)
		},
	} {
		web := httptest.NewUnstartedServer(handler)
		web.Config.ErrorLog = log.New(io.Discard, "", 0)
		web.Start()
		srv := newTest(t, config.Server{Name: "web", URL: web.URL + "/mcp?key=SECRET"}, config.Limits{})
		err := srv.Start(t.Context())
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "SECRET", name)
		assert.Less(t, len(err.Error()), 3*text.MaxError, name)
		srv.Close()
		web.Close()
	}
}

// The headers of a configuration go to its server only, not to the target of a
// redirect.
func TestHTTPRedirectToAnotherHost(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the other host was asked")
	}))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	srv := newTest(t, config.Server{Name: "web", URL: web.URL, Headers: map[string]string{"X-Key": "k"}}, config.Limits{})
	assert.ErrorContains(t, srv.Start(t.Context()), "refused a redirect to host")
}

// A server that stops answering can't delay the start or the close.
func TestHTTPServerHangs(t *testing.T) {
	release := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer web.Close()
	defer close(release)
	srv := newTest(t, config.Server{Name: "web", URL: web.URL}, config.Limits{StartTimeout: 200 * time.Millisecond})
	begun := time.Now()
	assert.ErrorContains(t, srv.Start(t.Context()), "no answer within 200ms")
	srv.Close()
	assert.Less(t, time.Since(begun), 20*time.Second)
}

// Connections that concurrent calls opened are used again.
func TestConnectionsAreKept(t *testing.T) {
	var opened atomic.Int32
	web := httptest.NewUnstartedServer(mcpserver.NewStreamableHTTPServer(mcptest.Server("a", mcptest.Chores("a", 1)...)))
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	web.Start()
	defer web.Close()
	srv := started(t, config.Server{Name: "a", URL: web.URL}, config.Limits{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				_, err := srv.call(t.Context(), "tool_000")
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.Less(t, opened.Load(), int32(40), "of 320 calls")
	srv.Close()
}

// An HTTP server that was away and comes back as a new one is found again.
func TestHTTPServerComesBack(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	again := func() *http.Handler {
		var h http.Handler = mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true))
		return &h
	}
	var there atomic.Pointer[http.Handler] // the port stays ours while it is away
	there.Store(again())
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := there.Load()
		if h == nil {
			panic(http.ErrAbortHandler)
		}
		(*h).ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	srv := started(t, config.Server{Name: "web", URL: web.URL + "/mcp"}, config.Limits{Reconnect: 10 * time.Millisecond})
	_, err := srv.call(t.Context(), "echo")
	require.NoError(t, err)

	there.Store(nil)
	web.CloseClientConnections()
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return errors.Is(err, ErrDown) })
	mcptest.Soon(t, func() bool { return srv.Status().Failures > 1 })
	there.Store(again())
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return err == nil })
	assert.Equal(t, Ready, srv.Status().State)
}

// A server restarts while nobody calls, and answers its old session with 400
// instead of 404. We connect anew.
func TestHTTPServerForgetsItsSession(t *testing.T) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	inner := mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	var known sync.Map
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			if _, ok := known.Load(id); !ok {
				http.Error(w, "no valid session", http.StatusBadRequest)
				return
			}
		}
		inner.ServeHTTP(w, r)
		known.Store(w.Header().Get("Mcp-Session-Id"), true)
	}), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
	_, err := srv.call(t.Context(), "echo")
	require.NoError(t, err)
	known.Clear()
	_, err = srv.call(t.Context(), "echo")
	require.ErrorContains(t, err, "no valid session")
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return err == nil })
}

// Arguments that a server wants as headers too are sent so over modern HTTP. A tool
// that asks for them in a wrong way is not used.
func TestArgumentsAsHeaders(t *testing.T) {
	s := mcpserver.NewMCPServer("web", "1")
	var got sync.Map
	s.AddTool(mcp.NewToolWithRawSchema("run", "", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"other":{"type":"string"}}}`)),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("ran"), nil
		})
	s.AddTools(mcptest.Echo("plain", ""))
	inner := mcpserver.NewStreamableHTTPServer(s)
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(body, &request)
		if request.Method == "tools/call" {
			got.Store(request.Params.Name, strings.Join(r.Header.Values("Mcp-Param-Region"), ","))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		if request.Method != "tools/list" {
			inner.ServeHTTP(w, r)
			return
		}
		inner.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		fmt.Fprint(w, strings.Replace(answer.Body.String(), `"tools":[`, `"tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A b"}}}},`+
			`{"name":"escaped","inputSchema":{"type":"object","properties":{"region":{"type":"string","X-mcp-\u0068eader":"Region"}}}},`+
			`{"name":"deep","inputSchema":`+deep(251, `{"type":"string","x-mcp-header":"Region"}`)+`},{"name":"plainly deep","inputSchema":`+deep(4000, `{}`)+`},`+
			`{"name":"long","inputSchema":`+long(1000, 5000)+`},{"name":"shorter","inputSchema":`+long(1000, 4000)+`},`, 1))
	}), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
	require.True(t, srv.connection().isModernHTTP())
	tools, _ := srv.listed()
	require.Len(t, tools, 8)
	assert.EqualError(t, tools[0].Problem, `the x-mcp-header annotations of "bad" are invalid`)
	assert.EqualError(t, tools[2].Problem, `the schema of "deep" has x-mcp-header annotations and more levels than the limit of 500`)
	assert.EqualError(t, tools[4].Problem, `the schema of "long" has x-mcp-header annotations and longer paths than the limit of 4194304 bytes`)
	assert.NoError(t, errors.Join(tools[1].Problem, tools[3].Problem, tools[5].Problem, tools[6].Problem, tools[7].Problem))
	assert.Contains(t, *srv.connection().mirrored.Load(), "escaped")
	for _, tool := range []string{"run", "plain"} {
		_, err := srv.Call(t.Context(), Tool{Name: tool}, json.RawMessage(`{"region":"eu","other":"x"}`))
		require.NoError(t, err)
	}
	region, _ := got.Load("run")
	assert.Equal(t, "eu", region)
	region, _ = got.Load("plain")
	assert.Equal(t, "", region)
}

// deep returns a schema with so many properties in each other, the innermost as given.
func deep(levels int, innermost string) string {
	return strings.Repeat(`{"properties":{"a":`, levels) + innermost + strings.Repeat(`}}`, levels)
}

// long returns a schema with so many properties below one with a name of so many bytes.
func long(properties, name int) string {
	below := strings.Repeat(`"p":{},`, properties) + `"region":{"type":"string","x-mcp-header":"Region"}`
	return `{"properties":{"` + strings.Repeat("n", name) + `":{"properties":{` + below + `}}}}`
}

// A redirect must stay on the host and may go to https but not back. The number
// of redirects is limited.
func TestRedirects(t *testing.T) {
	to := func(url string) *http.Request { return httptest.NewRequest(http.MethodPost, url, nil) }
	plain, secure := to("http://h/a"), to("https://h/a")
	assert.NoError(t, sameHost(to("http://h/b"), []*http.Request{plain}))
	assert.NoError(t, sameHost(to("https://h/b"), []*http.Request{plain}))
	assert.NoError(t, sameHost(to("https://h/b"), []*http.Request{secure}))
	assert.EqualError(t, sameHost(to("http://h/b"), []*http.Request{secure}), `refused a redirect to host "h"`)
	assert.EqualError(t, sameHost(to("https://other/b"), []*http.Request{secure}), `refused a redirect to host "other"`)
	assert.EqualError(t, sameHost(secure, slices.Repeat([]*http.Request{secure}, 10)), "stopped after 10 redirects")
}

// Only a server that does not know the request, or the method, may be one of the older transport.
// What else it says is told.
func TestWhichRefusalsMayBeOlder(t *testing.T) {
	t.Parallel()
	for status, older := range map[int]bool{400: true, 404: true, 405: true, 403: false, 406: false, 500: false, 502: false} {
		gets := 0
		srv := newTest(t, answeredBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets++
			}
			w.WriteHeader(status)
		})), config.Limits{Reconnect: -1})
		err := srv.Start(t.Context())
		assert.Equal(t, older, strings.Contains(err.Error(), "over the older transport"), "%d: %v", status, err)
		assert.Equal(t, older, gets > 0, status)
		if !older {
			assert.ErrorContains(t, err, fmt.Sprint(status))
		}
	}
}

// Why we don't send a request, or don't read its answer, is its error. The connection stays.
func TestWhyAnAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	s := both()
	s.discovered = discovers(newVersions, `{"tools":{}}`)
	s.results["tools/call"] = `{"content":[{"type":"text","text":"` + strings.Repeat("x", 5000) + `"}]}`
	var key atomic.Pointer[error]
	cfg := config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), HeaderFunc: func(context.Context) (http.Header, error) {
		if err := key.Load(); err != nil {
			return nil, *err
		}
		return nil, nil
	}}
	srv := started(t, cfg, config.Limits{MaxMessage: 2000})
	c := srv.connection()
	_, err := srv.call(t.Context(), "greet")
	assert.EqualError(t, err, "a message has more bytes than the limit of 2000")
	no := errors.New("no key")
	key.Store(&no)
	_, err = srv.call(t.Context(), "greet")
	assert.ErrorIs(t, err, no)
	assert.NotErrorIs(t, err, ErrDown)
	assert.Same(t, c, srv.connection())
}

// The host's own rule for redirects counts behind ours, and its jar is used. A panic of it is an
// error.
func TestRedirectsOfAHost(t *testing.T) {
	t.Parallel()
	asked := 0
	theirs := &http.Client{Jar: new(noJar), CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if asked++; r.URL.Path == "/panic" {
			panic("the host's")
		}
		return http.ErrUseLastResponse
	}}
	c := new(conn)
	web, err := c.httpClient(&Config{Server: config.Server{Name: "web", URL: "https://h/mcp", HTTPClient: theirs}}, guard{}, new(secrets), false)
	require.NoError(t, err)
	to := func(url string) error {
		return web.CheckRedirect(httptest.NewRequest(http.MethodPost, url, nil), []*http.Request{httptest.NewRequest(http.MethodPost, "https://h/a", nil)})
	}
	assert.Equal(t, http.ErrUseLastResponse, to("https://h/b"))
	assert.ErrorContains(t, to("https://h/panic"), "ServerConfig.HTTPClient")
	assert.Equal(t, 2, asked)
	assert.ErrorContains(t, to("https://other/b"), "refused a redirect to host")
	assert.Equal(t, 2, asked)
	assert.Same(t, theirs.Jar, web.Jar)
	assert.Nil(t, c.own, "the connections are the host's")

	web, err = c.httpClient(&Config{Server: config.Server{Name: "web", URL: "https://h/mcp", HTTPClient: new(http.Client)}}, guard{}, new(secrets), false)
	require.NoError(t, err)
	assert.NoError(t, to("https://h/b"), "ours is followed alone")
	assert.NotNil(t, web.CheckRedirect)
	_, err = c.httpClient(&Config{Server: config.Server{Name: "web", URL: "https://h:port/"}}, guard{}, new(secrets), false)
	assert.Error(t, err)
	_, err = c.httpClient(&Config{Server: config.Server{Name: "web", URL: "https://h/mcp"}}, guard{}, new(secrets), false)
	assert.NoError(t, err)
	assert.NotNil(t, c.own)
}

// When a connection is closed, nothing is sent any more, and no connection of the network is left
// to be used again: neither by a request that comes later, such as one that is sent again after a
// refused token, nor by one that was about to get its connection.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	open, closed := make(chan string, 9), make(chan string, 9)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open <- c.RemoteAddr().String()
		case http.StateClosed:
			closed <- c.RemoteAddr().String()
		}
	}
	server.Start()
	defer server.Close()
	own := &ownTransport{Transport: new(http.Transport)}
	own.Proxy = func(*http.Request) (*url.URL, error) { // is asked before a connection is looked for
		own.end()
		return nil, nil
	}
	ask := func() error {
		resp, err := (&http.Client{Transport: own}).Get(server.URL)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			assert.NoError(t, resp.Body.Close())
		}
		return err
	}
	require.NoError(t, ask())
	assert.Equal(t, <-open, <-closed)
	assert.ErrorIs(t, ask(), errEnded)
	assert.Empty(t, open)
}

type noJar struct{}

func (*noJar) SetCookies(*url.URL, []*http.Cookie) {}
func (*noJar) Cookies(*url.URL) []*http.Cookie     { return nil }

// Headers come from the configuration, then from the helper, then from the host's function.
func TestWhereHeadersComeFrom(t *testing.T) {
	t.Parallel()
	mcptest.SkipUnlessUnix(t)
	sent := make(chan http.Header, 9)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		sent <- r.Header
		return &http.Response{StatusCode: 202, Body: http.NoBody}, nil
	})
	c := new(conn)
	ask := func(cfg config.Server) (http.Header, error) {
		cfg.Name, cfg.URL, cfg.HTTPClient = "web", "https://h/mcp", &http.Client{Transport: base}
		cfg.Headers = map[string]string{"A": "fixed", "B": "fixed", "C": "fixed"}
		web, err := c.httpClient(&Config{Server: cfg}, guard{maxMessage: 100, unsolicited: new(unsolicited)}, new(secrets), false)
		require.NoError(t, err)
		resp, err := web.Do(post(t, "https://h/mcp", "{}"))
		if err != nil {
			return nil, err
		}
		require.NoError(t, resp.Body.Close())
		return <-sent, nil
	}
	got, err := ask(config.Server{HeadersHelper: `echo '{"B":"helped","C":"helped"}'`, HeaderFunc: func(context.Context) (http.Header, error) { return http.Header{"C": {"asked"}}, nil }})
	require.NoError(t, err)
	assert.Equal(t, []string{"fixed", "helped", "asked"}, []string{got.Get("A"), got.Get("B"), got.Get("C")})
	assert.True(t, c.changing.Load())
	_, err = ask(config.Server{HeaderFunc: func(context.Context) (http.Header, error) { panic("the host's") }})
	assert.ErrorContains(t, err, "ServerConfig.HeaderFunc")
}

// A server that takes long to accept an answer gets it, unless many are on their way: one that
// accepts none holds few requests, none for ever, and none when the connection has ended.
func TestAnswersToASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := 10 * time.Second
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(takes):
				return status(http.StatusAccepted), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		life, end := context.WithCancel(t.Context())
		defer end()
		rt := &limitedHTTP{base: base, authorizer: authorized("http://h/mcp"), maxMessage: 100, maxValues: 10, unsolicited: &unsolicited{max: 10, maxBytes: 100}, replies: newReplies(life)}
		answer := func() (took time.Duration, err error) {
			begun := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://h/mcp", nil)
			require.NoError(t, err)
			_, err = rt.RoundTrip(r)
			return time.Since(begun), err
		}
		var all sync.WaitGroup
		for range maxSlowReplies {
			all.Go(func() {
				took, err := answer()
				assert.NoError(t, err)
				assert.Equal(t, takes, took)
			})
		}
		synctest.Wait()
		took, err := answer()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, termGrace, took)
		all.Wait()

		takes = time.Hour
		took, err = answer()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, replyTimeout, took)
		time.AfterFunc(time.Second, end)
		took, err = answer()
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, took)
	})
}

// mcp-go ends the context of a question of the server after 30 seconds and sends the
// answer with it. A person may take longer.
func TestQuestionsOverHTTP(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer web.Close()
	address, err := url.Parse(web.URL)
	require.NoError(t, err)
	base := newTransport()
	defer base.CloseIdleConnections()
	rt := &limitedHTTP{large: newBypass(), base: base, authorizer: &authorizer{server: address}, maxMessage: 1000, maxValues: 1000, unsolicited: &unsolicited{max: 10, maxBytes: 1000}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	post := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL, nil)
		require.NoError(t, err)
		resp, err := rt.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	assert.NoError(t, post(over), "an answer to a question on the stream of a GET")
	request := context.WithValue(over, failureKey{}, new(outcome))
	assert.ErrorIs(t, post(request), context.Canceled, "a request")
	assert.NoError(t, post(request), "an answer to a question on its stream")
}
