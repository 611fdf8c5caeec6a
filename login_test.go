package mcphybrid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A loginDesk is a host that logs in, and everything that it prints, logs and saves.
type loginDesk struct {
	t *testing.T
	*Manager
	log     *mcptest.Log
	folder  string          // of tokens
	returns map[string]bool // where the browser was sent after the logins
}

func newLoginDesk(t *testing.T, folder string, servers ...ServerConfig) *loginDesk {
	d := &loginDesk{t: t, log: new(mcptest.Log), folder: folder, returns: make(map[string]bool)}
	var mu sync.Mutex
	d.Manager = NewManager(&Options{
		Servers: servers, TokenStore: store.FileTokens(folder), Limits: config.Limits{Reconnect: time.Hour},
		Logger: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OpenURL: func(_ context.Context, page LoginPage) (string, error) {
			u, err := url.Parse(page.URL)
			assert.NoError(t, err)
			mu.Lock()
			d.returns[u.Query().Get("redirect_uri")] = true
			mu.Unlock()
			mcptest.Browse(t, page.URL)
			return "", nil
		},
	})
	t.Cleanup(func() {
		assert.NoError(t, check(d.Manager))
		d.Close()
		assert.NotRegexp(t, mcptest.Secret, d.log.String())
	})
	return d
}

// clean returns an error after it has looked for tokens in everything that a person
// or a model sees.
func (d *loginDesk) clean(err error) error {
	state := d.Default().Save()
	snapshot, snapErr := d.Snapshot(0)
	require.NoError(d.t, snapErr)
	assert.NotRegexp(d.t, mcptest.Secret, fmt.Sprint(err, d.Servers(), string(state), d.Problems())+fmt.Sprintf("%+v", snapshot))
	return err
}

func (d *loginDesk) call() error {
	_, err := d.Manager.Call(d.t.Context(), "mcp_web__echo", nil)
	return d.clean(err)
}

func (d *loginDesk) state() State { return d.Servers()[0].State }

func echoHandler() http.Handler {
	return mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes")))
}

// The whole life of a login: refused, logged in, expired, refreshed, revoked, and
// logged in again. Active tools stay.
func TestLogin(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
	err := d.clean(d.Start(t.Context()))
	var wanted *AuthorizationError
	require.ErrorAs(t, err, &wanted)
	assert.Equal(t, AuthorizationError{Server: "web", URL: a.Server[:len(a.Server)-len("/mcp")]}, *wanted)
	assert.ErrorIs(t, err, ErrAuthorizationRequired)
	assert.NotErrorIs(t, err, ErrServerDown)
	assert.Equal(t, StateUnauthorized, d.state())

	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, StateReady, d.state())
	require.NoError(t, d.call())
	assert.Equal(t, "read write", a.Scopes, "those that the server asked for")
	assert.Equal(t, map[string]bool{a.Server: true}, a.Resources)
	tools := d.Default().Tools()

	// The access token is refused: it is refreshed, and the request sent again.
	for i := range 3 {
		a.Expire()
		require.NoError(t, d.call())
		assert.Equal(t, i+1, a.Count().Refreshes)
	}
	// The access token expires: it is refreshed before the request.
	a.Mu.Lock()
	a.ExpiresIn = 1
	a.Mu.Unlock()
	a.Expire()
	require.NoError(t, d.call())
	soon(t, func() bool { return d.call() == nil && a.Count().Refreshes > 4 })

	// The refresh token is revoked.
	a.Revoke()
	result, err := d.Manager.Call(t.Context(), "mcp_web__echo", nil)
	require.ErrorIs(t, d.clean(err), ErrAuthorizationRequired)
	assert.Equal(t, "mcp_web__echo can't be called now: the user has to log in to its server, web, first. Tell the user so, and go on without it.", resultText(t, result))
	assert.Equal(t, StateUnauthorized, d.state())
	assert.Equal(t, tools, d.Default().Tools(), "the tools stay")
	soon(t, func() bool { return errors.Is(d.call(), ErrAuthorizationRequired) })

	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, StateReady, d.state(), "it was connected, and refused requests")
	require.NoError(t, d.call())
	assert.Equal(t, len(d.returns), a.Count().Clients, "the client is known, unless something else took its port meanwhile")
	assert.Zero(t, a.Count().Reused)

	// Only the owner may read the files.
	files, err := filepath.Glob(filepath.Join(d.folder, "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
	}
}

