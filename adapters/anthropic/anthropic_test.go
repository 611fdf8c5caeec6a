package mcpanthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/stretchr/testify/require"
)

// A conversation keeps the messages of runners, one for each run.
type conversation struct {
	client   anthropic.Client
	session  *mcphybrid.Session
	streams  bool
	model    anthropic.Model
	messages []anthropic.BetaMessageParam
}

func (c *conversation) Run(ctx context.Context, message string) (string, error) {
	params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: c.model, MaxTokens: 1000,
		System:   []anthropic.BetaTextBlockParam{{Text: adaptertest.System}},
		Messages: c.messages,
	}}
	if message != "" {
		params.Messages = append(params.Messages[:len(params.Messages):len(params.Messages)], anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(message)))
	}
	answer, messages, err := c.run(ctx, params)
	if ctx.Err() == nil {
		c.messages = messages
	}
	return answer, err
}

func (c *conversation) run(ctx context.Context, params anthropic.BetaToolRunnerParams) (answer string, messages []anthropic.BetaMessageParam, err error) {
	if !c.streams {
		r := mcpanthropic.NewToolRunner(&c.client, c.session, params)
		last, err := r.RunToCompletion(ctx)
		if err != nil {
			return "", r.Messages(), err
		}
		return last.Content[0].Text, r.Messages(), nil
	}
	r := mcpanthropic.NewToolRunnerStreaming(&c.client, c.session, params)
	var streamed strings.Builder
	for event, err := range r.All(ctx) {
		if err != nil {
			return "", r.Messages(), err
		}
		streamed.WriteString(event.Delta.Text)
	}
	answer = r.LastMessage().Content[0].Text
	if !strings.HasSuffix(streamed.String(), answer) {
		answer = "it was not streamed"
	}
	return answer, r.Messages(), nil
}

// newModel takes tools in the conversation, oldModel takes none there.
const newModel, oldModel = anthropic.ModelClaudeSonnet5_5, anthropic.ModelClaudeHaiku4_5

func runtime(streams bool, model anthropic.Model) adaptertest.Runtime {
	return adaptertest.Runtime{Streams: streams, Floats: true, Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
		c := &conversation{
			client:  anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none")),
			session: s, streams: streams, model: model,
		}
		if before != nil { // through JSON, as between processes
			data, err := json.Marshal(before.(*conversation).messages)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &c.messages))
		}
		return c
	}}
}

// The session chooses by the model.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("new model, stream %t", streams), func(t *testing.T) {
			t.Parallel()
			r := runtime(streams, newModel)
			r.Fixed, r.Chosen = true, mcphybrid.ByAddition
			adaptertest.Run(t, r)
		})
		t.Run(fmt.Sprintf("old model, stream %t", streams), func(t *testing.T) {
			t.Parallel()
			r := runtime(streams, oldModel)
			r.Chosen = mcphybrid.ByBridge
			adaptertest.Run(t, r)
		})
	}
}

// A host may ask for another disclosure, whatever the model.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, d := range []mcphybrid.Disclosure{mcphybrid.ByActivation, mcphybrid.ByBridge} {
		for _, model := range []anthropic.Model{newModel, oldModel} {
			for _, streams := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %t", d, model, streams), func(t *testing.T) {
					t.Parallel()
					r := runtime(streams, model)
					r.Disclosure = d
					adaptertest.Run(t, r)
				})
			}
		}
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	adaptertest.Example(t)
}

func TestCost(t *testing.T) {
	t.Parallel()
	adaptertest.Cost(t, "anthropic-sdk-go", runtime(false, newModel), mcphybrid.ByAddition, mcphybrid.ByActivation, mcphybrid.ByBridge, mcphybrid.ByProvider)
}

