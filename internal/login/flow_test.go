package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the token endpoint sends is a bearer token that a header can have, or it is refused.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	for want, token := range map[string]*transport.Token{
		"the authorization server sent no access token":               {TokenType: "Bearer"},
		"the access token has characters that no header can have":     {AccessToken: "a b"},
		`the access token is of type "mac", want Bearer`:              {AccessToken: "a", TokenType: "mac"},
		"the access token has characters that no header can have\x00": {AccessToken: "a\u00e9"},
		"the access token has characters that no header can have\x01": {AccessToken: "a\x7f"},
	} {
		_, err := (&received{token}).in(record{})
		assert.EqualError(t, err, strings.TrimRight(want, "\x00\x01"))
	}
	_, err := new(received).in(record{})
	assert.Error(t, err)
	for _, kind := range []string{"", "bearer", "BEARER"} {
		r, err := (&received{&transport.Token{AccessToken: "!~", TokenType: kind}}).in(record{Scopes: []string{"a"}, RefreshToken: "r"})
		assert.NoError(t, err)
		assert.Equal(t, record{AccessToken: "!~", Scopes: []string{"a"}, RefreshToken: "r"}, r, "it keeps what nobody told")
	}
	r, err := (&received{&transport.Token{AccessToken: "a", RefreshToken: "new", Scope: "b  c"}}).in(record{Scopes: []string{"a"}, RefreshToken: "r"})
	assert.NoError(t, err)
	assert.Equal(t, record{AccessToken: "a", Scopes: []string{"b", "c"}, RefreshToken: "new"}, r)
}

// A token is used until a tenth of its time is left, 10 seconds at most. A time of more than a
// year counts as a year.
func TestLifetimeOfTokens(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		for seconds, want := range map[int64]time.Duration{
			1: 900 * time.Millisecond, 50: 45 * time.Second, 100: 90 * time.Second, 200: 190 * time.Second, int64(year/time.Second) - 1: year - 11*time.Second,
			int64(year / time.Second): year - 10*time.Second, 1 << 62: year - 10*time.Second,
		} {
			r, err := (&received{&transport.Token{AccessToken: "a", ExpiresIn: seconds}}).in(record{})
			require.NoError(t, err)
			assert.Equal(t, want, time.Until(r.ExpiresAt), seconds)
		}
		for _, seconds := range []int64{0, -1} {
			r, err := (&received{&transport.Token{AccessToken: "a", ExpiresIn: seconds}}).in(record{ExpiresAt: time.Now()})
			require.NoError(t, err)
			assert.Zero(t, r.ExpiresAt, "it is not known")
		}
	})
}

// An answer has the state that was sent, and a code or the reason why not.
func TestCodeIn(t *testing.T) {
	t.Parallel()
	d := &discovery{metadata: &transport.AuthServerMetadata{Issuer: "https://h"}}
	for said, want := range map[string]string{
		"state=s&code=c": "", "state=s&code=c&iss=https://h": "", "code=c": "the answer is to another login: its state differs", "state=x&code=c": "the answer is to another login: its state differs",
		"state=s": "the answer has no code", "state=s&error=access_denied": "the authorization server refused the login: access_denied",
		"state=s&error=access_denied&error_description=no+way": "the authorization server refused the login: access_denied: no way", "state=s&error=x&code=c": "the authorization server refused the login: x",
	} {
		values, err := url.ParseQuery(said)
		require.NoError(t, err)
		code, err := codeIn(values, "s", d)
		if want == "" {
			assert.NoError(t, err, said)
			assert.Equal(t, "c", code)
		} else {
			assert.EqualError(t, err, want, said)
		}
	}
	other, err := url.ParseQuery("state=s&code=c&iss=https://other")
	require.NoError(t, err)
	_, err = codeIn(other, "s", d)
	assert.Error(t, err, "another issuer")
}