// Two hosts with one store, and two servers with one authority: no refresh token is
// used twice, and each server has a token of its own.
func TestLoginIsShared(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	other := ServerConfig{Name: "other", URL: a.Guard(t, mcpserver.NewStreamableHTTPServer(mcptest.Server("other", mcptest.Echo("echo", "Echoes"))))}
	web := ServerConfig{Name: "web", URL: a.Server}
	folder := t.TempDir()
	one, two := newLoginDesk(t, folder, web, other), newLoginDesk(t, folder, web)
	require.Error(t, one.Start(t.Context()))
	require.Error(t, two.Start(t.Context()))
	require.NoError(t, one.Login(t.Context(), "web"))
	require.NoError(t, one.Login(t.Context(), "other"))
	require.NoError(t, two.Preload(t.Context(), "*"))
	soon(t, func() bool { return len(two.Servers()) == 1 })
	three := newLoginDesk(t, folder, web)
	require.NoError(t, three.Start(t.Context()), "it needs no login")
	assert.Equal(t, map[string]bool{a.Server: true, other.URL: true}, a.Resources)

	for range 5 {
		a.Expire()
		var wg sync.WaitGroup
		for range 4 {
			for _, d := range []*loginDesk{one, three} {
				wg.Go(func() { assert.NoError(t, d.call()) })
			}
			wg.Go(func() {
				_, err := one.Call(t.Context(), "mcp_other__echo", nil)
				assert.NoError(t, one.clean(err))
			})
		}
		wg.Wait()
	}
	assert.Zero(t, a.Count().Reused)
	assert.Equal(t, 10, a.Count().Refreshes, "one for each server and round")

	// Another user has another login, and so has another server under that name.
	user, err := one.NewUser("ann", &UserOptions{Servers: []ServerConfig{web}})
	require.NoError(t, err)
	assert.ErrorIs(t, user.Start(t.Context()), ErrAuthorizationRequired)
	require.NoError(t, user.Login(t.Context(), "web"))
	elsewhere := newLoginDesk(t, folder, ServerConfig{Name: "web", URL: other.URL})
	assert.ErrorIs(t, elsewhere.Start(t.Context()), ErrAuthorizationRequired)
}

// A process whose token is refused takes the newer one of another process. If that is
// refused too, it refreshes it.
func TestNewerTokenIsRefusedToo(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	web := ServerConfig{Name: "web", URL: a.Server}
	folder := t.TempDir()
	one, two := newLoginDesk(t, folder, web), newLoginDesk(t, folder, web)
	require.Error(t, one.Start(t.Context()))
	require.NoError(t, one.Login(t.Context(), "web"))
	require.NoError(t, two.Start(t.Context()))
	for range 3 {
		a.Expire()
		require.NoError(t, one.call())
		a.Expire()
		require.NoError(t, two.call())
	}
	assert.Equal(t, mcptest.Counts{Clients: 1, Refreshes: 6}, a.Count())
}

