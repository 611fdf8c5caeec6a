package mcphybrid

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC F4: Compact, and nothing else, limits the active tools by number and by
// turns. It never drops a pin or a tool of this turn.
func TestSpecF4CompactBoundsTheActiveTools(t *testing.T) {
	t.Parallel()
	name := func(i int) string { return fmt.Sprintf("mcp_a__tool_%03d", i) }
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Active: ActiveOptions{Max: 3, Turns: 4}, Pins: []string{name(9)}, Servers: []ServerConfig{inProcess("a", 10)}})
	use := func(i int) {
		_, err := m.Call(t.Context(), name(i), nil)
		require.NoError(t, err)
	}
	active := func() []string { return namesOf(m.ActiveTools()) }

	// A batch can't evict its own tools, however large it is.
	require.Len(t, m.ActivateTools([]string{name(1), name(2), name(3), name(4), name(5)}), 5)
	assert.Empty(t, m.Default().Compact())
	assert.Len(t, active(), 5)

	// The least recently used tools go first; those of this turn stay.
	m.Default().NextTurn()
	use(1)
	m.Default().NextTurn()
	use(4)
	assert.Equal(t, []string{name(2), name(3)}, namesOf(m.Default().Compact()))
	assert.Equal(t, []string{name(1), name(4), name(5)}, active())
	assert.NoError(t, checkRegistry(m.def, r))
	_, registered := r.Get(name(2))
	assert.False(t, registered)

	// A tool that was dropped can be found and called again. It then stands at
	// the end of the list.
	hits := m.Search(name(2), 1)
	require.Len(t, hits, 1)
	assert.Equal(t, name(2), hits[0].Tool.Name())
	use(2)
	use(9)
	assert.Equal(t, []string{name(1), name(4), name(5), name(2)}, active())
	assert.Equal(t, []string{name(5)}, namesOf(m.Default().Compact()))

	// Too many turns without use, with fewer tools than the limit.
	for range 3 {
		m.Default().NextTurn()
	}
	assert.Equal(t, []string{name(1)}, namesOf(m.Default().Compact()), "used in turn 1, of 5")
	use(4)
	m.Default().NextTurn()
	assert.Equal(t, []string{name(2)}, namesOf(m.Default().Compact()))
	assert.Equal(t, []string{name(4)}, active())
	assert.Equal(t, []string{name(9)}, namesOf(m.InlineTools()), "a pin is inline and stays")
	assert.Len(t, m.def.lastUsed, 1)
}

func TestCompactWithoutLimits(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Active: ActiveOptions{Max: NoLimit, Turns: NoLimit}, Servers: []ServerConfig{inProcess("a", 100)}})
	m.ActivateTools(namesOf(m.DeferredTools()))
	for range 1000 {
		m.Default().NextTurn()
	}
	assert.Empty(t, m.Default().Compact())
	assert.Len(t, m.ActiveTools(), 100)
}

// The host is told what leaves while no lock is held.
func TestCompactTellsTheHost(t *testing.T) {
	t.Parallel()
	var events []Event
	var m *Manager
	m, _ = newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Active: ActiveOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 4)}, OnEvent: ofSessions(func(e Event) {
		e.Session.Stats()
		m.Stats()
		events = append(events, e)
	})})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_003", "mcp_a__tool_001"})
	s.NextTurn()
	s.Compact()
	assert.Equal(t, []Event{
		{Kind: EventActivate, Session: s, Tools: []string{"mcp_a__tool_003", "mcp_a__tool_001"}},
		{Kind: EventEvict, Session: s, Tools: []string{"mcp_a__tool_003"}},
	}, events)
}

// SPEC F3: a child may use what its parent may use, minus what is taken from
// it, and leaves no trace in the parent.
func TestSpecF3Child(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 5), inProcess("b", 5)}})
	parent := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*_003"}}})
	parent.ActivateTools([]string{"mcp_a__tool_001"})
	before, tools := sentBytes(parent)
	state := parent.Save()

	child := parent.NewChild(&SessionOptions{Access: Access{Allow: []string{"mcp_b__*"}}})
	grandchild := child.NewChild(&SessionOptions{Access: Access{Allow: []string{"*"}}})
	for _, s := range []*Session{child, grandchild} {
		assert.Empty(t, s.ActiveTools())
		assert.Equal(t, []string{"mcp_b__tool_000"}, namesOf(s.InlineTools()))
		assert.Equal(t, []string{"mcp_b__tool_001", "mcp_b__tool_002", "mcp_b__tool_004"}, namesOf(s.DeferredTools()))
		for _, name := range []string{"mcp_a__tool_001", "mcp_b__tool_003", "mcp_a__tool_000"} {
			_, err := s.Call(t.Context(), name, nil)
			assert.ErrorIs(t, err, ErrNotPermitted)
		}
		_, err := s.Call(t.Context(), "mcp_b__tool_002", nil)
		require.NoError(t, err)
		_, err = s.Call(t.Context(), SearchToolName, `{"query":"chore 4"}`)
		require.NoError(t, err)
		s.NextTurn()
		assert.NoError(t, check(m, s))
	}
	after, toolsAfter := sentBytes(parent)
	assert.Equal(t, before, after)
	assert.Equal(t, tools, toolsAfter)
	assert.Equal(t, []string{"mcp_a__tool_001"}, namesOf(parent.ActiveTools()))
	assert.Equal(t, snapshot.Usage{}, parent.Stats().Usage)
	assert.Equal(t, state[:50], parent.Save()[:50])

	parent.Close()
	_, err := child.Call(t.Context(), "mcp_b__tool_001", nil)
	assert.NoError(t, err, "a child may outlive its parent")
	assert.Empty(t, m.Default().NewChild(&SessionOptions{Access: Access{Deny: []string{"*"}}}).Tools())
}
