package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replicaOf returns a Manager with the named servers, of 20 tools each.
func replicaOf(t *testing.T, opts *Options, servers ...string) *Manager {
	m, _ := newTestManager(t, opts)
	for _, name := range servers {
		require.NoError(t, m.AddTools(name, mcptest.Chores(name, 20)...))
	}
	return m
}

// turned restores a state, checks it and returns the session.
func turned(t *testing.T, m *Manager, state json.RawMessage, opts *SessionOptions) (*Session, []string) {
	s, changed, err := m.RestoreSession(state, opts)
	require.NoError(t, err)
	require.NoError(t, check(m, s))
	return s, changed
}

// A replica that lacks a server shows its tools all the same, adds no others in
// their place, and loses nothing.
func TestReplicaWithoutAServer(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		opts := &SessionOptions{Disclosure: d}
		a, b := replicaOf(t, nil, "s0", "s1", "s2", "s3"), replicaOf(t, nil, "s0", "s2", "s3")
		s := a.NewSession(opts)
		s.Tools()
		s.ActivateTools([]string{"mcp_s3__tool_004", "mcp_s1__tool_003", "mcp_s2__tool_005"})
		sections, tools := sentBytes(s)

		on, changed := turned(t, b, s.Save(), opts)
		onSections, onTools := sentBytes(on)
		assert.Equal(t, sections, onSections)
		assert.Equal(t, tools, onTools)
		inline := toolNames(on.InlineTools())
		assert.Len(t, inline, 20)
		assert.NotContains(t, inline, "mcp_s2__tool_000")
		assert.Len(t, changed, 20)
		for _, name := range changed {
			assert.Contains(t, name, "mcp_s1__")
		}
		if d != ByBridge {
			assert.Equal(t, []string{"mcp_s3__tool_004", "mcp_s2__tool_005"}, namesOf(on.ActiveTools()))
		}
		on.ActivateTools([]string{"mcp_s2__tool_007"})
		onSections, onTools = sentBytes(on)

		back, changed := turned(t, a, on.Save(), opts)
		assert.Empty(t, changed)
		sections, tools = sentBytes(back)
		assert.Equal(t, onSections, sections)
		assert.Equal(t, onTools, tools)
		if d == ByActivation {
			assert.Equal(t, []string{"mcp_s3__tool_004", "mcp_s2__tool_005", "mcp_s2__tool_007"}, namesOf(back.ActiveTools()), "s1 is inline")
		}
		_, err := back.Call(t.Context(), "mcp_s1__tool_003", nil)
		assert.NoError(t, err)
	}
}

// What is active stays active, in its order, where its server is away, and is
// dropped like other tools.
func TestReplicaKeepsWhatIsActive(t *testing.T) {
	t.Parallel()
	opts := &Options{Inline: InlineOptions{Max: -1}, Active: ActiveOptions{Max: 3, Turns: 5}}
	a, b := replicaOf(t, opts, "s0", "s1"), replicaOf(t, opts, "s0")
	names := []string{"mcp_s1__tool_001", "mcp_s0__tool_001", "mcp_s1__tool_002", "mcp_s0__tool_002", "mcp_s1__tool_003"}
	s := a.NewSession(nil)
	s.ActivateTools(names)
	reg := NewRegistry()
	on, _ := turned(t, b, s.Save(), &SessionOptions{Registry: reg})
	assert.Equal(t, []string{names[1], names[3]}, namesOf(on.ActiveTools()))
	require.NoError(t, checkRegistry(on, reg))
	on.NextTurn()
	_, err := on.Call(t.Context(), names[1], nil)
	require.NoError(t, err)
	back, changed := turned(t, a, on.Save(), nil)
	assert.Empty(t, changed)
	assert.Equal(t, names, namesOf(back.ActiveTools()))

	// The server comes while the session goes on.
	require.NoError(t, b.AddTools("s1", mcptest.Chores("s1", 20)...))
	assert.Equal(t, names, namesOf(on.ActiveTools()))
	assert.Equal(t, names, namesOf(on.Tools())[1:])
	require.NoError(t, checkRegistry(on, reg))
	_, there := reg.Get(names[0])
	assert.True(t, there)

	c := replicaOf(t, opts, "s0")
	on.Close()
	assert.NotContains(t, string(on.Save()), "mcp_s")
	on, _ = turned(t, c, back.Save(), nil)
	on.NextTurn()
	assert.Empty(t, on.Compact(), "those used longest ago are of s1")
	back, _ = turned(t, a, on.Save(), nil)
	assert.Equal(t, []string{names[1], names[3], names[4]}, namesOf(back.ActiveTools()))
}

