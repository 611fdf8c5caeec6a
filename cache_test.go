package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC B2: a stored catalog is there before any server runs, and it is equal to
// the byte. The first call starts its server, once.
func TestSpecB2StartFromTheCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.json")
	options := func() *Options {
		return &Options{Inline: InlineOptions{Max: 3}, Cache: store.File(path), Servers: []ServerConfig{child(t, "one", "plain"), child(t, "two", "plain")}}
	}
	first, _ := newTestManager(t, options())
	sections, tools := sentBytes(first.def)
	fingerprint := first.cur.Load().fingerprint()
	for _, st := range first.Servers() {
		assert.Equal(t, StateReady, st.State)
	}
	require.NoError(t, first.Close())

	opts, log := options(), new(mcptest.Log)
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	m, _ := newTestManager(t, opts)
	for _, st := range m.Servers() {
		assert.Equal(t, StateCached, st.State)
		assert.Equal(t, 6, st.Tools)
		soon(t, func() bool {
			return strings.Contains(log.String(), `msg="mcphybrid: a server is cached" server=`+st.Name+" tools=6")
		})
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
	doc := &mcptest.Store{}
	options := func(list string) *Options {
		cfg := child(t, "raw", "raw")
		cfg.Env["LIST"] = list // not part of the cache key
		return &Options{Cache: doc, Servers: []ServerConfig{cfg}}
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
	soon(t, func() bool { data, _ := doc.Load(); return strings.Contains(string(data), `\"name\":\"c\"`) })
}

// An old list is read again in the background, an eager server is started, and
// a list that does not fit the configuration is not used.
func TestCacheLifetime(t *testing.T) {
	t.Parallel()
	doc := &mcptest.Store{}
	first, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{child(t, "one", "plain")}})
	require.NoError(t, first.Close())
	stored, _ := doc.Load()
	states := func(opts Options, cfg ServerConfig) State {
		opts.Cache = doc
		opts.Servers = []ServerConfig{cfg}
		m, _ := newTestManager(t, &opts)
		defer m.Close()
		assert.Len(t, m.InlineTools(), 6)
		soon(t, func() bool { return m.Servers()[0].State != StateConnecting })
		return m.Servers()[0].State
	}
	assert.Equal(t, StateCached, states(Options{}, child(t, "one", "plain")))
	assert.Equal(t, StateReady, states(Options{Limits: config.Limits{Refresh: time.Nanosecond}}, child(t, "one", "plain")))
	eager := child(t, "one", "plain")
	eager.Eager = true
	assert.Equal(t, StateReady, states(Options{}, eager))
	other := child(t, "one", "plain")
	other.Args = []string{"-x"}
	assert.Equal(t, StateReady, states(Options{}, other))

	for _, data := range []string{"", "{", `{"version":9}`, `{"version":1,"servers":[]}`, `{"version":1,"servers":{"one":{}}}`,
		strings.Replace(string(stored), `"tool":[`, `"tool":[5,`, 1)} {
		doc.Data = []byte(data)
		assert.Equal(t, StateReady, states(Options{}, child(t, "one", "plain")), data)
	}
	doc.Err = errors.New("disk on fire")
	assert.Equal(t, StateReady, states(Options{}, child(t, "one", "plain")))
}

// The store has neither environments nor headers.
func TestCacheHasNoSecrets(t *testing.T) {
	t.Parallel()
	doc := &mcptest.Store{}
	cfg := child(t, "one", "plain")
	cfg.Env["TOKEN"] = "s3cret"
	m, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{cfg}})
	require.NoError(t, m.Close())
	data, _ := doc.Load()
	require.True(t, json.Valid(data))
	assert.NotContains(t, string(data), "s3cret")
	web := ServerConfig{URL: "http://h/?key=s3cret", Headers: map[string]string{"A": "s3cret"}}
	assert.Len(t, cacheKey(&web, nil, public), 32)
}

