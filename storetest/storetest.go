// Package storetest has the tests that every [vector.Store], every [store.Sessions] and
// every [store.Watched] must pass.
package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Subject describes the store to test. The tests own its engine: nothing else
// may use it at the same time.
type Subject struct {
	// Open opens the engine again with its current content, as after a restart or
	// from another process. Run calls it several times.
	Open func(t *testing.T) vector.Store

	// Broken opens a store whose engine can't be reached. If nil, Run skips the
	// tests of that case.
	Broken func(t *testing.T) vector.Store

	// Slow opens a store whose engine accepts connections but never answers. If
	// nil, Run skips the tests of that case.
	Slow func(t *testing.T) vector.Store

	// NoWords says that the store searches by vector only.
	NoWords bool

	// OwnFusion says that the store does not compute the Score of a search by words
	// and vector as [vector.Fuse] does.
	OwnFusion bool

	// Approximate says that a search by vector may miss some of many equally near
	// records, as a graph index does.
	Approximate bool

	// Eventually says that a write may become visible a little later.
	Eventually bool
}

const dims = 8

// tool returns a record whose vector points along an axis, turned slightly toward
// the next one.
func tool(id, server, text string, axis int, turn float64) vector.Record {
	v := make([]float32, dims)
	v[axis%dims] = float32(math.Cos(turn))
	v[(axis+1)%dims] = float32(math.Sin(turn))
	return vector.Record{ID: id, Sum: "sum of " + id, Server: server, Text: text, Vector: v}
}

func axis(n int) []float32 { return tool("", "", "", n, 0).Vector }

func ids(matches []vector.Match) []string {
	list := []string{}
	for _, m := range matches {
		list = append(list, m.ID)
	}
	return list
}

// Run runs all tests, each in its own scope.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *run)
	}{
		{"ByMeaning", byMeaning}, {"ByWords", byWords}, {"Both", both}, {"Replace", replace}, {"Delete", remove}, {"Get", get}, {"Readers", readers},
		{"Servers", servers}, {"Least", least}, {"LeastItself", leastItself}, {"Ties", ties}, {"ManyTies", manyTies}, {"Limits", limits}, {"Scopes", scopes}, {"Names", names},
		{"Dimensions", dimensions}, {"BadVectors", badVectors}, {"Empty", empty}, {"Restart", restart},
		{"Huge", huge}, {"Histories", histories}, {"Concurrent", concurrent}, {"Context", contexts},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := s.Open(t)
			scope := fmt.Sprintf("test %s %d", test.name, rand.Uint64())
			r := &run{Subject: s, store: store, scope: scope}
			t.Cleanup(func() { assert.NoError(t, store.Drop(context.Background(), scope)) })
			test.run(t, r)
		})
	}
	t.Run("Broken", func(t *testing.T) {
		if s.Broken == nil {
			t.Skip("this engine can't be away")
		}
		fails(t, s.Broken(t), 30*time.Second)
	})
	t.Run("Slow", func(t *testing.T) {
		if s.Slow == nil {
			t.Skip("this engine can't be slow")
		}
		fails(t, s.Slow(t), 500*time.Millisecond)
	})
}

// A run is one running test.
type run struct {
	Subject
	store vector.Store
	scope string
}

func (r *run) put(t *testing.T, tools ...vector.Record) {
	t.Helper()
	require.NoError(t, r.store.Upsert(t.Context(), r.scope, tools))
}

// finds asserts that q finds exactly these IDs in this order.
func (r *run) finds(t *testing.T, q vector.Query, want ...string) []vector.Match {
	t.Helper()
	return r.findsIn(t, r.scope, q, want...)
}

func (r *run) findsIn(t *testing.T, scope string, q vector.Query, want ...string) (found []vector.Match) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 10
	}
	if want == nil {
		want = []string{}
	}
	search := func() bool {
		var err error
		found, err = r.store.Search(t.Context(), scope, q)
		return assert.NoError(t, err) && assert.ObjectsAreEqual(want, ids(found))
	}
	if r.Eventually {
		assert.Eventually(t, search, time.Minute, 20*time.Millisecond)
	} else {
		search()
	}
	assert.Equal(t, want, ids(found))
	for i, m := range found {
		assert.True(t, m.Score > 0 && (i == 0 || m.Score <= found[i-1].Score), "scores %v", found)
	}
	return found
}

func byMeaning(t *testing.T, r *run) {
	r.put(t, tool("c", "s", "third", 0, 0.6), tool("a", "s", "first", 0, 0.1), tool("b", "s", "second", 0, 0.3), tool("d", "s", "none", 4, 0))
	found := r.finds(t, vector.Query{Vector: axis(0)}, "a", "b", "c")
	for i, turn := range []float64{0.1, 0.3, 0.6} {
		assert.InDelta(t, math.Cos(turn), found[i].Similarity, 1e-3)
		assert.Equal(t, "s", found[i].Server)
	}
	longer := axis(0)
	longer[0] = 17 // only the direction matters
	r.finds(t, vector.Query{Vector: longer}, "a", "b", "c")
}

