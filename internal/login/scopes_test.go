package login

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scopes that a server wants are noted in the store, and never in place of the
// tokens of another client.
func TestWant(t *testing.T) {
	store := new(flaky)
	a, _ := account(t, store)
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	want := func(a *Account, sent string, scopes ...string) string {
		got, err := a.Header(t.Context(), &Refusal{Header: sent, Scopes: scopes})
		require.NoError(t, err)
		return got
	}
	stored := func() (r record) {
		_ = store.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
			r, err = a.parse(document)
			return document, err
		})
		return r
	}
	assert.Equal(t, header, want(a, header, "x", "y"))
	assert.Equal(t, header, want(a, header, "y", "z"))
	assert.Equal(t, []string{"x", "y", "z"}, stored().Wanted)
	assert.Equal(t, []string{"read", "write"}, stored().Scopes)
	assert.Equal(t, header, want(a, "Bearer old", "other"), "there is a newer token")
	store.fail = true
	_, err = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"q"}})
	assert.EqualError(t, err, "the disk is full")
	store.fail = false
	assert.Equal(t, []string{"x", "y", "z"}, stored().Wanted)

	cfg := a.cfg
	cfg.ClientID = "mine"
	other := New(cfg)
	defer other.Close()
	assert.Empty(t, want(other, "", "x"))
	r := stored()
	assert.Equal(t, header, r.header())
	cfg.Key = "k2"
	nobody := New(cfg)
	defer nobody.Close()
	assert.Empty(t, want(nobody, "", "x"))
	r, err = nobody.stored(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"x"}, nobody.asks(&r, []string{"all"}))
	_, err = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"read"}})
	assert.EqualError(t, err, `the server wants the scopes "read" for this, which the login has or was refused before`)
}

// Many authorization servers don't name offline_access among what they grant. A login
// for more scopes asks for it again, or there would be no refreshes from then on.
func TestWantKeepsRefreshes(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	authority.Mu.Lock()
	authority.Says = map[string]any{"scopes_supported": []string{"read", "offline_access"}}
	authority.Grant = func(asked string) string { return strings.TrimSuffix(asked, " offline_access") }
	authority.Mu.Unlock()
	for scope, oauth := range map[string]config.OAuth{"read write x offline_access": {}, "read x": {Scopes: []string{"read"}}} {
		a := New(Config{OAuth: oauth, URL: authority.Server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(a.Close)
		login := func() {
			require.NoError(t, a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
				mcptest.Browse(t, page.URL)
				return "", nil
			}))
		}
		login()
		header, err := a.Header(t.Context(), nil)
		require.NoError(t, err)
		_, err = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"x"}})
		require.NoError(t, err)
		login()
		authority.Mu.Lock()
		assert.Equal(t, scope, authority.Scopes)
		authority.Mu.Unlock()
	}
}

// Where nothing names a scope, a login asks for none, so that it gets what is usual there.
func TestNoScopeIsKnown(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	authority.Mu.Lock()
	authority.Says = map[string]any{"scopes_supported": []string{"read", "offline_access"}}
	authority.Mu.Unlock()
	server := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), "")
	a := New(Config{
		OAuth: config.OAuth{ClientID: "ours", MetadataURL: authority.URL + "/.well-known/oauth-authorization-server"},
		URL:   server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(a.Close)
	d, err := a.discover(t.Context())
	require.NoError(t, err)
	assert.Empty(t, d.scopes)
	assert.Contains(t, d.metadata.ScopesSupported, offlineAccess)
}

// What a server asks for is asked for with offline_access, if the authority has that.
func TestOfflineAccessIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{"read"}, {"read", "write"}} {
		authority := mcptest.NewAuthority(t, http.NotFoundHandler())
		authority.Mu.Lock()
		authority.Says = map[string]any{"scopes_supported": []string{"read", "write", "more", "offline_access"}}
		authority.Mu.Unlock()
		server := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer scope="`+strings.Join(scopes, " ")+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "")
		a := New(Config{
			OAuth: config.OAuth{ClientID: "ours", MetadataURL: authority.URL + "/.well-known/oauth-authorization-server"},
			URL:   server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(a.Close)
		d, err := a.discover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, append(slices.Clone(scopes), "offline_access"), d.scopes)
	}
}

// Challenges count that a server makes to a client without a token, not those about scopes.
func TestChallengesAboutScopes(t *testing.T) {
	t.Parallel()
	a, _ := account(t, new(Memory))
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	a.mu.Lock()
	before := a.challenges
	a.mu.Unlock()
	require.NotEmpty(t, before)
	_, _ = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"x"}, Challenges: []string{`Bearer error="insufficient_scope", scope="x"`}})
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.Equal(t, before, a.challenges)
}
