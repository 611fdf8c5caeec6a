package mcphybrid

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers with the same cause are one line, without what a program wrote around it. What each
// failed with is within.
func TestStartErrorHasEachCauseOnce(t *testing.T) {
	t.Parallel()
	late := errors.New("no answer within 20s")
	trace := errors.New(`exit status 1; its last words: "node:internal/x:1 throw err; ^ Error: TOKEN is not set at Object.<anonymous> (/x/y.js:1:2) Node.js v22"`)
	var e startError
	require.NoError(t, e.orNil())
	e.add("a", late)
	e.add("b", trace)
	e.add("c", late)
	assert.EqualError(t, e.orNil(), "mcphybrid: 2 servers \"a\", \"c\": no answer within 20s\nmcphybrid: server \"b\": it ended: Error: TOKEN is not set")
	assert.ErrorIs(t, e.orNil(), trace)
	require.Len(t, e.Unwrap(), 3)
	assert.EqualError(t, e.Unwrap()[2], `mcphybrid: server "c": no answer within 20s`)
}

// The error of a start is about what is so when it returns: a server that failed, and was ready
// at its second attempt, is ready, and one that failed again did so for its last reason. If the context of the start ends, what is not ready goes on.
func TestStartErrorIsAboutNow(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(mcptest.Server("flaky", mcptest.Echo("a", "A"))))
	defer web.Close()
	lists := make(chan struct{})
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { <-lists })
	slow := mcpserver.NewMCPServer("slow", "1", mcpserver.WithHooks(hooks), mcpserver.WithToolCapabilities(true))
	slow.AddTools(mcptest.Echo("b", "B"))
	var tried atomic.Int32
	var online atomic.Bool
	m := NewManager(&Options{Limits: config.Limits{Reconnect: 5 * time.Millisecond, StartTimeout: time.Minute}, Servers: []ServerConfig{
		{Name: "slow", InProcess: slow},
		{Name: "flaky", URL: web.URL, HeaderFunc: func(context.Context) (http.Header, error) {
			if tried.Add(1) == 1 {
				return nil, errors.New("not yet")
			}
			return nil, nil
		}},
		{Name: "refused", URL: web.URL, HeaderFunc: func(context.Context) (http.Header, error) {
			if !online.Load() {
				return nil, errors.New("there is no network")
			}
			return nil, errors.New("there is no token")
		}},
	}})
	defer m.Close()
	started := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { started <- m.Start(ctx) }()
	soon(t, func() bool { return m.Servers()[1].State == StateReady && m.Servers()[2].Failures > 0 })
	online.Store(true)
	soon(t, func() bool { err := m.Servers()[2].Err; return err != nil && err.Error() == "there is no token" })
	cancel()
	err := <-started
	require.ErrorContains(t, err, `mcphybrid: server "slow": it has not answered yet: context canceled`)
	assert.ErrorContains(t, err, "there is no token")
	assert.NotContains(t, err.Error(), "there is no network", "that was the first attempt")
	close(lists)
	soon(t, func() bool { return m.Servers()[0].State == StateReady })
	assert.Zero(t, m.Servers()[0].Failures)
}
