package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Main runs the tests, or one of the servers that they start as children: see
// [Child]. At the end, no goroutine and no child may be left. A mode of more
// runs the function instead.
func Main(m *testing.M, more map[string]func()) {
	if mode := os.Getenv("TEST_SERVER"); mode != "" {
		time.AfterFunc(time.Minute, func() { os.Exit(9) }) // it never lives longer
		if serve := more[mode]; serve != nil {
			serve()
		} else {
			serveChild(mode)
		}
		return
	}
	waitTogether()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left := Children(os.Getpid()); code == 0 && len(left) > 0 {
			fmt.Println("processes left:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// waitTogether lets more parallel tests run than there are cores, as most of
// them wait for a server, unless a flag says otherwise.
func waitTogether() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) {
		asked = asked || f.Name == "test.parallel" || f.Name == "test.fuzz" || f.Name == "test.fuzzworker"
	})
	if !asked {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// ChildMark is the environment variable by which package upstream finds again
// what a child started.
const ChildMark = "MCPHYBRID_CHILD"

// Children returns the command lines of the processes that descend from pid
// or, having lost their parent, carry its mark. It knows none but on Linux.
func Children(pid int) []string {
	var list []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(filepath.Dir(path) + "/environ")
		var ppid int
		var state string
		_, rest, _ := strings.Cut(string(stat), ") ")
		_, _ = fmt.Sscan(rest, &state, &ppid)
		marked := strings.Contains(string(env), fmt.Sprintf("%s=%d-", ChildMark, pid))
		if state != "Z" && (ppid == pid || marked) {
			cmd, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
			list = append(list, strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return list
}

// Child returns the program and the environment of a server that is this test
// program, run again as a child that behaves as mode says: see serveChild. Its
// package must have [Main] as its TestMain.
func Child(t testing.TB, mode string) (command string, env map[string]string) {
	t.Helper()
	SkipUnlessUnix(t)
	self, err := os.Executable()
	require.NoError(t, err)
	return self, map[string]string{"TEST_SERVER": mode}
}

// SkipUnlessUnix skips a test that needs process groups.
func SkipUnlessUnix(t testing.TB) {
	if runtime.GOOS == "windows" {
		t.Skip("needs process groups, which Windows has not")
	}
}

// serveChild is a server over standard input and output that behaves as mode
// says.
func serveChild(mode string) {
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
		StartGrandchild(false)
		StartGrandchild(true)
		_ = mcpserver.ServeStdio(childServer())
	default:
		if mode == "noisy" {
			fmt.Println("Server listening on stdio!\n\n{\"not\": \"rpc\"}\n{half")
		}
		_ = mcpserver.ServeStdio(childServer())
	}
}

// StartGrandchild starts a process that refuses to end, in a session of its own
// or in this one's process group.
func StartGrandchild(session bool) {
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

// FloodNotification is a message that a child of the mode "raw" sends unasked
// before it lists its tools, as often as UNASKED says.
const FloodNotification = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

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
			fmt.Print(strings.Repeat(FloodNotification+"\n", n))
		}
		fmt.Printf("{%s,\"jsonrpc\":\"2.0\",\"id\":%s}\n", answer, r.ID)
		if r.Method == last {
			return
		}
	}
}
