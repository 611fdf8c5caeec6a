package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// understood waits until all of the n tools of m are found by meaning.
func understood(t *testing.T, m *Manager, n int) {
	t.Helper()
	soon(t, func() bool {
		return m.semantic.InStep() && m.semantic.Reached().Total == n && m.Default().Find(t.Context(), "dog", SearchOptions{}).Err == nil
	})
}

// stored returns the ids in a scope, sorted.
func stored(t *testing.T, vectors vector.Store, scope string) []string {
	t.Helper()
	sums, err := vectors.Sums(t.Context(), scope)
	require.NoError(t, err)
	return slices.Sorted(maps.Keys(sums))
}

// late returns a server in this process of n tools which does not list them before
// the gate opens.
func late(name string, n int, gate <-chan struct{}) ServerConfig {
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { <-gate })
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithHooks(hooks))
	s.AddTools(mcptest.Chores(name, n)...)
	return ServerConfig{Name: name, InProcess: s}
}

// A slow server's vectors outlive each start, in the cache and in a store.
func TestNothingIsEmbeddedTwice(t *testing.T) {
	for name, shared := range map[string]vector.Store{"cache": nil, "store": new(recordingStore)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cache store.Document
			if shared == nil {
				cache = store.File(filepath.Join(t.TempDir(), "vectors.bin"))
			}
			for run := range 4 {
				e, gate := newConcepts(), make(chan struct{})
				m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e, Cache: cache, Store: shared},
					Servers: []ServerConfig{inProcess("a", 100), late("b", 100, gate)}})
				started := make(chan error)
				go func() { started <- m.Start(t.Context()) }()
				understood(t, m, 100)
				close(gate)
				require.NoError(t, <-started)
				understood(t, m, 200)
				require.NoError(t, m.Close())
				if run == 0 {
					assert.Equal(t, 200, e.embedded())
				} else {
					assert.Zero(t, e.embedded(), "run %d", run)
				}
			}
			if r, ok := shared.(*recordingStore); ok {
				assert.Empty(t, slices.DeleteFunc(r.Noted(), func(what string) bool { return !strings.HasPrefix(what, "delete") }))
			}
		})
	}
}

// A server that is down for a whole run costs nothing in the next.
func TestAnOutageEmbedsNothingTwice(t *testing.T) {
	t.Parallel()
	cache := store.File(filepath.Join(t.TempDir(), "vectors.bin"))
	for run, b := range []ServerConfig{inProcess("b", 10), {Name: "b", URL: "http://127.0.0.1:1/"}, inProcess("b", 10)} {
		e := newConcepts()
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e, Cache: cache},
			Servers: []ServerConfig{inProcess("a", 10+run), b}}) // one more, so that the cache is saved each time
		_ = m.Start(t.Context())
		understood(t, m, len(m.DeferredTools()))
		require.NoError(t, m.Close())
		assert.Equal(t, []int{20, 1, 1}[run], e.embedded(), "run %d", run)
	}
}

// Of two processes over one store, neither takes from the other what only that one
// can reach.
func TestReplicasShareAStore(t *testing.T) {
	t.Parallel()
	vectors := new(recordingStore)
	replica := func(b ServerConfig) *Manager {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 10)},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Store: vectors, Grace: -1}})
		_ = m.AddServer(t.Context(), b)
		return m
	}
	one := replica(inProcess("b", 10))
	understood(t, one, 20)
	byMeaning := func() int {
		a := one.Default().Find(t.Context(), "chore", SearchOptions{By: ByMeaning, Limit: 20, Servers: []string{"b"}})
		assert.NoError(t, a.Err)
		return len(a.Hits)
	}
	require.Equal(t, 10, byMeaning())
	two := replica(ServerConfig{Name: "b", URL: "http://127.0.0.1:1/"})
	understood(t, two, 10)
	three := replica(inProcess("c", 5))
	understood(t, three, 15)
	assert.Len(t, stored(t, vectors, "system"), 25)
	assert.Equal(t, 10, byMeaning())
	require.NoError(t, one.AddTools("d", echoTool("new", "")))
	understood(t, one, 21)
	assert.Equal(t, 10, byMeaning())
	for _, m := range []*Manager{one, two, three} {
		require.NoError(t, m.Close())
	}
	assert.Len(t, stored(t, vectors, "system"), 26, "the end of a process is no word on its tools")
}