// What an authorization server or a hook does wrong is told without secrets, and
// does not end the old login.
func TestLoginFails(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{ClientID: "mine", ClientSecret: "client-hunter2"}}, child(t, "child", "serve"))
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	says := func(path string, status int, body string) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			_ = r.ParseForm()
			if status/100 == 3 {
				w.Header().Set("Location", fmt.Sprintf(body, ""))
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, body, r.Form.Encode())
			return true
		}
	}
	for _, test := range []struct {
		path   string
		status int
		body   string
		want   string
	}{
		{"/token", 400, `{"error":"invalid_request","error_description":"got %s"}`, "invalid_request"},
		{"/token", 500, `%s`, "status 500"},
		{"/token", 200, `{"access_token":""}%.0s`, "no access token"},
		{"/token", 200, `{"access_token":"access-number-9\r\nX: y"}%.0s`, "characters that no header can have"},
		{"/token", 200, `{"access_token":"access-number-9","token_type":"mac"}%.0s`, `of type "mac", want Bearer`},
		{"/token", 307, "http://localhost:1/%.0s", "refused a redirect to host"},
		{"/token", 200, string(bytes.Repeat([]byte(" "), 2<<20)) + "%.0s", "more than 1048576 bytes"},
		{"/.well-known/oauth-authorization-server", 200, `{"issuer":"http://evil.example","authorization_endpoint":"http://x/a","token_endpoint":"http://x/t"}%.0s`, `name the issuer "http://evil.example"`},
		{"/.well-known/oauth-authorization-server", 200, `{"issuer":"` + a.URL + `","authorization_endpoint":"` + a.URL + `/a","token_endpoint":"http://x/t","code_challenge_methods_supported":["plain"]}%.0s`, "does not support PKCE"},
		{"/.well-known/oauth-authorization-server", 200, `{"issuer":"` + a.URL + `","authorization_endpoint":"` + a.URL + `/a","token_endpoint":"` + a.URL + `/token","code_challenge_methods_supported":["plain"],"scopes_supported":"all"}%.0s`, "metadata of the authorization server can't be read"},
		{"/.well-known/oauth-authorization-server", 200, `{"issuer":"` + a.URL + `","authorization_endpoint":"http://x/a","token_endpoint":"http://x/t","jwks_uri":"file:x"}%.0s`, "metadata of the authorization server can't be read"},
	} {
		says(test.path, test.status, test.body)
		err := d.clean(d.Login(t.Context(), "web"))
		assert.ErrorContains(t, err, test.want)
		assert.ErrorContains(t, err, `mcphybrid: login to server "web": `)
		assert.NotContains(t, err.Error(), "client-hunter2")
		require.NoError(t, d.call(), "the old login")
	}
	// A refresh that fails for now ends no login.
	says("/token", 500, "%s")
	a.Expire()
	err := d.call()
	assert.ErrorContains(t, err, "refreshing the token")
	assert.NotErrorIs(t, err, ErrAuthorizationRequired)
	says("", 0, "")
	require.NoError(t, d.call())

	for want, open := range map[string]func(context.Context, LoginPage) (string, error){
		"no browser":                     func(context.Context, LoginPage) (string, error) { return "", errors.New("no browser") },
		"Options.OpenURL: panic: oops":   func(context.Context, LoginPage) (string, error) { panic("oops") },
		"to another login":               func(context.Context, LoginPage) (string, error) { return "http://127.0.0.1/?code=x&state=y", nil },
		context.DeadlineExceeded.Error(): func(ctx context.Context, _ LoginPage) (string, error) { return "", nil },
		"refused the login: access_denied": func(_ context.Context, page LoginPage) (string, error) {
			return redirected(t, page, "error=access_denied"), nil
		},
		"from another authorization server": func(_ context.Context, page LoginPage) (string, error) {
			return redirected(t, page, "code=x&iss=http://evil.example"), nil
		},
	} {
		d.Manager.opts.OpenURL = open
		ctx, cancel := context.WithCancel(t.Context())
		if want == context.DeadlineExceeded.Error() {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		assert.ErrorContains(t, d.clean(d.Login(ctx, "web")), want)
		cancel()
	}
	assert.ErrorContains(t, d.Login(t.Context(), "child"), "it has no URL")
	assert.ErrorContains(t, d.Login(t.Context(), "none"), "there is no such server")
	idle := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
	assert.ErrorContains(t, idle.Login(t.Context(), "web"), "it was not started")
	d.Manager.opts.OpenURL = nil
	assert.ErrorContains(t, d.Login(t.Context(), "web"), "Options.OpenURL is not set")
}

