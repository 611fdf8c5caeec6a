package mcphybrid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judged returns how tools stand in a session that may use all of them.
func judged(p *policy, tools []*BridgeTool) *partition { return judgedAs(p, tools, "") }

func judgedAs(p *policy, tools []*BridgeTool, intent string) *partition {
	s := &partition{catalogs: []*catalog{{tools: tools}}, policy: p, intent: intent}
	decideAnew(s)
	return s
}

// decideAnew decides with nothing decided before.
func decideAnew(p *partition) {
	w := newScreener(p.policy, p.rights, p.intent)
	var all []*screening
	for _, c := range p.catalogs {
		all = append(all, w.catalog(c, nil, nil, 1))
	}
	p.decide(w, all)
}

// namedTool returns a tool that has only a name and 100 tokens.
func namedTool(name string) *BridgeTool {
	t := &BridgeTool{name: name, def: &definition{Own: name}}
	t.tokens.Store(100)
	return t
}

func policyOf(opts Options) *policy {
	opts.setDefaults()
	return newPolicy(&opts, func(t *BridgeTool) int { return int(t.tokens.Load()) }, nil)
}

func standingAs(s *partition, want standing) (list []*BridgeTool) {
	for t, st := range s.each() {
		if st == want {
			list = append(list, t)
		}
	}
	return list
}

func TestPartition(t *testing.T) {
	t.Parallel()
	// Each letter is a tool; capitals are pinned.
	tests := []struct {
		name             string
		tools            string
		limit            int
		inline, deferred string
	}{
		{"no tools", "", 3, "", ""},
		{"below the limit", "ab", 3, "ab", ""},
		{"at the limit", "abc", 3, "abc", ""},
		{"at the limit with pins", "aBC", 3, "aBC", ""},
		{"one over the limit", "abcd", 3, "abc", "d"},
		{"far over the limit", "abcdefgh", 3, "abc", "defgh"},
		{"a pin at the end displaces the last other", "abcD", 3, "abD", "c"},
		{"a pin at the start", "Abcd", 3, "Abc", "d"},
		{"pins in the middle", "abCdEf", 3, "aCE", "bdf"},
		{"as many pins as the limit", "aBCDe", 3, "BCD", "ae"},
		{"more pins than the limit", "aBCDEf", 3, "BCDE", "af"},
		{"only pins", "ABCDE", 3, "ABCDE", ""},
		{"limit 0", "abc", 0, "", "abc"},
		{"limit 0 with a pin", "aBc", 0, "B", "ac"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var tools []*BridgeTool
			for _, r := range test.tools {
				tools = append(tools, namedTool(string(r)))
			}
			names := func(tools []*BridgeTool) string {
				var b strings.Builder
				for _, tool := range tools {
					b.WriteString(tool.name)
				}
				return b.String()
			}
			var pins []string
			for _, r := range strings.ToUpper(test.tools) {
				pins = append(pins, string(r))
			}
			s := judged(policyOf(Options{Pins: pins, Inline: InlineOptions{Max: cmp.Or(test.limit, -1)}}), tools)
			assert.Equal(t, test.inline, names(s.inlineTools), "inline")
			assert.Equal(t, test.deferred, names(standingAs(s, deferred)), "deferred")
		})
	}
}

func TestPartitionProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tools := make([]*BridgeTool, rnd.IntN(60))
		place := make(map[*BridgeTool]int)
		pins := make(map[*BridgeTool]bool)
		var pinned []string
		share := rnd.Float64()
		for i := range tools {
			tools[i] = namedTool(fmt.Sprintf("tool%d", i))
			place[tools[i]] = i
			if rnd.Float64() < share*share {
				pins[tools[i]] = true
				pinned = append(pinned, tools[i].name)
			}
		}
		limit := rnd.IntN(50)
		sel := judged(policyOf(Options{Pins: pinned, Inline: InlineOptions{Max: cmp.Or(limit, -1)}}), tools)
		inline, deferred := sel.inlineTools, standingAs(sel, deferred)

		if len(tools) <= limit {
			require.Equal(t, append([]*BridgeTool(nil), tools...), append([]*BridgeTool(nil), inline...), "seed %d", seed)
			require.Empty(t, deferred, "seed %d", seed)
			continue
		}
		require.Len(t, inline, max(limit, len(pins)), "seed %d", seed)
		require.Len(t, deferred, len(tools)-len(inline), "seed %d", seed)
		seen := make(map[*BridgeTool]bool)
		for _, list := range [][]*BridgeTool{inline, deferred} {
			for i, tool := range list {
				require.False(t, seen[tool], "seed %d: %s is there twice", seed, tool.name)
				seen[tool] = true
				require.True(t, i == 0 || place[list[i-1]] < place[tool], "seed %d: %s is out of order", seed, tool.name)
			}
		}
		require.Len(t, seen, len(tools), "seed %d", seed)
		lastFree := -1 // tokens of the inline tools that are not pinned
		for _, tool := range inline {
			if !pins[tool] {
				lastFree = place[tool]
			}
		}
		for _, tool := range deferred {
			require.False(t, pins[tool], "seed %d: %s is pinned", seed, tool.name)
			require.Greater(t, place[tool], lastFree, "seed %d: %s should be inline before a later one", seed, tool.name)
		}
	}
}

