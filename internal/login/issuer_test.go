package login

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Metadata count where their issuer publishes them, and nowhere else.
func TestIssuerOfMetadata(t *testing.T) {
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for _, test := range []struct {
		server, path, issuer string
		want                 bool
	}{
		{"https://h.example/mcp", oauth, "https://h.example", true},
		{"https://h.example/mcp", oauth, "https://h.example/", true}, // as the SDKs write it
		{"https://h.example/mcp", openID, "https://h.example", true},
		{"https://H.example/mcp", oauth, "https://h.example", true},
		{"https://h.example", oauth, "https://h.example", true},
		{"https://h.example/", oauth, "https://h.example", true},
		{"https://h.example/a/mcp", oauth + "/a/mcp", "https://h.example/a/mcp", true},
		{"https://h.example/a/mcp", openID + "/a/mcp", "https://h.example/a/mcp", true},
		{"https://h.example/a/mcp", "/a/mcp" + openID, "https://h.example/a/mcp", true},
		{"https://h.example/a/mcp/", oauth + "/a/mcp", "https://h.example/a/mcp/", true},
		{"https://h.example:8443/mcp", oauth, "https://h.example:8443", true},

		{"https://h.example/mcp", oauth, "", false},
		{"https://h.example/mcp", oauth, "https://other.example", false},
		{"https://h.example/mcp", oauth, "https://h.example.other.example", false},
		{"https://h.example/mcp", oauth, "https://h.example@other.example", false},
		{"https://h.example/mcp", oauth, "https://other.example@h.example", false},
		{"https://h.example/mcp", oauth, "https://h.example//", false},
		{"https://h.example/mcp", oauth, "https://h.example?", false},
		{"https://h.example/mcp", oauth, "https://h.example?a=b", false},
		{"https://h.example/mcp", oauth, "https://h.example#a", false},
		{"https://h.example/mcp", oauth, "http://h.example", false},
		{"https://h.example/mcp", oauth, "https://h.example:8443", false},
		{"https://h.example/mcp", oauth, "https://h.example/mcp", false},
		{"https://h.example/mcp", oauth, "h.example", false},
		// One of many on a host does not speak for the host, nor for another.
		{"https://h.example/a/mcp", oauth + "/a/mcp", "https://h.example", false},
		{"https://h.example/a/mcp", "/a/mcp" + openID, "https://h.example", false},
		{"https://h.example/a/mcp", oauth + "/a/mcp", "https://h.example/a", false},
		{"https://h.example/a/mcp", oauth + "/a/mcp", "https://h.example/b/mcp", false},
	} {
		a := New(Config{URL: test.server, Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == test.path {
				return answer(r, 200, fmt.Appendf(nil, `{"issuer":%q,"authorization_endpoint":"https://x.example/a","token_endpoint":"https://x.example/token"}`, test.issuer)), nil
			}
			return answer(r, 404, nil), nil
		})})
		d, err := a.discover(t.Context())
		a.Close()
		if !test.want {
			assert.ErrorContains(t, err, test.path+`" name`, test)
			continue
		}
		require.NoError(t, err, test)
		assert.Equal(t, test.issuer, d.metadata.Issuer)
		assert.Equal(t, "https://x.example/token", d.metadata.TokenEndpoint)
		assert.Equal(t, test.server, d.resource)
	}
}

// Metadata that don't count are as good as none: those at the next address do.
func TestMetadataAtEveryPath(t *testing.T) {
	asked := make(map[string]int)
	a := New(Config{URL: "https://h.example/mcp", Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
		asked[r.URL.Path]++
		switch r.URL.Path {
		case "/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp":
			return answer(r, 404, nil), nil
		}
		return answer(r, 200, []byte(`{"issuer":"https://h.example","authorization_endpoint":"https://h.example/a","token_endpoint":"https://h.example/t"}`)), nil
	})})
	defer a.Close()
	d, err := a.discover(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "https://h.example/t", d.metadata.TokenEndpoint)
	for path, n := range asked {
		assert.Equal(t, 1, n, path)
	}

	// Who configures an address decides what is right there.
	a.cfg.MetadataURL = "https://other.example/.well-known/oauth-authorization-server"
	d, err = a.discover(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "https://h.example", d.metadata.Issuer)
	assert.Equal(t, "https://h.example/mcp", d.resource)
}

// A server without any metadata has the endpoints of the first MCP authorization
// specification, at its own address.
func TestNoMetadata(t *testing.T) {
	a := New(Config{URL: "https://h.example/mcp", Store: new(Memory), HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
		return answer(r, 404, nil), nil
	})})
	defer a.Close()
	d, err := a.discover(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "https://h.example", d.metadata.Issuer)
	assert.Equal(t, "https://h.example/token", d.metadata.TokenEndpoint)
	assert.Equal(t, "https://h.example/mcp", d.resource)
}
