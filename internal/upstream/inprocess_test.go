package upstream

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
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
