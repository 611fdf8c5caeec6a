package mcphybrid

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC D1, D2: up to 15 tools are all inline. With more, the session has the
// core tools and those that the message needs, and the model need not search.
func TestSpecD2JustInTime(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 11} {
		m, _ := newTestManager(t, &Options{Pins: []string{"mcp_s__pay_bill"}, JustInTime: new(JustInTimeOptions),
			Servers:  []ServerConfig{inProcess("a", n), meaningTools()},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Least: 0.5}})
		if n == 10 {
			assert.Len(t, m.InlineTools(), 15)
			assert.Empty(t, m.Default().SelectFor(t.Context(), "tomorrow's weather"))
			continue
		}
		assert.Equal(t, []string{"mcp_s__pay_bill"}, toolNames(m.InlineTools()))
		embedded(t, m, 15)
		before, _ := sentBytes(m.def)
		assert.Equal(t, []string{"mcp_s__forecast"}, toolNames(m.Default().SelectFor(t.Context(), "will I need an umbrella for the rain?")))
		assert.Equal(t, []string{"mcp_s__forecast"}, toolNames(m.ActiveTools()))
		after, _ := sentBytes(m.def)
		assert.True(t, strings.HasPrefix(after, before), "it only grows")
		assert.LessOrEqual(t, len(m.Default().SelectFor(t.Context(), "chore dog car rain")), 3)
	}
}

// SPEC D9: a selected tool brings the tools that it needs.
func TestSpecD9Related(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{JustInTime: &JustInTimeOptions{Threshold: -1, Results: 1}, Servers: []ServerConfig{meaningTools()},
		Needs: map[string][]string{"mcp_s__forecast": {"mcp_s__plan_route"}}})
	assert.Equal(t, []string{"mcp_s__forecast", "mcp_s__plan_route"}, toolNames(m.Default().SelectFor(t.Context(), "tomorrow's weather")))
}

// SPEC D7, D8: the prompt says how to ask for more, and the library reads the
// answer for it.
func TestSpecD8SearchDirectives(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{JustInTime: &JustInTimeOptions{Threshold: -1}, Servers: []ServerConfig{meaningTools()}})
	assert.Contains(t, m.PromptSections(PromptFull), "`SEARCH_TOOLS: what the tool should do`")
	queries := search.FindDirectives("I can't do that yet.\nSEARCH_TOOLS: tomorrow's weather")
	require.Equal(t, []string{"tomorrow's weather"}, queries)
	assert.Equal(t, []string{"mcp_s__forecast"}, toolNames(m.Default().SelectFor(t.Context(), queries[0])))
}

// SelectFor selects three tools for a message by default.
func TestThreeToolsForAMessage(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{JustInTime: new(JustInTimeOptions), Servers: []ServerConfig{inProcess("a", 30)}})
	assert.Len(t, m.Default().SelectFor(t.Context(), "chore"), 3)
}
