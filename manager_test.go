package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChildServer(t *testing.T) {
	t.Setenv("MY_SECRET", "s3cret")
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{child(t, "child", "noisy")}})
	// It lists its tools on pages of two.
	assert.Equal(t, []string{"mcp_child__big", "mcp_child__env", "mcp_child__exit", "mcp_child__fail", "mcp_child__hang", "mcp_child__mute"},
		toolNames(m.InlineTools()))

	r, err := m.Call(t.Context(), "mcp_child__env", nil)
	require.NoError(t, err)
	env := resultText(t, r)
	assert.NotContains(t, env, "s3cret")
	assert.Contains(t, env, "PATH=")
	assert.Contains(t, env, "TEST_SERVER=noisy")

	_, err = m.Call(t.Context(), "mcp_child__fail", nil)
	assert.ErrorContains(t, err, `mcphybrid: tool "fail" of server "child": internal error: no such luck`)
}

func TestChildServerHangingCall(t *testing.T) {
	cfg := child(t, "child", "plain")
	cfg.CallTimeout = 50 * time.Millisecond
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{cfg}})
	r, err := m.Call(t.Context(), "mcp_child__hang", nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "no answer within 50ms")
	assert.True(t, r.IsError)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Call(ctx, "mcp_child__hang", nil)
	assert.ErrorIs(t, err, context.Canceled)

	soon(t, func() bool { _, err := m.Call(t.Context(), "mcp_child__big", nil); return err == nil }) // each has 50 ms
	assert.Zero(t, m.Servers()[0].Failures)
}

func TestChildServerDies(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{child(t, "mortal", "plain"), inProcess("other", 3)}})
	_, err := m.Call(t.Context(), "mcp_mortal__exit", nil)
	require.ErrorIs(t, err, ErrServerDown)
	soon(t, func() bool { return m.Servers()[0].State == StateDown })
	assert.EqualError(t, m.Servers()[0].Err, `exit status 4; its last words: "asked to exit"`)

	r, err := m.Call(t.Context(), "mcp_mortal__big", nil)
	assert.ErrorIs(t, err, ErrServerDown)
	assert.Equal(t, "mcp_mortal__big can't be called now: its server has been down since "+
		m.Servers()[0].Since.UTC().Format(time.RFC3339)+". Go on without it.", resultText(t, r))
	_, err = m.Call(t.Context(), "mcp_other__tool_001", nil)
	assert.NoError(t, err)

	// It stays down for whoever wants to connect it, until the host restarts it.
	assert.ErrorIs(t, m.Preload(t.Context(), "mcp_mortal__*"), ErrServerDown)
	assert.Zero(t, m.Servers()[0].Retry)
	require.NoError(t, m.Restart(t.Context(), "mortal"))
	_, err = m.Call(t.Context(), "mcp_mortal__big", nil)
	assert.NoError(t, err)
}

// A server that does not start takes at most its deadline and costs the other
// servers nothing.
func TestStartFailures(t *testing.T) {
	closing := t // its cleanup closes the Managers after their children were counted
	t.Run("all", func(t *testing.T) {
		for _, test := range []struct {
			name, want string
			cfg        ServerConfig
		}{
			{"silent", "no answer within 300ms", child(t, "bad", "silent")},
			{"deaf", "no answer within 300ms", child(t, "bad", "deaf")},
			{"stubborn", "no answer within 300ms", child(t, "bad", "stubborn")},
			{"dead", `cannot find module 'nowhere'`, child(t, "bad", "dead")},
			{"no command", "executable file not found", ServerConfig{Command: "no-such-program-anywhere"}},
			{"no address", "want exactly one of command and url", ServerConfig{}},
			{"refused", "connection refused", ServerConfig{URL: "http://127.0.0.1:1/mcp"}},
			{"list is no list", `"tools" is not a list`, raw(t, `{"tools":{}}`)},
			{"list fails", "tools/list", raw(t, `17`)},
			{"cursor loop", "list cursor did not advance", raw(t, `{"tools":[],"nextCursor":"a"}`)},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.cfg.Name = "bad"
				start := time.Now()
				if strings.HasPrefix(test.want, "no answer") {
					test.cfg.StartTimeout = 300 * time.Millisecond
				}
				m := NewManager(&Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{test.cfg, inProcess("good", 2)}})
				closing.Cleanup(func() { _ = m.Close() })
				err := m.Start(t.Context())
				assert.ErrorContains(t, err, `mcphybrid: server "bad": `)
				assert.ErrorContains(t, err, test.want)
				assert.NotContains(t, err.Error(), `"good"`)
				assert.Less(t, time.Since(start), DefaultStartTimeout)
				assert.Equal(t, []string{"mcp_good__tool_000", "mcp_good__tool_001"}, toolNames(m.InlineTools()))
				assert.Equal(t, StateDown, m.Servers()[0].State)
				assert.ErrorContains(t, m.Servers()[0].Err, test.want)
				assert.NoError(t, check(m))
			})
		}
	})
	assert.Empty(t, children(os.Getpid()))
}

