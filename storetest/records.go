package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func replace(t *testing.T, r *run) {
	a := tool("a", "s", "old words", 0, 0)
	r.put(t, a, tool("b", "s", "other", 0, 0.5))
	a.Vector, a.Text, a.Sum = axis(4), "new", "changed"
	r.put(t, a)
	r.put(t, a) // again
	r.finds(t, vector.Query{Vector: axis(0)}, "b")
	r.finds(t, vector.Query{Vector: axis(4)}, "a")

	// The last record of an ID wins, with or without a vector.
	r.put(t, tool("c", "s", "other", 6, 0), vector.Record{ID: "c", Sum: "none", Server: "s"})
	r.finds(t, vector.Query{Vector: axis(6)})
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Equal(t, "none", sums["c"], "it is there")
	r.put(t, vector.Record{ID: "c", Sum: "none", Server: "s"}, tool("c", "s", "other", 6, 0))
	r.finds(t, vector.Query{Vector: axis(6)}, "c")
	require.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"c"}))
	sums, err = r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "changed", "b": "sum of b"}, sums)
}

func remove(t *testing.T, r *run) {
	r.put(t, tool("a", "s", "one", 0, 0), tool("b", "s", "two", 0, 0.5), tool("c", "s", "three", 0, 0.7))
	require.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"b", "unknown"}))
	r.finds(t, vector.Query{Vector: axis(0)}, "a", "c")
	require.NoError(t, r.store.Delete(t.Context(), r.scope, nil))
	require.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"a", "c"}))
	r.finds(t, vector.Query{Vector: axis(0)})
	require.NoError(t, r.store.Drop(t.Context(), r.scope))
	require.NoError(t, r.store.Drop(t.Context(), r.scope))
	sums, err := r.store.Sums(t.Context(), r.scope)
	require.NoError(t, err)
	assert.Empty(t, sums)
	r.put(t, tool("b", "s", "back", 0, 0))
	r.finds(t, vector.Query{Vector: axis(0)}, "b")
}

// gets returns the records with these IDs, by ID.
func (r *run) gets(t *testing.T, scope string, ids ...string) map[string]vector.Record {
	t.Helper()
	list, err := r.store.Get(t.Context(), scope, ids)
	require.NoError(t, err)
	records := make(map[string]vector.Record)
	for _, record := range list {
		records[record.ID] = record
	}
	assert.Len(t, list, len(records))
	return records
}

// What was put can be read again, with a vector of the same direction.
func get(t *testing.T, r *run) {
	assert.Empty(t, r.gets(t, r.scope, "a"), "an unknown scope")
	a, longer := tool("a", "s", "one", 0, 0.3), tool("longer", "it's", "two", 2, 0.5)
	for i := range longer.Vector {
		longer.Vector[i] *= 17
	}
	r.put(t, a, longer, tool("other", "s", "three", 4, 0), vector.Record{ID: "plain", Sum: "none", Server: "s", Text: "four"})
	got := r.gets(t, r.scope, "longer", "a", "plain", "unknown", "a\xff")
	require.Len(t, got, 3)
	for id, want := range map[string]vector.Record{"a": a, "longer": tool("longer", "it's", "", 2, 0.5)} {
		length := 0.0
		for _, x := range got[id].Vector {
			length += float64(x) * float64(x)
		}
		require.Len(t, got[id].Vector, dims)
		for i, x := range got[id].Vector {
			assert.InDelta(t, want.Vector[i], float64(x)/math.Sqrt(length), 1e-3, "%s at %d", id, i)
		}
		assert.Equal(t, []string{want.Sum, want.Server}, []string{got[id].Sum, got[id].Server})
	}
	assert.Equal(t, vector.Record{ID: "plain", Sum: "none", Server: "s"}, got["plain"])
	assert.Empty(t, r.gets(t, r.scope))
	assert.Empty(t, r.gets(t, r.scope+" other", "a"))

	// What was read can be put again, as its owner does who has another Sum for it.
	again := got["a"]
	again.Sum, again.Text, again.Schema = "changed", a.Text, "{}"
	r.put(t, again)
	assert.Equal(t, "changed", r.gets(t, r.scope, "a")["a"].Sum)
	r.finds(t, vector.Query{Vector: axis(0)}, "a")
	require.NoError(t, r.store.Delete(t.Context(), r.scope, []string{"a"}))
	assert.Empty(t, r.gets(t, r.scope, "a"))
}

