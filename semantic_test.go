package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// concepts is an embedder that knows the meaning of some words. Each group has
// its own dimension.
type concepts struct {
	groups []string
	embed  func(ctx context.Context) error // if not nil, called first
	query  func(ctx context.Context) error

	mu    sync.Mutex
	texts []string // the embedded texts
}

func newConcepts() *concepts {
	return &concepts{groups: []string{"dog cat pet animal vet", "car road drive traffic", "money pay invoice bank", "rain weather sun climate"}}
}

func (c *concepts) Model() string   { return "concepts" }
func (c *concepts) Dimensions() int { return len(c.groups) + 1 }

func (c *concepts) vector(text string) []float32 {
	v := make([]float32, len(c.groups)+1)
	v[len(c.groups)] = 0.01
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		for i, group := range c.groups {
			if strings.Contains(" "+group+" ", " "+word+" ") {
				v[i]++
			}
		}
	}
	return v
}

func (c *concepts) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if c.embed != nil {
		if err := c.embed(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var vectors [][]float32
	for _, text := range texts {
		c.texts = append(c.texts, text)
		vectors = append(vectors, c.vector(text))
	}
	return vectors, nil
}

func (c *concepts) EmbedQuery(ctx context.Context, query string) ([]float32, error) {
	if c.query != nil {
		if err := c.query(ctx); err != nil {
			return nil, err
		}
	}
	return c.vector(query), nil
}

func (c *concepts) embedded() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.texts)
}

func meaningTools() ServerConfig {
	return serving("s", echoTool("walk_dog", "Walks the dog"), echoTool("pay_bill", "Settles an invoice"),
		echoTool("forecast", "Tells tomorrow's weather"), echoTool("plan_route", "Finds a road that is free"), echoTool("groom", "Brushes a pet"))
}

func embedded(t *testing.T, m *Manager, n int) {
	t.Helper()
	soon(t, func() bool {
		p := m.semantic.Reached()
		return p != nil && p.Done == n && p.Total == n && p.Err == nil
	})
}

// SPEC G9: by default each search weighs the meaning itself, and says how much. A host may
// set the weight.
func TestSpecG9WeightOfMeaning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		alpha  float64
		byRank bool
		by     SearchSide
		want   float64
	}{
		"default": {want: 0.35}, "none": {alpha: -1}, "set": {alpha: 0.5, want: 0.5}, "by rank": {alpha: 0.5, byRank: true},
		"only words": {by: ByWords}, "only meaning": {by: ByMeaning, want: 1},
	} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Threshold: 0.5}, Servers: []ServerConfig{meaningTools()},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Alpha: test.alpha, ByRank: test.byRank}})
		embedded(t, m, 5)
		a := m.Default().Find(t.Context(), "my cat is sick and needs a walk", SearchOptions{By: test.by})
		require.NoError(t, a.Err)
		assert.Equal(t, test.want, a.Alpha, name)
		if test.want > 0 && test.want < 1 {
			assert.Equal(t, []string{"mcp_s__walk_dog", "mcp_s__groom"}, hitNames(a.Hits)[:2], name)
		}
	}
}

