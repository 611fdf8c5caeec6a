package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callFor calls a tool and asks for its progress.
func callFor(ctx context.Context, c *client.Client, token any, name string, args any) (*mcp.CallToolResult, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = name, args
	r.Params.Meta = &mcp.Meta{ProgressToken: token, AdditionalFields: map[string]any{"traceparent": "00-1-2-01"}}
	return c.CallTool(ctx, r)
}

// The progress of two concurrent calls reaches each by its own token, complete
// and before the answer.
func TestProgress(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		const steps = 40
		var wg sync.WaitGroup
		for i, name := range []string{"mcp_kitchen__a_steps", mcphybrid.CallToolName} {
			c, told := connect(t, open, "test", opts...)
			wg.Go(func() {
				text := fmt.Sprint("call ", i)
				args := map[string]any{"n": steps, "text": text}
				if name == mcphybrid.CallToolName {
					args = map[string]any{"name": "mcp_kitchen__a_steps", "arguments": args}
				}
				result, err := callFor(t.Context(), c, "mine", name, args)
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, "done "+text, textOf(result))
				for step := 1; step <= steps; {
					select {
					case n := <-told:
						if n.Method == mcp.MethodNotificationToolsListChanged { // the gateway has just started
							continue
						}
						assert.Equal(t, map[string]any{"progressToken": "mine", "progress": float64(step), "message": text}, n.Params.AdditionalFields)
						step++
					default:
						assert.Fail(t, "not told before the answer", "step %d", step)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestCancellation(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		c, told := connect(t, open, "test", opts...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := callFor(ctx, c, 1, "mcp_kitchen__a_hang", nil)
			ended <- err
		}()
		wait(t, told, "notifications/progress") // it has begun
		cancel()
		require.Error(t, <-ended) // which one depends on whether mcp-go's client looks at ctx or at the stream first
		for ctx := within(t); say(t, c, "mcp_kitchen__a_cancelled", nil) != "1"; {
			require.NoError(t, ctx.Err(), "its server was not told")
		}
	})
}

// A client that cancels a request does not affect another client, whose
// requests have the same numbers.
func TestCancellationIsOnesOwn(t *testing.T) {
	for generation, opts := range generations {
		t.Run(generation, func(t *testing.T) {
			_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
			one, told := connect(t, overHTTP(url), "one", opts...)
			two, _ := connect(t, overHTTP(url), "two", opts...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := callFor(ctx, one, 1, "mcp_kitchen__a_hang", nil)
				ended <- err
			}()
			wait(t, told, "notifications/progress")
			for id := range 10 {
				err := two.GetTransport().SendNotification(t.Context(), mcp.JSONRPCNotification{
					JSONRPC: mcp.JSONRPC_VERSION,
					Notification: mcp.Notification{Method: "notifications/cancelled", Params: mcp.NotificationParams{
						AdditionalFields: map[string]any{"requestId": id},
						Meta:             map[string]any{mcp.MetaKeyProtocolVersion: two.ProtocolVersion()},
					}},
				})
				require.NoError(t, err)
			}
			assert.Equal(t, "0", say(t, two, "mcp_kitchen__a_cancelled", nil))
			select {
			case err := <-ended:
				require.Fail(t, "cancelled by another client", "%v", err)
			default:
			}
			cancel()
			<-ended
		})
	}
}

func TestMeta(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		c, _ := connect(t, open, "test", opts...)
		result, err := callFor(t.Context(), c, nil, "mcp_kitchen__a_meta", nil)
		require.NoError(t, err)
		assert.Contains(t, textOf(result), `"traceparent":"00-1-2-01"`)
		assert.NotContains(t, textOf(result), `"test"`, "the server's client is the gateway")
		assert.NotContains(t, textOf(result), "progressToken", "the client wants no progress")
		if result.ResultType == "" { // a client of before shows to its model what it does not know
			assert.Nil(t, result.Meta)
		} else if from := result.Meta.ServerInfo(); assert.NotNil(t, from) {
			assert.Equal(t, "mcphybrid", from.Name)
		}
		assert.Equal(t, c.ProtocolVersion() == mcp.LATEST_PROTOCOL_VERSION, result.ResultType != "")
	})
}

// A client that is known to follow changes gets the tools that its searches
// find.
func TestFollower(t *testing.T) {
	start := map[string]func(t *testing.T) connector{
		"http": func(t *testing.T) connector {
			g, url, _ := startHTTP(t, gatewayOptions{follow: []string{"editor"}}, web.Options{})
			<-g.waiting.Done()
			return overHTTP(url, transport.WithContinuousListening())
		},
		"stdio": func(t *testing.T) connector {
			return overStdio("-config", writeConfig(t, "kitchen"), "-follow", "other,editor")
		},
	}
	for name, start := range start {
		t.Run(name, func(t *testing.T) {
			open := start(t)
			c, told := connect(t, open, "editor", generations["legacy"]...)
			before := toolNames(t, c)
			assert.NotContains(t, before, mcphybrid.CallToolName)
			for len(told) > 0 { // from the start
				<-told
			}
			say(t, c, mcphybrid.SearchToolName, map[string]any{"query": "dish number 57", "max_results": 2})
			wait(t, told, mcp.MethodNotificationToolsListChanged)
			after := toolNames(t, c)
			assert.Equal(t, before, after[:len(before)])
			assert.Equal(t, "mcp_kitchen__dish_57", after[len(before)])

			if name == "http" { // over stdio, it may still be told of the start
				assert.Empty(t, told, "told once")
				other, _ := connect(t, open, "someone else", generations["legacy"]...)
				assert.Contains(t, toolNames(t, other), mcphybrid.CallToolName)
				assert.NotContains(t, toolNames(t, other), "mcp_kitchen__dish_57")
			}
		})
	}
}

// A long result can be read on in its session. Without sessions it is cut, and
// says so.
func TestLongResult(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	other, _ := connect(t, overHTTP(url), "other", generations["legacy"]...)
	first := say(t, c, "mcp_kitchen__a_long", map[string]any{"n": 100_000})
	assert.Less(t, len(first), 60_000)
	page := map[string]any{"id": "r1", "offset": 30_000}
	assert.Contains(t, say(t, c, mcphybrid.PageToolName, page), strings.Repeat("x", 1000))
	result, err := call(t.Context(), other, mcphybrid.PageToolName, page)
	require.NoError(t, err)
	assert.True(t, result.IsError, "another client's")

	stateless, _ := connect(t, overHTTP(url), "test", generations["modern"]...)
	assert.NotContains(t, toolNames(t, stateless), mcphybrid.PageToolName)
	assert.Less(t, len(say(t, stateless, "mcp_kitchen__a_long", map[string]any{"n": 100_000})), 60_000)
}
