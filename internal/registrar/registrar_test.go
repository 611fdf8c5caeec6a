package registrar

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two tools with the same name are told apart by their pointers.
type tool struct{ name string }

func (t *tool) Name() string { return t.name }

// A table is a registry with one lock, which it holds while it calls back.
type table struct {
	mu      sync.Mutex
	tools   map[string]*tool
	order   []string
	groups  map[string][]string
	fails   int // calls of RegisterToolGroup that panic
	removed int // calls of Unregister that removed a tool
}

func newTable() *table { return &table{tools: map[string]*tool{}, groups: map[string][]string{}} }

func (r *table) Register(registered Tool) {
	t := registered.(*tool)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[t.name] = t
	r.order = append(r.order, t.name)
}

func (r *table) Unregister(registered Tool) {
	t := registered.(*tool)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[t.name] == t {
		delete(r.tools, t.name)
		r.removed++
	}
}

func (r *table) Get(name string) (Tool, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tools[name]
	return t, ok
}

func (r *table) RegisterToolGroup(group string, names []string) {
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

func (r *table) SetDeferredActivator(func(string) bool) {}

// A session offers the tools that the test sets.
type session struct {
	mu     sync.Mutex
	offer  []*tool
	others []*tool // known but not offered
	asked  func()  // if not nil, Offered calls it before it returns its answer
}

func (s *session) set(tools ...*tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer = tools
}

func (s *session) Offer() (tools []Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.offer {
		tools = append(tools, t)
	}
	return tools
}

func (s *session) Groups(offered []Tool) map[string][]string {
	groups := make(map[string][]string)
	for _, t := range offered {
		groups["all"] = append(groups["all"], t.Name())
	}
	return groups
}

func find(tools []*tool, name string) Tool {
	for _, t := range tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (s *session) Offered(name string) Tool {
	s.mu.Lock()
	t := find(s.offer, name)
	s.mu.Unlock()
	if s.asked != nil {
		s.asked()
	}
	return t
}

func (s *session) Known(name string) Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return find(slices.Concat(s.offer, s.others), name)
}

func (s *session) Copy(t Tool) Tool { return &tool{t.Name()} }

func open(tools ...*tool) (*Registrar, *table, *session) {
	r, s := newTable(), &session{offer: tools}
	g := New(r, s, slog.New(slog.DiscardHandler))
	g.Open(func(string) bool { return false })
	return g, r, s
}

// The registry is filled in the order of the offer, follows the offer and is
// empty in the end.
func TestSyncFollowsTheOffer(t *testing.T) {
	a, b, c := &tool{"c"}, &tool{"a"}, &tool{"b"}
	g, r, s := open(a, b)
	assert.Equal(t, []string{"c", "a"}, r.order)
	assert.Equal(t, map[string][]string{"all": {"c", "a"}}, r.groups)
	s.set(b, c)
	g.Sync()
	assert.Equal(t, []string{"c", "a", "b"}, r.order, "what is there is not registered again")
	assert.Len(t, r.tools, 2)
	assert.Equal(t, map[string][]string{"all": {"a", "b"}}, r.groups)
	before := r.tools["a"]
	s.set(&tool{"a"}, c)
	g.Sync()
	assert.NotSame(t, before, r.tools["a"], "another tool of that name")
	s.set()
	g.Close()
	assert.Empty(t, r.tools)
	assert.Empty(t, r.groups)
	assert.Empty(t, g.held)
	assert.Empty(t, g.pending)
}

// A group whose publication failed is published again.
func TestFailedGroupIsPublishedAgain(t *testing.T) {
	g, r, s := open()
	r.fails = 1
	s.set(&tool{"a"})
	g.Sync()
	assert.Empty(t, r.groups)
	g.Sync()
	assert.Equal(t, map[string][]string{"all": {"a"}}, r.groups)
	assert.Nil(t, g.wanted, "it is not compared again")
}

// Between Begin and Finish, a tool stays registered although it is not offered
// yet.
func TestPendingToolStays(t *testing.T) {
	g, r, s := open()
	a := &tool{"a"}
	s.others = []*tool{a}
	require.True(t, g.Begin(a))
	g.Sync()
	assert.Contains(t, r.tools, "a", "an activation is under way")
	s.set(a)
	g.Finish(a)
	assert.Contains(t, r.tools, "a")
	require.True(t, g.Begin(a))
	s.set()
	g.Finish(a)
	assert.NotContains(t, r.tools, "a", "it was not published")
}

// If an older tool replaces a newer one, the newer one is registered again.
func TestNewestToolWins(t *testing.T) {
	older, newer := &tool{"a"}, &tool{"a"}
	g, r, s := open(newer)
	require.True(t, g.Begin(older))
	g.Finish(older)
	held := g.held["a"]
	require.NotEmpty(t, held)
	var now []*tool
	for _, h := range held {
		if h.of == newer {
			now = append(now, h.copy.(*tool))
		}
	}
	assert.True(t, slices.Contains(now, r.tools["a"]), "compared by identity")
	s.set()
	g.Sync()
	assert.Empty(t, r.tools)
}

// A table that wraps what it holds does not tell which copy it holds.
type wrappingTable struct{ *table }

func (wrappingTable) Get(string) (Tool, bool) { return &tool{"wrapped"}, true }

// Of a name, only the copies that the registry may hold are remembered, however
// often the tool changes, leaves, is activated again or is refused.
func TestReplacedCopiesAreForgotten(t *testing.T) {
	g, r, s := open()
	for range 100 {
		s.set(&tool{"a"})
		g.Sync()
		assert.Equal(t, 1, g.Held("a"))
	}
	s.set()
	g.Sync()
	assert.Zero(t, g.Held("a"))
	assert.Empty(t, r.tools)

	a := &tool{"a"}
	s.set(a)
	g = New(wrappingTable{r}, s, slog.New(slog.DiscardHandler))
	g.Sync()
	for range 100 {
		require.True(t, g.Begin(a))
		g.Finish(a)
	}
	assert.Equal(t, 1, g.Held("a"))
}

// However many goroutines change the offer at once, the registry ends up with
// the last offer.
func TestManyAtOnce(t *testing.T) {
	g, r, s := open()
	tools := make([]*tool, 8)
	for i := range tools {
		tools[i] = &tool{fmt.Sprint(i)}
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				t := tools[(i+n)%8]
				if g.Begin(t) {
					s.set(tools[:n%8]...)
					g.Finish(t)
				}
				g.Sync()
			}
		})
	}
	wg.Wait()
	s.set(tools[2:5]...)
	g.Sync()
	g.Close() // waits until the last Sync has ended
	assert.Len(t, r.tools, 3)
	for _, want := range tools[2:5] {
		assert.Contains(t, r.tools, want.name)
		assert.LessOrEqual(t, g.Held(want.name), 16, "of 3,200 registrations by 16 goroutines")
	}
	assert.Empty(t, g.pending)
}

// An activation may begin, and even end, while the registrar asks whether the
// tool is offered. The tool stays registered all the time.
func TestActivationWhileTheOfferIsAsked(t *testing.T) {
	a := &tool{"a"}
	g, r, s := open(a)
	s.set()
	s.asked = func() {
		s.asked = nil
		require.True(t, g.Begin(a))
		s.set(a)
		g.Finish(a)
	}
	g.Sync()
	assert.Contains(t, r.tools, "a")
	assert.Zero(t, r.removed, "the model was told that the tool is there")
}
