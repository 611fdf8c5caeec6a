package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	mcpgenkit "github.com/mcphybrid/mcphybrid/adapters/genkit"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/openai/openai-go/option"
	"github.com/stretchr/testify/require"
)

// A host is a conversation. Its messages go through JSON, as between processes.
type host struct {
	g        *genkit.Genkit
	sess     *mcphybrid.Session
	messages []*ai.Message
	streams  bool
}

func (h *host) Run(ctx context.Context, message string) (string, error) {
	sent, last := h.messages, h.messages
	if message != "" {
		sent = append(sent[:len(sent):len(sent)], ai.NewUserTextMessage(message))
	}
	opts := []ai.GenerateOption{
		ai.WithModelName("openai/scripted"), ai.WithMessages(sent...), ai.WithUse(mcpgenkit.Use(h.sess, &mcpgenkit.Options{OnRequest: func(m []*ai.Message) { last = m }})), ai.WithMaxTurns(50),
	}
	if h.streams {
		opts = append(opts, ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return nil }))
	}
	resp, err := genkit.Generate(ctx, h.g, opts...)
	if err != nil {
		if ctx.Err() == nil {
			h.messages = last
		}
		return "", err
	}
	h.messages = resp.History()
	return resp.Text(), nil
}

func runtime(streams bool) adaptertest.Runtime {
	return adaptertest.Runtime{
		Streams: streams,
		Chosen:  mcphybrid.ByBridge,
		Quotes:  true, // of Genkit's OpenAI plugin, whatever the output
		Floats:  true, // it reads arguments so
		Rounds:  true,
		Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
			plugin := &openai.OpenAI{APIKey: "none", Opts: []option.RequestOption{option.WithBaseURL(url + "/v1")}}
			h := &host{g: genkit.Init(t.Context(), genkit.WithPlugins(plugin)), sess: s, streams: streams}
			if before == nil {
				h.messages = []*ai.Message{ai.NewSystemTextMessage(adaptertest.System)}
				return h
			}
			raw, err := json.Marshal(before.(*host).messages)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(raw, &h.messages))
			return h
		},
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, runtime(false))
}

func TestStream(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, runtime(true))
}

func TestCost(t *testing.T) {
	t.Parallel()
	adaptertest.Cost(t, "Genkit", runtime(false), mcphybrid.ByActivation, mcphybrid.ByBridge)
}

func TestExample(t *testing.T) {
	t.Parallel()
	adaptertest.Example(t)
}

// A number that a float does not hold gets to the tool as a plugin hands it on. That of
// Anthropic hands on JSON; that of OpenAI has a float by then: see runtime.
func TestDigits(t *testing.T) {
	t.Parallel()
	const arguments = `{"b":9007199254740993,"a":1.0}`
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	var got []string
	require.NoError(t, mgr.AddTools("own", server.ServerTool{Tool: mcp.NewTool("find"), Handler: func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got = append(got, string(req.Params.RawArguments))
		return mcp.NewToolResultText("found"), nil
	}}))
	g := genkit.Init(t.Context())
	var sent []any
	genkit.DefineModelAction(g, "test/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, func(_ context.Context, req *ai.ModelRequest, _ struct{}, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		if len(sent) > 0 || req.Messages[len(req.Messages)-1].Role == ai.RoleTool {
			for _, m := range req.Messages {
				for _, p := range m.Content {
					if p.IsToolRequest() {
						sent = append(sent, p.ToolRequest.Input)
					}
				}
			}
			return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("done")}, nil
		}
		var calls []*ai.Part
		for i, input := range []any{json.RawMessage(arguments), nil, "no object"} {
			calls = append(calls, ai.NewToolRequestPart(&ai.ToolRequest{Name: "mcp_own__find", Ref: fmt.Sprint(i), Input: input}))
		}
		return &ai.ModelResponse{Request: req, Message: ai.NewModelMessage(calls...)}, nil
	})
	resp, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithPrompt("go"), ai.WithUse(mcpgenkit.Use(mgr.NewSession(nil), nil)))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{arguments, "{}"}, got)
	require.Len(t, sent, 3)
	text, err := json.Marshal(sent)
	require.NoError(t, err)
	require.Equal(t, `[`+arguments+`,{},"no object"]`, string(text))
	require.Equal(t, "done", resp.Text())
}

