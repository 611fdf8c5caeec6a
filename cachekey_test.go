package mcphybrid

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/store"
)

// Whom a cache gives the lists of a server.
func TestCacheKeyTable(t *testing.T) {
	compareTable(t, "cachekeys", "Configurations that differ in one thing, and for whom their lists are those of the first, others, or not kept: for all with that configuration, for those with the same credentials, and for nobody.", func(table *factTable) {
		headers := func(context.Context) (http.Header, error) { return nil, nil }
		type configured struct {
			name       string
			change     func(*ServerConfig)
			extensions map[string]any
		}
		first := ServerConfig{Name: "a", Command: "run", Args: []string{"-x"}, Env: map[string]string{"E": "1"}}
		web := ServerConfig{Name: "a", URL: "https://h/x", Headers: map[string]string{"H": "1"}}
		gateway := map[string]any{upstream.GatewayExtension: "first run"}
		for _, of := range []struct {
			about string
			base  ServerConfig
			cases []configured
		}{
			{"a program", first, []configured{
				{"the same", func(*ServerConfig) {}, nil},
				{"of another name", func(c *ServerConfig) { c.Name = "b" }, nil},
				{"another command", func(c *ServerConfig) { c.Command = "walk" }, nil},
				{"other arguments", func(c *ServerConfig) { c.Args = []string{"-y"} }, nil},
				{"no arguments", func(c *ServerConfig) { c.Args = nil }, nil},
				{"another folder", func(c *ServerConfig) { c.Dir = "/tmp" }, nil},
				{"another prefix", func(c *ServerConfig) { c.Prefix = "p" }, nil},
				{"other tools", func(c *ServerConfig) { c.Tools.Deny = []string{"x"} }, nil},
				{"another environment", func(c *ServerConfig) { c.Env = map[string]string{"E": "2"} }, nil},
				{"no environment", func(c *ServerConfig) { c.Env = nil }, nil},
				{"needs and a part of results", func(c *ServerConfig) {
					c.Needs, c.ResultSelect, c.Eager = map[string][]string{"a": {"b"}}, map[string]string{"a": ".b"}, true
				}, nil},
				{"behind a gateway", func(*ServerConfig) {}, gateway},
				{"behind a gateway of another run", func(*ServerConfig) {}, map[string]any{upstream.GatewayExtension: "another run"}},
				{"with an extension", func(*ServerConfig) {}, map[string]any{"x": 1}},
				{"with another", func(*ServerConfig) {}, map[string]any{"x": 2}},
				{"with none", func(*ServerConfig) {}, map[string]any{}},
				{"behind a gateway, with an extension", func(*ServerConfig) {}, map[string]any{"x": 1, upstream.GatewayExtension: "first run"}},
			}},
			{"a URL", web, []configured{
				{"the same", func(*ServerConfig) {}, nil},
				{"another URL", func(c *ServerConfig) { c.URL = "https://h/y" }, nil},
				{"other headers", func(c *ServerConfig) { c.Headers = map[string]string{"H": "2"} }, nil},
				{"the headers as an environment", func(c *ServerConfig) { c.Env, c.Headers = c.Headers, nil }, nil},
				{"headers of a function", func(c *ServerConfig) { c.HeaderFunc = headers }, nil},
				{"headers of a program", func(c *ServerConfig) { c.HeadersHelper = "helper" }, nil},
				{"the host's client", func(c *ServerConfig) { c.HTTPClient = new(http.Client) }, nil},
			}},
		} {
			keys := make(map[string]string) // what has the key first, by the key
			for _, c := range of.cases {
				cfg := of.base
				c.change(&cfg)
				var outputs []any
				for _, whose := range []struct {
					audience audience
					name     string
				}{{public, "all"}, {credentials, "the same credentials"}, {nobody, "nobody"}} {
					key := cacheKey(&cfg, c.extensions, whose.audience)
					as := "not kept"
					if key != "" {
						if keys[key] == "" {
							keys[key] = fmt.Sprintf("%s, for %s", c.name, whose.name)
						}
						as = keys[key]
					}
					outputs = append(outputs, fmt.Sprintf("for %s: %s", whose.name, as))
				}
				table.row(of.about+", "+c.name, outputs...)
			}
		}
		table.row("the host's extensions of a gateway", gateway)
		for _, private := range []bool{false, true} {
			for _, changing := range []bool{false, true} {
				whose := audienceOf(upstream.List{Private: private, Changing: changing})
				table.row(fmt.Sprintf("a list that is private %t, by credentials that change %t", private, changing), []string{"for all", "for the same credentials", "for nobody"}[whose])
			}
		}
	})
}

// A Manager that reads a shared cache again knows at once the names that others gave.
func TestRefreshTakesNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		doc := store.File(filepath.Join(t.TempDir(), "cache"))
		begin := func() *Manager {
			m := NewManager(&Options{Cache: doc})
			t.Cleanup(func() { _ = m.Close() })
			require.NoError(t, m.Start(t.Context()))
			return m
		}
		one, other := begin(), begin()
		require.NoError(t, one.AddServer(t.Context(), serving("a-b", echoTool("run", ""))))
		require.NoError(t, one.Close())
		require.NoError(t, other.Refresh())
		require.NoError(t, other.AddTools("a_b", echoTool("run", "")))
		assert.Equal(t, []string{"mcp_a_b_648fa9b3__run"}, toolNames(other.InlineTools()))
	})
}
