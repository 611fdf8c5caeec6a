package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nothingLeft waits until no process is left that this one started.
func nothingLeft(t *testing.T) {
	t.Helper()
	for ctx := within(t); len(processes()) > 0; {
		require.NoError(t, ctx.Err(), "processes left: %v", processes())
	}
}

// A gateway that is killed leaves no server, not even one that ignores signals and that
// its input closes.
func TestKilledGateway(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes can't be listed here")
	}
	cmd, url := startProcess(t, "-config", writeConfig(t, "kitchen", "stubborn"))
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	assert.Equal(t, "{}", say(t, c, "mcp_stubborn__a_arguments", nil))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	nothingLeft(t)
}

// A client over standard input and output that is killed, or reads no more, ends the
// gateway, which ends its servers.
func TestKilledClient(t *testing.T) {
	skipUnlessUnix(t)
	for name, leave := range map[string]func(in, out *os.File){
		"killed":        func(in, out *os.File) { in.Close(); out.Close() },
		"reads no more": func(_, out *os.File) { out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			theirIn, in, err := os.Pipe()
			require.NoError(t, err)
			out, theirOut, err := os.Pipe()
			require.NoError(t, err)
			defer in.Close()
			defer out.Close()
			cmd := exec.Command(self(t), "-config", writeConfig(t, "kitchen", "stubborn"))
			cmd.Env = append(os.Environ(), gatewayEnv()...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirOut // nobody reads what it logs either
			require.NoError(t, cmd.Start())
			theirIn.Close()
			theirOut.Close()
			defer func() { _ = cmd.Process.Kill() }()
			_, err = fmt.Fprintln(in, ping)
			require.NoError(t, err)
			_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp_kitchen__a_steps","arguments":{"n":1000000},"_meta":{"progressToken":1}}}`)
			require.NoError(t, err)
			lines := bufio.NewReader(out)
			for range 10 { // it goes on writing
				_, err = lines.ReadString('\n')
				require.NoError(t, err)
			}
			leave(in, out)
			assert.NoError(t, cmd.Wait(), "it ended as it should")
			nothingLeft(t)
		})
	}
}

// A gateway that ends answers the call that runs, however long that takes to write, before
// it ends the session.
func TestLastAnswer(t *testing.T) {
	var address string
	refused := func() bool { // from then on the gateway only waits for its answers
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	}
	log := slog.New(callHandler{slog.NewTextHandler(io.Discard, nil), func() { mcptest.Soon(t, refused) }})
	_, url, end := startHTTP(t, gatewayOptions{log: log, logCalls: true}, web.Options{})
	address = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), web.Endpoint)
	c, told := connect(t, overHTTP(url), "test", generations["legacy"]...)
	var result *mcp.CallToolResult
	ended := make(chan error, 1)
	go func() {
		var err error
		result, err = callFor(context.Background(), c, 1, "mcp_kitchen__a_hang", nil)
		ended <- err
	}()
	wait(t, told, "notifications/progress") // it has begun
	end()
	require.NoError(t, <-ended)
	assert.Equal(t, "mcp_kitchen__a_hang was stopped: the gateway is shutting down.", textOf(result))
}

// A gateway that ends answers the lists that wait for servers, too, before it ends the session.
func TestLastLists(t *testing.T) {
	silent := make(chan struct{})
	g, url, end := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{
		{Name: "quick", InProcess: mcptest.Server("quick", mcptest.Echo("one", "The first"))}, slowServer("silent", silent),
	}}, web.Options{})
	mcptest.Soon(t, func() bool { return g.mgr.Servers()[0].State == mcphybrid.StateReady })
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	n := g.known(c.GetSessionId()).Notices
	waiting := func(method string) func() bool {
		return func() bool {
			return n.Waits(method)
		}
	}
	tools, prompts := make(chan error, 1), make(chan error, 1)
	var list *mcp.ListToolsResult
	go func() {
		var err error
		list, err = c.ListTools(context.Background(), mcp.ListToolsRequest{})
		tools <- err
	}()
	go func() {
		_, err := c.ListPrompts(context.Background(), mcp.ListPromptsRequest{})
		prompts <- err
	}()
	mcptest.Soon(t, waiting(mcp.MethodNotificationToolsListChanged))
	mcptest.Soon(t, waiting(mcp.MethodNotificationPromptsListChanged))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	defer func() { close(silent); <-ended }()
	require.NoError(t, <-tools)
	require.NoError(t, <-prompts)
	assert.False(t, n.Waits(mcp.MethodNotificationToolsListChanged))
	assert.False(t, n.Waits(mcp.MethodNotificationPromptsListChanged))
	assert.True(t, slices.ContainsFunc(list.Tools, func(t mcp.Tool) bool { return t.Name == "mcp_quick__one" }))
}

// A gateway that ends begins nothing more: a client is told so, and gets no empty answer.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	uri := wrapped + "kitchen/a:b"
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	for name, ask := range map[string]func() error{
		"resources/read": func() error {
			_, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
			return err
		},
		"resources/subscribe": func() error {
			return c.Subscribe(t.Context(), mcp.SubscribeRequest{Params: mcp.SubscribeParams{URI: uri}})
		},
	} {
		assert.ErrorContains(t, ask(), errNotBegun.Error(), name)
	}
}

// A countedContext counts who waits for its end.
type countedContext struct {
	context.Context
	waiting atomic.Int32
}

// Value hides which context is inside, so that others ask this one.
func (c *countedContext) Value(any) any { return nil }

// AfterFunc is what [context.AfterFunc] calls.
func (c *countedContext) AfterFunc(f func()) func() bool {
	c.waiting.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.waiting.Add(-1)
		return stop()
	}
}

// While a request runs, the end of the gateway would end it. Nothing of it stays there.
func TestRequestsLeaveNothingBehind(t *testing.T) {
	g, _, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	calls := &countedContext{Context: g.calls}
	g.calls = calls
	during := make(chan int32, 1)
	run := func(context.Context, *clientCall) error { during <- calls.waiting.Load(); return nil }
	for range 3 {
		require.NoError(t, g.pass(t.Context(), request{}, run))
		assert.EqualValues(t, 1, <-during)
		assert.Zero(t, calls.waiting.Load())
		o, err := g.openCall(t.Context(), request{}, nil, func(ctx context.Context, c *clientCall) (any, error) { return nil, run(ctx, c) })
		require.NoError(t, err)
		assert.EqualValues(t, 1, <-during)
		<-o.done
		assert.Zero(t, calls.waiting.Load())
	}
}

// A callHandler calls a function before it logs a call.
type callHandler struct {
	slog.Handler
	before func()
}

func (h callHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "call" {
		h.before()
	}
	return h.Handler.Handle(ctx, r)
}