func byWords(t *testing.T, r *run) {
	if r.NoWords {
		t.Skip("this store finds by meaning only")
	}
	r.put(t, tool("issue", "s", "create an issue in a repository", 0, 0), tool("weather", "s", "the weather of tomorrow", 1, 0),
		vector.Record{ID: "plain", Sum: "x", Server: "s", Text: "close the issue"})
	found := r.finds(t, vector.Query{Words: "tomorrow's weather"}, "weather")
	assert.Positive(t, found[0].Words)
	assert.Zero(t, found[0].Similarity)
	r.finds(t, vector.Query{Words: "create a new issue"}, "issue", "plain")
	r.finds(t, vector.Query{Words: "zebra"})
	for _, strange := range []string{"", "   ", `"`, `a & | ! ( ) : * ' \`, "' or 1=1 --", "NOT", "or or or", "日本語", "\x00 issue", "weather\xff"} {
		_, err := r.store.Search(t.Context(), r.scope, vector.Query{Words: strange, Limit: 3})
		assert.NoError(t, err, "%q", strange)
	}
}

func both(t *testing.T, r *run) {
	if r.NoWords {
		t.Skip("this store finds by meaning only")
	}
	r.put(t, tool("words", "s", "send a letter", 4, 0), tool("meaning", "s", "electronic post", 0, 0.2), tool("both", "s", "send a message", 0, 0.3))
	q := vector.Query{Words: "send", Vector: axis(0), Alpha: 0.6}
	found := r.finds(t, q, "both", "meaning", "words")
	if !r.OwnFusion {
		for _, m := range found {
			assert.InDelta(t, 0.6*m.Similarity+0.4*m.Words, m.Score, 1e-6)
		}
		assert.InDelta(t, 0.6*math.Cos(0.2), found[1].Score, 1e-3)
	}
	q.Alpha = 0.01
	found = r.finds(t, q, "both", "words", "meaning")
	assert.Positive(t, found[0].Words)
	q.Words = "zebra" // the words find nothing
	q.Alpha = 0.6
	r.finds(t, q, "meaning", "both")
}

func servers(t *testing.T, r *run) {
	for i := range 30 { // more than the limit, and nearer
		r.put(t, tool(fmt.Sprintf("near%02d", i), "loud", "send it", 0, 0.001*float64(i)))
	}
	r.put(t, tool("far", "quiet", "send it", 0, 1), tool("farther", "it's", "send it", 0, 1.1))
	r.finds(t, vector.Query{Vector: axis(0), Servers: []string{"quiet", "it's"}, Limit: 5, Candidates: 5}, "far", "farther")
	r.finds(t, vector.Query{Vector: axis(0), Servers: []string{"nobody"}})
	r.finds(t, vector.Query{Vector: axis(0), Servers: []string{}})
	if !r.NoWords {
		r.finds(t, vector.Query{Words: "send", Servers: []string{"quiet"}, Limit: 5, Candidates: 5}, "far")
	}
}

func least(t *testing.T, r *run) {
	r.put(t, tool("a", "s", "x", 0, 0.2), tool("b", "s", "x", 0, 1), tool("opposite", "s", "x", 0, math.Pi))
	r.finds(t, vector.Query{Vector: axis(0), Least: 0.75}, "a")
	r.finds(t, vector.Query{Vector: axis(0), Least: 0.99})
	r.finds(t, vector.Query{Vector: axis(0)}, "a", "b")
}

func ties(t *testing.T, r *run) {
	r.put(t, tool("d", "s", "chess", 0, 0.5), tool("b", "s", "chess", 0, 0.5), tool("a", "s", "chess", 0, 0.5), tool("c", "s", "chess", 0, 0.5))
	r.finds(t, vector.Query{Vector: axis(0)}, "a", "b", "c", "d")
	r.finds(t, vector.Query{Vector: axis(0), Limit: 2, Candidates: 4}, "a", "b")
	if !r.NoWords {
		r.finds(t, vector.Query{Words: "chess", Limit: 4}, "a", "b", "c", "d")
	}
}

// A similarity equal to Least counts; one slightly below does not.
func leastItself(t *testing.T, r *run) {
	same, some := tool("same", "s", "x", 0, 0), tool("some", "s", "x", 0, 0)
	some.Vector[0], some.Vector[1] = 3, 4 // a cosine of 0.6
	r.put(t, same, some)
	r.finds(t, vector.Query{Vector: axis(0), Least: 1}, "same")
	r.finds(t, vector.Query{Vector: axis(0), Least: 0.6}, "same", "some")
	r.finds(t, vector.Query{Vector: axis(0), Least: 0.60001}, "same")
	r.finds(t, vector.Query{Vector: axis(0), Least: 1.00001})
}

// If more records tie than there are candidates, the first by ID are found.
func manyTies(t *testing.T, r *run) {
	const n = 300
	tools := []vector.Record{tool("zz", "s", "chess chess", 0, 0)}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		tools = append(tools, tool(fmt.Sprintf("t%03d", i), "s", "chess club", 0, 0.5))
	}
	r.put(t, tools...)
	if !r.NoWords {
		r.finds(t, vector.Query{Words: "chess", Limit: 3, Candidates: 3}, "zz", "t000", "t001")
	}
	if r.Approximate {
		t.Skip("this store's order of many equally near ones is not exact")
	}
	r.finds(t, vector.Query{Vector: axis(0), Limit: 3, Candidates: 3}, "zz", "t000", "t001")
	r.finds(t, vector.Query{Vector: axis(0), Limit: 1, Candidates: 2}, "zz")
	if !r.NoWords {
		r.finds(t, vector.Query{Words: "chess", Vector: axis(0), Alpha: 0.5, Limit: 3, Candidates: 3}, "zz", "t000", "t001")
	}
	r.finds(t, vector.Query{Vector: axis(0), Limit: n + 1}, append([]string{"zz"}, sequence("t%03d", n)...)...)
}

// sequence returns n IDs in ascending order.
func sequence(format string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return list
}

func limits(t *testing.T, r *run) {
	r.put(t, tool("a", "s", "chess", 0, 0.1), tool("b", "s", "chess", 0, 0.2), tool("c", "s", "chess", 0, 0.3))
	r.finds(t, vector.Query{Vector: axis(0), Limit: 1, Candidates: 1}, "a")
	r.finds(t, vector.Query{Vector: axis(0), Limit: 1000}, "a", "b", "c")
	r.finds(t, vector.Query{Vector: axis(0), Limit: -1})
	_, err := r.store.Search(t.Context(), r.scope, vector.Query{Vector: axis(0), Limit: 3, Alpha: 1.5})
	assert.ErrorContains(t, err, "alpha is 1.5")
}

// No scope sees the records of another, whatever its name.
func scopes(t *testing.T, r *run) {
	others := []string{r.scope + "_", r.scope + "%", "x" + r.scope, r.scope + "'; drop table tools; --", r.scope + "/Ünï 人"}
	r.put(t, tool("shared", "s", "private words", 0, 0), tool("mine", "s", "private words", 0, 0.1))
	for i, scope := range others {
		t.Cleanup(func() { assert.NoError(t, r.store.Drop(context.Background(), scope)) })
		require.NoError(t, r.store.Upsert(t.Context(), scope, []vector.Record{tool("shared", "s", fmt.Sprint("private other ", i), 0, 0.2)}))
	}
	for _, scope := range others {
		r.findsIn(t, scope, vector.Query{Vector: axis(0)}, "shared")
		if !r.NoWords {
			r.findsIn(t, scope, vector.Query{Words: "private"}, "shared")
			r.findsIn(t, scope, vector.Query{Words: "words"})
		}
	}
	require.NoError(t, r.store.Delete(t.Context(), others[0], []string{"shared", "mine"}))
	require.NoError(t, r.store.Drop(t.Context(), others[1]))
	found := r.finds(t, vector.Query{Vector: axis(0)}, "shared", "mine")
	assert.InDelta(t, 1, found[0].Similarity, 1e-3)
	r.findsIn(t, others[2], vector.Query{Vector: axis(0)}, "shared")
	r.findsIn(t, "nobody has put anything here", vector.Query{Vector: axis(0), Words: "private"})
}

// IDs and texts may be any strings.
func names(t *testing.T, r *run) {
	list := []string{"a'b\"c", "ünï 人 🙂", "%_\\", "a/b?c#d", "-", "UPPER", "upper"}
	var tools []vector.Record
	for i, id := range list {
		tools = append(tools, tool(id, "s", "text of "+id+" "+string(rune('a'+i)), i%dims, 0))
	}
	r.put(t, tools...)
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Len(t, sums, len(list))
	for i, id := range list {
		assert.Equal(t, "sum of "+id, sums[id])
		r.finds(t, vector.Query{Vector: axis(i), Limit: 1}, id)
	}
}

func dimensions(t *testing.T, r *run) {
	r.put(t, tool("a", "s", "x", 0, 0))
	wrong := tool("b", "s", "x", 0, 0)
	wrong.Vector = wrong.Vector[:dims-1]
	err := r.store.Upsert(t.Context(), r.scope, []vector.Record{wrong})
	assert.ErrorIs(t, err, vector.ErrDimensions)
	_, err = r.store.Search(t.Context(), r.scope, vector.Query{Vector: wrong.Vector, Limit: 1})
	assert.ErrorIs(t, err, vector.ErrDimensions)
	r.finds(t, vector.Query{Vector: axis(0)}, "a")
}

func badVectors(t *testing.T, r *run) {
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), 0} {
		bad := tool("a", "s", "x", 0, 0)
		bad.Vector[0] = x
		assert.Error(t, r.store.Upsert(t.Context(), r.scope, []vector.Record{bad}))
		_, err := r.store.Search(t.Context(), r.scope, vector.Query{Vector: bad.Vector, Limit: 1})
		assert.Error(t, err)
	}
}

func empty(t *testing.T, r *run) {
	r.finds(t, vector.Query{Vector: axis(0), Words: "x"})
	r.put(t)
	require.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"a"}))
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Empty(t, sums)
	r.put(t, vector.Record{ID: "a", Sum: "1", Server: "s"})
	r.finds(t, vector.Query{Vector: axis(0)})
}

func restart(t *testing.T, r *run) {
	r.put(t, tool("a", "s", "some words", 0, 0))
	other := *r
	other.store = r.Open(t)
	other.finds(t, vector.Query{Vector: axis(0)}, "a")
	other.put(t, tool("b", "s", "more words", 0, 0.1))
	r.finds(t, vector.Query{Vector: axis(0)}, "a", "b")
}

func huge(t *testing.T, r *run) {
	const n = 3000
	var tools []vector.Record
	var all []string
	for i := range n {
		tools = append(tools, tool(fmt.Sprintf("tool %04d", i), "s", fmt.Sprint("number ", i), i, 0.0001*float64(i)))
		all = append(all, tools[i].ID)
	}
	r.put(t, tools...)
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Len(t, sums, n)
	r.finds(t, vector.Query{Vector: tools[1234].Vector, Limit: 1}, "tool 1234")
	require.NoError(t, r.store.Delete(t.Context(), r.scope, all[1:]))
	r.finds(t, vector.Query{Vector: axis(0)}, "tool 0000")
}

// Concurrent writers of the same records all succeed, in any order.
func concurrent(t *testing.T, r *run) {
	const writers, rounds, n = 8, 5, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for round := range rounds {
				var tools []vector.Record
				for _, i := range random.Perm(n) {
					tools = append(tools, tool(fmt.Sprintf("t%02d", i), "s", "x", i, 0))
				}
				assert.NoError(t, r.store.Upsert(t.Context(), r.scope, tools))
				_, err := r.store.Search(t.Context(), r.scope, vector.Query{Vector: axis(w), Limit: 5})
				assert.NoError(t, err)
				if round%2 == 1 {
					assert.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"gone", fmt.Sprint("w", w)}))
				}
			}
			assert.NoError(t, r.store.Upsert(t.Context(), r.scope, []vector.Record{tool(fmt.Sprint("w", w), "s", "x", w, 0)}))
		})
	}
	wg.Wait()
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Len(t, sums, n+writers)
}

func contexts(t *testing.T, r *run) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.store.Search(ctx, r.scope, vector.Query{Vector: axis(0), Limit: 1})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = r.store.Get(ctx, r.scope, []string{"a"})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = r.store.Sums(ctx, r.scope)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, r.store.Upsert(ctx, r.scope, []vector.Record{tool("a", "s", "x", 0, 0)}), context.Canceled)
	assert.ErrorIs(t, r.store.Delete(ctx, r.scope, []string{"a"}), context.Canceled)
	assert.ErrorIs(t, r.store.Drop(ctx, r.scope), context.Canceled)
}

// fails asserts that all methods of store return errors within the given time.
func fails(t *testing.T, store vector.Store, within time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	begun := time.Now()
	_, searching := store.Search(ctx, "scope", vector.Query{Vector: axis(0), Words: "x", Limit: 1})
	_, summing := store.Sums(ctx, "scope")
	_, getting := store.Get(ctx, "scope", []string{"a"})
	for name, err := range map[string]error{
		"Search": searching, "Sums": summing, "Get": getting,
		"Upsert": store.Upsert(ctx, "scope", []vector.Record{tool("a", "s", "x", 0, 0)}),
		"Delete": store.Delete(ctx, "scope", []string{"a"}),
		"Drop":   store.Drop(ctx, "scope"),
	} {
		assert.Error(t, err, name)
		assert.NotErrorIs(t, err, vector.ErrDimensions, name)
	}
	assert.Less(t, time.Since(begun), within+20*time.Second)
}