// Rules and intents hide tools from calls, not from what was shown.
func TestRestoreShowsWhatAnIntentHides(t *testing.T) {
	t.Parallel()
	rule := Rule{Name: "r", Intent: "x", Patterns: []string{"mcp_s0__tool_001", "mcp_s1*"}, Action: RuleExclude}
	m := replicaOf(t, &Options{Inline: InlineOptions{Max: 3}, Rules: []Rule{rule}}, "s0", "s1", "s2")
	s := m.NewSession(nil)
	s.PromptSections(PromptFull)
	s.SetIntent("x")
	sections, tools := sentBytes(s)
	require.Contains(t, sections, "s1 (20")
	restored, changed := turned(t, m, s.Save(), &SessionOptions{Intent: "x"})
	gotSections, gotTools := sentBytes(restored)
	assert.Equal(t, sections, gotSections)
	assert.Equal(t, tools, gotTools)
	assert.Empty(t, changed)
	_, err := restored.Call(t.Context(), "mcp_s0__tool_001", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
}

// Skills that are gone stay shown, those that are searched for too.
func TestRestoreShowsSkillsThatAreGone(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 70} {
		m := replicaOf(t, &Options{Skills: someSkills(n)}, "s0")
		s := m.NewSession(nil)
		want := s.PromptSections(PromptFull)
		require.NoError(t, m.SetSkills(nil))
		restored, changed := turned(t, m, s.Save(), nil)
		assert.Equal(t, want, restored.PromptSections(PromptFull))
		assert.Len(t, changed, n%70)
		r, err := restored.Call(t.Context(), SkillLoadToolName, `{"name":"a000"}`)
		require.NoError(t, err)
		assert.Contains(t, resultText(t, r), `There is no skill named "a000".`)
	}
}

// A tool that was activated under another intent is shown when it is activated.
func TestActivatedAfterAnIntentIsShown(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{
		Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 9)},
		Rules: []Rule{{Name: "r", Intent: "x", Patterns: []string{"mcp_a__tool_004"}, Action: RuleExclude}},
	})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_003", "mcp_a__tool_004"})
	s.Tools()
	s.SetIntent("x")
	s.ActivateTools([]string{"mcp_a__tool_003"})
	s.SetIntent("")
	s.ActivateTools([]string{"mcp_a__tool_005"})
	assert.Contains(t, namesOf(s.Tools()), "mcp_a__tool_005")
}

