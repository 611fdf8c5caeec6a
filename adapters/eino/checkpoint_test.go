package eino_test

import (
	"context"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
	"github.com/stretchr/testify/require"
)

// checkpoints is a store of Eino's checkpoints.
type checkpoints struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (c *checkpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, ok := c.all[id]
	return state, ok, nil
}

func (c *checkpoints) Set(_ context.Context, id string, state []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[id] = state
	return nil
}

// A tool of the host asks the user while the session's are done. Another process goes on
// from Eino's checkpoint and the saved session. No call is made twice.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 10)
	camera := server.NewMCPServer("camera", "1.0.0")
	camera.AddTool(mcp.NewTool("photo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls <- "photo"
		return mcp.NewToolResultImage("Here.", "iVBORw0KGgo=", "image/png"), nil
	})
	ask, err := utils.InferTool("ask", "Asks the user.", func(ctx context.Context, _ struct{}) (string, error) {
		if interrupted, _, _ := tool.GetInterruptState[any](ctx); !interrupted {
			return "", tool.Interrupt(ctx, "go on?")
		}
		return "yes", nil
	})
	require.NoError(t, err)
	r := &recorder{calls: []schema.ToolCall{
		{ID: "1", Function: schema.FunctionCall{Name: "mcp_camera__photo", Arguments: "{}"}},
		{ID: "2", Function: schema.FunctionCall{Name: "nobody", Arguments: "{}"}},
		{ID: "3", Function: schema.FunctionCall{Name: "ask", Arguments: "{}"}},
	}}
	store := &checkpoints{all: make(map[string][]byte)}

	process := func() (*mcphybrid.Manager, func(*mcphybrid.Session) *adk.Runner) {
		mgr := mcphybrid.NewManager(&mcphybrid.Options{
			Inline:  mcphybrid.InlineOptions{Max: -1},
			Servers: []mcphybrid.ServerConfig{{Name: "camera", InProcess: camera}},
		})
		t.Cleanup(func() { mgr.Close() })
		require.NoError(t, mgr.Start(t.Context()))
		return mgr, func(sess *mcphybrid.Session) *adk.Runner {
			node := eino.ToolsNode(sess)
			node.Tools = append(node.Tools, ask)
			agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
				Name: "agent", Description: "It does what it is asked.",
				Model: eino.Model(sess, r), ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: node},
			})
			require.NoError(t, err)
			return adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, CheckPointStore: store})
		}
	}
	drain := func(events *adk.AsyncIterator[*adk.AgentEvent]) (interrupted bool) {
		for {
			e, ok := events.Next()
			if !ok {
				return interrupted
			}
			require.NoError(t, e.Err)
			interrupted = interrupted || e.Action != nil && e.Action.Interrupted != nil
		}
	}

	mgr, runner := process()
	sess := mgr.NewSession(nil)
	require.True(t, drain(runner(sess).Run(t.Context(), []*schema.Message{schema.UserMessage("go")}, adk.WithCheckPointID("run"))))
	mgr2, runner := process()
	restored, _, err := mgr2.RestoreSession(sess.Save(), nil)
	require.NoError(t, err)
	events, err := runner(restored).Resume(t.Context(), "run")
	require.NoError(t, err)
	require.False(t, drain(events))

	require.Len(t, calls, 1)
	require.Len(t, r.got, 2)
	sent := r.got[1][len(r.got[1])-5:]
	require.Equal(t, "nobody", sent[0].ToolCalls[1].Function.Name)
	require.Contains(t, sent[1].Content, "Here.")
	require.Equal(t, "2", sent[2].ToolCallID)
	require.Contains(t, sent[2].Content, "Error: ")
	require.Equal(t, "yes", sent[3].Content)
	require.Equal(t, "iVBORw0KGgo=", *sent[4].UserInputMultiContent[1].Image.Base64Data)
	require.Equal(t, r.lists[0], r.lists[1])
}
