package mcphybrid

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clientSecret = "client-hunter2"

// secretsAt returns the client secrets that were sent to an authority since the last
// call.
func secretsAt(a *mcptest.Authority) (seen []string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for s := range a.Secrets {
		seen = append(seen, s)
	}
	clear(a.Secrets)
	return seen
}

// A client's secret goes to the authorization server at which it was first used. Where
// the server sends us later, it does not go, whoever logs in, unless the configuration
// says so.
func TestClientSecretStays(t *testing.T) {
	t.Parallel()
	a, b := mcptest.NewAuthority(t, echoHandler()), mcptest.NewAuthority(t, echoHandler())
	secret := []string{clientSecret}
	settings := func(set func(*config.OAuth)) ServerConfig {
		oauth := &config.OAuth{ClientID: "mine", ClientSecret: clientSecret}
		set(oauth)
		return ServerConfig{Name: "web", URL: a.Server, OAuth: oauth}
	}
	move := func(to *mcptest.Authority) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Moved = to
	}
	plain := settings(func(*config.OAuth) {})
	d := newLoginDesk(t, t.TempDir(), plain)
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	assert.Equal(t, secret, secretsAt(a))
	a.Expire()
	require.NoError(t, d.call())
	assert.Equal(t, secret, secretsAt(a), "for a refresh")
	require.NoError(t, d.Logout(t.Context(), "web"))
	assert.Equal(t, secret, secretsAt(a), "for a revocation")
	require.NoError(t, d.Login(t.Context(), "web"))
	require.Equal(t, secret, secretsAt(a))
	for _, path := range d.kept() {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotContains(t, string(data), clientSecret)
	}

	// The server names another one.
	move(b)
	require.ErrorIs(t, d.call(), ErrAuthorizationRequired)
	elsewhere := `OAuth.ClientSecret was first used at "` + a.URL + `/token", and the server now names "` + b.URL + `/token": if that is right, set OAuth.TokenURL to it`
	assert.EqualError(t, d.clean(d.Login(t.Context(), "web")), `mcphybrid: login to server "web": `+elsewhere)
	assert.ErrorContains(t, d.Logout(t.Context(), "web"), `the login says that this is done at "`+a.URL+`/revoke", and the metadata say at "`+b.URL+`/revoke" now`)
	assert.ErrorContains(t, d.Login(t.Context(), "web"), elsewhere, "a logout does not make it trusted")
	ann, err := d.NewUser("ann", &UserOptions{Servers: []ServerConfig{plain}})
	require.NoError(t, err)
	_ = ann.Start(t.Context())
	assert.ErrorContains(t, ann.Login(t.Context(), "web"), elsewhere, "nor does another user")
	secretsAt(a)
	assert.Empty(t, secretsAt(b))
	assert.Empty(t, b.Scopes, "no page of it was opened")

	// The configuration names it.
	again := func(cfg ServerConfig) error {
		require.True(t, d.RemoveServer("web"))
		_ = d.AddServer(t.Context(), cfg)
		return d.clean(d.Login(t.Context(), "web"))
	}
	require.NoError(t, again(settings(func(o *config.OAuth) { o.TokenURL = b.URL + "/token" })))
	assert.Equal(t, secret, secretsAt(b))
	require.NoError(t, d.call())
	assert.ErrorContains(t, again(plain), elsewhere, "that was another decision")
	require.NoError(t, again(settings(func(o *config.OAuth) { o.MetadataURL = b.URL + "/.well-known/oauth-authorization-server" })))
	assert.Equal(t, secret, secretsAt(b))
	assert.Empty(t, secretsAt(a))

	// It names the first one, whatever the server says.
	for _, set := range []func(*config.OAuth){
		func(o *config.OAuth) { o.TokenURL = a.URL + "/token" },
		func(o *config.OAuth) { o.MetadataURL = a.URL + "/.well-known/oauth-authorization-server" },
	} {
		assert.Error(t, again(settings(set)), "the server does not know these tokens")
		assert.Equal(t, secret, secretsAt(a))
		assert.Empty(t, secretsAt(b))
	}
	move(nil)
	require.NoError(t, again(plain))
	assert.Equal(t, secret, secretsAt(a))
}

// A secret that is added to a login of a public client does not go where that came from.
func TestClientSecretIsAdded(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	web := ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{ClientID: "mine"}}
	d := newLoginDesk(t, t.TempDir(), web)
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	require.NoError(t, d.call())
	a.Expire()
	web.OAuth = &config.OAuth{ClientID: "mine", ClientSecret: clientSecret}
	require.True(t, d.RemoveServer("web"))
	assert.ErrorIs(t, d.clean(d.AddServer(t.Context(), web)), ErrAuthorizationRequired)
	assert.Empty(t, secretsAt(a))
	require.NoError(t, d.Login(t.Context(), "web"))
	assert.Equal(t, []string{clientSecret}, secretsAt(a))

	web.OAuth = &config.OAuth{ClientSecret: clientSecret}
	require.True(t, d.RemoveServer("web"))
	_ = d.AddServer(t.Context(), web)
	assert.EqualError(t, d.Login(t.Context(), "web"), `mcphybrid: login to server "web": OAuth.ClientSecret goes with OAuth.ClientID`)
	assert.Empty(t, secretsAt(a))
}

