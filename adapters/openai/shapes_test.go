package mcpopenai_test

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

// The SDK knows each tool, each message and each item of a request, with all members.
func TestBodies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format provider.Format
		model  string
	}{
		{provider.OpenAIResponses, "gpt-5.6"},
		{provider.OpenAIResponses, "gpt-5"},
		{provider.OpenAIChat, "gpt-4.1"},
	} {
		mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
		defer mgr.Close()
		add := func(name string) {
			schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`)
			require.NoError(t, mgr.AddTools(name, server.ServerTool{Tool: mcp.NewToolWithRawSchema("one", "Does it.", schema)}, server.ServerTool{Tool: mcp.NewTool("two")}))
		}
		add("a")
		s := mgr.NewSession(nil)
		var messages []json.RawMessage // the session's
		next := func() mcphybrid.Turn {
			turn, err := s.Turn(test.format, test.model)
			require.NoError(t, err)
			messages = append(messages, turn.Append...)
			return turn
		}
		next()
		add("b")
		s.ActivateTools([]string{"mcp_b__one"})
		turn := next()
		require.Equal(t, test.model == "gpt-5.6", turn.Added != nil)
		require.NotNil(t, turn.Append)
		body := turn.Body("Be brief.", messages)
		for _, list := range []struct {
			elements any
			param    func() any
		}{
			{body["tools"], func() any {
				if test.format == provider.OpenAIChat {
					return new(openai.ChatCompletionToolUnionParam)
				}
				return new(responses.ToolUnionParam)
			}},
			{body["messages"], func() any { return new(openai.ChatCompletionMessageParamUnion) }},
			{body["input"], func() any { return new(responses.ResponseInputItemUnionParam) }},
		} {
			elements, _ := list.elements.([]json.RawMessage) // one of messages and input is missing
			for _, want := range elements {
				param := list.param()
				require.NoError(t, json.Unmarshal(want, param))
				got, err := json.Marshal(param)
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(got))
			}
		}
	}
}
