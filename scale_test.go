package mcphybrid

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unchanged session's sections cost nothing, also after an item was added to what
// it begins with.
func TestSectionsAreWrittenOnce(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	s := m.NewSession(nil)
	for range 2 {
		for what, look := range map[string]func() string{
			"all": func() string { return s.PromptSections(PromptFull) }, "inline": s.InlineSection, "search": s.SearchSection,
		} {
			require.NotEmpty(t, look(), what)
			assert.Less(t, testing.AllocsPerRun(10, func() { look() }), 10.0, what)
		}
		s.ActivateTools([]string{"mcp_s9__tool_003"})
		s.Tools()
	}
	before := s.PromptSections(PromptFull)
	require.NoError(t, m.AddTools("more", echoTool("one", "more")))
	after := s.PromptSections(PromptFull)
	assert.Equal(t, before, after[:len(before)])
	assert.Contains(t, after[len(before):], "more (1)")
	assert.Less(t, testing.AllocsPerRun(10, func() { s.PromptSections(PromptFull) }), 25.0, "only what was added is written again")
	assert.NoError(t, check(m, s))
}

// What is kept of sessions with different rights has a limit, and those beyond it take
// the place of others.
func TestOpeningsHaveALimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Skills: someSkills(3)})
	require.NoError(t, m.AddTools("a", echoTool("one", "")))
	count := func() (n int) {
		m.def.view().openings[ByActivation].all.Range(func(any, any) bool { n++; return true })
		return n
	}
	for i := range maxOpenings + 40 {
		s := m.NewSession(&SessionOptions{Skills: Access{Deny: []string{fmt.Sprint("other", i)}}})
		require.NotEmpty(t, s.PromptSections(PromptFull))
		require.Same(t, s.began, s.view().opening(), "the newest is kept")
	}
	assert.Equal(t, maxOpenings, count())
}

// Sessions of 400 customers, each with other rights, take turns. Each set of rights is
// judged once.
func TestRightsAreJudgedOnce(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	made := m.selections.Load()
	for range 3 {
		for i := range 400 {
			s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{fmt.Sprint("customer", i)}}})
			require.NotEmpty(t, s.PromptSections(PromptFull))
		}
		runtime.GC() // nothing but the Manager keeps them
	}
	assert.EqualValues(t, 400, m.selections.Load()-made)
}

// Selections have a limit, and those beyond it take the place of others.
func TestSelectionsHaveALimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for i := range maxSelections + 40 {
		m.NewSession(&SessionOptions{Intent: fmt.Sprint(i)}).Tools()
	}
	assert.Len(t, m.selected.byKey, maxSelections)
	none := &selectionSet{catalogs: []*catalog{{tools: make([]*BridgeTool, maxVerdicts/500)}}}
	assert.Equal(t, 499, none.most())
	none.catalogs[0].tools = make([]*BridgeTool, maxVerdicts/10)
	assert.Equal(t, maxOpenings, none.most())
}
