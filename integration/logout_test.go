package integration

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A login is what a store keeps of one server.
type login struct {
	URL          string
	Access       string `json:"access_token"`
	Refresh      string `json:"refresh_token"`
	Client       string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// login returns the login at an address, or an empty one.
func (h *loginHost) login(address string) (found login) {
	files, err := filepath.Glob(filepath.Join(h.folder, "*.json"))
	require.NoError(h.t, err)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(h.t, err)
		var l login
		require.NoError(h.t, json.Unmarshal(data, &l))
		if l.URL == address && l.Access != "" {
			found = l
		}
	}
	return found
}

// A call that lacks a scope, the login that asks for it, and a logout, at a published
// authorization server.
func TestStepUpAndLogoutAtAPublishedAuthority(t *testing.T) {
	issuer := startAuthority(t, 3600)
	one, two := protect(t, issuer, "one"), protect(t, issuer, "two")
	h := newLoginHost(t, t.TempDir(), mcphybrid.ServerConfig{Name: "one", URL: one.address}, mcphybrid.ServerConfig{Name: "two", URL: two.address})
	defer h.Close()
	require.Error(t, h.Start(t.Context()))
	require.NoError(t, h.Login(t.Context(), "one"))
	require.NoError(t, h.Login(t.Context(), "two"))
	first := h.login(one.address)
	require.Equal(t, "mcp", introspect(t, issuer, first.Access)["scope"])

	// A call says what it lacks. It is sent once, and changes nothing for others.
	for range 3 {
		sent := one.calls.Load()
		var wanted *mcphybrid.AuthorizationError
		require.ErrorAs(t, h.callTool("mcp_one__admin", nil), &wanted)
		assert.Equal(t, mcphybrid.AuthorizationError{Server: "one", URL: strings.TrimSuffix(one.address, "/mcp"), Scopes: []string{"admin"}}, *wanted)
		assert.Equal(t, int32(1), one.calls.Load()-sent)
		assert.Equal(t, mcphybrid.StateReady, h.state())
		require.NoError(t, h.call("one", 0))
		assert.Equal(t, first, h.login(one.address))
	}
	require.NoError(t, h.Login(t.Context(), "one"))
	second := h.login(one.address)
	scopes, _ := introspect(t, issuer, second.Access)["scope"].(string)
	assert.ElementsMatch(t, []string{"mcp", "admin"}, strings.Fields(scopes))
	assert.NotEqual(t, first.Client, second.Client, "the first was registered for less")
	sent := one.calls.Load()
	require.NoError(t, h.callTool("mcp_one__admin", nil))
	assert.Equal(t, int32(1), one.calls.Load()-sent)
	require.NoError(t, h.call("one", 0))

	// After a logout, nobody knows the tokens, and the other login goes on.
	dead := func(l login) {
		status, said := post(t, issuer+"/token", url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}, "client_id": {l.Client}, "resource": {one.address},
		})
		assert.Equal(t, 400, status)
		assert.Equal(t, "invalid_grant", said["error"])
		assert.Equal(t, map[string]any{"active": false}, introspect(t, issuer, l.Access))
	}
	require.NotEmpty(t, second.Refresh)
	require.Equal(t, true, introspect(t, issuer, second.Access)["active"])
	tools := h.Default().Tools()
	require.NoError(t, h.Logout(t.Context(), "one"))
	assert.Equal(t, login{}, h.login(one.address))
	assert.Len(t, h.clients(), 1, "the other login")
	assert.Equal(t, mcphybrid.StateUnauthorized, h.state())
	assert.ErrorIs(t, h.call("one", 0), mcphybrid.ErrAuthorizationRequired)
	assert.Equal(t, tools, h.Default().Tools())
	dead(second)
	require.NoError(t, h.call("two", 0))
	require.NoError(t, h.Logout(t.Context(), "one"), "nobody is logged in")

	require.NoError(t, h.Login(t.Context(), "one"))
	assert.Equal(t, mcphybrid.StateReady, h.state())
	require.NoError(t, h.call("one", 0))
	third := h.login(one.address)
	assert.Equal(t, "mcp", introspect(t, issuer, third.Access)["scope"], "what was wanted is forgotten")
	assert.ErrorIs(t, h.callTool("mcp_one__admin", nil), mcphybrid.ErrAuthorizationRequired)
	for _, l := range []login{first, second, third, h.login(two.address)} {
		assert.NotContains(t, h.said.String(), l.Access)
		assert.NotContains(t, h.said.String(), l.Refresh)
	}
}

// A configured client proves itself with its secret at the authorization server at which
// it did so first, and at no other.
func TestClientSecretAtAPublishedAuthority(t *testing.T) {
	const secret = "app-secret-of-this-test"
	issuer, other := startAuthority(t, 1), startAuthority(t, 3600)
	var names atomic.Pointer[string]
	names.Store(&issuer)
	p := protectAt(t, &names, "one")
	h := newLoginHost(t, t.TempDir(), mcphybrid.ServerConfig{Name: "one", URL: p.address, OAuth: &config.OAuth{ClientID: "app", ClientSecret: secret}})
	defer h.Close()
	require.Error(t, h.Start(t.Context()))
	require.NoError(t, h.Login(t.Context(), "one"))
	first := h.login(p.address)
	assert.Equal(t, login{p.address, first.Access, first.Refresh, "app", ""}, first, "the secret is not stored")
	require.NoError(t, h.call("one", 2), "it expires meanwhile")
	require.NoError(t, h.call("one", 0))
	second := h.login(p.address)
	require.NotEqual(t, first.Refresh, second.Refresh, "it was refreshed")

	names.Store(&other)
	page := h.pages.Load()
	err := h.Login(t.Context(), "one")
	assert.ErrorContains(t, err, `OAuth.ClientSecret was first used at "`+issuer+`/token", and the server now names "`+other+`/token": if that is right, set OAuth.TokenURL to it`)
	assert.Equal(t, page, h.pages.Load(), "no page is opened")

	// Tokens are revoked where the server leads, and nowhere else.
	again := func(l login) any {
		_, said := post(t, issuer+"/token", url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}, "client_id": {"app"}, "client_secret": {secret}, "resource": {p.address},
		})
		return said["error"]
	}
	assert.ErrorContains(t, h.Logout(t.Context(), "one"), `were not revoked: the login says that this is done at "`+issuer)
	assert.Equal(t, login{}, h.login(p.address))
	assert.Nil(t, again(second))
	assert.ErrorContains(t, h.Login(t.Context(), "one"), "OAuth.ClientSecret was first used at")

	names.Store(&issuer)
	require.NoError(t, h.Login(t.Context(), "one"))
	third := h.login(p.address)
	require.NoError(t, h.Logout(t.Context(), "one"))
	assert.Equal(t, "invalid_grant", again(third))
	names.Store(&issuer)
	require.NoError(t, h.Login(t.Context(), "one"))
	require.NoError(t, h.call("one", 0))
	assert.NotContains(t, h.said.String(), secret)
}