// What is for readers is kept as it is, as far as it is text, and found by no search.
func readers(t *testing.T, r *run) {
	a, plain := tool("a", "s", "some words", 0, 0), vector.Record{ID: "plain", Sum: "1", Server: "s", Text: "more"}
	a.Description = "It's a zebra's \"view\"\n日本語 🙂"
	a.Schema = `{"type":"object","description":"zebra \u0000 \ud800","properties":{"b":{"const":1.0},"a":{}}}`
	plain.Description, plain.Schema = "no vector", "true"
	long := tool("long", "s", "x", 4, 0)
	long.Schema = `{"description":"` + strings.Repeat("zebra ", 200_000) + `"}`
	r.put(t, a, plain, long, tool("none", "s", "x", 6, 0))
	got := r.gets(t, r.scope, "a", "plain", "long", "none")
	for _, want := range []vector.Record{a, plain, long, {ID: "none"}} {
		assert.Equal(t, want.Description, got[want.ID].Description)
		assert.True(t, want.Schema == got[want.ID].Schema, "%.200s", got[want.ID].Schema)
	}
	if !r.NoWords {
		r.finds(t, vector.Query{Words: "zebra"})
	}
	a.Description, a.Schema = "", "" // the whole record is replaced
	r.put(t, a)
	assert.Empty(t, r.gets(t, r.scope, "a")["a"].Description+r.gets(t, r.scope, "a")["a"].Schema)
	a.Description, a.Schema = "bad \xff and \x00", "{\"\xff\":\"\x00\"}"
	r.put(t, a)
	assert.Contains(t, r.gets(t, r.scope, "a")["a"].Description, "bad ")
}

// After any history of changes, a store answers as one in memory does, however many
// records are alike.
func histories(t *testing.T, r *run) {
	if r.Approximate || r.Eventually {
		t.Skip("what this store answers is not exact, or not at once")
	}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		scope := fmt.Sprint(r.scope, " ", seed)
		var memory vector.MemoryStore
		for range 15 {
			var changed []vector.Record
			for range 1 + random.IntN(20) {
				u := vector.Record{ID: fmt.Sprint("t", random.IntN(60)), Server: fmt.Sprint("s", random.IntN(3)), Sum: fmt.Sprint(random.Uint64()), Text: "x"}
				if random.IntN(6) > 0 {
					u.Vector = []float32{1, float32(random.IntN(4)), float32(random.IntN(3))}
				}
				changed = append(changed, u)
			}
			var gone []string
			for range random.IntN(15) {
				gone = append(gone, fmt.Sprint("t", random.IntN(60)))
			}
			q := vector.Query{
				Vector: []float32{1, float32(random.IntN(4)), 0}, Limit: 1 + random.IntN(12), Candidates: 1 + random.IntN(6), Least: float64(random.IntN(2)) * 0.6,
			}
			if random.IntN(2) == 0 {
				q.Servers = []string{fmt.Sprint("s", random.IntN(4)), "no\xff"}
			}
			var all [2][]vector.Match
			var sums [2]map[string]string
			for i, store := range []vector.Store{r.store, &memory} {
				require.NoError(t, store.Upsert(t.Context(), scope, changed))
				require.NoError(t, store.Delete(t.Context(), scope, gone))
				var err error
				all[i], err = store.Search(t.Context(), scope, q)
				require.NoError(t, err)
				sums[i], err = store.Sums(t.Context(), scope)
				require.NoError(t, err)
			}
			require.Equal(t, sums[1], sums[0], "seed %d", seed)
			require.Equal(t, len(all[1]), len(all[0]), "seed %d, query %+v", seed, q)
			for i, m := range all[1] {
				got := all[0][i]
				require.Equal(t, m.ID+" "+m.Server, got.ID+" "+got.Server, "seed %d, query %+v:\n got %v\nwant %v", seed, q, all[0], all[1])
				require.InDelta(t, m.Similarity, got.Similarity, 1e-6)
				require.Equal(t, got.Similarity, got.Score)
			}
		}
		require.NoError(t, r.store.Drop(t.Context(), scope))
	}
}
