package findability

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kitchen returns a Manager with tools, by name and description in turn, and the tools.
func kitchen(t *testing.T, limit int, texts ...string) (*mcphybrid.Session, []*mcphybrid.BridgeTool) {
	t.Helper()
	opts := &mcphybrid.Options{}
	opts.Search.Limit = limit
	m := mcphybrid.NewManager(opts)
	t.Cleanup(func() { _ = m.Close() })
	var tools []server.ServerTool
	for i := 0; i < len(texts); i += 2 {
		tools = append(tools, server.ServerTool{Tool: mcp.NewTool(texts[i], mcp.WithDescription(texts[i+1]))})
	}
	require.NoError(t, m.AddTools("kitchen", tools...))
	var list []*mcphybrid.BridgeTool
	for _, p := range m.Default().Placements() {
		list = append(list, p.Tool)
	}
	return m.Default(), list
}

func TestAsk(t *testing.T) {
	t.Parallel()
	s, tools := kitchen(t, mcphybrid.NoLimit, "stir", "Stirs the soup", "shake", "Shakes a salad", "boil", "Boils soup and more soup", "find", "Finds a spoon")
	first := Ask(s, "stir the soup", tools[2], tools[0])
	assert.Equal(t, 1, first.Rank)
	assert.Equal(t, tools[0], first.Wanted)
	assert.Equal(t, "at place 1", first.Place())

	second := Ask(s, "stir the soup", tools[2])
	assert.Equal(t, 2, second.Rank)
	w := second.Why()
	assert.Equal(t, "kitchen/stir", Label(w.First))
	assert.Equal(t, []string{"stir"}, w.Lacks)
	require.NotEmpty(t, w.Words)
	assert.Equal(t, "stir", w.Words[0].Word)
	assert.Equal(t, []string{"name", "description"}, w.Words[0].First)
	assert.Empty(t, w.Words[0].Wanted)
	assert.Contains(t, w.Sentences()[0], "kitchen/stir is first: “stir” (name, description; wanted: nowhere)")

	lost := Ask(s, "stir the soup", tools[1])
	assert.Equal(t, 0, lost.Rank)
	assert.Equal(t, "not found", lost.Place())
	assert.Equal(t, "it has no word of the query: stir, soup", lost.Why().Sentences()[0])

	nowhere := Ask(s, "zeppelin", tools[1], tools[3]).Why()
	assert.Nil(t, nowhere.First)
	assert.Equal(t, []string{"it has no word of the query: zeppelin", "nothing is found"}, nowhere.Sentences())
	assert.Equal(t, "it can't be found: "+NoWord, Ask(s, "the of", tools[1]).Why().Sentences()[0])
	assert.Nil(t, Ask(s, "stir").Wanted, "none is wanted")

	s, tools = kitchen(t, 2, "a", "Soup", "b", "Soup", "c", "Soup and more")
	cut := Ask(s, "soup", tools[2])
	assert.Equal(t, "not among the first 2", cut.Place())
	assert.Equal(t, "at place 2", Ask(s, "soup", tools[1]).Place())
	assert.Equal(t, []string{"kitchen/a is first: “soup” (description; wanted: description)"}, cut.Why().Sentences())
}

// Equal scores, and a name in the query, are reasons too.
func TestWhyWithoutWords(t *testing.T) {
	t.Parallel()
	s, tools := kitchen(t, mcphybrid.NoLimit, "stir", "Stirs the soup", "stir2", "Stirs the soup", "soup", "Nothing of note", "get_it", "Empties a pot")
	assert.Equal(t, []string{"kitchen/get_it is first: its name is in the query"},
		Ask(s, "get_it and stir soup", tools[0]).Why().Sentences())

	s, tools = kitchen(t, mcphybrid.NoLimit, "a", "Stirs the soup", "b", "Stirs the soup")
	assert.Equal(t, []string{"kitchen/a is first: listed before it, with the same score"}, Ask(s, "soup", tools[1]).Why().Sentences())
}

// Of tools that no search finds, the one that scores most is asked about, and of equals the
// first. A sentence has three words at most.
func TestNearest(t *testing.T) {
	t.Parallel()
	s, tools := kitchen(t, mcphybrid.NoLimit, "a", "Stirs", "b", "Stirs soup", "c", "Soup, stirs", "d", "Stirs soup with a ladle and a spoon")
	best, e := Nearest(s, "soup", tools)
	assert.Equal(t, tools[1], best)
	assert.Positive(t, e.Score)
	none, _ := Nearest(s, "soup", nil)
	assert.Nil(t, none)
	assert.Equal(t, tools[0], Ask(s, "zeppelin", tools...).Wanted)

	w := Ask(s, "soup with ladle, spoon, zeppelin", tools[0]).Why()
	require.Equal(t, tools[3], w.First)
	require.Greater(t, len(w.Words), 3)
	assert.Equal(t, "kitchen/d is first: "+w.Words[0].String()+", "+w.Words[1].String()+", "+w.Words[2].String(), w.Sentences()[1])
}

// What both have counts by the difference, and what the wanted tool has more of not at all.
func TestDecide(t *testing.T) {
	t.Parallel()
	part := func(word, field string, score float64) search.ScorePart {
		return search.ScorePart{Word: word, Field: field, Score: score}
	}
	first := search.Explanation{Parts: []search.ScorePart{part("pr", "name", .2), part("pr", "description", .05), part("pr", "description", .05), part("soup", "name", .4), part("pot", "name", .1), part("", "clause", .5)}}
	wanted := search.Explanation{Parts: []search.ScorePart{part("pr", "description", .1), part("pot", "name", .2), part("lid", "name", 1), part("", "clause", .1), part("", "feedback", -.1)}}
	list := decide(first, wanted)
	var says []string
	for i, more := range []float64{.4, .4, .2, .1} {
		says = append(says, list[i].String())
		assert.InDelta(t, more, list[i].More, 1e-9)
	}
	assert.Len(t, list, 4)
	assert.Equal(t, []string{
		"“soup” (name; wanted: nowhere)",
		"the bonus for clause",
		"“pr” (name, description; wanted: description)",
		"the bonus for feedback",
	}, says)
	assert.Equal(t, "does not match well enough", Unfound(search.Explanation{Score: 1, Least: .5, Parts: first.Parts}))
	assert.Equal(t, "scores 0.100, below the threshold of 0.500; it lacks: a, b", Unfound(search.Explanation{Score: .1, Least: .5, Parts: first.Parts, Missing: []string{"a", "b"}}))
	assert.Equal(t, "scores 0.100, below the threshold of 0.500", Unfound(search.Explanation{Score: .1, Least: .5, Parts: first.Parts}))
}
