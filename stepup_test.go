package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kept returns the documents in the desk's token store.
func (d *loginDesk) kept() []string {
	files, err := filepath.Glob(filepath.Join(d.folder, "*.json"))
	require.NoError(d.t, err)
	return files
}

// Logout deletes the tokens and has them revoked, whatever the authorization server
// says to that. The tools stay, and nothing else ends a login.
func TestLogout(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	web := ServerConfig{Name: "web", URL: a.Server}
	d := newLoginDesk(t, t.TempDir(), web, child(t, "child", "serve"))
	require.NoError(t, d.Logout(t.Context(), "web"), "nobody is logged in, and it was not started")
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	require.True(t, d.RemoveServer("web"))
	require.NoError(t, d.AddServer(t.Context(), web), "it needs no login")
	soon(t, func() bool { return d.call() == nil })
	tools := d.Default().Tools()
	require.Len(t, d.kept(), 1)

	unauthorized := func() {
		assert.Empty(t, d.kept())
		st := d.Servers()[1]
		assert.Equal(t, StateUnauthorized, st.State)
		assert.ErrorIs(t, st.Err, ErrAuthorizationRequired)
		assert.ErrorIs(t, d.call(), ErrAuthorizationRequired)
		assert.Equal(t, tools, d.Default().Tools())
	}
	for i := range 2 {
		require.NoError(t, d.clean(d.Logout(t.Context(), "web")))
		assert.Equal(t, 1, a.Count().Revoked, i)
		unauthorized()
	}

	for status, want := range map[int]string{
		503: "the tokens are deleted here, but were not revoked: the authorization server answers with status 503",
		400: "but were not revoked: OAuth error: invalid_client - not [hidden]",
		307: "refused a redirect to host",
	} {
		require.NoError(t, d.clean(d.Login(t.Context(), "web")))
		require.NoError(t, d.call())
		a.Mu.Lock()
		a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/revoke" {
				_ = r.ParseForm()
				w.Header().Set("Location", "http://localhost:1/")
				w.WriteHeader(status)
				if status == 400 {
					_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"not ` + r.Form.Get("token") + `"}`))
				}
			}
			return r.URL.Path == "/revoke"
		}
		a.Mu.Unlock()
		assert.ErrorContains(t, d.clean(d.Logout(t.Context(), "web")), want)
		unauthorized()
	}

	// Nobody waits for an authorization server that hangs.
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	asked, release := make(chan struct{}, 2), make(chan struct{})
	a.Mu.Lock()
	a.Answer = func(http.ResponseWriter, *http.Request) bool { asked <- struct{}{}; <-release; return false }
	a.Mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	assert.ErrorIs(t, d.clean(d.Logout(ctx, "web")), context.Canceled)
	close(release)
	unauthorized()

	assert.EqualError(t, d.Logout(t.Context(), "none"), `mcphybrid: logout from server "none": there is no such server`)
	assert.ErrorContains(t, d.Logout(t.Context(), "child"), "it has no URL")
}

// A user's logout is nobody else's.
func TestLogoutOfAUser(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	web := ServerConfig{Name: "web", URL: a.Server}
	d := newLoginDesk(t, t.TempDir(), web)
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	ann, err := d.NewUser("ann", &UserOptions{Servers: []ServerConfig{web}})
	require.NoError(t, err)
	_ = ann.Start(t.Context())
	require.NoError(t, ann.Login(t.Context(), "web"))
	require.NoError(t, d.DropUser(t.Context(), "ann"))
	assert.Len(t, d.kept(), 2, "the login stays")

	ann, err = d.NewUser("ann", &UserOptions{Servers: []ServerConfig{web}})
	require.NoError(t, err)
	require.NoError(t, ann.Start(t.Context()))
	require.NoError(t, ann.Logout(t.Context(), "web"))
	assert.Equal(t, StateUnauthorized, ann.Servers()[0].State)
	assert.Len(t, d.kept(), 1)
	require.NoError(t, d.call())
}

// guardedTools serves echo and three tools that want a scope of their name each, and
// counts the calls that arrive.
func guardedTools(t *testing.T, older bool) (a *mcptest.Authority, calls *atomic.Int32) {
	s := mcptest.Server("web", mcptest.Echo("echo", "Echoes"), mcptest.Echo("admin", "Rules"), mcptest.Echo("audit", "Audits"), mcptest.Echo("root", "Roots"))
	var handler http.Handler = mcpserver.NewStreamableHTTPServer(s)
	if older {
		handler = mcpserver.NewSSEServer(s, mcpserver.WithSSEEndpoint("/mcp"), mcpserver.WithUseFullURLForMessageEndpoint(false))
	}
	a, calls = mcptest.NewAuthority(t, handler), new(atomic.Int32)
	a.Lacks = func(body, scopes string) string {
		if !strings.Contains(body, `"tools/call"`) {
			return ""
		}
		calls.Add(1)
		for _, tool := range []string{"admin", "audit", "root"} {
			if strings.Contains(body, `"name":"`+tool+`"`) && !slices.Contains(strings.Fields(scopes), tool) {
				return tool + " more"
			}
		}
		return ""
	}
	return a, calls
}

func (d *loginDesk) callTool(name string) error {
	_, err := d.Manager.Call(d.t.Context(), "mcp_web__"+name, nil)
	return d.clean(err)
}

// A call for which the login has too few scopes says which. The next login asks for
// these and for those that it has; until then, other calls work.
func TestStepUp(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		a, calls := guardedTools(t, older)
		web, store := ServerConfig{Name: "web", URL: a.Server, SSE: older}, t.TempDir()
		d := newLoginDesk(t, store, web)
		_ = d.Start(t.Context())
		require.NoError(t, d.Login(t.Context(), "web"))
		require.Equal(t, "read write", a.Scopes)
		short := func(d *loginDesk, tool string) {
			before := calls.Load()
			var wanted *AuthorizationError
			require.ErrorAs(t, d.callTool(tool), &wanted)
			assert.Equal(t, AuthorizationError{"web", strings.TrimSuffix(a.Server, "/mcp"), []string{tool, "more"}}, *wanted)
			assert.Contains(t, wanted.Error(), `again, for the scopes "`+tool+` more", to server "web" at http://127`)
			assert.Equal(t, int32(1), calls.Load()-before, "it is sent once")
			assert.Equal(t, StateReady, d.state())
			assert.NoError(t, d.callTool("echo"))
		}
		short(d, "admin")
		short(d, "admin")
		short(d, "audit")
		other := newLoginDesk(t, store, web) // such as inspect -login
		require.NoError(t, other.Start(t.Context()))
		require.NoError(t, other.Login(t.Context(), "web"))
		assert.Equal(t, "read write admin more audit", a.Scopes)
		assert.Equal(t, 2, a.Count().Clients, "the first was registered for less")
		for _, tool := range []string{"admin", "audit", "echo"} {
			assert.NoError(t, d.callTool(tool), "it takes the new tokens from the store")
		}
		assert.Zero(t, a.Count().Refreshes)
		a.Expire()
		require.NoError(t, d.callTool("admin"))
		assert.Equal(t, StateReady, d.state())

		// Who is refused once more is not sent to log in for ever.
		a.Mu.Lock()
		a.Grant = func(asked string) string { return strings.Replace(asked, " root", "", 1) }
		a.Mu.Unlock()
		short(d, "root")
		require.NoError(t, d.Login(t.Context(), "web"))
		assert.Equal(t, "read write admin more audit root", a.Scopes)
		before := calls.Load()
		err := d.callTool("root")
		assert.ErrorContains(t, err, `the server wants the scopes "root more" for this, which the login has or was refused before`)
		assert.NotErrorIs(t, err, ErrAuthorizationRequired)
		assert.Equal(t, int32(1), calls.Load()-before)
		require.NoError(t, d.callTool("audit"))
		require.NoError(t, d.Login(t.Context(), "web"))
		assert.Equal(t, "read write", a.Scopes, "nothing more is wanted")
		short(d, "root")
	}
}