// A client proves itself by a header if that is its method, or the only one of the two that
// the server knows.
func TestBasic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		r      record
		secret string
		want   bool
	}{
		{record{AuthMethod: "client_secret_basic"}, "", false}, {record{AuthMethod: "client_secret_basic"}, "s", true}, {record{AuthMethod: "client_secret_post"}, "s", false},
		{record{AuthMethod: "none", AuthMethods: []string{"client_secret_basic"}}, "s", false}, {record{AuthMethods: []string{"client_secret_basic"}}, "s", true},
		{record{AuthMethods: []string{"client_secret_basic", "client_secret_post"}}, "s", false}, {record{}, "s", false},
	} {
		assert.Equal(t, test.want, test.r.basic(test.secret), test)
	}
}

// Scopes with a secret are not asked for, unless the settings name them; nor are those that
// have one together.
func TestHarmlessScopes(t *testing.T) {
	t.Parallel()
	a := &Account{cfg: Config{OAuth: config.OAuth{Scopes: []string{"ours-secret", "ours"}}}}
	assert.Equal(t, []string{"secret"}, a.harmless([]string{"secret"}), "nobody knows of secrets")
	a.Hides = func(text string) bool { return strings.Contains(text, "secret") || strings.Contains(text, "x y") }
	given := []string{"a", "secret", "ours-secret", "b"}
	assert.Equal(t, []string{"ours-secret"}, a.harmless(given), "what is left has one")
	assert.Equal(t, []string{"a", "secret", "ours-secret", "b"}, given)
	assert.Equal(t, []string{"a", "b"}, a.harmless([]string{"a", "a-secret", "b"}))
	assert.Equal(t, []string{"ours"}, a.harmless([]string{"x", "y", "ours"}))
	assert.Equal(t, []string{"x", "ours", "y"}, a.harmless([]string{"x", "ours", "y"}))
}

// Sixteen logins in a row may be for scopes that the server wants besides.
func TestStepUpsAtTheirLimit(t *testing.T) {
	t.Parallel()
	for ups, ok := range map[int]bool{15: true, 16: false} {
		r := record{StepUps: ups, Wanted: []string{"a"}}
		err := r.want([]string{"b"})
		assert.Equal(t, ok, err == nil, ups)
		if ok {
			assert.Equal(t, []string{"a", "b"}, r.Wanted)
		} else {
			assert.ErrorContains(t, err, `wants the scopes "b" for this, and wanted more after each of the last 16 logins`)
			assert.Equal(t, []string{"a"}, r.Wanted)
		}
	}
	has := record{Scopes: []string{"a"}, Tried: []string{"b"}}
	assert.ErrorContains(t, has.want([]string{"b", "a"}), "which the login has or was refused before")
	assert.NoError(t, has.want([]string{"b", "c"}))
}

// A login that granted any of what was wanted gives the others another chance.
func TestFollows(t *testing.T) {
	t.Parallel()
	known := record{Scopes: []string{"old"}, Wanted: []string{"old", "a", "b"}, Tried: []string{"c"}, StepUps: 2}
	for granted, want := range map[string][]string{"a": {"old", "a", "b"}, "": {"c", "old", "a", "b"}, "old": {"c", "old", "a", "b"}, "other": {"c", "old", "a", "b"}} {
		r := record{Scopes: strings.Fields(granted)}
		r.follows(known)
		assert.Equal(t, want, r.Tried, granted)
		assert.Equal(t, 3, r.StepUps)
	}
	r := record{}
	r.follows(record{StepUps: 2, Tried: []string{"c"}})
	assert.Equal(t, record{}, r, "nothing was wanted")
}

// Lists of scopes are joined up to the limit of a challenge; beyond it the newer ones stay.
func TestJoinedScopes(t *testing.T) {
	t.Parallel()
	older := []string{strings.Repeat("o", 4<<10-4)}
	assert.Equal(t, []string{older[0], "new"}, joined(older, []string{"new"}))
	assert.Equal(t, []string{"newer"}, joined(older, []string{"newer"}))
	assert.Equal(t, []string{"a", "b", "c"}, joined([]string{"a", "b"}, []string{"b", "c"}))
}