// SPEC B4, C1, C4: a search asks both sides, merges their results without
// duplicates and says what each found.
func TestSpecC1FindsByMeaning(t *testing.T) {
	t.Parallel()
	e := newConcepts()
	progress := make(chan [2]int, 10)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Threshold: 0.5}, Servers: []ServerConfig{meaningTools()}, Semantic: &SemanticOptions{
		Embedder: e, Alpha: vector.DefaultAlpha, Least: 0.5, Progress: func(done, total int) { progress <- [2]int{done, total} },
	}})
	embedded(t, m, 5)
	assert.Equal(t, [2]int{5, 5}, <-progress)
	soon(t, m.semantic.Idle)
	assert.Empty(t, progress)
	assert.Equal(t, "Tool Name: forecast. Description: Tells tomorrow's weather. Arguments: text", e.texts[0], "SPEC D5")

	a := m.Default().Find(t.Context(), "my cat is sick and needs a walk", SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []string{"mcp_s__walk_dog", "mcp_s__groom"}, hitNames(a.Hits))
	assert.Equal(t, 1, a.Words)
	assert.Equal(t, 2, a.Meaning)
	both, meaning := a.Hits[0], a.Hits[1]
	assert.InDelta(t, vector.DefaultAlpha*both.Similarity+(1-vector.DefaultAlpha)*both.Words, both.Score, 1e-9)
	assert.Equal(t, 1.0, both.Words)
	assert.Zero(t, meaning.Words)
	assert.Greater(t, meaning.Similarity, 0.9)

	// Named, active and forbidden tools are treated as without meaning.
	assert.Equal(t, []string{"mcp_s__groom", "mcp_s__walk_dog"}, hitNames(m.Search("mcp_s__groom dog", 2)))
	m.ActivateTools([]string{"mcp_s__walk_dog"})
	assert.Equal(t, []string{"mcp_s__groom"}, hitNames(m.Search("dog", 5)))
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*groom"}}})
	assert.Equal(t, []string{"mcp_s__walk_dog"}, hitNames(s.Search("dog", 5)))
	assert.Empty(t, s.Search("zebra", 5))
	e.query = func(context.Context) error { t.Error("it is asked for nothing"); return nil }
	assert.NoError(t, s.Find(t.Context(), " \n", SearchOptions{}).Err)
	e.query = nil
	result, err := s.Call(t.Context(), SearchToolName, `{"query":"drive"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, result), "plan_route")
}

// SPEC D6: only changed tools are embedded and stored, and removed ones are
// deleted. With a cache, no text is embedded twice.
func TestSpecD6Difference(t *testing.T) {
	t.Parallel()
	e := newConcepts()
	cache, store := new(mcptest.Store), new(vector.MemoryStore)
	s := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(echoTool("a", "dog"), echoTool("b", "car"))
	options := func(store vector.Store) *Options {
		return &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{{Name: "s", InProcess: s}},
			Semantic: &SemanticOptions{Embedder: e, Store: store, Cache: cache, Least: 0.5, Grace: -1}}
	}
	m, _ := newTestManager(t, options(store))
	embedded(t, m, 2)
	s.AddTools(echoTool("c", "money"), echoTool("a", "cat"))
	embedded(t, m, 3)
	soon(t, func() bool { return e.embedded() == 4 })
	s.DeleteTools("b")
	embedded(t, m, 2)
	soon(t, func() bool { sums, _ := store.Sums(t.Context(), "system"); return len(sums) == 2 })
	require.NoError(t, m.Close())

	m, _ = newTestManager(t, options(new(vector.MemoryStore)))
	embedded(t, m, 2)
	assert.Equal(t, 4, e.embedded(), "from the cache")
	assert.Equal(t, []string{"mcp_s__a"}, hitNames(m.Search("pet", 1)))
}

// SPEC C6: the failure of one side costs only that side and is reported.
func TestSpecC6OneSideFails(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	for _, test := range []struct {
		name         string
		embed, query func(context.Context) error
		want         string
	}{
		{"tools", func(context.Context) error { return errors.New("no model") }, nil, "embedding: no model"},
		{"tools not yet", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, "no tool is embedded yet"},
		{"panic", func(context.Context) error { panic("oh") }, nil, "panic: oh"},
		{"query", nil, func(context.Context) error { return errors.New("rate limited") }, "rate limited"},
		{"query panics", nil, func(context.Context) error { panic("oh") }, "panic: oh"},
		{"query hangs", nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "deadline exceeded"},
		{"query heeds nothing", nil, func(context.Context) error { <-hang; return nil }, "deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newConcepts()
			e.embed, e.query = test.embed, test.query
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()},
				Semantic: &SemanticOptions{Embedder: e, Timeout: 20 * time.Millisecond}})
			if test.embed == nil {
				embedded(t, m, 5)
			}
			soon(t, func() bool {
				a := m.Default().Find(t.Context(), "tomorrow's weather", SearchOptions{})
				return assert.Equal(t, []string{"mcp_s__forecast"}, hitNames(a.Hits)) && strings.Contains(fmt.Sprint(a.Err), test.want)
			})
		})
	}
}

// A store that fails for a while gets all changes later. Nothing waits for it.
func TestSemanticStoreFails(t *testing.T) {
	t.Parallel()
	store := &failingStore{}
	store.fails.Store(true)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()}, Semantic: &SemanticOptions{Embedder: newConcepts(), Store: store, Least: 0.5}})
	soon(t, func() bool { return m.semantic.Reached() != nil && m.semantic.Reached().Err != nil })
	a := m.Default().Find(t.Context(), "tomorrow's weather", SearchOptions{})
	assert.ErrorContains(t, a.Err, "no store")
	assert.Equal(t, []string{"mcp_s__forecast"}, hitNames(a.Hits))
	store.fails.Store(false)
	embedded(t, m, 5)
	assert.Equal(t, []string{"mcp_s__groom", "mcp_s__walk_dog"}, hitNames(m.Search("vet", 5)))
}

// A failingStore fails on demand. It is not a *MemoryStore, so the store does
// not know what a session may use.
type failingStore struct {
	vector.MemoryStore
	fails   atomic.Bool
	failing func(context.Context) error // asked too, unless nil
}

func (s *failingStore) Sums(ctx context.Context, scope string) (map[string]string, error) {
	if s.fails.Load() {
		return nil, errors.New("no store")
	}
	if s.failing != nil {
		if err := s.failing(ctx); err != nil {
			return nil, err
		}
	}
	return s.MemoryStore.Sums(ctx, scope)
}

// A session finds its own tools, however many better ones it may not use.
func TestSemanticAsksForMore(t *testing.T) {
	t.Parallel()
	var tools []mcpserver.ServerTool
	for i := range 300 {
		tools = append(tools, echoTool(fmt.Sprintf("other_%03d", i), "dog dog dog"))
	}
	tools = append(tools, echoTool("mine", "dog car"))
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{serving("s", tools...)},
		Semantic: &SemanticOptions{Embedder: newConcepts(), Store: new(failingStore)}})
	embedded(t, m, 301)
	s := m.NewSession(&SessionOptions{Access: Access{Allow: []string{"*mine"}}})
	a := s.Find(t.Context(), "vet", SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []string{"mcp_s__mine"}, hitNames(a.Hits))
}

// Vectors of another model, with other dimensions, are replaced.
func TestSemanticModelChanges(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	require.NoError(t, store.Upsert(t.Context(), "system", []vector.Record{{ID: "mcp_s__groom", Sum: "old", Vector: []float32{1, 2}}}))
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()}, Semantic: &SemanticOptions{Embedder: newConcepts(), Store: store, Least: 0.5}})
	embedded(t, m, 5)
	assert.Equal(t, []string{"mcp_s__groom", "mcp_s__walk_dog"}, hitNames(m.Search("vet", 5)))
}

// A shared store is embedded again if a model is asked for vectors of another length, or
// for those of other texts.
func TestSemanticDimensionsChange(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64 // texts of tools
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Input      []string
			Dimensions int
		}
		if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&in)) {
			return
		}
		vectors := make([][]float32, len(in.Input))
		for i, text := range in.Input {
			vectors[i] = make([]float32, in.Dimensions)
			vectors[i][0] = 1
			if text != "vet" {
				asked.Add(1)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": vectors})
	}))
	t.Cleanup(s.Close)
	store := new(vector.MemoryStore)
	for _, o := range []vector.HTTPEmbedderOptions{{Dimensions: 2}, {Dimensions: 3}, {Dimensions: 3, TextPrefix: "text: "}} {
		asked.Store(0)
		o.URL, o.Model = s.URL, "m"
		e, err := vector.NewOllamaEmbedder(o)
		require.NoError(t, err)
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()}, Semantic: &SemanticOptions{Embedder: e, Store: store}})
		embedded(t, m, 5)
		a := m.NewSession(nil).Find(t.Context(), "vet", SearchOptions{})
		assert.NoError(t, a.Err, e.Model())
		assert.EqualValues(t, 5, asked.Load(), e.Model())
		m.Close()
	}
}

func TestSemanticOptions(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { NewManager(&Options{Semantic: &SemanticOptions{}}) })
	assert.Panics(t, func() { NewManager(&Options{Semantic: &SemanticOptions{Embedder: newConcepts(), Alpha: 1.1}}) })
	assert.Panics(t, func() { NewManager(&Options{Semantic: &SemanticOptions{Embedder: newConcepts(), Timeout: -1}}) })
}

// If the service is slow, wrong, rate-limited or gone, no search fails or
// misses its deadline.
func TestSearchWithBadService(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{"slow", func(http.ResponseWriter, *http.Request) { <-release }, "deadline exceeded"},
		{"wrong", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"embedding":[1]}]}`) }, "it has 1 dimensions, want 5"},
		{"rate-limited", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "429 Too Many Requests"},
		{"gone", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bad atomic.Bool
			e := newConcepts()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if bad.Load() {
					test.serve(w, r)
					return
				}
				var in struct{ Input []string }
				if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&in)) {
					return
				}
				var data []map[string]any
				for _, text := range in.Input {
					data = append(data, map[string]any{"embedding": e.vector(text)})
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
			}))
			defer s.Close()
			if test.name == "slow" {
				defer close(release)
			}
			client := new(http.Client)
			defer client.CloseIdleConnections()
			const timeout = time.Second
			service, err := vector.NewOpenAIEmbedder(vector.HTTPEmbedderOptions{URL: s.URL, Model: "m", Dimensions: 5, Client: client})
			require.NoError(t, err)
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()},
				Semantic: &SemanticOptions{Embedder: service, Least: 0.5, Timeout: timeout}})
			embedded(t, m, 5)
			var a Answer
			soon(t, func() bool { // on a slow machine time may be up before
				a = m.Default().Find(t.Context(), "rain", SearchOptions{})
				return a.Err == nil
			})
			assert.Equal(t, []string{"mcp_s__forecast"}, hitNames(a.Hits))

			bad.Store(true)
			start := time.Now()
			a = m.Default().Find(t.Context(), "tomorrow's weather", SearchOptions{})
			assert.Less(t, time.Since(start), timeout+20*time.Second) // the service may take 30
			require.Error(t, a.Err)
			assert.Regexp(t, test.want+"|deadline exceeded", a.Err.Error(), "on a busy machine time may be up before")
			assert.Equal(t, []string{"mcp_s__forecast"}, hitNames(a.Hits))
		})
	}
}