// What a server wants of another process while the user logs in is asked for by the login after
// that: it is not forgotten with the one before.
func TestStepUpDuringALogin(t *testing.T) {
	t.Parallel()
	a, _ := guardedTools(t, false)
	web, folder := ServerConfig{Name: "web", URL: a.Server}, t.TempDir()
	d := newLoginDesk(t, folder, web)
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	other := newLoginDesk(t, folder, web)
	require.NoError(t, other.Start(t.Context()))
	require.ErrorIs(t, d.callTool("admin"), ErrAuthorizationRequired)
	a.Mu.Lock()
	a.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/authorize" {
			_, err := other.Manager.Call(t.Context(), "mcp_web__audit", nil)
			assert.ErrorIs(t, err, ErrAuthorizationRequired)
		}
		return false
	}
	a.Mu.Unlock()
	require.NoError(t, d.Login(t.Context(), "web"))
	assert.Equal(t, "read write admin more", a.Scopes)
	a.Mu.Lock()
	a.Answer = nil
	a.Mu.Unlock()
	require.NoError(t, other.Login(t.Context(), "web"))
	assert.Equal(t, "read write admin more audit", a.Scopes)
	for _, desk := range []*loginDesk{d, other} {
		for _, tool := range []string{"admin", "audit"} {
			assert.NoError(t, desk.callTool(tool))
		}
	}
}

