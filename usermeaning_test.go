package mcphybrid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC D3: with search by meaning, each user has its own scope in the store. A
// query is embedded once for both scopes. No user's vectors are kept for
// another.
func TestSpecD3ScopesByMeaning(t *testing.T) {
	t.Parallel()
	e, cache, own := newConcepts(), new(mcptest.Store), new(mcptest.Store)
	store := new(vector.MemoryStore)
	var queries atomic.Int64
	e.query = func(context.Context) error { queries.Add(1); return nil }
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{meaningTools()},
		Semantic: &SemanticOptions{Embedder: e, Store: store, Least: 0.5, Cache: cache}})
	embedded(t, m, 5)
	a := newUser(t, m, "a", &UserOptions{VectorCache: own}, echoTool("secret01", "Feeds the cat"), echoTool("cash", "Counts money"))
	b := newUser(t, m, "b", nil, echoTool("stable", "Keeps the animal"))
	embedded(t, a, 2)
	embedded(t, b, 1)
	assert.Equal(t, 8, e.embedded())
	sums := func(scope string) int {
		list, err := store.Sums(t.Context(), scope)
		require.NoError(t, err)
		return len(list)
	}
	assert.Equal(t, []int{5, 2, 1}, []int{sums("system"), sums("user:a"), sums("user:b")})

	for range 2 {
		queries.Store(0)
		answer := a.Default().Find(t.Context(), "dog", SearchOptions{})
		require.NoError(t, answer.Err)
		assert.Equal(t, []string{"mcp_s__walk_dog", "mcp_s__groom", "mcp_own__secret01"}, hitNames(answer.Hits))
		assert.Equal(t, 3, answer.Meaning)
		assert.EqualValues(t, 1, queries.Load())
	}
	assert.Equal(t, []string{"mcp_s__walk_dog", "mcp_s__groom"}, hitNames(m.Search("dog", 0)))
	assert.Equal(t, []string{"mcp_s__walk_dog", "mcp_s__groom", "mcp_own__stable"}, hitNames(b.Search("dog", 0)))

	// The system's cache has no vectors of a user's tools.
	vectors := vector.LoadCache(cache, e.Model(), m.opts.Logger)
	assert.Equal(t, 5, vectors.Len())
	assert.Equal(t, 2, vector.LoadCache(own, e.Model(), m.opts.Logger).Len())

	// A query that can't be embedded is reported once.
	e.query = func(context.Context) error { return fmt.Errorf("out of order") }
	assert.EqualError(t, a.Default().Find(t.Context(), "dog", SearchOptions{}).Err, "embedding the query: out of order")
	e.query = func(context.Context) error { panic("out of its mind") }
	assert.ErrorContains(t, a.Default().Find(t.Context(), "dog", SearchOptions{}).Err, "panic")
	e.query = nil

	// The tools of a user who comes back are not embedded again. Those of a
	// user who was dropped are.
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	assert.Equal(t, []int{5, 2, 1}, []int{sums("system"), sums("user:a"), sums("user:b")})
	b = newUser(t, m, "b", nil, echoTool("stable", "Keeps the animal"))
	embedded(t, b, 1)
	assert.Equal(t, 8, e.embedded())
	require.NoError(t, m.DropUser(t.Context(), "b"))
	require.NoError(t, m.DropUser(t.Context(), "a"))
	assert.Equal(t, []int{5, 0, 0}, []int{sums("system"), sums("user:a"), sums("user:b")})
	b = newUser(t, m, "b", nil, echoTool("stable", "Keeps the animal"))
	embedded(t, b, 1)
	assert.Equal(t, 9, e.embedded())

	// Two systems in one store have separate users.
	other := &SemanticOptions{Embedder: e, Scope: "staging"}
	assert.Equal(t, "staging/user:a", other.userScope("a"))
}

// With an embedder, the system's and a user's tools are in one order by one scale, as if they
// were in one index, and Alpha is the one weight that was used.
func TestUsersAndSystemsToolsAreOnOneScale(t *testing.T) {
	t.Parallel()
	for name, semantic := range map[string]SemanticOptions{"found": {}, "fixed": {Alpha: 0.3}, "by rank": {ByRank: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			semantic.Embedder = newConcepts()
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &semantic})
			require.NoError(t, m.AddTools("files", echoTool("directory_tree", "Lists the directory tree of a road"), echoTool("bill", "Writes a bank invoice"),
				echoTool("forecast", "Tells the weather"), echoTool("walk", "Walks the dog")))
			embedded(t, m, 4)
			u := newUser(t, m, "ann", nil, echoTool("paint", "Paints the car in sun or rain"), echoTool("shop", "Buys milk"))
			embedded(t, u, 2)

			find := func(query string, opts SearchOptions) Answer {
				a := u.Default().Find(t.Context(), query, opts)
				require.NoError(t, a.Err)
				for i, h := range a.Hits[1:] {
					assert.GreaterOrEqual(t, a.Hits[i].Score, h.Score, "%s: %v", query, hitNames(a.Hits))
				}
				return a
			}
			a := find("list the directory tree by road", SearchOptions{})
			assert.Equal(t, "mcp_files__directory_tree", a.Hits[0].Tool.name, "the user has nothing of the kind")
			assert.Contains(t, hitNames(a.Hits), "mcp_own__paint", "by meaning")
			switch name {
			case "found":
				assert.Positive(t, a.Alpha)
				assert.LessOrEqual(t, a.Alpha, 0.35, "the user's words found nothing, but the search's did")
			case "fixed":
				assert.Equal(t, 0.3, a.Alpha)
			}
			assert.Equal(t, "mcp_own__shop", find("buy milk", SearchOptions{}).Hits[0].Tool.name, "a rare word of the user's few tools")
			assert.Equal(t, "mcp_files__directory_tree", find("road", SearchOptions{By: ByMeaning}).Hits[0].Tool.name)
			assert.Equal(t, []string{"mcp_files__bill", "mcp_own__paint"}, hitNames(find("weather money invoice bank", SearchOptions{Limit: 3, Servers: []string{"own", "files"}, ServerLimit: 1}).Hits))

			// By words alone, the scores can't be compared: the user's and the system's take turns.
			assert.Equal(t, []string{"mcp_own__paint", "mcp_files__directory_tree"}, hitNames(u.Default().Find(t.Context(), "tree road car", SearchOptions{By: ByWords}).Hits))
		})
	}
}

