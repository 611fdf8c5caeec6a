package mcpanthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/require"
)

// The body of a request is one that the SDK knows, with each member: an addition, a removal,
// news, and the marks of what to cache.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, model := range []anthropic.Model{newModel, oldModel} {
		mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
		defer mgr.Close()
		add := func(name string) {
			schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`)
			require.NoError(t, mgr.AddTools(name, server.ServerTool{Tool: mcp.NewToolWithRawSchema("one", "Does it.", schema)}, server.ServerTool{Tool: mcp.NewTool("two")}))
		}
		add("a")
		s := mgr.NewSession(nil)
		messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":[{"type":"text","text":"Go."}]}`)}
		next := func() mcphybrid.Turn {
			turn, err := s.Turn(provider.Anthropic, string(model))
			require.NoError(t, err)
			messages = append(messages, turn.Append...)
			return turn
		}
		next()
		add("b")
		s.ActivateTools([]string{"mcp_b__one"})
		next()
		mgr.RemoveServer("b")
		turn := next()
		require.Equal(t, model == newModel, turn.Removed != nil)
		body := turn.Body("Be brief.", messages)
		body["model"], body["max_tokens"] = model, 1000
		want, err := json.Marshal(body)
		require.NoError(t, err)
		var params anthropic.BetaMessageNewParams
		require.NoError(t, json.Unmarshal(want, &params))
		got, err := json.Marshal(params)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}
