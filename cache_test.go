package mcphybrid

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC B2: a stored catalog is there before any server runs, and it is equal to
// the byte. The first call starts its server, once.
func TestSpecB2StartFromTheCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.json")
	options := func() *Options {
		return &Options{Inline: InlineOptions{Max: 3}, Cache: FileStore(path), Servers: []ServerConfig{child(t, "one", "plain"), child(t, "two", "plain")}}
	}
	first, _ := newTestManager(t, options())
	sections, tools := sentBytes(first.def)
	fingerprint := first.cur.Load().fingerprint()
	for _, st := range first.Servers() {
		assert.Equal(t, StateReady, st.State)
	}
	require.NoError(t, first.Close())

	m, _ := newTestManager(t, options())
	for _, st := range m.Servers() {
		assert.Equal(t, StateCached, st.State)
		assert.Equal(t, 6, st.Tools)
	}
	assert.Equal(t, fingerprint, m.cur.Load().fingerprint())
	nowSections, nowTools := sentBytes(m.def)
	assert.Equal(t, sections, nowSections)
	assert.Equal(t, tools, nowTools)
	assert.NotEmpty(t, m.Search("test tool big", 5))

	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r, err := m.Call(t.Context(), "mcp_two__env", nil)
			if assert.NoError(t, err) {
				assert.Contains(t, resultText(t, r), "TEST_SERVER=plain")
			}
		})
	}
	wg.Wait()
	assert.Equal(t, StateCached, m.Servers()[0].State, "nobody called it")
	assert.Equal(t, StateReady, m.Servers()[1].State)
	assert.Len(t, children(os.Getpid()), 1, "one start for all calls")
	assert.Equal(t, fingerprint, m.cur.Load().fingerprint())
	assert.NoError(t, check(m))
}

// A change since then is published like any change, and stored.
func TestCacheIsCheckedAgainstTheServer(t *testing.T) {
	t.Parallel()
	store := &mcptest.Store{}
	options := func(list string) *Options {
		cfg := child(t, "raw", "raw")
		cfg.Env["LIST"] = list // not part of the cache key
		return &Options{Cache: store, Servers: []ServerConfig{cfg}}
	}
	old := `{"tools":[{"name":"a", "description":"<&>", "inputSchema":{"type": "object"}},{"name":"b","inputSchema":{"type":"object"}}]}`
	m, _ := newTestManager(t, options(old))
	require.NoError(t, m.Close())

	m, _ = newTestManager(t, options(strings.Replace(old, `"b"`, `"c"`, 1)))
	s := m.NewSession(nil)
	assert.Equal(t, []string{"mcp_raw__a", "mcp_raw__b"}, namesOf(s.Tools()))
	before := m.InlineTools()[0]
	_, err := s.Call(t.Context(), "mcp_raw__a", nil)
	require.ErrorContains(t, err, "no such method", "it has run")
	assert.Equal(t, []string{"mcp_raw__a", "mcp_raw__c"}, namesOf(s.InlineTools()))
	assert.Same(t, before, m.InlineTools()[0])
	assert.Equal(t, []string{"mcp_raw__a", "mcp_raw__b", "mcp_raw__c"}, namesOf(s.Tools()))
	soon(t, func() bool { data, _ := store.Load(); return strings.Contains(string(data), `\"name\":\"c\"`) })
}

// An old list is read again in the background, an eager server is started, and
// a list that does not fit the configuration is not used.
func TestCacheLifetime(t *testing.T) {
	t.Parallel()
	store := &mcptest.Store{}
	first, _ := newTestManager(t, &Options{Cache: store, Servers: []ServerConfig{child(t, "one", "plain")}})
	require.NoError(t, first.Close())
	stored, _ := store.Load()
	states := func(opts Options, cfg ServerConfig) State {
		opts.Cache = store
		opts.Servers = []ServerConfig{cfg}
		m, _ := newTestManager(t, &opts)
		defer m.Close()
		assert.Len(t, m.InlineTools(), 6)
		soon(t, func() bool { return m.Servers()[0].State != StateConnecting })
		return m.Servers()[0].State
	}
	assert.Equal(t, StateCached, states(Options{}, child(t, "one", "plain")))
	assert.Equal(t, StateReady, states(Options{Limits: ServerLimits{Refresh: time.Nanosecond}}, child(t, "one", "plain")))
	eager := child(t, "one", "plain")
	eager.Eager = true
	assert.Equal(t, StateReady, states(Options{}, eager))
	other := child(t, "one", "plain")
	other.Args = []string{"-x"}
	assert.Equal(t, StateReady, states(Options{}, other))

	for _, data := range []string{"", "{", `{"version":9}`, `{"version":1,"servers":[]}`, `{"version":1,"servers":{"one":{}}}`,
		strings.Replace(string(stored), `"tools":[`, `"tools":[5,`, 1)} {
		store.Data = []byte(data)
		assert.Equal(t, StateReady, states(Options{}, child(t, "one", "plain")), data)
	}
	store.Err = errors.New("disk on fire")
	assert.Equal(t, StateReady, states(Options{}, child(t, "one", "plain")))
}

