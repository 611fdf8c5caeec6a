package login

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// A story is all that can be seen of accounts while they are used: what they return, send,
// keep, log and hide.
type story struct {
	t *testing.T
	// web has the answers by method and address, each "STATUS [NAME: VALUE] BODY". Of several,
	// each is given once, and the last for ever. Everything else is not found.
	web   map[string][]string
	store Memory
	full  bool // nothing can be saved

	mu     sync.Mutex
	text   strings.Builder
	kept   map[string]string // what was last shown of the store
	random []string          // values and their names, in turn
}

func (s *story) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *story) Write(line []byte) (int, error) {
	s.say("  log: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (s *story) name(value, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value != "" {
		s.random = append(s.random, value, "<"+name+">")
	}
}

func (s *story) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Method + " " + r.URL.String()
	s.say("  > %s", key)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := r.Header.Get(name)
		if name == "Mcp-Protocol-Version" || name == "Accept" && value == "application/json" { // mcp-go's
			continue
		}
		if encoded, ok := strings.CutPrefix(value, "Basic "); ok {
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			require.NoError(s.t, err)
			value = "Basic of " + string(decoded)
		}
		s.say("    %s: %s", name, value)
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		s.sent(r, body)
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	answers := s.web[key]
	if len(answers) == 0 {
		return answer(r, http.StatusNotFound, nil), nil
	}
	said := answers[0]
	if len(answers) > 1 {
		s.web[key] = answers[1:]
	}
	if said == "hangs" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if said == "fails" {
		return nil, errors.New("no route to the host")
	}
	status, rest := 0, ""
	_, err := fmt.Sscan(said, &status)
	require.NoError(s.t, err)
	header, body, _ := strings.Cut(said, "\n")
	_, rest, _ = strings.Cut(header, " ")
	resp := answer(r, status, []byte(body))
	if name, value, ok := strings.Cut(rest, ": "); ok {
		resp.Header.Set(name, value)
	}
	return resp, nil
}

func (s *story) sent(r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if r.Header.Get("Content-Type") == "application/json" || err != nil {
		s.say("    %s", body)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[name] {
			if name == "client_assertion" {
				s.assertion(value)
			}
			s.say("    %s = %s", name, value)
		}
	}
}

// assertion shows what the parts of an assertion are.
func (s *story) assertion(token string) {
	s.name(token, "assertion")
	for i, part := range strings.Split(token, ".")[:2] {
		decoded, err := base64.RawURLEncoding.DecodeString(part)
		require.NoError(s.t, err)
		s.say("    assertion part %d: %s", i+1, decoded)
		var claims struct{ Jti string }
		require.NoError(s.t, json.Unmarshal(decoded, &claims))
		s.name(claims.Jti, "id")
	}
}

func (s *story) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return s.store.Update(ctx, key, func(document []byte) ([]byte, error) {
		changed, err := change(document)
		if s.full && err == nil && string(changed) != string(document) {
			err = errors.New("the disk is full")
		}
		return changed, err
	})
}

// account returns an account of the story, whose store and web all its accounts share.
func (s *story) account(oauth config.OAuth, address string) *Account {
	a := New(Config{OAuth: oauth, URL: address, Key: "ann", Store: s, HTTP: s, Log: slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{
		Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))})
	a.Hold = func(name string, values []string) {
		if len(values) == 2 && len(values[1]) > 40 { // what a login makes up
			s.name(values[0], "state")
			s.name(values[1], "verifier")
			s.name(transport.GenerateCodeChallenge(values[1]), "challenge of the verifier")
		}
		s.say("  held as %s: %s", name, strings.Join(values, ", "))
	}
	s.t.Cleanup(a.Close)
	return a
}