// A shown tool that is missing can't be called, whatever the state says, and the
// model is told why.
func TestCallOfAToolThatIsAway(t *testing.T) {
	t.Parallel()
	a, b := replicaOf(t, nil, "s0", "s1"), replicaOf(t, nil, "s0")
	s := a.NewSession(nil)
	s.Tools()
	reg := NewRegistry()
	opts := &SessionOptions{Registry: reg}
	on, _ := turned(t, b, s.Save(), opts)
	t.Cleanup(on.Close)
	const name = "mcp_s1__tool_003"
	i := slices.IndexFunc(on.Tools(), func(t Tool) bool { return t.Name() == name })
	byItself := on.Tools()[i].(*BridgeTool)
	for _, call := range []func() error{
		func() error { _, err := on.Call(t.Context(), name, nil); return err },
		func() error { _, err := byItself.Call(t.Context(), nil); return err },
	} {
		var unknown *UnknownToolError
		require.ErrorAs(t, call(), &unknown)
		assert.Equal(t, "s1", unknown.Away)
		assert.EqualError(t, unknown, `mcphybrid: unknown tool: "mcp_s1__tool_003"; its server "s1" is not connected here`)
	}
	r, _ := on.Call(t.Context(), name, nil)
	assert.Equal(t, "mcp_s1__tool_003 can't be called now: its server, s1, is not connected here. Go on without it.", resultText(t, r))
	assert.Empty(t, on.ActivateTools([]string{name}))
	assert.Empty(t, on.Search("select:"+name, 5))
	_, there := reg.Get(name)
	assert.False(t, there)
	assert.NoError(t, checkRegistry(on, reg))

	// Another server's tool of that name is not the one that was shown.
	other := ServerConfig{Name: "other", Prefix: "s1", InProcess: mcptest.Server("other", mcptest.Chores("other", 20)...)}
	require.NoError(t, b.AddServer(t.Context(), other))
	_, err := b.Call(t.Context(), name, nil)
	require.NoError(t, err)
	_, err = on.Call(t.Context(), name, nil)
	assert.ErrorContains(t, err, `its server "s1" is not connected here`)

	require.NoError(t, b.AddTools("s1", mcptest.Chores("s1", 1)...))
	_, err = on.Call(t.Context(), name, nil)
	assert.ErrorIs(t, err, ErrUnknownTool, "the server is here, without the tool")
	_, err = on.Call(t.Context(), "mcp_s1__tool_000", nil)
	require.NoError(t, err, "here it has another name")
	assert.Equal(t, []int{1, 0}, []int{callsOf(b, "s1"), callsOf(b, "other") - 1}, "the first call was of the default session")
}

// A tool of another server is not the saved one, even if it has its name and its definition.
func TestAnotherServersToolIsNotRestored(t *testing.T) {
	t.Parallel()
	of := func(server string) ServerConfig {
		return ServerConfig{Name: server, Prefix: "s1", InProcess: mcptest.Server(server, mcptest.Chores("s1", 1)...)}
	}
	state := stateOf(t, of("s1"))
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{of("other")}})
	require.NoError(t, m.Start(t.Context()))
	s, changed, err := m.RestoreSession(state, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"mcp_s1__tool_000"}, changed)
	_, err = s.Call(t.Context(), "mcp_s1__tool_000", nil)
	assert.ErrorContains(t, err, `its server "s1" is not connected here`)
}

// stateOf returns the state of a session that was shown the tools of a server.
func stateOf(t *testing.T, cfg ServerConfig) json.RawMessage {
	m := NewManager(&Options{Servers: []ServerConfig{cfg}})
	defer func() { _ = m.Close() }()
	require.NoError(t, m.Start(t.Context()))
	m.Default().Tools()
	return m.Default().Save()
}

// waiting runs f in a goroutine of the bubble and returns a function that reports
// whether it is done, when all else waits.
func waiting(f func()) (done func() bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	return func() bool {
		synctest.Wait()
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
}

// slowly returns a server that lists its tools when release is closed.
func slowly(release chan struct{}) ServerConfig {
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { <-release })
	srv := mcpserver.NewMCPServer("slow", "1", mcpserver.WithHooks(hooks))
	srv.AddTools(mcptest.Chores("slow", 2)...)
	return ServerConfig{Name: "slow", InProcess: srv}
}

// callsOf returns how often tools of a server were called.
func callsOf(m *Manager, server string) int {
	return figuresOf(m)[server].Usage.Calls
}