// redirected returns an answer to a page.
func redirected(t *testing.T, page LoginPage, query string) string {
	u, err := url.Parse(page.URL)
	assert.NoError(t, err)
	return u.Query().Get("redirect_uri") + "?state=" + u.Query().Get("state") + "&" + query
}

// A host without a port of its own hands over where the browser came to.
func TestLoginElsewhere(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	mgr := NewManager(&Options{
		OpenURL: func(_ context.Context, page LoginPage) (string, error) {
			browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			resp, err := browser.Get(page.URL)
			if err != nil {
				return "", err
			}
			return resp.Header.Get("Location"), resp.Body.Close()
		},
	})
	defer mgr.Close()
	err := mgr.AddServer(t.Context(), ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{
		RedirectURI: "https://app.example/done", Scopes: []string{"one", "two"}, AuthorizationURL: a.URL + "/authorize?tenant=t", TokenURL: a.URL + "/token",
		ClientID: "mine", ClientSecret: "client-hunter2", Resource: "urn:mine",
	}})
	require.ErrorIs(t, err, ErrAuthorizationRequired)
	require.Len(t, mgr.Servers(), 1, "it stays for the login")
	require.NoError(t, mgr.Login(t.Context(), "web"))
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)
	assert.Equal(t, "one two", a.Scopes)
	assert.Equal(t, map[string]bool{"urn:mine": true}, a.Resources)
	assert.Zero(t, a.Count().Clients)
	a.Expire()
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)
	assert.Equal(t, 1, a.Count().Refreshes)
}

// A server that refuses requests and names no place to log in wants a token: a login is no advice.
func TestUnauthorizedWithoutALogin(t *testing.T) {
	t.Parallel()
	url := guarded(t, func(*http.Request) bool { return false })
	mgr, err := remote(t, Options{}, ServerConfig{URL: url})
	assert.ErrorIs(t, err, ErrAuthorizationRequired)
	assert.ErrorContains(t, err, " wants a token in its headers, and names no place to log in")
	assert.NotContains(t, err.Error(), "Manager.Login")
	assert.Equal(t, StateUnauthorized, mgr.Servers()[0].State, "it may offer one later")
	assert.Equal(t, snapshot.Cause{Kind: cause.Token, What: "it wants a token in its headers, and names no place to log in"}, causeOf(err))
}

// A server that wants no login as we know it says what to do.
func TestUnauthorizedWithoutOAuth(t *testing.T) {
	t.Parallel()
	url := guarded(t, func(r *http.Request) bool { return r.Header.Get("X-Key") == "right" })
	mgr, err := remote(t, Options{}, ServerConfig{URL: url, Headers: map[string]string{"X-Key": "wrong-wrong"}})
	assert.ErrorIs(t, err, ErrAuthorizationRequired)
	assert.ErrorContains(t, err, "the token in its header was refused by server")
	assert.NotContains(t, err.Error(), "Manager.Login", "it would not help")
	assert.NotContains(t, err.Error(), "wrong-wrong")
	assert.Equal(t, StateUnauthorized, mgr.Servers()[0].State)
	assert.ErrorIs(t, mgr.Servers()[0].Err, ErrAuthorizationRequired)
}

