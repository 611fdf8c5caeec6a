package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startAuthority runs a published authorization server until the end of the test and
// returns its address.
func startAuthority(t *testing.T, ttl int) (issuer string) {
	cmd := exec.Command("node", "servers/authority.mjs") // the test's context ends before its servers, which ask the authority
	cmd.Env = append(os.Environ(), fmt.Sprintf("TTL=%d", ttl), "OIDC_PROVIDER="+filepath.Join(runDir, "npm/node_modules/oidc-provider/lib/index.js"))
	return startPrinting(t, cmd)
}

// unkept keeps no connection: the authority may close one that is kept just as we send, and
// nothing sends a POST again.
var unkept = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// post sends a form to the authority and returns the status and the answer.
func post(t testing.TB, address string, form url.Values) (int, map[string]any) {
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := unkept.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var said map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&said)
	return resp.StatusCode, said
}

// introspect returns what the authority says of a token.
func introspect(t testing.TB, issuer, token string) map[string]any {
	_, said := post(t, issuer+"/token/introspection", url.Values{"token": {token}, "client_id": {"guard"}, "client_secret": {"guard-secret-of-this-test"}})
	return said
}

// A protected is an MCP server that wants tokens.
type protected struct {
	address string
	calls   atomic.Int32 // of tools that arrived
}

// protect serves an MCP server to those whose token the authority knows, and which
// is for this server. The tool admin needs the scope admin.
func protect(t *testing.T, issuer, name string) *protected {
	var authority atomic.Pointer[string]
	authority.Store(&issuer)
	return protectAt(t, &authority, name)
}

