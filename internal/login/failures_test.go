package login

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A brittle store fails once, after so many times that it does not.
type brittle struct {
	*story
	fine int
}

var errBrittle = errors.New("the store is away")

func (b *brittle) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if b.fine--; b.fine == -1 {
		return errBrittle
	}
	return b.story.Update(ctx, key, change)
}

// What is left, and said, when one step of what an account does fails.
func TestStoryOfFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		s.say("What an account says, and leaves in the store, when one step of what it does fails.")
		tokens := func(more string) {
			s.web["POST https://as.example/token"] = []string{"200\n" + `{"access_token":"access-9","token_type":"Bearer"` + more + `}`}
		}
		logout := func(what string, a *Account) {
			s.step(what, func() (string, error) {
				return "", a.Logout(t.Context(), func() error { s.say("  forgotten"); return nil })
			})
		}
		// Each of these begins anew, with what another process has stored.
		of := func(oauth config.OAuth, fine int) *Account {
			a := s.account(oauth, server)
			a.cfg.Store = &brittle{s, fine}
			return a
		}
		user, machine := config.OAuth{RedirectURI: "https://app.example/back", ClientID: "the-client", ClientSecret: "the-secret"}, config.OAuth{GrantType: config.ClientCredentials, ClientID: "the-client", ClientSecret: "the-secret"}
		const code = "code=code-1&state=STATE"
		loggedIn := func() { // which is told above
			told := s.text.String()
			s.login("", of(user, 9), code)
			s.text.Reset()
			s.text.WriteString(told)
		}
		for fine := range 6 {
			tokens(`,"refresh_token":"refresh-9","expires_in":60`)
			s.login(fmt.Sprintf("a login, the store works %d times", fine), of(user, fine), code)
		}
		for fine := range 3 {
			s.header(fmt.Sprintf("a header, the store works %d times", fine), of(user, fine), nil)
		}
		for fine := range 4 {
			s.header(fmt.Sprintf("a refused header, the store works %d times", fine), of(user, fine), &Refusal{Header: "Bearer access-9"})
		}
		for fine := range 3 {
			loggedIn()
			logout(fmt.Sprintf("a logout, the store works %d times", fine), of(user, fine))
		}
		tokens("")
		for fine := range 5 {
			s.header(fmt.Sprintf("a machine, the store works %d times", fine), of(machine, fine), &Refusal{Header: "Bearer access-9"})
		}
		for fine := range 4 {
			s.login(fmt.Sprintf("a machine asks anew, the store works %d times", fine), of(machine, fine), "")
		}
		closed := of(machine, 9)
		closed.Close()
		s.header("a machine that is closed", closed, &Refusal{})
		s.login("a machine that is closed", closed, "")
		logout("a machine that is closed", closed)

		loggedIn()
		named := user
		named.GrantType = "authorization_code"
		s.header("the grant by its long name", of(named, 9), nil)
		loggedIn()
		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{strings.Replace(authority, `"issuer":"https://as.example"`, `"issuer":"https://other.example"`, 1)}
		logout("a logout where another issuer is named", of(user, 9))

		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{strings.Replace(authority, "https://as.example/token", "https://other.test/token", 1)}
		s.store = Memory{}
		s.login("the code would go to another service than that of the page", of(user, 9), code)
		s.login("the answer says whose it is", of(user, 9), code+"&iss=https://as.example")
		s.done("failures.golden")
	})
}

// What an error wraps is there for hosts.
func TestUnsavedErrors(t *testing.T) {
	t.Parallel()
	s := usual(t)
	a := s.account(config.OAuth{RedirectURI: "https://app.example/back"}, server)
	a.cfg.Store = &brittle{s, 1}
	err := a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		u, err := url.Parse(page.URL)
		require.NoError(t, err)
		return "https://app.example/back?code=c&state=" + url.QueryEscape(u.Query().Get("state")), nil
	})
	assert.ErrorAs(t, err, new(*UnsavedError))
	assert.ErrorIs(t, err, errBrittle)
}

