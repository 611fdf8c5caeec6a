package pgstore

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC C7: the rank of a word is ts_rank for websearch_to_tsquery divided by
// the greatest rank, and a similarity is one minus pgvector's cosine distance,
// both as the engine computes them.
func TestSpecC7RanksOfTheEngine(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := e.open(t, Options{Schema: e.schema(t)})
		texts := map[string]string{
			"once": "creates an issue", "often": "issue issue issues: an issue for each issue", "long": "of all that there is to be said here, one word is issues",
			"other": "sends a message",
		}
		var tools []vector.Record
		for id, text := range texts {
			tools = append(tools, vector.Record{ID: id, Sum: "1", Server: "s", Text: text, Vector: []float32{1, float32(len(text))}})
		}
		require.NoError(t, s.Upsert(t.Context(), "scope", tools))
		pool := e.pool(t)
		ranks, greatest := make(map[string]float64), 0.0
		for id, text := range texts {
			var rank, similarity float64
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT ts_rank(to_tsvector('english', $1::text), websearch_to_tsquery('english', 'issues'))::float8`, text).Scan(&rank))
			ranks[id], greatest = rank, max(greatest, rank)
			require.NoError(t, pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT 1 - ($1::text::%s.vector OPERATOR(%[1]s.<=>) '[3,4]'::%[1]s.vector)`, s.vector),
				fmt.Sprintf("[1,%d]", len(text))).Scan(&similarity))
			found, err := s.Search(t.Context(), "scope", vector.Query{Vector: []float32{3, 4}, Limit: 9})
			require.NoError(t, err)
			for _, m := range found {
				if m.ID == id {
					assert.InDelta(t, similarity, m.Similarity, 1e-6, id)
				}
			}
			assert.Len(t, found, 4)
		}
		found, err := s.Search(t.Context(), "scope", vector.Query{Words: "Issues", Limit: 9})
		require.NoError(t, err)
		require.Len(t, found, 3)
		assert.Equal(t, 1.0, found[0].Words)
		for _, m := range found {
			assert.InDelta(t, ranks[m.ID]/greatest, m.Words, 1e-6, m.ID)
			assert.Positive(t, m.Words)
		}
	})
}