// A server lives as long as the Manager, not as long as the context of its
// start.
func TestStartContextBoundsTheStartOnly(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{child(t, "child", "plain"), inProcess("local", 1)}})
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, m.Start(ctx))
	cancel()
	for _, name := range []string{"mcp_child__big", "mcp_local__tool_000"} {
		_, err := m.Call(t.Context(), name, nil)
		assert.NoError(t, err)
	}

	m2 := NewManager(&Options{Servers: []ServerConfig{child(t, "child", "silent")}})
	defer m2.Close()
	assert.ErrorIs(t, m2.Start(ctx), context.Canceled)
}

// A malformed tool is left out. The other tools keep every byte of their
// schemas, but for a $schema that makes no difference.
func TestMalformedTools(t *testing.T) {
	t.Parallel()
	schema := `{"$schema":"http://json-schema.org/draft-07/schema#","type":["object","null"],"oneOf":[{"required":["a"]}],"x-n":9007199254740993}`
	m, _ := newTestManager(t, &Options{Limits: config.Limits{MaxDefinition: 1000}, Servers: []ServerConfig{raw(t, `{"tools":[`+
		`{"name":"first","inputSchema":`+schema+`},`+
		`{"name":5,"inputSchema":{}},`+
		`{"name":"yes","inputSchema":true},`+
		`{"name":"first","inputSchema":{}},`+
		`{"name":"huge","inputSchema":{},"description":"`+strings.Repeat("x", 1000)+`"},`+
		`"what",`+
		`{"name":"last","inputSchema":{"type":"object","properties":[]}}`+
		`]}`)}})
	assert.Equal(t, []string{"mcp_raw__first", "mcp_raw__last"}, toolNames(m.InlineTools()))
	assert.Equal(t, schema, `{"$schema":"http://json-schema.org/draft-07/schema#",`+string(m.InlineTools()[0].InputSchema()[1:]))
	var problems []string
	for _, err := range m.Problems() {
		problems = append(problems, err.Error())
	}
	assert.Equal(t, []string{
		`mcphybrid: server "raw": tool 1: "name" is a JSON number, want a string`,
		`mcphybrid: server "raw": tool 2: the inputSchema of "yes" is not a JSON object`,
		`mcphybrid: server "raw": tool 3: another tool is named "first" too; the first is kept`,
		`mcphybrid: server "raw": tool 4: the definition has 1049 bytes, more than the limit of 1000`,
		`mcphybrid: server "raw": tool 5: is a JSON string, want an object`,
	}, problems)
}

// raw returns a child that answers tools/list with list.
func raw(t *testing.T, list string) ServerConfig {
	cfg := child(t, "raw", "raw")
	cfg.Env["LIST"] = list
	return cfg
}

func TestTooManyTools(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Limits: config.Limits{MaxTools: 9}, Servers: []ServerConfig{inProcess("many", 10)}})
	defer m.Close()
	assert.ErrorContains(t, m.Start(t.Context()), "it lists more tools than the limit of 9")
}

func TestHTTPServer(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("web", "1")
	s.AddTools(echoTool("echo", "Echoes"))
	s.AddTool(mcp.NewTool("big"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.Repeat("x", 1<<20)), nil
	})
	handler := mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true))
	var mu sync.Mutex
	var tokens []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		tokens = append(tokens, r.Header.Get("Authorization"))
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close) // closed after the Manager, which still listens

	m, _ := newTestManager(t, &Options{Limits: config.Limits{MaxMessage: 100_000}, Servers: []ServerConfig{{
		Name: "web", URL: web.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer abc"},
	}}})
	r, err := m.Call(t.Context(), "mcp_web__echo", map[string]any{"text": "hello"})
	require.NoError(t, err)
	assert.Equal(t, `echo {"text":"hello"}`, resultText(t, r))
	_, err = m.Call(t.Context(), "mcp_web__big", nil)
	assert.ErrorContains(t, err, "a message has more bytes than the limit of 100000")
	mu.Lock()
	defer mu.Unlock()
	for _, token := range tokens {
		assert.Equal(t, "Bearer abc", token)
	}
}

// A schema of nested alternatives takes time in proportion to its size, not to
// its square.
func TestDeepSchemaIsCheap(t *testing.T) {
	deep := `{"name":"a","inputSchema":{"properties":{"p":` + strings.Repeat(`{"anyOf":[`, 4000) +
		`{"type":"string","description":"` + strings.Repeat("x", 100_000) + `"}` + strings.Repeat(`]}`, 4000) + `}}}`
	mcptest.Quick(t, 2*time.Second, func() {
		d, err := parseDefinition("s", json.RawMessage(deep), len(deep))
		require.NoError(t, err)
		const args = `{"p":null}`
		assert.Equal(t, args, string(schema.DropNulls([]byte(args), d.InputSchema)))
	})
}