// A key signs by the one algorithm of its kind. Of RSA's two, the newer is for who knows no other.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	edwards := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	curve := func(c elliptic.Curve) *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		require.NoError(t, err)
		return key
	}
	for known, want := range map[string]string{"": "RS256", "RS256": "RS256", "PS256": "PS256", "RS256 PS256": "RS256", "PS256 RS256": "RS256", "ES256": "RS256", "ES256 PS256": "PS256"} {
		name, hash := algorithmOf(new(rsa.PrivateKey), strings.Fields(known))
		assert.Equal(t, want, name, known)
		assert.Equal(t, 256/8, hash.Size(), known)
	}
	for want, key := range map[string]*ecdsa.PrivateKey{"ES256 32": curve(elliptic.P256()), "ES384 48": curve(elliptic.P384()), "ES512 64": curve(elliptic.P521())} {
		name, hash := algorithmOf(key, nil)
		assert.Equal(t, want, fmt.Sprint(name, " ", hash.Size()))
	}
	name, hash := algorithmOf(edwards, nil)
	assert.Equal(t, "EdDSA", name)
	assert.Zero(t, hash)
	name, _ = algorithmOf(curve(elliptic.P224()), nil)
	assert.Empty(t, name)
}

// A proxy that can't be told is why a request fails.
func TestProxyThatIsNotTold(t *testing.T) {
	t.Parallel()
	broken := errors.New("no proxy")
	g := newReach(&Config{URL: "https://h.example/mcp", HTTP: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, broken }}})
	defer g.close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://h.example/x", nil)
	require.NoError(t, err)
	_, err = g.RoundTrip(r)
	assert.ErrorIs(t, err, broken)
}

// What the next login asks for, by what is known of each scope alone, of all that two scopes can be.
func TestScopesWantedSince(t *testing.T) {
	t.Parallel()
	lists := [][]string{nil, {"a"}, {"b"}, {"a", "b"}}
	wide := func(list []string) []string { return append(make([]string, 0, 4), list...) }
	for n := range 2 << 10 {
		list := func(i int) []string { return lists[n>>(1+2*i)&3] }
		had, wanted, has, wants, got := list(0), list(1), list(2), list(3), list(4)
		known, stored, r := record{Scopes: wide(had), Wanted: wide(wanted)}, record{Scopes: wide(has), Wanted: wide(wants)}, record{Scopes: wide(got)}
		if n&1 == 1 {
			stored.AccessToken = "token"
		}
		var want []string
		for _, s := range []string{"a", "b"} {
			granted := n&1 == 1 && slices.Contains(has, s) && !slices.Contains(had, s)
			if granted || slices.Contains(wants, s) && !slices.Contains(wanted, s) {
				want = append(want, s)
			}
		}
		want = slices.DeleteFunc(want, func(s string) bool { return slices.Contains(got, s) })
		what := fmt.Sprintf("%d: had %v, wanted %v, stored %v, %v, granted %v", n, had, wanted, has, wants, got)
		assert.ElementsMatch(t, want, r.wantedSince(known, stored), what)
		for i, list := range [][]string{known.Scopes, known.Wanted, stored.Scopes, stored.Wanted, r.Scopes} {
			assert.ElementsMatch(t, [][]string{had, wanted, has, wants, got}[i], list, what)
		}
	}
}

// A header that was made for a request is sent once more if another of the same request was refused. Any
// other is replaced, and scopes that it lacks are noted.
func TestRefusedAgain(t *testing.T) {
	t.Parallel()
	s := usual(t)
	a := s.account(config.OAuth{RedirectURI: "https://app.example/back"}, server)
	s.login("", a, "code=code-1&state=STATE")
	get := func(r Refusal) string {
		header, err := a.Header(t.Context(), &r)
		require.NoError(t, err)
		return header
	}
	first := "Bearer access-1"
	made := get(Refusal{Header: first})
	require.Equal(t, "Bearer access-2", made)
	assert.Equal(t, made, get(Refusal{Header: made, Again: true}))
	assert.Equal(t, made, get(Refusal{Header: first, Again: true}), "another is there")
	assert.Equal(t, made, get(Refusal{Header: made, Again: true, Scopes: []string{"admin"}}))
	assert.Contains(t, string(s.store.documents["ann"]), `"wanted":["admin"]`)
	assert.Equal(t, "Bearer access-3", get(Refusal{Header: made}))
}

