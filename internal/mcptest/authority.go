package mcptest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An Authority is a small authorization server, with an MCP server behind it. It
// logs everyone in at once. Its refresh tokens can be used once: who uses one again
// loses all tokens of that login. Lock Mu to change the exported fields.
type Authority struct {
	URL    string // of itself
	Server string // of the MCP server, which wants a token

	Mu        sync.Mutex
	ExpiresIn int                                           // seconds that the authority claims; 0 for none
	Answer    func(http.ResponseWriter, *http.Request) bool // answers instead of the authority, if it returns true
	Resources map[string]bool                               // for which tokens were asked
	Secrets   map[string]bool                               // of clients that were sent here
	Says      map[string]any                                // further members of its metadata
	Client    map[string]any                                // that registered last
	Moved     *Authority                                    // whose tokens the server wants instead; nil for this one's
	Scopes    string                                        // for which the last login asked
	Grant     func(asked string) string                     // returns what the user grants of the scopes; nil for all
	Lacks     func(body, scopes string) string              // returns the scopes that a request to the server lacks; nil for none
	Knows     func(*http.Request) bool                      // a client that signs in as itself, by its request; nil for none
	counts    Counts
	logins    map[string]*granted // by each token and code
	made      int
}

// Counts are what happened at an Authority.
type Counts struct {
	Clients   int // that registered
	Refreshes int // that succeeded
	Reused    int // refresh tokens that were used again
	Revoked   int // tokens
	Itself    int // tokens for clients that sign in as themselves
}

// Count returns what happened so far.
func (a *Authority) Count() Counts {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.counts
}

type granted struct {
	client, challenge, redirect string
	scopes                      string
	access, refresh             string // "" once revoked
}

// NewAuthority returns an Authority in front of an MCP server.
func NewAuthority(t testing.TB, server http.Handler) *Authority {
	a := &Authority{logins: make(map[string]*granted), Resources: make(map[string]bool), Secrets: make(map[string]bool)}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		metadata := map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize?tenant=t", "token_endpoint": a.URL + "/token",
			"registration_endpoint": a.URL + "/register", "revocation_endpoint": a.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"},
		}
		a.Mu.Lock()
		defer a.Mu.Unlock()
		maps.Copy(metadata, a.Says)
		_ = json.NewEncoder(w).Encode(metadata)
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var client map[string]any
		if err := json.NewDecoder(r.Body).Decode(&client); err != nil || client["scope"] == "" {
			http.Error(w, `{"error":"invalid_client_metadata"}`, http.StatusBadRequest)
			return
		}
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.Client = client
		a.counts.Clients++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"client_id":"client-%d"}`, a.counts.Clients)
	})
	mux.HandleFunc("/authorize", a.authorize)
	mux.HandleFunc("/token", a.token)
	mux.HandleFunc("/revoke", a.revoke)
	a.URL = strings.TrimSuffix(ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Mu.Lock()
		answer := a.Answer
		a.Mu.Unlock()
		if answer == nil || !answer(w, r) {
			mux.ServeHTTP(w, r)
		}
	}), "127.0.0.1:0"), "/mcp")
	a.Server = a.Guard(t, server)
	return a
}

// Guard serves an MCP server that wants a token of the authority.
func (a *Authority) Guard(t testing.TB, server http.Handler) (url string) {
	url = ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Mu.Lock()
		at := cmp.Or(a.Moved, a)
		a.Mu.Unlock()
		base := "http://" + r.Host
		if strings.HasPrefix(r.URL.Path, "/metadata") {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"resource": url, "authorization_servers": []string{at.URL}, "scopes_supported": []string{"all"},
			})
			return
		}
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		at.Mu.Lock()
		g := at.logins[token]
		ok := g != nil && g.access == token
		body, err := io.ReadAll(r.Body)
		lacks := ""
		if ok && at.Lacks != nil {
			lacks = at.Lacks(string(body), g.scopes)
		}
		at.Mu.Unlock()
		if err != nil {
			return
		}
		if lacks != "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x", error="insufficient_scope", scope="`+lacks+`", resource_metadata="`+base+`/metadata"`)
			http.Error(w, "your token was "+token, http.StatusForbidden)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x", scope="read write", resource_metadata="`+base+`/metadata"`)
			http.Error(w, "your token was "+token, http.StatusUnauthorized)
			return
		}
		server.ServeHTTP(w, r)
	}), "127.0.0.1:0")
	return url
}