// What a ready server lists no more leaves the store after a grace, and not if it
// comes back meanwhile. What has left is stored again when it returns.
func TestDeletedAfterAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vectors, e := new(recordingStore), newConcepts()
		s := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true))
		s.AddTools(echoTool("a", "dog"), echoTool("b", "car"))
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{{Name: "s", InProcess: s}},
			Semantic: &SemanticOptions{Embedder: e, Store: vectors, Grace: time.Hour}})
		require.NoError(t, m.Start(t.Context()))
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		wait(time.Second)
		require.Equal(t, []string{"mcp_s__a", "mcp_s__b"}, stored(t, vectors, "system"))
		found := func() []string {
			return hitNames(m.Default().Find(t.Context(), "dog", SearchOptions{By: ByMeaning}).Hits)
		}

		s.DeleteTools("a")
		wait(59 * time.Minute)
		assert.Equal(t, []string{"mcp_s__a", "mcp_s__b"}, stored(t, vectors, "system"))
		assert.NotContains(t, found(), "mcp_s__a", "it is stored, and not found")
		s.AddTools(echoTool("a", "dog"))
		wait(3 * time.Hour)
		assert.Equal(t, []string{"mcp_s__a", "mcp_s__b"}, stored(t, vectors, "system"))
		assert.Equal(t, 2, e.embedded())

		s.DeleteTools("a")
		wait(61 * time.Minute)
		assert.Equal(t, []string{"mcp_s__b"}, stored(t, vectors, "system"))
		s.AddTools(echoTool("a", "dog"))
		wait(time.Minute)
		assert.Equal(t, []string{"mcp_s__a", "mcp_s__b"}, stored(t, vectors, "system"))
		assert.Contains(t, found(), "mcp_s__a")

		m.RemoveServer("s")
		wait(59 * time.Minute)
		assert.Len(t, stored(t, vectors, "system"), 2)
		wait(2 * time.Minute)
		assert.Empty(t, stored(t, vectors, "system"))
		require.NoError(t, m.Close())
	})
}

// What a tool that becomes inline has in the store stays, and it is not found twice.
func TestInlineToolsStayStored(t *testing.T) {
	t.Parallel()
	vectors := new(recordingStore)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()},
		Semantic: &SemanticOptions{Embedder: newConcepts(), Store: vectors, Least: 0.5, Grace: -1}})
	understood(t, m, 5)
	require.NoError(t, m.SetRules([]Rule{{Name: "off", Patterns: []string{"*groom"}, Action: RuleExclude}}))
	understood(t, m, 4)
	assert.Equal(t, []string{"mcp_s__walk_dog"}, hitNames(m.Search("vet", 5)))
	assert.Len(t, stored(t, vectors, "system"), 5)
	require.NoError(t, m.SetRules([]Rule{}))
	understood(t, m, 5)
	assert.Equal(t, []string{"mcp_s__groom", "mcp_s__walk_dog"}, hitNames(m.Search("vet", 5)))
}

// After another process has deleted, what is missing is stored again with a later
// change.
func TestAStoreIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vectors := new(recordingStore)
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts(), Store: vectors}})
		require.NoError(t, m.AddTools("s", echoTool("a", "dog")))
		synctest.Wait()
		require.NoError(t, vectors.MemoryStore.Delete(t.Context(), "system", []string{"mcp_s__a"}))
		time.Sleep(time.Hour)
		require.NoError(t, m.AddTools("s", echoTool("b", "dog")))
		synctest.Wait()
		assert.Equal(t, []string{"mcp_s__a", "mcp_s__b"}, stored(t, vectors, "system"))
		require.NoError(t, m.Close())
	})
}

