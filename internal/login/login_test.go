package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { mcptest.Main(m, nil) }

// account returns an account at a small authority that has logged in.
func account(t *testing.T, tokens store.Tokens) (*Account, *mcptest.Authority) {
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	a := New(Config{URL: authority.Server, Key: "k", Store: tokens, HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(a.Close)
	resp, err := http.Get(authority.Server)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for _, refusal := range []*Refusal{nil, {Challenges: resp.Header.Values("WWW-Authenticate")}} {
		header, err := a.Header(t.Context(), refusal)
		require.NoError(t, err)
		require.Empty(t, header)
	}
	require.NoError(t, a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	}))
	return a, authority
}

// flaky is a store whose next saves fail.
type flaky struct {
	Memory
	fail bool
}

func (f *flaky) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return f.Memory.Update(ctx, key, func(document []byte) ([]byte, error) {
		changed, err := change(document)
		if f.fail && err == nil && !bytes.Equal(document, changed) {
			err = errors.New("the disk is full")
		}
		return changed, err
	})
}

// New tokens that can't be saved are used all the same, and their refresh token
// instead of the spent one.
func TestStoreFails(t *testing.T) {
	tokens := new(flaky)
	a, authority := account(t, tokens)
	old, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	for i := range 4 {
		tokens.fail = i < 2
		next, err := a.Header(t.Context(), &Refusal{Header: old})
		require.NoError(t, err)
		require.NotEqual(t, old, next)
		old = next
	}
	assert.Equal(t, mcptest.Counts{Clients: 1, Refreshes: 4}, authority.Count())
}

// Of callers whose token was refused at once, one refreshes it. If that can't be saved,
// the others do not forget it: the refresh token in the store is spent.
func TestStoreFailsForMany(t *testing.T) {
	tokens := new(flaky)
	a, authority := account(t, tokens)
	old, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	tokens.fail = true
	for range 3 {
		_, err := a.renew(t.Context(), old, nil) // past the look at the current record
		require.NoError(t, err)
	}
	current, err := a.Header(t.Context(), &Refusal{Header: old})
	require.NoError(t, err)
	next, err := a.Header(t.Context(), &Refusal{Header: current})
	require.NoError(t, err)
	assert.NotEmpty(t, next)
	tokens.fail = false
	_, err = a.renew(t.Context(), old, nil)
	require.NoError(t, err)
	again := New(a.cfg) // another process
	defer again.Close()
	saved, err := again.Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, next, saved)
	assert.Equal(t, mcptest.Counts{Clients: 1, Refreshes: 2}, authority.Count())
}

// The document of an account has a limit, in both directions.
func TestDocumentIsBounded(t *testing.T) {
	tokens := new(Memory)
	a, authority := account(t, tokens)
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	authority.Mu.Lock()
	authority.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			fmt.Fprintf(w, `{"access_token":%q}`, strings.Repeat("x", 64<<10))
		}
		return r.URL.Path == "/token"
	}
	authority.Mu.Unlock()
	err = a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	})
	assert.ErrorContains(t, err, "more than the limit of 65536")
	again, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, header, again, "the old login")

	require.NoError(t, tokens.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
		return append(document, make([]byte, 64<<10)...), nil
	}))
	other := New(a.cfg)
	defer other.Close()
	_, err = other.Header(t.Context(), nil)
	assert.ErrorContains(t, err, "bytes, more than the limit of 65536")
	assert.NoError(t, other.Logout(t.Context(), nil), "what can't be read can be deleted")
	assert.Empty(t, tokens.documents)
}

// Nobody waits for a store that ignores its context, not even Close, nor gets a page of
// any length.
func TestLoginIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		a := New(Config{URL: "https://mcp.example/mcp", Store: storeguard.Tokens(stuck(release), "the store")})
		begun := time.Now()
		for _, use := range []func(context.Context) error{
			func(ctx context.Context) error { return a.Login(ctx, nil) },
			func(ctx context.Context) error { return a.Logout(ctx, nil) },
			func(ctx context.Context) error { _, err := a.Header(ctx, nil); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			assert.ErrorIs(t, use(ctx), context.DeadlineExceeded)
			cancel()
		}
		assert.Equal(t, 3*time.Second, time.Since(begun))
		begun = time.Now()
		a.Close()
		assert.Equal(t, closeGrace, time.Since(begun))
	})

	long := New(Config{OAuth: config.OAuth{AuthorizationURL: "https://x/", TokenURL: "https://x/", ClientID: "c"}, URL: "https://mcp.example/mcp", Store: new(Memory)})
	defer long.Close()
	long.cfg.Scopes = []string{strings.Repeat("x", 32<<10)}
	assert.ErrorContains(t, long.Login(t.Context(), nil), "more than the limit of 32768")
}