// step does something and shows what came of it, and what changed in the store.
func (s *story) step(what string, do func() (string, error)) {
	s.say("%s", what)
	got, err := do()
	switch {
	case err != nil && got != "":
		s.say("  = %q, and fails: %v", got, err)
	case err != nil:
		s.say("  fails: %v", err)
	default:
		s.say("  = %q", got)
	}
	now := make(map[string]string)
	for key, document := range s.store.documents {
		now[key] = string(document)
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if now[key] != s.kept[key] {
			s.say("  stored for %.10s: %s", key, now[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.kept)) {
		if _, ok := now[key]; !ok {
			s.say("  deleted for %.10s", key)
		}
	}
	s.kept = now
}

// header asks for a header, after what was refused.
func (s *story) header(what string, a *Account, refused *Refusal) (header string) {
	s.step(what, func() (_ string, err error) {
		header, err = a.Header(s.t.Context(), refused)
		return header, err
	})
	return header
}

// login logs in. The page sends the browser back with answer, in which STATE stands for the
// state that the page was given.
func (s *story) login(what string, a *Account, answer string) {
	s.step(what, func() (string, error) {
		return "", a.Login(s.t.Context(), func(_ context.Context, page Page) (string, error) {
			u, err := url.Parse(page.URL)
			require.NoError(s.t, err)
			query := u.Query()
			u.RawQuery = ""
			s.say("  page of %q at %s, whose code goes to %q", page.Issuer, u, page.TokenHost)
			for _, name := range slices.Sorted(maps.Keys(query)) {
				s.say("    %s = %s", name, query.Get(name))
			}
			if answer == "" {
				return "", errors.New("nobody is here")
			}
			return query.Get("redirect_uri") + "?" + strings.ReplaceAll(answer, "STATE", url.QueryEscape(query.Get("state"))), nil
		})
	})
}

func (s *story) done(name string) {
	s.t.Helper()
	golden.Compare(s.t, name, strings.NewReplacer(s.random...).Replace(s.text.String()))
}

const (
	server     = "https://h.example/mcp"
	refusesAll = `401 WWW-Authenticate: Bearer resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp", scope="read"`
	describes  = "200\n" + `{"resource":"https://h.example/mcp","authorization_servers":["https://as.example"],"scopes_supported":["read","write"]}`
	authority  = "200\n" + `{"issuer":"https://as.example","authorization_endpoint":"https://as.example/authorize","token_endpoint":"https://as.example/token",` +
		`"registration_endpoint":"https://as.example/register","revocation_endpoint":"https://as.example/revoke","scopes_supported":["read","write","offline_access"],` +
		`"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_basic"]}`
)

// usual is a server whose metadata name an authorization server that registers clients.
func usual(t *testing.T) *story {
	return &story{t: t, kept: make(map[string]string), web: map[string][]string{
		"GET " + server: {refusesAll},
		"GET https://h.example/.well-known/oauth-protected-resource/mcp": {describes},
		"GET https://as.example/.well-known/oauth-authorization-server":  {authority},
		"POST https://as.example/register":                               {"201\n" + `{"client_id":"client-1","client_secret":"client-secret-1","token_endpoint_auth_method":"client_secret_basic"}`, "201\n" + `{"client_id":"client-2"}`},
		"POST https://as.example/token": {
			"200\n" + `{"access_token":"access-1","token_type":"Bearer","expires_in":3600,"refresh_token":"refresh-1","scope":"read"}`,
			"200\n" + `{"access_token":"access-2","token_type":"Bearer","expires_in":3600}`,
			"200\n" + `{"access_token":"access-3","token_type":"Bearer","refresh_token":"refresh-3"}`,
			"200\n" + `{"access_token":"access-4","token_type":"Bearer","refresh_token":"refresh-4","scope":"read write admin"}`,
			"200\n" + `{"access_token":"access-5","token_type":"Bearer","refresh_token":"refresh-5","expires_in":60}`,
			"400\n" + `{"error":"invalid_grant","error_description":"it is spent"}`,
		},
		"POST https://as.example/revoke": {"200\n"},
	}}
}

// A user logs in, uses the tokens until they are spent, is asked for more scopes, and logs out.
func TestStoryOfUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		s.say("A user logs in, uses the tokens, is asked for more scopes, and logs out. Sent is what stands after >.")
		oauth := config.OAuth{RedirectURI: "https://app.example/back"}
		a := s.account(oauth, server)
		s.header("before anything", a, nil)
		s.header("again, without a look at the store", a, nil)
		s.header("the server refuses it", a, &Refusal{Challenges: []string{`Bearer resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp", scope="read"`}})
		s.login("login", a, "code=code-1&state=STATE")
		first := s.header("a header", a, nil)
		time.Sleep(time.Hour - 11*time.Second)
		s.header("a second before it is renewed", a, nil)
		time.Sleep(time.Second)
		second := s.header("ten seconds before it expires", a, nil)
		s.header("the first one is refused meanwhile", a, &Refusal{Header: first})
		third := s.header("the second one is refused", a, &Refusal{Header: second, Challenges: []string{"Bearer"}})
		s.header("the third one is refused to the same request", a, &Refusal{Header: third, Again: true})
		s.header("it lacks a scope", a, &Refusal{Header: third, Scopes: []string{"admin"}})
		s.header("it lacks another", a, &Refusal{Header: third, Scopes: []string{"more", "admin"}})
		s.header("it lacks what it has", a, &Refusal{Header: third, Scopes: []string{"read"}})
		s.login("login for these", a, "code=code-2&state=STATE")
		s.header("it lacks what was not granted", a, &Refusal{Header: "Bearer access-4", Scopes: []string{"more"}})
		b := s.account(oauth, server)
		s.header("another process", b, nil)
		s.full = true
		fifth := s.header("its token is refused, and the new one can't be saved", b, &Refusal{Header: "Bearer access-4"})
		s.header("it is used all the same", b, nil)
		s.full = false
		s.header("it lacks a scope, and can be saved now", b, &Refusal{Header: fifth, Scopes: []string{"x"}})
		time.Sleep(54 * time.Second)
		s.header("its refresh token is spent", b, nil)
		s.header("the first process, whose token is refused too", a, &Refusal{Header: "Bearer access-4"})
		s.web["POST https://as.example/token"] = []string{"200\n" + `{"access_token":"access-6","token_type":"Bearer","refresh_token":"refresh-6"}`}
		s.login("login again", b, "code=code-3&state=STATE")
		logout := func(a *Account) (string, error) {
			return "", a.Logout(t.Context(), func() error { s.say("  forgotten"); return nil })
		}
		s.step("logout", func() (string, error) { return logout(b) })
		s.step("logout again", func() (string, error) { return logout(b) })
		s.header("no header is left", b, nil)
		s.header("the first process, before it looks", a, nil)
		b.Close()
		s.header("closed", b, &Refusal{Header: "Bearer x"})
		s.step("closed", func() (string, error) { return logout(b) })
		s.login("closed", b, "code=code-4&state=STATE")
		s.done("user.golden")
	})
}

