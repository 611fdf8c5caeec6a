package mcphybrid_test

import (
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
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

// Without a limit on the number of tools, all can be named, known and used.
func TestToolsWithoutLimit(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(&mcphybrid.Options{
		Trust: mcphybrid.TrustQuarantine, Limits: config.Limits{MaxTools: mcphybrid.NoLimit},
	})
	t.Cleanup(func() { m.Close() })
	srv := mcpserver.NewMCPServer("s", "1")
	srv.AddTool(mcp.NewTool("plain"), nil)
	srv.AddTool(mcp.NewTool("a name with a hash"), nil)
	require.NoError(t, m.AddServer(t.Context(), mcphybrid.ServerConfig{Name: "s", InProcess: srv}))
	assert.Empty(t, m.Problems())
	assert.Len(t, m.InlineTools(), 2)
}
