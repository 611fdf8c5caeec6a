package meaning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lengths is an embedder that knows how long texts are.
type lengths struct{}

func (lengths) Model() string   { return "lengths" }
func (lengths) Dimensions() int { return 2 }
func (lengths) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{1, float32(len(text))}
	}
	return vectors, nil
}
func (e lengths) EmbedQuery(ctx context.Context, query string) ([]float32, error) {
	v, err := e.Embed(ctx, []string{query})
	return v[0], err
}

// While texts come and go at once from many sides, one goroutine works; at rest the
// store holds the last texts, and nothing else.
func TestConcurrentChanges(t *testing.T) {
	store := new(vector.MemoryStore)
	var cur atomic.Pointer[[]*Text]
	cur.Store(new([]*Text))
	var inside, most, changes atomic.Int64
	k := New(Options{Embedder: lengths{}, Model: "lengths", Store: store, Scope: "x", Private: true, Timeout: time.Minute, Budget: math.MaxInt,
		Log: slog.New(slog.DiscardHandler), Current: func() ([]*Text, func() map[string][]string) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			return *cur.Load(), nil
		}}, nil)
	var running sync.WaitGroup
	var mu sync.Mutex
	change := func(text *Text) {
		mu.Lock()
		defer mu.Unlock()
		list := append((*cur.Load())[:len(*cur.Load()):len(*cur.Load())], text)
		if len(list) > 50 {
			list = list[1:]
		}
		cur.Store(&list)
		changes.Add(1)
		k.Changed(func(run func(context.Context)) {
			running.Go(func() { run(t.Context()) })
		})
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("t%d_%d", g, i)
				change(k.NewText(Source{ID: name, Server: fmt.Sprint("s", g), Name: name, Text: strings.Repeat("x", 1+i%7)}))
				_, _ = k.Search(t.Context(), "query", 3, k.QueryVector("query"), func(string) bool { return true }, 50)
			}
		})
	}
	wg.Wait()
	running.Wait()
	assert.True(t, k.Idle())
	assert.True(t, k.InStep())
	assert.EqualValues(t, 1600, changes.Load())
	assert.EqualValues(t, 1, most.Load())
	sums, err := store.Sums(t.Context(), "x")
	require.NoError(t, err)
	assert.Equal(t, sumsOf(*cur.Load()), sums)
}

// A sum tells whose record it is, and only a server that was asked denies it.
func TestSaid(t *testing.T) {
	sum := New(Options{}, nil).NewText(Source{ID: "id", Server: "b", Name: "tool", Text: "text"}).sum
	for name, test := range map[string]struct {
		listed map[string][]string
		denied bool
	}{
		"not asked":         {nil, false},
		"another was asked": {map[string][]string{"a": nil}, false},
		"has it":            {map[string][]string{"b": {"other", "tool"}}, false},
		"has others":        {map[string][]string{"b": {"other"}}, true},
		"has none":          {map[string][]string{"b": nil}, true},
	} {
		assert.Equal(t, test.denied, saidBy(test.listed).denies(sum), name)
	}
	for _, foreign := range []string{"", "x", strings.Repeat("0", 32), "sum of another program, which is long enough"} {
		assert.False(t, saidBy(map[string][]string{"b": nil, "": nil}).denies(foreign), "%q", foreign)
	}
}

func TestBudget(t *testing.T) {
	k := New(Options{Budget: 240, Log: slog.New(slog.DiscardHandler)}, nil)
	now := time.Now()
	texts := func(server string, n int) (list []*Text) {
		for i := range n {
			list = append(list, k.NewText(Source{ID: fmt.Sprint(server, i), Server: server, Name: fmt.Sprint(i), Text: "text"}))
		}
		return list
	}
	all := append(texts("a", 300), texts("b", 2)...)
	ordered := k.inTurn(all)
	assert.Equal(t, []string{"a0", "b0", "a1", "b1", "a2"}, []string{ordered[0].ID, ordered[1].ID, ordered[2].ID, ordered[3].ID, ordered[4].ID})
	admitted, wait, err := k.admit(ordered, now)
	assert.Len(t, admitted, 242)
	assert.EqualError(t, err, `server "a" has used up its budget of 240 texts a day`)
	assert.Equal(t, 6*time.Hour, wait, "until 60 more may be")
	k.spend(admitted, now)
	admitted, _, err = k.admit(texts("a", 300), now.Add(time.Hour))
	assert.Len(t, admitted, 10)
	assert.Error(t, err)
	k.forgetFull(now.Add(24 * time.Hour))
	assert.Empty(t, k.budgets, "what is not spent takes no room")
	admitted, wait, err = k.admit(texts("a", 240), now.Add(24*time.Hour))
	assert.Len(t, admitted, 240)
	assert.Zero(t, wait)
	assert.NoError(t, err)

	// The error names the server of the first text that waits, be it one or more.
	for _, test := range []struct {
		texts []*Text
		want  string
	}{{texts("a", 241), "a"}, {texts("b", 242), "b"}, {k.inTurn(append(texts("b", 242), texts("a", 243)...)), "b"}, {append(texts("a", 241), texts("b", 300)...), "a"}} {
		fresh := New(k.Options, nil)
		admitted, _, err := fresh.admit(test.texts, now)
		assert.Zero(t, len(admitted)%240)
		assert.EqualError(t, err, fmt.Sprintf(`server %q has used up its budget of 240 texts a day`, test.want))
	}
}