// A server that nobody calls is stopped, and started by the next call.
func TestIdleServerIsStopped(t *testing.T) {
	m, _ := newTestManager(t, &Options{Limits: config.Limits{IdleTimeout: 50 * time.Millisecond}, Servers: []ServerConfig{child(t, "one", "plain")}})
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
	doc := &mcptest.Store{}
	first, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{child(t, "one", "plain")}})
	require.NoError(t, first.Close())
	stored, _ := doc.Load()

	other := strings.Replace(string(stored), `"version":2`, `"version":3`, 1)
	require.NotEqual(t, string(stored), other)
	require.NoError(t, doc.Save([]byte(other)))
	m, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{child(t, "one", "plain")}})
	assert.Equal(t, StateReady, m.Servers()[0].State, "it was not started from the cache")
	require.NoError(t, m.Close())

	require.NoError(t, doc.Save(stored))
	m = NewManager(&Options{Cache: doc, Limits: config.Limits{MaxTools: 5}, Servers: []ServerConfig{child(t, "one", "plain")}})
	defer m.Close()
	assert.ErrorContains(t, m.Start(t.Context()), "it lists more tools than the limit of 5")
	assert.Empty(t, m.InlineTools())
}

// Two Managers share a cache. A third one gives no server a name that a tool of
// another server had.
func TestSharedCacheKeepsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := store.File(filepath.Join(t.TempDir(), "cache"))
		begin := func() *Manager {
			m := NewManager(&Options{Cache: doc})
			t.Cleanup(func() { _ = m.Close() })
			require.NoError(t, m.Start(t.Context()))
			return m
		}
		add := func(m *Manager, server string) string {
			require.NoError(t, m.AddServer(t.Context(), serving(server, echoTool("run", server))))
			time.Sleep(2 * time.Second) // until it is saved
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
	})
}

// A server that changes its list a thousand times a second costs a save a second, of about
// what has changed. Close saves what is pending.
func TestBusyServersAreSavedOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		m := NewManager(&Options{Cache: doc, Servers: []ServerConfig{{Name: "busy", Command: "x"}}})
		src := m.sources[0]
		require.NoError(t, src.claimNames(m.names))
		tool := func(i int, does string) *definition {
			raw := fmt.Sprintf(`{"name":"t%d","description":"%s %s","inputSchema":{"type":"object"}}`, i, does, strings.Repeat("much, ", 100))
			d, err := parseDefinition("busy", json.RawMessage(raw), 1<<20)
			require.NoError(t, err)
			require.NoError(t, src.nameTool(m.names, d))
			return d
		}
		var tools []*definition
		for i := range 50 {
			tools = append(tools, tool(i, "does"))
		}
		list := func(version int) []*definition {
			defs := slices.Clone(tools)
			defs[7] = tool(7, fmt.Sprint("does ", version))
			return defs
		}
		require.NoError(t, m.setList(src, received{defs: list(0)}))
		time.Sleep(2500 * time.Millisecond)
		assert.Equal(t, 1, doc.Saved().Times)
		const changes = 5000
		for i := range changes {
			require.NoError(t, m.setList(src, received{defs: list(i + 1)}))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2500 * time.Millisecond) // no save ends, or waits, at the same time
		saved := doc.Saved()
		assert.InDelta(t, 6, saved.Times, 1)
		assert.Less(t, saved.Bytes, 7*2000)
		require.NoError(t, m.setList(src, received{defs: list(-1)}))
		synctest.Wait()
		assert.Equal(t, 1, doc.Saved().Times, "at once")
		require.NoError(t, m.setList(src, received{defs: list(-2)}))
		synctest.Wait()
		assert.Zero(t, doc.Saved().Times)
		before := time.Now()
		require.NoError(t, m.Close())
		assert.Zero(t, time.Since(before))
		assert.Equal(t, 1, doc.Saved().Times, "what was pending")

		m = NewManager(&Options{Cache: doc, Servers: []ServerConfig{{Name: "busy", Command: "x"}}})
		require.NoError(t, m.Start(t.Context()))
		assert.Equal(t, StateCached, m.Servers()[0].State)
		assert.Contains(t, m.sources[0].listed[7].Description, "does -2")
		assert.Len(t, m.sources[0].listed, 50)
		require.NoError(t, m.Close())
		assert.Zero(t, doc.Saved())
	})
}

