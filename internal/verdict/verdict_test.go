package verdict

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/room"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestByRules(t *testing.T) {
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
		want     Verdict
	}{
		{"nothing", nil, false, []bool{true, true, true}, false, Verdict{Standing: Deferred}},
		{"others are included", nil, false, []bool{true, true, true}, true, Verdict{Hidden, Others, 0}},
		{"a pin needs no rule", nil, true, []bool{true, true, true}, true, Verdict{Inline, Pin, 0}},
		{"the first rule decides", []uint16{include, summarize}, false, []bool{true, true, true}, true, Verdict{Deferred, Count, include}},
		{"what does not apply does not decide", []uint16{include, summarize}, false, []bool{false, true, true}, true, Verdict{Summarized, Rule, summarize}},
		{"a pin beats what summarizes", []uint16{summarize}, true, []bool{true, true, true}, false, Verdict{Inline, Pin, 0}},
		{"what excludes beats a pin", []uint16{include, exclude}, true, []bool{true, true, true}, false, Verdict{Hidden, Excluded, exclude}},
	} {
		assert.Equal(t, test.want, ByRules(set, test.matching, test.pinned, test.applies, test.included), test.name)
	}
}

// Each reason has its words, and those about something name it.
func TestReasonText(t *testing.T) {
	t.Parallel()
	for r := range Waits {
		assert.NotEmpty(t, r.Text(nil))
		assert.NotContains(t, r.Text(nil), "%!d(string", "%d", r)
	}
	assert.Equal(t, `rule "x" excludes it`, Excluded.Text("x"))
	assert.Equal(t, "7 tools before it are inline", Count.Text(7))
	assert.Equal(t, "there is room", Fits.Text(7))
}

func TestRoomAdmitsUntilItIsOver(t *testing.T) {
	t.Parallel()
	list := room.Limits{Items: 10, Tokens: 100, ItemsEach: 2, TokensEach: 100}
	r := Room[string]{Tools: 4, Tokens: 20, List: room.New[string](list)}
	assert.Equal(t, Verdict{Inline, Server, 0}, r.Admit("a", 5, Server))
	assert.True(t, r.Take("a", 5), "a pin")
	assert.Equal(t, Verdict{Deferred, List, 0}, r.Admit("a", 1, Fits), "the list has no room for another of its group")
	assert.Equal(t, Waits, r.Over(), "which keeps out no other")
	assert.Equal(t, Verdict{Inline, Used, 0}, r.Admit("b", 1, Used))
	assert.Equal(t, Verdict{Deferred, Tokens, 0}, r.Admit("c", 10, Fits))
	assert.Equal(t, Verdict{Deferred, Tokens, 0}, r.Admit("d", 1, Fits), "after the first with too many tokens, none is admitted")

	r = Room[string]{Tools: 1, Tokens: 20, List: room.New[string](list)}
	assert.Equal(t, Verdict{Inline, Fits, 0}, r.Admit("a", 1, Fits))
	assert.Equal(t, Verdict{Deferred, Count, 0}, r.Admit("b", 1, Fits))
}