// The log says once a day that a server's budget is used up.
func TestBudgetIsToldDaily(t *testing.T) {
	var log strings.Builder
	k := New(Options{Budget: 24, Log: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	var texts []*Text
	for i := range 30 {
		texts = append(texts, k.NewText(Source{ID: fmt.Sprint(i), Server: "a", Name: fmt.Sprint(i), Text: "text"}))
	}
	begin := time.Now()
	for _, test := range []struct {
		after time.Duration
		told  int
	}{{0, 1}, {day - 1, 1}, {day, 2}, {2*day - 1, 2}, {2 * day, 3}} {
		_, _, err := k.admit(texts, begin.Add(test.after))
		assert.EqualError(t, err, `server "a" has used up its budget of 24 texts a day`)
		assert.Equal(t, test.told, strings.Count(log.String(), "server=a budget=24 waiting="), "%v", test.after)
		k.spend(texts, begin.Add(test.after)) // more than is left, so that nothing is forgotten
	}
}

// An asked remembers what a store was asked for.
type asked struct {
	vector.Store
	queries []vector.Query
}

func (s *asked) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	s.queries = append(s.queries, q)
	return s.Store.Search(ctx, scope, q)
}

// The store is asked for more records than there are candidates, and for those that are
// less similar than a match must be: they tell how similar records are in general.
func TestSearchAsksForMore(t *testing.T) {
	t.Parallel()
	store := &asked{Store: new(vector.MemoryStore)}
	var texts []*Text
	k := New(Options{Embedder: lengths{}, Model: "lengths", Store: store, Scope: "x", Private: true, Timeout: time.Minute, Budget: math.MaxInt, Least: 0.99,
		Log: slog.New(slog.DiscardHandler), Current: func() ([]*Text, func() map[string][]string) { return texts, nil }}, nil)
	for i := range 9 {
		name := fmt.Sprint("t", i)
		texts = append(texts, k.NewText(Source{ID: name, Server: "s", Name: name, Text: strings.Repeat("x", 1+i)}))
	}
	k.Changed(func(run func(context.Context)) { run(t.Context()) })

	// The vector of the query is that of t2; t0 and t1 are less similar than 0.99.
	f, err := k.Search(t.Context(), "xxx", 8, k.QueryVector("xxx"), func(id string) bool { return id != "t8" }, 8)
	require.NoError(t, err)
	assert.Equal(t, []string{"t2", "t3", "t4"}, idsOf(f.Matches)[:3])
	assert.NotContains(t, idsOf(f.Matches), "t0")
	assert.Contains(t, idsOf(f.all), "t0")
	assert.NotContains(t, idsOf(f.all), "t8")
	require.Len(t, store.queries, 1)
	assert.Equal(t, []any{sample, sample, 0.0}, []any{store.queries[0].Limit, store.queries[0].Candidates, store.queries[0].Least})
	f, err = k.Search(t.Context(), "xxx", 2, k.QueryVector("xxx"), func(string) bool { return true }, 9)
	require.NoError(t, err)
	assert.Len(t, f.Matches, 2)
	assert.Len(t, f.all, 9)

	// If too few are left, it is asked for four times as many, until it has no more.
	for i := 9; i < 300; i++ {
		name := fmt.Sprint("t", i)
		texts = append(texts, k.NewText(Source{ID: name, Server: "s", Name: name, Text: strings.Repeat("x", 1+i)}))
	}
	k.Changed(func(run func(context.Context)) { run(t.Context()) })
	for _, test := range []struct {
		keep  func(id string) bool
		found int
		asked []int
	}{
		{func(id string) bool { return true }, 200, []int{200}},
		{func(id string) bool { return id != "t2" }, 199, []int{200}},
		{func(id string) bool { return id == "t2" || id == "t0" }, 2, []int{200, 800}},
		{func(id string) bool { return false }, 0, []int{200, 800}},
	} {
		store.queries = nil
		f, err = k.Search(t.Context(), "xxx", 2, k.QueryVector("xxx"), test.keep, 300)
		require.NoError(t, err)
		var asked []int
		for _, q := range store.queries {
			asked = append(asked, q.Limit)
			assert.Equal(t, q.Limit, q.Candidates)
		}
		assert.Equal(t, test.asked, asked)
		assert.Len(t, f.all, test.found)
		assert.Equal(t, test.found, f.top)
	}
}

// refusing is a store of a host whose searches fail.
type refusing struct{ vector.Store }

func (refusing) Search(context.Context, string, vector.Query) ([]vector.Match, error) {
	return nil, errors.New("no disk")
}

// A search that found only some of the texts, or none, says so and why.
func TestSearchSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	kept := &asked{Store: new(vector.MemoryStore)} // as that of a host
	var texts []*Text
	k := New(Options{Embedder: lengths{}, Model: "lengths", Store: kept, Scope: "x", Private: true, Timeout: time.Minute, Budget: math.MaxInt,
		Log: slog.New(slog.DiscardHandler), Current: func() ([]*Text, func() map[string][]string) { return texts, nil }}, nil)
	search := func() (int, error) {
		f, err := k.Search(t.Context(), "xx", 8, k.QueryVector("xx"), func(string) bool { return true }, 2)
		return len(f.Matches), err
	}
	_, err := search()
	assert.ErrorIs(t, err, ErrNotEmbedded)
	for i := range 2 {
		name := fmt.Sprint("t", i)
		texts = append(texts, k.NewText(Source{ID: name, Server: "s", Name: name, Text: name}))
	}
	k.Changed(func(run func(context.Context)) { run(t.Context()) })
	for _, test := range []struct {
		reached Progress
		matches int
		want    string
	}{
		{Progress{Done: 2, Total: 2}, 2, ""},
		{Progress{Done: 1, Total: 2}, 2, "1 of 2 tools are embedded so far"},
		{Progress{Done: 1, Total: 2, Err: errors.New("no key")}, 2, "1 of 2 tools are embedded: no key"},
		{Progress{Total: 2, Err: errors.New("no key")}, 0, "no key"},
		{Progress{Total: 2}, 0, ErrNotEmbedded.Error()},
	} {
		k.note(test.reached)
		n, err := search()
		assert.Equal(t, test.matches, n)
		if test.want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, test.want)
		}
	}
	k.note(Progress{Done: 2, Total: 2})
	k.Store = refusing{kept}
	n, err := search()
	assert.ErrorContains(t, err, "no disk")
	assert.Zero(t, n)
}