// A call of a shown tool waits for its server, if that is configured here. So does
// AwaitServers, which also waits for a server that is not.
func TestWaitForTheServer(t *testing.T) {
	t.Parallel()
	state := stateOf(t, inProcess("slow", 2))
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := NewManager(&Options{Servers: []ServerConfig{slowly(release)}})
		defer func() { _ = m.Close() }()
		s, changed, err := m.RestoreSession(state, nil)
		require.NoError(t, err)
		assert.Len(t, changed, 2)
		_, err = s.Call(t.Context(), "mcp_slow__tool_001", nil)
		require.ErrorIs(t, err, ErrServerDown, "it was not started")

		var called, awaited error
		started := waiting(func() { _ = m.Start(t.Context()) })
		synctest.Wait()
		require.Equal(t, StateConnecting, m.Servers()[0].State)
		call := waiting(func() { _, called = s.Call(t.Context(), "mcp_slow__tool_001", nil) })
		await := waiting(func() { awaited = m.AwaitServers(t.Context(), state) })
		assert.False(t, started() || call() || await())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = m.AwaitServers(ctx, state)
		assert.EqualError(t, err, `mcphybrid: servers that are not ready: "slow": context deadline exceeded`)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		close(release)
		assert.True(t, started() && call() && await())
		assert.NoError(t, called)
		assert.NoError(t, awaited)
		_, changed, err = m.RestoreSession(state, nil)
		require.NoError(t, err)
		assert.Empty(t, changed)
	})
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(nil)
		var awaited, closed error
		await := waiting(func() { awaited = m.AwaitServers(t.Context(), state) })
		assert.False(t, await())
		require.NoError(t, m.AddTools("other", echoTool("x", "")))
		assert.False(t, await())
		require.NoError(t, m.AddServer(t.Context(), inProcess("slow", 0)))
		assert.True(t, await(), "it has listed that it has none")
		assert.NoError(t, awaited)
		m.RemoveServer("slow")
		await = waiting(func() { closed = m.AwaitServers(t.Context(), state) })
		assert.False(t, await())
		require.NoError(t, m.Close())
		assert.True(t, await())
		assert.ErrorIs(t, closed, ErrClosed)
	})
}

// A user waits for servers of the system and for its own.
func TestUserAwaitsServers(t *testing.T) {
	t.Parallel()
	m := replicaOf(t, nil, "own", "sys")
	u, err := m.NewUser("alice", nil)
	require.NoError(t, err)
	require.NoError(t, u.AddTools("own", echoTool("mine", "")))
	s := u.NewSession(nil)
	s.ActivateTools([]string{"mcp_own__mine"})
	s.Tools()
	state := s.Save()
	require.NoError(t, u.AwaitServers(t.Context(), state))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := replicaOf(t, nil, "own")
	v, err := other.NewUser("alice", nil)
	require.NoError(t, err)
	assert.ErrorContains(t, v.AwaitServers(ctx, state), `not ready: "sys", "own": `, "the system's own is another")
	restored, _, err := v.RestoreSession(state, nil)
	require.NoError(t, err)
	require.NoError(t, check(other, restored))
	_, err = restored.Call(t.Context(), "mcp_own__tool_003", nil)
	assert.NoError(t, err)
	_, err = restored.Call(t.Context(), "mcp_own__mine", nil)
	assert.ErrorContains(t, err, `its server "own" is not connected here`)
	assert.EqualError(t, other.AwaitServers(ctx, state), "mcphybrid: the state belongs to a session of another user")
	assert.ErrorContains(t, m.AwaitServers(ctx, json.RawMessage("{")), "mcphybrid: the state of the session: line 1, column 1")
}

// A state gives no right: what a list denies is not shown, wherever its server is.
func TestRestoreWidensNoRights(t *testing.T) {
	t.Parallel()
	s := replicaOf(t, nil, "s0", "s1").Default()
	s.Tools()
	state := s.Save()
	for i, on := range []func() (*Manager, *SessionOptions){
		func() (*Manager, *SessionOptions) {
			return replicaOf(t, nil, "s0"), &SessionOptions{Access: Access{Deny: []string{"mcp_s1__*"}}}
		},
		func() (*Manager, *SessionOptions) {
			return replicaOf(t, &Options{Access: Access{Deny: []string{"mcp_s1__*"}}}, "s0"), nil
		},
		func() (*Manager, *SessionOptions) {
			away := ServerConfig{Name: "s1", Command: "/nowhere", Tools: Access{Allow: []string{"x"}}}
			m := NewManager(&Options{Servers: []ServerConfig{away}})
			t.Cleanup(func() { _ = m.Close() })
			require.NoError(t, m.AddTools("s0", mcptest.Chores("s0", 20)...))
			return m, nil
		},
	} {
		m, opts := on()
		restored, changed := turned(t, m, state, opts)
		assert.Len(t, changed, 20, i)
		assert.Len(t, restored.Tools(), 20, i)
		assert.NotContains(t, restored.PromptSections(PromptFull), "s1", i)
		assert.NotContains(t, string(restored.Save()), "s1", i)
	}
}

