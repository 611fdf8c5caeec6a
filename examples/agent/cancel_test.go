//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test program is also the agent and one of its servers.
func TestMain(m *testing.M) {
	switch os.Getenv("AGENT_TEST") {
	case "agent":
		main()
	case "server":
		time.AfterFunc(time.Minute, func() { os.Exit(9) }) // whatever happens
		s := server.NewMCPServer("slow", "1.0.0")
		s.AddTool(mcp.NewTool("wait"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := http.Post(os.Getenv("CALLED"), "text/plain", bytes.NewBufferString(strconv.Itoa(os.Getpid())))
			if err == nil {
				res.Body.Close()
			}
			select {} // it ignores everything
		})
		_ = server.ServeStdio(s)
	default:
		os.Exit(m.Run())
	}
}

// Ctrl-C during a call of a server's tool ends the agent at once. The agent
// says so, and its server is gone.
func TestInterrupt(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		called := make(chan int, 1)
		calledURL := host(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			pid, _ := strconv.Atoi(string(data))
			called <- pid
		}))
		s := newScript(
			modeltest.Step{User: "wait", Tools: listed(name, "mcp_slow__wait"), Say: "I wait.", Calls: []modeltest.Call{{Name: "mcp_slow__wait", Arguments: "{}"}}},
			modeltest.Step{Results: []string{""}},
		)
		cmd, out := agentProcess(t, name, host(t, s), calledURL, "wait")
		pid := <-called
		require.NoError(t, syscall.Kill(pid, 0))
		requireInterrupted(t, cmd, out)
		assert.Contains(t, out.String(), "I wait.\n→ mcp_slow__wait {}\n")
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the server is still there")
		assert.EqualError(t, s.End(), "the script is at step 1 of 2", "a request was sent after the interrupt")
	})
}

// Ctrl-C while the model answers ends the agent.
func TestInterruptAnswer(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		asked := make(chan struct{})
		gone := make(chan struct{})
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			close(asked)
			<-r.Context().Done()
			close(gone)
		}))
		cmd, out := agentProcess(t, name, url, "", "hello")
		<-asked
		requireInterrupted(t, cmd, out)
		<-gone
	})
}

// agentProcess starts the agent with a server whose tool reports its call to
// calledURL and never answers.
func agentProcess(t *testing.T, name, baseURL, calledURL, message string) (*exec.Cmd, *bytes.Buffer) {
	self, err := os.Executable()
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "mcp.json")
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"slow": map[string]any{
		"command": self, "env": map[string]any{"AGENT_TEST": "server", "CALLED": calledURL},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, data, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, "-provider", name, "-base-url", baseURL, "-config", config, message)
	cmd.Env = append(os.Environ(), "AGENT_TEST=agent")
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	return cmd, out
}

func requireInterrupted(t *testing.T, cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), out)
	assert.Contains(t, out.String(), "agent: interrupted\n")
}

// A call in this process also ends with its context. The result of another call
// that had ended is still printed.
func TestCancelledCall(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		wait := server.ServerTool{Tool: mcp.NewTool("wait"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			cancel()
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		}}
		s := newScript(
			modeltest.Step{User: "wait", Tools: listed(name, "mcp_t__wait"), Calls: []modeltest.Call{{Name: "mcp_t__wait", Arguments: "{}"}, {Name: "mcp_t__none", Arguments: "{}"}}},
			modeltest.Step{Results: []string{"", ""}},
		)
		a, out := newAgent(t, name, host(t, s), wait)
		require.ErrorIs(t, a.converse(ctx, []string{"wait"}), context.Canceled)
		assert.True(t, ended)
		assert.Contains(t, out.String(), fmt.Sprintf("There is no tool named %q", "mcp_t__none"))
		assert.EqualError(t, s.End(), "the script is at step 1 of 2")
	})
}
