package mcphybrid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
