package eino_test

import (
	"context"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
	"github.com/stretchr/testify/require"
)

// A streamer is a recorder that streams the pieces of each call: the first has id and name.
type streamer struct{ recorder }

func (s *streamer) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	answer, err := s.Generate(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	pieces := []*schema.Message{schema.AssistantMessage(answer.Content, nil)}
	for i, c := range answer.ToolCalls {
		rest := schema.ToolCall{Index: &i, Function: schema.FunctionCall{Arguments: c.Function.Arguments}}
		c.Index, c.Function.Arguments = &i, ""
		pieces = append(pieces, schema.AssistantMessage("", []schema.ToolCall{c}), schema.AssistantMessage("", []schema.ToolCall{rest}))
	}
	return schema.StreamReaderFromArray(pieces), nil
}

// Calls without a name, and of the name that calls have within the agent, are answered as
// those of any other unknown tool, and go back with a name and the id that they had.
func TestCallsOfNoTool(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mgr := mcphybrid.NewManager(nil)
			t.Cleanup(func() { mgr.Close() })
			sess := mgr.NewSession(nil)
			calls := []schema.ToolCall{
				{ID: "1", Function: schema.FunctionCall{Arguments: "{}"}},
				{ID: "2", Function: schema.FunctionCall{Name: "mcp_unlisted_tool", Arguments: "{}"}},
				{ID: "call#x", Function: schema.FunctionCall{Name: "mcp_unlisted_tool", Arguments: "{}"}},
				{ID: "call#y", Function: schema.FunctionCall{Arguments: "{}"}},
			}
			s := &streamer{recorder{calls: calls}}
			agent, err := react.NewAgent(t.Context(), &react.AgentConfig{
				ToolCallingModel: eino.Model(sess, s), ToolsConfig: eino.ToolsNode(sess), StreamToolCallChecker: eino.HasCall, MaxStep: 10,
			})
			require.NoError(t, err)
			in := []*schema.Message{schema.UserMessage("go")}
			if streams {
				out, err := agent.Stream(t.Context(), in)
				require.NoError(t, err)
				_, err = schema.ConcatMessageStream(out)
				require.NoError(t, err)
			} else {
				_, err = agent.Generate(t.Context(), in)
				require.NoError(t, err)
			}
			require.Len(t, s.got, 2)
			sent := s.got[1][len(s.got[1])-5:]
			for i, c := range calls {
				require.Equal(t, c.ID, sent[0].ToolCalls[i].ID)
				require.Equal(t, "mcp_unlisted_tool", sent[0].ToolCalls[i].Function.Name)
				require.Equal(t, c.ID, sent[1+i].ToolCallID)
				require.Contains(t, sent[1+i].Content, "There is no tool named")
			}
		})
	}
}