// SPEC D6: if an external store had exactly these tools less than a day ago, we
// don't ask what it has.
func TestSpecD6Fingerprint(t *testing.T) {
	t.Parallel()
	cache, store := new(mcptest.Store), new(countingStore)
	start := func() {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Store: store, Cache: cache, Least: 0.5}})
		embedded(t, m, 5)
		soon(t, func() bool { data, _ := cache.Load(); return data != nil })
		assert.NotEmpty(t, m.Search("vet", 1))
		require.NoError(t, m.Close())
	}
	start()
	assert.EqualValues(t, 1, store.asked.Load())
	start()
	assert.EqualValues(t, 1, store.asked.Load())
	cache.Data = nil
	start()
	assert.EqualValues(t, 2, store.asked.Load())
}

// A countingStore counts how often it is asked what it has.
type countingStore struct {
	vector.MemoryStore
	asked atomic.Int64
}

func (s *countingStore) Sums(ctx context.Context, scope string) (map[string]string, error) {
	s.asked.Add(1)
	return s.MemoryStore.Sums(ctx, scope)
}

// A meeting is a ranker that waits until the other side has begun.
type meeting struct {
	ranker
	arrive func()
	there  chan struct{}
}

func (x meeting) Search(query string, n int, keep func(int) bool) []search.Match {
	x.arrive()
	<-x.there
	return x.ranker.Search(query, n, keep)
}

