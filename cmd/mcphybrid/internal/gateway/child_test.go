package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
)

// serveChild is a real server over standard input and output. It lives for at
// most five minutes.
func serveChild() {
	time.AfterFunc(5*time.Minute, func() { os.Exit(9) })
	if address := os.Getenv("TEST_WAIT"); address != "" { // another process listens there until we may begin
		if conn, err := net.Dial("tcp", address); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	}
	if os.Getenv("TEST_DEAD") != "" {
		os.Exit(1)
	}
	if os.Getenv("TEST_SERVER") == "stubborn" { // ignores that its input closes, and signals
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		_ = server.ServeStdio(childServer(wire.NewLineWriter(os.Stdout, nil)))
		select {}
	}
	if os.Getenv("TEST_SERVER") == "large" {
		serveLarge()
		return
	}
	if os.Getenv("TEST_SERVER") == "curious" {
		_ = server.ServeStdio(mcptest.Curious("curious"))
		return
	}
	// It reports on a call before the answer, as mcp-go's own servers usually
	// do.
	lines := wire.NewLineWriter(os.Stdout, nil)
	s := server.NewStdioServer(childServer(lines))
	server.WithWorkerPoolSize(100)(s)
	server.WithQueueSize(10_000)(s)
	_ = s.Listen(context.Background(), os.Stdin, lines)
}

// childServer has tools whose names begin with a, which are inline, and 60 more.
func childServer(lines *wire.LineWriter) *server.MCPServer {
	s := server.NewMCPServer("child", "1", server.WithLogging(), server.WithToolCapabilities(true),
		server.WithCacheHints(0, mcp.CacheScopePublic)) // so that another environment finds its lists in a cache
	var cancelled atomic.Int64
	tool := func(name, description string, run server.ToolHandlerFunc) {
		s.AddTool(mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("text"), mcp.WithNumber("n")), run)
	}
	text := func(text string, err error) (*mcp.CallToolResult, error) { return mcp.NewToolResultText(text), err }
	tool("a_arguments", "Answers with its arguments", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.RawArguments), nil)
	})
	tool("a_fail", "Answers with an error", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("failed with " + r.GetString("text", "")), nil
	})
	tool("a_cancelled", "Tells how many calls were cancelled", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(fmt.Sprint(cancelled.Load()), nil)
	})
	tool("a_hang", "Waits until it is cancelled", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tellProgress(lines, r, 0)
		<-ctx.Done()
		cancelled.Add(1)
		return nil, ctx.Err()
	})
	tool("a_log", "Logs text", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		lines.Notify("notifications/message", map[string]any{"level": "warning", "data": r.GetString("text", "")})
		return text("logged", nil)
	})
	tool("a_change", "Gets another tool, and logs text as an error", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool("zebra", "Rides a zebra", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("ridden", nil) })
		lines.Notify("notifications/message", map[string]any{"level": "error", "data": r.GetString("text", "")})
		return text("changed", nil)
	})
	var last atomic.Value
	last.Store("")
	tool("a_gossip", "Logs text, and the text of the call before", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mine := r.GetString("text", "")
		for _, about := range []string{last.Swap(mine).(string), mine} {
			lines.Notify("notifications/message", map[string]any{"level": "warning", "data": about})
		}
		return text("logged", nil)
	})
	tool("a_long", "Answers with n bytes", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", r.GetInt("n", 0)), nil)
	})
	tool("a_meta", "Answers with its _meta", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		data, err := json.Marshal(r.Params.Meta)
		return text(string(data), err)
	})
	tool("a_steps", "Tells of n steps", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range r.GetInt("n", 0) {
			tellProgress(lines, r, i+1)
		}
		return text("done "+r.GetString("text", ""), nil)
	})
	s.AddTool(mcp.NewTool("a_show", mcp.WithDescription("Shows all kinds of content"),
		mcp.WithRawOutputSchema(json.RawMessage(`{"type":"object","properties":{"exact":{"type":"integer"}}}`)),
		mcp.WithReadOnlyHintAnnotation(true), mcp.WithTitleAnnotation("Show")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return everyContent(), nil })
	if says, err := os.ReadFile(os.Getenv("TEST_SAYS")); err == nil {
		tool("b_says", string(says), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("said", nil) })
	}
	for i := range 60 {
		tool(fmt.Sprintf("dish_%02d", i), fmt.Sprintf("Cooks dish number %d", i), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("cooked "+r.GetString("text", "nothing"), nil)
		})
	}
	return s
}

func tellProgress(lines *wire.LineWriter, r mcp.CallToolRequest, step int) {
	if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
		lines.Notify(string(mcp.MethodNotificationProgress), map[string]any{
			"progressToken": r.Params.Meta.ProgressToken, "progress": step, "message": r.GetString("text", ""),
		})
	}
}

// everyContent is a result with content of all kinds.
func everyContent() *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Result: mcp.Result{Meta: mcp.NewMetaFromMap(map[string]any{"example.com/a": "b"})},
		Content: []mcp.Content{
			mcp.NewTextContent("text"),
			mcp.NewImageContent("aW1hZ2U=", "image/png"),
			mcp.NewAudioContent("c291bmQ=", "audio/wav"),
			mcp.NewResourceLink("file:///a.txt", "a.txt", "a file", "text/plain"),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "file:///b.txt", MIMEType: "text/plain", Text: "b"}),
			mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "file:///c.bin", MIMEType: "application/octet-stream", Blob: "Yw=="}),
		},
		RawStructuredContent: json.RawMessage(`{"exact":9007199254740993,"list":[{"a":null}]}`),
	}
}
