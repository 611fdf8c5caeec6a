package mcpanthropic_test

import (
	"context"
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
	"github.com/stretchr/testify/require"
)

// answering runs a conversation in which the model answers with stop and content, and then
// with "Well.". It returns what the tools mcp_a__one and mcp_a__two were called with, as the
// session got it, and what the model was sent.
func answering(t *testing.T, stop, content string) (calls, bodies []string, r *mcpanthropic.Runner) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		stop, content := stop, content
		if len(bodies) > 1 {
			stop, content = "end_turn", `{"type":"text","text":"Well."}`
		}
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"`+stop+`","content":[`+content+`]}`)
	}))
	t.Cleanup(srv.Close)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Middleware: []mcphybrid.Middleware{func(next mcphybrid.Handler) mcphybrid.Handler {
		return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
			calls = append(calls, string(c.Arguments))
			return next(ctx, c)
		}
	}}})
	t.Cleanup(func() { mgr.Close() })
	done := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}
	require.NoError(t, mgr.AddTools("a", server.ServerTool{Tool: mcp.NewTool("one"), Handler: done}, server.ServerTool{Tool: mcp.NewTool("two"), Handler: done}))
	client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
	params := anthropic.BetaToolRunnerParams{}
	params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go."))}
	r = mcpanthropic.NewToolRunner(&client, mgr.NewSession(nil), params)
	_, err := r.RunToCompletion(t.Context())
	require.NoError(t, err)
	return calls, bodies, r
}

// The calls before a fallback are those of an attempt that was refused.
func TestFallback(t *testing.T) {
	t.Parallel()
	const one, fallback = `{"type":"tool_use","id":"x","name":"mcp_a__one","input":{"n":1}},`, `{"type":"fallback","from":{"model":"m"},"to":{"model":"n"}}`
	calls, bodies, _ := answering(t, "tool_use", one+fallback+`,{"type":"tool_use","id":"y","name":"mcp_a__two","input":{"n":2}}`)
	require.Equal(t, []string{`{"n":2}`}, calls)
	require.Len(t, bodies, 2)
	require.Equal(t, 1, strings.Count(bodies[1], `"tool_result"`))
	require.Contains(t, bodies[1], `"tool_use_id":"y"`)

	calls, bodies, _ = answering(t, "tool_use", one+fallback)
	require.Empty(t, calls)
	require.Len(t, bodies, 1)
}

// A tool gets the numbers that the model wrote.
func TestDigits(t *testing.T) {
	t.Parallel()
	calls, _, _ := answering(t, "tool_use", `{"type":"tool_use","id":"x","name":"mcp_a__one","input":{"n":1234567890123456789}}`)
	require.Equal(t, []string{`{"n":1234567890123456789}`}, calls)
}

// An answer without content is no part of the conversation: the API refuses to get it back.
func TestEmptyAnswer(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{"end_turn", "tool_use"} {
		_, bodies, r := answering(t, stop, "")
		require.Len(t, bodies, 1)
		require.Len(t, r.Messages(), 1)
	}
	_, bodies, r := answering(t, "pause_turn", "")
	require.Len(t, bodies, 2)
	require.Equal(t, bodies[0], bodies[1])
	require.Len(t, r.Messages(), 2)
}

func TestEmptyAnswerStreams(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_start\ndata: "+`{"type":"message_start","message":{"type":"message","role":"assistant","content":[]}}`+"\n\n"+
			"event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`+"\n\n"+
			"event: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n")
	}))
	defer srv.Close()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
	params := anthropic.BetaToolRunnerParams{}
	params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go."))}
	r := mcpanthropic.NewToolRunnerStreaming(&client, mgr.NewSession(nil), params)
	for _, err := range r.All(t.Context()) {
		require.NoError(t, err)
	}
	require.Len(t, r.Messages(), 1)
}
