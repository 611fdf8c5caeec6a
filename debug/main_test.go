package debug_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the tests, or serves as one of their children.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TEST_SERVER"); mode != "" {
		time.AfterFunc(5*time.Minute, func() { os.Exit(9) })
		serveChild(mode)
		return
	}
	goleak.VerifyTestMain(mcptest.Patient{M: m})
}

// child returns the configuration of a server that is this test program,
// started as a child that behaves as mode says: see serveChild.
func child(t *testing.T, name, mode string) mcphybrid.ServerConfig {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return mcphybrid.ServerConfig{Name: name, Command: self, Env: map[string]string{"TEST_SERVER": mode, "GORACE": "atexit_sleep_ms=0"}}
}

// serveChild serves over standard input and output.
func serveChild(mode string) {
	switch mode {
	case "exits": // when its tool is called
		s := mcpserver.NewMCPServer("child", "1")
		s.AddTool(mcp.NewTool("exit"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			fmt.Fprintln(os.Stderr, "asked to exit")
			os.Exit(4)
			return nil, nil
		})
		_ = mcpserver.ServeStdio(s)
	case "raw": // answers tools/list with LIST
		serveRaw(os.Getenv("LIST"))
	case "npm", "unset": // dies like npx, or for want of a variable
		fmt.Fprintln(os.Stderr, lastWords[mode])
		os.Exit(3)
	case "confess": // writes everything that it knows and ends
		fmt.Fprint(os.Stderr, strings.Repeat(fmt.Sprintf("%q\n%s\n%q\n", os.Args, os.Args, os.Environ()), 3))
		os.Exit(3)
	}
}

var lastWords = map[string]string{
	"npm":   "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/@x%2fcalender\nnpm error 404 The requested resource '@x/calender@*' could not be found or you do not have permission to access it.",
	"unset": "Listening\nError: JIRA_TOKEN is not set.",
}

func serveRaw(list string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch r.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			answer = `"result":` + list
		}
		fmt.Printf("{%s,\"jsonrpc\":\"2.0\",\"id\":%s}\n", answer, r.ID)
	}
}

// start returns a started Manager that is closed when the test ends.
func start(t *testing.T, opts *mcphybrid.Options) *mcphybrid.Manager {
	t.Helper()
	mgr := mcphybrid.NewManager(opts)
	t.Cleanup(func() { assert.NoError(t, mgr.Close()) })
	require.NoError(t, mgr.Start(t.Context()))
	return mgr
}

// echoTool returns a tool that answers with its name and arguments.
func echoTool(name, description string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("text")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprintf("%s %s", name, r.Params.RawArguments)), nil
		},
	}
}

// startRefusing returns the address of a server that refuses every token.
func startRefusing(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// inProcess returns a real MCP server in this process, of n tools named
// tool_000 and so on.
func inProcess(name string, n int) mcphybrid.ServerConfig {
	var tools []mcpserver.ServerTool
	for i := range n {
		tools = append(tools, echoTool(fmt.Sprintf("tool_%03d", i), fmt.Sprintf("Does chore %d for %s", i, name)))
	}
	return serving(name, tools...)
}

// serving returns a real MCP server in this process with the given tools.
func serving(name string, tools ...mcpserver.ServerTool) mcphybrid.ServerConfig {
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(tools...)
	return mcphybrid.ServerConfig{Name: name, InProcess: s}
}

// changedTools returns the problems of mgr that report changed tools.
func changedTools(mgr *mcphybrid.Manager) (list []*mcphybrid.ChangedError) {
	for _, err := range mgr.Problems() {
		var e *mcphybrid.ChangedError
		if errors.As(err, &e) {
			list = append(list, e)
		}
	}
	return list
}

// soon waits until a condition holds that depends on other goroutines or
// processes.
func soon(t *testing.T, condition func() bool) {
	t.Helper()
	mcptest.Soon(t, condition)
}
