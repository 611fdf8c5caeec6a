package mcpanthropic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/stretchr/testify/require"
)

// A stream that ends before the model's answer does is an error, and what came of it is not
// part of the conversation.
func TestBrokenFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]string{
		"empty": "",
		"text":  "event: message_start\ndata: " + `{"type":"message_start","message":{"type":"message","role":"assistant","content":[{"type":"text","text":"It is 4"}]}}` + "\n\n",
		"call":  "event: message_start\ndata: " + `{"type":"message_start","message":{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"x","name":"mcp_a__b","input":{}}]}}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, events)
			}))
			defer srv.Close()
			mgr := mcphybrid.NewManager(nil)
			defer mgr.Close()
			client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
			params := anthropic.BetaToolRunnerParams{}
			params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("How much?"))}
			r := mcpanthropic.NewToolRunnerStreaming(&client, mgr.NewSession(nil), params)
			var err error
			for _, err = range r.All(t.Context()) {
			}
			require.ErrorContains(t, err, "broke off")
			require.Equal(t, 1, requests)
			require.Len(t, r.Messages(), 1)
		})
	}
}