// The store has neither environments nor headers.
func TestCacheHasNoSecrets(t *testing.T) {
	t.Parallel()
	store := &mcptest.Store{}
	cfg := child(t, "one", "plain")
	cfg.Env["TOKEN"] = "s3cret"
	m, _ := newTestManager(t, &Options{Cache: store, Servers: []ServerConfig{cfg}})
	require.NoError(t, m.Close())
	data, _ := store.Load()
	require.True(t, json.Valid(data))
	assert.NotContains(t, string(data), "s3cret")
	web := ServerConfig{URL: "http://h/?key=s3cret", Headers: map[string]string{"A": "s3cret"}}
	assert.Len(t, web.cacheKey(), 32)
}

// A server that nobody calls is stopped, and started by the next call.
func TestIdleServerIsStopped(t *testing.T) {
	m, _ := newTestManager(t, &Options{Limits: ServerLimits{IdleTimeout: 50 * time.Millisecond}, Servers: []ServerConfig{child(t, "one", "plain")}})
	for range 2 {
		soon(t, func() bool { return m.Servers()[0].State == StateCached && len(children(os.Getpid())) == 0 })
		assert.Len(t, m.InlineTools(), 6)
		r, err := m.Call(t.Context(), "mcp_one__big", `{"n":2}`)
		require.NoError(t, err)
		assert.Equal(t, "xx", resultText(t, r))
	}
}

// A stored list is not used if it has another version or more tools than the
// limit.
func TestCacheThatDoesNotFit(t *testing.T) {
	t.Parallel()
	store := &mcptest.Store{}
	first, _ := newTestManager(t, &Options{Cache: store, Servers: []ServerConfig{child(t, "one", "plain")}})
	require.NoError(t, first.Close())
	stored, _ := store.Load()

	other := strings.Replace(string(stored), `"version":1`, `"version":2`, 1)
	require.NotEqual(t, string(stored), other)
	require.NoError(t, store.Save([]byte(other)))
	m, _ := newTestManager(t, &Options{Cache: store, Servers: []ServerConfig{child(t, "one", "plain")}})
	assert.Equal(t, StateReady, m.Servers()[0].State, "it was not started from the cache")
	require.NoError(t, m.Close())

	require.NoError(t, store.Save(stored))
	m = NewManager(&Options{Cache: store, Limits: ServerLimits{MaxTools: 5}, Servers: []ServerConfig{child(t, "one", "plain")}})
	defer m.Close()
	assert.ErrorContains(t, m.Start(t.Context()), "it lists more tools than the limit of 5")
	assert.Empty(t, m.InlineTools())
}

// Two Managers share a cache. A third one gives no server a name that a tool of
// another server had.
func TestSharedCacheKeepsNames(t *testing.T) {
	t.Parallel()
	store := FileStore(filepath.Join(t.TempDir(), "cache"))
	begin := func() *Manager {
		m := NewManager(&Options{Cache: store})
		t.Cleanup(func() { _ = m.Close() })
		require.NoError(t, m.Start(t.Context()))
		return m
	}
	add := func(m *Manager, server string) string {
		require.NoError(t, m.AddServer(t.Context(), serving(server, echoTool("run", server))))
		tools := m.InlineTools()
		return tools[len(tools)-1].Name()
	}
	a, b := begin(), begin()
	assert.Equal(t, "mcp_a_b__run", add(a, "a-b"))
	assert.Equal(t, "mcp_c__run", add(b, "c"))
	assert.NotEqual(t, "mcp_a_b__run", add(b, "a_b"), "it learned of a-b when it saved")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	assert.NotEqual(t, "mcp_a_b__run", add(begin(), "a_b"))
}