// A list denies the name that a tool would have without other servers, elsewhere too.
func TestRestoreHeedsTheNameWithoutOthers(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for _, name := range []string{"first", "second"} {
		require.NoError(t, m.AddServer(t.Context(), ServerConfig{Name: name, Prefix: "p", InProcess: mcptest.Server(name, mcptest.Chores(name, 2)...)}))
	}
	s := m.NewSession(nil)
	require.Len(t, s.Tools(), 4)
	restored, changed := turned(t, replicaOf(t, nil, "s0"), s.Save(), &SessionOptions{Access: Access{Deny: []string{"mcp_p__*"}}})
	assert.Len(t, changed, 4)
	assert.Len(t, restored.Tools(), 20)
}

// A definition from a state is shown and nothing else: it is not what the tool is
// known by, and a tool in quarantine is not shown, under whatever name.
func TestRestoreTrustsNoDefinition(t *testing.T) {
	t.Parallel()
	of := func(description string) ServerConfig { return serving("a", echoTool("run", description)) }
	state := stateOf(t, of("forged"))
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine})
	s, _ := turned(t, m, state, nil)
	require.Equal(t, "forged", s.Tools()[0].Description())
	require.NoError(t, m.AddServer(t.Context(), of("true")))
	assert.Empty(t, m.Problems())
	assert.Equal(t, "true", m.InlineTools()[0].Description())
	require.NoError(t, check(m, s))

	m.RemoveServer("a")
	require.NoError(t, m.AddServer(t.Context(), of("changed")))
	require.Len(t, m.Problems(), 1)
	assert.Empty(t, s.Tools())
	for _, state := range []string{string(state), strings.ReplaceAll(string(state), "mcp_a__run", "mcp_b__walk")} {
		s, changed := turned(t, m, json.RawMessage(state), nil)
		assert.Len(t, changed, 1)
		assert.Empty(t, s.Tools())
		assert.NotContains(t, string(s.Save()), "forged")
	}
}

// A tool in quarantine is not in the next state, and another owner's server of the
// same name is another.
func TestSaveLeavesOutWhatIsHeld(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine})
	require.NoError(t, m.AddTools("own", echoTool("run", "The system's")))
	u := newUser(t, m, "alice", nil)
	mine := func(description string) ServerConfig {
		return ServerConfig{Name: "own", Prefix: "mine", InProcess: mcptest.Server("own", echoTool("run", description))}
	}
	require.NoError(t, u.AddServer(t.Context(), mine("Hers")))
	s := u.NewSession(nil)
	require.Equal(t, []string{"mcp_own__run", "mcp_mine__run"}, namesOf(s.Tools()))
	u.RemoveServer("own")
	require.NoError(t, u.AddServer(t.Context(), mine("Changed")))
	state := s.Save()
	assert.NotContains(t, string(state), "Hers")
	assert.Contains(t, string(state), "The system's")
	restored, _ := turned(t, u, state, nil)
	assert.Equal(t, []string{"mcp_own__run"}, namesOf(restored.Tools()))
}