// protectAt does so with an authority that may change.
func protectAt(t *testing.T, authority *atomic.Pointer[string], name string) *protected {
	p := new(protected)
	s := mcpserver.NewMCPServer(name, "1")
	s.AddTool(mcp.NewTool("slow", mcp.WithNumber("seconds")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(time.Duration(r.GetFloat("seconds", 0) * float64(time.Second))):
			return mcp.NewToolResultText("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	s.AddTool(mcp.NewTool("admin"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ruled"), nil
	})
	inner := mcpserver.NewStreamableHTTPServer(s)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		issuer := *authority.Load()
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": p.address, "authorization_servers": []string{issuer}, "scopes_supported": []string{"mcp"}})
			return
		}
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		said := introspect(t, issuer, token)
		if said["active"] != true || said["aud"] != p.address {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "what is "+token+"?", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var asked struct {
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(body, &asked) // a GET has none
		if asked.Method == "tools/call" {
			p.calls.Add(1)
		}
		if scopes, _ := said["scope"].(string); asked.Params.Name == "admin" && !slices.Contains(strings.Fields(scopes), "admin") {
			w.Header().Set("WWW-Authenticate", `Basic realm="x", Bearer error=insufficient_scope, scope=admin`)
			http.Error(w, token+" is not enough", http.StatusForbidden)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	p.address = web.URL + "/mcp"
	return p
}

var (
	action = regexp.MustCompile(`action="([^"]+)"`)
	input  = regexp.MustCompile(`<input[^>]* name="([^"]+)"(?:[^>]* value="([^"]*)")?`)
)

// browse is a person who logs in and consents: it follows redirects and posts forms.
func browse(ctx context.Context, page string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	for range 10 {
		resp, err := browser.Do(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", resp.Request.URL.Path, resp.Status, body)
		}
		to := action.FindSubmatch(body)
		if to == nil { // we are back
			return nil
		}
		form := make(url.Values)
		for _, field := range input.FindAllSubmatch(body, -1) {
			form.Set(string(field[1]), html.UnescapeString(string(field[2])))
		}
		for _, name := range []string{"login", "password"} {
			if form.Has(name) {
				form.Set(name, "ann")
			}
		}
		next, err := resp.Request.URL.Parse(html.UnescapeString(string(to[1])))
		if err != nil {
			return err
		}
		if r, err = http.NewRequestWithContext(ctx, http.MethodPost, next.String(), strings.NewReader(form.Encode())); err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return fmt.Errorf("too many pages")
}

// A loginHost logs in to servers and keeps all that it says.
type loginHost struct {
	t testing.TB
	*mcphybrid.Manager
	folder string
	pages  atomic.Int32 // that were opened
	said   mcptest.Log
}

func newLoginHost(t testing.TB, folder string, servers ...mcphybrid.ServerConfig) *loginHost {
	h := &loginHost{t: t, folder: folder}
	h.Manager = mcphybrid.NewManager(&mcphybrid.Options{
		Servers: servers, TokenStore: store.FileTokens(folder), Limits: config.Limits{Reconnect: time.Hour},
		Logger: slog.New(slog.NewTextHandler(&h.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OpenURL: func(ctx context.Context, page mcphybrid.LoginPage) (string, error) {
			h.pages.Add(1)
			return "", browse(ctx, page.URL)
		},
	})
	return h
}

func (h *loginHost) call(server string, seconds float64) error {
	return h.callTool("mcp_"+server+"__slow", map[string]any{"seconds": seconds})
}

// callTool calls a tool and looks at all that a person or a model sees then.
func (h *loginHost) callTool(name string, args map[string]any) error {
	result, err := h.Call(h.t.Context(), name, args)
	snapshot, snapErr := h.Snapshot(0)
	fmt.Fprintln(&h.said, err, mcp.GetTextFromContent(result.Content[0]), h.Servers(), h.Problems(), string(h.Default().Save()), snapErr)
	fmt.Fprintf(&h.said, "%+v", snapshot)
	return err
}

// tokens returns all secrets in the store.
func (h *loginHost) tokens() (secrets []string) {
	files, err := filepath.Glob(filepath.Join(h.folder, "*.json"))
	require.NoError(h.t, err)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(h.t, err)
		var record map[string]any
		require.NoError(h.t, json.Unmarshal(data, &record))
		for _, name := range []string{"access_token", "refresh_token", "client_secret"} {
			if s, ok := record[name].(string); ok && s != "" {
				secrets = append(secrets, s)
			}
		}
	}
	return secrets
}

func (h *loginHost) state() mcphybrid.State { return h.Servers()[0].State }

// secondHost calls a server from another process that shares the store, in a test
// binary that runs again: see secondHostVariable.
func TestSecondHost(t *testing.T) {
	folder, address, ok := strings.Cut(os.Getenv(secondHostVariable), "|")
	if !ok {
		t.Skip("it is run by TestLoginAtAPublishedAuthority, as another process")
	}
	h := newLoginHost(t, folder, mcphybrid.ServerConfig{Name: "one", URL: address})
	defer h.Close()
	require.NoError(t, h.Start(t.Context()), "no login is needed")
	for range 20 {
		require.NoError(t, h.call("one", 0.2))
	}
	for _, secret := range h.tokens() {
		assert.NotContains(t, h.said.String(), secret)
	}
}

const secondHostVariable = "MCPHYBRID_INTEGRATION_SECOND_HOST"

// The whole life of logins at a published authorization server, which revokes a login
// if a refresh token is used twice.
func TestLoginAtAPublishedAuthority(t *testing.T) {
	const ttl = 3
	issuer := startAuthority(t, ttl)
	one := mcphybrid.ServerConfig{Name: "one", URL: protect(t, issuer, "one").address}
	two := mcphybrid.ServerConfig{Name: "two", URL: protect(t, issuer, "two").address}
	h := newLoginHost(t, t.TempDir(), one, two)
	defer h.Close()
	assert.ErrorIs(t, h.Start(t.Context()), mcphybrid.ErrAuthorizationRequired)
	assert.Equal(t, mcphybrid.StateUnauthorized, h.state())
	seen := make(map[string]bool)
	note := func() {
		for _, secret := range h.tokens() {
			seen[secret] = true
		}
	}

	// The first login registers a client; two servers have one issuer.
	require.NoError(t, h.Login(t.Context(), "one"))
	require.NoError(t, h.Login(t.Context(), "two"))
	note()
	require.NoError(t, h.call("one", 0))
	require.NoError(t, h.call("two", 0))
	require.Len(t, seen, 4)

	// A token expires during a call, and before the next.
	require.NoError(t, h.call("one", ttl+1))
	require.NoError(t, h.call("one", 0))
	note()
	require.Greater(t, len(seen), 4, "it was refreshed")

	// Many calls at once, here and in another process, over several lifetimes of a
	// token.
	self, err := os.Executable()
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), self, "-test.run=^TestSecondHost$", "-test.v")
	other.Env = append(os.Environ(), secondHostVariable+"="+h.folder+"|"+one.URL)
	var out bytes.Buffer
	other.Stdout, other.Stderr = &out, &out
	require.NoError(t, other.Start())
	var wg sync.WaitGroup
	var noting sync.Mutex
	for _, server := range []string{"one", "two", "one", "two", "one"} {
		wg.Go(func() {
			for range 30 {
				assert.NoError(t, h.call(server, 0.2))
				noting.Lock()
				note()
				noting.Unlock()
			}
		})
	}
	wg.Wait()
	assert.NoError(t, other.Wait(), "%s", &out)
	assert.Contains(t, out.String(), "--- PASS: TestSecondHost")

	// The login is revoked: the tools stay, and the user is asked.
	tools := h.Default().Tools()
	for _, secret := range h.tokens() {
		for _, client := range h.clients() {
			_, _ = post(t, issuer+"/token/revocation", url.Values{"token": {secret}, "client_id": {client}})
		}
	}
	require.Eventually(t, func() bool { return h.call("one", 0) != nil }, 20*time.Second, 50*time.Millisecond)
	err = h.call("one", 0)
	assert.ErrorIs(t, err, mcphybrid.ErrAuthorizationRequired)
	assert.Equal(t, mcphybrid.StateUnauthorized, h.state())
	assert.Equal(t, tools, h.Default().Tools())
	require.NoError(t, h.Login(t.Context(), "one"))
	note()
	require.NoError(t, h.call("one", 0))

	// No token was ever told.
	require.Greater(t, len(seen), 10)
	for secret := range seen {
		assert.NotContains(t, h.said.String(), secret)
		assert.NotContains(t, out.String(), secret)
	}
}

// clients returns the clients in the store.
func (h *loginHost) clients() (ids []string) {
	files, _ := filepath.Glob(filepath.Join(h.folder, "*.json"))
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(h.t, err)
		var record struct {
			ID string `json:"client_id"`
		}
		require.NoError(h.t, json.Unmarshal(data, &record))
		ids = append(ids, record.ID)
	}
	return ids
}