// A login works over the older transport, too, which is found out after it.
func TestLoginOverTheOlderTransport(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, mcpserver.NewSSEServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes")),
		mcpserver.WithSSEEndpoint("/mcp"), mcpserver.WithUseFullURLForMessageEndpoint(false)))
	for _, named := range []bool{false, true} {
		d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, SSE: named})
		require.ErrorIs(t, d.clean(d.Start(t.Context())), ErrAuthorizationRequired)
		assert.Equal(t, StateUnauthorized, d.state())
		require.NoError(t, d.clean(d.Login(t.Context(), "web")))
		require.NoError(t, d.call())
		refreshes := a.Count().Refreshes
		a.Expire()
		require.NoError(t, d.call())
		assert.Greater(t, a.Count().Refreshes, refreshes)
		a.Revoke()
		assert.ErrorIs(t, d.call(), ErrAuthorizationRequired)
		assert.Equal(t, StateUnauthorized, d.state())
		require.NoError(t, d.clean(d.Login(t.Context(), "web")))
		require.NoError(t, d.call())
	}
}

// A tokenStore is a [store.Tokens] of a host.
type tokenStore func(ctx context.Context, change func([]byte) ([]byte, error)) error

func (s tokenStore) Update(ctx context.Context, _ string, change func([]byte) ([]byte, error)) error {
	return s(ctx, change)
}

// A TokenStore that ignores its context delays nothing beyond its deadline, and Close
// does not wait for it.
func TestTokenStoreThatHangs(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	web := ServerConfig{Name: "web", URL: a.Server}
	var stuck atomic.Bool
	var saved []byte
	hang := make(chan struct{})
	defer close(hang) // after Close
	mgr := NewManager(&Options{
		Servers: []ServerConfig{web}, Limits: config.Limits{Reconnect: time.Hour},
		TokenStore: tokenStore(func(_ context.Context, change func([]byte) ([]byte, error)) error {
			if stuck.Load() {
				<-hang
			}
			changed, err := change(saved)
			if err == nil {
				saved = changed
			}
			return err
		}),
		OpenURL: func(_ context.Context, page LoginPage) (string, error) {
			mcptest.Browse(t, page.URL)
			return "", nil
		},
	})
	defer mgr.Close()
	_ = mgr.Start(t.Context())
	require.NoError(t, mgr.Login(t.Context(), "web"))
	_, err := mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)

	stuck.Store(true)
	a.Expire()
	other := web
	other.Name = "other"
	for name, use := range map[string]func(context.Context) error{
		"Call":      func(ctx context.Context) error { _, err := mgr.Call(ctx, "mcp_web__echo", nil); return err },
		"Logout":    func(ctx context.Context) error { return mgr.Logout(ctx, "web") },
		"Login":     func(ctx context.Context) error { return mgr.Login(ctx, "web") },
		"AddServer": func(ctx context.Context) error { return mgr.AddServer(ctx, other) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		assert.ErrorIs(t, use(ctx), context.DeadlineExceeded, name)
		cancel()
	}
	assert.True(t, mgr.RemoveServer("web"))
	assert.Zero(t, a.Count().Refreshes)
}

// A login that can't be saved is told, and the server is connected: the login counts while the
// Manager lives.
func TestLoginIsNotSaved(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	m := NewManager(&Options{
		Servers: []ServerConfig{{Name: "web", URL: a.Server}}, TokenStore: unwritable{},
		OpenURL: func(_ context.Context, page LoginPage) (string, error) {
			mcptest.Browse(t, page.URL)
			return "", nil
		},
	})
	defer m.Close()
	require.Error(t, m.Start(t.Context()))
	err := m.Login(t.Context(), "web")
	assert.EqualError(t, err, `mcphybrid: login to server "web": the login counts only until this program ends: it is read-only`)
	assert.Equal(t, StateReady, m.Servers()[0].State)
	_, err = m.Call(t.Context(), "mcp_web__echo", nil)
	assert.NoError(t, err)
}

// unwritable is an empty token store that stays so.
type unwritable struct{}

func (unwritable) Update(_ context.Context, _ string, change func([]byte) ([]byte, error)) error {
	if changed, err := change(nil); err != nil || changed == nil {
		return err
	}
	return errors.New("it is read-only")
}
