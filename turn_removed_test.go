package mcphybrid_test

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/require"
)

// A tool that came and went since the last Turn is not in the next one: a removal of it
// would stand before its addition.
func TestTurnCameAndWent(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	defer m.Close()
	add := func(name string) {
		require.NoError(t, m.AddTools(name, server.ServerTool{Tool: mcp.NewTool("x")}))
	}
	add("a")
	add("b")
	s := m.NewSession(nil)
	next := func() mcphybrid.Turn {
		turn, err := s.Turn(provider.Anthropic, "claude-sonnet-5-5")
		require.NoError(t, err)
		return turn
	}
	names := func(turn mcphybrid.Turn) (list []string) {
		for _, e := range turn.Added {
			list = append(list, e.Name)
		}
		return list
	}
	next()
	s.ActivateTools([]string{"mcp_a__x"})
	require.Equal(t, []string{"mcp_a__x"}, names(next()))
	require.True(t, m.RemoveServer("a"))
	require.Equal(t, []string{"mcp_a__x"}, next().Removed)

	s.ActivateTools([]string{"mcp_b__x"})
	s.TakeBack(0)
	turn := next()
	require.Equal(t, []string{"mcp_b__x"}, names(turn))
	require.Nil(t, turn.Removed)

	add("a")
	s.ActivateTools([]string{"mcp_a__x"})
	s.TakeBack(0)
	turn = next()
	require.Equal(t, []string{"mcp_b__x", "mcp_a__x"}, names(turn))
	require.Nil(t, turn.Removed)
}
