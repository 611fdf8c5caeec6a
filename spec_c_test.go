package mcphybrid_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC C2, C3: the published figures are 50 candidates on each side and a
// weight of 0.6 for meaning. With a limit of 3 per server, 10 results come from
// at least four servers. A negative limit lifts it.
func TestSpecC3Limits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []any{0.6, 50}, []any{vector.DefaultAlpha, vector.DefaultCandidates})
	var servers []mcphybrid.ServerConfig
	for i := range 5 {
		var tools []mcpserver.ServerTool
		for j := range 12 {
			tools = append(tools, echoTool(fmt.Sprintf("kennel_%02d", j), "Has a place for the dog"))
		}
		servers = append(servers, serving(fmt.Sprint("s", i), tools...))
	}
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: servers, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil)}})
	embedded(t, m, 60)
	for _, test := range []struct{ limit, most, servers int }{{3, 3, 4}, {-1, 10, 1}, {0, 10, 1}} {
		a := m.Default().Find(t.Context(), "a dog", mcphybrid.SearchOptions{Limit: 10, ServerLimit: test.limit})
		require.NoError(t, a.Err)
		assert.Equal(t, []int{50, 50, 10}, []int{a.Words, a.Meaning, len(a.Hits)})
		from := make(map[string]int)
		for _, h := range a.Hits {
			from[h.Tool.Server()]++
			assert.LessOrEqual(t, from[h.Tool.Server()], test.most)
		}
		assert.Len(t, from, test.servers)
	}
}

// SPEC C4: each result has its total and the score of each side, the answer
// says how many each side found, and the model gets 200 characters.
func TestSpecC4Answer(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Search: mcphybrid.RankingOptions{Threshold: 0.5}, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Alpha: vector.DefaultAlpha, Least: 0.5}, Servers: []mcphybrid.ServerConfig{serving("s",
		echoTool("kennel", "Has a place for the dog. "+strings.Repeat("é", 300)), echoTool("clinic", "Heals a pet"), echoTool("bus", "Is dog-friendly. It goes by the road, by the car road, in traffic"))}})
	embedded(t, m, 3)
	a := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []int{2, 2}, []int{a.Words, a.Meaning})
	assert.Equal(t, []any{"dog", 5, 0.6}, []any{a.Query, a.Limit, a.Alpha})
	for by, alpha := range map[mcphybrid.SearchSide]float64{mcphybrid.ByWords: 0, mcphybrid.ByMeaning: 1} {
		one := m.Default().Find(t.Context(), "a dog", mcphybrid.SearchOptions{By: by, Limit: 7})
		assert.Equal(t, []any{"a dog", 7, alpha}, []any{one.Query, one.Limit, one.Alpha})
	}
	named := m.Default().Find(t.Context(), "select:kennel", mcphybrid.SearchOptions{})
	assert.Equal(t, []any{"select:kennel", 5, 0.0}, []any{named.Query, named.Limit, named.Alpha})
	sides := make(map[string][2]bool)
	best := 0.0
	for _, h := range a.Hits {
		assert.InDelta(t, 0.6*h.Similarity+0.4*h.Words, h.Score, 1e-9)
		sides[h.Tool.OriginalName()] = [2]bool{h.Words > 0, h.Similarity > 0}
		best = max(best, h.Words)
	}
	assert.Equal(t, map[string][2]bool{"kennel": {true, true}, "clinic": {false, true}, "bus": {true, false}}, sides)
	assert.Equal(t, 1.0, best)

	r, err := m.Call(t.Context(), mcphybrid.SearchToolName, `{"query":"dog"}`)
	require.NoError(t, err)
	var told searchAnswer
	require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &told))
	require.Len(t, told.Tools, 3)
	assert.Equal(t, "kennel", told.Tools[0].OriginalName)
	assert.Equal(t, 200, utf8.RuneCountInString(told.Tools[0].Description))
	assert.Equal(t, "Heals a pet", told.Tools[1].Description)
}