// The host's own tools keep their place and are the host's to run.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	g := genkit.Init(t.Context())
	var own []ai.ToolRef
	for _, name := range []string{"c", "a", "d", "b"} {
		own = append(own, genkit.DefineTool(g, name, "Says its name.", func(*ai.ToolContext, struct{}) (string, error) { return "I am " + name, nil }))
	}
	var lists [][]string
	genkit.DefineModelAction(g, "test/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, func(_ context.Context, req *ai.ModelRequest, _ struct{}, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		var names []string
		for _, tool := range req.Tools {
			names = append(names, tool.Name)
		}
		lists = append(lists, names)
		last := req.Messages[len(req.Messages)-1]
		if last.Role != ai.RoleTool {
			calls := []*ai.Part{
				ai.NewToolRequestPart(&ai.ToolRequest{Name: "a", Ref: "1", Input: map[string]any{}}),
				ai.NewToolRequestPart(&ai.ToolRequest{Name: "nobody", Ref: "2", Input: map[string]any{}}),
			}
			return &ai.ModelResponse{Request: req, Message: ai.NewModelMessage(calls...)}, nil
		}
		return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("done")}, nil
	})
	for range 5 {
		resp, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithPrompt("go"),
			ai.WithTools(own...), ai.WithUse(mcpgenkit.Use(mgr.NewSession(nil), nil)))
		require.NoError(t, err)
		history := resp.History()
		require.Len(t, history, 4)
		results := history[2].Content
		require.Equal(t, "I am a", results[0].ToolResponse.Output)
		require.Equal(t, "nobody", results[1].ToolResponse.Name)
		require.Contains(t, results[1].ToolResponse.Output, "Error: ")
		require.Equal(t, "nobody", history[1].Content[1].ToolRequest.Name)
	}
	for _, names := range lists {
		require.Equal(t, []string{"a", "b", "c", "d"}, names[:4])
	}
}

func TestByProvider(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	g := genkit.Init(t.Context())
	genkit.DefineModelAction(g, "test/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, func(context.Context, *ai.ModelRequest, struct{}, ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		return nil, errors.New("the model was asked")
	})
	sess := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider})
	_, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithPrompt("go"), ai.WithUse(mcpgenkit.Use(sess, nil)))
	require.ErrorContains(t, err, "by provider")
}

// A call without arguments is a call: the model gets the result.
func TestNoArguments(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	require.NoError(t, mgr.AddTools("a", server.ServerTool{Tool: mcp.NewTool("b"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}}))
	for name, input := range map[string]any{"nil": nil, "nil map": map[string]any(nil), "empty": map[string]any{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := genkit.Init(t.Context())
			var again any
			genkit.DefineModelAction(g, "test/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, func(_ context.Context, req *ai.ModelRequest, _ struct{}, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
				last := req.Messages[len(req.Messages)-1]
				if last.Role != ai.RoleTool {
					return &ai.ModelResponse{Request: req, Message: ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: "mcp_a__b", Ref: "1", Input: input}))}, nil
				}
				again = req.Messages[len(req.Messages)-2].Content[0].ToolRequest.Input
				return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage(fmt.Sprint(last.Content[0].ToolResponse.Output))}, nil
			})
			resp, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithPrompt("go"), ai.WithUse(mcpgenkit.Use(mgr.NewSession(nil), nil)))
			require.NoError(t, err)
			require.Equal(t, "done", resp.Text())
			require.Equal(t, map[string]any{}, again)
		})
	}
}