// The query is embedded while the search by words runs: each side waits for the
// other to begin.
func TestBothSidesAreSearchedAtOnce(t *testing.T) {
	t.Parallel()
	e := newConcepts()
	words, meaning := make(chan struct{}), make(chan struct{})
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()}, Semantic: &SemanticOptions{Embedder: e, Timeout: time.Minute}})
	embedded(t, m, 5)
	e.query = func(ctx context.Context) error {
		close(meaning)
		select {
		case <-words:
			return nil
		case <-time.After(50 * time.Second):
			return errors.New("words are searched for afterwards")
		}
	}
	v := m.def.view()
	p := v.parts(v.deferredTools())[0]
	x := &deferredIndex{ranker: meeting{p.index(), sync.OnceFunc(func() { close(words) }), meaning}, docs: p.split().docs}
	p.catalog = &catalog{owner: p.owner, tools: p.tools, deferredIndex: x}
	const query = "tomorrow's weather"
	a := searchAll(t.Context(), []searchPart{p}, searchRequest{query: query, n: 5, vector: m.semantic.QueryVector(query)})
	require.NoError(t, a.Err)
	assert.Equal(t, "mcp_s__forecast", a.Hits[0].Tool.name)
}

// A limit per server leaves enough of a user's and the system's tools, however many candidates of
// one server there are.
func TestServerLimitAsksForMoreOfUsers(t *testing.T) {
	t.Parallel()
	many := []mcpserver.ServerTool{}
	for i := range 3 * vector.DefaultCandidates {
		many = append(many, echoTool(fmt.Sprintf("walk_%03d", i), "dog dog dog"))
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts()}, Servers: []ServerConfig{serving("system", echoTool("groom", "dog car"))}})
	u, err := m.NewUser("ann", &UserOptions{SystemResults: -1, UserResults: -1, Servers: []ServerConfig{serving("many", many...), serving("few", echoTool("brush", "dog car car"))}})
	require.NoError(t, err)
	require.NoError(t, u.Start(t.Context()))
	embedded(t, m, 1)
	embedded(t, u.own, len(many)+1)
	for _, by := range []SearchSide{"", ByWords, ByMeaning} {
		a := u.Default().Find(t.Context(), "dog", SearchOptions{Limit: 3, ServerLimit: 1, By: by})
		require.NoError(t, a.Err)
		var servers []string
		for _, h := range a.Hits {
			servers = append(servers, h.Tool.Server())
		}
		assert.ElementsMatch(t, []string{"many", "few", "system"}, servers, by)
	}
}

