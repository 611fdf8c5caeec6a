package vector_test

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The store in memory does what each store must do.
func TestMemoryStore(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	storetest.Run(t, storetest.Subject{Open: func(*testing.T) vector.Store { return store }})
}

// What Get returns is the caller's.
func TestRecordsAreTheCallers(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	require.NoError(t, store.Upsert(t.Context(), "a", []vector.Record{{ID: "x", Vector: []float32{1, 0}}, {ID: "y", Vector: []float32{0.6, 0.8}}, {ID: "z"}}))
	found, err := store.Get(t.Context(), "a", []string{"z", "x", "none"})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Nil(t, found[0].Vector)
	_ = append(found[1].Vector, 7)
	found[1].Vector[0] = 7
	again, err := store.Search(t.Context(), "a", vector.Query{Vector: []float32{1, 0}, Limit: 2, Least: -1})
	require.NoError(t, err)
	require.Len(t, again, 2)
	assert.Equal(t, "x", again[0].ID)
	assert.InDelta(t, 1, again[0].Similarity, 1e-6)
	assert.InDelta(t, 0.6, again[1].Similarity, 1e-6)
}

// Vectors may have one dimension.
func TestOneDimension(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	require.NoError(t, store.Upsert(t.Context(), "a", []vector.Record{{ID: "x", Vector: []float32{-2}}, {ID: "y", Vector: []float32{3}}}))
	found, err := store.Search(t.Context(), "a", vector.Query{Vector: []float32{5}, Limit: 2, Least: -1})
	require.NoError(t, err)
	assert.Equal(t, []vector.Match{{ID: "y", Score: 1, Similarity: 1}}, found)
}

func TestQueriesAreChecked(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	require.NoError(t, store.Upsert(t.Context(), "a", []vector.Record{{ID: "x", Vector: []float32{1, 0}}}))
	for _, q := range []vector.Query{
		{Words: "x", Limit: 1, Alpha: -0.1}, {Words: "x", Limit: 1, Alpha: 1.1}, {Vector: []float32{1}, Limit: 1}, {Vector: []float32{0, 0}, Limit: 1},
	} {
		_, err := store.Search(t.Context(), "a", q)
		assert.Error(t, err, "%+v", q)
	}
	for _, alpha := range []float64{0, 1} {
		_, err := store.Search(t.Context(), "a", vector.Query{Words: "x", Limit: 1, Alpha: alpha})
		assert.NoError(t, err)
	}
}