// A conversation that was stored before its calls were made goes on with these, and within
// the limit of requests.
func TestStoredBeforeTheCalls(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("a", server.ServerTool{Tool: mcp.NewTool("b"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}}))
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","usage":{},
			"content":[{"type":"tool_use","id":"y","name":"mcp_a__b","input":{}}]}`)
	}))
	defer srv.Close()
	client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
	params := anthropic.BetaToolRunnerParams{MaxIterations: 2}
	params.Messages = []anthropic.BetaMessageParam{
		anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Do it.")),
		{Role: anthropic.BetaMessageParamRoleAssistant, Content: []anthropic.BetaContentBlockParamUnion{anthropic.NewBetaToolUseBlock("x", map[string]any{}, "mcp_a__b")}},
	}
	r := mcpanthropic.NewToolRunner(&client, mgr.NewSession(nil), params)
	last, err := r.RunToCompletion(t.Context())
	require.NoError(t, err)
	require.Equal(t, anthropic.BetaStopReasonToolUse, last.StopReason)
	require.Len(t, bodies, 2)
	require.Contains(t, bodies[0], `"tool_use_id":"x"`)
	require.NotContains(t, bodies[0], `"tool_use_id":"y"`)
	require.Contains(t, bodies[1], `"tool_use_id":"y"`)
	require.Len(t, r.Messages(), 6)
	last, err = r.NextMessage(t.Context())
	require.NoError(t, err)
	require.Nil(t, last)
}

// A session without sections adds no block to the system prompt: the API refuses empty ones.
func TestNoSections(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	s := mgr.NewSession(nil)
	require.Empty(t, s.PromptSections(mcphybrid.PromptFull))
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Hi."}]}`)
	}))
	defer srv.Close()
	client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
	for _, system := range [][]anthropic.BetaTextBlockParam{nil, {{Text: "Be brief."}}} {
		params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
			System: system, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Hello."))},
		}}
		_, err := mcpanthropic.NewToolRunner(&client, s, params).RunToCompletion(t.Context())
		require.NoError(t, err)
	}
	require.NotContains(t, bodies[0], `"system"`)
	require.Contains(t, bodies[1], `"system":[{"text":"Be brief.","cache_control":{"type":"ephemeral"},"type":"text"}]`)
}

// Calls of an answer that was refused, or cut off, are not made when another runner goes on.
func TestCallsThatDoNotCount(t *testing.T) {
	t.Parallel()
	for stop, said := range map[string]string{
		"refusal":    `{"type":"text","text":"I look."},{"type":"thinking","thinking":"Hm.","signature":"s"},`,
		"max_tokens": "",
	} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", stop, streams), func(t *testing.T) {
				t.Parallel()
				mgr := mcphybrid.NewManager(nil)
				defer mgr.Close()
				called := 0
				require.NoError(t, mgr.AddTools("a", server.ServerTool{Tool: mcp.NewTool("b"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					called++
					return mcp.NewToolResultText("done"), nil
				}}))
				var bodies []string
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(body))
					reason, content := stop, said+`{"type":"tool_use","id":"x","name":"mcp_a__b","input":{}}`
					if len(bodies) > 1 {
						reason, content = "end_turn", `{"type":"text","text":"Hi."}`
					}
					if streams {
						w.Header().Set("Content-Type", "text/event-stream")
						for _, e := range []string{
							`{"type":"message_start","message":{"type":"message","role":"assistant","content":[` + content + `]}}`,
							`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{}}`,
							`{"type":"message_stop"}`,
						} {
							var in struct{ Type string }
							_ = json.Unmarshal([]byte(e), &in)
							_, _ = io.WriteString(w, "event: "+in.Type+"\ndata: "+e+"\n\n")
						}
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"`+reason+`","content":[`+content+`]}`)
				}))
				defer srv.Close()
				c := &conversation{client: anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none")), session: mgr.NewSession(nil), streams: streams}
				params := anthropic.BetaToolRunnerParams{}
				params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Do it."))}
				_, messages, err := c.run(t.Context(), params)
				require.NoError(t, err)
				params.Messages = append(messages, anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go on.")))
				_, _, err = c.run(t.Context(), params)
				require.NoError(t, err)
				require.Len(t, bodies, 2)
				require.NotContains(t, bodies[1], "tool_use")
				require.Equal(t, said != "", strings.Contains(bodies[1], "I look."))
				require.NotContains(t, bodies[1], "thinking") // no message may end with it

				params.Messages = messages
				_, _, err = c.run(t.Context(), params)
				require.NoError(t, err)
				require.Zero(t, called)
			})
		}
	}
}