// stuck is a store that answers only when the channel is closed.
type stuck chan struct{}

func (s stuck) Update(context.Context, string, func([]byte) ([]byte, error)) error {
	<-s
	return errors.New("closed")
}

// A store in memory keeps documents up to a limit, and nothing of other keys.
func TestMemoryIsBounded(t *testing.T) {
	m := new(Memory)
	set := func(key string, document []byte) error {
		return m.Update(t.Context(), key, func([]byte) ([]byte, error) { return document, nil })
	}
	for i := range 2 * 10_000 {
		require.NoError(t, set(fmt.Sprint("none", i), nil))
	}
	assert.Empty(t, m.documents)
	for i := range 10_000 {
		require.NoError(t, set(fmt.Sprint(i), []byte("x")))
	}
	assert.EqualError(t, set("more", []byte("x")), "there are 10000 logins in memory, the limit: set Options.TokenStore")
	assert.NoError(t, set("1", []byte("y")))
	assert.NoError(t, set("2", nil))
	assert.NoError(t, set("more", []byte("x")))
	assert.Len(t, m.documents, 10_000)
}

// The client proves itself for a revocation as it does for a token.
func TestRevocation(t *testing.T) {
	for name, test := range map[string]struct {
		r    record
		want string // the forms and the header
	}{
		"public": {record{}, "client_id=c+1&token=R&token_type_hint=refresh_token client_id=c+1&token=A&token_type_hint=access_token"},
		"post": {record{ClientSecret: "s 1", AuthMethods: []string{"client_secret_basic", "client_secret_post"}},
			"client_id=c+1&client_secret=s+1&token=R&token_type_hint=refresh_token client_id=c+1&client_secret=s+1&token=A&token_type_hint=access_token"},
		"basic": {record{ClientSecret: "s 1", AuthMethods: []string{"client_secret_basic"}},
			"token=R&token_type_hint=refresh_token c+1:s+1 token=A&token_type_hint=access_token c+1:s+1"},
		"registered": {record{ClientSecret: "s 1", AuthMethod: "client_secret_basic", AuthMethods: []string{"client_secret_post"}},
			"token=R&token_type_hint=refresh_token c+1:s+1 token=A&token_type_hint=access_token c+1:s+1"},
	} {
		var sent []string
		named := "https://auth.example/revoke"
		a := New(Config{URL: "https://mcp.example/mcp", Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
				return answer(r, 200, fmt.Appendf(nil, `{"issuer":"https://mcp.example","authorization_endpoint":"https://auth.example/a","token_endpoint":"https://auth.example/token","revocation_endpoint":%q}`, named)), nil
			case r.Method == http.MethodGet:
				return answer(r, 404, nil), nil
			}
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			sent = append(sent, string(body))
			if user, password, ok := r.BasicAuth(); ok {
				sent = append(sent, user+":"+password)
			}
			if strings.Contains(string(body), "access_token") {
				return answer(r, 400, []byte(`{"error":"unsupported_token_type"}`)), nil
			}
			return answer(r, 200, nil), nil
		})})
		r := test.r
		r.ClientID, r.AccessToken, r.RefreshToken, r.RevokeURL = "c 1", "A", "R", "https://auth.example/revoke"
		r.TokenURL = "https://AUTH.example/token"
		assert.NoError(t, a.revoke(t.Context(), &r), name)
		assert.Equal(t, test.want, strings.Join(sent, " "), name)
		named = "http://auth.example/revoke"
		r.RevokeURL, r.TokenURL = named, "http://auth.example/token"
		assert.ErrorContains(t, a.revoke(t.Context(), &r), "without TLS", name)
		a.Close()
	}
}

