package upstream

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/broker"
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

// A server of this process may ask what the host has hooks for, and nothing else.
func TestInProcessQuestions(t *testing.T) {
	t.Parallel()
	all := ask.Hooks{
		Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return nil, ask.ErrDeclined
		},
		Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{SamplingMessage: mcp.SamplingMessage{Content: mcp.NewTextContent("yes")}}, nil
		},
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///x"}}, nil },
	}
	for name, hooks := range map[string]ask.Hooks{"elicit": {Elicit: all.Elicit}, "sample": {Sample: all.Sample}, "roots": {Roots: all.Roots}} {
		b := broker.New(broker.Config{Options: ask.Options{Hooks: hooks, Timeout: time.Minute, MaxPerCall: 10, MaxAtOnce: 10, MaxBytes: 1000}})
		t.Cleanup(b.Close)
		s := newInProcessTransport(mcptest.Server("s"), guard{}, b).session
		_, err := s.RequestElicitation(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}})
		assert.Equal(t, name == "elicit", err == nil, "%s: %v", name, err)
		_, err = s.RequestSampling(t.Context(), mcp.CreateMessageRequest{})
		assert.Equal(t, name == "sample", err == nil, "%s: %v", name, err)
		_, err = s.ListRoots(t.Context(), mcp.ListRootsRequest{})
		assert.Equal(t, name == "roots", err == nil, "%s: %v", name, err)
	}
}
