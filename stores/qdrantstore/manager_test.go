package qdrantstore

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

// What others read in the collection is that of the published design, and a change of
// a schema alone embeds nothing.
func TestManagersPayload(t *testing.T) {
	f, addr := newFake(t)
	e := new(topics)
	m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Trust: mcphybrid.TrustOff,
		Semantic: &mcphybrid.SemanticOptions{Embedder: e, Store: open(t, addr, "", &Options{Model: e.Model()})}})
	defer m.Close()
	users, err := m.NewUser("4f1c", nil)
	require.NoError(t, err)
	defer users.Close()
	read := func(collection string) map[string]string {
		f.mu.Lock()
		defer f.mu.Unlock()
		payload := make(map[string]string)
		if c := f.collections[collection]; c != nil && c.points[pointID("mcp_s__walk")] != nil {
			for field, v := range c.points[pointID("mcp_s__walk")].payload {
				payload[field] = v.GetStringValue()
			}
		}
		return payload
	}
	for _, where := range []string{"A park", "A forest"} {
		schema := `{"type":"object","properties":{"where":{"type":"string","description":"` + where + `"}}}`
		walk := server.ServerTool{Tool: mcp.NewToolWithRawSchema("walk", "Walks the dog", []byte(schema))}
		m.RemoveServer("s")
		users.RemoveServer("s")
		require.NoError(t, m.AddTools("s", walk))
		require.NoError(t, users.AddTools("s", walk))
		for collection, want := range map[string]map[string]string{
			"sys_tool_index":     {"scope": "system", "plugin_id": "s"},
			"kb_user_4f1c_tools": {"scope": "user", "plugin_id": "user_mcp", "user_id": "4f1c"},
		} {
			var got map[string]string
			require.Eventually(t, func() bool {
				got = read(collection)
				return strings.Contains(got["schema_json"], where)
			}, 10*time.Second, 10*time.Millisecond)
			assert.JSONEq(t, schema, got["schema_json"])
			delete(got, "schema_json")
			assert.NotEmpty(t, got["sum"])
			delete(got, "sum")
			want["tool_name"], want["origin"], want["embedding_model"], want["description"] = "mcp_s__walk", "s", "topics", "Walks the dog"
			want["text"] = "Tool Name: walk. Description: Walks the dog. Arguments: where"
			assert.Equal(t, want, got)
		}
	}
	assert.EqualValues(t, 2, e.embedded.Load(), "one for each")
}

// A Manager finds stored tools by meaning. Another Manager over the same store
// has nothing to embed.
func TestManager(t *testing.T) {
	_, addr := newFake(t)
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
			Semantic: &mcphybrid.SemanticOptions{Embedder: e, Store: open(t, addr, "", &Options{Model: e.Model()}), Least: 0.5},
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
