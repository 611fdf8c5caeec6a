package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lockingRegistry is the most difficult registry that a host may have. It
// works under its own lock, calls the Manager back with the lock held and from
// within Register, and sometimes panics.
type lockingRegistry struct {
	mu    sync.Mutex
	tools *ToolRegistry
	m     *Manager // or nil while it is being made

	registered    []string // in call order
	afterRegister func(name string)
	panicOn       string
	panicGroups   bool
	calls         atomic.Int64
}

func (r *lockingRegistry) Register(t Tool) {
	// Let calls reach the lock in a different order than they were made.
	for range r.calls.Add(1) * 7 % 64 {
		runtime.Gosched()
	}
	r.mu.Lock()
	if r.m != nil {
		r.m.IsSearchMode()
		r.m.PromptSections(PromptFull)
		r.m.Search("chore", 3)
	}
	if t.Name() == r.panicOn {
		r.mu.Unlock()
		panic("registry full")
	}
	r.tools.Register(t)
	r.registered = append(r.registered, t.Name())
	r.mu.Unlock()
	if r.afterRegister != nil {
		r.afterRegister(t.Name())
	}
}

func (r *lockingRegistry) Unregister(t Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m != nil {
		r.m.ActiveTools()
	}
	r.tools.Unregister(t)
}

func (r *lockingRegistry) Get(name string) (Tool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tools.Get(name)
}

func (r *lockingRegistry) RegisterToolGroup(group string, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m != nil {
		r.m.InlineTools()
	}
	if r.panicGroups {
		panic("no groups today")
	}
	r.tools.RegisterToolGroup(group, names)
}

func (r *lockingRegistry) SetDeferredActivator(f func(string) bool) { r.tools.SetDeferredActivator(f) }

func newLockingManager(t *testing.T, opts Options) (*Manager, *lockingRegistry) {
	r := &lockingRegistry{tools: NewRegistry()}
	opts.Registry = r
	m, _ := newTestManager(t, &opts)
	r.mu.Lock()
	r.m = m
	r.mu.Unlock()
	t.Cleanup(func() { assert.NoError(t, checkRegistry(m.def, r.tools)) })
	return m, r
}

func TestSpecA13ActivationRegistersBeforeItReports(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 6)}})
	r.mu.Lock()
	r.registered = nil
	r.mu.Unlock()
	got := m.ActivateTools([]string{"mcp_a__tool_004", "mcp_a__tool_000", "nope", "mcp_a__tool_003", "mcp_a__tool_004"})
	assert.Equal(t, []string{"mcp_a__tool_004", "mcp_a__tool_000", "mcp_a__tool_003"}, got)
	assert.Equal(t, []string{"mcp_a__tool_004", "mcp_a__tool_003"}, r.registered, "each once")
	assert.Equal(t, []string{"mcp_a__tool_004", "mcp_a__tool_003"}, toolNames(m.ActiveTools()))
	assert.Equal(t, []string{"mcp_a__tool_002", "mcp_a__tool_005"}, toolNames(m.DeferredTools()))
}

// Register calls back and activates another tool. We hold no lock then.
func TestSpecA13ActivationFromWithinRegister(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 12)}})
	r.afterRegister = func(name string) {
		var i int
		_, _ = fmt.Sscanf(name, "mcp_a__tool_%d", &i)
		m.ActivateToolIfDeferred(fmt.Sprintf("mcp_a__tool_%03d", i+1))
		assert.True(t, m.ActivateToolIfDeferred("mcp_a__tool_000"), "inline")
	}
	assert.True(t, m.ActivateToolIfDeferred("mcp_a__tool_001"))
	assert.Len(t, m.ActiveTools(), 11)
	assert.Empty(t, m.DeferredTools())
}

func TestRegistryPanicCostsOneActivation(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 5)}})
	r.panicOn = "mcp_a__tool_002"
	assert.Equal(t, []string{"mcp_a__tool_001", "mcp_a__tool_003"},
		m.ActivateTools([]string{"mcp_a__tool_001", "mcp_a__tool_002", "mcp_a__tool_003"}))
	_, err := m.Call(t.Context(), "mcp_a__tool_002", nil)
	assert.ErrorIs(t, err, ErrUnknownTool)
	r.panicOn = ""
	_, err = m.Call(t.Context(), "mcp_a__tool_002", nil)
	assert.NoError(t, err)
}

// Register calls back for the tool that it has just stored.
func TestActivationOfTheSameToolFromWithinRegister(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	r.afterRegister = func(name string) { assert.True(t, m.ActivateToolIfDeferred(name)) }
	assert.True(t, m.ActivateToolIfDeferred("mcp_a__tool_002"))
	assert.Equal(t, []string{"mcp_a__tool_002"}, toolNames(m.ActiveTools()))
}