// askAgain has the access token refused, and returns the next header.
func askAgain(t *testing.T, a *Account) (string, error) {
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	return a.Header(t.Context(), &Refusal{Header: header})
}

// What a refused refresh means: the login has ended, the client is gone, or it is tried
// again later.
func TestRefusedRefreshes(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		client, refresh bool
		fails           bool
	}{
		"invalid_grant": {true, false, false}, "unauthorized_client": {true, false, false}, "invalid_client": {false, false, false},
		"temporarily_unavailable": {true, true, true}, "": {true, true, true},
	} {
		a, authority := account(t, new(Memory))
		authority.Mu.Lock()
		authority.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":%q}`, code)
			}
			return r.URL.Path == "/token"
		}
		authority.Mu.Unlock()
		header, err := askAgain(t, a)
		assert.Empty(t, header, code)
		assert.Equal(t, want.fails, err != nil, "%s: %v", code, err)
		if want.fails {
			assert.ErrorContains(t, err, "refreshing the token: ")
		}
		r, err := a.stored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want.client, r.ClientID != "", code)
		assert.Equal(t, want.refresh, r.RefreshToken != "", code)
	}
}

// A client that we registered, and that the authorization server does not know any more, is
// registered anew by the next login. Until then its tokens are used.
func TestLoginOfAClientThatIsNotKnownAnyMore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		page, exchange string // the error of each, if any
		anew           bool
	}{
		"it has expired":              {exchange: "invalid_client", anew: true},
		"it may not log in any more":  {exchange: "unauthorized_client", anew: true},
		"its page does not know it":   {page: "invalid_client", anew: true},
		"its page does not permit it": {page: "unauthorized_client", anew: true},
		"the code is spent":           {exchange: "invalid_grant"},
		"the user does not agree":     {page: "access_denied"},
	} {
		a, authority := account(t, new(Memory))
		before, err := a.Header(t.Context(), nil)
		require.NoError(t, err)
		open := browse(t)
		if test.page != "" {
			open = func(_ context.Context, page Page) (string, error) {
				u, err := url.Parse(page.URL)
				require.NoError(t, err)
				return "http://x/?" + url.Values{"error": {test.page}, "state": {u.Query().Get("state")}}.Encode(), nil
			}
		}
		authority.Mu.Lock()
		answers("/token", http.StatusUnauthorized, fmt.Sprintf(`{"error":%q}`, test.exchange))(authority)
		authority.Mu.Unlock()
		err = a.Login(t.Context(), open)
		require.ErrorContains(t, err, test.page+test.exchange, name)
		assert.Equal(t, test.anew, strings.Contains(err.Error(), "the next login registers another one"), "%s: %v", name, err)
		header, err := a.Header(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, before, header, name)
		authority.Mu.Lock()
		authority.Answer = nil
		authority.Mu.Unlock()
		require.NoError(t, a.Login(t.Context(), browse(t)), name)
		want := 1
		if test.anew {
			want = 2
		}
		assert.Equal(t, want, authority.Count().Clients, name)
	}
	tokens := new(flaky)
	a, authority := account(t, tokens)
	authority.Mu.Lock()
	answers("/token", http.StatusUnauthorized, `{"error":"invalid_client"}`)(authority)
	authority.Mu.Unlock()
	tokens.fail = true
	assert.ErrorContains(t, a.Login(t.Context(), browse(t)), "OAuth error: invalid_client; and the client that is refused stays in the store: the disk is full")
}

