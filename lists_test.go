package mcphybrid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/provider"
)

// What sessions list that see no tool, and what they list once there is one.
func TestListsWithoutTools(t *testing.T) {
	t.Parallel()
	compareTable(t, "nothinglisted", "Lists of sessions that see no tool, and what a first tool adds to them.", func(table *factTable) {
		plan := []Skill{{Name: "plan", Description: "How to plan.", Body: "Plan."}}
		for _, has := range []struct {
			name string
			opts Options
		}{
			{"nothing", Options{}},
			{"a skill", Options{Skills: plan}},
			{"resources", Options{Servers: []ServerConfig{{Name: "archive", InProcess: newArchive()}}}},
		} {
			for d := range disclosures {
				opts := has.opts
				opts.Inline, opts.Access = InlineOptions{Max: 1}, Access{Deny: []string{"mcp_archive__find", "mcp_archive__link"}}
				m := NewManager(&opts)
				require.NoError(table, m.Start(table.Context()))
				s := m.NewSession(&SessionOptions{Disclosure: d})
				before := namesOf(s.Tools())
				sections := s.PromptSections(PromptFull)
				require.NoError(table, m.AddTools("late", echoTool("come", ""), echoTool("go", "")))
				after := namesOf(s.Tools())
				table.row(fmt.Sprintf("%s, by %s", has.name, d), before, fmt.Sprintf("%d bytes of sections", len(sections)), fmt.Sprint("then ", after[min(len(before), len(after)):]))
				s.Close()
				require.NoError(table, m.Close())
			}
		}
	})
}

// A server is removed once, by whoever is first.
func TestServerIsRemovedOnce(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 1)}})
	a, b := m.sources[0], m.sources[1]
	assert.True(t, m.remove(a))
	assert.False(t, m.remove(a))
	assert.Equal(t, []string{"a"}, m.removedServers)
	require.NoError(t, m.Close())
	assert.False(t, m.remove(b), "Close was first")
	assert.Equal(t, []string{"a"}, m.removedServers)
}

// A line that counts tools tells whose they are, also where their server is missing.
func TestCountedToolsOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	options := func(servers ...ServerConfig) *Options {
		return &Options{Prompt: PromptOptions{ListInline: true, MaxListingTokens: 4}, Servers: servers}
	}
	m, _ := newTestManager(t, options(inProcess("a", 2), inProcess("b", 3)))
	s := m.NewSession(&SessionOptions{Disclosure: ByActivation})
	assert.Contains(t, s.PromptSections(PromptFull), "- 3 tools of b\n")
	state := s.Save()
	elsewhere, _ := newTestManager(t, options(inProcess("a", 2)))
	restored, _, err := elsewhere.RestoreSession(state, nil)
	require.NoError(t, err)
	for name, away := range map[string]string{"mcp_b__tool_009": "b", "mcp_a__tool_009": "", "mcp_c__tool_009": ""} {
		_, err := restored.Call(t.Context(), name, nil)
		var unknown *UnknownToolError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, away, unknown.Away, name)
	}
}

// A session that has shown nothing yet begins with its own list, if what others begin with has no
// room beside what the host has activated.
func TestFirstListBesideActiveTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 4}, List: ListOptions{Max: 4, ServerMax: 4}, Servers: []ServerConfig{inProcess("a", 3)},
		Rules: []Rule{{Name: "listed", Patterns: []string{"tool_002"}, Action: RuleSummarize}}})
	s, other := m.NewSession(nil), m.NewSession(nil)
	require.True(t, s.ActivateToolIfDeferred("mcp_a__tool_002"))
	require.NoError(t, m.AddTools("late", echoTool("come", ""), echoTool("go", "")))
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_001", "mcp_late__come", "mcp_late__go", SearchToolName}, toolNames(other.Tools()))
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_001", "mcp_late__come", SearchToolName, DescribeToolName, CallToolName, "mcp_a__tool_002"}, toolNames(s.Tools()))
	assert.Equal(t, []string{"mcp_late__go"}, toolNames(s.DeferredTools()))
}

// A server that is here and has not listed its tools, whatever is wrong with it, has not taken them
// away: a conversation goes on with them.
func TestToolsOfAServerThatHasNotListed(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("s-0", 1), inProcess("s_0", 1)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByAddition})
	_, err := s.Turn(provider.Anthropic, "")
	require.NoError(t, err)
	state := s.Save()
	gone := "mcp_s_0_b60dd8e5__tool_000"
	require.Contains(t, toolNames(s.Tools()), gone)
	for name, of := range map[string]struct {
		cfg     ServerConfig
		removed []string
	}{
		"it can't start":  {ServerConfig{Name: "s_0", Command: "/nonexistent/command"}, nil},
		"it has no tools": {serving("s_0"), []string{gone}},
	} {
		elsewhere := NewManager(&Options{Servers: []ServerConfig{inProcess("s-0", 1), of.cfg}})
		_ = elsewhere.Start(t.Context())
		assert.NotEmpty(t, elsewhere.Problems(), "its name collides")
		restored, _, err := elsewhere.RestoreSession(state, &SessionOptions{Disclosure: ByAddition})
		require.NoError(t, err)
		turn, err := restored.Turn(provider.Anthropic, "")
		require.NoError(t, err)
		assert.Equal(t, of.removed, turn.Removed, name)
		require.NoError(t, elsewhere.Close())
	}
}