// A registry stores a tool or a group and then panics.
func TestRegistryPanicsAfterStoring(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	r.afterRegister = func(string) { panic("too late") }
	assert.False(t, m.ActivateToolIfDeferred("mcp_a__tool_002"))
	_, ok := r.Get("mcp_a__tool_002")
	assert.False(t, ok)
	r.afterRegister = nil

	r.panicGroups = true
	assert.True(t, m.ActivateToolIfDeferred("mcp_a__tool_001"))
	assert.NotContains(t, r.tools.ToolGroup(GroupAll), "mcp_a__tool_001")
	r.panicGroups = false
	assert.True(t, m.ActivateToolIfDeferred("mcp_a__tool_002"))
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_001", "mcp_a__tool_002"}, r.tools.ToolGroup(GroupAll))
}

// Two goroutines activate a tool while a third keeps removing and adding it.
func TestActivationRacesWithRemoval(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("a", echoTool("x", "X")))
	ctx, cancel := context.WithTimeout(context.Background(), *stress/2)
	defer cancel()
	var wg sync.WaitGroup
	var checked atomic.Int64
	late := time.Now().Add(*stress + time.Minute)
	goes := func() bool { // longer on a slow machine, until it has happened
		return ctx.Err() == nil || checked.Load() == 0 && time.Now().Before(late)
	}
	for range 4 {
		wg.Go(func() {
			for goes() {
				before := m.cur.Load()
				if !m.ActivateToolIfDeferred("mcp_a__x") {
					continue
				}
				_, ok := r.Get("mcp_a__x")
				if m.cur.Load() == before {
					checked.Add(1)
					assert.True(t, ok, "told to be active, and not registered")
				}
			}
		})
	}
	for goes() {
		m.RemoveServer("a")
		assert.NoError(t, m.AddTools("a", echoTool("x", "X")))
		for range 1000 {
			runtime.Gosched()
		}
	}
	wg.Wait()
	assert.Positive(t, checked.Load())
}

// Many goroutines activate the same few tools. Each gets a true answer, and in
// the end each tool is active once.
func TestSpecA13ConcurrentActivation(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 9)}})
		var wg sync.WaitGroup
		var told atomic.Int64
		for g := range 16 {
			wg.Go(func() {
				for i := range 8 {
					name := fmt.Sprintf("mcp_a__tool_%03d", 1+(g+i)%8)
					if !m.ActivateToolIfDeferred(name) {
						continue
					}
					told.Add(1)
					if _, ok := r.Get(name); !ok {
						t.Errorf("round %d: told that %s is active, but it is not registered", round, name)
					}
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 16*8, told.Load())
		assert.Len(t, m.ActiveTools(), 8)
	}
}

// A tool stays active while servers come and go, as long as it exists. A tool
// that was removed and added again is a new one.
func TestActiveToolsFollowTheCatalog(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, Servers: []ServerConfig{inProcess("a", 3), inProcess("b", 3)}})
	s := m.NewSession(nil)
	unread := m.NewSession(nil) // nobody looks at it in between
	for _, s := range []*Session{m.def, s, unread} {
		s.ActivateTools([]string{"mcp_b__tool_001", "mcp_b__tool_000"})
	}
	require.NoError(t, m.AddServer(t.Context(), inProcess("c", 2)))
	assert.Equal(t, []string{"mcp_b__tool_001", "mcp_b__tool_000"}, toolNames(s.ActiveTools()))

	// Without a, all tools of b are inline, and c is deferred.
	require.True(t, m.RemoveServer("a"))
	assert.Empty(t, s.ActiveTools())
	assert.Equal(t, []string{"mcp_b__tool_000", "mcp_b__tool_001", "mcp_b__tool_002"}, toolNames(s.InlineTools()))
	assert.NoError(t, check(m, s, unread))
	assert.NoError(t, checkRegistry(m.def, r))

	s.ActivateTools([]string{"mcp_c__tool_001"})
	unread.ActivateTools([]string{"mcp_c__tool_000"})
	require.True(t, m.RemoveServer("c"))
	assert.Empty(t, s.ActiveTools())
	require.NoError(t, m.AddServer(t.Context(), inProcess("c", 2)))
	assert.Empty(t, s.ActiveTools())
	assert.Empty(t, unread.ActiveTools(), "whether or not the session was looked at meanwhile")
	assert.NoError(t, check(m, s, unread))
}