// Tokens are revoked where the server says now, at the origin they come from. Else they are
// deleted, and the user is told.
func TestRevocationsThatFail(t *testing.T) {
	t.Parallel()
	const deleted = "the tokens are deleted here, but were not revoked: "
	for name, test := range map[string]struct {
		before func(*mcptest.Authority) // the login
		after  func(*mcptest.Authority)
		want   string
	}{
		"fine": {nil, nil, ""},
		"none": {func(a *mcptest.Authority) { a.Says = map[string]any{"revocation_endpoint": nil} }, nil, ""},
		"another origin": {func(a *mcptest.Authority) {
			a.Says = map[string]any{"revocation_endpoint": "https://example.com/revoke"}
		}, nil, deleted + `that is done at "https://example.com/revoke", and tokens come from `},
		"no more":     {nil, func(a *mcptest.Authority) { a.Says = map[string]any{"revocation_endpoint": nil} }, "and no metadata say so now"},
		"elsewhere":   {nil, func(a *mcptest.Authority) { a.Says = map[string]any{"revocation_endpoint": a.URL + "/other"} }, "/other\" now"},
		"a status":    {nil, answers("/revoke", 500, ""), deleted + "the authorization server answers with status 500"},
		"a redirect":  {nil, answers("/revoke", 300, ""), deleted + "the authorization server answers with status 300"},
		"any success": {nil, answers("/revoke", 204, ""), ""},
		"an error":    {nil, answers("/revoke", 200, `{"error":"invalid_request"}`), deleted},
		"both kinds":  {nil, answers("/revoke", 400, `{"error":"unsupported_token_type"}`), deleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authority := mcptest.NewAuthority(t, http.NotFoundHandler())
			change := func(f func(*mcptest.Authority)) {
				if f != nil {
					authority.Mu.Lock()
					defer authority.Mu.Unlock()
					f(authority)
				}
			}
			change(test.before)
			a := New(Config{URL: authority.Server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(a.Close)
			require.NoError(t, a.Login(t.Context(), browse(t)))
			change(test.after)
			forgotten := 0
			err := a.Logout(t.Context(), func() error { forgotten++; return nil })
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
				assert.ErrorContains(t, err, deleted)
				assert.NotContains(t, err.Error(), "ClientSecret", "there is none")
			}
			assert.Equal(t, 1, forgotten)
			header, err := a.Header(t.Context(), nil)
			assert.NoError(t, err)
			assert.Empty(t, header)
			assert.NoError(t, a.Logout(t.Context(), func() error { forgotten++; return nil }))
			assert.Equal(t, 1, forgotten, "there is nothing to forget")
		})
	}
	a, _ := account(t, new(Memory))
	assert.EqualError(t, a.Logout(t.Context(), func() error { return errors.New("no disk") }), "no disk")
}

// A login whose account is closed meanwhile is none, and an assertion that can't be made is the
// reason why nothing is revoked.
func TestLoginsThatAreOver(t *testing.T) {
	t.Parallel()
	kept := new(Memory)
	a, authority := account(t, kept)
	before := string(kept.documents["k"])
	err := a.Login(t.Context(), func(context.Context, Page) (string, error) {
		a.Close()
		return "", nil
	})
	assert.Equal(t, errClosed, err)
	assert.Equal(t, before, string(kept.documents["k"]))
	asked := authority.Count()
	err = a.Login(t.Context(), func(context.Context, Page) (string, error) {
		return "", errors.New("a page is shown")
	})
	assert.Equal(t, errClosed, err)
	assert.Equal(t, asked, authority.Count(), "nothing is asked for a closed account")

	b := New(Config{OAuth: config.OAuth{ClientID: "c", PrivateKey: "no key", TokenURL: "https://h.example/token"}, URL: "https://h.example/mcp", Store: kept, Log: slog.New(slog.DiscardHandler)})
	defer b.Close()
	_, err = b.revocationProof(t.Context(), &record{ClientID: "c", Trust: b.cfg.trust()})
	require.Error(t, err)
	assert.NotErrorIs(t, err, errUnnamed)
	_, err = b.revocationProof(t.Context(), &record{ClientID: "c", Trust: b.cfg.trust(), RevokeURL: "https://h.example/revoke"})
	assert.Equal(t, errUnnamed, err, "an assertion does not go there")
}

