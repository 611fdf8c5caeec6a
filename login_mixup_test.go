package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A trap is a hostile MCP server. It has metadata of its own making, and a token
// endpoint and a registration endpoint that accept everything.
type trap struct {
	origin string
	server string // of the MCP server

	mu    sync.Mutex
	heard strings.Builder // all that was sent there
}

// newTrap returns a trap whose documents are those that say returns for a path, or nil
// for none.
func newTrap(t *testing.T, say func(trap *trap, path string) (status int, document map[string]any)) *trap {
	tr := new(trap)
	tr.server = mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		tr.mu.Lock()
		fmt.Fprintln(&tr.heard, r.Method, r.URL, r.Header, string(body))
		tr.mu.Unlock()
		switch status, document := say(tr, r.URL.Path); {
		case document["location"] != nil:
			http.Redirect(w, r, document["location"].(string), status)
		case document != nil:
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(document)
		case r.URL.Path == "/register":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"client_id":"planted","client_secret":"planted-secret"}`)
		case r.URL.Path == "/token":
			fmt.Fprint(w, `{"access_token":"bait","token_type":"bearer"}`)
		case r.URL.Path == "/mcp":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}), "127.0.0.1:0")
	tr.origin = strings.TrimSuffix(tr.server, "/mcp")
	return tr
}

func (tr *trap) all() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.heard.String()
}

// An MCP server can't have a login at an honest authorization server send it the code,
// the verifier or the client.
func TestLoginMixUp(t *testing.T) {
	t.Parallel()
	isMetadata := func(path string) bool {
		return strings.Contains(path, "/oauth-authorization-server") || strings.Contains(path, "/openid-configuration")
	}
	// Each changes the metadata that a trap shows: those of the honest one, but for the
	// token endpoint.
	for name, test := range map[string]struct {
		set   func(tr *trap, m map[string]any)
		say   func(tr *trap, path string, m map[string]any) (int, map[string]any) // instead of m as metadata
		opens bool                                                                // the honest page
		want  string                                                              // in the error; TRAP and HONEST are origins
	}{
		"issuer of the honest one": {want: `the metadata at "TRAP/.well-known/oauth-authorization-server/mcp" name the issuer "HONEST"`},
		"no issuer": {
			set:  func(_ *trap, m map[string]any) { delete(m, "issuer") },
			want: `the metadata at "TRAP/.well-known/oauth-authorization-server/mcp" name no issuer`,
		},
		"hostile registration": {
			set:  func(tr *trap, m map[string]any) { m["registration_endpoint"] = tr.origin + "/register" },
			want: `name the issuer "HONEST"`,
		},
		"only behind the path": {
			say: func(_ *trap, path string, m map[string]any) (int, map[string]any) {
				if path == "/mcp/.well-known/openid-configuration" {
					return 200, m
				}
				return 0, nil
			},
			want: `the metadata at "TRAP/mcp/.well-known/openid-configuration" name the issuer "HONEST"`,
		},
		"only at the root": {
			say: func(_ *trap, path string, m map[string]any) (int, map[string]any) {
				if path == "/.well-known/oauth-authorization-server" {
					return 200, m
				}
				return 0, nil
			},
			want: `the metadata at "TRAP/.well-known/oauth-authorization-server" name the issuer "HONEST"`,
		},
		"a redirect": {
			say: func(_ *trap, path string, m map[string]any) (int, map[string]any) {
				switch {
				case isMetadata(path):
					return http.StatusFound, map[string]any{"location": "/elsewhere"}
				case path == "/elsewhere":
					return 200, m
				}
				return 0, nil
			},
			want: `the metadata at "TRAP/.well-known/oauth-authorization-server/mcp" name the issuer "HONEST"`,
		},
		"metadata of the resource with status 404": {
			say: func(_ *trap, path string, m map[string]any) (int, map[string]any) {
				switch {
				case isMetadata(path):
					return 200, m
				case strings.Contains(path, "/oauth-protected-resource"):
					return 404, map[string]any{"resource": "x", "authorization_servers": []any{m["issuer"]}}
				}
				return 0, nil
			},
			want: `name the issuer "HONEST"`,
		},
		"metadata of the resource name the trap": {
			say: func(tr *trap, path string, m map[string]any) (int, map[string]any) {
				switch {
				case isMetadata(path):
					return 200, m
				case strings.Contains(path, "/oauth-protected-resource"):
					return 200, map[string]any{"resource": tr.server, "authorization_servers": []string{tr.origin}}
				}
				return 0, nil
			},
			want: `the metadata at "TRAP/.well-known/oauth-authorization-server" name the issuer "HONEST"`,
		},
		// The answer of the honest one says whose it is.
		"issuer of the trap": {
			set: func(tr *trap, m map[string]any) {
				m["issuer"], m["registration_endpoint"] = tr.server, tr.origin+"/register"
			},
			want: `the answer is from another authorization server: it says "HONEST", and the login is at "TRAP/mcp"`, opens: true,
		},
	} {
		for _, own := range []*config.OAuth{nil, {ClientID: "client-mine", ClientSecret: clientSecret}} {
			t.Run(fmt.Sprint(name, ", registered ", own != nil), func(t *testing.T) {
				t.Parallel()
				honest := mcptest.NewAuthority(t, echoHandler())
				tr := newTrap(t, func(tr *trap, path string) (int, map[string]any) {
					m := map[string]any{
						"issuer": honest.URL, "authorization_endpoint": honest.URL + "/authorize?tenant=t",
						"token_endpoint": tr.origin + "/token", "registration_endpoint": honest.URL + "/register",
					}
					if test.set != nil {
						test.set(tr, m)
					}
					switch {
					case test.say != nil:
						return test.say(tr, path, m)
					case isMetadata(path):
						return 200, m
					}
					return 0, nil
				})
				d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: tr.server, OAuth: own})
				_ = d.Start(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a page of the trap's never answers
				defer cancel()
				err := d.clean(d.Login(ctx, "web"))
				assert.ErrorContains(t, err, strings.NewReplacer("TRAP", tr.origin, "HONEST", honest.URL).Replace(test.want))
				assert.Equal(t, test.opens, len(d.returns) > 0, "the page was opened")
				assert.NotRegexp(t, mcptest.Secret+`|code_verifier|client-`, tr.all())
				assert.NotContains(t, tr.all(), "POST /token")
				assert.Zero(t, honest.Count().Clients)
			})
		}
	}
}

// answered returns where a page sends the browser, but with these values for iss.
func answered(page LoginPage, iss []string) (string, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page.URL)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	u, err := resp.Location()
	if err != nil {
		return "", err
	}
	q := u.Query()
	q["iss"] = iss
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// An authorization server that promises to say who answers is held to it.
func TestLoginPromisedIssuer(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	resp, err := http.Get(a.URL + "/.well-known/oauth-authorization-server")
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&m))
	require.NoError(t, resp.Body.Close())
	m["authorization_response_iss_parameter_supported"] = true
	promises := true
	var tokens int
	a.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			tokens++
		}
		if promises && strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server") {
			_ = json.NewEncoder(w).Encode(m)
			return true
		}
		return false
	}
	// login lets the browser come back with these values for iss.
	login := func(iss ...string) error {
		d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server})
		_ = d.Start(t.Context())
		d.Manager.opts.OpenURL = func(_ context.Context, page LoginPage) (string, error) {
			return answered(page, iss)
		}
		return d.clean(d.Login(t.Context(), "web"))
	}
	for _, iss := range [][]string{nil, {""}} {
		assert.ErrorContains(t, login(iss...), `the answer does not say whose it is, and "`+a.URL+`" promises that its answers do`)
	}
	other := `the answer is from another authorization server: it says "http://evil.example", and the login is at "` + a.URL + `"`
	assert.ErrorContains(t, login("http://evil.example"), other)
	assert.ErrorContains(t, login(a.URL, "http://evil.example"), other, "any of them counts")
	assert.Zero(t, tokens, "no code was sent")
	assert.NoError(t, login(a.URL))

	promises = false
	assert.NoError(t, login(), "not every authorization server does")
	assert.ErrorContains(t, login("http://evil.example"), other)
}

// A login always names the resource, whoever finds the authorization server.
func TestLoginNamesTheResource(t *testing.T) {
	t.Parallel()
	for _, configured := range []bool{false, true} {
		a := mcptest.NewAuthority(t, echoHandler())
		var pages []string
		server := newTrap(t, func(tr *trap, path string) (int, map[string]any) {
			if path != "/.well-known/oauth-authorization-server" {
				return 0, nil
			}
			return 200, map[string]any{
				"issuer": tr.origin, "authorization_endpoint": a.URL + "/authorize?tenant=t", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			}
		})
		web := ServerConfig{Name: "web", URL: server.server + "?key=1"}
		if configured {
			web.OAuth = &config.OAuth{ClientID: "mine", AuthorizationURL: a.URL + "/authorize?tenant=t", TokenURL: a.URL + "/token"}
		}
		d := newLoginDesk(t, t.TempDir(), web)
		_ = d.Start(t.Context())
		d.Manager.opts.OpenURL = func(_ context.Context, page LoginPage) (string, error) {
			u, err := url.Parse(page.URL)
			if err != nil {
				return "", err
			}
			pages = append(pages, u.Query().Get("resource"))
			return answered(page, nil)
		}
		assert.ErrorIs(t, d.clean(d.Login(t.Context(), "web")), ErrAuthorizationRequired, "it has a token, which the server does not know")
		assert.Equal(t, []string{server.server}, pages)
		assert.Equal(t, map[string]bool{server.server: true}, a.Resources)
	}
}

// Where nobody says whose an answer is, the code goes to the service of the page only,
// unless the settings name where it goes. The host sees both names before the page.
func TestLoginOfTwoServices(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set     func(tr *trap, honest *mcptest.Authority) *config.OAuth
		refused bool // by the host
		want    string
		sent    bool // to the trap
	}{
		"found out": {want: `the page is at "HONEST", and its answer does not say whose it is: the code was not sent to "TRAP", which may be of another service: ` +
			`if you trust it with logins at the page, set OAuth.TokenURL to "http://TRAP/token"`},
		"the settings name the page": {
			set: func(_ *trap, honest *mcptest.Authority) *config.OAuth {
				return &config.OAuth{AuthorizationURL: honest.URL + "/authorize?tenant=t"}
			},
			want: `the code was not sent to "TRAP"`,
		},
		"the host refuses": {refused: true, want: `opening the page: HONEST is not "TRAP"`},
		"the settings name the token endpoint": {
			set: func(tr *trap, _ *mcptest.Authority) *config.OAuth {
				return &config.OAuth{TokenURL: tr.origin + "/token"}
			}, sent: true,
		},
		"the settings name the metadata": {
			set: func(tr *trap, _ *mcptest.Authority) *config.OAuth {
				return &config.OAuth{MetadataURL: tr.origin + "/.well-known/oauth-authorization-server/mcp"}
			}, sent: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			honest := mcptest.NewAuthority(t, echoHandler())
			tr := newTrap(t, func(tr *trap, path string) (int, map[string]any) {
				if path != "/.well-known/oauth-authorization-server/mcp" {
					return 0, nil
				}
				return 200, map[string]any{
					"issuer": tr.server, "authorization_endpoint": honest.URL + "/authorize?tenant=t", "token_endpoint": tr.origin + "/token", "registration_endpoint": honest.URL + "/register",
				}
			})
			web := ServerConfig{Name: "web", URL: tr.server}
			if test.set != nil {
				web.OAuth = test.set(tr, honest)
			}
			d := newLoginDesk(t, t.TempDir(), web)
			_ = d.Start(t.Context())
			var pages []LoginPage
			d.Manager.opts.OpenURL = func(_ context.Context, page LoginPage) (string, error) {
				u, err := url.Parse(page.URL)
				if err != nil {
					return "", err
				}
				pages = append(pages, page)
				if test.refused {
					return "", fmt.Errorf("%s is not %q", u.Host, page.TokenHost)
				}
				return answered(page, nil)
			}
			err := d.clean(d.Login(t.Context(), "web"))
			trap, page := strings.TrimPrefix(tr.origin, "http://"), strings.TrimPrefix(honest.URL, "http://")
			if test.sent {
				assert.ErrorIs(t, err, ErrAuthorizationRequired, "it has a token, which the server does not take")
			} else {
				assert.ErrorContains(t, err, strings.NewReplacer("TRAP", trap, "HONEST", page).Replace(test.want))
			}
			assert.Equal(t, test.sent, strings.Contains(tr.all(), "code=code-number-"))
			require.Len(t, pages, 1)
			assert.Equal(t, []string{trap, trap}, []string{pages[0].Issuer, pages[0].TokenHost})
		})
	}
}

// reached is a client of a host for which every name leads to one handler. It notes the
// hosts that were asked.
type reached struct {
	handler http.Handler
	mu      sync.Mutex
	hosts   map[string]bool
}

func (c *reached) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.hosts[r.URL.Host] = true
	c.mu.Unlock()
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// asked returns the hosts that were asked so far: a request that was given up may still come.
func (c *reached) asked() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.hosts)
}

// A server on the public internet can't lead a login to an internal address, at no step and
// in no spelling; an internal one can, and so can the settings.
func TestLoginReachesNothingInternal(t *testing.T) {
	t.Parallel()
	const outside = "https://as.example"
	login := func(t *testing.T, server string, oauth *config.OAuth, issuer string, ends map[string]string) (*reached, error) {
		m := map[string]any{"issuer": issuer, "code_challenge_methods_supported": []string{"S256"}}
		for _, end := range []string{"authorization", "token", "registration"} {
			at := issuer
			if other := ends[end]; other != "" {
				at = other
			}
			m[end+"_endpoint"] = at + "/" + end
		}
		web := &reached{hosts: make(map[string]bool), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var said map[string]any
			switch path := r.URL.Path; {
			case strings.HasPrefix(path, "/.well-known/oauth-protected-resource"):
				said = map[string]any{"resource": server, "authorization_servers": []string{issuer}}
			case strings.HasPrefix(path, "/.well-known/"):
				said = m
			case path == "/registration":
				w.WriteHeader(http.StatusCreated)
				said = map[string]any{"client_id": "c"}
			case path == "/token":
				said = map[string]any{"access_token": "t", "token_type": "bearer"}
			default:
				w.WriteHeader(http.StatusUnauthorized)
			}
			_ = json.NewEncoder(w).Encode(said)
		})}
		mgr := NewManager(&Options{
			Servers: []ServerConfig{{Name: "web", URL: server, OAuth: oauth, HTTPClient: &http.Client{Transport: web}}},
			OpenURL: func(_ context.Context, page LoginPage) (string, error) {
				u, err := url.Parse(page.URL)
				return "http://x/?code=c&iss=" + url.QueryEscape(issuer) + "&state=" + url.QueryEscape(u.Query().Get("state")), err
			},
		})
		t.Cleanup(func() { mgr.Close() })
		_ = mgr.Start(t.Context())
		return web, mgr.Login(t.Context(), "web")
	}
	for _, host := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "127.0.0.1", "localhost", "LOCALHOST", "a.localhost", "localhost.", "0.0.0.0", "169.254.169.254",
		"[::1]", "[::]", "[fd00::1]", "[fe80::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "127.1", "0x7f000001", "2130706433",
	} {
		inside := "https://" + host
		for step, ends := range map[string]map[string]string{"discovery": nil, "registration": {"registration": inside}, "token": {"token": inside}} {
			issuer := outside
			if step == "discovery" {
				issuer = inside
			}
			web, err := login(t, "https://good.example/mcp", nil, issuer, ends)
			assert.ErrorContains(t, err, "refused to send a request to host", "%s %s", host, step)
			assert.ErrorContains(t, err, "set OAuth.MetadataURL to the metadata of that authorization server", "%s %s", host, step)
			assert.NotContains(t, web.asked(), host, step)
		}
	}
	for name, test := range map[string]struct {
		server, issuer string
		oauth          *config.OAuth
		refused        bool
	}{
		"both public":               {"https://good.example/mcp", outside, nil, false},
		"both private":              {"https://10.0.0.2/mcp", "https://10.0.0.1", nil, false},
		"both of this machine":      {"http://localhost:1/mcp", "http://127.0.0.1:2", nil, false},
		"public one of a private":   {"https://10.0.0.2/mcp", outside, nil, false},
		"link-local of a private":   {"https://10.0.0.2/mcp", "https://169.254.169.254", nil, true},
		"link-local itself":         {"https://169.254.169.254/mcp", "https://169.254.169.254", nil, false},
		"private, by settings":      {"https://good.example/mcp", "https://10.0.0.1", &config.OAuth{MetadataURL: "https://10.0.0.1/.well-known/oauth-authorization-server"}, false},
		"public one at an IP, once": {"https://203.0.113.5/mcp", "https://10.0.0.1", nil, true},
	} {
		web, err := login(t, test.server, test.oauth, test.issuer, nil)
		u, _ := url.Parse(test.issuer)
		if test.refused {
			assert.ErrorContains(t, err, "refused to send a request to host", name)
			assert.NotContains(t, web.asked(), u.Host, name)
		} else {
			assert.ErrorIs(t, err, ErrAuthorizationRequired, "%s: it has a token, which the server does not take", name)
			assert.Contains(t, web.asked(), u.Host, name)
		}
	}
}
