package mcphybrid

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each reason has its words, and those about something name it.
func TestReasonText(t *testing.T) {
	t.Parallel()
	for r := range whyUndecided {
		assert.NotEmpty(t, r.text(nil))
		assert.NotContains(t, r.text(nil), "%!d(string", "%d", r)
	}
	assert.Equal(t, `rule "x" excludes it`, whyExcluded.text("x"))
	assert.Equal(t, "7 tools before it are inline", whyCount.text(7))
	assert.Equal(t, "there is room", whyFits.text(7))
}

// The reason names the limit that holds: half as many tokens where tools are deferred.
func TestReasonNamesTheTokens(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	tools := mcptest.Chores("a", 60)
	for i := range tools {
		tools[i].Tool.Description = strings.Repeat("long ", 1200)
	}
	require.NoError(t, m.AddTools("a", tools...))
	list := m.Default().Placements()
	assert.Equal(t, "the budget of 16000 tokens for inline tools ends before it", list[len(list)-1].Reason)
}

// Tools in a row with one verdict have reasons of their own where these are about the tool.
func TestReasonsOfToolsInARow(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Usage: &UsageOptions{Counts: map[string]float64{"mcp_a__tool_000": 1, "mcp_a__tool_001": 2}}})
	require.NoError(t, m.AddTools("a", mcptest.Chores("a", 2)...))
	require.NoError(t, m.AddTools("b", mcptest.Chores("b", 3)...))
	reasons := func(s *Session) (list []string) {
		for _, p := range s.Placements() {
			list = append(list, p.Tool.Name()+": "+p.Reason)
		}
		return list
	}
	assert.Equal(t, []string{
		"mcp_a__tool_000: it ranks 2 among the most used",
		"mcp_a__tool_001: it ranks 1 among the most used",
		"mcp_b__tool_000: 2 tools before it are inline",
		"mcp_b__tool_001: 2 tools before it are inline",
		"mcp_b__tool_002: 2 tools before it are inline",
	}, reasons(m.Default()))
	assert.Equal(t, []string{
		`mcp_a__tool_000: an access list does not permit it: it denies "a/*"`,
		`mcp_a__tool_001: an access list does not permit it: it denies "a/*"`,
		`mcp_b__tool_000: an access list does not permit it: it denies "b/*"`,
		`mcp_b__tool_001: an access list does not permit it: it denies "b/*"`,
		`mcp_b__tool_002: an access list does not permit it: it denies "b/*"`,
	}, reasons(m.NewSession(&SessionOptions{Access: Access{Deny: []string{"a/*", "b/*"}}})))
}
