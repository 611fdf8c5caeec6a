package mcpanthropic_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/stretchr/testify/require"
)

// A host may compact the session in the middle of a run: the next list has fewer tools.
func TestCompactInARun(t *testing.T) {
	t.Parallel()
	for name, disclosure := range map[string]mcphybrid.Disclosure{"list": mcphybrid.ByActivation, "messages": mcphybrid.Automatic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
			defer mgr.Close()
			for _, name := range []string{"alpha", "beta"} {
				require.NoError(t, mgr.AddTools(name, server.ServerTool{Tool: mcp.NewTool("do"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultText("done"), nil
				}}))
			}
			sess := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: disclosure})
			_, err := sess.Call(t.Context(), "mcp_beta__do", nil)
			require.NoError(t, err)
			var lists []int
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in struct{ Tools []json.RawMessage }
				if json.NewDecoder(r.Body).Decode(&in) != nil {
					http.Error(w, "no JSON", http.StatusBadRequest)
					return
				}
				lists = append(lists, len(in.Tools))
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"x","name":"mcp_alpha__do","input":{}}]}`)
			}))
			defer srv.Close()
			client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
			params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
				Model: newModel, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Do it."))},
			}}
			r := mcpanthropic.NewToolRunner(&client, sess, params)
			_, err = r.NextMessage(t.Context())
			require.NoError(t, err)
			for range 100 {
				sess.NextTurn()
			}
			require.Len(t, sess.Compact(), 1)
			_, err = r.NextMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, []int{lists[0], lists[0] - 1}, lists)
		})
	}
}
