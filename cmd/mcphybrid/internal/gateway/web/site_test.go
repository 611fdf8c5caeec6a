package web

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// site returns the handler of a site at loopback, whose pages and messages answer with what
// they are, and its figures.
func site(t *testing.T, tokenFile string, front Front) (http.Handler, *Site, func() string) {
	t.Setenv(tokens.Variable, "")
	w, err := Listen("127.0.0.1:0", Options{TokenFile: tokenFile, Origins: []string{"https://page.example"}, Debug: true, Metrics: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.listener.Close() })
	counted := figures.New()
	w.Within(limits.Limits{Message: 1000}.WithDefaults(), counted)
	say := func(what string) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			_, _ = io.WriteString(out, what+string(body))
		})
	}
	if front.Messages == nil {
		front.Messages = say("message ")
	}
	front.Has = func(server string) bool { return server == "files" || server == "a/b" }
	front.Debug, front.Metrics, front.Health, front.Log = say("debug"), say("metrics"), say("health"), slog.New(slog.DiscardHandler)
	if front.Streams == nil {
		front.Streams = t.Context()
	}
	return w.Server(front).Handler, w, func() string {
		var b strings.Builder
		counted.Expose(figures.NewExposition(&b))
		return b.String()
	}
}

type headers map[string]string

func ask(h http.Handler, method, target, body string, with headers) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	for name, value := range with {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:80"))))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Who may ask for what: by the origin, the host, the token and whose it is.
func TestWhoMayAsk(t *testing.T) {
	file := commandtest.WriteFile(t, "secret", `{"tokens": [{"name": "a", "token": "hunter2", "operator": true}, {"name": "b", "token": "hunter3"}]}`)
	h, _, counted := site(t, file, Front{})
	a, b := "Bearer hunter2", "Bearer hunter3"
	refused := 0
	for _, test := range []struct {
		method, target, body string
		with                 headers
		status               int
		says                 string
	}{
		{"POST", "/mcp", "{}", headers{"Authorization": a}, 200, "message {}"},
		{"POST", "/mcp", "{}", headers{"Authorization": b}, 200, "message {}"},
		{"POST", "/mcp", "{}", nil, 401, "the bearer token is missing or wrong"},
		{"POST", "/mcp", "{}", headers{"Authorization": "Bearer hunter"}, 401, "the bearer token is missing or wrong"},
		{"POST", "/mcp", "{}", headers{"Authorization": a, "Origin": "https://page.example"}, 200, "message {}"},
		{"POST", "/mcp", "{}", headers{"Authorization": a, "Origin": "https://evil.example"}, 403, "this origin may not call"},
		{"OPTIONS", "/mcp", "", headers{"Origin": "https://page.example"}, 200, "message"},
		{"OPTIONS", "/mcp", "", nil, 401, "the bearer token"},
		{"POST", "/mcp", "{}", headers{"Authorization": a, "Host": "evil.example"}, 403, `there is no host "evil.example" here`},
		{"POST", "/mcp", strings.Repeat("x", 1001), headers{"Authorization": a}, 413, "1000"},
		{"DELETE", "/mcp", "x", headers{"Authorization": a}, 400, "this request must have no body"},
		{"GET", "/debug", "", headers{"Authorization": a}, 200, "debug"},
		{"GET", "/debug/", "", headers{"Authorization": a}, 200, "debug"},
		{"GET", "/debug/", "", nil, 401, "the password is the gateway's token"},
		{"GET", "/debug/x", "", headers{"Authorization": a}, 404, "there is nothing here"},
		{"POST", "/debug", "", headers{"Authorization": a}, 200, "debug"},
		{"POST", "/debug", "", headers{"Authorization": b}, 403, "only the token of an operator opens it"},
		{"GET", "/debug", "", headers{"Authorization": "Basic eDpodW50ZXIy"}, 200, "debug"}, // x:hunter2
		{"GET", "/debug", "", headers{"Authorization": b}, 403, "only the token of an operator opens it"},
		{"GET", "/debug", "", nil, 401, "the password is the gateway's token"},
		{"POST", "/debug", "x", headers{"Authorization": a}, 400, "this request must have no body"},
		{"GET", "/metrics", "", headers{"Authorization": a}, 200, "metrics"},
		{"GET", "/metrics", "", headers{"Authorization": b}, 403, "operator"},
		{"GET", "/healthz", "", nil, 200, "health"},
		{"HEAD", "/healthz", "", nil, 200, ""},
		{"POST", "/healthz", "", nil, 405, "only GET without a body"},
		{"GET", "/healthz", "x", nil, 405, "only GET without a body"},
		{"GET", "/other", "", nil, 404, "there is nothing here: see /mcp"},
		{"POST", "/mcp/files", "{}", headers{"Authorization": a}, 200, "message {}"},
		{"POST", "/mcp/%66iles", "{}", headers{"Authorization": b}, 200, "message {}"},
		{"POST", "/mcp/a%2Fb", "{}", headers{"Authorization": a}, 200, "message {}"},
		{"POST", "/mcp/files", "{}", nil, 401, "the bearer token is missing or wrong"},
		{"POST", "/mcp/nothing", "{}", nil, 401, "the bearer token is missing or wrong"},
		{"POST", "/mcp/files", "{}", headers{"Authorization": a, "Origin": "https://evil.example"}, 403, "this origin may not call"},
		{"POST", "/mcp/files", "{}", headers{"Authorization": a, "Host": "evil.example"}, 403, `there is no host "evil.example" here`},
		{"POST", "/mcp/files", strings.Repeat("x", 1001), headers{"Authorization": a}, 413, "1000"},
		{"OPTIONS", "/mcp/files", "", headers{"Origin": "https://page.example"}, 200, "message"},
		{"OPTIONS", "/mcp/nothing", "", headers{"Origin": "https://page.example"}, 200, "message"}, // tells no names
		{"POST", "/mcp/nothing", "{}", headers{"Authorization": a}, 404, `there is no server "nothing" here: /mcp has all servers`},
		{"POST", "/mcp/Files", "{}", headers{"Authorization": a}, 404, `there is no server "Files"`},
		{"POST", "/mcp/files%2F", "{}", headers{"Authorization": a}, 404, `there is no server "files/"`},
		{"POST", "/mcp/files%00", "{}", headers{"Authorization": a}, 404, `there is no server "files?"`},
		{"POST", "/mcp/a%2F..%2Ffiles", "{}", headers{"Authorization": a}, 404, `there is no server "a/../files"`},
		{"POST", "/mcp/%3Cscript%3E%0A", "{}", headers{"Authorization": a}, 404, `there is no server "<script>?"`},
		{"POST", "/mcp/" + strings.Repeat("x", 5000), "{}", headers{"Authorization": a}, 404, `xxx…" here`},
		{"POST", "/mcp/files/x", "{}", headers{"Authorization": a}, 404, "there is nothing here"},
		{"POST", "/mcp/files/", "{}", headers{"Authorization": a}, 404, "there is nothing here"},
		{"POST", "/mcp/", "{}", headers{"Authorization": a}, 404, "there is n"},
		{"POST", "/mcp/x/../files", "{}", headers{"Authorization": a}, 307, ""}, // to /mcp/files
		{"POST", "/mcp/%2e%2e/debug", "{}", headers{"Authorization": b}, 404, "there is nothing here"},
		{"POST", "/mcp/%2e%2e", "{}", headers{"Authorization": b}, 404, `there is no server ".."`},
		{"POST", "/mcp//files", "{}", headers{"Authorization": a}, 307, ""},
	} {
		if test.method == "DELETE" || test.method == "OPTIONS" {
			if test.with == nil {
				test.with = headers{}
			}
			test.with[server.HeaderKeySessionID] = "x"
		}
		got := ask(h, test.method, test.target, test.body, test.with)
		assert.Equal(t, test.status, got.Code, "%s %s %v: %s", test.method, test.target, test.with, got.Body)
		assert.Contains(t, got.Body.String(), test.says, "%s %s", test.method, test.target)
		if test.status == 401 {
			refused++
			assert.NotEmpty(t, got.Header().Get("WWW-Authenticate"))
		}
		if origin := test.with["Origin"]; test.status == 200 && origin != "" {
			assert.Equal(t, origin, got.Header().Get("Access-Control-Allow-Origin"))
		} else {
			assert.Empty(t, got.Header().Get("Access-Control-Allow-Origin"))
		}
	}
	assert.Contains(t, counted(), fmt.Sprintf("unauthorized_total %d\n", refused))
}

// Without tokens, everybody may ask at loopback, and pages open under names of it alone.
func TestSiteWithoutTokens(t *testing.T) {
	h, w, _ := site(t, "", Front{})
	assert.Equal(t, 200, ask(h, "POST", "/mcp", "{}", nil).Code)
	assert.Equal(t, 200, ask(h, "POST", "/mcp", "{}", headers{"Origin": w.own}).Code, "a page of ours")
	assert.Equal(t, 200, ask(h, "GET", "/debug", "", headers{"Host": "localhost:80"}).Code)
	assert.Equal(t, 421, ask(h, "GET", "/debug", "", headers{"Host": "evil.example"}).Code)
	assert.Equal(t, 403, ask(h, "POST", "/mcp", "{}", headers{"Host": "evil.example"}).Code)
	assert.Equal(t, 400, ask(h, "GET", "/mcp", "", nil).Code, "a session is missing")
	assert.Equal(t, 404, ask(h, "GET", "/mcp", "", headers{server.HeaderKeySessionID: "x"}).Code)
	bare := &Site{Tokens: w.Tokens, listener: w.listener}
	bare.Within(w.limits, w.figures)
	plain := bare.Server(Front{Messages: http.NotFoundHandler(), Health: http.NotFoundHandler(), Streams: t.Context(), Log: slog.New(slog.DiscardHandler)}).Handler
	assert.Equal(t, 404, ask(plain, "GET", "/debug", "", nil).Code, "no flag asks for it")
	assert.Equal(t, 404, ask(plain, "GET", "/metrics", "", nil).Code)
}

// A notification that would cancel another client's request is dropped; there it has sessions,
// it goes to mcp-go.
func TestForeignCancellationsAreDropped(t *testing.T) {
	h, _, _ := site(t, "", Front{})
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled"}`
	modern := headers{mcp.HeaderProtocolVersion: mcp.ProtocolVersion20260728}
	got := ask(h, "POST", "/mcp", cancelled, modern)
	assert.Equal(t, http.StatusAccepted, got.Code)
	assert.Empty(t, got.Body.String())
	assert.Equal(t, "message "+cancelled, ask(h, "POST", "/mcp", cancelled, nil).Body.String())
	assert.Equal(t, "message {}", ask(h, "POST", "/mcp", "{}", modern).Body.String())
	assert.Equal(t, "message {", ask(h, "POST", "/mcp", "{", modern).Body.String())
}

// Streams end with the site, other requests do not.
func TestStreamsEnd(t *testing.T) {
	streams, end := context.WithCancel(t.Context())
	end()
	h, w, _ := site(t, "", Front{Streams: streams, Messages: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Header.Get(mcp.HeaderMethod) != "" {
			<-r.Context().Done()
			return
		}
		assert.NoError(t, r.Context().Err())
	})})
	assert.Equal(t, 200, ask(h, "POST", "/mcp", "{}", nil).Code)
	assert.Equal(t, 200, ask(h, "POST", "/mcp", "{}", headers{mcp.HeaderMethod: string(mcp.MethodSubscriptionsListen)}).Code)
	id, leave := begin(w.Sessions, nil)
	defer leave()
	assert.Equal(t, 200, ask(h, "GET", "/mcp", "", headers{server.HeaderKeySessionID: id}).Code)
}

