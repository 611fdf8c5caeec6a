package mcphybrid

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Replicas share a TrustStore. That another one has accepted a definition takes
// away nothing but that definition.
func TestAcceptElsewhereKeepsToolsOfTheHost(t *testing.T) {
	t.Parallel()
	store := FileStore(filepath.Join(t.TempDir(), "trust.json"))
	old, next := echoTool("log", "good"), echoTool("log", "better")
	here := changing(old)
	a, _ := newTestManager(t, &Options{TrustStore: store, Servers: []ServerConfig{{Name: "git", InProcess: here}}})
	require.NoError(t, a.AddTools("mine", echoTool("clock", "Tells the time")))

	b, _ := newTestManager(t, &Options{TrustStore: store, Servers: []ServerConfig{{Name: "git", InProcess: changing(next)}}})
	require.Len(t, changedTools(b), 1)
	require.NoError(t, b.Accept("git", "log", changedTools(b)[0].Is))

	require.Contains(t, toolNames(a.InlineTools()), "mcp_mine__clock")
	require.NoError(t, a.AddServer(t.Context(), serving("other", echoTool("x", "saves")))) // what is new is saved, and the store read
	require.Len(t, changedTools(a), 1, "it has learnt of it")
	assert.Contains(t, toolNames(a.InlineTools()), "mcp_mine__clock")
}

// With TrustApprove, the first list of a server is trusted, whatever other replicas
// accept before.
func TestAcceptElsewhereBeforeTheFirstList(t *testing.T) {
	t.Parallel()
	store := FileStore(filepath.Join(t.TempDir(), "trust.json"))
	a, _ := newTestManager(t, &Options{Trust: TrustApprove, TrustStore: store, Servers: []ServerConfig{serving("git", echoTool("log", "good"))}})
	b, _ := newTestManager(t, &Options{Trust: TrustApprove, TrustStore: store, Servers: []ServerConfig{serving("git", echoTool("log", "better"))}})
	require.NoError(t, b.Accept("git", "log", changedTools(b)[0].Is))

	late := serving("late", echoTool("x", "fine"))
	a.mu.Lock()
	a.sources = append(a.sources, a.newSource(late)) // a server that is still connecting
	a.sources[len(a.sources)-1].begun = true
	require.NoError(t, a.sources[len(a.sources)-1].claimNames(a.names))
	src := a.sources[len(a.sources)-1]
	a.mu.Unlock()
	require.NoError(t, a.AddServer(t.Context(), serving("other", echoTool("y", "saves"))))
	require.NotEmpty(t, changedTools(a))
	require.NoError(t, src.server.Start(t.Context()))
	assert.Contains(t, toolNames(a.InlineTools()), "mcp_late__x")
}

// What one replica knows of a change is not lost since another one saves.
func TestQuarantineSurvivesTheOtherReplica(t *testing.T) {
	t.Parallel()
	store := FileStore(filepath.Join(t.TempDir(), "trust.json"))
	start := func(description, name string) *Manager {
		m, _ := newTestManager(t, &Options{Trust: TrustQuarantine, TrustStore: store, Servers: []ServerConfig{{Name: "git", InProcess: changing(echoTool(name, description))}}})
		return m
	}
	a, b := start("good", "log"), start("good", "log")
	a.Close()
	a = start("evil", "log") // the change is seen here only
	require.Len(t, changedTools(a), 1)
	require.NoError(t, b.AddServer(t.Context(), serving("other", echoTool("x", "saves"))))
	a.Close()
	a = start("evil", "log2") // the changed tool under another name
	assert.Empty(t, a.InlineTools(), "the server's new tools wait, too")
}

// Accept either accepts or says why not.
func TestAcceptBeyondTheLimit(t *testing.T) {
	t.Parallel()
	s := changing(echoTool("log", "good"))
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine, Limits: ServerLimits{MaxTools: 1}, Servers: []ServerConfig{{Name: "git", InProcess: s}}})
	for i := range maxKnown {
		name := string(rune('a' + i))
		s.SetTools(echoTool(name, ""))
		soon(t, func() bool { l := m.sourceNamed("git").listed; return len(l) == 1 && l[0].name == name })
	}
	require.Len(t, changedTools(m), 1)
	e := changedTools(m)[0]
	err := m.Accept("git", e.Tool, e.Is)
	assert.True(t, err != nil || len(changedTools(m)) == 0, "it says that it is accepted, and it is not: %v", changedTools(m))
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
	defer web.Close()
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

// A key that is there twice is an error, wherever it is: the second "deny" would
// switch on what the first one switches off.
func TestKeysTwiceWithinAServer(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		`{"command": "x", "tools": {"deny": ["rm"], "deny": []}}`,
		`{"command": "x", "tools": {"allow": ["a"], "allow": ["a", "rm"]}}`,
		`{"command": "x", "env": {"A": "1", "A": "2"}}`,
		`{"url": "http://x", "headers": {"A": "1", "A": "2"}}`,
		`{"command": "x", "needs": {"A": ["b"], "A": []}}`,
	} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {"s": `+server+`}}`), 0o600))
		cfg, err := LoadConfig(path)
		assert.ErrorContains(t, err, "is there twice", server)
		assert.Empty(t, cfg.Servers)
	}
}
