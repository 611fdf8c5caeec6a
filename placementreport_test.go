package mcphybrid

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each reason has its words, and those about something name it.
func TestReasonText(t *testing.T) {
	t.Parallel()
	for r := range whyUndecided {
		assert.NotEmpty(t, r.text(nil))
		assert.NotContains(t, r.text(nil), "%!d(string", "%d", r)
	}
	assert.Equal(t, `rule "x" excludes it`, whyExcluded.text("x"))
	assert.Equal(t, "7 tools before it are inline", whyCount.text(7))
	assert.Equal(t, "there is room", whyFits.text(7))
}

// The reason names the limit that holds: half as many tokens where tools are deferred.
func TestReasonNamesTheTokens(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	tools := mcptest.Chores("a", 60)
	for i := range tools {
		tools[i].Tool.Description = strings.Repeat("long ", 1200)
	}
	require.NoError(t, m.AddTools("a", tools...))
	list := m.Default().Placements()
	assert.Equal(t, "the budget of 16000 tokens for inline tools ends before it", list[len(list)-1].Reason)
}
