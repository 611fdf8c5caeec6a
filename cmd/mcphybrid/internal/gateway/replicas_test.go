package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A gate is a web server that can be closed for a while.
type gate struct {
	http.Handler
	mu     sync.Mutex
	closed bool
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	g.Handler.ServeHTTP(w, r)
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}

// listing is what a client of a gateway can read, get and complete.
func listing(t *testing.T, url string) (names []string, read func(uri string) (string, error)) {
	t.Helper()
	c, _ := connect(t, overHTTP(url), "a client")
	resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	require.NoError(t, err)
	for _, r := range resources.Resources {
		names = append(names, r.URI)
	}
	templates, err := c.ListResourceTemplates(t.Context(), mcp.ListResourceTemplatesRequest{})
	require.NoError(t, err)
	for _, r := range templates.ResourceTemplates {
		names = append(names, r.URITemplate.Raw())
	}
	prompts, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
	require.NoError(t, err)
	for _, p := range prompts.Prompts {
		names = append(names, p.Name)
	}
	return names, func(uri string) (string, error) {
		var r mcp.ReadResourceRequest
		r.Params.URI = uri
		got, err := c.ReadResource(context.Background(), r)
		if err != nil {
			return "", err
		}
		return got.Contents[0].(mcp.TextResourceContents).Text, nil
	}
}

// Replicas beside one cache give everything the same names, and a client that goes from
// one to another reads the same: also if a replica was started while a server was away,
// and without a cache.
func TestReplicasReadTheSame(t *testing.T) {
	t.Parallel()
	way := &gate{Handler: server.NewStreamableHTTPServer(shelf("first"), server.WithStateful(true))}
	first := httptest.NewServer(way)
	t.Cleanup(func() {
		first.CloseClientConnections()
		first.Close()
	})
	second := httptest.NewServer(server.NewStreamableHTTPServer(shelf("second"), server.WithStateful(true)))
	t.Cleanup(func() {
		second.CloseClientConnections()
		second.Close()
	})
	servers := func() []mcphybrid.ServerConfig {
		return []mcphybrid.ServerConfig{{Name: "first", URL: first.URL}, {Name: "second", URL: second.URL}}
	}
	doc := store.File(filepath.Join(t.TempDir(), "cache"))
	_, one, end := startHTTP(t, gatewayOptions{servers: servers(), cache: doc}, web.Options{})
	want, _ := listing(t, one)
	require.Len(t, want, 6)
	end() // the cache is saved

	way.set(true)
	_, cached, _ := startHTTP(t, gatewayOptions{servers: servers(), cache: doc}, web.Options{})
	_, bare, _ := startHTTP(t, gatewayOptions{servers: servers()}, web.Options{})
	got, readCached := listing(t, cached)
	assert.Equal(t, want, got)
	got, readBare := listing(t, bare)
	assert.Equal(t, []string{want[1], want[3], want[5]}, got, "what it knows has the same names")
	for _, read := range []func(string) (string, error){readCached, readBare} {
		for _, uri := range []string{"mcphybrid://first/mem://a", "mcphybrid://first/mem://pages/1"} {
			_, err := read(uri)
			assert.ErrorContains(t, err, `of server "first"`)
			text, err := read(strings.Replace(uri, "first", "second", 1))
			require.NoError(t, err)
			assert.True(t, strings.HasPrefix(text, "second "))
		}
	}
	way.set(false)
	_, two, _ := startHTTP(t, gatewayOptions{servers: servers(), cache: doc}, web.Options{})
	_, three, _ := startHTTP(t, gatewayOptions{servers: servers(), cache: doc}, web.Options{})
	for _, url := range []string{two, three} {
		got, read := listing(t, url)
		assert.Equal(t, want, got)
		for _, uri := range []string{"mcphybrid://first/mem://a", "mcphybrid://second/mem://pages/1"} {
			text, err := read(uri)
			require.NoError(t, err)
			assert.True(t, strings.HasPrefix(uri, "mcphybrid://"+strings.Fields(text)[0]+"/"))
		}
	}
}