// versions serves one of several MCP servers, and tells no client when it is another one.
type versions struct {
	url string
	now atomic.Pointer[http.Handler]
}

func newVersions(t *testing.T, tools ...mcpserver.ServerTool) *versions {
	v := new(versions)
	v.serve(tools...)
	v.url = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*v.now.Load()).ServeHTTP(w, r) }), "127.0.0.1:0")
	return v
}

func (v *versions) serve(tools ...mcpserver.ServerTool) {
	var h http.Handler = mcpserver.NewStreamableHTTPServer(mcptest.Server("web", tools...))
	v.now.Store(&h)
}

func (v *versions) down() {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	v.now.Store(&h)
}

// What one replica has listed reaches those that share its cache: one that is not
// connected takes it, one that is connected lists again.
func TestRefreshCache(t *testing.T) {
	t.Parallel()
	doc, web := &mcptest.Store{}, newVersions(t, echoTool("log", "good"))
	start := func() *Manager {
		m, _ := newTestManager(t, &Options{Cache: doc, Trust: TrustQuarantine, Servers: []ServerConfig{{Name: "web", URL: web.url}}})
		return m
	}
	require.NoError(t, start().Close())
	a, idle, busy := start(), start(), start()
	for _, m := range []*Manager{a, busy} {
		_, err := m.Call(t.Context(), "mcp_web__log", nil)
		require.NoError(t, err)
		soon(t, func() bool { return m.Servers()[0].State == StateReady })
	}
	require.NoError(t, idle.Refresh())
	require.Equal(t, []string{"mcp_web__log"}, toolNames(idle.InlineTools()))

	web.serve(echoTool("log", "better"), echoTool("push", "new"), echoTool("pull", "new"))
	a.sources[0].server.ListAgain() // as if it had been told
	stored := func() bool { data, _ := doc.Load(); return strings.Contains(string(data), `\"name\":\"push\"`) }
	soon(t, stored)
	for _, m := range []*Manager{idle, busy} {
		require.NoError(t, m.Refresh())
		soon(t, func() bool { return len(changedTools(m)) == 3 })
		for _, e := range changedTools(m) {
			assert.True(t, e.Quarantined, "what another replica has stored is not trusted")
			require.NoError(t, m.Accept("web", e.Tool, e.Is))
		}
		assert.ElementsMatch(t, []string{"mcp_web__log", "mcp_web__push", "mcp_web__pull"}, toolNames(m.InlineTools()))
		require.NoError(t, check(m))
	}
	assert.Equal(t, StateCached, idle.Servers()[0].State, "it was not connected for that")
	_, err := idle.Call(t.Context(), "mcp_web__push", nil)
	require.NoError(t, err)

	broken := NewManager(&Options{Cache: &mcptest.Store{Data: []byte("{")}})
	assert.ErrorContains(t, broken.Refresh(), "mcphybrid: loading the catalog: ")
	none, _ := newTestManager(t, nil)
	assert.NoError(t, none.Refresh())
}

// unwired returns a client of h without a network, so that the clock of a bubble goes on.
func unwired(h http.Handler) *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		read, write := io.Pipe()
		w := &unwiredAnswer{Response: http.Response{StatusCode: 200, Header: make(http.Header), Body: unwiredBody{read, cancel}, Request: r}, body: write, begun: make(chan struct{})}
		served := r.Clone(ctx)
		if served.Body == nil {
			served.Body = http.NoBody
		}
		go func() {
			h.ServeHTTP(w, served)
			w.begin.Do(func() { close(w.begun) })
			_ = write.Close()
		}()
		select {
		case <-w.begun:
			return &w.Response, nil
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	})}
}

type unwiredAnswer struct {
	http.Response
	body  *io.PipeWriter
	begin sync.Once
	begun chan struct{}
}

