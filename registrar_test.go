package mcphybrid

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// toolNamed returns a tool of the server "s". Two of one name are told apart by their
// pointers.
func toolNamed(name string) *BridgeTool {
	d, err := parseDefinition("s", json.RawMessage(`{"name":"a","inputSchema":{"type":"object"}}`), 1_000)
	if err != nil {
		panic(err)
	}
	return &BridgeTool{name: name, def: d}
}

// A lockingTable is a registry with one lock, which it holds while it calls back.
type lockingTable struct {
	mu      sync.Mutex
	tools   map[string]*BridgeTool
	order   []string
	groups  map[string][]string
	fails   int // calls of RegisterToolGroup that panic
	removed int // calls of Unregister that removed a tool
}

func newLockingTable() *lockingTable {
	return &lockingTable{tools: map[string]*BridgeTool{}, groups: map[string][]string{}}
}

func (r *lockingTable) Register(registered Tool) {
	t := registered.(*BridgeTool)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[t.name] = t
	r.order = append(r.order, t.name)
}

func (r *lockingTable) Unregister(registered Tool) {
	t := registered.(*BridgeTool)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[t.name] == t {
		delete(r.tools, t.name)
		r.removed++
	}
}

func (r *lockingTable) Get(name string) (Tool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tools[name]
	return t, ok
}

func (r *lockingTable) RegisterToolGroup(group string, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails > 0 {
		r.fails--
		panic("no groups today")
	}
	if r.groups[group] = names; len(names) == 0 {
		delete(r.groups, group)
	}
}

func (r *lockingTable) SetDeferredActivator(func(string) bool) {}

// A testOffering offers the tools that the test sets.
type testOffering struct {
	mu     sync.Mutex
	offer  []*BridgeTool
	others []*BridgeTool // usable but not offered
	asked  func()        // if not nil, offeredTool calls it before it returns its answer
}

func (s *testOffering) set(tools ...*BridgeTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer = tools
}

func (s *testOffering) offeredTools() (tools []Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.offer {
		tools = append(tools, t)
	}
	return tools
}

func (s *testOffering) offeredTool(name string) Tool {
	s.mu.Lock()
	t := named(s.offer, name)
	s.mu.Unlock()
	if s.asked != nil {
		s.asked()
	}
	return t
}

func (s *testOffering) usable(name string) Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return named(slices.Concat(s.offer, s.others), name)
}

func (s *testOffering) copyOf(t Tool) Tool { return toolNamed(t.Name()) }

func named(tools []*BridgeTool, name string) Tool {
	for _, t := range tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// groupsNamed are the groups of tools with these names.
func groupsNamed(names ...string) map[string][]string {
	return map[string][]string{GroupAll: names, GroupServer + "s": names}
}

// openRegistrar returns a registrar, its open registry and what it offers there.
func openRegistrar(tools ...*BridgeTool) (*registrar, *lockingTable, *testOffering) {
	r, s := newLockingTable(), &testOffering{offer: tools}
	g := newRegistrar(r, s, slog.New(slog.DiscardHandler))
	g.open(func(string) bool { return false })
	return g, r, s
}

// copies returns how many copies of tools with that name the registrar remembers, because
// the registry may hold them. At rest there are at most as many as goroutines registered
// tools of that name at once.
func (r *registrar) copies(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[name])
}

// The registry is filled in the order of the offer, follows the offer and is
// empty in the end.
func TestSyncFollowsTheOffer(t *testing.T) {
	a, b, c := toolNamed("c"), toolNamed("a"), toolNamed("b")
	g, r, s := openRegistrar(a, b)
	assert.Equal(t, []string{"c", "a"}, r.order)
	assert.Equal(t, groupsNamed("c", "a"), r.groups)
	s.set(b, c)
	g.sync()
	assert.Equal(t, []string{"c", "a", "b"}, r.order, "what is there is not registered again")
	assert.Len(t, r.tools, 2)
	assert.Equal(t, groupsNamed("a", "b"), r.groups)
	before := r.tools["a"]
	s.set(toolNamed("a"), c)
	g.sync()
	assert.NotSame(t, before, r.tools["a"], "another tool of that name")
	s.set()
	g.close()
	assert.Empty(t, r.tools)
	assert.Empty(t, r.groups)
	assert.Empty(t, g.held)
	assert.Empty(t, g.pending)
}

