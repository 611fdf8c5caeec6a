package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	mcptest.Main(m, map[string]func(){"host": serveHost, "subscribed": serveSubscribed, "fickle": serveFickle})
}

// A testServer is a Server with its published tools.
type testServer struct {
	*Server
	mu    sync.Mutex
	tools []Element // of the last listing
	all   List      // of the last listing
	lists int       // listings
}

// newTest returns a server that is closed when the test ends. Limits that are
// not set are wide.
func newTest(t *testing.T, server config.Server, l config.Limits) *testServer {
	return newTestOf(t, Config{Server: server}, l)
}

// newTestOf is newTest with all that a host says of a server.
func newTestOf(t *testing.T, cfg Config, l config.Limits) *testServer {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	l.StartTimeout, l.CallTimeout = cmp.Or(l.StartTimeout, 20*time.Second), cmp.Or(l.CallTimeout, time.Minute)
	l.MaxMessage, l.MaxDefinition = cmp.Or(l.MaxMessage, 16<<20), cmp.Or(l.MaxDefinition, 256<<10)
	l.MaxValues, l.MaxListing = cmp.Or(l.MaxValues, 500_000), cmp.Or(l.MaxListing, 8<<20)
	l.MaxTools, l.MaxPages, l.MaxUnasked = cmp.Or(l.MaxTools, 1000), cmp.Or(l.MaxPages, 1000), cmp.Or(l.MaxUnasked, 1000)
	l.Reconnect, l.Refresh = cmp.Or(l.Reconnect, 500*time.Millisecond), cmp.Or(l.Refresh, -1)
	s := new(testServer)
	s.Server = New(cfg, l, func(ctx context.Context, all List) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tools, s.all = all.Elements[Tools], all
		s.lists++
		return ctx.Err()
	})
	t.Cleanup(s.Close)
	return s
}

// started returns a server that is connected.
func started(t *testing.T, server config.Server, l config.Limits) *testServer {
	t.Helper()
	s := newTest(t, server, l)
	require.NoError(t, s.Start(t.Context()))
	return s
}

// listed returns the last listing and the number of listings.
func (s *testServer) listed() ([]Element, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.lists
}

// last returns all that was listed last.
func (s *testServer) last() List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// call calls a tool without arguments. The call must not be repeated.
func (s *testServer) call(ctx context.Context, tool string) (*mcp.CallToolResult, error) {
	return s.Call(ctx, Tool{Name: tool}, json.RawMessage("{}"))
}

// connection returns the current connection, or nil.
func (s *testServer) connection() *conn {
	s.Server.mu.Lock()
	defer s.Server.mu.Unlock()
	c, _ := s.conn.Peek()
	return c
}

// child returns the configuration of a server that is this test program,
// started as a child: see [mcptest.Child].
func child(t *testing.T, name, mode string) config.Server {
	t.Helper()
	command, env := mcptest.Child(t, mode)
	return config.Server{Name: name, Command: command, Env: env}
}

// inProcess returns a real MCP server in this process with the given tools.
func inProcess(name string, tools ...mcpserver.ServerTool) config.Server {
	return config.Server{Name: name, InProcess: mcptest.Server(name, tools...)}
}
