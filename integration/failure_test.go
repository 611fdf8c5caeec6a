package integration

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers that fail to start cost the others nothing.
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

// A server that dies ends its own running calls and no other server's.
func TestKilledServer(t *testing.T) {
	mgr := startManager(t, everything(), everythingHTTP(t), memory(filepath.Join(t.TempDir(), "memory.jsonl")), grafana())
	call(t, mgr, "mcp_memory__read_graph", nil)

	// While it is stopped, it has a request and can be killed.
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

// A call may find its server dead when it writes, while it waits, or before.
// For the host and the model, these are the same.
func TestKilledUnderLoad(t *testing.T) {
	const rounds, callers, refusals = 20, 16, 5
	const tool = "mcp_grafana__list_datasources"
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			mgr := startManager(t, grafana())
			victim := child(t, "mcp-grafana")
			var answered atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for refused := 0; refused < refusals; {
						result, err := mgr.Call(t.Context(), tool, nil)
						if err == nil && refused == 0 {
							answered.Add(1)
							continue
						}
						refused++
						assertDown(t, tool, result, err)
					}
				})
			}
			assert.Eventually(t, func() bool { return answered.Load() >= int64(callers+round) }, 10*time.Second, time.Millisecond)
			assert.NoError(t, syscall.Kill(victim.pid, syscall.SIGKILL))
			wg.Wait()
		})
	}
}

// Real servers are killed again and again while sessions call them, and come
// back each time. Every call gets an answer or ErrServerDown, and calls of
// another server don't notice.
func TestKilledServersComeBack(t *testing.T) {
	const kills = 8
	path := writeConfig(t, grafana(), everything())
	mgr := loadManagerThat(t, path, mcphybrid.Options{Limits: config.Limits{Reconnect: 50 * time.Millisecond}})
	require.NoError(t, mgr.Start(t.Context()))
	before := everyByte(mgr)
	ctx, cancel := context.WithCancel(t.Context())
	var answered, down, others atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			sess := mgr.NewSession(nil)
			for ctx.Err() == nil {
				switch _, err := sess.Call(context.Background(), "mcp_grafana__list_datasources", nil); {
				case err == nil:
					answered.Add(1)
				default:
					assert.ErrorIs(t, err, mcphybrid.ErrServerDown)
					assert.ErrorContains(t, err, `"grafana"`)
					down.Add(1)
				}
			}
		})
		wg.Go(func() {
			sess := mgr.NewSession(nil)
			for ctx.Err() == nil {
				result, err := sess.Call(context.Background(), "mcp_everything__echo", `{"message": "here"}`)
				assert.NoError(t, err)
				assert.Equal(t, "Echo: here", text(result))
				others.Add(1)
			}
		})
	}
	for range kills {
		served := answered.Load()
		require.Eventually(t, func() bool { return answered.Load() > served+20 }, 20*time.Second, time.Millisecond)
		assert.NoError(t, syscall.Kill(child(t, "mcp-grafana").pid, syscall.SIGKILL))
	}
	served := answered.Load()
	require.Eventually(t, func() bool { return answered.Load() > served+20 }, 20*time.Second, time.Millisecond)
	cancel()
	wg.Wait()
	assert.Positive(t, others.Load())
	require.Eventually(t, func() bool { return mgr.Servers()[0].State == mcphybrid.StateReady }, 10*time.Second, time.Millisecond)
	assert.Equal(t, before, everyByte(mgr), "the same tools, to the byte")
	t.Logf("%d answered, %d down, %d of the other server", answered.Load(), down.Load(), others.Load())
}