// SPEC C5: besides both, a store searches by words alone and by meaning alone.
func TestSpecC5EitherSideAlone(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	require.NoError(t, store.Upsert(t.Context(), "x", []vector.Record{
		{ID: "words", Text: "send a letter", Vector: []float32{0, 1}}, {ID: "meaning", Text: "electronic post", Vector: []float32{1, 0}},
		{ID: "half", Text: "send a message", Vector: []float32{3, 4}},
	}))
	find := func(q vector.Query) (list []vector.Match) {
		q.Limit = 9
		list, err := store.Search(t.Context(), "x", q)
		require.NoError(t, err)
		return list
	}
	words := find(vector.Query{Words: "letter send"})
	require.Equal(t, []string{"words", "half"}, storedIDs(words))
	for _, h := range words {
		assert.Zero(t, h.Similarity)
		assert.Equal(t, h.Words, h.Score)
	}
	meaning := find(vector.Query{Vector: []float32{2, 0}})
	require.Equal(t, []string{"meaning", "half"}, storedIDs(meaning))
	assert.InDelta(t, 0.6, meaning[1].Score, 1e-6)
	for _, h := range meaning {
		assert.Zero(t, h.Words)
		assert.Equal(t, h.Similarity, h.Score)
	}
	assert.Len(t, find(vector.Query{Words: "letter send", Vector: []float32{2, 0}, Alpha: 0.6}), 3)
}

// SPEC C3: however many tools of one server come first, the search reaches
// those of others. A limit of 0 or less is no limit.
func TestSpecC3NoServerFloods(t *testing.T) {
	t.Parallel()
	var flood []mcpserver.ServerTool
	for i := range 300 {
		flood = append(flood, echoTool(fmt.Sprintf("dog_%03d", i), "dog dog dog"))
	}
	servers := []mcphybrid.ServerConfig{serving("flood", flood...)}
	for i := range 4 {
		servers = append(servers, serving(fmt.Sprint("quiet", i), echoTool("kennel", "It has a place for the dog and for a car on the road")))
	}
	for _, store := range []vector.Store{nil, new(foreignStore)} {
		m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Search: mcphybrid.RankingOptions{ServerLimit: -1}, Servers: servers, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Store: store}})
		embedded(t, m, 304)
		a := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{Limit: 10, ServerLimit: 3})
		require.NoError(t, a.Err)
		assert.Equal(t, []string{"mcp_flood__dog_000", "mcp_flood__dog_001", "mcp_flood__dog_002", "mcp_quiet0__kennel", "mcp_quiet1__kennel", "mcp_quiet2__kennel", "mcp_quiet3__kennel"}, hitNames(a.Hits))
		a = m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{Limit: 10})
		assert.Equal(t, []int{50, 50, 10}, []int{a.Words, a.Meaning, len(a.Hits)})
	}
}

// SPEC C5: besides both, a session searches by words alone and by meaning
// alone.
func TestSpecC5BySide(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil)}, Servers: []mcphybrid.ServerConfig{
		serving("pets", echoTool("hound", "A dog"), echoTool("kennel", "It has a place for the dog and for a car on the road")),
	}})
	embedded(t, m, 2)
	both := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{})
	words := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{By: mcphybrid.ByWords})
	meaning := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{By: mcphybrid.ByMeaning})
	assert.Positive(t, both.Words)
	assert.Positive(t, both.Meaning)
	assert.Zero(t, words.Meaning)
	assert.Positive(t, words.Words)
	assert.Zero(t, meaning.Words)
	assert.Equal(t, both.Meaning, meaning.Meaning)
	assert.NotEmpty(t, meaning.Hits)
	for _, h := range meaning.Hits {
		assert.Equal(t, h.Similarity, h.Score)
		assert.NotEmpty(t, h.Snippet())
	}
}

// A foreignStore is not a *vector.MemoryStore, so it does not know what a
// session may use.
type foreignStore struct{ vector.MemoryStore }

func storedIDs(list []vector.Match) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}
