package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/provider"
)

// What comes between a host's look at the list and the first Turn, with a list that must not
// change, is in the conversation like what comes later: it is searched, and the model is told of it.
func TestToolsThatComeBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 1)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	begun := []string{"mcp_a__tool_000", SearchToolName, DescribeToolName, CallToolName, PageToolName}
	assert.Equal(t, begun, toolNames(s.Tools()))
	require.NoError(t, m.AddTools("late", echoTool("come", "Comes late."), echoTool("go", "Goes late.")))
	assert.Equal(t, begun, toolNames(s.Tools()), "it waits")
	turn, err := s.Turn(provider.OpenAIChat, "")
	require.NoError(t, err)
	require.Len(t, turn.Tools, len(begun))
	assert.Empty(t, turn.News, "as the list was")
	assert.Equal(t, []string{"mcp_late__come", "mcp_late__go"}, toolNames(s.DeferredTools()))
	turn, err = s.Turn(provider.OpenAIChat, "")
	require.NoError(t, err)
	assert.Contains(t, turn.News, "2 more tools are available from these MCP servers: late (2: come).")
	require.NoError(t, check(m, s))
}