// A failing embedder or store is asked less and less often, however often the
// catalog changes.
func TestFailingServicesAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"embedder", "store"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				var recovered atomic.Bool
				e, vectors := newConcepts(), new(failingStore)
				fails := func(context.Context) error {
					if asked.Add(1); recovered.Load() {
						return nil
					}
					return errors.New("429 too many requests")
				}
				if what == "embedder" {
					e.embed = fails
				} else {
					vectors.failing = fails
				}
				m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e, Store: vectors}})
				for i := range 600 { // a minute
					require.NoError(t, m.AddTools("a", echoTool(fmt.Sprint("x", i), "dog")))
					time.Sleep(100 * time.Millisecond)
				}
				n := asked.Load()
				assert.GreaterOrEqual(t, n, int64(3))
				assert.LessOrEqual(t, n, int64(8))
				a := m.Default().Find(t.Context(), "dog", SearchOptions{})
				assert.ErrorContains(t, a.Err, "429")

				recovered.Store(true)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				assert.NoError(t, m.Default().Find(t.Context(), "dog", SearchOptions{}).Err)
				require.NoError(t, m.Close())
			})
		})
	}
}

// A text that the embedder refuses keeps no other from being embedded.
func TestARefusedTextCostsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &refusing{concepts: newConcepts()}
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e, Least: 0.5}})
		tools := mcptest.Chores("a", 100)
		tools[3], tools[98] = echoTool("bad", "unspeakable"), echoTool("good", "cat")
		require.NoError(t, m.AddTools("a", tools...))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		a := m.Default().Find(t.Context(), "vet", SearchOptions{})
		assert.ErrorContains(t, a.Err, "99 of 100 tools are embedded: ")
		assert.ErrorContains(t, a.Err, "such words")
		assert.Equal(t, []string{"mcp_a__good"}, hitNames(a.Hits))
		require.NoError(t, m.AddTools("b", echoTool("later", "dog")))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"mcp_a__good", "mcp_b__later"}, hitNames(m.Search("vet", 5)))
		require.NoError(t, m.Close())
	})
}

type refusing struct{ *concepts }

func (e *refusing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for _, text := range texts {
		if strings.Contains(text, "unspeakable") {
			return nil, errors.New("such words are not embedded")
		}
	}
	return e.concepts.Embed(ctx, texts)
}

// A server that rewrites its tools all the time has so many of them embedded in a
// day, and others don't wait for it.
func TestAServersShareOfTheEmbedder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newConcepts()
		s := mcpserver.NewMCPServer("noisy", "1", mcpserver.WithToolCapabilities(true))
		rewrite := func(i int) {
			var tools []mcpserver.ServerTool
			for k := range 20 {
				tools = append(tools, echoTool(fmt.Sprint("tool", k), fmt.Sprintf("dog, as of %d", i)))
			}
			s.SetTools(tools...)
		}
		rewrite(0)
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Trust: TrustOff, Servers: []ServerConfig{{Name: "noisy", InProcess: s}},
			Semantic: &SemanticOptions{Embedder: e, ServerBudget: 100}})
		require.NoError(t, m.Start(t.Context()))
		for i := range 24 * 6 { // a day
			rewrite(i + 1)
			time.Sleep(10 * time.Minute)
		}
		synctest.Wait()
		n := e.embedded()
		assert.InDelta(t, 200, n, 10, "the budget at once, and as much in a day")
		assert.ErrorContains(t, m.Default().Find(t.Context(), "dog", SearchOptions{}).Err, `server "noisy" has used up its budget of 100 texts a day`)

		require.NoError(t, m.AddTools("quiet", echoTool("vet", "cat")))
		synctest.Wait()
		hits := m.Default().Find(t.Context(), "pet", SearchOptions{By: ByMeaning, Servers: []string{"quiet"}}).Hits
		assert.Equal(t, []string{"mcp_quiet__vet"}, hitNames(hits))

		time.Sleep(24 * time.Hour) // nothing changes: the rest is caught up with
		synctest.Wait()
		assert.NoError(t, m.Default().Find(t.Context(), "dog", SearchOptions{}).Err)
		require.NoError(t, m.Close())
	})
}

