package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A needy server refuses calls of clients that have no model.
type needy struct{ *server.MCPServer }

func (n needy) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var r struct {
		ID     mcp.RequestId
		Method string
		Params struct {
			Meta *mcp.Meta `json:"_meta"`
		}
	}
	if json.Unmarshal(message, &r) == nil && r.Method == string(mcp.MethodToolsCall) {
		if can := r.Params.Meta.ClientCapabilities(); can == nil || can.Sampling == nil {
			return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, ID: r.ID, Error: mcp.NewJSONRPCErrorDetails(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "no model",
				map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}})}
		}
	}
	return n.MCPServer.HandleMessage(ctx, message)
}

// A server is told what the client of a call can do, and the client what the server needs.
func TestMissingCapability(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: []mcphybrid.ServerConfig{
		{Name: "needy", InProcess: needy{mcptest.Server("needy", mcptest.Echo("echo", "Says it"))}, Protocol: mcp.ProtocolVersion20260728},
	}}, web.Options{})
	for can, refused := range map[string]bool{`{}`: true, `{"elicitation":{}}`: true, `{"sampling":{}}`: false} {
		got := roundTripper{url: url, can: can}.call(t, "mcp_needy__echo", map[string]any{"text": "x"}, nil)
		if !refused {
			assert.Nil(t, got.Error)
			assert.False(t, got.Result.IsError)
			continue
		}
		require.NotNil(t, got.Error, "%s %+v", can, got)
		assert.Equal(t, http.StatusBadRequest, got.status)
		assert.Equal(t, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, got.Error.Code)
		assert.Equal(t, map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}}, got.Error.Data)
	}
}

// A client learns by the code of its protocol that a resource is not there.
func TestResourceNotFound(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{servers: kitchenAndVault()}, web.Options{})
	for generation, want := range map[string]error{"legacy": mcp.ErrResourceNotFound, "modern": mcp.ErrInvalidParams} {
		c, _ := connect(t, overHTTP(url), "test", generations[generation]...)
		_, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "no:where"}})
		assert.ErrorIs(t, err, want, generation)
		assert.ErrorContains(t, err, "no:where")
	}
	c, _ := connect(t, overStdio("-config", writeConfig(t, "kitchen")), "test", client.WithProtocolVersion(mcp.LATEST_PROTOCOL_VERSION))
	_, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "no:where"}})
	assert.ErrorIs(t, err, mcp.ErrInvalidParams)
}

// A picky server can't use the arguments of its prompt greet.
type picky struct{ *server.MCPServer }

func (p picky) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var r struct {
		ID     mcp.RequestId
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal(message, &r) == nil && r.Method == string(mcp.MethodPromptsGet) && r.Params.Name == "greet" {
		return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, ID: r.ID, Error: mcp.NewJSONRPCErrorDetails(mcp.INVALID_PARAMS, "whom?", nil)}
	}
	return p.MCPServer.HandleMessage(ctx, message)
}

// A client learns by the code of the protocol that a prompt is not there, or that its server
// can't use the arguments.
func TestPromptNotFound(t *testing.T) {
	host := mcptest.Server("host", mcptest.Echo("echo", "Says it"))
	for _, name := range []string{"greet", "fail"} {
		host.AddPrompt(mcp.NewPrompt(name), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, errors.New("no ink")
		})
	}
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "picky", InProcess: picky{host}}}}, web.Options{})
	for generation, options := range generations {
		c, _ := connect(t, overHTTP(url), "test", options...)
		for name, want := range map[string]error{"none": mcp.ErrInvalidParams, "mcp_picky__greet": mcp.ErrInvalidParams, "mcp_picky__fail": mcp.ErrInternalError} {
			_, err := c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: name}})
			assert.ErrorIs(t, err, want, "%s %q", generation, name)
		}
		_, err := c.Complete(t.Context(), mcp.CompleteRequest{Params: mcp.CompleteParams{Ref: mcp.PromptReference{Type: "ref/prompt", Name: "none"}}})
		assert.ErrorIs(t, err, mcp.ErrInvalidParams, generation)
	}
}

// The headers of a call must say what its arguments say, if the tool's schema wants that
// and the client knows the schema.
func TestMirroredArguments(t *testing.T) {
	tool := mcp.NewToolWithRawSchema("a", "A.", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`))
	m := mcphybrid.NewManager(nil)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	require.NoError(t, m.AddTools("s", server.ServerTool{Tool: tool}))
	session := m.NewSession(nil)
	modern := server.WithRequestProtocolInfo(t.Context(), &server.RequestProtocolInfo{Modern: true})
	for _, test := range []struct {
		name, args string
		header     []string
		want       bool
	}{
		{"mcp_s__a", `{"region":"eu"}`, []string{"eu"}, true},
		{"mcp_s__a", `{"region":"eu"}`, []string{"us"}, false},
		{"mcp_s__a", `{"region":"eu"}`, nil, false},
		{"mcp_s__a", ``, nil, true},
		{"mcp_s__a", ``, []string{"eu"}, false},
		{"mcp_s__a", `{}`, []string{"eu"}, false},
		{"mcp_s__other", `{"region":"eu"}`, nil, true},
	} {
		header := http.Header{mcp.HeaderProtocolVersion: {mcp.ProtocolVersion20260728}}
		if test.header != nil {
			header["Mcp-Param-Region"] = test.header
		}
		err := checkMirrored(modern, header, &conversation{session: session}, test.name, json.RawMessage(test.args))
		assert.Equal(t, test.want, err == nil, "%v %v", test, err)
		if err != nil {
			assert.ErrorIs(t, err, errMirrored)
			assert.Equal(t, mcp.HEADER_MISMATCH, refusedBy(err).(*wire.Refusal).Code)
		}
		assert.NoError(t, checkMirrored(t.Context(), header, &conversation{session: session}, test.name, json.RawMessage(test.args)), "before 2026-07-28")
		assert.NoError(t, checkMirrored(modern, nil, &conversation{session: session}, test.name, json.RawMessage(test.args)), "over standard input")
	}
}

// A call whose headers do not say what its arguments say reaches no server.
func TestMirroredCall(t *testing.T) {
	var called atomic.Int32
	tool := server.ServerTool{
		Tool: mcp.NewToolWithRawSchema("a", "A.", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			called.Add(1)
			return mcp.NewToolResultText("done"), nil
		},
	}
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: mcptest.Server("s", tool)}}}, web.Options{})
	c := roundTripper{url: url}
	refused := c.call(t, "mcp_s__a", map[string]any{"region": "eu"}, nil)
	require.NotNil(t, refused.Error)
	assert.Equal(t, mcp.HEADER_MISMATCH, refused.Error.Code)
	assert.Zero(t, called.Load())
	assert.Equal(t, "done", c.call(t, "mcp_s__a", nil, nil).text())
	assert.EqualValues(t, 1, called.Load())
}
