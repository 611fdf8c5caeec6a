package mcphybrid

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartitionByRules(t *testing.T) {
	t.Parallel()
	rule := func(action rules.Action) rules.Rule {
		return rules.Rule{Name: string(action), Patterns: []string{"*"}, Action: action}
	}
	set, err := rules.NewSet([]rules.Rule{rule(rules.Include), rule(rules.Summarize), rule(rules.Exclude)})
	require.NoError(t, err)
	const include, summarize, exclude = 0, 1, 2
	for _, test := range []struct {
		name     string
		matching []uint16
		pinned   bool
		applies  []bool
		included bool
		want     verdict
	}{
		{"nothing", nil, false, []bool{true, true, true}, false, verdict{standing: deferred}},
		{"others are included", nil, false, []bool{true, true, true}, true, verdict{hidden, whyNotIncluded, 0}},
		{"a pin needs no rule", nil, true, []bool{true, true, true}, true, verdict{inline, whyPin, 0}},
		{"the first rule decides", []uint16{include, summarize}, false, []bool{true, true, true}, true, verdict{deferred, whyUndecided, include}},
		{"what does not apply does not decide", []uint16{include, summarize}, false, []bool{false, true, true}, true, verdict{summarized, whyRule, summarize}},
		{"a pin beats what summarizes", []uint16{summarize}, true, []bool{true, true, true}, false, verdict{inline, whyPin, 0}},
		{"what excludes beats a pin", []uint16{include, exclude}, true, []bool{true, true, true}, false, verdict{hidden, whyExcluded, exclude}},
	} {
		assert.Equal(t, test.want, (&policy{rules: set}).byRules(&matched{rules: test.matching, pinned: test.pinned}, test.applies, test.included), test.name)
	}
}

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

func TestRoomForInlineToolsEnds(t *testing.T) {
	t.Parallel()
	list := listLimits{items: 10, tokens: 100, itemsEach: 2, tokensEach: 100}
	r := inlineRoom{tools: 4, tokens: 20, list: newListRoom(list)}
	assert.Equal(t, verdict{inline, whyServer, 0}, r.verdictOn(origin{server: "a"}, 5, whyServer))
	assert.True(t, r.tryAdd(origin{server: "a"}, 5), "a pin")
	assert.Equal(t, verdict{deferred, whyListFull, 0}, r.verdictOn(origin{server: "a"}, 1, whyFits), "the list has no room for another of its group")
	_, full := r.isFull()
	assert.False(t, full, "which keeps out no other")
	assert.Equal(t, verdict{inline, whyUsed, 0}, r.verdictOn(origin{server: "b"}, 1, whyUsed))
	assert.Equal(t, verdict{deferred, whyTokens, 0}, r.verdictOn(origin{server: "c"}, 10, whyFits))
	assert.Equal(t, verdict{deferred, whyTokens, 0}, r.verdictOn(origin{server: "d"}, 1, whyFits), "after the first with too many tokens, none is admitted")

	r = inlineRoom{tools: 1, tokens: 20, list: newListRoom(list)}
	assert.Equal(t, verdict{inline, whyFits, 0}, r.verdictOn(origin{server: "a"}, 1, whyFits))
	assert.Equal(t, verdict{deferred, whyCount, 0}, r.verdictOn(origin{server: "b"}, 1, whyFits))
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
