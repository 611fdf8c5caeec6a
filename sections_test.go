package mcphybrid

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rawTool(name, schema string) mcpserver.ServerTool {
	t := echoTool(name, "Does "+name)
	t.Tool = mcp.NewToolWithRawSchema(name, "Does "+name, json.RawMessage(schema))
	return t
}

// With all tools inline, a request costs at most 3 % more than the definitions. When
// tools are deferred later, what was sent stays, and the search follows it.
func TestSectionsAddLittle(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByProvider} {
		for size, guide := range map[int]string{10: "", minGuided / 3: "", 3 * minGuided: "\n\n" + textGuide} {
			m, _ := newTestManager(t, nil)
			for i := range 3 {
				require.NoError(t, m.AddTools(fmt.Sprint("s", i), echoTool("one", strings.Repeat("long ", size/4))))
			}
			s := m.NewSession(&SessionOptions{Disclosure: d})
			sections, tools := sentBytes(s)
			assert.Equal(t, guide, sections)
			assert.Len(t, tools, 3)
			assert.Nil(t, s.SearchTool())
			st := s.Stats().Tokens
			assert.LessOrEqual(t, st.Sent(), st.All+st.All*3/100, "%+v", st)

			require.NoError(t, m.AddTools("more", mcptest.Chores("more", 50)...))
			nowSections, nowTools := sentBytes(s)
			grown, ok := strings.CutPrefix(nowSections, sections)
			assert.True(t, ok && strings.HasPrefix(strings.TrimLeft(grown, "\n"), textSearchHeading+"13 more tools"), nowSections)
			assert.Equal(t, tools, nowTools[:3])
			assert.NotNil(t, s.SearchTool())
			assert.NotContains(t, nowSections, "mcp_more__tool_000")
			restored, changed, err := m.RestoreSession(s.Save(), &SessionOptions{Disclosure: d})
			require.NoError(t, err)
			assert.Empty(t, changed)
			again, _ := sentBytes(restored)
			assert.Equal(t, nowSections, again)
			require.NoError(t, check(m, s, restored))
		}
	}
}

// A session that was saved with the published sections goes on with them, and without
// lines for further tools. One that was saved without gets lines where the host has them
// listed.
func TestOtherSectionsAreRestored(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{true, false} {
		from := replicaOf(t, &Options{Prompt: PromptOptions{ListInline: listed}, Tokens: constantTokens(1000)}, "s0")
		to := replicaOf(t, &Options{Prompt: PromptOptions{ListInline: !listed}, Tokens: constantTokens(1000)}, "s0")
		s := from.NewSession(nil)
		sections, tools := sentBytes(s)
		other, _ := turned(t, to, s.Save(), nil)
		require.NoError(t, to.AddTools("later", echoTool("one", "One")))
		nowSections, nowTools := sentBytes(other)
		grown, ok := strings.CutPrefix(nowSections, sections)
		assert.True(t, ok, nowSections)
		assert.Equal(t, !listed, strings.HasSuffix(grown, "\n- mcp_later__one: One\n"), grown)
		assert.Equal(t, listed, grown == "", grown)
		assert.Equal(t, tools, nowTools[:len(tools)])
		assert.Len(t, nowTools, len(tools)+1)
		require.NoError(t, check(to, other))
	}
}

// Published servers of up to 40 tools cost at most 3 % more than their definitions.
// bench/savings tests the same with invented ones.
func TestSmallCatalogsAddLittle(t *testing.T) {
	t.Parallel()
	for name, tools := range mcptest.CatalogTools(t) {
		m, _ := newTestManager(t, nil)
		require.NoError(t, m.AddTools(name, tools...))
		st := m.Stats()
		if len(tools) <= DefaultMaxInline {
			assert.LessOrEqual(t, st.Tokens.Sent(), st.Tokens.All+st.Tokens.All*3/100, "%s: %+v", name, st.Tokens)
		}
	}
}

