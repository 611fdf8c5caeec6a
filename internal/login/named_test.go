package login

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server names a place to log in by its refusal or by metadata on its own host. Only there is it
// asked, once, as long as nobody logs in: nothing that it names is. Without an answer, or with
// settings, nobody knows.
func TestNamesNone(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.Fail(t, "a request to another host", r.URL)
	}))
	t.Cleanup(elsewhere.Close)
	for name, test := range map[string]struct {
		metadata   string // by path
		challenges []string
		settings   config.OAuth
		breaks     bool
		want       bool
	}{
		"nothing":                 {want: true},
		"a challenge alone":       {challenges: []string{`Bearer realm="x", error="invalid_token"`}, want: true},
		"a challenge leads":       {challenges: []string{`Bearer resource_metadata="https://x.example/m"`}},
		"metadata of the server":  {metadata: "/.well-known/oauth-protected-resource/mcp"},
		"metadata of the host":    {metadata: "/.well-known/oauth-protected-resource"},
		"metadata of a login":     {metadata: "/.well-known/oauth-authorization-server"},
		"a client that was named": {settings: config.OAuth{ClientID: "mine"}},
		"it hangs up":             {breaks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			counts := make(map[string]int)
			asked := func() map[string]int {
				mu.Lock()
				defer mu.Unlock()
				return maps.Clone(counts)
			}
			var own *httptest.Server
			own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				counts[r.URL.Path]++
				mu.Unlock()
				switch {
				case test.breaks:
					panic(http.ErrAbortHandler)
				case r.URL.Path == test.metadata:
					fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q],"issuer":%q,"token_endpoint":%q}`, own.URL+"/mcp", elsewhere.URL, own.URL, own.URL)
				default:
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			defer own.Close()
			a := New(Config{OAuth: test.settings, URL: own.URL + "/mcp", Store: new(Memory), HTTP: own.Client().Transport})
			defer a.Close()
			_, err := a.Header(t.Context(), &Refusal{Challenges: test.challenges})
			require.NoError(t, err)
			assert.Equal(t, test.want, a.NamesNone(t.Context()))
			assert.Equal(t, test.want, a.NamesNone(t.Context()))
			if test.want {
				assert.NotEmpty(t, asked())
				for path, n := range asked() {
					assert.Equal(t, 1, n, path)
				}
				require.Error(t, a.Login(t.Context(), func(context.Context, Page) (string, error) { return "", nil }))
				assert.Equal(t, test.want, a.NamesNone(t.Context()))
				assert.Less(t, 1, asked()["/.well-known/oauth-protected-resource"], "it may offer a login since")
			}
		})
	}
	a := New(Config{URL: elsewhere.URL, Store: new(Memory), HTTP: http.DefaultTransport})
	defer a.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	assert.False(t, a.NamesNone(ended))
}
