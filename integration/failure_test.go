package integration

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers that do not start cost the others nothing.
func TestFailedStart(t *testing.T) {
	const deadline = time.Second
	missing := server{name: "missing", Command: "mcphybrid-no-such-command"}
	silent := server{name: "silent", Command: "sleep", Args: []string{"1000"}, Timeout: deadline.String()}
	mgr := newManager(t, missing, everything(), silent, everythingHTTP(t))

	begun := time.Now()
	err := mgr.Start(t.Context())
	took := time.Since(begun)
	for _, p := range children() {
		assert.NotContains(t, p.command, "sleep")
	}
	require.Error(t, err)
	assert.ErrorContains(t, err, `"missing"`)
	assert.ErrorContains(t, err, `"silent"`)
	assert.NotContains(t, err.Error(), "everything")
	assert.GreaterOrEqual(t, took, deadline)
	assert.Less(t, took, deadline+3*time.Second)

	states := make(map[string]mcphybrid.State)
	for _, s := range mgr.Servers() {
		states[s.Name] = s.State
	}
	assert.Equal(t, map[string]mcphybrid.State{
		"missing": mcphybrid.StateDown, "everything": mcphybrid.StateReady,
		"silent": mcphybrid.StateDown, "everything-http": mcphybrid.StateReady,
	}, states)
	assert.Len(t, mgr.InlineTools(), 26)
	for _, tool := range []string{"mcp_everything__echo", "mcp_everything_http__echo"} {
		assert.Equal(t, "Echo: here", call(t, mgr, tool, `{"message": "here"}`))
	}
}

// A server that dies takes the call that it is working on with it, and no
// other server's.
func TestKilledServer(t *testing.T) {
	mgr := startManager(t, everything(), everythingHTTP(t), memory(filepath.Join(t.TempDir(), "memory.jsonl")), grafana())
	call(t, mgr, "mcp_memory__read_graph", nil)

	// Stopped, it is sure to be killed while it has a request.
	victim := child(t, "server-memory")
	require.NoError(t, syscall.Kill(victim.pid, syscall.SIGSTOP))
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	running := make(chan answer, 1)
	go func() {
		result, err := mgr.Call(t.Context(), "mcp_memory__read_graph", nil)
		running <- answer{result, err}
	}()
	require.Eventually(t, func() bool { return unread(victim) > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, syscall.Kill(victim.pid, syscall.SIGKILL))

	for _, a := range []func() answer{
		func() answer { return <-running },
		func() answer { // and any later call
			result, err := mgr.Call(t.Context(), "mcp_memory__read_graph", nil)
			return answer{result, err}
		},
	} {
		got := a()
		require.ErrorIs(t, got.err, mcphybrid.ErrServerDown)
		assert.ErrorContains(t, got.err, `"memory"`)
		assert.True(t, got.result.IsError)
		assert.Contains(t, text(got.result), "mcp_memory__read_graph")
	}
	require.Eventually(t, func() bool { return mgr.Servers()[2].State == mcphybrid.StateDown }, 10*time.Second, time.Millisecond)
	assert.ErrorContains(t, mgr.Servers()[2].Err, "killed")
	for _, tool := range []string{"mcp_everything__echo", "mcp_everything_http__echo"} {
		assert.Equal(t, "Echo: here", call(t, mgr, tool, `{"message": "here"}`))
	}
	result, err := mgr.Call(t.Context(), "mcp_grafana__list_datasources", nil)
	require.NoError(t, err)
	assert.True(t, result.IsError)
}

// Close leaves no process and no goroutine, nor anything in the registry, even
// while calls run: see also newManager.
func TestClose(t *testing.T) {
	mgr := startManager(t, fiveServers(t)...)
	require.Len(t, children(), 4)
	registry := mcphybrid.NewRegistry()
	mgr.NewSession(&mcphybrid.SessionOptions{Registry: registry})
	require.Len(t, registry.List(), 41)

	// Stopped, it can't answer; nor does it end when it is asked to.
	victim := child(t, "server-memory")
	require.NoError(t, syscall.Kill(victim.pid, syscall.SIGSTOP))
	running := make(chan error, 1)
	go func() {
		_, err := mgr.Call(t.Context(), "mcp_memory__read_graph", nil)
		running <- err
	}()
	require.Eventually(t, func() bool { return unread(victim) > 0 }, 10*time.Second, time.Millisecond)

	require.NoError(t, mgr.Close())
	assert.Empty(t, children())
	assert.Error(t, <-running)
	assert.Empty(t, registry.List())
	assert.Empty(t, mgr.Tools())
	assert.Empty(t, mgr.Servers())
	_, err := mgr.Call(t.Context(), "mcp_everything__echo", `{"message": "here"}`)
	assert.ErrorIs(t, err, mcphybrid.ErrUnknownTool)
}
