package mcphybrid

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host's search has a hit however many tools there are, the first and the last included,
// and says which of them the model has from the start.
func TestSearchFindsWhateverTheSize(t *testing.T) {
	t.Parallel()
	for _, ranker := range rankers {
		for _, n := range []int{0, 3, 40, 41, 60} {
			m, _ := newTestManager(t, &Options{Search: RankingOptions{Ranker: ranker}, Servers: []ServerConfig{serving("zoo", numbered(n)...)}})
			s := m.NewSession(nil)
			for i := range n {
				name, standing := fmt.Sprintf("mcp_zoo__feed_%02d", i), "inline"
				if i >= 40 {
					standing = "deferred"
				}
				for _, query := range []string{fmt.Sprintf("animal%02d", i), name, "select:" + name} {
					hits := s.Search(query, 5)
					require.NotEmpty(t, hits, "%s, %d tools: %s", ranker, n, query)
					require.Equal(t, name, hits[0].Tool.name, "%s, %d tools: %s", ranker, n, query)
					assert.Equal(t, standing, hits[0].Standing)
					assert.Equal(t, standing == "deferred", slices.Contains(hitNames(deferredHits(s, query, 5)), name), "%s, %d tools: %s", ranker, n, query)
				}
				e := s.Explain(fmt.Sprintf("animal%02d", i), name)
				assert.InDelta(t, s.Search(fmt.Sprintf("animal%02d", i), 1)[0].Score, e.Score, 1e-9, "%s: %s", ranker, name)
			}
			assert.Equal(t, n, len(m.InlineTools())+len(m.DeferredTools()))
			assert.Nil(t, s.Search("zeppelin", 5))
			assert.Empty(t, s.ActiveTools())
		}
	}
}

// numbered returns n tools with a word each that no other has.
func numbered(n int) (tools []mcpserver.ServerTool) {
	for i := range n {
		tools = append(tools, mcptest.Echo(fmt.Sprintf("feed_%02d", i), fmt.Sprintf("Feeds animal%02d", i)))
	}
	return tools
}

// Inline and deferred tools are scored by one index: as if none was inline. What a session
// may not see, and what its model has by a search, is not found.
func TestSearchHasOneScale(t *testing.T) {
	t.Parallel()
	tools := append(mcptest.Chores("a", 30), numbered(20)...)
	for _, ranker := range rankers {
		of := func(most int) *Session {
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: most}, Pins: []string{"*feed_19"}, Search: RankingOptions{Ranker: ranker}, Servers: []ServerConfig{serving("s", tools...)}})
			return m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*feed_18"}}})
		}
		mixed, none := of(10), of(NoLimit)
		for _, query := range []string{"chore", "feed animal03", "tool_003 animal19", "animal18", "feeds"} {
			want, got := none.Search(query, 20), mixed.Search(query, 20)
			require.Equal(t, hitNames(want), hitNames(got), "%s: %s", ranker, query)
			for i, h := range got {
				assert.InDelta(t, want[i].Score, h.Score, 1e-9, "%s: %s", ranker, h.Tool.name)
				st := mixed.view().standing(h.Tool)
				assert.Equal(t, st.String(), h.Standing)
			}
		}
		hits := mixed.Search("feed animal12", 3)
		require.Equal(t, "deferred", hits[0].Standing)
		mixed.ActivateTools(hitNames(hits[:1]))
		assert.NotContains(t, hitNames(mixed.Search("feed animal12", 20)), hits[0].Tool.name, "the model has it")
	}
}