// A state stays within its limit: what was shown last is left out, and shown again.
func TestStateHasALimit(t *testing.T) {
	t.Parallel()
	opts := func(limit int) *Options { return &Options{MaxState: limit, Inline: InlineOptions{Max: 3}} }
	whole := 0
	for _, limit := range []int{NoLimit, 600, 1000, 2000, 4000, 8000, 10_000, 12_000, 0} {
		if limit == 0 {
			limit = whole
		}
		m := replicaOf(t, opts(limit), "s0", "s1")
		s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
		s.ActivateTools([]string{"mcp_s1__tool_007"})
		sections, tools := sentBytes(s)
		state := s.Save()
		require.LessOrEqual(t, len(state), limit)
		if limit == NoLimit {
			whole = len(state)
		}
		assert.Equal(t, limit >= whole, strings.Contains(string(state), "Does chore 19 for s1"), limit)
		restored, changed := turned(t, m, state, &SessionOptions{Disclosure: ByProvider})
		assert.Empty(t, changed)
		gotSections, gotTools := sentBytes(restored)
		assert.Equal(t, sections, gotSections)
		assert.Equal(t, tools, gotTools)
		assert.Equal(t, []string{"mcp_s1__tool_007"}, namesOf(restored.ActiveTools()))
	}
	m := replicaOf(t, opts(1000), "s0")
	_, _, err := m.RestoreSession(json.RawMessage(`{"version":2,"intent":"`+strings.Repeat("x", 1000)+`"}`), nil)
	assert.EqualError(t, err, "mcphybrid: the state of the session: it has 1025 bytes, more than the limit of 1000")
}

// A state at the limit is restored, even if a database has reformatted it.
func TestReformattedStateIsRestored(t *testing.T) {
	t.Parallel()
	m := replicaOf(t, &Options{MaxState: 8000}, "s0", "s1")
	s := m.NewSession(nil)
	s.Tools()
	state := s.Save()
	require.Greater(t, len(state), 7500)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, state, "", "    "))
	require.Greater(t, indented.Len(), 8000)
	restored, _, err := m.RestoreSession(indented.Bytes(), nil)
	require.NoError(t, err)
	assert.Equal(t, string(state), string(restored.Save()))
	_, _, err = m.RestoreSession(append(state, bytes.Repeat([]byte(" "), 4*8000)...), nil)
	assert.ErrorContains(t, err, "more than four times the limit of 8000")
}

// A state is restored in whatever order its members are.
func TestSortedStateIsRestored(t *testing.T) {
	t.Parallel()
	m := replicaOf(t, &Options{Inline: InlineOptions{Max: 2}}, "s0")
	s := m.NewSession(nil)
	s.Tools()
	s.ActivateTools([]string{"mcp_s0__tool_004"})
	sections, tools := sentBytes(s)
	var members map[string]any // sorts them
	require.NoError(t, json.Unmarshal(s.Save(), &members))
	sorted, err := json.Marshal(members)
	require.NoError(t, err)
	require.Contains(t, string(sorted), `],"began":{`)
	restored, changed := turned(t, m, sorted, nil)
	assert.Empty(t, changed)
	onSections, onTools := sentBytes(restored)
	assert.Equal(t, sections, onSections)
	assert.Equal(t, tools, onTools)
}

// However long an intent or a user's id is, a state stays within its limit.
func TestLongIntentIsCut(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxState: 8000, Rules: []Rule{{Name: "r", Intent: strings.Repeat("\x01", 998), Patterns: []string{"*"}, Action: RuleExclude}}})
	require.NoError(t, m.AddTools("l", echoTool("run", "")))
	s := m.NewSession(nil)
	long := strings.Repeat("\x01", 998) + strings.Repeat("世", 5<<20)
	s.SetIntent(long)
	assert.Empty(t, s.Tools(), "cut before a character that would be split")
	require.LessOrEqual(t, len(s.Save()), 8000)
	restored, _, err := m.RestoreSession(s.Save(), &SessionOptions{Intent: long})
	require.NoError(t, err)
	assert.Empty(t, restored.Tools())

	err = m.SetRules([]Rule{{Name: "r", Intent: strings.Repeat("x", 1001), Patterns: []string{"*"}, Action: RuleExclude}})
	assert.ErrorContains(t, err, "the intent has 1001 bytes, more than the limit of 1000")
	_, err = m.NewUser(strings.Repeat("x", 1001), nil)
	assert.ErrorContains(t, err, "the id has 1001 bytes, more than the limit of 1000")
	_, err = m.NewUser(strings.Repeat("x", 1000), nil)
	assert.NoError(t, err)
}