// Tokens are revoked where they come from, and nowhere else.
func TestRevocationElsewhere(t *testing.T) {
	t.Parallel()
	a, b := mcptest.NewAuthority(t, echoHandler()), mcptest.NewAuthority(t, echoHandler())
	a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/.well-known/oauth-authorization-server" {
			return false
		}
		_, _ = w.Write([]byte(`{"issuer":"` + a.URL + `","authorization_endpoint":"` + a.URL + `/authorize?tenant=t","token_endpoint":"` + a.URL +
			`/token","registration_endpoint":"` + a.URL + `/register","revocation_endpoint":"` + b.URL + `/revoke"}`))
		return true
	}
	asked := make(chan struct{}, 10)
	b.Answer = func(http.ResponseWriter, *http.Request) bool { asked <- struct{}{}; return false }
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	err := d.clean(d.Logout(t.Context(), "web"))
	assert.ErrorContains(t, err, `the tokens are deleted here, but were not revoked: that is done at "`+b.URL+`/revoke", and tokens come from "`+a.URL+`/token"`)
	assert.Empty(t, d.kept())
	assert.Empty(t, asked)
}

// Tokens are not sent where the document of a login says, unless the server still leads
// there.
func TestTokensAreNotTheStores(t *testing.T) {
	t.Parallel()
	a, evil := mcptest.NewAuthority(t, echoHandler()), mcptest.NewAuthority(t, echoHandler())
	var asked atomic.Int32
	evil.Answer = func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false }
	for name, set := range map[string]func(*config.OAuth){
		"nothing":     func(*config.OAuth) {},
		"MetadataURL": func(o *config.OAuth) { o.MetadataURL = a.URL + "/.well-known/oauth-authorization-server" },
	} {
		oauth := new(config.OAuth)
		set(oauth)
		web, store := ServerConfig{Name: "web", URL: a.Server, OAuth: oauth}, t.TempDir()
		d := newLoginDesk(t, store, web)
		_ = d.Start(t.Context())
		require.NoError(t, d.Login(t.Context(), "web"), name)
		d.rewrite(func(r map[string]any) {
			r["issuer"], r["token_url"], r["revoke_url"] = evil.URL, evil.URL+"/token", evil.URL+"/revoke"
		})
		other := newLoginDesk(t, store, web)
		_ = other.Start(t.Context())
		err := other.clean(other.Logout(t.Context(), "web"))
		assert.ErrorContains(t, err, `the tokens are deleted here, but were not revoked: the login says that this is done at "`+evil.URL+`/revoke", and the metadata say at "`+a.URL+`/revoke" now`, name)
		assert.Empty(t, other.kept(), name)
		assert.Zero(t, asked.Load(), name)
	}
}

// rewrite changes what the desk's token store has of logins, as one can who may write
// there.
func (d *loginDesk) rewrite(change func(r map[string]any)) {
	changed := 0
	for _, path := range d.kept() {
		data, err := os.ReadFile(path)
		require.NoError(d.t, err)
		var r map[string]any
		require.NoError(d.t, json.Unmarshal(data, &r))
		if r["refresh_token"] == nil {
			continue // where the secret was first used
		}
		change(r)
		data, err = json.Marshal(r)
		require.NoError(d.t, err)
		require.NoError(d.t, os.WriteFile(path, data, 0o600))
		changed++
	}
	require.Equal(d.t, 1, changed)
}

// A client's secret does not go where the document of a login says, neither for a
// refresh nor for a revocation. Then the user logs in again.
func TestClientSecretIsNotTheStores(t *testing.T) {
	t.Parallel()
	a, evil := mcptest.NewAuthority(t, echoHandler()), mcptest.NewAuthority(t, echoHandler())
	for name, set := range map[string]func(*config.OAuth){
		"first use":   func(*config.OAuth) {},
		"TokenURL":    func(o *config.OAuth) { o.TokenURL = a.URL + "/token" },
		"MetadataURL": func(o *config.OAuth) { o.MetadataURL = a.URL + "/.well-known/oauth-authorization-server" },
	} {
		oauth := &config.OAuth{ClientID: "mine", ClientSecret: clientSecret}
		set(oauth)
		web, store := ServerConfig{Name: "web", URL: a.Server, OAuth: oauth}, t.TempDir()
		d := newLoginDesk(t, store, web)
		_ = d.Start(t.Context())
		require.NoError(t, d.Login(t.Context(), "web"), name)
		lead := func(r map[string]any) {
			r["token_url"], r["revoke_url"] = evil.URL+"/token", evil.URL+"/revoke"
		}
		stale := func(r map[string]any) { lead(r); r["expires_at"] = "2001-01-01T00:00:00Z" }
		secretsAt(a)

		d.rewrite(stale)
		other := newLoginDesk(t, store, web)
		assert.ErrorIs(t, other.clean(other.Start(t.Context())), ErrAuthorizationRequired, name)
		assert.Empty(t, secretsAt(evil), name)
		require.NoError(t, other.Login(t.Context(), "web"), name)
		assert.NotEmpty(t, secretsAt(a), name)
		a.Expire()
		require.NoError(t, other.call(), name)
		assert.NotEmpty(t, secretsAt(a), "%s: for a refresh", name)

		other.rewrite(lead)
		_ = other.clean(other.Logout(t.Context(), "web"))
		assert.Empty(t, secretsAt(evil), name)
	}
}

