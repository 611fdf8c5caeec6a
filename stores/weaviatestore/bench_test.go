package weaviatestore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/require"
)

func BenchmarkSearch(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	embedding := func() []float32 {
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
		return v
	}
	text := func(words int) string {
		var b strings.Builder
		for range words {
			fmt.Fprintf(&b, "word%d ", int(random.ExpFloat64()*200))
		}
		return b.String()
	}
	for _, n := range []int{1000, 10_000} {
		s := open(b, newOptions(b))
		var tools []vector.Record
		for i := range n {
			tools = append(tools, vector.Record{
				ID: fmt.Sprint("tool", i), Sum: "1", Server: fmt.Sprint("server", i%50), Vector: embedding(),
				Text: text(10 + random.IntN(40)),
			})
		}
		require.NoError(b, s.Upsert(b.Context(), "system", tools))
		if own != nil { // new data is slower to search until it is in files
			require.NoError(b, own.stop())
			require.NoError(b, own.start())
		}
		for _, q := range []vector.Query{
			{Words: text(5)}, {Vector: embedding()}, {Words: text(5), Vector: embedding(), Alpha: 0.6},
		} {
			name := fmt.Sprintf("tools=%d/words=%t/vector=%t", n, q.Words != "", q.Vector != nil)
			q.Limit = 10
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					found, err := s.Search(b.Context(), "system", q)
					require.NoError(b, err)
					require.Len(b, found, 10)
				}
			})
		}
	}
}