// Whatever limit decides what is inline, nothing comes in the place of what is away.
func TestAwayToolsHoldTheirRoom(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]InlineOptions{"tools": {Max: 30}, "tokens": {Max: NoLimit, MaxTokens: 300}} {
		a, b := replicaOf(t, &Options{Inline: inline}, "s0", "s1"), replicaOf(t, &Options{Inline: inline}, "s1")
		s := a.NewSession(nil)
		sections, tools := sentBytes(s)
		require.Less(t, len(s.InlineTools()), 31, name)
		on, _ := turned(t, b, s.Save(), nil)
		gotSections, gotTools := sentBytes(on)
		assert.Equal(t, sections, gotSections, name)
		assert.Equal(t, tools, gotTools, name)
		on.Compact()
		assert.Equal(t, toolNames(b.NewSession(nil).Tools()), toolNames(on.Tools()), name)
	}
}

// What a state tells of servers and skills is told to those only who may know it.
func TestRestoreTellsOnlyWhatIsPermitted(t *testing.T) {
	t.Parallel()
	opts := &Options{Inline: InlineOptions{Max: 2}, Skills: someSkills(2)}
	s := replicaOf(t, opts, "s0", "s1").NewSession(nil)
	require.Contains(t, s.PromptSections(PromptFull), "s1 (20")
	m := replicaOf(t, &Options{Inline: InlineOptions{Max: 2}}, "s0")
	restored, changed := turned(t, m, s.Save(), &SessionOptions{Access: Access{Deny: []string{"s1/*"}}, Skills: Access{Deny: []string{"a001"}}})
	text := restored.PromptSections(PromptFull)
	assert.NotContains(t, text, "s1")
	assert.Contains(t, text, "a000")
	assert.NotContains(t, text, "a001")
	assert.Equal(t, []string{"a000", "a001"}, changed)
}

// A tool that was active but never shown is shown when its server comes.
func TestAToolThatComesBackIsShown(t *testing.T) {
	t.Parallel()
	opts := &Options{Inline: InlineOptions{Max: 2}}
	s := replicaOf(t, opts, "s0", "s1").NewSession(nil)
	s.Tools()
	s.ActivateTools([]string{"mcp_s1__tool_003"})
	m := replicaOf(t, opts, "s0")
	restored, _ := turned(t, m, s.Save(), nil)
	require.NotContains(t, namesOf(restored.Tools()), "mcp_s1__tool_003")
	require.NoError(t, m.AddTools("s1", mcptest.Chores("s1", 20)...))
	assert.Contains(t, namesOf(restored.Tools()), "mcp_s1__tool_003")
}

func TestRestoreRefusesWhatIsForged(t *testing.T) {
	t.Parallel()
	m := replicaOf(t, nil, "s0")
	tool := func(name, own, definition string) string {
		return `"tools":[{"name":"` + name + `","server":"x","own":"` + own + `"` + definition + `}]`
	}
	defined := `,"definition":"{\"name\":\"run\"}"`
	for state, problem := range map[string]string{
		tool("mcp_x__run", "go", defined):                                                                 `tool "mcp_x__run": the definition is of another tool`,
		tool("mcp_x__run", "run", `,"definition":"{}"`):                                                   `tool "mcp_x__run": the name is missing`,
		tool("mcp_tool_search", "run", defined):                                                           `tool "mcp_tool_search": no such tool can be in this state`,
		tool("mcp_x__run", "run", defined+`,"user":true`):                                                 `tool "mcp_x__run": no such tool can be in this state`,
		tool("mcp_x__run", "run", "") + `,"shown":[{"kind":"inline","tool":1}]`:                           `item 1: its tool has no definition`,
		`"shown":[{"kind":"x"}]`:                                                                          `item 1: there is no kind "x" of items, or it has no tool`,
		`"shown":[{"kind":"inline"}]`:                                                                     `item 1: there is no kind "inline" of items, or it has no tool`,
		`"shown":[{"kind":"meta","meta":"x"}]`:                                                            `item 1: there is no such tool "x"`,
		`"shown":[{"kind":"meta","meta":"mcp_tool_search"}]`:                                              `item 1: there is no such tool "mcp_tool_search"`,
		`"shown":[{"kind":"skills","skills":{"listed":[{"name":"A","description":"x"}]}}]`:                `item 1: the skill "A": its name may have lower-case letters, digits and, between these, hyphens`,
		`"shown":[{"kind":"skills","skills":{"listed":[{"name":"a","description":"` + "\u200b" + `"}]}}]`: `item 1: the skill "a": it has no description`,
	} {
		s, _, err := m.RestoreSession(json.RawMessage(`{"version":2,`+state+`}`), nil)
		assert.EqualError(t, err, "mcphybrid: the state of the session: "+problem)
		assert.Nil(t, s)
	}
}