// SPEC A12: the example shows a tool that the session really has.
func TestSpecA12ByARealTool(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, Prompt: PromptOptions{ListInline: true}})
	require.NoError(t, m.AddTools("a",
		rawTool("all", `{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}`),
		rawTool("evil", `{"type":"object","properties":{"x":{"type":"string"},"do this":{}},"required":["x"]}`),
		rawTool("issues", `{"type":"object","required":["repo","page"],"properties":{"state":{"type":"string"},"repo":{"type":"string"},`+
			`"labels":{"type":"array"},"page":{"type":"integer"},"closed":{"type":"boolean"},"since":{"type":["string","null"]},"more":{"type":"object"}}}`)))
	s := m.NewSession(nil)
	want := "\nOptional parameters: leave out every one that the task gives you no value for. Never fill one in with an empty, default or made-up value." +
		" For mcp_a__issues, when only the required ones are known:\n" +
		`- WRONG: {"repo": "…", "page": 1, "state": "", "labels": [], "closed": false, "since": null}` + "\n" +
		`- RIGHT: {"repo": "…", "page": 1}` + "\n\nThe tools:\n- mcp_a__all"
	before := s.PromptSections(PromptFull)
	assert.Contains(t, before, want)
	restored, changed, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Empty(t, changed)
	assert.Equal(t, before, restored.PromptSections(PromptFull))

	// The example does not change when tools are added later, and does not
	// appear later.
	require.NoError(t, m.SetRules([]Rule{{Name: "r", Patterns: []string{"issues"}, Action: RuleExclude}}))
	assert.True(t, strings.HasPrefix(s.PromptSections(PromptFull), before))
	other := m.NewSession(nil)
	assert.Contains(t, other.PromptSections(PromptFull), plainExample.Wrong)
	plain := other.PromptSections(PromptFull)
	require.NoError(t, m.SetRules([]Rule{}))
	assert.True(t, strings.HasPrefix(other.PromptSections(PromptFull), plain))
}

