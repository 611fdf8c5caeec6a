package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server before 2026-07-28 may end the stream of a call before its answer: who called
// comes back for it. Behind the gateway the answer comes, whatever the client speaks.
func TestPolledAnswers(t *testing.T) {
	var resumed atomic.Int64
	s := mcp.NewServer(&mcp.Implementation{Name: "polled", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "poll", Description: "Answers later."}, func(_ context.Context, r *mcp.CallToolRequest, in struct{ N int }) (*mcp.CallToolResult, any, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("polled ", in.N)}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "" {
			resumed.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		upstream.CloseClientConnections()
		upstream.Close()
	})
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"u": {"type": "http", "url": %q}}}`, upstream.URL), 0o600))
	const calls = 5
	for name, flags := range map[string][]string{"asking": {"-ask"}, "not asking": nil} {
		t.Run(name, func(t *testing.T) {
			url := startGateway(t, config, append(flags, "-cache", "off")...)
			for _, version := range []string{mcpgo.LATEST_LEGACY_PROTOCOL_VERSION, mcpgo.ProtocolVersion20260728} {
				tr, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + gatewayToken}))
				require.NoError(t, err)
				c := client.NewClient(tr, client.WithProtocolVersion(version))
				require.NoError(t, c.Start(t.Context()))
				_, err = c.Initialize(t.Context(), mcpgo.InitializeRequest{})
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				before := resumed.Load()
				for n := range calls {
					var r mcpgo.CallToolRequest
					r.Params.Name, r.Params.Arguments = "mcp_u__poll", map[string]any{"N": n}
					got, err := c.CallTool(ctx, r)
					require.NoError(t, err)
					require.Len(t, got.Content, 1)
					assert.Equal(t, fmt.Sprint("polled ", n), mcpgo.GetTextFromContent(got.Content[0]))
				}
				assert.GreaterOrEqual(t, resumed.Load()-before, int64(calls), "each answer was fetched")
				cancel()
				assert.NoError(t, c.Close())
			}
		})
	}
}
