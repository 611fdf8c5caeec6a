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

// Main runs the tests, or serves as one of the children that they start: see
// [Child]. It fails if a goroutine or child is left at the end. For a mode in more,
// it runs that function instead.
func Main(m *testing.M, more map[string]func()) {
	if mode := os.Getenv("TEST_SERVER"); mode != "" {
		time.AfterFunc(5*time.Minute, func() { os.Exit(9) }) // no child lives longer
		if serve := more[mode]; serve != nil {
			serve()
		} else {
			serveChild(mode)
		}
		return
	}
	waitTogether()
	goleak.VerifyTestMain(Patient{m}, goleak.Cleanup(func(code int) {
		if left := Children(os.Getpid()); code == 0 && len(left) > 0 {
			fmt.Println("processes left:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// A Patient gives goroutines half a minute to end after the tests. goleak gives them
// half a second, which a slow machine may need for one that has been told to end.
type Patient struct{ *testing.M }

// Run runs the tests.
func (p Patient) Run() int {
	code := p.M.Run()
	for try := 0; code == 0 && try < 60 && goleak.Find() != nil; try++ {
	}
	return code
}

// waitTogether lets more tests run in parallel than there are cores, since most wait
// for a server. A flag overrides it.
func waitTogether() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) {
		asked = asked || f.Name == "test.parallel" || f.Name == "test.fuzz" || f.Name == "test.fuzzworker"
	})
	if !asked {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

// ChildMark is the environment variable by which package upstream finds the
// descendants of a child.
const ChildMark = "MCPHYBRID_CHILD"

// Children returns the command lines of the processes that descend from pid or carry
// its mark. It returns nil on systems other than Linux.
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

// Child returns the program and environment of a server: this test program, run as a
// child that behaves as mode says (see serveChild). The package must call [Main] in
// its TestMain.
func Child(t testing.TB, mode string) (command string, env map[string]string) {
	t.Helper()
	SkipUnlessUnix(t)
	self, err := os.Executable()
	require.NoError(t, err)
	// With the race detector, a program otherwise sleeps for a second before it ends.
	return self, map[string]string{"TEST_SERVER": mode, "GORACE": "atexit_sleep_ms=0"}
}

// SkipUnlessUnix skips a test that needs process groups.
func SkipUnlessUnix(t testing.TB) {
	if runtime.GOOS == "windows" {
		t.Skip("needs process groups, which Windows has not")
	}
}

// serveChild serves over standard input and output and behaves as mode says.
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
	case "tidy": // writes to $ENDED after SIGTERM
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Print(".")
		<-asked
		_ = os.WriteFile(os.Getenv("ENDED"), nil, 0o600)
	case "dead":
		fmt.Fprintln(os.Stderr, "cannot find module 'nowhere'")
		os.Exit(3)
	case "raw": // answers tools/list with $LIST, and nothing else correctly
		serveRaw(os.Getenv("LIST"))
	case "confess": // after answering as $AFTER says, writes its arguments and environment three times and ends
		if after := os.Getenv("AFTER"); after != "" {
			serveUntil(`{"tools":[{"name":"a"}]}`, after)
		}
		fmt.Fprint(os.Stderr, strings.Repeat(fmt.Sprintf("%q\n%s\n%q\n", os.Args, os.Args, os.Environ()), 3))
		os.Exit(3)
	case "flood": // after answering as $AFTER says, sends $FLOOD forever and reads nothing
		serveFlood(os.Getenv("FLOOD"), os.Getenv("AFTER"))
	case "endless": // after answering as $AFTER says, sends a line without end, on standard error too
		go serveEndless(os.Stderr)
		serveUntil(`{"tools":[{"name":"a"}]}`, os.Getenv("AFTER"))
		serveEndless(os.Stdout)
	case "curious": // asks: see [Curious]
		serveCurious(true)
	case "curious legacy": // the same with a protocol that has sessions
		serveCurious(false)
	case "late": // serves, but does not end when its input closes
		_ = mcpserver.ServeStdio(childServer())
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "parent": // serves; starts one grandchild in its group and one in another session
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

// StartGrandchild starts a process that refuses to end, in its own session or in
// this process group.
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

// FloodNotification is the message that a child of mode "raw" sends $UNASKED times
// before it lists its tools.
const FloodNotification = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// serveRaw implements just enough of the protocol to answer tools/list with list.
func serveRaw(list string) { serveUntil(list, "never") }

// serveFlood answers requests up to the method after, then only sends line.
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

func serveEndless(out *os.File) {
	line := []byte(strings.Repeat("x", 1<<16))
	for {
		if _, err := out.Write(line); err != nil {
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