// A client whose message does not come whole in time is told so.
func TestMessagesThatDoNotComeWhole(t *testing.T) {
	h, _, _ := site(t, "", Front{})
	r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(os.ErrDeadlineExceeded)))
	got := httptest.NewRecorder()
	h.ServeHTTP(got, r)
	assert.Equal(t, http.StatusRequestTimeout, got.Code)
	assert.Equal(t, "the message did not come whole within 30s\n", got.Body.String())
	assert.Equal(t, "close", got.Header().Get("Connection"))
}

// The flags for HTTP need an address, and names of hosts are names alone.
func TestFlagsForHTTP(t *testing.T) {
	t.Parallel()
	assert.NoError(t, CheckFlags(":80", map[string]bool{"debug": true}))
	assert.NoError(t, CheckFlags("", map[string]bool{"config": true, "debug": false}))
	assert.EqualError(t, CheckFlags("", map[string]bool{"debug": true}), "-debug needs -http")
	var o Options
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.AddFlags(flags)
	require.NoError(t, flags.Parse(strings.Fields("-origin a -origin b -host MCP.example -debug -metrics -listen-anywhere -token-file t -tls-cert c -tls-key k")))
	assert.Equal(t, Options{anywhere: true, TokenFile: "t", Origins: []string{"a", "b"}, Hosts: []string{"mcp.example"}, Debug: true, Metrics: true, Cert: "c", Key: "k"}, o)
	for _, host := range []string{"", "a:80", "https://a", "*", "a b", "u@a"} {
		assert.ErrorContains(t, flags.Parse([]string{"-host", host}), "want a name alone", host)
	}
}

