package mcphybrid

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// knowsSecret has an authority know a client that signs in as itself, by its secret.
func knowsSecret(a *mcptest.Authority, secret string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Knows = func(r *http.Request) bool {
		return r.Form.Get("client_id") == "mine" && r.Form.Get("client_secret") == secret
	}
}

// A server whose client signs in as itself connects when the Manager starts, without a
// person, and stays connected when its token ends, whoever calls.
func TestSpecH7ClientCredentials(t *testing.T) {
	t.Parallel()
	var told atomic.Bool // of the extension
	hooks := new(mcpserver.Hooks)
	hooks.AddBeforeAny(func(ctx context.Context, _ any, _ mcp.MCPMethod, _ any) {
		if session, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithClientInfo); ok {
			if _, says := session.GetClientCapabilities().Extensions["io.modelcontextprotocol/oauth-client-credentials"]; says {
				told.Store(true)
			}
		}
	})
	server := mcptest.Server("web", mcptest.Echo("echo", "Echoes"))
	mcpserver.WithHooks(hooks)(server)
	a := mcptest.NewAuthority(t, mcpserver.NewStreamableHTTPServer(server))
	knowsSecret(a, clientSecret)
	settings := ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{GrantType: config.ClientCredentials, ClientID: "mine", ClientSecret: clientSecret}}
	d := newLoginDesk(t, t.TempDir(), settings)
	d.Manager.opts.OpenURL = nil
	require.NoError(t, d.clean(d.Start(t.Context())))
	assert.Equal(t, StateReady, d.state())
	require.NoError(t, d.call())
	assert.Equal(t, 1, a.Count().Itself)
	assert.True(t, told.Load(), "the server is told of the extension")

	// The token is refused: one of all calls asks for another, and each succeeds.
	a.Expire()
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			_, err := d.Manager.Call(t.Context(), "mcp_web__echo", nil)
			assert.NoError(t, err)
		})
	}
	wait.Wait()
	assert.Equal(t, 2, a.Count().Itself)

	// It expires: calls go on.
	a.Mu.Lock()
	a.ExpiresIn = 1
	a.Mu.Unlock()
	a.Expire()
	require.NoError(t, d.call())
	soon(t, func() bool { return d.call() == nil && a.Count().Itself > 4 })

	// A second host with the same store has the token of the first.
	a.Mu.Lock()
	a.ExpiresIn = 0
	a.Mu.Unlock()
	a.Expire()
	require.NoError(t, d.call())
	before := a.Count().Itself
	second := newLoginDesk(t, d.folder, settings)
	require.NoError(t, second.clean(second.Start(t.Context())))
	require.NoError(t, second.call())
	assert.Equal(t, before, a.Count().Itself)

	// Login asks for another token, without a page; after Logout, a call gets one by itself.
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	assert.Equal(t, before+1, a.Count().Itself)
	_ = d.clean(d.Logout(t.Context(), "web")) // the authority does not revoke such tokens
	require.NoError(t, d.call())
	assert.Empty(t, d.returns)
	assert.NotContains(t, d.log.String(), clientSecret)
}

// A client that the authorization server does not know gets no further, and everybody
// reads where and why.
func TestUnknownClient(t *testing.T) {
	t.Parallel()
	a := mcptest.NewAuthority(t, echoHandler())
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{GrantType: config.ClientCredentials, ClientID: "mine", ClientSecret: clientSecret}})
	d.Manager.opts.OpenURL = nil
	want := fmt.Sprintf(`asking %q for a token of the client "mine": OAuth error: invalid_client - not with [hidden]`, strings.TrimPrefix(a.URL, "http://"))
	err := d.clean(d.Start(t.Context()))
	assert.ErrorContains(t, err, `server "web": `)
	assert.ErrorContains(t, err, want)
	assert.NotErrorIs(t, err, ErrAuthorizationRequired, "nobody can log in")
	assert.Equal(t, StateDown, d.state())
	assert.ErrorContains(t, d.Servers()[0].Err, want)
	err = d.clean(d.Login(t.Context(), "web"))
	assert.ErrorContains(t, err, `mcphybrid: login to server "web": `+want)
	assert.NotContains(t, fmt.Sprint(err, d.log, d.Problems()), clientSecret)

	knowsSecret(a, clientSecret) // now it is registered
	require.NoError(t, d.clean(d.Login(t.Context(), "web")))
	require.NoError(t, d.call())
	assert.Equal(t, StateReady, d.state())
}

// A server that refuses even new tokens is asked for few, and says so.
func TestTokensThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	a, other := mcptest.NewAuthority(t, echoHandler()), mcptest.NewAuthority(t, echoHandler())
	knowsSecret(a, clientSecret)
	knowsSecret(other, clientSecret)
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, OAuth: &config.OAuth{
		GrantType: config.ClientCredentials, ClientID: "mine", ClientSecret: clientSecret, TokenURL: other.URL + "/token",
	}})
	err := d.clean(d.Start(t.Context()))
	assert.ErrorIs(t, err, ErrAuthorizationRequired)
	assert.Equal(t, StateUnauthorized, d.state())
	for range 100 {
		assert.Error(t, d.call())
	}
	assert.LessOrEqual(t, other.Count().Itself, 6)
	assert.Zero(t, a.Count().Itself)
}

// The file in the documentation is one.
func TestDocumentedClientCredentials(t *testing.T) {
	t.Setenv("ORDERS_SECRET", clientSecret)
	page, err := os.ReadFile("docs/servers.md")
	require.NoError(t, err)
	text := regexp.MustCompile("(?s)```text\n(\\{.*?\"client_credentials\".*?)```").FindSubmatch(page)
	require.NotNil(t, text)
	file, err := config.Parse(text[1], "mcp.json", nil)
	require.NoError(t, err)
	assert.Empty(t, file.Notes)
	require.Len(t, file.Servers, 1)
	assert.Equal(t, &config.OAuth{
		GrantType: config.ClientCredentials, ClientID: "nightly-job", ClientSecret: clientSecret, TokenURL: "https://login.example.com/token",
	}, file.Servers[0].OAuth)
}
