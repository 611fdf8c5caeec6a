package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCall(t *testing.T) {
	dir := t.TempDir()
	graph := filepath.Join(t.TempDir(), "memory.jsonl")
	mgr := startManager(t, filesystem(dir), everything(), everythingHTTP(t), memory(graph), grafana())

	t.Run("filesystem", func(t *testing.T) {
		file := filepath.Join(dir, "note.txt")
		const content = "two lines,\nand ünïcödé \U0001f680\n"
		call(t, mgr, "mcp_filesystem__write_file", map[string]any{"path": file, "content": content})
		onDisk, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, content, string(onDisk))
		assert.Equal(t, content, call(t, mgr, "mcp_filesystem__read_text_file", map[string]any{"path": file}))

		// Models fill optional parameters with null. This server takes null for
		// an error.
		assert.Equal(t, content, call(t, mgr, "mcp_filesystem__read_text_file",
			fmt.Sprintf(`{"path": %q, "head": null, "tail": null}`, file)))
	})

	t.Run("error result", func(t *testing.T) {
		for name, path := range map[string]string{
			"no such file": filepath.Join(dir, "missing.txt"),
			"not allowed":  "/etc/hostname",
		} {
			result, err := mgr.Call(t.Context(), "mcp_filesystem__read_text_file", map[string]any{"path": path})
			require.NoError(t, err, name)
			assert.True(t, result.IsError, name)
			assert.Contains(t, text(result), path, name)
		}
	})

	t.Run("memory", func(t *testing.T) {
		call(t, mgr, "mcp_memory__create_entities",
			`{"entities": [{"name": "Gopher", "entityType": "animal", "observations": ["digs"]}]}`)
		var got struct {
			Entities []struct{ Name, EntityType string }
		}
		require.NoError(t, json.Unmarshal([]byte(call(t, mgr, "mcp_memory__read_graph", nil)), &got))
		require.Len(t, got.Entities, 1)
		assert.Equal(t, "Gopher", got.Entities[0].Name)
		assert.Equal(t, "animal", got.Entities[0].EntityType)
		onDisk, err := os.ReadFile(graph)
		require.NoError(t, err)
		assert.Contains(t, string(onDisk), "Gopher")
	})

	for _, server := range []string{"everything", "everything_http"} {
		t.Run(server, func(t *testing.T) {
			prefix := "mcp_" + server + "__"
			assert.Equal(t, "Echo: hello <&> \u2028", call(t, mgr, prefix+"echo", map[string]any{"message": "hello <&> \u2028"}))
			for name, args := range map[string]any{
				"string": `{"a": 2, "b": 40}`, "bytes": []byte(`{"a": 2, "b": 40}`),
				"raw": json.RawMessage(`{"a": 2, "b": 40}`), "map": map[string]any{"a": 2, "b": 40},
			} {
				assert.Equal(t, "The sum of 2 and 40 is 42.", call(t, mgr, prefix+"get-sum", args), name)
			}

			result, err := mgr.Call(t.Context(), prefix+"get-sum", `{"a": "two"}`)
			require.ErrorIs(t, err, mcphybrid.ErrBadArguments)
			assert.True(t, result.IsError)
			assert.Contains(t, text(result), prefix+"get-sum was not called")
			assert.Contains(t, text(result), "- /a is a string, but must be a number")

			result, err = mgr.Call(t.Context(), prefix+"get-structured-content", `{"location": "Chicago"}`)
			require.NoError(t, err)
			assert.Contains(t, result.StructuredContent, "temperature")
		})
	}

	t.Run("grafana", func(t *testing.T) {
		result, err := mgr.Call(t.Context(), "mcp_grafana__list_datasources", nil)
		require.NoError(t, err)
		assert.True(t, result.IsError)
		assert.Contains(t, text(result), "connection refused")
	})

	t.Run("unknown", func(t *testing.T) {
		result, err := mgr.Call(t.Context(), "mcp_memory__forget", nil)
		require.ErrorIs(t, err, mcphybrid.ErrUnknownTool)
		assert.True(t, result.IsError)
		assert.Contains(t, text(result), mcphybrid.SearchToolName)
	})
}