// A tool of a new server takes a name while that name is being activated. The
// caller gets the tool that is there now.
func TestActivationRacesWithReplacement(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 2)}})
	var replaced atomic.Bool
	r.afterRegister = func(string) {
		if replaced.CompareAndSwap(false, true) {
			m.RemoveServer("a")
			assert.NoError(t, m.AddServer(context.Background(), serving("a", echoTool("tool_001", "new"))))
		}
	}
	assert.Equal(t, []string{"mcp_a__tool_001"}, m.ActivateTools([]string{"mcp_a__tool_000", "mcp_a__tool_001"}))
	tool, ok := r.Get("mcp_a__tool_001")
	require.True(t, ok)
	assert.Equal(t, "new", tool.Description())
	_, err := tool.Call(t.Context(), nil)
	assert.NoError(t, err)
	_, ok = r.Get("mcp_a__tool_000")
	assert.False(t, ok)
}

func TestSpecA14RegistryActivatesLazily(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Access: Access{Deny: []string{"mcp_a__tool_003"}}, Servers: []ServerConfig{
		func() ServerConfig { c := inProcess("a", 6); c.Tools.Deny = []string{"tool_004"}; return c }(),
	}})
	_, ok := r.Get("mcp_a__tool_002")
	require.False(t, ok)
	result, err := r.Execute(t.Context(), "mcp_a__tool_002", json.RawMessage(`{"text":"x"}`))
	require.NoError(t, err)
	assert.Equal(t, `tool_002 {"text":"x"}`, resultText(t, result))
	assert.Equal(t, []string{"mcp_a__tool_002"}, toolNames(m.ActiveTools()))

	// Activation never gets past an access list, neither the Manager's nor the
	// server's.
	for _, name := range []string{"mcp_a__tool_003", "mcp_a__tool_004", "mcp_a__nope", ""} {
		assert.False(t, r.TryActivateDeferred(name), name)
		_, err := r.Execute(t.Context(), name, nil)
		assert.ErrorIs(t, err, ErrUnknownTool, name)
	}
	assert.Len(t, m.ActiveTools(), 1)
}

func TestSpecA14SessionRules(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 6), inProcess("b", 2)}})
	reg := NewRegistry()
	s := m.NewSession(&SessionOptions{Registry: reg, Access: Access{Allow: []string{"mcp_a__*"}, Deny: []string{"*_001", "*_004"}}})
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_002"}, toolNames(s.InlineTools()), "the first of those that it may use")
	assert.Equal(t, []string{"mcp_a__tool_003", "mcp_a__tool_005"}, toolNames(s.DeferredTools()))
	assert.True(t, s.IsSearchMode())
	for _, h := range deferredHits(s, "chore tool", 20) {
		assert.Contains(t, toolNames(s.DeferredTools()), h.Tool.Name())
	}
	for _, name := range []string{"mcp_a__tool_001", "mcp_a__tool_004", "mcp_b__tool_000"} {
		_, err := s.Call(t.Context(), name, nil)
		assert.ErrorIs(t, err, ErrNotPermitted, name)
		assert.False(t, s.ActivateToolIfDeferred(name))
		assert.False(t, reg.TryActivateDeferred(name))
		_, ok := reg.Get(name)
		assert.False(t, ok)
		assert.NotContains(t, s.PromptSections(PromptFull), name)
	}
	assert.NotContains(t, s.SearchSection(), "b (")
	assert.Empty(t, m.ActiveTools(), "a refused call activates nothing, anywhere")
	assert.True(t, s.ActivateToolIfDeferred("mcp_a__tool_005"))
	assert.NoError(t, check(m, s))
	assert.NoError(t, checkRegistry(s, reg))

	silent := m.NewSession(&SessionOptions{Access: Access{Deny: []string{SearchToolName}}})
	assert.False(t, silent.IsSearchMode())
	assert.Nil(t, silent.SearchTool())
	assert.Empty(t, silent.SearchSection())
	_, err := silent.Call(t.Context(), SearchToolName, `{"query":"chore"}`)
	assert.ErrorIs(t, err, ErrUnknownTool)

	s.Close()
	assert.Empty(t, reg.List())
	assert.Empty(t, reg.groups)
	assert.Empty(t, s.Tools())
	assert.Empty(t, s.ActivateTools([]string{"mcp_a__tool_002"}))
	assert.Empty(t, reg.List())
}

// A tool for which the list has no room stays deferred. The registry gets the tool that
// calls it.
func TestActivationWithoutRoomOffersTheCallTool(t *testing.T) {
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 1}, List: ListOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5)}})
	require.True(t, m.ActivateToolIfDeferred("mcp_a__tool_001"))
	assert.NotContains(t, namesOf(r.tools.List()), CallToolName)
	require.False(t, m.ActivateToolIfDeferred("mcp_a__tool_002"), "the list is full")
	assert.Contains(t, namesOf(r.tools.List()), CallToolName)
	assert.NotContains(t, namesOf(r.tools.List()), "mcp_a__tool_002")
}