// Where a browser is waited for: on this machine alone, at the address of the settings or that of an
// earlier login.
func TestPlacesOfBrowsers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		configured, registered string
		address, path          string // the address without its port
		listens                bool
	}{
		{"http://127.0.0.1:0/back", "", "http://127.0.0.1:0/back", "/back", true}, {"http://localhost:0", "", "http://localhost:0", "/", true}, {"http://[::1]:0/a?b=c", "", "http://[::1]:0/a?b=c", "/a", true},
		{"http://app.example:0/back", "", "http://app.example:0/back", "/back", false}, {"https://127.0.0.1:0/back", "", "https://127.0.0.1:0/back", "/back", false}, {"https://app.example", "http://127.0.0.1:0/back", "https://app.example", "/", false},
		{"", "", "http://127.0.0.1:*/callback", "/callback", true}, {"", "http://127.0.0.1:0/back", "http://127.0.0.1:0/back", "/callback", true}, {"", "http://localhost:0/back", "http://127.0.0.1:*/callback", "/callback", true}, {"", "%zz", "http://127.0.0.1:*/callback", "/callback", true},
	} {
		c, err := listen(test.configured, test.registered)
		if !assert.NoError(t, err, test) {
			continue
		}
		at := test.address
		if c.listener != nil {
			at = strings.Replace(at, "*", fmt.Sprint(c.listener.Addr().(*net.TCPAddr).Port), 1)
		}
		assert.Equal(t, at, c.address)
		assert.Equal(t, test.path, c.path, test)
		assert.Equal(t, test.listens, c.listener != nil, test)
		c.close()
	}
	for _, none := range []string{"back", "http:///back", "%zz", "com.example:back"} {
		_, err := listen(none, "")
		assert.EqualError(t, err, "OAuth.RedirectURI is not a URL", none)
	}
}

// A client is registered by its type, and without an empty scope.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	for to, kind := range map[string]string{
		`["https://app.example/a"]`: "web", `["https://localhost/a"]`: "native", `["https://127.0.0.1:1/a"]`: "native", `["http://app.example/a"]`: "native", `["app:a"]`: "native", `["https://app.example", "app:a"]`: "web", `[]`: "web", `["%zz"]`: "web", `5`: "web",
	} {
		assert.JSONEq(t, `{"a":1,"redirect_uris":`+to+`,"application_type":"`+kind+`"}`, string(registration([]byte(`{"a":1,"scope":"","redirect_uris":`+to+`}`))))
	}
	assert.JSONEq(t, `{"scope":"s","application_type":"web"}`, string(registration([]byte(`{"scope":"s","application_type":"other"}`))))
	assert.Equal(t, "[1]", string(registration([]byte("[1]"))))
}

// A logout that nobody waits for while the metadata are read says why nothing was revoked.
func TestLogoutWithoutMetadata(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		a := s.account(config.OAuth{RedirectURI: "https://app.example/back"}, server)
		s.login("", a, "code=code-1&state=STATE")
		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{"hangs"}
		gone := errors.New("nobody waits any more")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		forgotten := 0
		err := a.Logout(ctx, func() error { forgotten++; return nil })
		assert.EqualError(t, err, "the tokens are deleted here, but were not revoked: nobody waits any more")
		assert.ErrorIs(t, err, gone)
		assert.Equal(t, 1, forgotten)
		assert.Empty(t, s.store.documents)
	})
}

