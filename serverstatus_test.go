package mcphybrid

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC B3: cached tools are served. Preload connects the servers of tools
// together, by name or pattern.
func TestSpecB3Preload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.json")
	options := func() *Options {
		return &Options{Cache: store.File(path), Servers: []ServerConfig{child(t, "one", "plain"), child(t, "two", "plain"), child(t, "three", "plain")}}
	}
	first, _ := newTestManager(t, options())
	require.NoError(t, first.Close())

	m, _ := newTestManager(t, options())
	states := func() (list []State) {
		for _, st := range m.Servers() {
			list = append(list, st.State)
		}
		return list
	}
	require.NoError(t, m.Preload(t.Context(), "mcp_nobody__*"))
	require.NoError(t, m.Preload(t.Context()))
	assert.Equal(t, []State{StateCached, StateCached, StateCached}, states())
	require.NoError(t, m.Preload(t.Context(), "mcp_one__big", "mcp_t?o__*"))
	assert.Equal(t, []State{StateReady, StateReady, StateCached}, states())
	require.NoError(t, m.Preload(t.Context(), "mcp_one__big"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := m.Preload(ctx, "mcp_three__*")
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, `mcphybrid: server "three": `)
	soon(t, func() bool { return states()[2] == StateReady }) // the attempt continues
}

// A host may leave a pointer to its server nil.
func TestNilInProcessServer(t *testing.T) {
	t.Parallel()
	var none *mcpserver.MCPServer
	m := NewManager(&Options{Servers: []ServerConfig{{Name: "none", InProcess: none}, inProcess("some", 1)}})
	t.Cleanup(func() { m.Close() })
	err := m.Start(t.Context())
	assert.ErrorContains(t, err, `"none"`)
	assert.Len(t, m.InlineTools(), 1)
}

// A server that asked to wait is not called before, even if it answers a call that
// was sent earlier.
func TestPauseIsKeptWhileAnotherCallEnds(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("a", "1")
	s.AddTools(echoTool("run", ""), echoTool("slow", ""))
	inner := mcpserver.NewStreamableHTTPServer(s)
	var refused, after atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		switch {
		case !strings.Contains(string(body), `"tools/call"`):
		case strings.Contains(string(body), `"slow"`):
			close(entered)
			<-release
		case refused.Add(1) > 1:
			after.Add(1)
		default:
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close) // after the Manager
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "a", URL: web.URL}}})
	done := make(chan error)
	go func() { _, err := m.Call(t.Context(), "mcp_a__slow", nil); done <- err }()
	<-entered
	_, err := m.Call(t.Context(), "mcp_a__run", nil)
	require.Error(t, err)
	close(release)
	require.NoError(t, <-done)
	_, err = m.Call(t.Context(), "mcp_a__run", nil)
	assert.ErrorIs(t, err, ErrServerDown)
	assert.Zero(t, after.Load(), "calls before the server wants them")
}

// A state would have another name.
func TestNameThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	assert.EqualError(t, m.AddTools("caf\xe9", echoTool("brew", "Brews coffee")), `mcphybrid: tools of "caf\xe9": the name is not valid UTF-8`)
	cfg := serving("caf\xe9", echoTool("brew", "Brews coffee"))
	assert.ErrorContains(t, m.AddServer(t.Context(), cfg), "the name is not valid UTF-8")
	assert.Empty(t, m.Servers())
	assert.NoError(t, m.AddTools("café", echoTool("brew", "Brews coffee")))
}