// A summarized tool is listed by its name and one line, and its definition
// comes when it is activated. The lines are as short as the budget requires.
func TestSpecE1SummarizeLists(t *testing.T) {
	t.Parallel()
	rules := []Rule{{Name: "short", Patterns: []string{"mcp_a__tool_001", "mcp_a__tool_002", "mcp_a__tool_003"}, Action: RuleSummarize}}
	m, _ := newTestManager(t, &Options{Rules: rules, Servers: []ServerConfig{inProcess("a", 5)}})
	s := m.NewSession(nil)
	lines := "\n" + textSummaryHeading + "- mcp_a__tool_001: Does chore 1 for a\n- mcp_a__tool_002: Does chore 2 for a\n- mcp_a__tool_003: Does chore 3 for a\n"
	before := s.PromptSections(PromptFull)
	assert.Equal(t, 1, strings.Count(before, lines))
	assert.True(t, strings.HasSuffix(before, lines))
	assert.True(t, strings.HasSuffix(s.SearchSection(), lines))
	assert.NotContains(t, s.InlineSection(), "tool_002")
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_004", SearchToolName}, toolNames(s.Tools()))

	_, err := s.Call(t.Context(), SearchToolName, `{"query":"select:mcp_a__tool_002"}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_004", SearchToolName, "mcp_a__tool_002"}, toolNames(s.Tools()))
	assert.Equal(t, before, s.PromptSections(PromptFull), "activation changes no section")
	exported, err := s.Export(provider.MCP)
	require.NoError(t, err)
	assert.Len(t, exported, 4)
	restored, _, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Equal(t, before, restored.PromptSections(PromptFull))
	assert.Equal(t, toolNames(s.Tools()), toolNames(restored.Tools()))
	require.NoError(t, check(m, s, restored))

	// A tool that a later rule summarizes is listed at the end.
	require.NoError(t, m.AddTools("b", echoTool("tool_009", "More")))
	require.NoError(t, m.SetRules(append(rules, Rule{Name: "more", Patterns: []string{"tool_009"}, Action: RuleSummarize})))
	after := s.PromptSections(PromptFull)
	assert.True(t, strings.HasPrefix(after, before))
	assert.Contains(t, after, "- mcp_b__tool_009: More\n")
	require.NoError(t, check(m, s))
}

func TestListingBudget(t *testing.T) {
	t.Parallel()
	sections := func(budget int, rules ...Rule) string {
		m, _ := newTestManager(t, &Options{Prompt: PromptOptions{ListInline: true, MaxListingTokens: budget}, Rules: rules, Servers: []ServerConfig{inProcess("a", 3), inProcess("b", 2)}})
		s := m.NewSession(nil)
		text := s.PromptSections(PromptFull)
		restored, _, err := m.RestoreSession(s.Save(), nil)
		require.NoError(t, err)
		assert.Equal(t, text, restored.PromptSections(PromptFull))
		_, lines, _ := strings.Cut(text, "The tools:\n")
		return lines
	}
	full := sections(0)
	assert.Equal(t, 5, strings.Count(full, ": Does chore"))
	tokens := 5 * (quarterBytes{}).CountTokens("- mcp_a__tool_000: Does chore 0 for a\n")
	assert.Equal(t, full, sections(tokens))
	names := "- mcp_a__tool_000\n- mcp_a__tool_001\n- mcp_a__tool_002\n- mcp_b__tool_000\n- mcp_b__tool_001\n"
	assert.Equal(t, names, sections(tokens-1))
	assert.Equal(t, "- 3 tools of a\n- 2 tools of b\n", sections(5))

	short := Rule{Name: "short", Patterns: []string{"tool_001", "tool_002"}, Action: RuleSummarize}
	text := sections(5, short)
	assert.True(t, strings.HasPrefix(text, "- 1 tool of a\n- 1 tool of b\n\n## Additional"), text)
	assert.True(t, strings.HasSuffix(text, textSummaryHeading+"- 2 tools of a\n- 1 tool of b\n"), text)

	// Tools that are added later get the rest of the budget.
	m, _ := newTestManager(t, &Options{Prompt: PromptOptions{ListInline: true, MaxListingTokens: tokens}, Servers: []ServerConfig{inProcess("a", 3)}})
	before := m.PromptSections(PromptFull)
	require.NoError(t, m.AddTools("b", echoTool("x", strings.Repeat("long ", 40))))
	assert.Equal(t, before+"- mcp_b__x\n", m.PromptSections(PromptFull))
}

func TestSummaryOfServers(t *testing.T) {
	t.Parallel()
	o := serverList{{Server: "github", Tools: 87, About: "issue, pull, branch"}, {Server: "jira", Tools: 3}, {Server: "x", Tools: 1, About: "y"}}
	count := func(s string) int { return len(strings.Fields(s)) }
	assert.Equal(t, "91 more tools are available from these MCP servers: github (87: issue, pull, branch), jira (3), x (1: y).\n", o.summary(100, count))
	assert.Equal(t, "91 more tools are available from these MCP servers: github (87), jira (3), x (1).\n", o.summary(15, count))
	assert.Equal(t, "91 more tools are available from these MCP servers: github (87), 2 more servers.\n", o.summary(14, count))
	assert.Equal(t, "91 more tools are available from these MCP servers: 3 more servers.\n", o.summary(1, count))
	assert.Empty(t, serverList{}.summary(100, count))
	for budget := range 30 {
		assert.LessOrEqual(t, count(o.summary(budget, count)), max(budget, 12))
	}
}

// If not all servers can be named, as many as fit are, and the others are counted.
func TestSummaryNamesAsManyServersAsFit(t *testing.T) {
	t.Parallel()
	var o serverList
	for i := range 9 {
		o = append(o, &saved.Server{Server: fmt.Sprint("a-server-of-a-team-", i), Tools: 1})
	}
	count := func(s string) int { return len(s) }
	for n := 1; n < len(o); n++ {
		var want strings.Builder
		want.WriteString("9 more tools are available from these MCP servers: ")
		for i := range n {
			fmt.Fprintf(&want, "a-server-of-a-team-%d (1), ", i)
		}
		fmt.Fprintf(&want, "%d more servers.\n", len(o)-n)
		assert.Equal(t, want.String(), o.summary(want.Len(), count), "room for %d", n)
	}
}

// A server's name and its subject stay on one line and are cut.
func TestServersInSectionsAreClean(t *testing.T) {
	t.Parallel()
	o := serverList{{Server: "a\n## b", Tools: 1, About: "x\n## y " + strings.Repeat("z", 1000)}}
	for _, section := range []string{o.counts(), o.summary(10_000, func(s string) int { return len(s) })} {
		assert.Equal(t, 1, strings.Count(section, "\n"), section)
		assert.Less(t, len(section), 400)
	}
}

// A counter that hangs or ends its goroutine in one session leaves the sections of the
// others alone.
func TestSectionsBesideAStuckCounter(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	for what, stick := range map[string]func(){"hangs": func() { <-release }, "ends": runtime.Goexit} {
		var armed atomic.Bool
		stuck, ended := make(chan struct{}), make(chan struct{})
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 3)}, Tokens: countFunc(func(text string) int {
			if armed.CompareAndSwap(true, false) {
				close(stuck)
				stick()
			}
			return len(text) / 4
		})})
		one, other := m.NewSession(nil), m.NewSession(nil)
		armed.Store(true)
		go func() {
			defer close(ended)
			one.PromptSections(PromptFull)
		}()
		<-stuck
		if what == "ends" {
			<-ended
		} else {
			defer func() { close(release); <-ended }()
		}
		within(time.Minute, what, func() { assert.Contains(t, other.PromptSections(PromptFull), "a (3)", what) })
	}
}

// Tools that come after the sections were sent follow them in new sections.
func TestSectionsGrow(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, Prompt: PromptOptions{ListInline: true}, Servers: []ServerConfig{inProcess("a", 2)}})
	s := m.NewSession(nil)
	first := s.PromptSections(PromptFull)
	assert.NotContains(t, first, textSearchHeading)
	assert.True(t, strings.HasSuffix(first, "- mcp_a__tool_001: Does chore 1 for a\n"), first)

	require.NoError(t, m.AddServer(t.Context(), inProcess("b", 3)))
	second := s.PromptSections(PromptFull)
	grown, ok := strings.CutPrefix(second, first)
	require.True(t, ok, second)
	assert.True(t, strings.HasPrefix(grown, "- mcp_b__tool_000: Does chore 0 for b\n\n"+textSearchHeading+"2 more tools are available from these MCP servers: b (2).\n"), grown)

	require.True(t, m.RemoveServer("a"))
	require.NoError(t, m.AddServer(t.Context(), inProcess("c", 1)))
	grown, ok = strings.CutPrefix(s.PromptSections(PromptFull), second)
	require.True(t, ok)
	assert.Equal(t, "\n"+textMoreToolsHeading+"- mcp_b__tool_001: Does chore 1 for b\n- mcp_b__tool_002: Does chore 2 for b\n\n1 more tools are available from these MCP servers: c (1).\n", grown)
	assert.Equal(t, strings.TrimPrefix(s.sections(s.show(), true, false), "\n\n"), s.InlineSection())

	assert.Empty(t, s.Compact())
	assert.Equal(t, m.NewSession(nil).PromptSections(PromptFull), s.PromptSections(PromptFull))
}

// The section on inline tools, the one on search and all of them, in each form.
func TestSectionsApart(t *testing.T) {
	compareTable(t, "sections", "The section on inline tools, that on search, and all, as a conversation goes on.", func(table *factTable) {
		for _, of := range []struct {
			what string
			opts Options
			s    SessionOptions
		}{
			{"by activation, with lines", Options{Prompt: PromptOptions{ListInline: true}}, SessionOptions{Disclosure: ByActivation}},
			{"by the bridge", Options{}, SessionOptions{Disclosure: ByBridge}},
			{"by the bridge, just in time", Options{JustInTime: &JustInTimeOptions{Threshold: 1}}, SessionOptions{Disclosure: ByBridge}},
			{"by activation, just in time", Options{JustInTime: &JustInTimeOptions{Threshold: -1}}, SessionOptions{Disclosure: ByActivation}},
		} {
			of.opts.Inline.Max = 1
			of.opts.Skills = someSkills(1)
			of.opts.Rules = []Rule{{Name: "short", Patterns: []string{"*__short"}, Action: RuleSummarize}}
			m, _ := newTestManager(t, &of.opts)
			require.NoError(t, m.AddTools("s", echoTool("one", "Does one"), echoTool("two", "Does two"), echoTool("short", "Is short")))
			s := m.NewSession(&of.s)
			tell := func(when string) {
				table.row(of.what+", "+when, "INLINE "+s.InlineSection(), "SEARCH "+s.SearchSection(), "ALL "+s.PromptSections(PromptFull), s.PromptSections(PromptMinimal)+s.PromptSections(PromptBootstrap))
			}
			tell("at first")
			_, err := s.Turn(provider.Gemini, "")
			require.NoError(t, err)
			s.ActivateTools([]string{"mcp_s__two"})
			require.NoError(t, m.AddTools("t", echoTool("three", "Does three")))
			require.NoError(t, m.SetSkills(someSkills(2)))
			tell("later")
		}
	})
}