// A host that searches changes nothing for sessions: the index of the deferred tools stays the same
// one, and the search tool answers with the same bytes. The other index shares the deferred tools.
func TestSearchLeavesTheDeferredIndexAlone(t *testing.T) {
	t.Parallel()
	tools := numbered(60)
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", tools...)}})
	answer := func() string {
		res, err := m.NewSession(nil).Call(t.Context(), SearchToolName, `{"query":"feed animal03 animal45"}`)
		require.NoError(t, err)
		return mcptest.Text(t, res)
	}
	before, c := answer(), m.cur.Load()
	x := c.split()
	deferredHits(m.def, "feed", 5)
	m.def.SelectFor(t.Context(), "nothing of the kind")
	assert.Nil(t, x.withInline.catalog, "only a host that searches pays for it")
	index := x.ranker
	assert.Len(t, m.Search("feed", 20), 20)
	require.NotNil(t, x.withInline.catalog)
	assert.Same(t, index, c.index())
	assert.Equal(t, 20, index.Len())
	assert.Equal(t, 60, x.withInline.index().Len())
	whole, deferred := x.withInline.index().(*search.Index), index.(*search.Index)
	for i := range deferred.Len() {
		assert.Same(t, deferred.Document(i), whole.Document(40+i))
	}
	assert.Equal(t, before, answer())
	assert.NotNil(t, x.withInline.catalog.tool("mcp_s__"+tools[59].Tool.Name))
	assert.Nil(t, x.withInline.catalog.tool("mcp_s__none"))

	// The next catalog has both, too.
	require.NoError(t, m.AddTools("more", mcptest.Echo("zeppelin", "Flies")))
	assert.Equal(t, []string{"mcp_more__zeppelin"}, hitNames(m.Search("zeppelin", 5)))
	assert.Equal(t, before, answer())
	assert.Equal(t, 21, m.cur.Load().index().Len())

	all, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{serving("s", tools...)}})
	all.Search("feed", 5)
	assert.Same(t, all.cur.Load(), all.cur.Load().withInline(), "where no tool is inline, there is one index")
}

// However often tools change and a host searches, the index keeps what is there.
func TestSearchesKeepWhatIsThere(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", numbered(45)...)}})
	for i := range 200 {
		require.NoError(t, m.AddTools("more", mcptest.Echo(fmt.Sprint("kite", i), "Flies")))
		require.Equal(t, fmt.Sprint("mcp_more__kite", i), m.Search("flies", 5)[0].Tool.name)
		require.Equal(t, "mcp_s__feed_03", m.Search("animal03", 5)[0].Tool.name)
		require.Equal(t, "mcp_s__feed_44", deferredHits(m.def, "animal44", 5)[0].Tool.name)
		require.NotContains(t, hitNames(deferredHits(m.def, "animal03", 5)), "mcp_s__feed_03")
		require.True(t, m.RemoveServer("more"))
	}
}

// A user's session finds inline tools of both owners, which take turns.
func TestSearchOfAUserFindsInlineTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", numbered(45)...)}})
	u, err := m.NewUser("ann", nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, u.Close()) })
	require.NoError(t, u.AddTools("own", mcptest.Echo("feed_cat", "Feeds the cat")))
	s := u.NewSession(nil)
	hits := s.Search("feeds", 4)
	require.Len(t, hits, 4)
	assert.Contains(t, hitNames(hits), "mcp_own__feed_cat")
	for _, h := range hits {
		assert.Equal(t, s.view().standing(h.Tool).String(), h.Standing)
	}
	assert.True(t, slices.ContainsFunc(hits, func(h Hit) bool { return h.Standing == "inline" && strings.HasPrefix(h.Tool.name, "mcp_s__") }))
}

// By meaning only deferred tools are found. The words find the others.
func TestSearchByMeaningHasDeferredToolsOnly(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Semantic: &SemanticOptions{Embedder: newConcepts()}, Servers: []ServerConfig{serving("s", mcptest.Echo("walk_dog", "Walks the dog"), mcptest.Echo("groom", "Grooms a dog"))}})
	embedded(t, m, 1)
	a := m.Default().Find(context.Background(), "grooms somebody", SearchOptions{})
	require.NoError(t, a.Err)
	require.NotEmpty(t, a.Hits)
	assert.Equal(t, "inline", a.Hits[0].Standing)
	assert.Zero(t, a.Hits[0].Similarity)
	similar := m.Default().Find(context.Background(), "grooms somebody", SearchOptions{By: ByMeaning}).Hits
	require.NotEmpty(t, similar)
	for _, h := range similar {
		assert.NotEqual(t, "inline", h.Standing)
	}
}