// begin begins a session of a holder, as mcp-go does within a request.
func begin(t *Sessions, of *tokens.Holder) (id string, leave func()) {
	ctx, release := tokens.With(context.Background(), of)
	defer release()
	begun := new(*httpSession)
	r := httptest.NewRequest("POST", "/mcp", nil).WithContext(context.WithValue(ctx, begunKey{}, begun))
	id = t.ResolveSessionIdManager(r).Generate()
	return id, func() { t.leave(*begun) }
}

// If there are too many sessions, one that answers nothing ends: first one that never asked
// anything, then the one that was silent longest.
func TestSurplusSessionsEnd(t *testing.T) {
	t.Parallel()
	var ended []string
	s := newSessions(3)
	s.End = func(id string) { ended = append(ended, id) }
	first, leave := begin(s, nil)
	leave()
	second, leave := begin(s, nil)
	leave()
	used := s.enter(first, owner{}, false)
	require.NotNil(t, used)
	third, leaveThird := begin(s, nil)
	assert.Equal(t, 3, s.Count())
	_, leave = begin(s, nil)
	leave()
	assert.Equal(t, []string{second}, ended, "the others have requests")
	assert.Equal(t, 3, s.Count())
	s.leave(used)
	leaveThird()
	s.mu.Lock()
	for id, of := range s.open { // by age: first is used, the others are not
		of.last = time.Unix(int64(strings.Count(first+third, id)), 0)
		if id == third {
			of.last = time.Unix(5, 0)
		}
	}
	s.mu.Unlock()
	_, leave = begin(s, nil)
	leave()
	assert.Len(t, ended, 2)
	assert.NotContains(t, ended, first, "it was used")
	assert.NotContains(t, ended, third, "it was heard of later")
	assert.NoError(t, used.over.Err())
}