// sharing is a store of a host that gives what it keeps itself.
type sharing struct {
	vector.Store
	found []vector.Match
	sums  map[string]string
}

func (s *sharing) Search(context.Context, string, vector.Query) ([]vector.Match, error) {
	return s.found, nil
}

func (s *sharing) Sums(context.Context, string) (map[string]string, error) { return s.sums, nil }

// What a store, a caller or the list of texts gives is not written to.
func TestWhatIsGivenStays(t *testing.T) {
	t.Parallel()
	store := &sharing{Store: new(vector.MemoryStore), sums: map[string]string{"gone": "x"}}
	var texts []*Text
	k := New(Options{Embedder: lengths{}, Model: "lengths", Store: store, Scope: "x", Private: true, Timeout: time.Minute, Budget: math.MaxInt,
		Log: slog.New(slog.DiscardHandler), Current: func() ([]*Text, func() map[string][]string) { return texts, nil }}, nil)
	for i := range 3 {
		name := fmt.Sprint("t", i)
		texts = append(texts, k.NewText(Source{ID: name, Server: "s", Name: name, Text: strings.Repeat("x", 1+i)}))
		store.found = append(store.found, vector.Match{ID: name, Similarity: 1})
	}
	store.sums["t0"] = texts[0].sum
	listed, found := slices.Clone(texts), slices.Clone(store.found)
	k.Changed(func(run func(context.Context)) { run(t.Context()) })
	assert.Equal(t, listed, texts)
	assert.Equal(t, map[string]string{"gone": "x", "t0": texts[0].sum}, store.sums)

	k.note(Progress{Done: 3, Total: 3})
	f, err := k.Search(t.Context(), "xx", 3, k.QueryVector("xx"), func(id string) bool { return id != "t0" }, 2)
	require.NoError(t, err)
	assert.Equal(t, []string{"t1", "t2"}, idsOf(f.Matches))
	assert.Equal(t, found, store.found)
	before := slices.Clone(f.Matches)
	f.Matches = append(make([]vector.Match, 0, 9), f.Matches...)
	f.Fuse(byWords(7, 8))
	assert.Equal(t, before, f.Matches)
	assert.Equal(t, make([]vector.Match, 7), f.Matches[2:9])
}