// The defaults of what searches by meaning, and of what is selected just in time.
func TestSemanticOptionsTable(t *testing.T) {
	compareTable(t, "semanticoptions", "Options of searches by meaning, and of users, and what becomes of them.", func(table *factTable) {
		for _, o := range []SemanticOptions{
			{}, {Scope: "s", Alpha: 1, Candidates: 1, Least: 0.1, Timeout: 1, CacheTrust: 1, Grace: 1, ServerBudget: 1}, {Alpha: -1, CacheTrust: -1, Grace: -1}, {Alpha: 1.1}, {Alpha: math.NaN()}, {Candidates: -1}, {Timeout: -1}, {ServerBudget: -1},
		} {
			input := table.show(o)
			table.row("none: "+panics(o.setDefaults), input)
			o.Embedder = newConcepts()
			with := panics(o.setDefaults)
			o.Embedder, o.Cache = nil, nil
			table.row(input, with, o)
		}
		for _, o := range []JustInTimeOptions{{}, {1, 1}, {-1, 0}, {0, -1}} {
			with := panics(o.setDefaults)
			table.row("just in time", with, o)
		}
		for _, scope := range []string{"", "other"} {
			m, _ := newTestManager(t, &Options{Search: RankingOptions{Results: 7, Limit: 30}, JustInTime: &JustInTimeOptions{Results: 2}, Semantic: &SemanticOptions{Embedder: newConcepts(), Scope: scope}, Learn: &LearnOptions{HalfLife: time.Hour}, Usage: &UsageOptions{}})
			for i, o := range []*UserOptions{nil, {SystemResults: 1, UserResults: 2}, {SystemResults: -1}, {UserResults: -1}, {SystemResults: 25, UserResults: 6}, {SystemResults: 25, UserResults: 5}, {SystemResults: NoLimit, UserResults: NoLimit}} {
				if scope == "other" && i > 0 {
					break
				}
				u, err := m.NewUser(fmt.Sprint("u", i), o)
				require.NoError(t, err)
				own := u.own
				most := func(of *owner) string {
					if n, ok := own.user.most[of]; ok {
						return fmt.Sprint(n)
					}
					return "any"
				}
				table.row(fmt.Sprintf("a user beside %q: %s", scope, table.show(o)), fmt.Sprintf("finds %d of %d, of the system %s, of its own %s", own.opts.Search.Results, own.opts.Search.Limit, most(m.owner), most(own.owner)), *own.opts.JustInTime, fmt.Sprintf("scope %q, cache %t, of the system %q, half-life %s, usage %t", own.opts.Semantic.Scope, own.opts.Semantic.Cache != nil, m.opts.Semantic.Scope, own.opts.Learn.HalfLife, own.opts.Usage != nil))
			}
		}
	})
}
