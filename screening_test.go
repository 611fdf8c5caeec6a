package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			if got := p.verdicts[i].on(j); got != want.verdicts[i][j] {
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

// Whatever comes, goes and changes, a screening that takes over what has not changed is one that is made
// anew, shares what it took over, and tells what is new.
func TestScreening(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		pol := policyOf(Options{Pins: []string{"*pin"}, Rules: []Rule{
			{Name: "r", Patterns: []string{"*sum"}, Action: RuleSummarize}, {Name: "x", Patterns: []string{"*out"}, Action: RuleExclude},
		}})
		w := newScreener(pol, rules.Rights{{Deny: []string{"*denied"}}}, "")
		if seed%4 == 0 {
			w = newScreener(policyOf(Options{}), nil, "")
		}
		made := 0
		fresh := func(number int) *serverTools {
			s := &serverTools{number: number}
			var tools []*BridgeTool
			for range rnd.IntN(4) {
				made++
				t := namedTool(fmt.Sprintf("%d_%d_%s", number, made, []string{"pin", "sum", "out", "denied", "plain", "plain"}[rnd.IntN(6)]))
				t.def.Always = rnd.IntN(9) == 0
				s.alwaysLoaded = s.alwaysLoaded || t.def.Always
				tools = append(tools, t)
			}
			s.setTools(tools)
			return s
		}
		var servers []*serverTools
		var list toolList
		var all []*screening
		var plain *screening
		var lists []toolList
		numbers := 0
		for step := range 50 {
			servers = slices.Clone(servers)
			for range 1 + rnd.IntN(3) {
				switch at := rnd.IntN(len(servers) + 1); {
				case at == len(servers):
					servers = append(servers, fresh(numbers))
					numbers++
				case rnd.IntN(3) == 0:
					servers = slices.Delete(servers, at, at+1)
				case rnd.IntN(4) == 0: // it comes again, at the end
					again := servers[at]
					servers = append(slices.Delete(servers, at, at+1), again)
				default:
					servers[at] = fresh(servers[at].number)
				}
			}
			list = list.next(servers, numbers)
			c := &catalog{tools: list.tools, list: list}
			var before *screening
			if all != nil {
				before = all[len(all)-1]
			}
			plain = plainly.catalog(c, plain, nil, uint64(step+1))
			now := w.catalog(c, before, plain, uint64(step+1))
			want := w.catalog(c, nil, plainly.catalog(c, nil, nil, 1), 1)
			require.Equal(t, want.servers, now.servers, "seed %d", seed)
			require.Equal(t, []int{want.seen, want.summarized}, []int{now.seen, now.summarized}, "seed %d", seed)
			require.Equal(t, want.singled, now.singled, "seed %d", seed)
			assert.Same(t, now, w.catalog(c, now, plain, uint64(step+2)), "nothing has changed")
			all, lists = append(all, now), append(lists, list)
		}
		for i, was := range all {
			news, ok := all[len(all)-1].newsSince(was.line, was.number)
			require.True(t, ok)
			for k, s := range list.servers {
				if s == nil || len(s.tools) == 0 {
					continue
				}
				here := all[len(all)-1].servers[k]
				if there, ok := lists[i].place(s.number); ok && was.servers[there].version == s.version {
					continue
				}
				require.Contains(t, news, s.number, "seed %d, %d", seed, i)
				require.Equal(t, s.version, here.version)
			}
		}
		_, ok := all[3].newsSince(all[9].line, all[9].number)
		assert.False(t, ok || all[3].number == all[9].number, "it is from before")
		_, ok = all[9].newsSince(77, all[3].number)
		assert.False(t, ok, "another line")
	}
}

// A screening tells of so many changes, and then that it does not know.
func TestNewsOfScreeningsAreBounded(t *testing.T) {
	t.Parallel()
	w := newScreener(policyOf(Options{}), nil, "")
	var list toolList
	var first, now *screening
	for i := range 2 * maxScreeningNews {
		s := &serverTools{number: 0}
		s.setTools([]*BridgeTool{namedTool(fmt.Sprint(i))})
		list = list.next([]*serverTools{s}, 1)
		now = w.catalog(&catalog{tools: list.tools, list: list}, now, nil, uint64(i+1))
		if first == nil {
			first = now
		}
		_, ok := now.newsSince(first.line, first.number)
		assert.Equal(t, i < maxScreeningNews+1, ok, i)
		assert.LessOrEqual(t, len(now.news), maxScreeningNews)
	}
}

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

// checkMentions returns an error if a list does not mention a server that it is taken to mention.
func checkMentions(s *Session) error {
	v := s.view()
	if v.ended || s.covered == nil || s.covered != v.coverage {
		return nil
	}
	if more := unmentioned(v.searchableServers(), s.shown); more != nil {
		return fmt.Errorf("the list does not mention %+v", more.servers)
	}
	return nil
}

// A change is looked for among what changed, whatever a session may use and whose it is.
func TestLooksFollowChanges(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(*Manager) *Session{
		"alike": func(m *Manager) *Session { return m.NewSession(nil) },
		"own rights": func(m *Manager) *Session {
			return m.NewSession(&SessionOptions{Access: Access{Deny: []string{"server7/*"}}})
		},
		"a user": func(m *Manager) *Session {
			u, err := m.NewUser("ann", nil)
			require.NoError(t, err)
			require.NoError(t, u.AddTools("hers", echoTool("note", "Takes a note")))
			return u.NewSession(nil)
		},
	} {
		m, _ := newTestManager(t, nil)
		for i := range 60 {
			require.NoError(t, m.AddTools(fmt.Sprint("server", i), echoTool("one", "Does one"), echoTool("two", "Does two")))
		}
		s := made(m)
		s.Tools()
		before := s.view().partition
		require.NoError(t, m.AddTools("more", echoTool("other", "Does another thing")))
		s.Tools()
		now := s.view().partition
		require.NotEqual(t, before.id, now.id)
		assert.Nil(t, now.serverMentions.all, "%s: nobody looked at all servers", name)
		shared := 0
		for k, of := range before.screenings[0].servers {
			if of == now.screenings[0].servers[k] {
				shared++
			}
		}
		assert.Equal(t, 60, shared, name)
		assert.Equal(t, "more", lastServers(s.shown).servers[0].Server, name)
		require.NoError(t, check(m, s))
	}
}