// A forged state that repeats its items takes no longer to show than one that does not.
func TestRestoredListHasNothingTwice(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	def, err := json.Marshal(`{"name":"run","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	require.NoError(t, err)
	s, _, err := m.RestoreSession(json.RawMessage(`{"version":2,"tools":[{"name":"mcp_q__run","server":"q","own":"run","definition":`+string(def)+`}],"shown":[`+
		strings.Repeat(`{"kind":"example","tool":1},{"kind":"summary","tool":1},`, 1000)+`{"kind":"inline","tool":1}]}`), nil)
	require.NoError(t, err)
	assert.Len(t, s.show(), 3)
}

// A tool that a session was restored with and that its server has listed since is saved once.
func TestRestoredToolIsSavedOnce(t *testing.T) {
	t.Parallel()
	summarize := []Rule{{Name: "all", Patterns: []string{"*"}, Action: RuleSummarize}}
	there, _ := newTestManager(t, &Options{Rules: summarize, Servers: []ServerConfig{inProcess("a", 1)}})
	s := there.NewSession(nil)
	s.PromptSections(PromptFull)
	state := s.Save()

	here, _ := newTestManager(t, &Options{Rules: summarize})
	restored, _, err := here.RestoreSession(state, nil)
	require.NoError(t, err)
	require.NoError(t, here.AddServer(t.Context(), inProcess("a", 1)))
	require.Equal(t, []string{"mcp_a__tool_000"}, restored.ActivateTools([]string{"mcp_a__tool_000"}))
	require.Len(t, restored.Tools(), 2)
	parsed, err := saved.Parse(restored.Save(), defaultMaxState)
	require.NoError(t, err)
	require.NoError(t, parsed.Whole(nil))
	assert.Len(t, parsed.Tools, 1)
	assert.Len(t, parsed.Active, 1)
}

// By bridge, the list names servers, not their deferred tools. A tool that such a server
// would have is told to be of a server that is not here, even though its name is in no list.
func TestCallOfAToolWhoseMentionedServerIsAway(t *testing.T) {
	t.Parallel()
	a, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 60), inProcess("b", 45)}})
	s := a.NewSession(nil)
	_, err := s.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	state := s.Save()

	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 60)}})
	away, _ := turned(t, m, state, nil)
	var unknown *UnknownToolError
	r, err := away.Call(t.Context(), CallToolName, `{"name":"mcp_b__tool_044","arguments":{}}`)
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "b", unknown.Away)
	assert.Equal(t, "mcp_b__tool_044 can't be called now: its server, b, is not connected here. Go on without it.", resultText(t, r))
	_, err = away.Call(t.Context(), CallToolName, `{"name":"mcp_bb__tool_044","arguments":{}}`)
	require.ErrorAs(t, err, &unknown)
	assert.Empty(t, unknown.Away)

	_, err = m.NewSession(nil).Call(t.Context(), "mcp_b__tool_044", nil)
	require.ErrorAs(t, err, &unknown)
	assert.Empty(t, unknown.Away, "this session was told of no server b")

	require.NoError(t, m.AddTools("b", echoTool("other", "")))
	_, err = away.Call(t.Context(), "mcp_b__tool_044", nil)
	require.ErrorAs(t, err, &unknown)
	assert.Empty(t, unknown.Away, "the server is here, without the tool")
}