// A token that could not be saved counts until another process has logged in.
func TestStoryOfUnsaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		s.say("A token that could not be saved is used, until another process has logged in.")
		oauth := config.OAuth{RedirectURI: "https://app.example/back"}
		a, b := s.account(oauth, server), s.account(oauth, server)
		s.login("login", a, "code=code-1&state=STATE")
		s.header("the other process", b, nil)
		s.full = true
		unsaved := s.header("its token is refused, and the new one can't be saved", b, &Refusal{Header: "Bearer access-1"})
		s.header("the first process refreshes with what is stored", a, &Refusal{Header: "Bearer access-1"})
		s.full = false
		s.login("login in the first process", a, "code=code-2&state=STATE")
		s.header("the token of the other is refused", b, &Refusal{Header: unsaved})
		s.login("the page refuses", a, "error=access_denied&error_description=no+way&state=STATE")
		s.login("the page sends back another state", a, "code=code-3&state=other")
		s.login("the page sends back no code", a, "state=STATE")
		s.login("the answer is of another issuer", a, "code=code-3&state=STATE&iss=https://other.example")
		s.login("nobody opens the page", a, "")
		s.web["POST https://as.example/token"] = []string{"400\n" + `{"error":"invalid_grant","error_description":"code-3 is spent"}`, "500", "fails", "200\n{}"}
		for range 4 {
			s.login("the code is not exchanged", a, "code=code-3&state=STATE")
		}
		s.web["POST https://as.example/token"] = []string{"401\n" + `{"error":"invalid_client"}`}
		s.header("the client is not known any more", b, &Refusal{Header: "Bearer access-4"})
		s.header("so nobody is logged in", a, &Refusal{Header: "Bearer access-4"})
		s.done("unsaved.golden")
	})
}