// A view does not change when tools become active. Nothing is written behind
// its end either, where an older view may continue.
func TestActivationWritesToNoView(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 9)}})
	s := m.NewSession(nil)
	for i := range 9 {
		v := s.view()
		behind := v.active[:cap(v.active)]
		before := slices.Clone(behind)
		s.ActivateTools([]string{fmt.Sprintf("mcp_a__tool_%03d", i)})
		for j := range behind {
			require.Same(t, before[j], behind[j])
		}
		require.Len(t, s.view().active, i+1)
	}
}

// By bridge, no tool can be added to the list. So a tool that the host activates comes with
// its definition as text, once, and the model calls it through the call tool.
func TestActivatedByBridge(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 60)}, StateParts: store.FileParts(t.TempDir())})
	early := m.NewSession(nil)
	require.Equal(t, []string{"mcp_a__tool_050"}, early.ActivateTools([]string{"mcp_a__tool_050"}))
	begun, err := early.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(begun.System, `- {"name":"mcp_a__tool_050","server":"a","description":`), begun.System)

	s := m.NewSession(nil)
	first, err := s.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	assert.NotContains(t, first.System, textActiveHeading)
	s.ActivateTools([]string{"mcp_a__tool_059", "mcp_a__tool_001"})
	second, err := s.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	assert.Equal(t, first.System, second.System)
	assert.Equal(t, first.Tools, second.Tools)
	require.Len(t, second.Append, 1)
	assert.Contains(t, second.News, "\n\n"+textActiveHeading+textDefinition(m.cur.Load().tool("mcp_a__tool_059")))
	assert.NotContains(t, second.News, "tool_001", "it is inline")

	restored, changed, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Empty(t, changed)
	for _, s := range []*Session{s, restored} {
		s.ActivateTools([]string{"mcp_a__tool_059"})
		third, err := s.Turn(provider.OpenAIChat, "gpt-4.1")
		require.NoError(t, err)
		assert.Nil(t, third.Append, "it was told")
	}
	assert.Equal(t, s.PromptSections(PromptFull), restored.PromptSections(PromptFull))

	noCalls := m.NewSession(&SessionOptions{Disclosure: ByBridge, Access: Access{Deny: []string{CallToolName}}})
	_, err = noCalls.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	noCalls.ActivateTools([]string{"mcp_a__tool_059"})
	turn, err := noCalls.Turn(provider.OpenAIChat, "gpt-4.1")
	require.NoError(t, err)
	assert.Nil(t, turn.Append, "the model could not call it")
	assert.Contains(t, turn.Waiting, "mcp_a__tool_059")
}

// By the bridge, a tool that comes after the list was sent is deferred. Once it is active, it
// stays so, and once only, whatever else changes and wherever the session goes on.
func TestBridgeKeepsActive(t *testing.T) {
	t.Parallel()
	for _, first := range []int{3, 45} { // without and with the tool that calls others
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", first)}})
		require.NoError(t, m.Start(t.Context()))
		r := NewRegistry()
		s := m.NewSession(&SessionOptions{Registry: r})
		turnOf(t, s, provider.OpenAIChat, "")
		require.NoError(t, m.SetRules([]Rule{{Name: "little", Patterns: []string{"b/*", "a/tool_000", "a/tool_001", "c/*"}, Action: RuleInclude}}))
		require.NoError(t, m.AddServer(t.Context(), inProcess("b", 3)))
		want := []string{"mcp_b__tool_001"}
		require.Equal(t, want, s.ActivateTools(want))
		require.NoError(t, m.AddServer(t.Context(), inProcess("c", 1)))
		stays := func(s *Session, r *ToolRegistry) {
			t.Helper()
			require.Equal(t, want, toolNames(s.ActiveTools()))
			require.Equal(t, 1, s.Stats().Active)
			_, ok := r.Get(want[0])
			require.True(t, ok)
			require.NoError(t, check(m, s))
		}
		stays(s, r)

		r = NewRegistry()
		s, _, err := m.RestoreSession(s.Save(), &SessionOptions{Registry: r})
		require.NoError(t, err)
		stays(s, r)
		require.Equal(t, want, s.ActivateTools(want))
		require.NoError(t, m.SetRules([]Rule{{Name: "brief", Patterns: []string{"b/*"}, Action: RuleSummarize}}))
		stays(s, r)
	}
}