func (w *unwiredAnswer) Header() http.Header { return w.Response.Header }
func (w *unwiredAnswer) Flush()              { w.WriteHeader(w.StatusCode) }
func (w *unwiredAnswer) WriteHeader(status int) {
	w.begin.Do(func() { w.StatusCode = status; close(w.begun) })
}

func (w *unwiredAnswer) Write(p []byte) (int, error) {
	w.Flush()
	return w.body.Write(p)
}

type unwiredBody struct {
	*io.PipeReader
	cancel func()
}

func (b unwiredBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// Two replicas whose server words its list anew each time do not list for ever. An honest
// change still reaches the other one at once.
func TestServerThatWordsItsListAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var anew atomic.Bool
		var lists, version atomic.Int32
		srv := mcpserver.NewMCPServer("web", "1", mcpserver.WithCacheHints(0, mcp.CacheScopePublic), mcpserver.WithToolFilter(func(_ context.Context, tools []mcp.Tool) []mcp.Tool {
			lists.Add(1)
			if anew.Load() {
				version.Add(1)
			}
			tools = slices.Clone(tools)
			for i := range tools {
				tools[i].Description = fmt.Sprint("as of ", version.Load())
			}
			return tools
		}))
		srv.AddTools(echoTool("log", ""))
		doc := new(mcptest.Split)
		client := unwired(mcpserver.NewStreamableHTTPServer(srv, mcpserver.WithStateLess(true)))
		var replicas []*Manager
		for range 2 {
			m := NewManager(&Options{Cache: doc, Limits: config.Limits{Refresh: -1}, Servers: []ServerConfig{{Name: "web", URL: "http://web", HTTPClient: client, Eager: true}}})
			defer func() { _ = m.Close() }()
			require.NoError(t, m.Start(t.Context()))
			time.Sleep(2 * time.Second)
			require.Equal(t, StateReady, m.Servers()[0].State)
			replicas = append(replicas, m)
		}
		during := func(d time.Duration) int32 {
			before := lists.Load()
			for range d / time.Second {
				for _, m := range replicas {
					require.NoError(t, m.Refresh())
				}
				time.Sleep(time.Second)
			}
			return lists.Load() - before
		}
		change := func() {
			version.Add(1)
			replicas[0].sources[0].server.ListAgain() // as if it had been told
		}
		anew.Store(true)
		change()
		n := during(time.Hour)
		t.Logf("%d lists in an hour", n)
		assert.LessOrEqual(t, n, int32(2*20))
		anew.Store(false)
		during(5 * time.Hour)
		for range 3 {
			change()
			assert.LessOrEqual(t, during(4*time.Second), int32(3))
			for _, m := range replicas {
				assert.Equal(t, fmt.Sprint("as of ", version.Load()), m.InlineTools()[0].Description())
			}
			during(2 * time.Minute)
		}
	})
}

// A replica that could not start a server takes the list of one that could.
func TestRefreshTakesTheFirstList(t *testing.T) {
	t.Parallel()
	doc, web := &mcptest.Split{}, newVersions(t)
	start := func() *Manager {
		m := NewManager(&Options{Cache: doc, Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{{Name: "web", URL: web.url}}})
		t.Cleanup(func() { _ = m.Close() })
		_ = m.Start(t.Context())
		return m
	}
	web.down()
	late := start()
	require.Equal(t, StateDown, late.Servers()[0].State)
	require.NoError(t, late.Refresh())
	require.Empty(t, toolNames(late.InlineTools()))
	web.serve(echoTool("log", ""), echoTool("push", ""))
	require.NoError(t, start().Close())
	web.down()
	require.NoError(t, late.Refresh())
	assert.ElementsMatch(t, []string{"mcp_web__log", "mcp_web__push"}, toolNames(late.InlineTools()))
	require.NoError(t, check(late))
	doc.Gets()
	require.NoError(t, late.Refresh())
	assert.Zero(t, doc.Gets(), "it has the list")
}