// A group whose publication failed is published again.
func TestFailedGroupIsPublishedAgain(t *testing.T) {
	g, r, s := openRegistrar()
	r.fails = 2
	s.set(toolNamed("a"))
	g.sync()
	assert.Empty(t, r.groups)
	g.sync()
	assert.Equal(t, groupsNamed("a"), r.groups)
	assert.Nil(t, g.wanted, "it is not compared again")
}

// Between hold and release, a tool stays registered although it is not offered
// yet.
func TestPendingToolStays(t *testing.T) {
	g, r, s := openRegistrar()
	a := toolNamed("a")
	s.others = []*BridgeTool{a}
	require.True(t, g.hold(a))
	g.sync()
	assert.Contains(t, r.tools, "a", "an activation is under way")
	s.set(a)
	g.release(a)
	assert.Contains(t, r.tools, "a")
	require.True(t, g.hold(a))
	s.set()
	g.release(a)
	assert.NotContains(t, r.tools, "a", "it was not published")
}

// If an older tool replaces a newer one, the newer one is registered again.
func TestNewestToolWins(t *testing.T) {
	older, newer := toolNamed("a"), toolNamed("a")
	g, r, s := openRegistrar(newer)
	require.True(t, g.hold(older))
	g.release(older)
	held := g.held["a"]
	require.NotEmpty(t, held)
	var now []*BridgeTool
	for _, h := range held {
		if h.of == newer {
			now = append(now, h.copy.(*BridgeTool))
		}
	}
	assert.True(t, slices.Contains(now, r.tools["a"]), "compared by identity")
	s.set()
	g.sync()
	assert.Empty(t, r.tools)
}

// A table that wraps what it holds does not tell which copy it holds.
type wrappingTable struct{ *lockingTable }

func (wrappingTable) Get(string) (Tool, bool) { return toolNamed("wrapped"), true }

// Of a name, only the copies that the registry may hold are remembered, however
// often the tool changes, leaves, is activated again or is refused.
func TestReplacedCopiesAreForgotten(t *testing.T) {
	g, r, s := openRegistrar()
	for range 100 {
		s.set(toolNamed("a"))
		g.sync()
		assert.Equal(t, 1, g.copies("a"))
	}
	s.set()
	g.sync()
	assert.Zero(t, g.copies("a"))
	assert.Empty(t, r.tools)

	a := toolNamed("a")
	s.set(a)
	g = newRegistrar(wrappingTable{r}, s, slog.New(slog.DiscardHandler))
	g.sync()
	for range 100 {
		require.True(t, g.hold(a))
		g.release(a)
	}
	assert.Equal(t, 1, g.copies("a"))
}

// However many goroutines change the offer at once, the registry ends up with
// the last offer.
func TestManyAtOnce(t *testing.T) {
	g, r, s := openRegistrar()
	tools := make([]*BridgeTool, 8)
	for i := range tools {
		tools[i] = toolNamed(fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				t := tools[(i+n)%8]
				if g.hold(t) {
					s.set(tools[:n%8]...)
					g.release(t)
				}
				g.sync()
			}
		})
	}
	wg.Wait()
	s.set(tools[2:5]...)
	g.sync()
	g.close() // waits until the last sync has ended
	assert.Len(t, r.tools, 3)
	for _, want := range tools[2:5] {
		assert.Contains(t, r.tools, want.name)
		assert.LessOrEqual(t, g.copies(want.name), 16, "of 3,200 registrations by 16 goroutines")
	}
	assert.Empty(t, g.pending)
}

