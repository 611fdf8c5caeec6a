package mcphybrid_test

import (
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without a limit, a search returns all that match, and it ends.
func TestSearchWithoutLimit(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: -1},
		Search: mcphybrid.RankingOptions{Results: mcphybrid.NoLimit, Limit: mcphybrid.NoLimit},
	})
	t.Cleanup(func() { m.Close() })
	assert.Empty(t, m.Search("chore", 0))
	var tools []mcpserver.ServerTool
	for i := range 60 {
		tools = append(tools, mcpserver.ServerTool{Tool: mcp.NewTool(fmt.Sprintf("chore_%d", i))})
	}
	require.NoError(t, m.AddTools("s", tools...))
	assert.Len(t, m.Search("chore", 0), 60)
	hits := m.Search("chore chore_7", mcphybrid.NoLimit) // by its name too
	require.NotEmpty(t, hits)
	assert.Equal(t, "chore_7", hits[0].Tool.OriginalName())
}