// Removing a server ends its start.
func TestRemoveServerDuringStart(t *testing.T) {
	m := NewManager(&Options{Servers: []ServerConfig{child(t, "slow", "silent")}})
	defer m.Close()
	started := make(chan error)
	go func() { started <- m.Start(context.Background()) }()
	soon(t, func() bool { return len(children(os.Getpid())) == 1 })
	assert.True(t, m.RemoveServer("slow"))
	assert.Empty(t, children(os.Getpid()))
	assert.ErrorContains(t, <-started, `server "slow"`)
	assert.NoError(t, m.AddServer(t.Context(), inProcess("slow", 1)))
}

// A handler in this process that panics or takes too long costs only its own
// call.
func TestInProcessMisbehaviour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, inProcessMisbehaves)
}

func inProcessMisbehaves(t *testing.T) {
	tool := func(name string, run func(context.Context)) mcpserver.ServerTool {
		return mcpserver.ServerTool{
			Tool: mcp.NewTool(name),
			Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				run(ctx)
				return nil, nil
			},
		}
	}
	hang := func(ctx context.Context) { <-ctx.Done() }
	fail := func(context.Context) { panic("oops") }
	m, _ := newTestManager(t, &Options{Limits: config.Limits{CallTimeout: 50 * time.Millisecond}, Servers: []ServerConfig{
		serving("s", tool("hang", hang), tool("panic", fail)),
	}})
	require.NoError(t, m.AddTools("local", tool("hang", hang), tool("panic", fail),
		mcpserver.ServerTool{Tool: mcp.NewTool("none")}))
	for name, want := range map[string]string{
		"mcp_s__hang":      "no answer within 50ms",
		"mcp_s__panic":     "oops",
		"mcp_local__hang":  "no answer within 50ms",
		"mcp_local__panic": "panic: oops",
		"mcp_local__none":  "the tool has no handler",
	} {
		r, err := m.Call(t.Context(), name, nil)
		assert.ErrorContains(t, err, want, name)
		assert.True(t, r.IsError)
	}
}

func TestAddServerUnhappy(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 1)}})
	assert.ErrorIs(t, m.AddServer(t.Context(), inProcess("a", 2)), ErrDuplicate)
	assert.ErrorContains(t, m.AddServer(t.Context(), ServerConfig{Name: "b"}), `mcphybrid: server "b": want exactly one`)
	assert.Len(t, m.Servers(), 1, "nothing is added on an error")
	assert.NoError(t, m.AddServer(t.Context(), ServerConfig{Name: "off", Disabled: true}))
	assert.False(t, m.RemoveServer("b"))
	assert.ErrorContains(t, m.AddServer(t.Context(), ServerConfig{Name: "b", KeepFailed: true}), `mcphybrid: server "b": want exactly one`)
	require.Len(t, m.Servers(), 2)
	assert.Equal(t, StateDown, m.Servers()[1].State)
	assert.ErrorContains(t, m.Servers()[1].Err, "want exactly one")
	assert.True(t, m.RemoveServer("b"))
	require.NoError(t, m.AddServer(t.Context(), inProcess("b", 2)))
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_b__tool_000", "mcp_b__tool_001"}, toolNames(m.InlineTools()))
	assert.True(t, m.RemoveServer("a"))
	_, err := m.Call(t.Context(), "mcp_a__tool_000", nil)
	assert.ErrorIs(t, err, ErrUnknownTool)

	require.NoError(t, m.AddTools("t", echoTool("x", "X")))
	assert.ErrorIs(t, m.AddTools("t", echoTool("y", "Y"), echoTool("x", "X")), ErrDuplicate)
	assert.ErrorIs(t, m.AddTools("b", echoTool("x", "X")), ErrDuplicate)
	assert.ErrorContains(t, m.AddTools("t", mcpserver.ServerTool{}), "the name is missing")
	assert.ErrorContains(t, m.AddTools(""), "the name is empty")
	require.NoError(t, m.AddTools("t", echoTool("y", "Y")))
	assert.Equal(t, []string{"mcp_b__tool_000", "mcp_b__tool_001", "mcp_t__x", "mcp_t__y"}, toolNames(m.InlineTools()))
}

