package gosdk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A report is a progress notification as a test sees it.
type report struct {
	token           any
	progress, total float64
	message         string
}

// counter is a tool of the SDK that reports its progress three times. It waits until each
// report has been seen, as its argument says.
type counter struct {
	seen   map[string]chan struct{} // by who
	tokens chan any                 // of the requests
}

func (c counter) count(ctx context.Context, req *mcp.CallToolRequest, in struct{ Who string }) (*mcp.CallToolResult, any, error) {
	token := req.Params.GetProgressToken()
	c.tokens <- token
	for i := 1; token != nil && i <= 3; i++ {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: 3, Message: in.Who})
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-c.seen[in.Who]:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
}

func newCounter(who ...string) (counter, *mcp.Server) {
	c := counter{seen: make(map[string]chan struct{}), tokens: make(chan any, 10)}
	for _, w := range who {
		c.seen[w] = make(chan struct{}, 1)
	}
	s := mcp.NewServer(impl, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "count", Description: "Counts to three."}, c.count)
	return c, s
}

func three(token any, who string) []report {
	return []report{{token, 1, 3, who}, {token, 2, 3, who}, {token, 3, 3, who}}
}

// A call of a tool of the SDK reports its progress to the host's function. Calls at once
// report to their own, and those that the host makes itself to its client's handler.
func TestProgressOfTheSDK(t *testing.T) {
	t.Parallel()
	c, server := newCounter("Ann", "Bob", "host")
	opts := gosdk.Following(mcp.ClientOptions{})
	var host []report
	opts.ProgressNotificationHandler = func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		host = append(host, report{req.Params.ProgressToken, req.Params.Progress, req.Params.Total, req.Params.Message})
		c.seen["host"] <- struct{}{}
	}
	client, session := join(t, server, opts)
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	require.NoError(t, gosdk.AddSession(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, client, session))
	s := m.NewSession(nil)

	ended := make(chan error)
	got := map[string]*[]report{"Ann": {}, "Bob": {}}
	for who, list := range got {
		go func() {
			ctx := mcphybrid.WithProgress(t.Context(), func(p mcpgo.ProgressNotificationParams) {
				*list = append(*list, report{nil, p.Progress, p.Total, p.Message})
				c.seen[who] <- struct{}{}
			})
			_, err := s.Call(ctx, "mcp_sdk__count", fmt.Sprintf(`{"Who":%q}`, who))
			ended <- err
		}()
	}
	params := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"Who": "host"}}
	params.SetProgressToken("1") // as the Manager's first
	_, err := session.CallTool(t.Context(), params)
	require.NoError(t, err)
	for range got {
		require.NoError(t, <-ended)
	}
	assert.Equal(t, three(nil, "Ann"), *got["Ann"])
	assert.Equal(t, three(nil, "Bob"), *got["Bob"])
	assert.Equal(t, three("1", "host"), host)
	tokens := map[any]bool{<-c.tokens: true, <-c.tokens: true, <-c.tokens: true}
	assert.Len(t, tokens, 3)

	_, err = s.Call(t.Context(), "mcp_sdk__count", `{"Who":"Ann"}`)
	require.NoError(t, err)
	assert.Nil(t, <-c.tokens, "nobody asked for progress")
}

// A client of the SDK gets the progress that a server of the Manager reports, if it asks
// for it, with its own token.
func TestProgressToTheClient(t *testing.T) {
	t.Parallel()
	seen, reports := make(chan struct{}, 1), make(chan report, 10)
	upstream := mcpserver.NewMCPServer("upstream", "1")
	upstream.AddTool(mcpgo.NewTool("count"), func(ctx context.Context, req mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
			return mcpgo.NewToolResultText("not asked"), nil
		}
		for i := 1; i <= 3; i++ {
			err := mcpserver.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
				map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": i, "total": 3, "message": "x"})
			if err != nil {
				return nil, err
			}
			select {
			case <-seen:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return mcpgo.NewToolResultText("done"), nil
	})
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	require.NoError(t, m.AddServer(t.Context(), mcphybrid.ServerConfig{Name: "up", InProcess: upstream}))
	server, err := gosdk.NewServer(m.NewSession(nil), impl, nil)
	require.NoError(t, err)
	_, session := join(t, server, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		reports <- report{req.Params.ProgressToken, req.Params.Progress, req.Params.Total, req.Params.Message}
		seen <- struct{}{}
	}})
	call := func(token any) string {
		params := &mcp.CallToolParams{Name: "mcp_up__count"}
		if token != nil {
			params.SetProgressToken(token)
		}
		r, err := session.CallTool(t.Context(), params)
		require.NoError(t, err)
		return r.Content[0].(*mcp.TextContent).Text
	}
	for sent, want := range map[any]any{"a": "a", 7: float64(7)} {
		require.Equal(t, "done", call(sent))
		for _, r := range three(want, "x") {
			require.Equal(t, r, <-reports)
		}
	}
	require.Equal(t, "not asked", call(nil))
	require.Empty(t, reports)
}

// Progress and cancellation go through both: a client of the SDK calls a tool of the SDK
// through a session, and stops it at its second report.
func TestProgressAndCancelThrough(t *testing.T) {
	t.Parallel()
	stopped := make(chan error, 1)
	seen := make(chan struct{}, 1)
	out := mcp.NewServer(impl, nil)
	mcp.AddTool(out, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		for i := 1; ; i++ {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)})
			select {
			case <-seen:
			case <-ctx.Done():
				stopped <- ctx.Err()
				return nil, nil, ctx.Err()
			}
		}
	})
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "out"}, out)
	require.NoError(t, err)
	defer done()
	server, err := gosdk.NewServer(m.NewSession(nil), impl, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, session := join(t, server, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		if req.Params.Progress == 2 {
			cancel()
			return
		}
		seen <- struct{}{}
	}})
	params := &mcp.CallToolParams{Name: "mcp_out__work"}
	params.SetProgressToken("t")
	_, err = session.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-stopped, context.Canceled)
}

// A client that does not read its reports does not keep the tool from its work: those that
// don't fit are dropped, and the result comes behind the others.
func TestProgressOfASlowClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := mcp.NewServer(impl, nil)
		finished := false
		mcp.AddTool(out, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			for i := range 1000 {
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1)})
			}
			finished = true
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
		m := mcphybrid.NewManager(nil)
		defer m.Close()
		done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "out"}, out)
		require.NoError(t, err)
		defer done()
		server, err := gosdk.NewServer(m.NewSession(nil), impl, nil)
		require.NoError(t, err)
		slow := make(chan struct{}) // is closed when reports get through to the client
		server.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "notifications/progress" {
					<-slow
				}
				return next(ctx, method, req)
			}
		})
		var got []float64
		_, session := join(t, server, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			got = append(got, req.Params.Progress)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			params := &mcp.CallToolParams{Name: "mcp_out__work"}
			params.SetProgressToken("t")
			_, err := session.CallTool(ctx, params)
			ended <- err
		}()
		synctest.Wait()
		require.True(t, finished)
		close(slow)
		synctest.Wait()
		require.NotEmpty(t, got)
		require.LessOrEqual(t, len(got), 65)
		require.True(t, slices.IsSorted(got))
		cancel()
		require.Error(t, <-ended)
		require.NoError(t, session.Close())
	})
}
