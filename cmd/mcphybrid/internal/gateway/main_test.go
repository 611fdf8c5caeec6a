package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the tests, the gateway, or the server that the gateway starts
// as a child. At the end, no goroutine and no process may be left.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("TEST_SERVER") != "":
		serveChild()
		return
	case os.Getenv("TEST_GATEWAY") != "":
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	folder, err := os.MkdirTemp("", "gateway-test-")
	if err != nil {
		panic(err)
	}
	for _, entry := range cacheHome(folder) {
		name, value, _ := strings.Cut(entry, "=")
		os.Setenv(name, value)
	}
	goleak.VerifyTestMain(mcptest.Patient{M: m}, goleak.Cleanup(func(code int) {
		os.RemoveAll(folder)
		if left := processes(); code == 0 && len(left) > 0 {
			fmt.Println("processes left:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// cacheHome is an environment in which the user's cache folder is in a folder.
func cacheHome(folder string) []string {
	return []string{"XDG_CACHE_HOME=" + folder, "HOME=" + folder, "LocalAppData=" + folder}
}

// processes returns the command lines of the processes that this one started,
// directly or not: they carry a mark. On systems other than Linux it returns
// none.
func processes() []string {
	var list []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		env, _ := os.ReadFile(path)
		if strings.Contains(string(env), fmt.Sprintf("TEST_RUN=%d\x00", os.Getpid())) {
			line, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// writeConfig writes a configuration with children of the given names.
func writeConfig(t *testing.T, names ...string) string {
	t.Helper()
	servers := make(map[string]any)
	for _, name := range names {
		servers[name] = map[string]any{
			"command": self(t), "env": map[string]string{"TEST_SERVER": name, "TEST_RUN": fmt.Sprint(os.Getpid()), "GORACE": "atexit_sleep_ms=0"},
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// startHTTP serves the servers of a configuration on loopback, until end is
// called or the test ends.
func startHTTP(t *testing.T, opts gatewayOptions, front web.Options) (g *gateway, url string, end func()) {
	t.Helper()
	if opts.servers == nil {
		cfg, err := mcphybrid.LoadConfig(writeConfig(t, "kitchen"))
		require.NoError(t, err)
		opts.servers = cfg.Servers
	}
	opts.wait, opts.grace = cmp.Or(opts.wait, patience), time.Second
	opts.logLevel, opts.log = mcp.LoggingLevelInfo, cmp.Or(opts.log, slog.New(slog.DiscardHandler))
	site, err := web.Listen("127.0.0.1:0", front)
	require.NoError(t, err)
	g = newGateway(opts)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		defer g.close()
		ended <- g.serveHTTP(ctx, site)
	}()
	done := false
	end = func() {
		if !done {
			done = true
			stop()
			assert.NoError(t, <-ended)
			g.close() // returns when the other one has
		}
	}
	t.Cleanup(end)
	return g, site.URL(), end
}

// A connector returns a client of the gateway, not yet connected.
type connector func(t *testing.T, opts ...client.ClientOption) *client.Client

func overHTTP(url string, opts ...transport.StreamableHTTPCOption) connector {
	return func(t *testing.T, more ...client.ClientOption) *client.Client {
		t.Helper()
		tr, err := transport.NewStreamableHTTP(url, append(opts, transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))...)
		require.NoError(t, err)
		return client.NewClient(tr, more...)
	}
}

// gatewayEnv makes this test program run as a gateway.
func gatewayEnv() []string {
	return []string{"TEST_GATEWAY=1", fmt.Sprintf("TEST_RUN=%d", os.Getpid()), "GORACE=atexit_sleep_ms=0"}
}

// overStdio starts a gateway as a child.
func overStdio(args ...string) connector {
	return func(t *testing.T, more ...client.ClientOption) *client.Client {
		t.Helper()
		return client.NewClient(transport.NewStdioWithOptions(self(t), gatewayEnv(), append([]string{"-wait", patience.String()}, args...),
			transport.WithCommandStderrWriter(t.Output()), transport.WithCommandLogger(slog.New(slog.DiscardHandler))), more...)
	}
}

// connect returns a connected client and its notifications. However long the gateway takes to
// start, the client does not take it for one of an older protocol.
func connect(t *testing.T, open connector, name string, opts ...client.ClientOption) (*client.Client, <-chan mcp.JSONRPCNotification) {
	t.Helper()
	c := open(t, slices.Concat(opts, []client.ClientOption{client.WithDiscoverTimeout(patience)})...)
	told := make(chan mcp.JSONRPCNotification, 1000)
	c.OnNotification(func(n mcp.JSONRPCNotification) { told <- n })
	require.NoError(t, c.Start(context.Background()))
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: name, Version: "1"}
	_, err := c.Initialize(ctx, hello)
	require.NoError(t, err)
	return c, told
}

// generations are the generations of the protocol.
var generations = map[string][]client.ClientOption{
	"legacy": {client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION)},
	"modern": {client.WithProtocolVersion(mcp.LATEST_PROTOCOL_VERSION)},
}

// everywhere runs a test over each transport and generation.
func everywhere(t *testing.T, test func(t *testing.T, open connector, opts []client.ClientOption)) {
	for generation, opts := range generations {
		t.Run("stdio "+generation, func(t *testing.T) {
			test(t, overStdio("-config", writeConfig(t, "kitchen")), opts)
		})
		t.Run("http "+generation, func(t *testing.T) {
			_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
			test(t, overHTTP(url), opts)
		})
	}
}

// call calls a tool.
func call(ctx context.Context, c *client.Client, name string, args any) (*mcp.CallToolResult, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = name, args
	return c.CallTool(ctx, r)
}

// say calls a tool that must succeed, and returns the text of its answer.
func say(t *testing.T, c *client.Client, name string, args any) string {
	t.Helper()
	result, err := call(t.Context(), c, name, args)
	require.NoError(t, err)
	require.False(t, result.IsError, "%v", result.Content)
	return textOf(result)
}

func textOf(result *mcp.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		if text := mcp.GetTextFromContent(c); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

func toolNames(t *testing.T, c *client.Client) []string {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	require.NoError(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// wait returns the next notification of a method.
func wait(t *testing.T, told <-chan mcp.JSONRPCNotification, method string) mcp.JSONRPCNotification {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case n := <-told:
			if n.Method == method {
				return n
			}
		case <-late:
			require.FailNow(t, "not told", method)
		}
	}
}

// patience is how long a test waits on a slow machine for what must come.
const patience = time.Minute

var errLate = errors.New("too late")

// within returns a context that ends after patience with an error that says so.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errLate)
	t.Cleanup(cancel)
	return ctx
}
