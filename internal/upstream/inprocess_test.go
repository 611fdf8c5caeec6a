package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
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
	times      int // that one was registered
}

func (s *slowServer) RegisterSession(ctx context.Context, session mcpserver.ClientSession) error {
	s.during()
	s.registered++
	s.times++
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
	assert.Equal(t, 1, s.times)
}

// A transport that has begun has begun. A server that panics as it begins is an error, and is not
// told of the end of what did not begin.
func TestInProcessBegins(t *testing.T) {
	t.Parallel()
	s := &slowServer{MCPServer: mcptest.Server("s"), during: func() {}}
	tr := newInProcessTransport(s, guard{}, nil)
	require.NoError(t, tr.Start(t.Context()))
	require.NoError(t, tr.Start(t.Context()))
	assert.Equal(t, 1, s.registered)
	require.NoError(t, tr.Close())
	require.NoError(t, tr.Close())
	assert.Zero(t, s.registered)

	s.during = func() { panic("the host's") }
	tr = newInProcessTransport(s, guard{}, nil)
	assert.ErrorContains(t, tr.Start(t.Context()), "the server")
	s.registered = 5
	require.NoError(t, tr.Close())
	assert.Equal(t, 5, s.registered)
	err := newTest(t, config.Server{Name: "s", InProcess: s}, config.Limits{Reconnect: -1}).Start(t.Context())
	assert.ErrorContains(t, err, "panic")
}

type hostKey struct{}

// A handler has what the host put into the context of a call, and nothing of a request that the
// host itself answers.
func TestInProcessContext(t *testing.T) {
	t.Parallel()
	var has any
	tool := mcptest.Echo("a", "")
	tool.Handler = func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		has = ctx.Value(hostKey{})
		return mcp.NewToolResultText("ok"), nil
	}
	srv := started(t, inProcess("s", tool), config.Limits{})
	_, err := srv.call(context.WithValue(t.Context(), hostKey{}, "the host's"), "a")
	require.NoError(t, err)
	assert.Equal(t, "the host's", has)

	outer := mcptest.Server("outer")
	ctx := outer.WithContext(context.WithValue(t.Context(), hostKey{}, 5), mcpserver.NewInProcessSession("x", nil))
	require.NotNil(t, mcpserver.ClientSessionFromContext(ctx))
	assert.Nil(t, mcpserver.ClientSessionFromContext(ownRequest{ctx}))
	assert.Equal(t, 5, ownRequest{ctx}.Value(hostKey{}))
	assert.Nil(t, ownRequest{ctx}.Value(nil))
}

// unspoken answers calls with what is no JSON.
type unspoken struct{ config.InProcessServer }

func (u unspoken) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	if bytes.Contains(message, []byte(`"tools/call"`)) {
		return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(int64(1)), Result: make(chan int)}
	}
	return u.InProcessServer.HandleMessage(ctx, message)
}

// What can't be written as JSON is an error, on either side.
func TestInProcessWithoutJSON(t *testing.T) {
	t.Parallel()
	cfg := inProcess("s", mcptest.Echo("a", ""))
	srv := started(t, cfg, config.Limits{})
	_, err := srv.Call(t.Context(), Tool{Name: "a"}, json.RawMessage("{"))
	assert.ErrorContains(t, err, "json: error calling MarshalJSON")
	_, err = srv.call(t.Context(), "a")
	assert.NoError(t, err)
	cfg.InProcess = unspoken{cfg.InProcess}
	_, err = started(t, cfg, config.Limits{}).call(t.Context(), "a")
	assert.ErrorContains(t, err, "json: unsupported type: chan int")
	tr := newInProcessTransport(mcptest.Server("s"), guard{}, nil)
	n := mcp.JSONRPCNotification{Notification: mcp.Notification{Params: mcp.NotificationParams{AdditionalFields: map[string]any{"a": make(chan int)}}}}
	assert.ErrorContains(t, tr.SendNotification(t.Context(), n), "json: ")
	assert.Empty(t, tr.GetSessionId())
}

// What the server has sent before its result is heard before it, all of it.
func TestInProcessNotificationsComeFirst(t *testing.T) {
	t.Parallel()
	var s *mcpserver.MCPServer
	s = mcptest.Server("s", mcpserver.ServerTool{
		Tool: mcp.NewTool("notify"),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for range 50 {
				s.SendNotificationToAllClients("notifications/message", nil)
			}
			return mcp.NewToolResultText("ok"), nil
		},
	})
	heard := 0
	cfg := inProcess("s")
	cfg.InProcess = s
	cfg.OnNotification = func(mcp.JSONRPCNotification) { heard++ }
	srv := started(t, cfg, config.Limits{})
	for n := range 20 {
		_, err := srv.call(t.Context(), "notify")
		require.NoError(t, err)
		require.Equal(t, 50*(n+1), heard)
	}
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
		srv := newTest(t, cfg, config.Limits{CallTimeout: time.Second})
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