// A client signs in as itself, with a secret or a key.
func TestStoryOfMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := usual(t)
		s.say("A client signs in as itself, with a secret, then with a key. Sent is what stands after >.")
		s.web["POST https://as.example/token"] = []string{
			"200\n" + `{"access_token":"access-1","token_type":"Bearer","expires_in":60,"refresh_token":"not wanted"}`,
			"200\n" + `{"access_token":"access-2","token_type":"Bearer","scope":"read"}`,
			"200\n" + `{"access_token":"access-3","token_type":"Bearer"}`,
			"200\n" + `{"access_token":"access-4","token_type":"Bearer"}`,
			"400\n" + `{"error":"invalid_scope","error_description":"not for the-client with the-secret"}`,
			"503\noverloaded",
			"200\nnot JSON",
			"200\n" + `{"access_token":"access-5","token_type":"mac"}`,
			"200\n" + `{"access_token":"access-6"}`,
			"200\n" + `{"access_token":"access-7"}`,
		}
		oauth := config.OAuth{GrantType: config.ClientCredentials, ClientID: "the-client", ClientSecret: "the-secret"}
		a := s.account(oauth, server)
		s.header("before anything", a, nil)
		s.header("it is refused", a, &Refusal{Challenges: []string{`Bearer resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp", scope="read"`}})
		s.header("it is used", a, nil)
		time.Sleep(54 * time.Second)
		s.header("it has expired", a, nil)
		s.header("it is used", a, nil)
		s.header("the older one was refused", a, &Refusal{Header: "Bearer access-1"})
		s.header("it lacks scopes", a, &Refusal{Header: "Bearer access-2", Scopes: []string{"write", "admin"}})
		s.header("the new one is refused to the same request", a, &Refusal{Header: "Bearer access-3", Again: true})
		s.header("and to another", a, &Refusal{Header: "Bearer access-3"})
		s.header("an error", a, &Refusal{Header: "Bearer access-4"})
		for i := range 5 {
			s.header(fmt.Sprintf("again, the pause is %v", time.Second<<i), a, &Refusal{Header: "Bearer access-4"})
			time.Sleep(time.Second<<i - 1)
			s.header("a moment too early", a, &Refusal{Header: "Bearer access-4"})
			time.Sleep(time.Nanosecond)
		}
		other := s.account(oauth, server)
		s.header("another process uses what is stored", other, nil)
		s.full = true
		s.login("somebody asks for another, which can't be saved", other, "")
		s.header("it is used all the same", other, nil)
		s.full = false
		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{strings.ReplaceAll(authority, "as.example/token", "as.example/token2")}
		s.login("the server names another token endpoint", other, "")
		s.step("logout, whose secret goes nowhere", func() (string, error) {
			return "", other.Logout(t.Context(), func() error { s.say("  forgotten"); return nil })
		})
		edwards := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{authority}
		keyed := config.OAuth{GrantType: config.ClientCredentials, ClientID: "the-client", PrivateKey: pemOf(t, edwards), KeyID: "key-1"}
		k := s.account(keyed, server)
		s.header("with a key", k, &Refusal{})
		s.step("logout", func() (string, error) {
			return "", k.Logout(t.Context(), func() error { return errors.New("nobody to tell") })
		})
		keyed.KeyID, keyed.PrivateKey = "", "no key"
		s.header("with a key that is none", s.account(keyed, server), &Refusal{})
		s.web["GET https://as.example/.well-known/oauth-authorization-server"] = []string{strings.Replace(authority, `"token_endpoint":"https://as.example/token",`, "", 1)}
		s.header("the metadata name no token endpoint", s.account(oauth, server), &Refusal{})
		s.done("machine.golden")
	})
}