// A server that wants more scopes for everything is unauthorized.
func TestStepUpToConnect(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		a, _ := guardedTools(t, older)
		a.Lacks = func(_, scopes string) string {
			if strings.Contains(scopes, "base") {
				return ""
			}
			return "base"
		}
		d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, SSE: older, OAuth: &config.OAuth{Scopes: []string{"mine"}}})
		_ = d.Start(t.Context())
		var wanted *AuthorizationError
		require.ErrorAs(t, d.clean(d.Login(t.Context(), "web")), &wanted)
		assert.Equal(t, []string{"base"}, wanted.Scopes)
		assert.Equal(t, StateUnauthorized, d.state())
		require.NoError(t, d.clean(d.Login(t.Context(), "web")))
		assert.Equal(t, "mine base", a.Scopes)
		assert.NoError(t, d.callTool("echo"))
	}
}

// A server that names what it was sent as a scope is not asked for it, and nobody sees it:
// the address of the page has all scopes.
func TestScopesRepeatSecrets(t *testing.T) {
	t.Parallel()
	a, _ := guardedTools(t, false)
	web := ServerConfig{Name: "web", URL: a.Server, Headers: map[string]string{"X-Api-Key": "write"}} // as the server says of 401
	d := newLoginDesk(t, t.TempDir(), web)
	_ = d.Start(t.Context())
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, "read", a.Scopes)

	lacks := func(scopes string) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Lacks = func(body, _ string) string {
			if strings.Contains(body, `"tools/call"`) {
				return scopes
			}
			return ""
		}
	}
	lacks("admin access-number-2 write")
	var wanted *AuthorizationError
	require.ErrorAs(t, d.callTool("admin"), &wanted)
	assert.Equal(t, []string{"admin"}, wanted.Scopes)
	lacks("x-refresh-number-2")
	assert.NotErrorIs(t, d.callTool("admin"), ErrAuthorizationRequired, "no login helps")
	lacks("")
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, "read admin", a.Scopes)

	web.OAuth = &config.OAuth{Scopes: []string{"write"}}
	d = newLoginDesk(t, t.TempDir(), web)
	_ = d.Start(t.Context())
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, "write", a.Scopes, "the settings name it")

	phrase := ServerConfig{Name: "web", URL: a.Server, Headers: map[string]string{"X-Api-Key": "correct horse battery"}}
	d = newLoginDesk(t, t.TempDir(), phrase)
	_ = d.Start(t.Context())
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, "read write", a.Scopes)
	lacks("correct horse battery")
	_ = d.callTool("admin")
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Empty(t, a.Scopes, "together they are the secret")
}