// Once an account has looked and knows of no login, it looks no more until a header is refused, or it can
// get another token.
func TestStoreIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		b := &brittle{s, 1 << 20}
		looks := func(a *Account, refused *Refusal) (string, int) {
			before := b.fine
			header, err := a.Header(t.Context(), refused)
			require.NoError(t, err)
			return header, before - b.fine
		}
		none := s.account(config.OAuth{RedirectURI: "https://app.example/back"}, server)
		none.cfg.Store = b
		for _, want := range []int{1, 0, 0} {
			header, n := looks(none, nil)
			assert.Empty(t, header)
			assert.Equal(t, want, n)
		}
		_, n := looks(none, &Refusal{})
		assert.Equal(t, 1, n)
		s.login("", none, "code=code-1&state=STATE")
		header, n := looks(none, nil)
		assert.Equal(t, "Bearer access-1", header)
		assert.Zero(t, n)
		time.Sleep(time.Hour)
		header, n = looks(none, nil)
		assert.Equal(t, "Bearer access-2", header, "it can be renewed")
		assert.Equal(t, 1, n)
		machine := s.account(config.OAuth{GrantType: config.ClientCredentials, ClientID: "the-client", ClientSecret: "the-secret"}, server)
		machine.cfg.Store = b
		header, n = looks(machine, nil)
		assert.Empty(t, header)
		assert.Equal(t, 1, n)
		_, n = looks(machine, nil)
		assert.Zero(t, n)
		s.web["POST https://as.example/token"] = []string{"200\n" + `{"access_token":"machine-1","expires_in":60}`, "200\n" + `{"access_token":"machine-2","expires_in":60}`}
		header, _ = looks(machine, &Refusal{})
		assert.Equal(t, "Bearer machine-1", header)
		time.Sleep(time.Minute)
		header, _ = looks(machine, nil)
		assert.Equal(t, "Bearer machine-2", header, "it asks for another by itself")
	})
}

// What can't be read or kept of where a secret may go is the reason why it goes nowhere.
func TestEndpointsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	s := usual(t)
	a := s.account(config.OAuth{ClientID: "c", ClientSecret: "the-secret", MetadataURL: "https://as.example/none"}, server)
	_, err := a.revocationProof(t.Context(), &record{ClientID: "c", Trust: a.cfg.trust(), RevokeURL: "https://as.example/revoke"})
	assert.ErrorContains(t, err, "reading OAuth.MetadataURL: ")
	a = s.account(config.OAuth{ClientID: "c", ClientSecret: "the-secret"}, server)
	_, err = a.firstUse(t.Context(), &record{TokenURL: "https://as.example/" + strings.Repeat("x", maxDocument)})
	assert.ErrorContains(t, err, "more than the limit of 65536")
	assert.Empty(t, s.store.documents)
}

// An account that is closed keeps no connection.
func TestConnectionsOfAnAccountEnd(t *testing.T) {
	t.Parallel()
	var open atomic.Int32
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	web.Start()
	defer web.Close()
	g := newReach(&Config{URL: web.URL + "/mcp", OAuth: config.OAuth{TokenURL: web.URL + "/token"}, HTTP: new(http.Transport)})
	for _, path := range []string{"/x", "/token"} { // by a transport each
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+path, nil)
		require.NoError(t, err)
		resp, err := g.RoundTrip(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	assert.EqualValues(t, 2, open.Load())
	g.close()
	mcptest.Soon(t, func() bool { return open.Load() == 0 })
}

// Metadata are those of the issuers from which their address is formed, and of no text that is none.
func TestIssuersOfAnAddress(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string]bool{
		"https://as.example/a": true, "https://as.example/a/": true, "https://AS.example/a": true, "https://as.example:443/a": false, "https://as.example": false, "https://as.example/a/b": false, "http://as.example/a": false, "https://as.example:1/a": false,
		"https://ann@as.example/a": false, "https://as.example/a?": false, "https://as.example/a#": false, "/a": false, "": false, "%zz": false, "https://as.example/%zz": false, "https://as.example/%61": false,
	} {
		for _, at := range []string{oauthMetadata + "/a", openIDMetadata + "/a", "/a" + openIDMetadata} {
			u, err := url.Parse("https://as.example" + at)
			require.NoError(t, err)
			assert.Equal(t, want, formedFrom(u, issuer), "%s of %q", at, issuer)
		}
	}
}
