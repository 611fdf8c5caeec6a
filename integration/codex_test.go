package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowOffice is the office behind a server that passes requests on after a time has
// passed since the first.
func slowOffice(t *testing.T, start time.Duration) (at string) {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(startOffice(t).url, "/mcp"))
	require.NoError(t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	ready, cancel := context.WithCancel(context.Background())
	first := make(chan struct{}, 1)
	first <- struct{}{}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			time.AfterFunc(start, cancel)
		default:
		}
		select {
		case <-ready.Done():
			pass.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { cancel(); slow.CloseClientConnections(); slow.Close() })
	return slow.URL + "/mcp"
}

// Codex begins its first turn a second after its start, without the tools of a server that
// has not listed them by then. It has the gateway's tools, whatever is slow behind that, and
// nothing is cached. Where that is required, it waits as long as the user wants.
func TestCodexHasToolsAtFirst(t *testing.T) {
	folder := codex.install(t)
	for _, test := range []struct {
		name   string
		starts int
		start  time.Duration // of one server; another is quick
		flags  []string
		entry  map[string]any
	}{
		{name: "slow", starts: 10, start: 3 * time.Second},
		{name: "never", starts: 10, start: time.Hour},
		{name: "required", starts: 2, start: time.Hour, flags: []string{"-wait", "3s"}, entry: map[string]any{"required": true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.starts {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					m := startModel(t, func(turn) deed { return deed{say: "done"} })
					config := writeConfig(t, server{name: "quick", URL: startOffice(t).url}, server{name: "late", URL: slowOffice(t, test.start)})
					_, err := codex.run(t, agentRun{folder: folder, model: m.URL, stdio: gatewayCommand(t, config, test.flags...), entry: test.entry})
					require.NoError(t, err)
					require.NotEmpty(t, m.asked())
					_, search := m.asked()[0].call("mcp_tool_search", nil)
					_, inline := m.asked()[0].call("mcp_quick__drawer_00", nil)
					assert.True(t, search)
					assert.True(t, inline)
				})
			}
		})
	}
}

// What users can set so that an agent does more with the gateway's tools.
func TestClientSettings(t *testing.T) {
	t.Run("qwen", func(t *testing.T) {
		r := agentRun{folder: qwen.install(t), permitted: true, entry: map[string]any{"alwaysLoadTools": true}}
		o, m, err := qwen.visit(t, r, clerk)
		require.NoError(t, err)
		assert.Len(t, o.called(), 2)
		var h habits
		require.NotEmpty(t, m.asked())
		h.see(t, m.asked()[0])
		assert.Equal(t, 45, h.tools)
	})
	t.Run("gemini", func(t *testing.T) {
		r := agentRun{folder: gemini.install(t), files: map[string]string{".gemini/policies/reads.toml": `[[rule]]
mcpName = "gateway"
toolName = "*"
toolAnnotations = { readOnlyHint = true }
decision = "allow"
priority = 200
`}}
		o, _, err := gemini.visit(t, r, clerk)
		require.NoError(t, err)
		assert.Equal(t, []string{weighTool + ` {"parcel":"p1"}`}, o.called())
	})
}
