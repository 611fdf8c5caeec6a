package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request that has a header of its own is left alone. Else an account has one, or says why not.
func TestHeadersOfAnAccount(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	of := func(secret string) HeaderSource {
		a := login.New(login.Config{OAuth: config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: secret},
			URL: authority.Server, Key: "k", Store: new(login.Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(a.Close)
		return logIn(a)
	}
	authority.Mu.Lock()
	authority.Knows = func(r *http.Request) bool { return r.PostForm.Get("client_secret") == "right" }
	authority.Mu.Unlock()
	resp, err := http.Get(authority.Server)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	refused := &Refusal{Sent: http.Header{}, Challenges: resp.Header.Values("WWW-Authenticate")}

	header, err := of("right")(t.Context(), http.Header{"Authorization": {"mine"}}, refused)
	assert.NoError(t, err)
	assert.Nil(t, header)
	header, err = of("right")(t.Context(), http.Header{}, nil)
	assert.NoError(t, err)
	assert.Nil(t, header, "nobody has asked for one")
	header, err = of("right")(t.Context(), http.Header{}, refused)
	require.NoError(t, err)
	assert.Regexp(t, "^Bearer .", header.Get("Authorization"))
	header, err = of("wrong")(t.Context(), http.Header{}, refused)
	assert.Error(t, err)
	assert.Nil(t, header)
}

// desk is where an account logs in: answers by method and address, each "STATUS BODY". Everything else
// is not found.
type desk map[string]string

func (d desk) RoundTrip(r *http.Request) (*http.Response, error) {
	said, ok := d[r.Method+" "+r.URL.String()]
	if !ok {
		said = "404 "
	}
	resp := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	code, body, _ := strings.Cut(said, " ")
	_, err := fmt.Sscan(code, &resp.StatusCode)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return resp, err
}

// A server that wants a login: its states, what callers get, and what is sent, with logins, refreshes,
// scopes and a logout.
func TestGoldenAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "A server over HTTP that wants a login, and later another, and more scopes.")
		issued := 0
		token := func() string { issued++; return fmt.Sprintf("the-access-token-%d", issued) }
		web := desk{
			"GET https://h.example/.well-known/oauth-protected-resource/mcp": `200 {"resource":"https://h.example/mcp","authorization_servers":["https://as.example"]}`,
			"GET https://as.example/.well-known/oauth-authorization-server":  `200 {"issuer":"https://as.example","authorization_endpoint":"https://as.example/a","token_endpoint":"https://as.example/t","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`,
		}
		grant := func() {
			web["POST https://as.example/t"] = fmt.Sprintf(`200 {"access_token":%q,"token_type":"Bearer","refresh_token":"the-refresh-token"}`, token())
		}
		account := func(web desk, oauth config.OAuth) *login.Account {
			return login.New(login.Config{OAuth: oauth, URL: "https://h.example/mcp", Key: "k", Store: new(login.Memory), HTTP: web, Log: slog.New(slog.DiscardHandler)})
		}
		of := func(a *login.Account) Config {
			return Config{
				Account:      a,
				Unauthorized: func(scopes []string) error { return fmt.Errorf("%w at the desk, for %q", ErrUnauthorized, scopes) },
				NamesNone:    func() error { return fmt.Errorf("%w, and there is no desk", ErrUnauthorized) },
			}
		}
		a := account(web, config.OAuth{ClientID: "c", RedirectURI: "https://app.example/back"})
		srv := s.open(of(a), storyLimits())
		ready := func() {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			s.say(aLook, "not ready: %v; for who waits no more: %v", srv.NotReady(t.Context()), srv.NotReady(ended))
		}
		logIn := func() {
			grant()
			s.result(nil, a.Login(t.Context(), func(_ context.Context, page login.Page) (string, error) {
				u, err := url.Parse(page.URL)
				require.NoError(t, err)
				return "https://app.example/back?code=c&state=" + url.QueryEscape(u.Query().Get("state")), nil
			}))
			s.result(nil, srv.Again(t.Context()))
			s.wait(time.Second, "after the login")
		}
		ready()
		s.says("server/discover", "status 401 WWW-Authenticate: Bearer", "error -32601 no")
		s.says("initialize", "status 401 WWW-Authenticate: Bearer", before2026)
		s.step("start")
		s.result(nil, srv.Start(t.Context()))
		ready()
		once := Tool{Name: "a"}
		s.call(t.Context(), "a call", once)
		s.step("login")
		logIn()
		ready()
		s.call(t.Context(), "a call", once)
		grant()
		s.says("tools/call", "status 401", `result {"content":[]}`)
		s.call(t.Context(), "its token is refused", once)
		s.says("tools/call", "error -32000 bad the-access-token-2 of the-refresh-token")
		s.call(t.Context(), "it repeats tokens", once)
		const lacks = `status 403 WWW-Authenticate: Bearer error="insufficient_scope", scope="write the-access-token-2"`
		s.says("tools/call", lacks)
		for range 2 {
			s.call(t.Context(), "it lacks a scope", once)
		}
		s.step("login with that")
		s.says("tools/call", `result {"content":[]}`)
		logIn()
		s.call(t.Context(), "a call", once)
		web["POST https://as.example/t"] = `503 overloaded`
		s.says("tools/call", "status 401")
		s.call(t.Context(), "its token is refused, and there is no other now", once)
		web["POST https://as.example/t"] = `400 {"error":"invalid_grant"}`
		s.says("initialize", "status 401")
		s.wait(time.Minute, "it tries again")
		s.call(t.Context(), "its refresh token is spent", once)
		s.wait(time.Minute, "it tries again")
		ready()
		s.says("initialize", before2026)
		s.says("tools/call", `result {"content":[]}`)
		s.step("login again")
		logIn()
		s.step("logout")
		s.says("initialize", "status 401")
		s.result(nil, a.Logout(t.Context(), func() error { return nil }))
		s.result(nil, srv.LoggedOut(t.Context()))
		s.wait(time.Second, "it tries again")
		s.step("close")
		srv.Close()
		_, err := a.Header(t.Context(), &login.Refusal{Header: "Bearer x"})
		s.result("a header", err)

		s.flush()
		s.text.WriteString("\nA server that names no place to log in.\n")
		s.says("server/discover", "status 401")
		srv = s.open(of(account(desk{}, config.OAuth{})), storyLimits())
		s.step("start")
		s.result(nil, srv.Start(t.Context()))
		ready()
		synctest.Wait() // its state is told
		srv.Close()

		s.flush()
		s.text.WriteString("\nA server that hangs.\n")
		s.says("server/discover", "hangs")
		s.says("initialize", "hangs")
		srv = s.open(of(account(desk{}, config.OAuth{})), storyLimits())
		s.step("start")
		ended, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("late"))
		defer cancel()
		s.result(nil, srv.Start(ended))
		ready()
		s.step("again, and restart")
		s.result(nil, srv.Again(ended))
		s.result(nil, srv.Restart(ended))
		s.result(nil, srv.LoggedOut(ended))
		s.wait(time.Minute, "it tries again")
		ready()
		s.done("account.golden")
	})
}