// A client's secret goes to a revocation endpoint only if metadata name it that are
// trusted: those at MetadataURL, or those of the first use. Another on the same host may
// be anyone's.
func TestClientSecretAtARevocation(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	var named string // the revocation endpoint in the metadata that the server names
	answer := func(status int) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server") {
				_, _ = w.Write([]byte(`{"issuer":"` + a.URL + `","authorization_endpoint":"` + a.URL + `/authorize?tenant=t","token_endpoint":"` + a.URL +
					`/token","revocation_endpoint":"` + a.URL + named + `"}`))
				return true
			}
			if r.URL.Path != "/evil" {
				return false
			}
			_ = r.ParseForm()
			a.Mu.Lock()
			defer a.Mu.Unlock()
			if secret := r.Form.Get("client_secret"); secret != "" {
				a.Secrets[secret] = true
			}
			w.WriteHeader(status)
			return true
		}
	}
	logout := func(store string, set func(*config.OAuth), first, later string) error {
		named = first
		oauth := &config.OAuth{ClientID: "mine", ClientSecret: clientSecret}
		set(oauth)
		d := newLoginDesk(t, store, ServerConfig{Name: "web", URL: a.Server, OAuth: oauth})
		_ = d.Start(t.Context())
		require.NoError(t, d.Login(t.Context(), "web"))
		if later != "" {
			named = later
			require.NoError(t, d.Login(t.Context(), "web"))
		}
		require.Equal(t, []string{clientSecret}, secretsAt(a))
		return d.clean(d.Logout(t.Context(), "web"))
	}
	answer(http.StatusUnauthorized)
	firstUse := func(*config.OAuth) {}
	withheld := "the authorization server answers with status 401; OAuth.ClientSecret was not sent there: no trusted metadata name the endpoint; set OAuth.MetadataURL if they should"
	assert.NoError(t, logout(t.TempDir(), firstUse, "/revoke", ""))
	assert.NotEmpty(t, secretsAt(a))
	assert.ErrorContains(t, logout(t.TempDir(), firstUse, "/revoke", "/evil"), withheld)
	assert.Empty(t, secretsAt(a), "the server names another endpoint since the first use")
	assert.ErrorContains(t, logout(t.TempDir(), func(o *config.OAuth) { o.TokenURL = a.URL + "/token" }, "/evil", ""), withheld)
	assert.Empty(t, secretsAt(a), "only the server names the endpoint")
	assert.NoError(t, logout(t.TempDir(), func(o *config.OAuth) {
		o.TokenURL, o.MetadataURL = a.URL+"/token", a.URL+"/.well-known/oauth-authorization-server"
	}, "/revoke", ""))
	assert.NotEmpty(t, secretsAt(a))
	answer(http.StatusNoContent)
	assert.NoError(t, logout(t.TempDir(), firstUse, "/revoke", "/evil"), "some revoke without a secret")
	assert.Empty(t, secretsAt(a))
}

// Credentials in the header of a request to an authorization server, in base64, are hidden like the
// secret in them, whatever that answers.
func TestBasicCredentialsAreHidden(t *testing.T) {
	t.Parallel()
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte("mine:"+clientSecret))
	for _, grant := range []string{"", config.ClientCredentials} {
		a := mcptest.NewAuthority(t, echoHandler())
		var got string
		a.Says = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}}
		a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			got = r.Header.Get("Authorization")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_request","error_description":"got %s"}`, got)
			return true
		}
		d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{GrantType: grant, ClientID: "mine", ClientSecret: clientSecret}})
		err := d.Start(t.Context())
		if grant == "" {
			err = d.Login(t.Context(), "web")
		}
		require.ErrorContains(t, err, "invalid_request - got [hidden]")
		assert.Equal(t, header, got)
		assert.NotContains(t, fmt.Sprint(d.Servers(), d.Problems(), d.log), strings.TrimPrefix(header, "Basic "))
	}
}
