package mcpopenai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	mcpopenai "github.com/mcphybrid/mcphybrid/adapters/openai"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

// A host sees each call as the model wrote it, and what it returns is the result.
func TestCall(t *testing.T) {
	t.Parallel()
	const written = `{"z":12345678901234567890,"a": `
	var told []string
	srv := httptest.NewServer(modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
		if n := len(got.Turns) - 1; n > 0 {
			told = append(told, got.Turns[n].Results[0].Text)
			return modeltest.Step{Say: "Well."}, err
		}
		return modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "none", Arguments: written}}}, err
	}))
	defer srv.Close()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	var calls []string
	call := func(_ context.Context, name string, args any) (*mcp.CallToolResult, error) {
		calls = append(calls, fmt.Sprintf("%s %s", name, args))
		return mcp.NewToolResultText("mine"), nil
	}
	chat := mcpopenai.NewChat(client(srv.URL), mgr.NewSession(nil), openai.ChatCompletionNewParams{Model: "m"})
	chat.Instructions, chat.Call = "Be brief.", call
	_, err := chat.Run(t.Context(), openai.UserMessage("Hello."))
	require.NoError(t, err)
	answers := mcpopenai.NewResponses(client(srv.URL), mgr.NewSession(nil), responses.ResponseNewParams{Model: "m"})
	answers.Call = call
	_, err = answers.Run(t.Context(), responses.ResponseInputItemParamOfMessage("Hello.", "user"))
	require.NoError(t, err)
	require.Equal(t, []string{"none " + written, "none " + written}, calls)
	require.Equal(t, []string{"mine", "mine"}, told)
}

// The calls of an answer that was cut off are not made, nor are they part of the
// conversation.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"length", "content_filter"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"`+reason+`","message":{"role":"assistant","content":"I'll s",
				"tool_calls":[{"id":"x","type":"function","function":{"name":"none","arguments":"{"}}]}}]}`)
		}))
		defer srv.Close()
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		chat := mcpopenai.NewChat(client(srv.URL), mgr.NewSession(nil), openai.ChatCompletionNewParams{})
		chat.Call = func(context.Context, string, any) (*mcp.CallToolResult, error) {
			t.Error("a call was made")
			return mcp.NewToolResultText(""), nil
		}
		answer, err := chat.Run(t.Context(), openai.UserMessage("Hello."))
		require.NoError(t, err)
		require.Equal(t, reason, answer.Choices[0].FinishReason)
		require.Len(t, chat.Params.Messages, 2)
		require.Equal(t, "I'll s", chat.Params.Messages[1].OfAssistant.Content.OfString.Value)
		require.Empty(t, chat.Params.Messages[1].OfAssistant.ToolCalls)
	}
}