func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.made++
	code := fmt.Sprintf("code-number-%d", a.made)
	a.Scopes = q.Get("scope")
	scopes := a.Scopes
	if a.Grant != nil {
		scopes = a.Grant(scopes)
	}
	a.logins[code] = &granted{scopes: scopes, client: q.Get("client_id"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri")}
	to := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.URL}}
	if q.Get("tenant") != "t" || q.Get("code_challenge_method") != "S256" {
		to = url.Values{"error": {"invalid_request"}, "state": {q.Get("state")}}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+to.Encode(), http.StatusFound)
}

func (a *Authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.note(r)
	code, refresh := r.Form.Get("code"), r.Form.Get("refresh_token")
	g := a.logins[code+refresh]
	sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
	a.Resources[r.Form.Get("resource")] = true
	if r.Form.Get("grant_type") == "client_credentials" {
		a.itself(w, r)
		return
	}
	switch {
	case code != "" && g != nil && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && g.redirect == r.Form.Get("redirect_uri"):
		delete(a.logins, code)
	case refresh != "" && g != nil && g.refresh == refresh && g.client == r.Form.Get("client_id"):
		a.counts.Refreshes++
	default:
		if g != nil {
			a.counts.Reused++
			g.access, g.refresh = "", ""
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"no such thing as %s"}`, code+refresh)
		return
	}
	a.made++
	g.access, g.refresh = fmt.Sprintf("access-number-%d", a.made), fmt.Sprintf("refresh-number-%d", a.made)
	a.logins[g.access], a.logins[g.refresh] = g, g
	said := map[string]any{"access_token": g.access, "refresh_token": g.refresh, "token_type": "bearer", "expires_in": a.ExpiresIn}
	if a.Grant != nil {
		said["scope"] = g.scopes
	}
	_ = json.NewEncoder(w).Encode(said)
}

// itself answers a client that signs in as itself. The caller holds Mu.
func (a *Authority) itself(w http.ResponseWriter, r *http.Request) {
	if a.Knows == nil || !a.Knows(r) {
		w.WriteHeader(http.StatusUnauthorized)
		_, secret, _ := r.BasicAuth()
		_ = json.NewEncoder(w).Encode(map[string]any{"error": "invalid_client", "error_description": "not with " + secret + r.Form.Get("client_secret") + r.Form.Get("client_assertion")})
		return
	}
	a.counts.Itself++
	a.made++
	a.Scopes = r.Form.Get("scope")
	g := &granted{scopes: a.Scopes, access: fmt.Sprintf("access-number-%d", a.made)}
	if a.Grant != nil {
		g.scopes = a.Grant(a.Scopes)
	}
	a.logins[g.access] = g
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": g.access, "token_type": "Bearer", "expires_in": a.ExpiresIn, "scope": g.scopes})
}

func (a *Authority) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.note(r)
	g := a.logins[r.Form.Get("token")]
	if g != nil && g.client != r.Form.Get("client_id") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_client"}`)
		return
	}
	if g != nil {
		a.counts.Revoked++
		delete(a.logins, g.access)
		delete(a.logins, g.refresh)
	}
}

// note keeps the secret of a client.
func (a *Authority) note(r *http.Request) {
	_, basic, _ := r.BasicAuth()
	if secret := r.Form.Get("client_secret") + basic; secret != "" {
		a.Secrets[secret] = true
	}
}

// Expire ends all access tokens, as a restart of the MCP server may. Revoke ends
// all tokens.
func (a *Authority) Expire() { a.drop(false) }
func (a *Authority) Revoke() { a.drop(true) }

func (a *Authority) drop(all bool) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, g := range a.logins {
		g.access = ""
	}
	if all {
		clear(a.logins)
	}
}

// Secret matches each secret that an Authority makes.
const Secret = `(access|refresh|code)-number-`

// Browse goes to a page and follows redirects, as a browser does.
func Browse(t testing.TB, page string) {
	resp, err := http.Get(page)
	if assert.NoError(t, err) {
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)
	}
}
