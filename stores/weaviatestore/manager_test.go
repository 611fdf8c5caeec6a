package weaviatestore

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// topics is an embedder that knows which words belong together.
type topics struct{ embedded atomic.Int64 }

func (*topics) vector(text string) []float32 {
	v := []float32{0.01, 0.01, 0.01}
	for i, words := range []string{"dog pet cat", "bill invoice pay", "weather rain forecast"} {
		for word := range strings.FieldsSeq(words) {
			if strings.Contains(strings.ToLower(text), word) {
				v[i]++
			}
		}
	}
	return v
}

func (e *topics) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	for _, text := range texts {
		vectors = append(vectors, e.vector(text))
	}
	e.embedded.Add(int64(len(texts)))
	return vectors, nil
}

func (e *topics) EmbedQuery(_ context.Context, query string) ([]float32, error) {
	return e.vector(query), nil
}
func (*topics) Model() string   { return "topics" }
func (*topics) Dimensions() int { return 3 }

// A Manager finds stored tools by meaning. Another Manager over the same store
// has nothing to embed.
func TestManager(t *testing.T) {
	opts := newOptions(t)
	servers := server.NewMCPServer("s", "1", server.WithToolCapabilities(true))
	for name, text := range map[string]string{"walk": "Walks the dog", "settle": "Settles an invoice", "tomorrow": "Tells the weather"} {
		servers.AddTool(mcp.NewTool(name, mcp.WithDescription(text)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("ok"), nil
		})
	}
	e := new(topics)
	for range 2 {
		m := mcphybrid.NewManager(&mcphybrid.Options{
			Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: servers}},
			Semantic: &mcphybrid.SemanticOptions{Embedder: e, Store: open(t, opts), Least: 0.5},
		})
		require.NoError(t, m.Start(t.Context()))
		var a mcphybrid.Answer
		require.Eventually(t, func() bool {
			a = m.Default().Find(t.Context(), "my cat is sick", mcphybrid.SearchOptions{})
			return a.Err == nil
		}, time.Minute, 10*time.Millisecond)
		if assert.Len(t, a.Hits, 1) {
			assert.Equal(t, "mcp_s__walk", a.Hits[0].Tool.Name())
			assert.Positive(t, a.Hits[0].Similarity)
		}
		assert.Equal(t, int64(3), e.embedded.Load())
		require.NoError(t, m.Close())
	}
}
