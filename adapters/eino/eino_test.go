package eino_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/stretchr/testify/require"
)

func chatModel(t *testing.T, url string) model.ToolCallingChatModel {
	chat, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{APIKey: "none", BaseURL: url + "/v1", Model: "scripted"})
	require.NoError(t, err)
	return chat
}

// A history is what a host keeps of a conversation. It goes through JSON, as it would
// between processes.
type history []*schema.Message

func (h *history) restore(t *testing.T, before history) {
	if before == nil {
		*h = history{schema.SystemMessage(adaptertest.System)}
		return
	}
	raw, err := json.Marshal(before)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, h))
}

// keep adds what a run has brought, unless it was cancelled. An answer whose calls
// were not all answered is not kept.
func (h *history) keep(ctx context.Context, message string, got []*schema.Message) {
	if ctx.Err() != nil {
		return
	}
	if message != "" {
		got = append([]*schema.Message{schema.UserMessage(message)}, got...)
	}
	*h = append(*h, got...)
}

func with(h history, message string) []*schema.Message {
	if message == "" {
		return slices.Clone(h)
	}
	return append(slices.Clone(h), schema.UserMessage(message))
}

// reactHost is a conversation with the agent of flow/agent/react.
type reactHost struct {
	history
	agent   *react.Agent
	streams bool
}

func (h *reactHost) Run(ctx context.Context, message string) (string, error) {
	option, future := react.WithMessageFuture()
	var answer *schema.Message
	var err error
	var got []*schema.Message
	if h.streams {
		var stream *schema.StreamReader[*schema.Message]
		if stream, err = h.agent.Stream(ctx, with(h.history, message), option); err == nil {
			answer, err = schema.ConcatMessageStream(stream)
		}
		for it := future.GetMessageStreams(); ; {
			s, ok, broken := it.Next()
			if !ok || broken != nil {
				break
			}
			if m, bad := schema.ConcatMessageStream(s); bad == nil {
				got = append(got, m)
			}
		}
	} else {
		answer, err = h.agent.Generate(ctx, with(h.history, message), option)
		for it := future.GetMessages(); ; {
			m, ok, broken := it.Next()
			if !ok || broken != nil {
				break
			}
			got = append(got, m)
		}
	}
	h.keep(ctx, message, got)
	if err != nil {
		return "", err
	}
	return answer.Content, nil
}

func reactRuntime(streams bool) adaptertest.Runtime {
	return adaptertest.Runtime{
		Streams: streams,
		Chosen:  mcphybrid.ByBridge,
		Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
			agent, err := react.NewAgent(t.Context(), &react.AgentConfig{
				ToolCallingModel: eino.Model(s, chatModel(t, url)),
				ToolsConfig:      eino.ToolsNode(s),
				MaxStep:          60,

				StreamToolCallChecker: eino.HasCall,
			})
			require.NoError(t, err)
			h := &reactHost{agent: agent, streams: streams}
			if b, ok := before.(*reactHost); ok {
				h.restore(t, b.history)
			} else {
				h.restore(t, nil)
			}
			return h
		},
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, reactRuntime(false))
}

func TestReactStream(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, reactRuntime(true))
}

func TestCost(t *testing.T) {
	t.Parallel()
	adaptertest.Cost(t, "Eino", reactRuntime(false), mcphybrid.ByActivation, mcphybrid.ByBridge)
}

// adkHost is a conversation with an agent of adk.
type adkHost struct {
	history
	runner *adk.Runner
}

func (h *adkHost) Run(ctx context.Context, message string) (string, error) {
	var got []*schema.Message
	var failed error
	for events := h.runner.Run(ctx, with(h.history, message)); ; {
		e, ok := events.Next()
		if !ok {
			break
		}
		if e.Err != nil {
			failed = errors.Join(failed, e.Err)
			continue
		}
		if e.Output != nil && e.Output.MessageOutput != nil {
			m, err := e.Output.MessageOutput.GetMessage()
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			got = append(got, m)
		}
	}
	h.keep(ctx, message, got)
	if failed != nil {
		return "", failed
	}
	return got[len(got)-1].Content, nil
}

func adkRuntime(streams bool) adaptertest.Runtime {
	return adaptertest.Runtime{
		Streams: streams,
		Chosen:  mcphybrid.ByBridge,
		Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
			agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
				Name:        "agent",
				Description: "It does what it is asked.",
				Model:       eino.Model(s, chatModel(t, url)),
				ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: eino.ToolsNode(s)},
			})
			require.NoError(t, err)
			h := &adkHost{runner: adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, EnableStreaming: streams})}
			if b, ok := before.(*adkHost); ok {
				h.restore(t, b.history)
			} else {
				h.restore(t, nil)
			}
			return h
		},
	}
}

func TestADK(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adkRuntime(false))
}

func TestADKStream(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adkRuntime(true))
}

func TestExample(t *testing.T) {
	t.Parallel()
	adaptertest.Example(t)
}

// A recorder is a model that calls and records what it gets.
type recorder struct {
	model.ToolCallingChatModel
	calls []schema.ToolCall
	lists [][]string
	got   [][]*schema.Message
}

func (r *recorder) Generate(_ context.Context, in []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	var names []string
	for _, info := range model.GetCommonOptions(&model.Options{}, opts...).Tools {
		names = append(names, info.Name)
	}
	r.lists, r.got = append(r.lists, names), append(r.got, in)
	if len(r.lists) > 1 {
		return schema.AssistantMessage("done", nil), nil
	}
	return schema.AssistantMessage("", r.calls), nil
}

// The host's own tools keep their place and are the host's to run. A tool that came
// when the agent was there already can be called, and its image is seen.
func TestOwnAndLateTools(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	sess := mgr.NewSession(nil)
	own, err := utils.InferTool("own", "Says its name.", func(context.Context, struct{}) (string, error) { return "I am own", nil })
	require.NoError(t, err)
	node := eino.ToolsNode(sess)
	node.Tools = append(node.Tools, own)
	r := &recorder{calls: []schema.ToolCall{
		{ID: "1", Function: schema.FunctionCall{Name: "own", Arguments: "{}"}},
		{ID: "2", Function: schema.FunctionCall{Name: "mcp_late__picture", Arguments: "{}"}},
	}}
	agent, err := react.NewAgent(t.Context(), &react.AgentConfig{ToolCallingModel: eino.Model(sess, r), ToolsConfig: node, MaxStep: 10})
	require.NoError(t, err)

	late := server.NewMCPServer("late", "1.0.0")
	late.AddTool(mcp.NewTool("picture"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultImage("Here.", "iVBORw0KGgo=", "image/png"), nil
	})
	require.NoError(t, mgr.AddServer(t.Context(), mcphybrid.ServerConfig{Name: "late", InProcess: late}))
	_, err = agent.Generate(t.Context(), []*schema.Message{schema.UserMessage("go")})
	require.NoError(t, err)
	require.Equal(t, []string{"own", "mcp_late__picture", mcphybrid.PageToolName}, r.lists[0])
	sent := r.got[1][len(r.got[1])-4:]
	require.Equal(t, "mcp_late__picture", sent[0].ToolCalls[1].Function.Name)
	require.Equal(t, "I am own", sent[1].Content)
	require.Equal(t, "2", sent[2].ToolCallID)
	require.Contains(t, sent[2].Content, "Here.")
	require.Equal(t, schema.ChatMessagePartTypeImageURL, sent[3].UserInputMultiContent[1].Type)
}

func TestByProvider(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	sess := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider})
	_, err := eino.Model(sess, &recorder{}).Generate(t.Context(), nil)
	require.ErrorContains(t, err, "by provider")
}