func TestClosedManager(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{inProcess("a", 50)}})
	require.NoError(t, m.Start(t.Context()))
	s := m.NewSession(nil)
	old := m.InlineTools()[0]
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	assert.ErrorIs(t, m.Start(t.Context()), ErrClosed)
	assert.ErrorIs(t, m.AddServer(t.Context(), inProcess("b", 1)), ErrClosed)
	assert.ErrorIs(t, m.AddTools("b", echoTool("x", "X")), ErrClosed)
	assert.False(t, m.RemoveServer("a"))
	for _, s := range []*Session{s, m.def} {
		assert.Empty(t, s.Tools())
		assert.Empty(t, s.PromptSections(PromptFull))
		_, err := s.Call(t.Context(), "mcp_a__tool_000", nil)
		assert.ErrorIs(t, err, ErrClosed)
	}
	_, err := old.Call(t.Context(), json.RawMessage(`{}`))
	assert.ErrorIs(t, err, ErrServerDown)
	assert.ErrorIs(t, err, ErrClosed)
}

// Close ends the starts under way.
func TestCloseDuringStart(t *testing.T) {
	m := NewManager(&Options{Servers: []ServerConfig{child(t, "slow", "silent")}})
	started := make(chan error)
	go func() { started <- m.Start(context.Background()) }()
	soon(t, func() bool { return m.Servers()[0].State == StateConnecting })
	require.NoError(t, m.Close())
	assert.Error(t, <-started)
	assert.Empty(t, children(os.Getpid()))
}

func TestErrorsAreDistinct(t *testing.T) {
	t.Parallel()
	all := []error{ErrUnknownTool, ErrBadArguments, ErrServerDown, ErrClosed, ErrDuplicate}
	for i, a := range all {
		for j, b := range all {
			assert.Equal(t, i == j, errors.Is(a, b))
		}
	}
}

// A server that can't be started leaves no file open.
func TestFailedStartsLeaveNoFiles(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close them
	m := NewManager(&Options{Limits: config.Limits{Reconnect: -1}})
	defer m.Close()
	before := openFiles()
	for i := range 30 {
		require.Error(t, m.AddServer(t.Context(), ServerConfig{Name: fmt.Sprint(i), Command: "/nonexistent/command"}))
	}
	assert.Less(t, openFiles(), before+15)
}

// A server that can't have a name does not keep the others from starting.
func TestStartBesideAServerWithoutAName(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 1), inProcess("a2", 1)}})
	defer m.Close()
	for i := range names.MaxPrefixes - 1 {
		_, _, err := m.names.Claim(fmt.Sprintf("e%06d", i), "")
		require.NoError(t, err)
	}
	for range 2 { // b is tried again
		err := m.Start(t.Context())
		require.EqualError(t, err, `mcphybrid: 2 servers "b", "a2": names are kept for 100000 servers, which is the limit`)
		assert.Equal(t, StateConfigured, m.Servers()[1].State)
		assert.Equal(t, []string{"mcp_a__tool_000"}, toolNames(m.InlineTools()))
		assert.NoError(t, check(m))
	}
	const full = "names are kept for 100000 servers, which is the limit"
	assert.EqualError(t, m.AddServer(t.Context(), inProcess("late", 1)), `mcphybrid: server "late": `+full)
	assert.EqualError(t, m.AddTools("late", echoTool("run", "")), `mcphybrid: tools of "late": `+full)
	assert.NoError(t, m.AddTools("e000007", echoTool("run", "")), "which has a name")
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_e000007__run"}, toolNames(m.InlineTools()))
	assert.NoError(t, check(m))
}

// A server that can't be added leaves nothing: neither that its name collides, nor that
// somebody waits for its tools.
func TestFailedAddServerLeavesNoProblem(t *testing.T) {
	t.Parallel()
	const need = `mcphybrid: tool "mcp_x__run" needs missing tools: "mcp_late__nope"`
	for name, meanwhile := range map[string][]string{
		"s_0":  {`mcphybrid: names that begin with "mcp_s_0__" belong to server "s-0"; the names of server "s_0" begin with "mcp_s_0_b60dd8e5__"`, need},
		"late": nil,
	} {
		lists, fail := make(chan struct{}), make(chan struct{})
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { close(lists); <-fail })
		s := mcpserver.NewMCPServer(name, "1", mcpserver.WithHooks(hooks), mcpserver.WithToolCapabilities(true))
		s.AddTools(mcptest.Chores(name, 2)...)
		m := NewManager(&Options{Limits: config.Limits{MaxTools: 1}, Needs: map[string][]string{"mcp_x__run": {"mcp_late__nope"}}})
		defer m.Close()
		require.NoError(t, m.AddTools("s-0", echoTool("run", "")))
		added := make(chan error)
		go func() { added <- m.AddServer(t.Context(), ServerConfig{Name: name, InProcess: s}) }()
		<-lists
		require.NoError(t, m.AddTools("x", echoTool("run", "")))
		assert.Equal(t, meanwhile, problemsOf(m))
		close(fail)
		require.ErrorContains(t, <-added, "it lists more tools than the limit of 1")
		assert.Equal(t, []string{need}, problemsOf(m))
		assert.NoError(t, check(m))
	}
}