// Where a login is, by what a server and its host say. The golden file has each request.
func TestStoryOfDiscovery(t *testing.T) {
	t.Parallel()
	const (
		atServer = "GET https://h.example/.well-known/oauth-protected-resource/mcp"
		atHost   = "GET https://h.example/.well-known/oauth-protected-resource"
		ofOther  = "GET https://as.example/.well-known/oauth-authorization-server"
		ofHost   = "GET https://h.example/.well-known/oauth-authorization-server"
		own      = "200\n" + `{"issuer":"https://h.example","authorization_endpoint":"https://h.example/authorize","token_endpoint":"https://h.example/token","response_types_supported":["code"]}`
		big      = maxAnswer
	)
	with := func(metadata, member string) string { return strings.TrimSuffix(metadata, "}") + "," + member + "}" }
	var all strings.Builder
	all.WriteString("Where a login is, by what a server and others say, with each request for it.\n\n")
	sized := func(n int) string {
		head := strings.TrimPrefix(authority, "200\n")
		return "200\n" + head + strings.Repeat(" ", n-len(head))
	}
	for _, c := range []struct {
		name  string
		oauth config.OAuth
		url   string
		web   map[string][]string
	}{
		{name: "nothing is known"},
		{name: "a server without a path", url: "https://h.example"},
		{name: "a server whose path is a slash", url: "https://h.example/"},
		{name: "a server with a query", url: server + "?key=secret#top"},
		{name: "a challenge", web: map[string][]string{"GET " + server: {refusesAll}, atServer: {describes}, ofOther: {authority}}},
		{name: "a challenge with another status", web: map[string][]string{"GET " + server: {strings.Replace(refusesAll, "401", "403", 1)}, atServer: {describes}, ofOther: {authority}}},
		{name: "a challenge without scopes", web: map[string][]string{"GET " + server: {"401 WWW-Authenticate: Bearer"}, atServer: {describes}, ofOther: {authority}}},
		{name: "a challenge that leads elsewhere", web: map[string][]string{
			"GET " + server:                  {`401 WWW-Authenticate: Bearer resource_metadata="https://h.example/metadata"`},
			"GET https://h.example/metadata": {"200\n" + `{"resource":"https://other.example/mcp","authorization_servers":["https://other.example"]}`}, atServer: {describes}, ofOther: {authority},
		}},
		{name: "a challenge that leads elsewhere, and nothing else", web: map[string][]string{
			"GET " + server:                  {`401 WWW-Authenticate: Bearer resource_metadata="https://h.example/metadata"`},
			"GET https://h.example/metadata": {"200\n" + `{"resource":"https://other.example/mcp","authorization_servers":["https://other.example"]}`},
		}},
		{name: "the server can't be asked", web: map[string][]string{"GET " + server: {"fails"}, atServer: {describes}, ofOther: {authority}}},
		{name: "its metadata only", web: map[string][]string{atServer: {describes}, ofOther: {authority}}},
		{name: "its metadata name nobody", web: map[string][]string{atServer: {"200\n" + `{"resource":"https://h.example/mcp","authorization_servers":[]}`}, ofOther: {authority}}},
		{name: "its metadata name somebody who has none", web: map[string][]string{atServer: {describes}}},
		{name: "the metadata of its host", web: map[string][]string{atHost: {"200\n" + `{"resource":"https://h.example","authorization_servers":["https://as.example"]}`}, ofOther: {authority}}},
		{name: "its host as the authorization server", web: map[string][]string{ofHost: {own}}},
		{name: "somebody else's issuer", web: map[string][]string{atServer: {describes}, ofOther: {own}}},
		{name: "no issuer", web: map[string][]string{ofHost: {"200\n" + `{"authorization_endpoint":"https://h.example/authorize","token_endpoint":"https://h.example/token"}`}}},
		{name: "a member of a wrong type", web: map[string][]string{atServer: {describes}, ofOther: {with(authority, `"code_challenge_methods_supported":"S256"`)}}},
		{name: "an address that is none", web: map[string][]string{atServer: {describes}, ofOther: {strings.ReplaceAll(authority, "https://as.example/token", "%zz")}}},
		{name: "another method of PKCE", web: map[string][]string{atServer: {describes}, ofOther: {strings.ReplaceAll(authority, `"S256"`, `"plain"`)}}},
		{name: "no method of PKCE", web: map[string][]string{atServer: {describes}, ofOther: {strings.ReplaceAll(authority, `"S256"`, ``)}}},
		{name: "promises, and reads documents", web: map[string][]string{atServer: {describes}, ofOther: {with(authority, `"authorization_response_iss_parameter_supported":true,"client_id_metadata_document_supported":true`)}}},
		{name: "the largest answer", web: map[string][]string{atServer: {describes}, ofOther: {sized(big)}}},
		{name: "a larger answer", web: map[string][]string{atServer: {describes}, ofOther: {sized(big + 1)}}},
		{name: "without TLS", web: map[string][]string{atServer: {strings.ReplaceAll(describes, "https://as", "http://as")}, "GET http://as.example/.well-known/oauth-authorization-server": {authority}}},
		{name: "without TLS, as the server", url: "http://h.example/mcp", web: map[string][]string{
			"GET http://h.example/.well-known/oauth-authorization-server": {strings.ReplaceAll(own, "https", "http")},
		}},
		{name: "inside, by address", web: map[string][]string{atServer: {strings.ReplaceAll(describes, "as.example", "10.0.0.1")}}},
		{name: "inside, by name", web: map[string][]string{atServer: {strings.ReplaceAll(describes, "as.example", "localhost")}}},
		{name: "not ASCII", web: map[string][]string{atServer: {strings.ReplaceAll(describes, "as.example", "１27.0.0.1")}}},
		{name: "a redirect to another host", web: map[string][]string{atServer: {describes}, ofOther: {"302 Location: https://else.example/"}}},
		{name: "endpoints of the settings", oauth: config.OAuth{AuthorizationURL: "https://a.example/a", TokenURL: "https://a.example/t"}, url: server + "?key=secret"},
		{name: "endpoints and resource of the settings", oauth: config.OAuth{AuthorizationURL: "https://a.example/a", TokenURL: "https://a.example/t", Resource: "https://r.example"}},
		{name: "a token endpoint of the settings", oauth: config.OAuth{TokenURL: "https://a.example/t"}, web: map[string][]string{atServer: {describes}, ofOther: {authority}}},
		{name: "metadata of the settings", oauth: config.OAuth{MetadataURL: "https://as.example/metadata"}, web: map[string][]string{"GET https://as.example/metadata": {own}}},
		{name: "metadata of the settings, which are none", oauth: config.OAuth{MetadataURL: "https://as.example/metadata"}},
		{name: "a machine: nothing is known", oauth: config.OAuth{GrantType: config.ClientCredentials}},
		{name: "a machine: metadata", oauth: config.OAuth{GrantType: config.ClientCredentials}, web: map[string][]string{atServer: {describes}, ofOther: {strings.ReplaceAll(authority, `"S256"`, `"plain"`)}}},
		{name: "a machine: a token endpoint", oauth: config.OAuth{GrantType: config.ClientCredentials, TokenURL: "https://a.example/t"}},
		{name: "a machine: a token endpoint and metadata", oauth: config.OAuth{GrantType: config.ClientCredentials, TokenURL: "https://a.example/t", MetadataURL: "https://as.example/metadata"}, web: map[string][]string{
			"GET https://as.example/metadata": {authority},
		}},
		{name: "a user, by its long name", oauth: config.OAuth{GrantType: "authorization_code"}, web: map[string][]string{atServer: {describes}, ofOther: {authority}}},
	} {
		s := &story{t: t, web: c.web, kept: make(map[string]string)}
		address := c.url
		if address == "" {
			address = server
		}
		a := s.account(c.oauth, address)
		s.step(c.name, func() (string, error) {
			d, err := a.discover(t.Context())
			if err != nil {
				return "", err
			}
			s.say("  page %s, tokens %s, registration %s, revocation %s, issuer %s", d.metadata.AuthorizationEndpoint, d.metadata.TokenEndpoint,
				d.metadata.RegistrationEndpoint, d.metadata.RevocationEndpoint, d.metadata.Issuer)
			s.say("  resource %s, scopes %q, promises %v, documents %v, guessed %v", d.resource, d.scopes, d.promises, d.documents, d.guessed)
			return "found", nil
		})
		s.header("  does it name none?", a, &Refusal{})
		s.say("  names none: %v", a.NamesNone(t.Context()))
		all.WriteString(s.text.String() + "\n")
	}
	golden.Compare(t, "discovery.golden", all.String())
}