// A server that names new scopes for ever fills neither the store nor the next login.
func TestStepUpIsBounded(t *testing.T) {
	t.Parallel()
	a, _ := guardedTools(t, false)
	n, last := 0, ""
	a.Lacks = func(body, _ string) string {
		if !strings.Contains(body, `"tools/call"`) {
			return ""
		}
		n++
		last = strings.Repeat("x", 1000+n)
		return last
	}
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	for range 50 {
		require.ErrorIs(t, d.callTool("echo"), ErrAuthorizationRequired)
	}
	require.NoError(t, d.Login(t.Context(), "web"))
	assert.Less(t, len(a.Scopes), 5000)
	assert.True(t, strings.HasPrefix(a.Scopes, "read write ") && strings.HasSuffix(a.Scopes, " "+last))
}

// A host that logs in after each call that lacks scopes comes to an end, whether tools
// take turns with scopes that the user never grants, or the server names a new one each
// time and its authorization server grants them all.
func TestStepUpEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: 6 s")
	}
	t.Parallel()
	logins := func(d *loginDesk, tools ...string) (n int, err error) {
		for n = range 50 {
			if err = d.callTool(tools[n%len(tools)]); !errors.Is(err, ErrAuthorizationRequired) {
				return n, err
			}
			require.NoError(t, d.Login(t.Context(), "web"))
		}
		return n, err
	}
	start := func(a *mcptest.Authority) *loginDesk {
		d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
		_ = d.Start(t.Context())
		require.NoError(t, d.Login(t.Context(), "web"))
		return d
	}
	a, _ := guardedTools(t, false)
	grant := func(scopes string) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Grant = func(string) string { return scopes }
	}
	grant("read write")
	d := start(a)
	n, err := logins(d, "admin", "audit")
	assert.Equal(t, 2, n)
	assert.ErrorContains(t, err, `the server wants the scopes "admin more" for this, which the login has or was refused before`)

	// What was refused may be granted after something else was.
	grant("read write root more")
	require.ErrorIs(t, d.callTool("root"), ErrAuthorizationRequired)
	require.NoError(t, d.Login(t.Context(), "web"))
	require.NoError(t, d.callTool("root"))
	require.ErrorIs(t, d.callTool("admin"), ErrAuthorizationRequired)
	grant("read write root more admin")
	require.NoError(t, d.Login(t.Context(), "web"))
	require.NoError(t, d.callTool("admin"))

	for _, all := range []bool{true, false} {
		a, _ := guardedTools(t, false)
		fresh := 0
		a.Lacks = func(body, _ string) string {
			if !strings.Contains(body, `"tools/call"`) {
				return ""
			}
			fresh++
			return fmt.Sprint("scope", fresh)
		}
		if !all {
			a.Grant = func(string) string { return "read write" }
		}
		d := start(a)
		n, err := logins(d, "echo")
		assert.Equal(t, 16, n, all)
		assert.ErrorContains(t, err, `the server wants the scopes "scope17" for this, and wanted more after each of the last 16 logins: name in OAuth.Scopes what it may have, and log in`)
		require.NoError(t, d.Logout(t.Context(), "web"))
		require.NoError(t, d.Login(t.Context(), "web"))
		assert.ErrorIs(t, d.callTool("echo"), ErrAuthorizationRequired, "a logout starts anew")
	}
}

// A request with a token of the host's says what is wrong with it, too.
func TestScopesOfAForeignToken(t *testing.T) {
	t.Parallel()
	a, _ := guardedTools(t, false)
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	var tokens struct {
		Access string `json:"access_token"`
	}
	data, err := os.ReadFile(d.kept()[0])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &tokens))
	host := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, HeaderFunc: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + tokens.Access}}, nil
	}})
	require.NoError(t, host.Start(t.Context()))
	var wanted *AuthorizationError
	require.ErrorAs(t, host.callTool("admin"), &wanted)
	assert.Equal(t, []string{"admin", "more"}, wanted.Scopes)
	assert.Empty(t, host.kept())
	assert.NoError(t, host.callTool("echo"))
}
