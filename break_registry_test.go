package mcphybrid

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Breaks docs/sessions.md:187-190, "The library then keeps the table in step: Inline and active tools are
// registered, and so is the search tool": the first Turn chooses ByBridge, the default where the conversation takes no tools, and lists
// mcp_tool_describe, mcp_tool_call and mcp_tool_page. The host's table gets none of them, until
// the catalog happens to change, so each call of a deferred tool ends as ErrUnknownTool. Cause: turn.go:180,
// nextRequest: takeTurn and untell change what the session offers, and nothing calls registrar.Sync
// behind them, as Compact (activation.go:283) and SetIntent do.
func TestBreakRegistryLacksTheCallTool(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	m := NewManager(&Options{Registry: r, Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5), inProcess("b", 5)}})
	defer m.Close()
	require.NoError(t, m.Start(t.Context()))
	turn := turnOf(t, m.Default(), FormatOpenAIChat, "")
	require.Contains(t, exportedNames(turn.Tools), CallToolName)
	_, err := r.Execute(t.Context(), CallToolName, json.RawMessage(`{"name":"mcp_b__tool_004","arguments":{"text":"x"}}`))
	assert.NoError(t, err, "the model has the tool, and the host's table has not")

	own, table := m.NewSession(nil), NewRegistry() // a session without a table, and one with its own
	s := m.NewSession(&SessionOptions{Registry: table})
	defer s.Close()
	turnOf(t, own, FormatOpenAIChat, "")
	for _, name := range exportedNames(turnOf(t, s, FormatOpenAIChat, "").Tools) {
		if _, ok := table.Get(name); !ok {
			assert.True(t, table.TryActivateDeferred(name), name)
		}
	}
}