// The servers take turns, so a large one does not keep the others waiting.
func TestServersTakeTurnsAtTheEmbedder(t *testing.T) {
	t.Parallel()
	e := newConcepts()
	var once sync.Once
	first := make(chan struct{})
	e.embed = func(ctx context.Context) error {
		once.Do(func() { <-first }) // until both servers have listed
		return nil
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e}})
	require.NoError(t, m.AddTools("huge", mcptest.Chores("huge", 1000)...))
	require.NoError(t, m.AddTools("small", echoTool("only", "dog")))
	close(first)
	understood(t, m, 1001)
	at := slices.IndexFunc(e.texts, func(text string) bool { return strings.Contains(text, "only") })
	assert.Less(t, at, 3*64)
}

// More vectors than fit leave a smaller cache, not an empty one; and what 10,000
// tools of the largest common model take fits.
func TestManyVectorsAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: many vectors")
	}
	t.Parallel()
	file := store.File(filepath.Join(t.TempDir(), "vectors.bin"))
	const n, dims = 18, 1 << 20 // 72 MiB
	var keys []vector.Key
	c := vector.LoadCache(file, "m", nil)
	for i := range n {
		keys = append(keys, vector.KeyOf("m", fmt.Sprint(i)))
		v := make([]float32, dims)
		v[i] = 1
		c.Put(keys[i], v)
	}
	require.NoError(t, c.Save(keys, [32]byte{}, false))
	c = vector.LoadCache(file, "m", nil)
	require.Equal(t, n, c.Len())
	for i, key := range keys {
		assert.Equal(t, float32(1), c.Vector(key)[i])
	}
}

// A recordingStore is a store that records the changes it is asked for.
type recordingStore struct {
	vector.MemoryStore
	mu      sync.Mutex
	changes []string
	sums    int
}

func (r *recordingStore) note(verb string, ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, verb+" "+strings.Join(ids, " "))
}

func (r *recordingStore) Noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.changes
	r.changes = nil
	return list
}

func (r *recordingStore) Upsert(ctx context.Context, scope string, tools []vector.Record) error {
	var ids []string
	for _, t := range tools {
		ids = append(ids, t.ID)
	}
	r.note("upsert", ids...)
	return r.MemoryStore.Upsert(ctx, scope, tools)
}

func (r *recordingStore) Delete(ctx context.Context, scope string, ids []string) error {
	r.note("delete", ids...)
	return r.MemoryStore.Delete(ctx, scope, ids)
}

func (r *recordingStore) Sums(ctx context.Context, scope string) (map[string]string, error) {
	r.mu.Lock()
	r.sums++
	r.mu.Unlock()
	return r.MemoryStore.Sums(ctx, scope)
}

// Sum returns how many times the sums were asked for.
func (r *recordingStore) Sum() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sums
}

// A server whose list is refused for its size has not said that its tools are gone.
func TestARefusedListDeletesNothing(t *testing.T) {
	t.Parallel()
	vectors := new(recordingStore)
	replica := func(limit int) *Manager {
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Limits: config.Limits{MaxCatalog: limit},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Store: vectors, Grace: -1}, Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 10)}})
		t.Cleanup(func() { _ = m.Close() })
		_ = m.Start(t.Context())
		return m
	}
	understood(t, replica(0), 11)
	small := replica(1000)
	require.NoError(t, small.AddTools("c", echoTool("new", "")))
	understood(t, small, 2)
	assert.Len(t, stored(t, vectors, "system"), 12)
}