// A refresh goes on when its caller gives up: the answer has the only refresh token.
// Close waits for it, but not for long.
func TestRefreshOutlivesItsCaller(t *testing.T) {
	a, authority := account(t, new(Memory))
	asked, answer := make(chan struct{}), make(chan struct{})
	authority.Mu.Lock()
	authority.Answer = func(http.ResponseWriter, *http.Request) bool {
		asked <- struct{}{}
		<-answer
		return false
	}
	authority.Mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	old, _ := a.Header(t.Context(), nil)
	done := make(chan string)
	refused := func(ctx context.Context) {
		header, _ := a.Header(ctx, &Refusal{Header: old})
		done <- header
	}
	go refused(ctx)
	<-asked
	go refused(ctx) // waits for its turn
	cancel()
	assert.Empty(t, <-done)
	assert.Empty(t, <-done)
	answer <- struct{}{}
	header, err := a.Header(t.Context(), &Refusal{Header: old})
	require.NoError(t, err)
	assert.Contains(t, header, "Bearer access-number-")
	assert.Equal(t, 1, authority.Count().Refreshes)

	old = header
	go refused(t.Context())
	<-asked
	begun := time.Now()
	a.Close() // without the answer
	assert.Empty(t, <-done)
	assert.GreaterOrEqual(t, time.Since(begun), closeGrace)
	assert.Less(t, time.Since(begun), requestTimeout)
	close(answer)
	_, err = a.Header(t.Context(), &Refusal{Header: old})
	assert.ErrorIs(t, err, errClosed)
}

// A server with https can't lead us to http, and no answer is read without a bound.
func TestCarrier(t *testing.T) {
	a := New(Config{URL: "https://mcp.example/mcp", Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := `{"resource":"https://mcp.example/mcp","authorization_servers":["http://10.0.0.1"]}`
		if r.URL.Host != "mcp.example" {
			t.Error("asked", r.URL)
		}
		return answer(r, 200, []byte(body)), nil
	})})
	defer a.Close()
	err := a.Login(t.Context(), nil)
	assert.ErrorContains(t, err, "without TLS")
	_, err = a.transport().RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "10.0.0.1"}})
	assert.ErrorContains(t, err, "without TLS")

	for _, page := range []string{"javascript:alert(1)", "http://mcp.example/", "https://", "file:///etc/passwd"} {
		a.cfg.AuthorizationURL, a.cfg.TokenURL, a.cfg.ClientID = page, "https://mcp.example/token", "c"
		assert.ErrorContains(t, a.Login(t.Context(), nil), "not an https URL", page)
	}
	assert.Equal(t, "an [hidden] is not", without(url.Values{"code": {"number-of-code"}, "a": {"an"}}, "an number-of-code\nis not"))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Only the browser with the state ends the wait; all else is answered and forgotten.
func TestCallback(t *testing.T) {
	c, err := listen("", "")
	require.NoError(t, err)
	defer c.close()
	got := make(chan url.Values, 1)
	go func() {
		said, err := c.wait(t.Context(), Page{URL: "page"}, "right", func(context.Context, Page) (string, error) { return "", nil })
		assert.NoError(t, err)
		got <- said
	}()
	idle, err := net.Dial("tcp", c.listener.Addr().String())
	require.NoError(t, err)
	defer idle.Close()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + c.listener.Addr().String() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for path, want := range map[string]int{"/favicon.ico": 404, "/callback": 400, "/callback?state=wrong&code=x": 400} {
		status, _ := get(path)
		assert.Equal(t, want, status, path)
	}
	status, text := get("/callback?state=right&code=x")
	assert.Equal(t, 200, status)
	assert.Contains(t, text, "close this page")
	assert.Equal(t, "x", (<-got).Get("code"))

	_, err = listen(c.address, "")
	assert.ErrorContains(t, err, "waiting for the browser at OAuth.RedirectURI")
	again, err := listen("", c.address)
	require.NoError(t, err)
	assert.NotEqual(t, c.address, again.address, "the port is taken")
	again.close()
	_, err = listen("::", "")
	assert.ErrorContains(t, err, "OAuth.RedirectURI is not a URL")
}

// What a browser and a store say can't do harm.
func FuzzForeign(f *testing.F) {
	f.Add([]byte("GET /callback?state=right&code=x HTTP/1.1\r\nHost: x\r\n\r\n"), []byte(`{"url":"u","access_token":"t"}`))
	f.Add([]byte("POST / HTTP/1.1\r\n\r\n"), []byte(`[]`))
	f.Fuzz(func(t *testing.T, request, stored []byte) {
		c := &callback{path: callbackPath, answers: make(chan url.Values, 1)}
		ours, theirs := net.Pipe()
		go func() { _, _ = theirs.Write(request); theirs.Close() }()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		c.answer(ours, "right")
		ours.Close()
		select {
		case said := <-c.answers:
			require.Equal(t, "right", said.Get("state"))
		default:
		}
		a := &Account{cfg: Config{URL: "u"}}
		if r, err := a.parse(stored); err == nil && r.usable("") {
			require.Equal(t, "u", r.URL)
		}
	})
}
