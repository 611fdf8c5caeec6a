package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asking returns a server whose tools report progress, log, and answer with the
// _meta of their call.
func asking() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("asking", "1", mcpserver.WithLogging())
	s.AddTool(mcp.NewTool("steps", mcp.WithString("text")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			params := map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1, "message": r.GetString("text", "")}
			if err := s.SendNotificationToClient(ctx, "notifications/progress", params); err != nil {
				return nil, err
			}
		}
		for _, params := range []map[string]any{ // for nobody, or unreadable
			{"progressToken": "nobody's", "progress": 1}, {"progressToken": []any{}, "progress": 1},
			{"progressToken": r.Params.Meta.ProgressToken, "progress": "much"}, {"progressToken": r.Params.Meta.ProgressToken, "progress": 9, "message": "last"},
		} {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", params)
		}
		<-ctx.Done() // all of it must be read before the answer
		return nil, ctx.Err()
	})
	s.AddTool(mcp.NewTool("meta"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		data, err := json.Marshal(r.Params.Meta)
		return mcp.NewToolResultText(string(data)), err
	})
	s.AddTool(mcp.NewTool("log"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelInfo} {
			if err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "", string(level))); err != nil {
				return nil, err
			}
		}
		<-ctx.Done() // mcp-go drops what was not sent before the answer
		return nil, ctx.Err()
	})
	return s
}

// overEach runs a test with asking, in this process and over HTTP.
func overEach(t *testing.T, test func(t *testing.T, cfg config.Server)) {
	t.Run("in process", func(t *testing.T) { test(t, config.Server{Name: "a", InProcess: asking()}) })
	t.Run("http", func(t *testing.T) {
		s := httptest.NewServer(mcpserver.NewStreamableHTTPServer(asking()))
		t.Cleanup(s.Close)
		test(t, config.Server{Name: "a", URL: s.URL})
	})
}

// Two concurrent calls of one server each get only their own progress.
func TestProgressIsOnesOwn(t *testing.T) {
	overEach(t, func(t *testing.T, cfg config.Server) {
		srv := started(t, cfg, config.Limits{})
		var wg sync.WaitGroup
		for i := range 10 { // in one process, mcp-go keeps 100 notifications and drops more
			wg.Go(func() {
				text := fmt.Sprint("call ", i)
				var told []string
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ctx = WithProgress(ctx, func(p mcp.ProgressNotificationParams) {
					told = append(told, fmt.Sprint(p.Message, " ", p.Progress))
					if p.Message == "last" {
						cancel()
					}
				})
				_, err := srv.Call(ctx, Tool{Name: "steps"}, json.RawMessage(fmt.Sprintf(`{"text":%q}`, text)))
				assert.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, []string{text + " 1", text + " 2", text + " 3", "last 9"}, told)
			})
		}
		wg.Wait()
	})
}

// A panic in the host's function costs only that report.
func TestProgressPanic(t *testing.T) {
	srv := started(t, config.Server{Name: "a", InProcess: asking()}, config.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = WithProgress(ctx, func(p mcp.ProgressNotificationParams) {
		if p.Message == "last" {
			cancel()
		}
		panic("the host's")
	})
	_, err := srv.call(ctx, "steps")
	assert.ErrorIs(t, err, context.Canceled)
}

func TestWithMeta(t *testing.T) {
	overEach(t, func(t *testing.T, cfg config.Server) {
		srv := started(t, cfg, config.Limits{})
		meta := map[string]any{"traceparent": "00-1-2-01", "progressToken": "mine"}
		for _, test := range []struct {
			name string
			ctx  context.Context
			want string
		}{
			{"none", t.Context(), ""},
			{"empty", WithMeta(t.Context(), nil), ""},
			{"meta", WithMeta(t.Context(), meta), "00-1-2-01"},
		} {
			result, err := srv.call(test.ctx, "meta")
			require.NoError(t, err, test.name)
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(mcptest.Text(t, result)), &got), test.name)
			assert.NotContains(t, got, "progressToken", test.name)
			if test.want == "" {
				assert.NotContains(t, got, "traceparent", test.name)
			} else {
				assert.Equal(t, test.want, got["traceparent"], test.name)
			}
		}
		assert.Len(t, meta, 2, "the host's")
	})
}

// A server is asked for log messages of a level, and the host gets them.
func TestOnNotification(t *testing.T) {
	overEach(t, func(t *testing.T, cfg config.Server) {
		told := make(chan mcp.JSONRPCNotification, 1000)
		var mu sync.Mutex
		var cancel context.CancelFunc // for the call that runs
		cfg.LogLevel = mcp.LoggingLevelInfo
		cfg.OnNotification = func(n mcp.JSONRPCNotification) {
			told <- n
			if n.Method == "notifications/message" {
				mu.Lock()
				defer mu.Unlock()
				if cancel != nil {
					cancel()
				}
			}
			panic("the host's")
		}
		srv := started(t, cfg, config.Limits{})
		// Over HTTP, a message that comes before the stream for it is open is lost.
		for try := 0; ; try++ {
			mu.Lock()
			var ctx context.Context
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
			mu.Unlock()
			_, err := srv.call(ctx, "log")
			cancel()
			if errors.Is(err, context.Canceled) {
				break
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, try, 10, "the server's message never came")
		}
		n := <-told
		for n.Method != "notifications/message" { // of the connection
			n = <-told
		}
		assert.Equal(t, "info", n.Params.AdditionalFields["data"], "not the one below it")
		_, err := srv.call(t.Context(), "meta")
		assert.NoError(t, err, "a panic costs no more")
	})
}

// What comes after the end of a call, with another token or with none that is a text is told to nobody.
func TestProgressOfNobody(t *testing.T) {
	t.Parallel()
	var table progressTable
	told := 0
	token := table.add(func(mcp.ProgressNotificationParams) { told++ })
	other := table.add(func(mcp.ProgressNotificationParams) { t.Error("it is another's") })
	assert.NotEqual(t, token, other)
	say := func(fields map[string]any) {
		table.tell(mcp.JSONRPCNotification{Notification: mcp.Notification{Params: mcp.NotificationParams{AdditionalFields: fields}}}, slog.New(slog.DiscardHandler))
	}
	say(map[string]any{"progressToken": token, "progress": 1})
	assert.Equal(t, 1, told)
	for _, fields := range []map[string]any{nil, {"progressToken": "9"}, {"progressToken": 1}, {"progressToken": token, "progress": "much"}, {"progressToken": token, "message": func() {}}} {
		say(fields)
	}
	table.remove(token)
	say(map[string]any{"progressToken": token, "progress": 2})
	assert.Equal(t, 1, told)
	assert.Len(t, table.tells, 1)
}