// Where addresses lead, and what is compared of two.
func TestStoryOfAddresses(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What hosts are, and what is said of URLs. A host that is no name has an address, or an invalid one.\n\n")
	for _, host := range []string{
		"example.com", "example.com.", "1.example", "0x.example", "localhost", "LOCALHOST.", "a.localhost", "localhost.example", "", ".",
		"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0X7F.1", "0x", "0xg", "1.2.3.4x", "0x7f.example", "[::1]", "::1", "::", "::ffff:10.0.0.1",
		"8.8.8.8", "0.0.0.0", "0.1.2.3", "1.0.0.0", "10.0.0.1", "11.0.0.0", "172.16.0.1", "172.32.0.0", "192.168.1.1", "169.254.169.254", "224.0.0.1", "255.255.255.255",
		"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", "192.0.0.192", "192.0.0.255", "192.0.1.0", "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", "239.255.255.255", "240.0.0.0",
		"100.100.100.200", "fd00:ec2::254", "fd00:ec2::255", "fe80::1%eth0", "2606:4700::1", "2001::1", "2001:1::1", "100::1", "100:0:0:1::1", "64:ff9b:1::1", "64:ff9b:2::1", "fec0::1", "ff02::1",
		"64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b::1:10.0.0.1", "2002:a00:1::1", "2002:808:808::1", "2003:a00:1::1", "::10.0.0.1", "::8.8.8.8", "::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8",
		"2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1", "2606:4700::100:5efe:10.0.0.1", "2606:4700::5eff:10.0.0.1", "2606:4700::5efe:8.8.8.8", "2606:4700::5efe:169.254.169.254",
	} {
		ip, ok := addressIn(host)
		if !ok {
			fmt.Fprintf(&b, "%q is a name\n", host)
			continue
		}
		fmt.Fprintf(&b, "%q is %v, leads to %v, internal %v, link-local %v\n", host, ip, inner(ip), isInternal(ip), isLinkLocal(ip))
	}
	for _, address := range []string{"", "%zz", "https://H.example:1/a%20b?c#d", "https://ann:pw@h.example/?", "h.example/a", "https://" + strings.Repeat("h", 400)} {
		fmt.Fprintf(&b, "%.40q has the origin %.40q, the host %q of %d bytes, is plainly %.40q\n", address, origin(address), fmt.Sprintf("%.20s", hostOf(address)), len(hostOf(address)), plain(address))
	}
	for _, pair := range [][2]string{{"https://a", "https://A/x"}, {"https://a", "http://a"}, {"https://a:443", "https://a"}, {"https://a", "%zz"}, {"%zz", "https://a"}, {"%zz", "%zz"}, {"", ""}} {
		fmt.Fprintf(&b, "%q and %q are of one origin: %v\n", pair[0], pair[1], sameOrigin(pair[0], pair[1]))
	}
	golden.Compare(t, "addresses.golden", b.String())
}

