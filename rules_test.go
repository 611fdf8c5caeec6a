package mcphybrid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// placements returns the standing of each tool by the tool's own name, such as
// "inline ci build".
func placements(s *Session) map[string]string {
	list := make(map[string]string)
	for _, p := range s.Placements() {
		list[p.Tool.def.Own] = strings.TrimSpace(p.Standing + " " + p.Rule)
	}
	return list
}

func TestSpecE1Rules(t *testing.T) {
	t.Parallel()
	tools := []string{"tasks_list", "tasks_create", "build_go", "build_js", "deploy"}
	hide := Rule{Name: "hide", Patterns: []string{"build_*"}, Action: RuleExclude, Priority: 10}
	show := Rule{Name: "show", Intent: "run_build", Patterns: []string{"build_*"}, Action: RuleInclude, Priority: 20}
	tasks := Rule{Name: "tasks", Intent: "task*", Patterns: []string{"tasks_*"}, Action: RuleInclude}
	ship := Rule{Name: "ship", Intent: "task*", Patterns: []string{"mcp_x__deploy"}, Action: RuleInclude}
	short := Rule{Name: "short", Intent: "*", Patterns: []string{"*_create", "tasks_l?st"}, Action: RuleSummarize}
	tests := []struct {
		name   string
		intent string
		pins   []string
		rules  []Rule
		want   string // by tool
	}{
		{"no rules", "", nil, nil, "inline inline inline inline inline"},
		{"an exclusion", "", nil, []Rule{hide}, "inline inline hidden-hide hidden-hide inline"},
		{"of another intent", "walk", nil, []Rule{show}, "inline inline inline inline inline"},
		{"without an intent", "", nil, []Rule{show}, "inline inline inline inline inline"},
		{"a whitelist", "run_build", nil, []Rule{show}, "hidden hidden inline inline hidden"},
		{"exclusion wins over a higher inclusion", "run_build", nil, []Rule{hide, show}, "hidden hidden hidden-hide hidden-hide hidden"},
		{"inclusions add up", "tasks", nil, []Rule{tasks, ship}, "inline inline hidden hidden inline"},
		{"a pin is not lost to a whitelist", "tasks", []string{"*go"}, []Rule{tasks}, "inline inline inline hidden hidden"},
		{"but to an exclusion", "", []string{"*go"}, []Rule{hide}, "inline inline hidden-hide hidden-hide inline"},
		{"summaries", "", nil, []Rule{short}, "summarized-short summarized-short inline inline inline"},
		{"not of a pin", "", []string{"*_create"}, []Rule{short}, "summarized-short inline inline inline inline"},
		{"a summary is no whitelist, and is in one", "run_build", nil, []Rule{short, show}, "summarized-short summarized-short inline inline hidden"},
		{"the first of equal priority decides", "tasks", nil, []Rule{short, tasks}, "summarized-short summarized-short hidden hidden hidden"},
		{"the first of equal priority decides, the other way", "tasks", nil, []Rule{tasks, short}, "inline inline hidden hidden hidden"},
		{"an inclusion of what is not there", "walk", nil, []Rule{{Name: "none", Intent: "walk", Patterns: []string{"nope"}, Action: RuleInclude}}, "hidden hidden hidden hidden hidden"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, _ := newTestManager(t, &Options{Pins: test.pins, Rules: test.rules})
			for _, name := range tools {
				require.NoError(t, m.AddTools("x", echoTool(name, "Does "+name)))
			}
			reg := NewRegistry()
			s := m.NewSession(&SessionOptions{Registry: reg})
			s.SetIntent(test.intent)
			got := placements(s)
			for i, want := range strings.Fields(test.want) {
				name := tools[i]
				assert.Equal(t, strings.ReplaceAll(want, "-", " "), got[name], name)
				_, err := s.Call(t.Context(), "mcp_x__"+name, nil)
				if strings.HasPrefix(want, "hidden") {
					assert.ErrorIs(t, err, ErrNotPermitted, name)
					assert.NotContains(t, s.PromptSections(PromptFull), name)
					for _, h := range s.Search(name, 20) {
						assert.NotEqual(t, name, h.Tool.def.Own)
					}
				} else {
					assert.NoError(t, err, name)
				}
			}
			require.NoError(t, check(m, s))
			require.NoError(t, checkRegistry(s, reg))
		})
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	ok := Rule{Name: "ok", Patterns: []string{"x"}, Action: RuleExclude}
	m, _ := newTestManager(t, &Options{Rules: []Rule{ok}})
	require.NoError(t, m.AddTools("a", echoTool("x", ""), echoTool("y", "")))
	for _, test := range []struct {
		rule Rule
		want string
	}{
		{Rule{Patterns: []string{"y"}, Action: RuleExclude}, `mcphybrid: rules: rule 1 "": the name is missing`},
		{Rule{Name: "r", Action: RuleExclude}, `mcphybrid: rules: rule 1 "r": there are no patterns`},
		{Rule{Name: "r", Patterns: []string{"y", ""}, Action: RuleExclude}, `mcphybrid: rules: rule 1 "r": pattern 1 is empty`},
		{Rule{Name: "r", Patterns: []string{"[y"}, Action: RuleExclude}, `mcphybrid: rules: rule 1 "r": pattern 0: "[y" has a '[', which is no wildcard: * and ? are`},
		{Rule{Name: "r", Intent: `\`, Patterns: []string{"y"}, Action: RuleExclude}, `mcphybrid: rules: rule 1 "r": the intent: "\\" has a '\\', which is no wildcard: * and ? are`},
		{Rule{Name: "r", Patterns: []string{"y"}}, `mcphybrid: rules: rule 1 "r": the action is missing: it must be "include", "exclude" or "summarize"`},
		{Rule{Name: "r", Patterns: []string{"y"}, Action: "hide"}, `mcphybrid: rules: rule 1 "r": the action is "hide", must be "include", "exclude" or "summarize"`},
	} {
		assert.EqualError(t, m.SetRules([]Rule{ok, test.rule}), test.want)
	}
	assert.ErrorContains(t, m.SetRules(make([]Rule, rules.MaxRules+1)), "there are 10001 rules, more than the limit of 10000")
	assert.Equal(t, map[string]string{"x": "hidden ok", "y": "inline"}, placements(m.def), "the rules before stay in force")
	assert.EqualError(t, m.SetRules(nil), "mcphybrid: rules: nil is no list of rules: an empty list is one without rules")
	assert.Equal(t, map[string]string{"x": "hidden ok", "y": "inline"}, placements(m.def), "an error that was dropped permits nothing")
	require.NoError(t, m.SetRules([]Rule{}))
	assert.Equal(t, map[string]string{"x": "inline", "y": "inline"}, placements(m.def))
}

// A malformed rule in the options is an error of Start. Until there are other rules, no
// session has a tool: the rule may be there to keep one from models.
func TestMalformedRulesInOptions(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Rules: []Rule{{}}, Pins: []string{"x"}, Servers: []ServerConfig{inProcess("a", 2)}})
	defer m.Close()
	require.NoError(t, m.AddTools("b", echoTool("x", "")))
	const want = `mcphybrid: Options.Rules: rule 0 "": the name is missing`
	assert.EqualError(t, m.Start(t.Context()), want)
	assert.Empty(t, m.Default().Tools())
	_, err := m.Call(t.Context(), "mcp_b__x", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
	assert.Equal(t, StateConfigured, m.Servers()[0].State)
	u, err := m.NewUser("u", &UserOptions{Servers: []ServerConfig{inProcess("c", 1)}})
	require.NoError(t, err)
	assert.EqualError(t, u.Start(t.Context()), want)

	require.NoError(t, m.SetRules([]Rule{}))
	require.NoError(t, m.Start(t.Context()))
	assert.Len(t, m.InlineTools(), 3)
	require.NoError(t, u.Start(t.Context()))
	require.NoError(t, check(m))
}

// An intent may be any text. It does not give a session what another session's
// lists permit.
func TestIntentIsNoAccessList(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 3)}})
	access := Access{Deny: []string{"*_001"}}
	free := m.NewSession(nil)
	bound := m.NewSession(&SessionOptions{Access: access})
	free.SetIntent(fmt.Sprintf("x %q", bound.rights))
	bound.SetIntent("x")
	assert.Len(t, free.InlineTools(), 3)
	assert.Len(t, bound.InlineTools(), 2)
	require.NoError(t, check(m, free, bound))
}

// Rules may be loaded while sessions select. Each session sees one set or the
// other.
func TestSpecE6RulesWhileSessionsSelect(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Servers: []ServerConfig{inProcess("a", 30)}})
	even := []Rule{{Name: "even", Patterns: []string{"tool_??0", "tool_??2", "tool_??4", "tool_??6", "tool_??8"}, Action: RuleInclude}}
	odd := []Rule{{Name: "odd", Intent: "x", Patterns: []string{"tool_??1", "tool_??3", "tool_??5", "tool_??7", "tool_??9"}, Action: RuleInclude}, {Name: "even", Intent: "y", Patterns: []string{"tool_??0", "tool_??2", "tool_??4", "tool_??6", "tool_??8"}, Action: RuleInclude}}
	require.NoError(t, m.SetRules(even))
	var wg sync.WaitGroup
	counts := make([]int, 8)
	for g := range counts {
		wg.Go(func() {
			s := m.NewSession(nil)
			s.SetIntent([]string{"x", "y"}[g%2])
			for i := range 300 {
				seen := 0
				for _, p := range s.Placements() {
					if p.Standing != "hidden" {
						seen++
					}
				}
				if seen != 15 {
					t.Errorf("a session of intent %d sees %d tools", g%2, seen)
				}
				if i%10 == 0 {
					_, _ = s.Call(t.Context(), SearchToolName, `{"query":"chore"}`)
				}
				counts[g]++
			}
			assert.NoError(t, check(m, s))
		})
	}
	for i := range 200 {
		assert.NoError(t, m.SetRules([][]Rule{even, odd}[i%2]))
	}
	wg.Wait()
	for _, n := range counts {
		assert.Equal(t, 300, n)
	}
}

// A rule for another intent changes nothing. Nor does a rule that takes away
// nothing that is there. An excluded tool stays excluded, whatever the other
// rules say.
func TestSpecE1Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var tools []*BridgeTool
		for i := range 1 + rnd.IntN(40) {
			tools = append(tools, namedTool(fmt.Sprintf("%c%c_%d", 'a'+rnd.IntN(3), 'a'+rnd.IntN(3), i)))
		}
		pattern := func() string { return string(rune('a'+rnd.IntN(4))) + "*" }
		var rules []Rule
		for i := range rnd.IntN(6) {
			rules = append(rules, Rule{
				Name: fmt.Sprint(i), Intent: []string{"", "*", "i", "o*"}[rnd.IntN(4)], Priority: rnd.IntN(3),
				Patterns: []string{pattern()}, Action: []RuleAction{RuleInclude, RuleExclude, RuleSummarize}[rnd.IntN(3)],
			})
		}
		opts := Options{Rules: rules, Inline: InlineOptions{Max: rnd.IntN(30) - 1}, Pins: []string{pattern()}}
		judge := func(o Options) []Placement {
			p := policyOf(o)
			c := judgedAs(p, tools, "i")
			var list []Placement
			for i, t := range tools {
				list = append(list, c.placement(t, c.verdicts[0].ofTool(i)))
			}
			return list
		}
		before, again := judge(opts), judge(opts)
		more := opts
		unrelated := []Rule{
			{Name: "other", Intent: "other", Patterns: []string{"*"}, Action: []RuleAction{RuleInclude, RuleExclude, RuleSummarize}[rnd.IntN(3)], Priority: 9},
			{Name: "nothing", Patterns: []string{"zz*"}, Action: []RuleAction{RuleExclude, RuleSummarize}[rnd.IntN(2)], Priority: 9},
		}[rnd.IntN(2)]
		more.Rules = slices.Insert(slices.Clone(rules), rnd.IntN(len(rules)+1), unrelated)
		after := judge(more)
		require.Equal(t, before, after, "seed %d", seed)
		require.Equal(t, before, again, "seed %d", seed)
		for i, tool := range tools {
			excluded := slices.ContainsFunc(rules, func(r Rule) bool {
				return r.Action == RuleExclude && r.Intent != "o*" && strings.HasPrefix(tool.name, r.Patterns[0][:1])
			})
			pinned := strings.HasPrefix(tool.name, opts.Pins[0][:1])
			switch {
			case excluded:
				require.Equal(t, "hidden", before[i].Standing, "seed %d, %s", seed, tool.name)
			case pinned:
				require.Equal(t, "inline", before[i].Standing, "seed %d, %s", seed, tool.name)
			}
		}
	}
}

// TestSpecE1Speed prints how long a session takes to select its tools, and
// limits the median.
func TestSpecE1Speed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a measurement")
	}
	m, rules := largeCatalog(t, 10_000, 500)
	start := time.Now()
	require.NoError(t, m.SetRules(rules))
	loading := time.Since(start)
	t.Logf("loading %d rules over %d tools: %v", len(rules), len(m.cur.Load().tools), loading)
	s := m.NewSession(nil)
	var took []time.Duration
	for i := range 21 {
		s.SetIntent(fmt.Sprintf("intent_%d", i))
		start = time.Now()
		s.view()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	median := took[10]
	start = time.Now()
	const views = 10_000
	for range views {
		s.view()
	}
	again := time.Since(start) / views
	t.Logf("selecting for a new intent: %v; when nothing changed: %v", median, again)
	// Loading matches each pattern with each tool. It shows how slow the machine is.
	assert.Less(t, median, loading/10)
	assert.Less(t, again, median/10)
	if !mcptest.Race() {
		assert.Less(t, median, 5*time.Millisecond)
		assert.Less(t, again, 50*time.Microsecond)
	}
}

// largeCatalog returns a Manager with n tools, and rules for them.
func largeCatalog(t testing.TB, n, rules int) (*Manager, []Rule) {
	m := NewManager(nil)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	verbs := []string{"get", "list", "create", "delete", "update"}
	for s := range n / 100 {
		var tools []mcpserver.ServerTool
		for i := range 100 {
			tools = append(tools, echoTool(fmt.Sprintf("%s_thing_%d", verbs[i%5], i), "Does a thing"))
		}
		require.NoError(t, m.AddTools(fmt.Sprintf("server%d", s), tools...))
	}
	var list []Rule
	for i := range rules {
		list = append(list, Rule{
			Name: fmt.Sprint("rule ", i), Intent: []string{"*", fmt.Sprintf("intent_%d", i%50)}[i%2], Priority: i % 7,
			Patterns: []string{[]string{
				fmt.Sprintf("mcp_server%d__*", i%100), fmt.Sprintf("delete_thing_%d", i), fmt.Sprintf("*_thing_%d", i), fmt.Sprintf("mcp_server%d__get_*_%d", i%100, i%10),
			}[i%4]},
			Action: []RuleAction{RuleInclude, RuleExclude, RuleSummarize, RuleExclude, RuleInclude}[i%5],
		})
	}
	return m, list
}

// SPEC G11: a pattern that matches nothing is told, once it can't be about a server
// that is still to come.
func TestSpecG11PatternsThatMatchNothing(t *testing.T) {
	t.Parallel()
	logger, log := logged()
	gate := make(chan struct{})
	late := mcpserver.NewMCPServer("late", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithToolFilter(func(_ context.Context, tools []mcp.Tool) []mcp.Tool {
		<-gate
		return tools
	}))
	late.AddTools(echoTool("drop", ""))
	git := inProcess("git", 2)
	git.Tools = Access{Allow: []string{"tool_*", "push"}, Deny: []string{"tool_001", "fork"}}
	m := NewManager(&Options{
		Logger: logger, Servers: []ServerConfig{git, {Name: "late", InProcess: late}},
		Access: Access{Deny: []string{"git/pusch", "late/*", "late/dorp", "*dorp", SearchToolName + "x", PageToolName}, Allow: []string{"*tool*", "mcp_git__tol_*", "drop", "secret"}},
		Pins:   []string{"git/tool_000", "git/*", "tool_01"},
		Rules:  []Rule{{Name: "r", Patterns: []string{"mcp_git__*", "mcp_git__x"}, Action: RuleSummarize}},
	})
	defer m.Close()
	texts := func(errs []error) (list []string) {
		for _, err := range errs {
			list = append(list, strings.TrimPrefix(err.Error(), "mcphybrid: "))
		}
		return list
	}
	started := make(chan error)
	go func() { started <- m.Start(t.Context()) }()
	soon(t, func() bool { return len(m.InlineTools()) == 1 })
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"git/*", "git/dorp", "dorp"}}})
	defer s.Close()
	assert.Equal(t, []string{
		`server "git": tools.Allow: "push" matches no tool`, `server "git": tools.Deny: "fork" matches no tool`,
		`Options.Access.Allow: "mcp_git__tol_*" matches no tool`, `Options.Access.Deny: "git/pusch" matches no tool`,
		`Options.Access.Deny: "` + SearchToolName + `x" matches no tool`, `rule "r": "mcp_git__x" matches no tool`,
	}, texts(m.Problems()), "the rest may be about the other server")
	assert.Equal(t, []string{`Access.Deny: "git/dorp" matches no tool`}, texts(s.Problems()))
	u, err := m.NewUser("u", &UserOptions{Access: Access{Deny: []string{"git/tool_000", "git/dorp"}}})
	require.NoError(t, err)
	assert.Equal(t, []string{`UserOptions.Access.Deny: "git/dorp" matches no tool`}, texts(u.Problems()))

	close(gate)
	require.NoError(t, <-started)
	want := []string{
		`server "git": tools.Allow: "push" matches no tool`, `server "git": tools.Deny: "fork" matches no tool`,
		`Options.Access.Allow: "mcp_git__tol_*" matches no tool`, `Options.Access.Allow: "secret" matches no tool`,
		`Options.Access.Deny: "git/pusch" matches no tool`, `Options.Access.Deny: "late/dorp" matches no tool`,
		`Options.Access.Deny: "*dorp" matches no tool`, `Options.Access.Deny: "` + SearchToolName + `x" matches no tool`,
		`Options.Pins: "tool_01" matches no tool`, `rule "r": "mcp_git__x" matches no tool`,
	}
	assert.Equal(t, want, texts(m.Problems()))
	for _, line := range want {
		assert.Contains(t, log(), strings.ReplaceAll(line, `"`, `\"`))
	}
	assert.Equal(t, []string{`Access.Deny: "git/dorp" matches no tool`, `Access.Deny: "dorp" matches no tool`}, texts(s.Problems()))

	require.NoError(t, m.SetRules([]Rule{{Name: "new", Patterns: []string{"nowhere"}, Action: RuleExclude}}))
	assert.Contains(t, texts(m.Problems()), `rule "new": "nowhere" matches no tool`)
	assert.Contains(t, log(), `rule \"new\": \"nowhere\" matches no tool`)
	assert.NoError(t, check(m, s))
}
