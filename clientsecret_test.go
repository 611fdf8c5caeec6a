package mcphybrid

import (
	"net/http"
	"os"
	"testing"

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
	config := func(set func(*OAuthConfig)) ServerConfig {
		oauth := &OAuthConfig{ClientID: "mine", ClientSecret: clientSecret}
		set(oauth)
		return ServerConfig{Name: "web", URL: a.Server, OAuth: oauth}
	}
	move := func(to *mcptest.Authority) {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Moved = to
	}
	plain := config(func(*OAuthConfig) {})
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
	require.NoError(t, d.Logout(t.Context(), "web"))
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
	require.NoError(t, again(config(func(o *OAuthConfig) { o.TokenURL = b.URL + "/token" })))
	assert.Equal(t, secret, secretsAt(b))
	require.NoError(t, d.call())
	assert.ErrorContains(t, again(plain), elsewhere, "that was another decision")
	require.NoError(t, again(config(func(o *OAuthConfig) { o.MetadataURL = b.URL + "/.well-known/oauth-authorization-server" })))
	assert.Equal(t, secret, secretsAt(b))
	assert.Empty(t, secretsAt(a))

	// It names the first one, whatever the server says.
	for _, set := range []func(*OAuthConfig){
		func(o *OAuthConfig) { o.TokenURL = a.URL + "/token" },
		func(o *OAuthConfig) { o.MetadataURL = a.URL + "/.well-known/oauth-authorization-server" },
	} {
		assert.Error(t, again(config(set)), "the server does not know these tokens")
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
	web := ServerConfig{Name: "web", URL: a.Server, OAuth: &OAuthConfig{ClientID: "mine"}}
	d := newLoginDesk(t, t.TempDir(), web)
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	require.NoError(t, d.call())
	a.Expire()
	web.OAuth = &OAuthConfig{ClientID: "mine", ClientSecret: clientSecret}
	require.True(t, d.RemoveServer("web"))
	assert.ErrorIs(t, d.clean(d.AddServer(t.Context(), web)), ErrAuthorizationRequired)
	assert.Empty(t, secretsAt(a))
	require.NoError(t, d.Login(t.Context(), "web"))
	assert.Equal(t, []string{clientSecret}, secretsAt(a))

	web.OAuth = &OAuthConfig{ClientSecret: clientSecret}
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