// Where a secret was first used is noted when it is used, and not when somebody asks for it.
func TestFirstUseIsNotedOnUse(t *testing.T) {
	t.Parallel()
	kept := new(Memory)
	b := New(Config{OAuth: config.OAuth{ClientID: "c", ClientSecret: "s"}, URL: "https://h.example/mcp", Store: kept, Log: slog.New(slog.DiscardHandler)})
	defer b.Close()
	first, err := b.firstUse(t.Context(), new(record))
	require.NoError(t, err)
	assert.Zero(t, first)
	assert.Empty(t, kept.documents)
	first, err = b.firstUse(t.Context(), &record{TokenURL: "https://h.example/token"})
	require.NoError(t, err)
	assert.Equal(t, endpoints{token: "https://h.example/token"}, first)
	assert.Len(t, kept.documents, 1)
}

// An access token that can't be revoked is none that the server keeps.
func TestOnlyRefreshTokensAreRevoked(t *testing.T) {
	t.Parallel()
	a, authority := account(t, new(Memory))
	authority.Mu.Lock()
	var kinds []string
	authority.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/revoke" {
			return false
		}
		kind := r.FormValue("token_type_hint")
		if kinds = append(kinds, kind); kind == "access_token" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"unsupported_token_type"}`)
		}
		return true
	}
	authority.Mu.Unlock()
	assert.NoError(t, a.Logout(t.Context(), func() error { return nil }))
	assert.Equal(t, []string{"refresh_token", "access_token"}, kinds)
}

func browse(t *testing.T) Open {
	return func(_ context.Context, page Page) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	}
}

// answers has a path answered with a status and a body.
func answers(path string, status int, body string) func(*mcptest.Authority) {
	return func(a *mcptest.Authority) {
		a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}
			return r.URL.Path == path
		}
	}
}

// withSecret returns an account whose settings have a client with a secret.
func withSecret(t *testing.T, authority *mcptest.Authority, tokens *Memory, key string, change func(*config.OAuth)) *Account {
	cfg := Config{URL: authority.Server, Key: key, Store: tokens, HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)}
	cfg.ClientID, cfg.ClientSecret = "mine", "client-secret"
	if change != nil {
		change(&cfg.OAuth)
	}
	a := New(cfg)
	t.Cleanup(a.Close)
	return a
}

// The secret of the settings goes where it was first used, for any user, and nowhere else.
func TestSecretGoesWhereItWasFirstUsed(t *testing.T) {
	t.Parallel()
	authority, tokens := mcptest.NewAuthority(t, http.NotFoundHandler()), new(Memory)
	a := withSecret(t, authority, tokens, "a", nil)
	require.NoError(t, a.Login(t.Context(), browse(t)))
	assert.True(t, authority.Secrets["client-secret"])
	header, err := askAgain(t, a)
	require.NoError(t, err)
	assert.NotEmpty(t, header)
	assert.Equal(t, 1, authority.Count().Refreshes)

	// The server now names another token endpoint.
	authority.Mu.Lock()
	authority.Says = map[string]any{"token_endpoint": authority.URL + "/token2", "revocation_endpoint": authority.URL + "/revoke2"}
	clear(authority.Secrets)
	authority.Mu.Unlock()
	b := withSecret(t, authority, tokens, "b", nil)
	err = b.Login(t.Context(), func(context.Context, Page) (string, error) { return "", errors.New("nobody is asked") })
	assert.ErrorContains(t, err, `OAuth.ClientSecret was first used at "`+authority.URL+`/token", and the server now names "`+authority.URL+`/token2"`)
	assert.Empty(t, authority.Secrets)

	// The settings may say that it goes there.
	authority.Mu.Lock()
	authority.Says = nil
	authority.Mu.Unlock()
	c := withSecret(t, authority, tokens, "c", func(o *config.OAuth) { o.TokenURL = authority.URL + "/token" })
	require.NoError(t, c.Login(t.Context(), browse(t)))
	assert.NoError(t, a.Logout(t.Context(), func() error { return nil }))
	assert.True(t, authority.Secrets["client-secret"], "the first use was at this revocation endpoint, too")
	authority.Mu.Lock()
	clear(authority.Secrets)
	authority.Mu.Unlock()
	assert.NoError(t, c.Logout(t.Context(), func() error { return nil }), "a client without a secret may revoke here")
	assert.Empty(t, authority.Secrets, "the settings name a token endpoint alone")
}

// Metadata that the settings name say where the secret goes, as they are now.
func TestSecretGoesWhereTheMetadataSay(t *testing.T) {
	t.Parallel()
	authority, tokens := mcptest.NewAuthority(t, http.NotFoundHandler()), new(Memory)
	named := func(o *config.OAuth) { o.MetadataURL = authority.URL + "/.well-known/oauth-authorization-server" }
	a := withSecret(t, authority, tokens, "a", named)
	require.NoError(t, a.Login(t.Context(), browse(t)))
	header, err := askAgain(t, a)
	require.NoError(t, err)
	assert.NotEmpty(t, header)
	authority.Mu.Lock()
	authority.Says = map[string]any{"token_endpoint": authority.URL + "/token2"}
	authority.Mu.Unlock()
	header, err = askAgain(t, a)
	assert.NoError(t, err)
	assert.Empty(t, header, "its token endpoint is no longer that of the metadata")
	r, err := a.stored(t.Context())
	require.NoError(t, err)
	assert.Empty(t, r.RefreshToken)

	authority.Mu.Lock()
	authority.Says = nil
	authority.Mu.Unlock()
	b := withSecret(t, authority, tokens, "b", named)
	require.NoError(t, b.Login(t.Context(), browse(t)))
	authority.Mu.Lock()
	answers("/.well-known/oauth-authorization-server", 500, "")(authority)
	authority.Mu.Unlock()
	_, err = askAgain(t, b)
	assert.ErrorContains(t, err, "reading OAuth.MetadataURL: ")
}

// A secret needs a client that it is of, and a server that registers none needs one too.
func TestClientsThatAreMissing(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	a := withSecret(t, authority, new(Memory), "a", func(o *config.OAuth) { o.ClientID = "" })
	assert.EqualError(t, a.Login(t.Context(), browse(t)), "OAuth.ClientSecret goes with OAuth.ClientID")
	assert.Zero(t, authority.Count().Clients)
	authority.Mu.Lock()
	authority.Says = map[string]any{"registration_endpoint": nil}
	authority.Mu.Unlock()
	b := withSecret(t, authority, new(Memory), "b", func(o *config.OAuth) { o.ClientID, o.ClientSecret = "", "" })
	assert.ErrorContains(t, b.Login(t.Context(), browse(t)), "the authorization server registers no clients by itself")
	authority.Mu.Lock()
	authority.Says = map[string]any{"code_challenge_methods_supported": []string{"plain"}}
	authority.Mu.Unlock()
	assert.ErrorContains(t, b.Login(t.Context(), browse(t)), "does not support PKCE with S256")
}

// Secrets are told before they are used.
func TestSecretsAreTold(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	a := withSecret(t, authority, new(Memory), "a", nil)
	told := make(map[string]bool)
	a.Hold = func(_ string, values []string) {
		for _, v := range values {
			told[v] = true
		}
	}
	require.NoError(t, a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		u, err := url.Parse(page.URL)
		assert.NoError(t, err)
		assert.True(t, told[u.Query().Get("state")], "the state")
		mcptest.Browse(t, page.URL)
		return "", nil
	}))
	r, err := a.stored(t.Context())
	require.NoError(t, err)
	for _, secret := range []string{r.AccessToken, r.RefreshToken, "code-number-1"} {
		assert.True(t, told[secret], secret)
	}
	assert.False(t, told[""])
}
