package mcphybrid

import (
	"strings"
	"testing"

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
	queries := SearchDirectives("I can't do that yet.\nSEARCH_TOOLS: tomorrow's weather")
	require.Equal(t, []string{"tomorrow's weather"}, queries)
	assert.Equal(t, []string{"mcp_s__forecast"}, toolNames(m.Default().SelectFor(t.Context(), queries[0])))

	for _, test := range []struct {
		answer string
		want   []string
	}{
		{"", nil},
		{"SEARCH_TOOLS:", nil},
		{"SEARCH_TOOLS:   \n", nil},
		{"You can write SEARCH_TOOLS: x in a line", nil},
		{"search_tools: x", nil},
		{"SEARCH_TOOLS: a\r\nSEARCH_TOOLS:b\rSEARCH_TOOLS: a", []string{"a", "b"}},
		{"  **SEARCH_TOOLS: send mail**\n> `SEARCH_TOOLS: read mail`\n- SEARCH_TOOLS: 天气\n", []string{"send mail", "read mail", "天气"}},
		{strings.Repeat("SEARCH_TOOLS: x\nSEARCH_TOOLS: y\n", 100), []string{"x", "y"}},
		{"SEARCH_TOOLS: 1\nSEARCH_TOOLS: 2\nSEARCH_TOOLS: 3\nSEARCH_TOOLS: 4\nSEARCH_TOOLS: 5\nSEARCH_TOOLS: 6", []string{"1", "2", "3", "4", "5"}},
	} {
		assert.Equal(t, test.want, SearchDirectives(test.answer), "%q", test.answer)
	}
	long := SearchDirectives("SEARCH_TOOLS: " + strings.Repeat("x", 1<<20))
	assert.Len(t, long[0], maxQueryBytes-len("SEARCH_TOOLS: "))
}

// However an answer is cut into pieces, we find the same directives.
func FuzzDirectives(f *testing.F) {
	f.Add("text\nSEARCH_TOOLS: a b\nmore", 3)
	f.Add("**SEARCH_TOOLS: \xff**\r\nSEARCH_TOOLS: 天", 1)
	f.Fuzz(func(t *testing.T, answer string, size int) {
		want := SearchDirectives(answer)
		var d Directives
		for rest := answer; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			_, _ = d.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got := d.End()
		assert.Equal(t, want, got)
		if len(got) > maxDirectives {
			t.Fatal(len(got))
		}
		assert.Nil(t, d.End())
	})
}

// SelectFor selects three tools for a message by default.
func TestThreeToolsForAMessage(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{JustInTime: new(JustInTimeOptions), Servers: []ServerConfig{inProcess("a", 30)}})
	assert.Len(t, m.Default().SelectFor(t.Context(), "chore"), 3)
}