// An activation may begin, and even end, while the registrar asks whether the
// tool is offered. The tool stays registered all the time.
func TestActivationWhileTheOfferIsAsked(t *testing.T) {
	a := toolNamed("a")
	g, r, s := openRegistrar(a)
	s.set()
	s.asked = func() {
		s.asked = nil
		require.True(t, g.hold(a))
		s.set(a)
		g.release(a)
	}
	g.sync()
	assert.Contains(t, r.tools, "a")
	assert.Zero(t, r.removed, "the model was told that the tool is there")
}

// A tool may be offered, and registered, while the registrar removes an older one of its
// name and with that all copies. It is registered again.
func TestToolIsOfferedWhileItsNameIsRemoved(t *testing.T) {
	older, newer := toolNamed("a"), toolNamed("a")
	g, r, s := openRegistrar()
	require.True(t, g.hold(older))
	s.asked = func() {
		s.asked = nil
		s.set(newer)
		g.sync()
		require.Contains(t, r.tools, "a")
	}
	g.release(older)
	require.Contains(t, r.tools, "a")
	require.Len(t, g.held["a"], 1)
	assert.Same(t, newer, g.held["a"][0].of)
	assert.Same(t, r.tools["a"], g.held["a"][0].copy)
}

// The first Turn by bridge offers tools that call others.
func TestFirstTurnSyncsTheRegistry(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	m := NewManager(&Options{Registry: r, Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5), inProcess("b", 5)}})
	defer m.Close()
	require.NoError(t, m.Start(t.Context()))
	turn := turnOf(t, m.Default(), provider.OpenAIChat, "")
	require.Contains(t, exportedNames(turn.Tools), CallToolName)
	_, err := r.Execute(t.Context(), CallToolName, json.RawMessage(`{"name":"mcp_b__tool_004","arguments":{"text":"x"}}`))
	assert.NoError(t, err, "the model has the tool, and the host's table has not")

	own, table := m.NewSession(nil), NewRegistry() // a session without a table, and one with its own
	s := m.NewSession(&SessionOptions{Registry: table})
	defer s.Close()
	turnOf(t, own, provider.OpenAIChat, "")
	for _, name := range exportedNames(turnOf(t, s, provider.OpenAIChat, "").Tools) {
		if _, ok := table.Get(name); !ok {
			assert.True(t, table.TryActivateDeferred(name), name)
		}
	}
}

// groupsTold is a registry that fails the test if it is told of a group that has not changed.
type groupsTold struct {
	*ToolRegistry
	t    *testing.T
	last map[string][]string
}

func (r *groupsTold) RegisterToolGroup(group string, names []string) {
	assert.NotEqual(r.t, r.last[group], names, "%s is told again", group)
	r.last[group] = names
	r.ToolRegistry.RegisterToolGroup(group, names)
}

// A registry is told of the groups that have changed, and not of others.
func TestUnchangedGroupsAreNotTold(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 4)}})
	told := &groupsTold{NewRegistry(), t, make(map[string][]string)}
	s := m.NewSession(&SessionOptions{Registry: told})
	before := len(told.last)
	require.NotZero(t, before)
	s.ActivateTools([]string{"mcp_a__tool_003"})
	s.ActivateTools([]string{"mcp_a__tool_003"})
	require.NoError(t, m.AddTools("b", echoTool("run", "")))
	s.ActivateTools([]string{"mcp_b__run"})
	assert.Greater(t, len(told.last), before, "b's group is new")
	require.True(t, m.RemoveServer("b"))
	require.NoError(t, checkRegistry(s, told.ToolRegistry))
}

// Each copy for a registry is one of its own, of a tool of ours too.
func TestCopiesForARegistryDiffer(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 2)}})
	s := m.NewSession(nil)
	for _, tool := range []Tool{s.InlineTools()[0], s.SearchTool()} {
		first, second := s.copyOf(tool), s.copyOf(tool)
		assert.False(t, first == second || first == tool, tool.Name())
		assert.Equal(t, tool.Name(), first.Name())
	}
}