// A replica keeps what it has listed itself, and an older list comes from nowhere.
func TestRefreshKeepsTheNewer(t *testing.T) {
	t.Parallel()
	doc, web := &mcptest.Store{}, newVersions(t, echoTool("old", ""))
	start := func() *Manager {
		m, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{{Name: "web", URL: web.url}}})
		return m
	}
	require.NoError(t, start().Close())
	old, _ := doc.Load()
	a, idle := start(), start()
	web.serve(echoTool("new", ""))
	require.NoError(t, a.Preload(t.Context(), "*"))
	soon(t, func() bool {
		return len(toolNames(a.InlineTools())) == 1 && toolNames(a.InlineTools())[0] == "mcp_web__new"
	})
	stored := func() bool { data, _ := doc.Load(); return strings.Contains(string(data), `\"name\":\"new\"`) }
	soon(t, stored)
	idle.cache.Save()
	assert.True(t, stored(), "who has the older list does not overwrite the newer one")
	require.NoError(t, idle.Refresh())
	require.Equal(t, []string{"mcp_web__new"}, toolNames(idle.InlineTools()))

	require.NoError(t, doc.Save(old))
	for range 3 {
		require.NoError(t, idle.Refresh())
		require.NoError(t, a.Refresh())
	}
	assert.Equal(t, []string{"mcp_web__new"}, toolNames(idle.InlineTools()))
	assert.Equal(t, []string{"mcp_web__new"}, toolNames(a.InlineTools()))
}

// What Refresh has read of a server is dropped if the server is removed meanwhile.
func TestRemovedDuringRefresh(t *testing.T) {
	t.Parallel()
	cfg := serving("a", echoTool("one", ""))
	web := mcpserver.NewStreamableHTTPServer(mcpServer(cfg), mcpserver.WithStateful(true))
	doc := new(mcptest.Store)
	opts := Options{Servers: []ServerConfig{{Name: "a", URL: serveHTTP(t, web, "127.0.0.1:0")}}, Cache: doc}
	first := NewManager(&opts)
	require.NoError(t, first.Start(t.Context()))
	require.NoError(t, first.Close())

	var m *Manager
	var armed atomic.Bool
	counting := opts
	counting.Tokens = countFunc(func(text string) int {
		if armed.CompareAndSwap(true, false) {
			m.RemoveServer("a")
		}
		return len(text) / 4
	})
	counting.Cache = doc
	m, _ = newTestManager(t, &counting)
	src := m.sources[0]
	require.Equal(t, StateCached, m.Servers()[0].State)

	mcpServer(cfg).AddTools(echoTool("two", ""))
	other := NewManager(&opts)
	require.NoError(t, other.Start(t.Context()))
	require.NoError(t, other.Preload(t.Context(), "*"))
	require.NoError(t, other.Close())

	armed.Store(true)
	require.NoError(t, m.Refresh())
	require.Empty(t, m.Servers())
	assert.Len(t, src.listed, 1, "what it had before")
}

// What could not be stored is stored after the next Refresh, as when the store is back.
func TestRefreshStoresWhatIsLeft(t *testing.T) {
	t.Parallel()
	doc, web := &mcptest.Store{Err: errors.New("no network")}, newVersions(t, echoTool("a", ""))
	failed := make(chan struct{}, 100)
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "storing the catalog: no network") {
			failed <- struct{}{}
		}
		return len(p), nil
	}), nil))
	m, _ := newTestManager(t, &Options{Cache: doc, Logger: log, Servers: []ServerConfig{{Name: "web", URL: web.url}}})
	<-failed
	assert.ErrorContains(t, m.Refresh(), "no network")
	doc.Fail(nil)
	require.NoError(t, m.Refresh())
	soon(t, func() bool { data, _ := doc.Load(); return strings.Contains(string(data), `\"name\":\"a\"`) })
}