// An HTTP server has no process whose end we would see. Its calls show that it
// is down.
func TestKilledHTTPServer(t *testing.T) {
	const tool = "mcp_everything_http__echo"
	victim, kill := startEverythingHTTP(t)
	mgr := startManager(t, victim, everything(), memory(filepath.Join(t.TempDir(), "memory.jsonl")))
	assert.Equal(t, "Echo: here", call(t, mgr, tool, `{"message": "here"}`))

	kill()
	for range 3 {
		result, err := mgr.Call(t.Context(), tool, `{"message": "here"}`)
		assertDown(t, tool, result, err)
		assert.ErrorContains(t, err, `"everything-http"`)
		assert.Equal(t, "Echo: here", call(t, mgr, "mcp_everything__echo", `{"message": "here"}`))
		call(t, mgr, "mcp_memory__read_graph", nil)
	}
}

// assertDown checks the result of a call of a tool whose server is down.
func assertDown(t *testing.T, tool string, result *mcp.CallToolResult, err error) {
	t.Helper()
	assert.ErrorIs(t, err, mcphybrid.ErrServerDown)
	assert.True(t, result.IsError)
	assert.Regexp(t, "^"+tool+` can't be called now: its server (is|has been) down( since \S+)?\. Go on without it\.$`, text(result))
}

// Some services put keys into URLs. These keys must not appear in errors.
func TestSecretInURL(t *testing.T) {
	const query = "?apiKey=5ecret"
	check := func(t *testing.T, mgr *mcphybrid.Manager, err error, texts ...string) {
		t.Helper()
		assert.ErrorContains(t, err, `"everything-http"`)
		assert.NotErrorAs(t, err, new(*url.Error)) // the error has the URL in a field
		texts = append(texts, err.Error(), everyByte(mgr))
		for _, s := range mgr.Servers() {
			if s.Err != nil {
				texts = append(texts, s.Err.Error())
			}
		}
		for _, text := range texts {
			assert.NotContains(t, text, "5ecret")
			assert.NotContains(t, text, "apiKey")
		}
	}

	t.Run("start", func(t *testing.T) {
		mgr := newManager(t, server{name: "everything-http", URL: "http://127.0.0.1:1/mcp" + query}) // nothing listens there
		err := mgr.Start(t.Context())
		require.Error(t, err)
		assert.ErrorContains(t, err, "connection refused")
		require.Error(t, mgr.Servers()[0].Err)
		check(t, mgr, err)
	})

	t.Run("call", func(t *testing.T) {
		const tool = "mcp_everything_http__echo"
		victim, kill := startEverythingHTTP(t)
		victim.URL += query
		mgr := startManager(t, victim)
		assert.Equal(t, "Echo: here", call(t, mgr, tool, `{"message": "here"}`))
		kill()
		result, err := mgr.Call(t.Context(), tool, `{"message": "here"}`)
		require.Error(t, err)
		assert.True(t, result.IsError)
		check(t, mgr, err, text(result))
	})

	t.Run("log", func(t *testing.T) {
		victim, kill := startEverythingHTTP(t)
		victim.URL += query
		cfg, err := mcphybrid.LoadConfig(writeConfig(t, victim))
		require.NoError(t, err)
		var log bytes.Buffer
		mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, mgr.Start(t.Context()))
		kill()
		require.NoError(t, mgr.Close()) // it can't end its session there
		assert.Contains(t, log.String(), "close request")
		assert.NotContains(t, log.String(), "5ecret")
		assert.NotContains(t, log.String(), "apiKey")
	})
}

// Close leaves no process, no goroutine and nothing in the registry, even while
// calls run: see also newManager.
func TestClose(t *testing.T) {
	mgr := startManager(t, fiveServers(t)...)
	require.Len(t, children(), 4)
	registry := mcphybrid.NewRegistry()
	mgr.NewSession(&mcphybrid.SessionOptions{Registry: registry})
	require.Len(t, registry.List(), 43)

	// While it is stopped, it can't answer and does not end when it is asked
	// to.
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
	assert.Empty(t, mgr.Default().Tools())
	assert.Empty(t, mgr.Servers())
	_, err := mgr.Call(t.Context(), "mcp_everything__echo", `{"message": "here"}`)
	assert.ErrorIs(t, err, mcphybrid.ErrClosed)
}
