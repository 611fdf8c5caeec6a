package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trackerTool returns a tool with parameters of several kinds, which counts
// its calls.
func trackerTool(calls *int) mcpserver.ServerTool {
	tool := mcp.NewToolWithRawSchema("create_issue", "Creates an issue", json.RawMessage(`{
		"type": "object",
		"properties": {
			"title": {"type": "string", "minLength": 1},
			"state": {"enum": ["open", "closed"]},
			"labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
			"assignee": {"type": "string"}
		},
		"required": ["title"],
		"additionalProperties": false,
		"$defs": {"label": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
	}`))
	tool.Annotations.Title = "Careful"
	return mcpserver.ServerTool{Tool: tool, Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		*calls++
		return mcp.NewToolResultText(string(r.Params.RawArguments)), nil
	}}
}

// SPEC F5: every call takes the same way, whoever makes it. A refused call
// activates nothing and tells the model what to do instead.
func TestSpecF5OneWayToATool(t *testing.T) {
	t.Parallel()
	calls := 0
	newSession := func(t *testing.T, opts SessionOptions) (*Session, *ToolRegistry) {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
		require.NoError(t, m.AddTools("github", trackerTool(&calls), echoTool("list_issues", "Lists issues"), echoTool("delete_issue", "Deletes an issue")))
		reg := NewRegistry()
		opts.Registry = reg
		s := m.NewSession(&opts)
		t.Cleanup(s.Close)
		return s, reg
	}
	type way func(s *Session, reg *ToolRegistry, name, args string) (*mcp.CallToolResult, error)
	ways := map[string]way{
		"call": func(s *Session, _ *ToolRegistry, name, args string) (*mcp.CallToolResult, error) {
			return s.Call(t.Context(), name, args)
		},
		"bridge": func(s *Session, _ *ToolRegistry, name, args string) (*mcp.CallToolResult, error) {
			return s.Call(t.Context(), CallToolName, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
		},
		"registry": func(s *Session, reg *ToolRegistry, name, args string) (*mcp.CallToolResult, error) {
			s.ActivateToolIfDeferred(name) // there must be something to call
			return reg.Execute(t.Context(), name, json.RawMessage(args))
		},
	}
	for which, call := range ways {
		t.Run(which, func(t *testing.T) {
			opts := SessionOptions{Access: Access{Deny: []string{"*delete*"}}}
			if which == "bridge" {
				opts.Disclosure = ByBridge
			}
			s, reg := newSession(t, opts)
			before := calls
			refused := func(name, args string, want error) string {
				t.Helper()
				active := s.ActiveTools()
				r, err := call(s, reg, name, args)
				require.ErrorIs(t, err, want)
				if which == "registry" {
					return err.Error()
				}
				assert.True(t, r.IsError)
				assert.Equal(t, active, s.ActiveTools(), "a refused call activates nothing")
				return resultText(t, r)
			}
			if which != "registry" {
				text := refused("mcp_github__create_isue", `{"title":"x"}`, ErrUnknownTool)
				assert.Equal(t, `There is no tool named "mcp_github__create_isue". Did you mean mcp_github__create_issue?`, text)
				text = refused("mcp_github__delete_issue", `{}`, ErrNotPermitted)
				assert.Equal(t, "mcp_github__delete_issue was not called: it is not permitted here. Go on without it.", text)
				text = refused("delete_isue", `{}`, ErrUnknownTool)
				assert.NotContains(t, text, "delete_issue", "what may not be used is not proposed")
			}
			text := refused("mcp_github__create_issue", `{"state":"opne","labels":[{"name":"a"},{}]}`, ErrBadArguments)
			if which != "registry" {
				for _, part := range []string{"- the arguments object is missing ", `"title"`, "- /state is ", `"closed"`, "- /labels/1 is ", `The schema: {"type":"object","properties":{"title"`} {
					assert.Contains(t, text, part)
				}
				assert.NotContains(t, text, "STOP")
				again := refused("mcp_github__create_issue", `{"state":"opne","labels":[{"name":"a"},{}]}`, ErrBadArguments)
				assert.Contains(t, again, "STOP: this very call has already been refused once,")
				assert.Contains(t, again, text)
				other := refused("mcp_github__create_issue", `{"state":"opne"}`, ErrBadArguments)
				assert.NotContains(t, other, "STOP")
			}
			assert.Equal(t, before, calls, "no refused call reached the tool")

			r, err := call(s, reg, "mcp_github__create_issue", `{"title":"x","assignee":null}`)
			require.NoError(t, err)
			assert.JSONEq(t, `{"title":"x"}`, resultText(t, r))
			assert.Equal(t, before+1, calls)
			if which == "bridge" {
				assert.Empty(t, s.ActiveTools())
			} else {
				assert.Equal(t, []string{"mcp_github__create_issue"}, namesOf(s.ActiveTools()))
			}
			assert.NoError(t, checkRegistry(s, reg))
		})
	}
}

// Calls to a server that is starting, and to one that is down, each have their
// own answer.
func TestCallsToServersThatDoNotServe(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := serving("slow-one", echoTool("run", "Runs"))
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { <-release })
	slow.InProcess = mcpserver.NewMCPServer("slow", "1", mcpserver.WithHooks(hooks))
	mcpServer(slow).AddTools(echoTool("run", "Runs"))
	m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{slow, inProcess("b", 3)}})
	defer m.Close()
	started := make(chan error, 1)
	go func() { started <- m.Start(context.Background()) }()
	soon(t, func() bool { return m.IsSearchMode() && len(m.connectingServers(nil)) == 1 })

	r, err := m.Call(t.Context(), "mcp_slow_one__run", nil)
	require.ErrorIs(t, err, ErrUnknownTool)
	assert.Equal(t, `mcphybrid: unknown tool: "mcp_slow_one__run"; server "slow-one" is still connecting`, err.Error())
	assert.Equal(t, "mcp_slow_one__run can't be called yet: its server is still connecting. Go on with something else, and try again later.", resultText(t, r))
	r, err = m.Call(t.Context(), SearchToolName, `{"query":"zebra"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, r), "Still connecting, so not searched yet: slow-one.")
	r, err = m.Call(t.Context(), SearchToolName, `{"query":"chore"}`)
	require.NoError(t, err)
	assert.NotContains(t, resultText(t, r), "connecting", "something was found")

	close(release)
	require.NoError(t, <-started)
	_, err = m.Call(t.Context(), "mcp_slow_one__run", nil)
	assert.NoError(t, err)
}

// A call of a tool whose server becomes ready, or begins to connect, between the looks for the
// tool and at the server is made, and not of an unknown tool.
func TestCallsWhileAServerBecomesReady(t *testing.T) {
	t.Parallel()
	for _, first := range []State{StateConnecting, StateDown} {
		release := make(chan struct{})
		var fails atomic.Bool
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) {
			if fails.Load() {
				panic("no disk")
			}
			<-release
		})
		slow := ServerConfig{Name: "slow", InProcess: mcpserver.NewMCPServer("slow", "1", mcpserver.WithHooks(hooks))}
		mcpServer(slow).AddTools(echoTool("run", "Runs"))
		fails.Store(first == StateDown)
		m := NewManager(&Options{Servers: []ServerConfig{slow}, Limits: config.Limits{Reconnect: time.Hour}})
		defer m.Close()
		is := func(state State) { soon(t, func() bool { return m.Servers()[0].State == state }) }
		looks := lookingManager{m.manager, new(atomic.Bool), func() {}, func() {}}
		if first == StateConnecting {
			looks.before = func() { close(release); is(StateReady) }
		} else {
			looks.after = func() {
				fails.Store(false)
				go func() { _ = m.Restart(context.Background(), "slow") }()
				is(StateConnecting)
				close(release)
			}
		}
		m.manager = looks
		started := make(chan error, 1)
		go func() { started <- m.Start(context.Background()) }()
		is(first)
		if first == StateDown {
			assert.Error(t, <-started)
			close(started)
		}
		looks.next.Store(true)
		_, err := m.NewSession(nil).Call(t.Context(), "mcp_slow__run", nil)
		assert.NoError(t, err, first)
		assert.NoError(t, <-started)
	}
}

// So is what a server has that becomes ready between the looks at the servers and at what they
// have: a search finds its tool, and its resource is read.
func TestLooksWhileAServerBecomesReady(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(s *Session) (string, error){
		"search": func(s *Session) (string, error) {
			r, err := s.Call(t.Context(), SearchToolName, `{"query":"zebra"}`)
			return resultText(t, r), err
		},
		"resource": func(s *Session) (string, error) {
			r, err := s.ReadResource(t.Context(), "slow", "zoo://zebra")
			if err != nil {
				return "", err
			}
			return r.Contents[0].(mcp.TextResourceContents).Text, nil
		},
	} {
		release := make(chan struct{})
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { <-release })
		slow := mcpserver.NewMCPServer("slow", "1", mcpserver.WithHooks(hooks), mcpserver.WithResourceCapabilities(false, false))
		slow.AddTools(echoTool("ride", "Rides a zebra"))
		slow.AddResource(mcp.NewResource("zoo://zebra", "zebra"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "zoo://zebra", Text: "mcp_slow__ride"}}, nil
		})
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{{Name: "slow", InProcess: slow}, inProcess("b", 1)}})
		defer m.Close()
		looks := lookingManager{m.manager, new(atomic.Bool), func() {
			close(release)
			soon(t, func() bool { return m.Servers()[0].State == StateReady })
		}, func() {}}
		m.manager = looks
		started := make(chan error, 1)
		go func() { started <- m.Start(context.Background()) }()
		soon(t, func() bool { return m.IsSearchMode() && m.Servers()[0].State == StateConnecting })
		looks.next.Store(true)
		got, err := look(m.NewSession(nil))
		assert.NoError(t, err, name)
		assert.Contains(t, got, "mcp_slow__ride", name)
		require.NoError(t, <-started)
	}
}

// While a start loads what it needs, a call is told that its server connects.
func TestCallsBeforeAServerConnects(t *testing.T) {
	t.Parallel()
	loading, release := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() { close(loading); <-release })
	m := NewManager(&Options{Usage: &UsageOptions{Store: hangingStore{hang}}, Servers: []ServerConfig{serving("slow", echoTool("run", "Runs"))}})
	defer m.Close()
	started := make(chan error, 1)
	go func() { started <- m.Start(context.Background()) }()
	<-loading
	_, err := m.Call(t.Context(), "mcp_slow__run", nil)
	assert.EqualError(t, err, `mcphybrid: unknown tool: "mcp_slow__run"; server "slow" is still connecting`)
	close(release)
	require.NoError(t, <-started)
	_, err = m.Call(t.Context(), "mcp_slow__run", nil)
	assert.NoError(t, err)
}

// A lookingManager has something happen once, before and after a session asks the next time which
// servers are connecting.
type lookingManager struct {
	sessionManager
	next          *atomic.Bool // the next time is the one
	before, after func()
}

func (m lookingManager) connecting(tool string) (rules.Subject, bool) {
	defer m.look()()
	return m.sessionManager.connecting(tool)
}

func (m lookingManager) connectingServers(r rules.Rights) []string {
	defer m.look()()
	return m.sessionManager.connectingServers(r)
}

func (m lookingManager) look() (after func()) {
	if !m.next.Swap(false) {
		return func() {}
	}
	m.before()
	return m.after
}

// Middleware sees calls in order and may change, answer or refuse them. A call
// that it does not pass on activates nothing.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	var log []string
	note := func(name string) Middleware {
		return func(next Handler) Handler {
			return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
				log = append(log, name+" before "+c.Tool.Name())
				r, err := next(ctx, c)
				log = append(log, name+" after")
				return r, err
			}
		}
	}
	errAsk := errors.New("the user said no")
	approve := func(next Handler) Handler {
		return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
			if title := c.Tool.Annotations().Title; title == "Careful" {
				return nil, errAsk
			}
			if c.Tool.OriginalName() == "nothing" {
				return nil, nil
			}
			c.Arguments = json.RawMessage(`{"text":"changed"}`)
			return next(ctx, c)
		}
	}
	calls := 0
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Middleware: []Middleware{note("outer"), note("inner"), approve}})
	require.NoError(t, m.AddTools("a", trackerTool(&calls), echoTool("echo", ""), echoTool("nothing", "")))

	r, err := m.Call(t.Context(), "mcp_a__echo", `{"text":"x"}`)
	require.NoError(t, err)
	assert.Equal(t, `echo {"text":"changed"}`, resultText(t, r))
	assert.Equal(t, []string{"outer before mcp_a__echo", "inner before mcp_a__echo", "inner after", "outer after"}, log)

	r, err = m.Call(t.Context(), "mcp_a__create_issue", `{"title":"x"}`)
	require.ErrorIs(t, err, errAsk)
	assert.Equal(t, "mcp_a__create_issue gave no result: the user said no", resultText(t, r))
	assert.Zero(t, calls)
	_, err = m.Call(t.Context(), "mcp_a__nothing", nil)
	assert.EqualError(t, err, "mcphybrid: a middleware returned neither a result nor an error")
	assert.Equal(t, []string{"mcp_a__echo"}, namesOf(m.ActiveTools()))
	log = nil
	_, _ = m.Call(t.Context(), "mcp_a__create_issue", `{}`)
	assert.Empty(t, log, "what is refused before is not handed on")
}

// SPEC F10: the figures of sessions and servers, and events as they happen.
func TestSpecF10Accounting(t *testing.T) {
	t.Parallel()
	var events []Event
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 6)}, OnEvent: ofSessions(func(e Event) { events = append(events, e) })})
	fails := echoTool("fails", "Fails")
	fails.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no"), nil
	}
	require.NoError(t, m.AddTools("b", fails))
	s := m.NewSession(nil)
	call := func(name, args string) string {
		r, _ := s.Call(t.Context(), name, args)
		return resultText(t, r)
	}
	found := call(SearchToolName, `{"query":"chore 3","max_results":1}`)
	empty := call(SearchToolName, `{"query":"zebra"}`)
	call("mcp_a__tool_003", `{}`)
	call("mcp_a__tool_000", `{"text":1}`)
	call("mcp_b__fails", `{}`)
	call("mcp_b__nothing", `{}`)

	st := s.Stats()
	assert.Equal(t, []int{4, 3, 2, 2, 1}, []int{st.Usage.Calls, st.Usage.Errors, st.Activations, st.Searches, st.EmptySearches})
	assert.Positive(t, st.Usage.Latency)
	assert.Equal(t, (len(found)+3)/4+(len(empty)+3)/4, st.Tokens.Searches)
	servers := figuresOf(m)
	one := m.toolTokens(m.InlineTools()[0])
	assert.Equal(t, map[string]snapshot.Figures{
		"a": {Tools: 6, Inline: 1, Tokens: 6 * one, Usage: snapshot.Usage{Calls: 2, Errors: 1}},
		"b": {Tools: 1, Tokens: m.toolTokens(m.DeferredTools()[5]), Usage: snapshot.Usage{Calls: 1, Errors: 1}},
	}, servers)

	var seen []string
	for _, e := range events {
		assert.Same(t, s, e.Session)
		seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %v %s %s %v", e.Kind, e.Tools, e.Server, e.Query, e.Err != nil)))
	}
	assert.Equal(t, []string{
		"activate [mcp_a__tool_003]   false",
		"search [mcp_a__tool_003]  chore 3 false",
		"search []  zebra false",
		"call [mcp_a__tool_003] a  false",
		"call [mcp_a__tool_000] a  true",
		"activate [mcp_b__fails]   false",
		"call [mcp_b__fails] b  false",
		"call [mcp_b__nothing]   true",
	}, seen)
}

// The host's counter counts tokens, each definition once.
func TestTokenCounter(t *testing.T) {
	t.Parallel()
	var counter wordCounter
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 4)}, Tokens: &counter})
	st := m.Stats()
	assert.Equal(t, 4*len(strings.Fields(definitionText(m.InlineTools()[0]))), st.Tokens.All)
	before := counter.definitions
	assert.Equal(t, st, m.Stats())
	assert.Equal(t, before+1, counter.definitions, "only the search tool's again")
}

type wordCounter struct{ definitions int }

func (c *wordCounter) CountTokens(text string) int {
	if strings.HasPrefix(text, `{"name"`) {
		c.definitions++
	}
	return len(strings.Fields(text))
}

func TestLogEvents(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log := LogEvents(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), slog.LevelInfo)
	log(Event{Kind: EventCall, Tools: []string{"mcp_a__x"}, Server: "a", Took: time.Second, Err: ErrServerDown})
	log(Event{Kind: EventSearch, Query: "q", Tools: []string{"mcp_a__x", "mcp_a__y"}})
	assert.Equal(t, `level=WARN msg="mcphybrid: call" tools=[mcp_a__x] server=a took=1s error="the server is down"
level=INFO msg="mcphybrid: search" tools="[mcp_a__x mcp_a__y]" query=q
`, b.String())
}

// What the context of a call asks for reaches the server, and what the server
// reports reaches the host.
func TestCallAsksItsServer(t *testing.T) {
	t.Parallel()
	srv := mcpserver.NewMCPServer("a", "1")
	srv.AddTool(mcp.NewTool("steps"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := srv.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 7})
		if err != nil {
			return nil, err
		}
		<-ctx.Done() // it must be read before the answer
		return nil, ctx.Err()
	})
	srv.AddTool(mcp.NewTool("trace"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(r.Params.Meta.AdditionalFields["traceparent"])), nil
	})
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "a", InProcess: srv}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := 0.0
	_, err := m.Call(WithProgress(ctx, func(p mcp.ProgressNotificationParams) { told = p.Progress; cancel() }), "mcp_a__steps", nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 7.0, told)
	result, err := m.Call(WithMeta(t.Context(), map[string]any{"traceparent": "00-1-2-01"}), "mcp_a__trace", nil)
	require.NoError(t, err)
	assert.Equal(t, "00-1-2-01", resultText(t, result))
}

// Call has an answer for the model, whatever it is called with.
func TestCallAlwaysAnswers(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	for _, test := range []struct {
		name string
		args any
		err  error
		want string
	}{
		{"mcp_a__tool_000", nil, nil, "tool_000 {}"},
		{"mcp_a__tool_000", "", nil, "tool_000 {}"},
		{"mcp_a__tool_000", "null", nil, "tool_000 {}"},
		{"mcp_a__tool_002", `{"text":null}`, nil, "tool_002 {}"},
		{"mcp_a__tool_002", []byte(`{"text":"USD"}`), nil, `tool_002 {"text":"USD"}`},
		{"mcp_a__tool_002", json.RawMessage(`{"n": 9007199254740993}`), nil, `tool_002 {"n":9007199254740993}`},
		{"mcp_a__tool_001", map[string]any{"text": "x"}, nil, `tool_001 {"text":"x"}`},
		{"mcp_a__tool_001", `[1]`, ErrBadArguments, "\n- the arguments are not a JSON object\nThe schema: {"},
		{"mcp_a__tool_001", `{"a":`, ErrBadArguments, "column"},
		{"mcp_a__tool_001", func() {}, ErrBadArguments, "unsupported type"},
		{"mcp_a__nope", nil, ErrUnknownTool, `There is no tool named "mcp_a__nope". Use a name from the tool list, or find one with mcp_tool_search.`},
		{"tool_000\n## x", nil, ErrUnknownTool, `There is no tool named "tool_000 ## x".`},
	} {
		r, err := m.Call(t.Context(), test.name, test.args)
		if test.err == nil {
			require.NoError(t, err)
			assert.False(t, r.IsError)
		} else {
			assert.ErrorIs(t, err, test.err)
			assert.True(t, r.IsError)
		}
		assert.Contains(t, resultText(t, r), test.want)
	}
}

// A result that is an error is the tool's answer. A result that only mentions
// an error is not an error.
func TestCallKeepsResults(t *testing.T) {
	t.Parallel()
	results := map[string]*mcp.CallToolResult{
		"failed":     mcp.NewToolResultError("no such file"),
		"error_key":  mcp.NewToolResultText(`{"error": false}`),
		"structured": {Content: []mcp.Content{mcp.NewImageContent("aGk=", "image/png")}, StructuredContent: map[string]any{"n": 1.0}},
	}
	var m *Manager
	for name, want := range results {
		tool := echoTool(name, "")
		tool.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return want, nil }
		m, _ = newTestManager(t, &Options{Servers: []ServerConfig{serving("s", tool)}})
		got, err := m.Call(t.Context(), "mcp_s__"+name, nil)
		require.NoError(t, err)
		assert.Equal(t, want.IsError, got.IsError)
		assert.Equal(t, want.Content, got.Content)
		assert.Equal(t, want.StructuredContent, got.StructuredContent)
	}
}

// A tool that is listed anew while the registry takes it is not called: the arguments
// were checked, and approved, for another definition.
func TestToolThatChangesWhileItIsRegistered(t *testing.T) {
	t.Parallel()
	cfg := serving("a", echoTool("run", "Runs it"))
	var m *Manager
	var once sync.Once
	r := &lockingRegistry{tools: NewRegistry(), afterRegister: func(name string) {
		if name == "mcp_a__run" {
			once.Do(func() {
				mcpServer(cfg).AddTools(echoTool("run", "Deletes it"))
				soon(t, func() bool { return m.cur.Load().tool(name).Description() == "Deletes it" })
			})
		}
	}}
	m, _ = newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Registry: r, Servers: []ServerConfig{cfg}})
	_, err := m.Call(t.Context(), "mcp_a__run", nil)
	require.ErrorIs(t, err, ErrChanged)
	_, err = m.Call(t.Context(), "mcp_a__run", nil)
	assert.NoError(t, err)
}

// A refused call leads to a search only if there is something to find.
func TestRefusalLeadsToWhatCanBeFound(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 3)}})
	s := m.NewSession(nil)
	require.Contains(t, toolNames(s.Tools()), SearchToolName)
	refused := func() string {
		r, err := s.Call(t.Context(), "zyzzyva", nil)
		require.ErrorIs(t, err, ErrUnknownTool)
		return resultText(t, r)
	}
	assert.Equal(t, `There is no tool named "zyzzyva". Use a name from the tool list, or find one with mcp_tool_search.`, refused())
	require.True(t, m.RemoveServer("b"))
	require.Contains(t, toolNames(s.Tools()), SearchToolName, "the list stays")
	assert.Equal(t, `There is no tool named "zyzzyva". Use a name from the tool list.`, refused())
}

// Calls of a server in this process end with its connection, as those of others do.
func TestCallsEndWithAServerInProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(m *Manager){
		"removed":   func(m *Manager) { assert.True(t, m.RemoveServer("s")) },
		"restarted": func(m *Manager) { assert.NoError(t, m.Restart(t.Context(), "s")) },
		"closed":    func(m *Manager) { m.Close() },
	} {
		entered := make(chan struct{})
		server := mcpserver.NewMCPServer("s", "1")
		server.AddTool(mcp.NewTool("wait"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "s", InProcess: server}}})
		ended := make(chan error)
		go func() {
			_, err := m.Call(t.Context(), "mcp_s__wait", nil)
			ended <- err
		}()
		<-entered
		end(m)
		assert.ErrorIs(t, <-ended, ErrServerDown, name)
	}
}
