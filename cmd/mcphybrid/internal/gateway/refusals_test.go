package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
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
