package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of a user and the system, whatever either changes: each partition decides what it should, and
// what sessions are told of new servers is what a look at all servers tells.
func TestPartitionsFollowChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(mcptest.Long(60, 6)) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		opts := &Options{Inline: InlineOptions{Max: rnd.IntN(12) - 1}}
		if rnd.IntN(2) == 0 {
			opts.List.Max = 2 + rnd.IntN(6)
		}
		if rnd.IntN(2) == 0 {
			opts.Pins = []string{"*_pin*"}
			opts.Rules = []Rule{{Name: "sum", Patterns: []string{"*_sum*"}, Action: RuleSummarize}, {Name: "out", Intent: "in", Patterns: []string{"*_out*"}, Action: RuleExclude}}
		}
		m, _ := newTestManager(t, opts)
		u, err := m.NewUser("ann", nil)
		require.NoError(t, err)
		var sessions []*Session
		for _, of := range []*Manager{m, u.own} {
			sessions = append(sessions, of.NewSession(nil), of.NewSession(nil), of.NewSession(&SessionOptions{Intent: "in"}),
				of.NewSession(&SessionOptions{Access: Access{Deny: []string{"b/*", "mcp_c__*1"}}}),
				of.NewSession(&SessionOptions{Access: Access{Deny: []string{SearchToolName}}}))
		}
		change := func(of *Manager) {
			name := string(rune('a' + rnd.IntN(6)))
			of.RemoveServer(name)
			if rnd.IntN(3) > 0 {
				for i, kind := range []string{"pin", "sum", "out", "x", "y"} {
					if rnd.IntN(2) == 0 {
						continue
					}
					require.NoError(t, of.AddTools(name, echoTool(fmt.Sprintf("%s_%s%d", kind, kind, i), fmt.Sprint("Does ", rnd.IntN(3)))))
					break
				}
			}
		}
		for range 40 {
			change([]*Manager{m, u.own}[rnd.IntN(2)])
			for _, s := range sessions {
				if rnd.IntN(3) == 0 {
					continue // it looks later
				}
				v := s.view()
				require.NoError(t, checkPartition(v.partition), "seed %d", seed)
				if last := lastServers(s.shown); last != nil && v.overflow == nil {
					if more, ok := v.beyond(v.covered, s.shown); ok {
						require.Equal(t, unmentioned(v.searchableServers(), s.shown), more, "seed %d", seed)
					}
				}
				s.Tools()
				require.NoError(t, checkMentions(s), "seed %d", seed)
				if rnd.IntN(12) == 0 {
					s.Compact()
				}
			}
		}
		require.NoError(t, check(m, sessions...))
	}
}

// A plainPartition is what a partition decides, tool by tool.
type plainPartition struct {
	verdicts   [][]verdict // by catalog and tool
	inline     []*BridgeTool
	searchable int
	summarized bool
}

// oneByOne decides what p does with nothing shared or taken over: each tool by itself, and then all
// in order for what room there is.
func oneByOne(p *partition) (plain plainPartition) {
	pol, seen := p.policy, 0
	w := newScreener(pol, p.rights, p.intent)
	for i, c := range p.catalogs {
		list := make([]verdict, len(c.tools))
		for j, t := range c.tools {
			if list[j] = w.verdict(t); p.overridden(i, t) {
				list[j] = verdict{why: whyOverridden}
			}
			if list[j].standing != hidden {
				seen++
			}
		}
		plain.verdicts = append(plain.verdicts, list)
	}
	r := inlineRoom{tools: pol.maxInline - p.inlineUsed.tools, tokens: pol.maxTokensWhenDeferring, list: newListRoom(pol.list)}
	if seen+p.inlineUsed.tools <= pol.allInlineUpTo {
		r.tools, r.tokens = seen, pol.maxTokens
	}
	if r.tokens < math.MaxInt {
		r.tokens -= p.inlineUsed.tokens
	}
	type place struct{ i, j int }
	each := func(f func(at place, v *verdict, t *BridgeTool)) {
		for i, c := range p.catalogs {
			for j, t := range c.tools {
				f(place{i, j}, &plain.verdicts[i][j], t)
			}
		}
	}
	maySearch := mayUse(p.rights, SearchToolName)
	var first []place
	order, wanted := make(map[place]int), make(map[origin]int)
	each(func(at place, v *verdict, t *BridgeTool) {
		switch {
		case v.standing == hidden:
		case !maySearch && v.why != whyPin:
			*v = verdict{standing: inline, why: whyNoSearch}
		case !maySearch:
		case v.why == whyPin:
			if !r.tryAdd(t.origin(), pol.tokens(t)) {
				*v = verdict{standing: deferred, why: whyListFull}
			}
		case *v == undecided:
			if t.def.Always && wanted[t.origin()] < maxAlwaysLoaded {
				wanted[t.origin()]++
				order[at] = -1
			} else {
				order[at] = pol.popularity[t.name]
			}
			if order[at] != 0 {
				first = append(first, at)
			}
		}
	})
	slices.SortStableFunc(first, func(a, b place) int { return cmp.Compare(order[a], order[b]) })
	decide := func(v *verdict, t *BridgeTool, why placementReason) {
		if *v == undecided {
			*v = r.verdictOn(t.origin(), pol.tokens(t), why)
		}
	}
	for _, at := range first {
		why := whyUsed
		if order[at] < 0 {
			why = whyServer
		}
		decide(&plain.verdicts[at.i][at.j], p.catalogs[at.i].tools[at.j], why)
	}
	each(func(_ place, v *verdict, t *BridgeTool) {
		decide(v, t, whyFits)
		switch v.standing {
		case inline:
			plain.inline = append(plain.inline, t)
		case summarized, deferred:
			plain.searchable++
			plain.summarized = plain.summarized || v.standing == summarized
		}
	})
	return plain
}