// Refresh before Start leaves everything to Start.
func TestRefreshBeforeStart(t *testing.T) {
	t.Parallel()
	opts := Options{Cache: new(mcptest.Store)}
	for _, name := range []string{"a", "b"} {
		web := mcpserver.NewStreamableHTTPServer(mcpServer(inProcess(name, 2)))
		opts.Servers = append(opts.Servers, ServerConfig{Name: name, URL: serveHTTP(t, web, "127.0.0.1:0")})
	}
	m := NewManager(&opts)
	require.NoError(t, m.Start(t.Context()))
	require.NoError(t, m.Close())

	m = NewManager(&opts)
	defer m.Close()
	require.NoError(t, m.Refresh())
	assert.Empty(t, m.InlineTools())
	assert.NoError(t, check(m))
	require.NoError(t, m.Start(t.Context()))
	assert.Len(t, m.InlineTools(), 4)
	assert.NoError(t, check(m))
}

// A list that its server calls private is nobody else's: other credentials have another one,
// also in a store that they share, and where the credentials are not known it is not kept.
func TestPrivateLists(t *testing.T) {
	t.Parallel()
	for _, scope := range []mcp.CacheScope{mcp.CacheScopePrivate, mcp.CacheScopePublic} {
		private := scope == mcp.CacheScopePrivate
		s := mcpserver.NewMCPServer("web", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithCacheHints(0, scope))
		s.AddTools(echoTool("a", "Echoes"))
		url := serveHTTP(t, mcpserver.NewStreamableHTTPServer(s), "127.0.0.1:0")
		doc := new(mcptest.Store)
		state := func(doc *mcptest.Store, cfg ServerConfig) State {
			cfg.Name, cfg.URL = "web", url
			m, _ := newTestManager(t, &Options{Cache: doc, Servers: []ServerConfig{cfg}})
			defer m.Close()
			assert.Len(t, m.InlineTools(), 1)
			return m.Servers()[0].State
		}
		ann, bob := ServerConfig{Headers: map[string]string{"Authorization": "Bearer ann"}}, ServerConfig{Headers: map[string]string{"Authorization": "Bearer bob"}}
		assert.Equal(t, StateReady, state(doc, ann))
		assert.Equal(t, StateCached, state(doc, ann), "her own")
		if private {
			assert.Equal(t, StateReady, state(doc, bob))
			assert.Equal(t, StateReady, state(doc, ann), "his is there by now")
		} else {
			assert.Equal(t, StateCached, state(doc, bob))
		}
		for _, extensions := range []map[string]any{{"x": 1}, {"x": 2}, nil} { // a server may list other tools for them
			m, _ := newTestManager(t, &Options{Cache: doc, Extensions: extensions, Servers: []ServerConfig{{Name: "web", URL: url, Headers: ann.Headers}}})
			assert.Equal(t, StateReady, m.Servers()[0].State, "%v", extensions)
			require.NoError(t, m.Close())
		}
		for name, cfg := range map[string]ServerConfig{
			"a function": {HeaderFunc: func(context.Context) (http.Header, error) { return nil, nil }, Headers: ann.Headers},
			"a client":   {HTTPClient: new(http.Client), Headers: ann.Headers},
		} {
			doc := new(mcptest.Store)
			assert.Equal(t, StateReady, state(doc, cfg), name)
			data, err := doc.Load()
			require.NoError(t, err)
			assert.Equal(t, !private, strings.Contains(string(data), "Echoes"), name)
		}
	}

	a, doc := mcptest.NewAuthority(t, echoHandler()), new(mcptest.Store)
	m := NewManager(&Options{Cache: doc, Servers: []ServerConfig{{Name: "web", URL: a.Server, Protocol: mcp.ProtocolVersion20260728}}, OpenURL: func(_ context.Context, page LoginPage) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	}})
	require.ErrorIs(t, m.Start(t.Context()), ErrAuthorizationRequired)
	require.NoError(t, m.Login(t.Context(), "web"))
	assert.Len(t, m.InlineTools(), 1)
	require.NoError(t, check(m))
	require.NoError(t, m.Close())
	data, err := doc.Load()
	require.NoError(t, err)
	assert.NotContains(t, string(data), "Echoes", "it is the user's who has logged in")
}
