package vector

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After any history of changes, a store answers as a plain list would.
func TestMemoryStoreHistories(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		var store MemoryStore
		plain := make(map[string]Record)
		for range 40 {
			var tools []Record
			for range random.IntN(20) {
				tools = append(tools, randomTool(random, 12))
			}
			for _, tool := range tools {
				plain[tool.ID] = tool
			}
			require.NoError(t, store.Upsert(t.Context(), "a", tools))
			var gone []string
			for range random.IntN(25) {
				id := fmt.Sprint("t", random.IntN(200))
				gone = append(gone, id)
				delete(plain, id)
			}
			require.NoError(t, store.Delete(t.Context(), "a", gone))
			q := Query{Vector: randomTool(random, 12).Vector, Limit: 1 + random.IntN(8), Least: random.Float64() - 0.3}
			if random.IntN(2) == 0 {
				q.Servers = []string{fmt.Sprint("s", random.IntN(3))}
			}
			found, err := store.Search(t.Context(), "a", q)
			require.NoError(t, err)
			want := plainNearest(plain, q)
			require.Len(t, found, len(want))
			for i, m := range found {
				assert.Equal(t, want[i].ID, m.ID)
				assert.InDelta(t, want[i].Similarity, m.Similarity, 1e-5)
				assert.Equal(t, m.Similarity, m.Score)
			}
			sums, err := store.Sums(t.Context(), "a")
			require.NoError(t, err)
			assert.Len(t, sums, len(plain))
		}
	}
}

func randomTool(random *rand.Rand, dims int) Record {
	t := Record{ID: fmt.Sprint("t", random.IntN(200)), Sum: "x", Server: fmt.Sprint("s", random.IntN(3)), Vector: make([]float32, dims)}
	for i := range t.Vector {
		t.Vector[i] = float32(random.NormFloat64())
	}
	return t
}

func plainNearest(tools map[string]Record, q Query) (list []Match) {
	for id, t := range tools {
		var ab, aa, bb float64
		for i := range t.Vector {
			a, b := float64(t.Vector[i]), float64(q.Vector[i])
			ab, aa, bb = ab+a*b, aa+a*a, bb+b*b
		}
		s := ab / math.Sqrt(aa) / math.Sqrt(bb)
		if s > 0 && s >= q.Least && (q.Servers == nil || slices.Contains(q.Servers, t.Server)) {
			list = append(list, Match{ID: id, Similarity: s})
		}
	}
	slices.SortFunc(list, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(q.Limit, len(list))]
}

// total = alpha*vec + (1-alpha)*fts, fts = rank / max rank; a missing
// side counts 0.
// Who only asks for a scope makes none.
func TestUnknownScopes(t *testing.T) {
	s := new(MemoryStore)
	_, err := s.Search(t.Context(), "x", Query{Words: "a", Limit: 1})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "x", []string{"a"})
	require.NoError(t, err)
	_, err = s.Sums(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "x", []string{"a"}))
	require.NoError(t, s.Drop(t.Context(), "x"))
	s.scopes.Range(func(scope, _ any) bool { return assert.Fail(t, "a scope", scope) })
}

func TestSpecC2Fuse(t *testing.T) {
	words := []Match{{ID: "b", Server: "s", Words: 8}, {ID: "a", Words: 4}, {ID: "x", Words: 2}}
	similar := []Match{{ID: "a", Similarity: 0.9}, {ID: "c", Similarity: 0.5}}
	assert.Equal(t, []Match{
		{ID: "a", Score: 0.6*0.9 + 0.4*0.5, Words: 0.5, Similarity: 0.9},
		{ID: "b", Server: "s", Score: 0.4, Words: 1},
		{ID: "c", Score: 0.3, Similarity: 0.5},
		{ID: "x", Score: 0.1, Words: 0.25},
	}, Fuse(words, similar, 0.6, 9))
	assert.Equal(t, []string{"a", "c", "b", "x"}, matchIDs(Fuse(words, similar, 1, 9)))
	assert.Equal(t, []string{"b", "a", "x", "c"}, matchIDs(Fuse(words, similar, 0, 9)))
	assert.Equal(t, []string{"b"}, matchIDs(Fuse(words, nil, 0.6, 1)))
	assert.Empty(t, Fuse(nil, nil, 0.6, 5))
	assert.Empty(t, Fuse(words, similar, 0.6, -1))
}

func TestFuseRanks(t *testing.T) {
	words := []Match{{ID: "b", Words: 8}, {ID: "a", Words: 4}}
	similar := []Match{{ID: "c", Similarity: 0.9}, {ID: "a", Similarity: 0.5}}
	assert.Equal(t, []Match{
		{ID: "a", Score: 1./62 + 1./62, Words: 4, Similarity: 0.5},
		{ID: "b", Score: 1. / 61, Words: 8},
		{ID: "c", Score: 1. / 61, Similarity: 0.9},
	}, FuseRanks(words, similar, 9))
}

func matchIDs(list []Match) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}

func BenchmarkMemoryStore(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		var store MemoryStore
		random := rand.New(rand.NewPCG(1, 1))
		tools := make([]Record, n)
		for i := range tools {
			tools[i] = randomTool(random, 384)
			tools[i].ID = fmt.Sprint("t", i)
		}
		require.NoError(b, store.Upsert(b.Context(), "a", tools))
		b.Run(fmt.Sprintf("%dx384", n), func(b *testing.B) {
			q := Query{Vector: randomTool(random, 384).Vector, Limit: 10}
			for b.Loop() {
				if _, err := store.Search(b.Context(), "a", q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("change/%dx384", n), func(b *testing.B) {
			for b.Loop() {
				if err := store.Upsert(b.Context(), "a", tools[:1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
