package login

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client is the one that the host publishes, where the authorization server reads that;
// otherwise it is registered, with its type.
func TestSpecH7Client(t *testing.T) {
	t.Parallel()
	const published = "https://app.example/client.json"
	for name, c := range map[string]struct {
		oauth  config.OAuth
		says   map[string]any
		client string
		kind   any // of the registered client
		scope  string
	}{
		"registered":    {config.OAuth{}, nil, "client-1", "native", "read write"},
		"public page":   {config.OAuth{RedirectURI: "https://app.example/callback"}, nil, "client-1", "web", "read write"},
		"own scheme":    {config.OAuth{RedirectURI: "com.example.app://callback"}, nil, "client-1", "native", "read write"},
		"localhost":     {config.OAuth{RedirectURI: "http://localhost:0/callback"}, nil, "client-1", "native", "read write"},
		"published":     {config.OAuth{ClientMetadataURL: published}, map[string]any{"client_id_metadata_document_supported": true}, published, nil, "read write"},
		"not read":      {config.OAuth{ClientMetadataURL: published}, nil, "client-1", "native", "read write"},
		"configured":    {config.OAuth{ClientMetadataURL: published, ClientID: "ours"}, map[string]any{"client_id_metadata_document_supported": true}, "ours", nil, "read write"},
		"refreshed":     {config.OAuth{}, map[string]any{"scopes_supported": []string{"read", "offline_access"}}, "client-1", "native", "read write offline_access"},
		"scopes chosen": {config.OAuth{Scopes: []string{"read"}}, map[string]any{"scopes_supported": []string{"read", "offline_access"}}, "client-1", "native", "read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authority := mcptest.NewAuthority(t, http.NotFoundHandler())
			authority.Mu.Lock()
			authority.Says = c.says
			authority.Mu.Unlock()
			a := New(Config{OAuth: c.oauth, URL: authority.Server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(a.Close)
			var page url.Values
			err := a.Login(t.Context(), func(_ context.Context, at Page) (string, error) {
				u, err := url.Parse(at.URL)
				require.NoError(t, err)
				page = u.Query()
				client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
				resp, err := client.Get(at.URL)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				return resp.Header.Get("Location"), nil
			})
			require.NoError(t, err)
			assert.Equal(t, c.client, page.Get("client_id"))
			assert.Equal(t, c.scope, page.Get("scope"))
			authority.Mu.Lock()
			defer authority.Mu.Unlock()
			assert.Equal(t, c.kind, authority.Client["application_type"])
		})
	}
}