// A session is its holder's, until it is terminated.
func TestSessionsOfHolders(t *testing.T) {
	file := commandtest.WriteFile(t, "secret", `{"tokens": [{"name": "a", "token": "hunter2"}, {"name": "b", "token": "hunter3"}]}`)
	all, err := tokens.Read(file)
	require.NoError(t, err)
	a, b := all.Holder("hunter2"), all.Holder("hunter3")
	s := newSessions(10)
	var ended []string
	s.End = func(id string) { ended = append(ended, id) }
	of := func(h *tokens.Holder) server.SessionIdManager {
		ctx, release := tokens.With(t.Context(), h)
		t.Cleanup(release)
		return s.ResolveSessionIdManager(httptest.NewRequest("POST", "/mcp", nil).WithContext(ctx))
	}
	id, leave := begin(s, a)
	leave()
	_, err = of(a).Validate(id)
	assert.NoError(t, err)
	_, err = of(b).Validate(id)
	assert.Equal(t, errNoSession, err)
	_, err = of(a).Validate("other")
	assert.Equal(t, errNoSession, err)
	assert.Nil(t, s.enter(id, owner{holder: b}, false))
	session := s.enter(id, owner{holder: a}, true)
	require.NotNil(t, session)
	assert.Zero(t, session.requests, "a stream is no request")
	notAllowed, err := of(b).Terminate(id)
	assert.NoError(t, err)
	assert.True(t, notAllowed)
	assert.NoError(t, session.over.Err())
	notAllowed, err = of(a).Terminate(id)
	assert.NoError(t, err)
	assert.False(t, notAllowed)
	assert.Error(t, session.over.Err())
	notAllowed, err = of(a).Terminate(id)
	assert.NoError(t, err)
	assert.False(t, notAllowed, "it is gone")

	// The gateway ends those whose token is no longer one.
	idA, _ := begin(s, a)
	idB, _ := begin(s, b)
	s.EndOthers(func(h *tokens.Holder) bool { return h == a })
	assert.Equal(t, []string{idB}, ended)
	_, err = of(a).Validate(idA)
	assert.NoError(t, err)
	assert.Equal(t, 1, s.Count())
}

