package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slowServer is closed while it registers a session.
type slowServer struct {
	*mcpserver.MCPServer
	during     func()
	registered int
}

func (s *slowServer) RegisterSession(ctx context.Context, session mcpserver.ClientSession) error {
	s.during()
	s.registered++
	return s.MCPServer.RegisterSession(ctx, session)
}

func (s *slowServer) UnregisterSession(ctx context.Context, id string) {
	s.registered = max(s.registered-1, 0)
	s.MCPServer.UnregisterSession(ctx, id)
}

// A server in this process keeps no session of a transport that was closed too soon.
func TestInProcessClosedWhileItStarts(t *testing.T) {
	s := &slowServer{MCPServer: mcptest.Server("s")}
	tr := newInProcessTransport(s, guard{}, nil)
	s.during = func() { assert.NoError(t, tr.Close()) }
	assert.ErrorIs(t, tr.Start(t.Context()), transport.ErrTransportClosed)
	assert.Zero(t, s.registered)
	assert.ErrorIs(t, tr.Start(t.Context()), transport.ErrTransportClosed)
	assert.NoError(t, tr.Close())
	assert.Zero(t, s.registered)
}

// A call ends with its timeout, also while the host does not return from a notification.
func TestInProcessNotificationHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *mcpserver.MCPServer
		s = mcptest.Server("s", mcpserver.ServerTool{
			Tool: mcp.NewTool("notify"),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				s.SendNotificationToAllClients("notifications/message", nil)
				return mcp.NewToolResultText("ok"), nil
			},
		})
		release := make(chan struct{})
		cfg := inProcess("s")
		cfg.InProcess = s
		cfg.OnNotification = func(mcp.JSONRPCNotification) { <-release }
		srv := newTest(t, cfg, Limits{CallTimeout: time.Second})
		require.NoError(t, srv.Start(t.Context()))
		time.AfterFunc(time.Minute, func() { close(release) })
		begun := time.Now()
		_, err := srv.call(t.Context(), "notify")
		assert.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(begun))
		<-release
	})
}
