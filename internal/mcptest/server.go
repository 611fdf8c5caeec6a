package mcptest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// Echo returns a tool that answers with its own name and arguments.
func Echo(name, description string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("text")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprintf("%s %s", name, r.Params.RawArguments)), nil
		},
	}
}

// Server returns a real MCP server with the given tools.
func Server(name string, tools ...mcpserver.ServerTool) *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer(name, "1")
	s.AddTools(tools...)
	return s
}

// Chores returns n tools named tool_000, tool_001 and so on. mcp-go lists them in
// this order.
func Chores(name string, n int) []mcpserver.ServerTool {
	tools := make([]mcpserver.ServerTool, n)
	for i := range tools {
		tools[i] = Echo(fmt.Sprintf("tool_%03d", i), fmt.Sprintf("Does chore %d for %s", i, name))
	}
	return tools
}

// ServeHTTP serves h on a loopback port until the test ends and returns the URL of
// the MCP endpoint.
func ServeHTTP(t testing.TB, h http.Handler, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	web := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(l)
	}()
	t.Cleanup(func() { web.Close(); <-served })
	return fmt.Sprintf("http://%s/mcp", l.Addr())
}

// Soon waits until condition holds and fails the test if it takes too long. It calls condition
// in the goroutine of the test: nothing runs when that has failed.
func Soon(t testing.TB, condition func() bool, what ...any) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for !condition() {
		select {
		case <-late.C:
			require.FailNow(t, "it takes more than a minute", what...)
		case <-time.After(time.Millisecond):
		}
	}
}

// Text returns the text of a result that has only text.
func Text(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	require.NotNil(t, r)
	require.Len(t, r.Content, 1)
	return mcp.GetTextFromContent(r.Content[0])
}