// A request of a session that ends is cancelled; one of the newest protocol is of none.
func TestRequestsOfSessions(t *testing.T) {
	t.Parallel()
	s := newSessions(10)
	s.End = func(string) {}
	id, leave := begin(s, nil)
	leave()
	requests := -1
	h := s.withSession(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests = s.open[id].requests
		if r.URL.Path == "/end" {
			s.EndOthers(func(*tokens.Holder) bool { return false })
			<-r.Context().Done()
		}
	}))
	serve := func(method, target string, with headers) int {
		requests = -1
		return ask(h, method, target, "", with).Code
	}
	assert.Equal(t, 200, serve("POST", "/", headers{server.HeaderKeySessionID: id}))
	assert.Equal(t, 1, requests)
	assert.Zero(t, s.open[id].requests)
	assert.Equal(t, 200, serve("GET", "/", headers{server.HeaderKeySessionID: id}))
	assert.Zero(t, requests)
	assert.Equal(t, 200, serve("POST", "/", headers{server.HeaderKeySessionID: "other"}), "mcp-go says that there is none")
	assert.Equal(t, 404, serve("GET", "/", headers{server.HeaderKeySessionID: "other"}))
	assert.Equal(t, 400, serve("GET", "/", nil))
	assert.Equal(t, 400, serve("DELETE", "/", nil))
	assert.Equal(t, 200, serve("POST", "/", nil))
	assert.Equal(t, 200, serve("GET", "/", headers{mcp.HeaderProtocolVersion: mcp.ProtocolVersion20260728}))
	assert.Equal(t, 200, serve("POST", "/", headers{server.HeaderKeySessionID: id, mcp.HeaderProtocolVersion: mcp.ProtocolVersion20260728}))
	assert.Zero(t, requests, "the newest protocol has no sessions")
	ended := httptest.NewRequest("POST", "/end", nil)
	ended.Header.Set(server.HeaderKeySessionID, id)
	assert.NotPanics(t, func() { h.ServeHTTP(httptest.NewRecorder(), ended) })
}
