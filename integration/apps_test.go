package integration

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One of the extension's own servers: its page polls by a tool that is not for the model.
func TestSpecH5RealApp(t *testing.T) {
	mgr := newManager(t, server{name: "monitor", Command: "node", Args: []string{script("system-monitor"), "--stdio"}})
	require.NoError(t, mgr.Start(t.Context()))
	s := mgr.Default()
	require.Len(t, s.InlineTools(), 1)
	tool := s.InlineTools()[0]
	assert.Equal(t, "get-system-info", tool.OriginalName())

	page, err := s.ReadResource(t.Context(), "monitor", tool.AppURI())
	require.NoError(t, err)
	require.Len(t, page.Contents, 1)
	assert.Contains(t, page.Contents[0].(mcp.TextResourceContents).Text, "<html")

	turn, err := s.Turn(provider.Anthropic, "claude-opus-5-5")
	require.NoError(t, err)
	sent, err := json.Marshal(turn)
	require.NoError(t, err)
	assert.NotContains(t, string(sent), "poll-system-stats")
	_, err = s.Call(t.Context(), "mcp_monitor__poll-system-stats", nil)
	assert.ErrorIs(t, err, mcphybrid.ErrUnknownTool)

	require.Len(t, s.AppTools("monitor"), 2)
	r, err := s.CallFromApp(t.Context(), "monitor", "poll-system-stats", nil)
	require.NoError(t, err)
	assert.False(t, r.IsError)
	stats, _ := r.StructuredContent.(map[string]any)
	assert.Contains(t, stats, "cpu")
}