// A word that one tool has counts as much whether that is one of a user's few tools or of the
// system's many.
func TestRareWordOfAUserCountsAsOneOfTheSystem(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts()}})
	require.NoError(t, m.AddTools("zoo", append(numbered(200), echoTool("carry", "Carries a zebra with the dog"))...))
	embedded(t, m, 201)
	u := newUser(t, m, "ann", nil, echoTool("wash", "Washes an okapi with the cat"))
	embedded(t, u, 1)
	a := u.Default().Find(t.Context(), "zebra and okapi with a pet", SearchOptions{})
	require.NoError(t, a.Err)
	require.ElementsMatch(t, []string{"mcp_zoo__carry", "mcp_own__wash"}, hitNames(a.Hits[:2]))
	assert.Equal(t, 1.0, max(a.Hits[0].Words, a.Hits[1].Words))
	assert.InDelta(t, 1, min(a.Hits[0].Words, a.Hits[1].Words), 0.3)
}

// What a user's search finds by meaning does not depend on whose a tool is: the hits are those
// of a system that has all of them.
func TestUserFindsByMeaningAsInOneIndex(t *testing.T) {
	t.Parallel()
	e := newConcepts()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e}})
	u := newUser(t, m, "ann", &UserOptions{SystemResults: -1, UserResults: -1})
	all, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e}})
	for i, group := range strings.Fields(strings.Join(e.groups, " ")) {
		tool := echoTool(fmt.Sprintf("tool_%02d", i), fmt.Sprintf("Looks after %s%s", strings.Repeat(group+" ", i%3+1), strings.Repeat("rain ", i%4)))
		require.NoError(t, all.AddTools(fmt.Sprint("s", i), tool))
		if i%3 == 0 {
			require.NoError(t, u.AddTools(fmt.Sprint("s", i), tool))
		} else {
			require.NoError(t, m.AddTools(fmt.Sprint("s", i), tool))
		}
	}
	embedded(t, m, 11)
	embedded(t, u, 6)
	embedded(t, all, 17)
	for _, query := range []string{"dog", "bank", "sun in the road", "climate", "invoice of the vet"} {
		scores := func(s *Session) (list []string) {
			a := s.Find(t.Context(), query, SearchOptions{By: ByMeaning, Limit: 20})
			require.NoError(t, a.Err)
			for _, h := range a.Hits {
				list = append(list, fmt.Sprintf("%s %.6f %.6f", h.Tool.name, h.Score, h.Similarity))
			}
			return list
		}
		want := scores(all.Default())
		assert.Equal(t, want, scores(u.Default()), query)
	}
}

// The goroutine that embeds tools ends when it is done, and the next change
// starts it again.
func TestEmbeddingEnds(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts()}})
	for i := range 50 {
		require.NoError(t, m.AddTools("s", echoTool(fmt.Sprint("t", i), "dog")))
		embedded(t, m, i+1)
	}
	soon(t, func() bool { return m.semantic.Idle() })
}

// None of 200 users finds a tool of another user.
func TestUsersFindNothingForeign(t *testing.T) {
	t.Parallel()
	const users, own = 200, 10
	queries := mcptest.Long(20_000, 4_000)
	groups := newConcepts().groups
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts(), Timeout: time.Minute}})
	tools := func(n int, whose string) (list []mcpserver.ServerTool) {
		for i := range n {
			list = append(list, answering(fmt.Sprintf("tool_%02d", i), fmt.Sprintf("Looks after %s by %s", groups[i%len(groups)], whose), whose))
		}
		return list
	}
	require.NoError(t, m.AddTools("sys", tools(100, "the system")...))
	all := make([]*Manager, users)
	for i := range all {
		all[i] = newUser(t, m, fmt.Sprint(i), nil, tools(own, fmt.Sprintf("user%03d", i))...)
	}
	embedded(t, m, 100)
	for _, u := range all {
		embedded(t, u, own)
	}
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"dog", "car", "money", "rain", "bank", "tool_03", "climate", "vet", "user017", "user123"}
	found, ofUser := 0, 0
	for range queries {
		u := all[r.IntN(users)]
		a := u.Default().Find(t.Context(), words[r.IntN(len(words))]+" "+words[r.IntN(len(words))], SearchOptions{Limit: r.IntN(9)})
		require.NoError(t, a.Err)
		for _, h := range a.Hits {
			found++
			switch h.Tool.owner {
			case u.owner:
				ofUser++
			case m.owner:
			default:
				t.Fatalf("user %s finds %q", u.Default().tenant.user.id, h.Tool.Description())
			}
		}
	}
	t.Logf("%d searches found %d tools, %d of them the user's", queries, found, ofUser)
	assert.Greater(t, ofUser, queries)
	assert.Greater(t, found-ofUser, queries)
}
