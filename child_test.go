package mcphybrid

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// child returns the configuration of a server that is this test program, run
// again as a child that behaves as mode says: see serveChild.
func child(t *testing.T, name, mode string) ServerConfig {
	t.Helper()
	skipUnlessUnix(t)
	self, err := os.Executable()
	require.NoError(t, err)
	return ServerConfig{Name: name, Command: self, Env: map[string]string{"TEST_SERVER": mode}}
}

// serveChild is a server over standard input and output that behaves as mode
// says. It never lives longer than a minute.
func serveChild(mode string) {
	time.AfterFunc(time.Minute, func() { os.Exit(9) })
	switch mode {
	case "silent": // reads, never answers
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		}
	case "deaf": // never reads
		select {}
	case "stubborn": // refuses to end
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		select {}
	case "dead":
		fmt.Fprintln(os.Stderr, "cannot find module 'nowhere'")
		os.Exit(3)
	case "hostile":
		serveHostile()
	case "raw": // answers tools/list with what LIST holds, and nothing else right
		serveRaw(os.Getenv("LIST"))
	case "confess": // says all that it knows, at length, and ends, once it has answered as AFTER says
		if after := os.Getenv("AFTER"); after != "" {
			serveUntil(`{"tools":[{"name":"a"}]}`, after)
		}
		fmt.Fprint(os.Stderr, strings.Repeat(fmt.Sprintf("%q\n%s\n%q\n", os.Args, os.Args, os.Environ()), 3))
		os.Exit(3)
	case "flood": // sends what FLOOD holds for ever and reads nothing, once it has answered as AFTER says
		serveFlood(os.Getenv("FLOOD"), os.Getenv("AFTER"))
	case "late": // serves, but does not end with its input
		_ = mcpserver.ServeStdio(childServer())
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "parent": // serves, and starts a grandchild in its group and one in a session of its own
		startGrandchild(false)
		startGrandchild(true)
		_ = mcpserver.ServeStdio(childServer())
	default:
		if mode == "noisy" {
			fmt.Println("Server listening on stdio!\n\n{\"not\": \"rpc\"}\n{half")
		}
		_ = mcpserver.ServeStdio(childServer())
	}
}

func startGrandchild(session bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_SERVER=stubborn")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // keeps the pipes open
	if session {
		ownSession(cmd)
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func childServer() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("child", "1", mcpserver.WithPaginationLimit(2))
	add := func(name string, run func(context.Context, mcp.CallToolRequest) (string, error)) {
		s.AddTool(mcp.NewTool(name, mcp.WithDescription("Test tool "+name), mcp.WithNumber("n")),
			func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text, err := run(ctx, r)
				if err != nil {
					return nil, err
				}
				return mcp.NewToolResultText(text), nil
			})
	}
	add("big", func(_ context.Context, r mcp.CallToolRequest) (string, error) {
		return strings.Repeat("x", r.GetInt("n", 0)), nil
	})
	add("env", func(context.Context, mcp.CallToolRequest) (string, error) {
		return strings.Join(os.Environ(), "\n"), nil
	})
	add("exit", func(context.Context, mcp.CallToolRequest) (string, error) {
		fmt.Fprintln(os.Stderr, "asked to exit")
		os.Exit(4)
		return "", nil
	})
	readOnly := func(name string, run func() string) {
		s.AddTool(mcp.NewTool(name, mcp.WithReadOnlyHintAnnotation(true)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(run()), nil
		})
	}
	if died := os.Getenv("DIED"); died != "" {
		readOnly("exit_read_only", func() string { os.Exit(4); return "" })
		readOnly("once", func() string { // dies the first time that it is called
			if _, err := os.Stat(died); err != nil {
				_ = os.WriteFile(died, []byte("x"), 0o600)
				os.Exit(4)
			}
			return "alive"
		})
	}
	add("fail", func(context.Context, mcp.CallToolRequest) (string, error) {
		return "", fmt.Errorf("no such luck")
	})
	add("hang", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	add("mute", func(context.Context, mcp.CallToolRequest) (string, error) {
		signal.Ignore(syscall.SIGTERM)
		os.Stdout.Close()
		select {}
	})
	return s
}

// serveRaw speaks just enough of the protocol to answer tools/list with list.
func serveRaw(list string) { serveUntil(list, "never") }

// serveFlood answers until the method after, and that, and then does nothing
// but send line.
func serveFlood(line, after string) {
	if after != "" {
		serveUntil(`{"tools":[{"name":"a"}]}`, after)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		if _, err := out.WriteString(line + "\n"); err != nil {
			return
		}
	}
}

func serveUntil(list, last string) {
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
		if r.Method == "tools/list" {
			n, _ := strconv.Atoi(os.Getenv("UNASKED"))
			fmt.Print(strings.Repeat(floodNotification+"\n", n))
		}
		fmt.Printf("{%s,\"jsonrpc\":\"2.0\",\"id\":%s}\n", answer, r.ID)
		if r.Method == last {
			return
		}
	}
}