// checkPartition returns how p differs from what it should have decided, or nil.
func checkPartition(p *partition) error {
	if p.ended {
		return nil
	}
	want := oneByOne(p)
	for i, c := range p.catalogs {
		for j, t := range c.tools {
			if got := p.verdicts[i].ofTool(j); got != want.verdicts[i][j] {
				return fmt.Errorf("the verdict on %s is %+v, must be %+v", t.name, got, want.verdicts[i][j])
			}
		}
	}
	if !slices.Equal(p.inlineTools, want.inline) || p.searchableCount != want.searchable || p.summarized != want.summarized {
		return fmt.Errorf("inline are %q, %d are searchable, summarized %t; must be %q, %d, %t",
			namesOf(p.inlineTools), p.searchableCount, p.summarized, namesOf(want.inline), want.searchable, want.summarized)
	}
	return nil
}

// The room for inline tools goes to those that their server wants always loaded, five at most, and
// then to the others, in registration order.
func TestAlwaysLoadedToolsGetRoomFirst(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: maxAlwaysLoaded + 1}})
	var tools []mcpserver.ServerTool
	for i := range maxAlwaysLoaded + 3 {
		tool := echoTool(fmt.Sprint("tool", i), "Does something")
		if i >= 2 { // six of eight
			tool.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"anthropic/alwaysLoad": true})
		}
		tools = append(tools, tool)
	}
	require.NoError(t, m.AddTools("s", tools...))
	assert.Equal(t, []string{"mcp_s__tool0", "mcp_s__tool2", "mcp_s__tool3", "mcp_s__tool4", "mcp_s__tool5", "mcp_s__tool6"}, namesOf(m.InlineTools()))
	assert.Equal(t, []string{"mcp_s__tool1", "mcp_s__tool7"}, namesOf(m.DeferredTools()))
}

// What servers want always loaded gets room before the most used, and these before the others.
func TestCandidatesInOrder(t *testing.T) {
	t.Parallel()
	always, first, second := &candidate{always: true, used: 9}, &candidate{used: 1}, &candidate{used: 2}
	list := []*candidate{second, first, always}
	slices.SortStableFunc(list, (*candidate).compare)
	assert.Equal(t, []*candidate{always, first, second}, list)
}

// Partitions that share a screening leave it as it is, and a user's held back tool that has the name of the
// only summarized one leaves none.
func TestPartitionsShareScreenings(t *testing.T) {
	t.Parallel()
	always := func(name string) mcpserver.ServerTool {
		tool := echoTool(name, "Does it")
		tool.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"anthropic/alwaysLoad": true})
		return tool
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 8}, Trust: TrustQuarantine, Rules: []Rule{{Name: "short", Patterns: []string{"same/*"}, Action: RuleSummarize}}})
	for i := range 12 {
		if i < 3 {
			require.NoError(t, m.AddTools(fmt.Sprint("plain", i), echoTool("one", "Does one")))
		} else {
			require.NoError(t, m.AddTools(fmt.Sprint("wanted", i), always("one"), echoTool("two", "Does two")))
		}
	}
	require.NoError(t, m.AddTools("same", echoTool("one", "Does one")))
	for i := range 4 {
		u, err := m.NewUser(fmt.Sprint("user", i), nil)
		require.NoError(t, err)
		require.NoError(t, checkPartition(u.Default().view().partition))
		assert.True(t, u.Default().view().summarized)
		held := changing(echoTool("one", "Does another"))
		require.NoError(t, u.AddServer(t.Context(), ServerConfig{Name: "same", InProcess: held}))
		held.AddTools(echoTool("one", "Does what was not agreed to"))
		soon(t, func() bool { return len(u.Problems()) == 1 })
		require.NoError(t, checkPartition(u.Default().view().partition))
		assert.False(t, u.Default().view().summarized)
		require.NoError(t, checkPartition(m.NewSession(&SessionOptions{Access: Access{Deny: []string{fmt.Sprint("mcp_plain", i, "__*")}}}).view().partition))
	}
}