// How challenges are read, and what is kept of them.
func TestStoryOfChallenges(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What WWW-Authenticate headers say: the challenges, the scopes, those that are lacking, and whether metadata are named.\n\n")
	for _, header := range []string{
		"", " ,\t", "Bearer", "Bearer,Basic", "Bearer a", "Bearer a=", "Bearer a=b=c,d = e", `Bearer a="b,c" d="e\"f\\g\h"`, `Bearer a="`, `Bearer a="b\`, `Bearer a="" b=1`,
		`a=b Bearer c=d`, `Bearer scope=a scope=b SCOPE=c`, `bEARER Scope="a  b" ERROR=Insufficient_Scope`, `Bearer scope="a\\b"`, "Bearer scope=\"a\x7f\"", "Bearer scope=\"a\x1f\"", "Bearer scope=\"~!\"", `Bearer scope="a'b"`,
		`Basic scope=a, Bearer error=insufficient_scope scope=b`, `Bearer resource_metadata="https://h.example/m"`, `Bearer resource_metadata=""`, `Bearer "quoted" scope=a`, "Bearer\u00a0scope=a",
	} {
		fmt.Fprintf(&b, "%q\n  is %q, asks for %q, lacks %q, leads on %v\n", header, challengesIn(header), scopesIn([]string{header}), Lacking([]string{header}), leads([]string{header}))
	}
	for _, n := range []int{maxChallenges - 1, maxChallenges, maxChallenges + 1} {
		headers := append(slices.Repeat([]string{"Basic"}, n-1), `Bearer scope=last resource_metadata=x`)
		fmt.Fprintf(&b, "of %d headers: %d are kept, asks for %q, leads on %v\n", n, len(bounded(headers)), scopesIn(headers), leads(headers))
	}
	for _, n := range []int{maxChallenge - 1, maxChallenge, maxChallenge + 1} {
		header := "Bearer scope=" + strings.Repeat("s", n-len("Bearer scope="))
		fmt.Fprintf(&b, "of %d bytes: %d are kept\n", n, len(bounded([]string{header})[0]))
	}
	golden.Compare(t, "challenges.golden", b.String())
}

// How lists of scopes are put together.
func TestStoryOfScopes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What a login asks for, by the settings, what the login before had and what the server wanted of it.\n\n")
	for _, settings := range [][]string{nil, {"set"}} {
		for _, wanted := range [][]string{nil, {"more", "had"}} {
			for _, offered := range [][]string{nil, {"offered"}, {"offered", offlineAccess}} {
				a := &Account{cfg: Config{OAuth: config.OAuth{Scopes: settings}}}
				fmt.Fprintf(&b, "settings %q, had %q, wanted %q, offered %q: %q\n", settings, []string{"had"}, wanted, offered, a.asks(&record{Scopes: []string{"had"}, Wanted: wanted}, offered))
			}
		}
	}
	for _, n := range []int{maxChallenge - 2, maxChallenge - 1} {
		long := strings.Repeat("l", n)
		fmt.Fprintf(&b, "%d and 1 bytes: %d scopes are kept\n", n, len(joined([]string{long}, []string{"n"})))
	}
	fmt.Fprintf(&b, "%s, %s, %d bytes of many\n", Named(nil), Named([]string{"a", `b"`}), len(Named([]string{strings.Repeat("x", 999)})))
	for _, r := range []record{{}, {Wanted: []string{"a"}}, {Tried: []string{"a", "b"}}, {Scopes: []string{"a"}, Tried: []string{"b"}}, {StepUps: maxStepUps}, {StepUps: maxStepUps - 1}} {
		err := r.want([]string{"a", "b"})
		fmt.Fprintf(&b, "want a, b: %q, %v\n", r.Wanted, err)
	}
	for _, stored := range [][]string{nil, {"a", "b", "c"}, {"c"}} {
		r := record{Scopes: []string{"b"}}
		fmt.Fprintf(&b, "another process wants %q: %q\n", stored, r.wantedSince(record{Wanted: []string{"a"}}, record{Wanted: slices.Clone(stored)}))
	}
	golden.Compare(t, "scopes.golden", b.String())
}

// Where the requests of a login may go, by what is known of the server.
func TestStoryOfReach(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Where requests of a login may go, by where the server was reached. Where it was not, its name is looked up.\n\n")
	for _, server := range []string{"10.0.0.5", "8.8.8.8", "fe80::1", ""} {
		for _, was := range []string{"nowhere", "inside", "outside", "inside and outside", "by a proxy", "inside, then by a proxy", "by the host's own transport"} {
			g := &reach{server: server, direct: new(http.Transport)}
			inside, outside := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("8.8.8.8")
			switch was {
			case "inside":
				g.reached(inside)
			case "outside":
				g.reached(outside)
			case "inside and outside":
				g.reached(inside)
				g.reached(outside)
			case "by a proxy":
				g.proxied()
			case "inside, then by a proxy":
				g.reached(inside)
				g.proxied()
			case "by the host's own transport":
				g.direct = nil
			}
			fmt.Fprintf(&b, "the server %q was reached %s:", server, was)
			for _, to := range [][2]string{{server, "10.0.0.5"}, {server, "8.8.8.8"}, {strings.ToUpper(server), "169.254.169.254"}, {"other", "10.0.0.6"}, {"other", "8.8.4.4"}, {"other", "169.254.169.254"}} {
				may := "yes"
				if err := g.check(t.Context(), to[0], netip.MustParseAddr(to[1])); err != nil {
					may = "no"
				}
				fmt.Fprintf(&b, " %q at %s %s;", to[0], to[1], may)
			}
			fmt.Fprintf(&b, " it is public %v, internal %v\n", g.isPublic(), g.isInternal(t.Context()))
		}
	}
	for _, e := range []outOfReach{{"h", netip.MustParseAddr("10.0.0.1")}, {"10.0.0.1", netip.MustParseAddr("10.0.0.1")}, {"127.1", netip.Addr{}}} {
		fmt.Fprintf(&b, "%v\n", &e)
	}
	golden.Compare(t, "reach.golden", b.String())
}