// A state can be forged by who stores it. The intent, by which rules may forbid, is
// that of the host or of the parent.
func TestStateGivesNoIntent(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Rules: []Rule{
		{Name: "admin", Intent: "admin", Patterns: []string{"*"}, Action: RuleInclude},
		{Name: "browse", Intent: "browse", Patterns: []string{"*read*"}, Action: RuleInclude},
	}})
	require.NoError(t, m.AddTools("s", echoTool("read", ""), echoTool("drop", "")))
	parent := m.NewSession(&SessionOptions{Intent: "browse"})
	state := string(parent.NewChild(nil).Save())
	require.Contains(t, state, `"intent":"browse"`)
	for _, intent := range []string{"admin", "browse", "other", ""} {
		forged := json.RawMessage(strings.Replace(state, `"intent":"browse"`, fmt.Sprintf(`"intent":%q`, intent), 1))
		child, _, err := parent.RestoreChild(forged, nil)
		require.NoError(t, err)
		restored, _, err := m.RestoreSession(forged, &SessionOptions{Intent: "browse"})
		require.NoError(t, err)
		for _, s := range []*Session{child, restored} {
			_, err = s.Call(t.Context(), "mcp_s__drop", nil)
			assert.ErrorIs(t, err, ErrNotPermitted, intent)
			_, err = s.Call(t.Context(), "mcp_s__read", nil)
			assert.NoError(t, err)
			assert.NoError(t, check(m, s))
		}
		s, _, err := m.RestoreSession(forged, nil)
		if intent == "" {
			require.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, fmt.Sprintf("mcphybrid: the saved session had the intent %q: set SessionOptions.Intent to that of the new one", intent))
		assert.Nil(t, s)
	}
	child := parent.NewChild(&SessionOptions{Intent: "admin"}) // the host may say so
	_, err := child.Call(t.Context(), "mcp_s__drop", nil)
	assert.NoError(t, err)
}

// Where tools are deferred anyway, half of the tokens bounds what the order of servers costs.
func TestFewerInlineTokensBesideDeferredTools(t *testing.T) {
	t.Parallel()
	inlineOf := func(opts Options, tools int) int {
		var list []*BridgeTool
		for i := range tools {
			tool := namedTool(fmt.Sprint(i))
			tool.tokens.Store(800)
			list = append(list, tool)
		}
		return len(judged(policyOf(opts), list).inlineTools)
	}
	assert.Equal(t, 40, inlineOf(Options{}, 40))
	assert.Equal(t, 20, inlineOf(Options{}, 41))
	assert.Equal(t, 35, inlineOf(Options{Inline: InlineOptions{MaxTokens: 28_000}}, 41), "the host's number")
	assert.Equal(t, 40, inlineOf(Options{Inline: InlineOptions{MaxTokens: NoLimit}}, 41))
}

// What restored tools use of the room, others do not get: neither their number nor their tokens.
func TestRoomThatRestoredToolsUse(t *testing.T) {
	t.Parallel()
	var tools []*BridgeTool
	for i := range 9 {
		tools = append(tools, namedTool(fmt.Sprint(i))) // of 100 tokens
	}
	for _, test := range []struct {
		used inlineUse
		want int
	}{
		{inlineUse{}, 5},
		{inlineUse{tools: 2, tokens: 0}, 4},
		{inlineUse{tools: 1, tokens: 250}, 2},
		{inlineUse{tools: 1, tokens: 900}, 0},
		{inlineUse{tools: 7, tokens: 0}, 0},
	} {
		s := &partition{catalogs: []*catalog{{tools: tools}}, policy: policyOf(Options{Inline: InlineOptions{Max: 6, MaxTokens: 500}})}
		s.inlineUsed = test.used
		decideAnew(s)
		assert.Len(t, s.inlineTools, test.want, "%+v", test.used)
	}
}

func TestPolicyByRules(t *testing.T) {
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