// A deferred tool may be called without a search. It is active from then on, in
// that session only.
func TestLazyCall(t *testing.T) {
	mgr := startManager(t, fiveServers(t)...)
	registry := mcphybrid.NewRegistry()
	one := mgr.NewSession(&mcphybrid.SessionOptions{Registry: registry})
	t.Cleanup(one.Close)
	two := mgr.NewSession(nil)
	require.NotContains(t, names(one.InlineTools()), "mcp_memory__read_graph")

	call(t, one, "mcp_memory__read_graph", nil)
	assert.Equal(t, []string{"mcp_memory__read_graph"}, names(one.ActiveTools()))
	assert.NotContains(t, names(one.DeferredTools()), "mcp_memory__read_graph")
	assert.Equal(t, []string{"mcp_memory__read_graph"}, registry.ToolGroup(mcphybrid.GroupServer+"memory"))

	// Through the registry, as a host's own loop calls it.
	_, err := registry.Execute(t.Context(), "mcp_memory__search_nodes", json.RawMessage(`{"query": "nothing"}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"mcp_memory__read_graph", "mcp_memory__search_nodes"}, names(one.ActiveTools()))

	assert.Empty(t, two.ActiveTools())
	assert.Empty(t, mgr.ActiveTools())
	assert.Len(t, two.DeferredTools(), 90)
	call(t, two, "mcp_memory__search_nodes", `{"query": "nothing"}`)
	assert.Equal(t, []string{"mcp_memory__search_nodes"}, names(two.ActiveTools()))
	assert.Len(t, one.ActiveTools(), 2)
}

// A server gets only those variables of this process's environment that it
// needs.
func TestEnvironmentStaysHere(t *testing.T) {
	t.Setenv("MCPHYBRID_TEST_SECRET", "a secret of the host")
	server := everything()
	server.Env = map[string]string{"GIVEN": "${MCPHYBRID_TEST_SECRET}"}
	mgr := startManager(t, server)
	var env map[string]string
	require.NoError(t, json.Unmarshal([]byte(call(t, mgr, "mcp_everything__get-env", nil)), &env))
	assert.Equal(t, "a secret of the host", env["GIVEN"])
	assert.NotEmpty(t, env["PATH"])
	assert.NotContains(t, env, "MCPHYBRID_TEST_SECRET")
}

// A call that takes too long costs only itself.
func TestCallTimeout(t *testing.T) {
	stdio, http := everything(), everythingHTTP(t)
	stdio.CallTimeout, http.CallTimeout = "1s", "1s"
	mgr := startManager(t, stdio, http)
	var wg sync.WaitGroup
	for _, prefix := range []string{"mcp_everything__", "mcp_everything_http__"} {
		wg.Go(func() {
			result, err := mgr.Call(t.Context(), prefix+"trigger-long-running-operation", `{"duration": 600, "steps": 2}`)
			assert.ErrorIs(t, err, context.DeadlineExceeded, prefix)
			assert.True(t, result.IsError, prefix)
		})
	}
	wg.Wait()
	for _, prefix := range []string{"mcp_everything__", "mcp_everything_http__"} {
		require.Eventually(t, func() bool { // it has a second each time
			result, err := mgr.Call(t.Context(), prefix+"echo", `{"message": "still here"}`)
			return err == nil && text(result) == "Echo: still here"
		}, chaosPatience, 10*time.Millisecond)
	}
}

func TestConcurrentCalls(t *testing.T) {
	const goroutines, calls = 16, 50
	mgr := startManager(t, everything(), everythingHTTP(t))
	var wg sync.WaitGroup
	var right atomic.Int64
	for g := range goroutines {
		wg.Go(func() {
			for i := range calls {
				for _, tool := range []string{"mcp_everything__echo", "mcp_everything_http__echo"} {
					message := fmt.Sprintf("call %d of goroutine %d with %s", i, g, tool)
					result, err := mgr.Call(t.Context(), tool, map[string]any{"message": message})
					if !assert.NoError(t, err) || !assert.Equal(t, "Echo: "+message, text(result)) {
						return
					}
					right.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, goroutines*calls*2, right.Load())
}
