package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Structured content goes to a client with the order and the digits that its tool wrote. The
// client of the SDK would decode them, so the test reads the wire.
func TestStructuredContentKeepsDigits(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	const content = `{"b":9007199254740993,"a":1.0}`
	require.NoError(t, m.AddTools("h", mcpserver.ServerTool{Tool: mcpgo.NewTool("id"), Handler: func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return &mcpgo.CallToolResult{StructuredContent: json.RawMessage(content)}, nil
	}}))
	server, err := gosdk.NewServer(m.NewSession(&mcphybrid.SessionOptions{Client: true}), impl, nil)
	require.NoError(t, err)
	here, there := mcp.NewInMemoryTransports()
	_, err = server.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	var wire bytes.Buffer // written by the session's reader, and read when it has ended
	session, err := mcp.NewClient(impl, nil).Connect(t.Context(), &mcp.LoggingTransport{Transport: here, Writer: &wire}, nil)
	require.NoError(t, err)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp_h__id", Arguments: map[string]any{}})
	require.NoError(t, err)
	session.Close()
	_ = session.Wait()
	require.Contains(t, wire.String(), `"structuredContent":`+content)
}

// Arguments get from a client of the SDK to a tool of the SDK, by a session between them,
// with the digits that a float does not hold.
func TestArgumentsKeepDigits(t *testing.T) {
	t.Parallel()
	const arguments = `{"b":9007199254740993,"a":1.0}`
	var got string
	tools := mcp.NewServer(impl, nil)
	tools.AddTool(&mcp.Tool{Name: "id", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got = string(req.Params.Arguments)
		return &mcp.CallToolResult{}, nil
	})
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	client, session := join(t, tools, gosdk.Following(mcp.ClientOptions{}))
	require.NoError(t, gosdk.AddSession(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, client, session))
	server, err := gosdk.NewServer(m.NewSession(&mcphybrid.SessionOptions{Client: true}), impl, nil)
	require.NoError(t, err)
	_, session = join(t, server, nil)
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp_sdk__id", Arguments: json.RawMessage(arguments)})
	require.NoError(t, err)
	require.False(t, res.IsError)
	require.Equal(t, arguments, got)
}
