package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
)

// The resource of a token is what the host configures, else what the server's metadata
// name, else the server's address: the page gets it, and the request for the token too.
func TestResource(t *testing.T) {
	t.Parallel()
	const server = "https://h.example/a/mcp"
	endpoints := config.OAuth{AuthorizationURL: "https://h.example/authorize", TokenURL: "https://h.example/token"}
	for _, test := range []struct {
		name   string
		oauth  config.OAuth
		named  string // by the server's metadata; "" for none
		server string
		want   string
	}{
		{"the server's metadata", config.OAuth{}, "https://h.example/a", server, "https://h.example/a"},
		{"the host's choice", config.OAuth{Resource: "https://chosen.example/r"}, "https://h.example/a", server, "https://chosen.example/r"},
		{"the host's choice without metadata", config.OAuth{Resource: "https://chosen.example/r"}, "", server, "https://chosen.example/r"},
		{"nobody's", config.OAuth{}, "", server, server},
		{"nobody's, and a query", config.OAuth{}, "", server + "?key=secret#top", server},
		{"nobody's at a configured address", config.OAuth{MetadataURL: "https://h.example/metadata"}, "", server, server},
		{"the host's choice at a configured address", config.OAuth{MetadataURL: "https://h.example/metadata", Resource: "https://chosen.example/r"}, "", server, "https://chosen.example/r"},
		{"nobody's with endpoints", endpoints, "https://h.example/a", server + "?key=secret", server},
		{"the host's choice with endpoints", config.OAuth{
			AuthorizationURL: endpoints.AuthorizationURL, TokenURL: endpoints.TokenURL, Resource: "https://chosen.example/r",
		}, "https://h.example/a", server, "https://chosen.example/r"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var tokens []url.Values
			test.oauth.ClientID = "c"
			a := New(Config{OAuth: test.oauth, URL: test.server, Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
				switch {
				case r.URL.Path == "/.well-known/oauth-protected-resource/a/mcp" && test.named != "":
					return answer(r, 200, []byte(`{"resource":"`+test.named+`","authorization_servers":["https://h.example"]}`)), nil
				case r.URL.Path == "/.well-known/oauth-authorization-server" || r.URL.Path == "/metadata":
					return answer(r, 200, []byte(`{"issuer":"https://h.example","authorization_endpoint":"https://h.example/authorize","token_endpoint":"https://h.example/token"}`)), nil
				case r.URL.Path == "/token":
					if err := r.ParseForm(); err != nil {
						return nil, err
					}
					tokens = append(tokens, r.Form)
					return nil, errors.New("seen enough")
				}
				return answer(r, 404, nil), nil
			})})
			defer a.Close()
			pages := 0
			err := a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
				pages++
				u, err := url.Parse(page.URL)
				if err != nil {
					return "", err
				}
				assert.Equal(t, []string{test.want}, u.Query()["resource"], "the page")
				return u.Query().Get("redirect_uri") + "?code=x&state=" + url.QueryEscape(u.Query().Get("state")), nil
			})
			assert.ErrorContains(t, err, "seen enough")
			assert.Equal(t, 1, pages)
			if assert.Len(t, tokens, 1) {
				assert.Equal(t, []string{test.want}, tokens[0]["resource"], "the token")
			}
		})
	}
}
