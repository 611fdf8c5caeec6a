package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heavyTool has a definition of so many bytes at least.
func heavyTool(name string, bytes int) mcpserver.ServerTool {
	t := echoTool(name, "Weighs the cargo of "+name)
	t.Tool.Description += " " + strings.Repeat("x", bytes)
	return t
}

// rotate gives server n tools with names that it never had before.
func rotate(t *testing.T, m *Manager, server string, round, n int) (names []string) {
	t.Helper()
	m.RemoveServer(server)
	var tools []mcpserver.ServerTool
	for i := range n {
		name := fmt.Sprintf("round_%03d_%02d", round, i)
		tools = append(tools, echoTool(name, "Echoes in round "+name))
		names = append(names, "mcp_"+server+"__"+name)
	}
	require.NoError(t, m.AddServer(t.Context(), serving(server, tools...)))
	return names
}

// listTokens returns the tokens of the tools that servers have in the list of s.
func listTokens(s *Session) (tokens int) {
	for _, t := range allTools(s) {
		if isBridgeTool(t) {
			tokens += EstimateTokens([]Tool{t}, nil)
		}
	}
	return tokens
}

func callThrough(t *testing.T, s *Session, name string) string {
	t.Helper()
	r, err := s.Call(t.Context(), CallToolName, fmt.Sprintf(`{"name":%q,"arguments":{"text":"hello"}}`, name))
	require.NoError(t, err)
	return mcp.GetTextFromContent(r.Content[0])
}

// Whatever names a server has next, the list stays within the providers' limits and
// within the session's budget, what was sent stays, and every tool can be called.
func TestRotatingNames(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByProvider} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("calm", 5)}})
			r := NewRegistry()
			s := m.NewSession(&SessionOptions{Disclosure: d, Registry: r})
			rotate(t, m, "wild", 0, 40)
			sections, tools := sentBytes(s)
			var names []string
			for round := range 60 {
				names = rotate(t, m, "wild", round+1, 40)
				nowSections, nowTools := sentBytes(s)
				require.True(t, strings.HasPrefix(nowSections, sections))
				require.Equal(t, tools, nowTools[:len(tools)])
				require.LessOrEqual(t, len(nowTools), 128, "round %d", round)
				require.Less(t, len(nowSections), 40_000)
				sections, tools = nowSections, nowTools
			}
			assert.Positive(t, s.Stats().Crowded)
			assert.Len(t, s.InlineTools(), s.Stats().Inline)
			assert.Equal(t, 45, s.Stats().Inline+s.Stats().Deferred+s.Stats().Active)
			assert.Contains(t, fmt.Sprint(s.Placements()), "the tool list has no room for it")

			// Its new tools are found, and called by another tool.
			assert.Len(t, s.Search("select:"+names[9], 1), 1)
			found, err := s.Call(t.Context(), SearchToolName, `{"query":"`+names[7]+`"}`)
			require.NoError(t, err)
			var answer searchAnswer
			require.NoError(t, json.Unmarshal([]byte(mcp.GetTextFromContent(found.Content[0])), &answer))
			require.NotEmpty(t, answer.Tools)
			assert.Equal(t, names[7], answer.Tools[0].Name)
			assert.Contains(t, answer.Message, CallToolName)
			assert.Contains(t, namesOf(s.Tools()), CallToolName)
			assert.Contains(t, namesOf(s.Tools()), DescribeToolName)
			assert.Contains(t, namesOf(r.List()), CallToolName)
			assert.Contains(t, callThrough(t, s, names[7]), "hello")
			_, direct := s.Call(t.Context(), names[8], `{"text":"x"}`)
			assert.NoError(t, direct, "by name as well")
			require.NoError(t, check(m, s))

			// The other server's tools keep their place and can be activated.
			_, err = s.Call(t.Context(), "mcp_calm__tool_003", `{"text":"x"}`)
			assert.NoError(t, err)

			s.Compact()
			assert.Zero(t, s.Stats().Crowded)
			assert.Contains(t, namesOf(s.Tools()), names[7], "Compact makes room")
			assert.NotContains(t, namesOf(s.Tools()), CallToolName)
			require.NoError(t, check(m, s))
		})
	}
}

// Definitions of 240 KB cost what fits, and another server's tools stay inline.
func TestHugeDefinitions(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: 30 s with the race detector")
	}
	t.Parallel()
	var heavy []mcpserver.ServerTool
	for i := range 12 {
		heavy = append(heavy, heavyTool(fmt.Sprintf("cargo_%02d", i), 240_000))
	}
	var events []Event
	m, _ := newTestManager(t, &Options{
		Servers: []ServerConfig{serving("heavy", heavy...), inProcess("light", 20)},
		Limits:  config.Limits{StartTimeout: time.Minute},
		OnEvent: ofSessions(func(e Event) { events = append(events, e) }),
	})
	s := m.NewSession(nil)
	st := s.Stats()
	assert.Equal(t, 20, st.Inline, "those of the other server")
	assert.Less(t, st.Tokens.Sent(), 40_000)

	// Found and called, they put no definition into the list either.
	s.ActivateTools(namesOf(s.DeferredTools()))
	assert.LessOrEqual(t, listTokens(s), defaultMaxListedTokens)
	name := "mcp_heavy__cargo_07"
	r, err := s.Call(t.Context(), SearchToolName, `{"query":"select:`+name+`"}`)
	require.NoError(t, err)
	assert.Contains(t, mcp.GetTextFromContent(r.Content[0]), CallToolName)
	assert.Contains(t, callThrough(t, s, name), "hello")
	assert.Less(t, listTokens(s), defaultMaxListedTokens)
	i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == EventFull })
	require.GreaterOrEqual(t, i, 0)
	assert.Contains(t, events[i].Tools, name)
	described, err := s.Call(t.Context(), DescribeToolName, `{"names":["`+name+`"]}`)
	require.NoError(t, err)
	assert.Less(t, len(mcp.GetTextFromContent(described.Content[0])), defaultMaxResult+1000)
}

// What a server declares that its tools need puts no more into the list.
func TestNeededToolsFitToo(t *testing.T) {
	t.Parallel()
	needs := make(map[string][]string)
	var tools []mcpserver.ServerTool
	for i := range 32 {
		name := fmt.Sprintf("cargo_%02d", i)
		tools = append(tools, heavyTool(name, 20_000))
		needs["first"] = append(needs["first"], name)
	}
	cfg := serving("heavy", append(tools, echoTool("first", "Comes first"))...)
	cfg.Needs = needs
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{cfg}})
	s := m.NewSession(nil)
	require.True(t, s.ActivateToolIfDeferred("mcp_heavy__first"))
	assert.Less(t, listTokens(s), defaultMaxListedTokens/2+1)
	r, err := s.Call(t.Context(), "mcp_heavy__first", `{"text":"hello"}`)
	require.NoError(t, err)
	assert.Contains(t, mcp.GetTextFromContent(r.Content[0]), "hello")
	require.NoError(t, check(m, s))
}

// A definition that grows once its tool is active does not come in with Compact.
func TestActiveDefinitionsGrow(t *testing.T) {
	t.Parallel()
	const n = 30
	cfg := inProcess("a", n)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{cfg}})
	s := m.NewSession(nil)
	s.ActivateTools(namesOf(s.DeferredTools()))
	require.Len(t, s.ActiveTools(), n)
	before := listTokens(s)
	var grown []mcpserver.ServerTool
	for i := range n {
		grown = append(grown, heavyTool(fmt.Sprintf("tool_%03d", i), 8_000))
	}
	mcpServer(cfg).AddTools(grown...)
	soon(t, func() bool { return EstimateTokens(s.DeferredTools(), nil) > n*2_000 })
	for i := range n {
		_, err := s.Call(t.Context(), fmt.Sprintf("mcp_a__tool_%03d", i), `{"text":"x"}`)
		require.NoError(t, err)
	}
	assert.Equal(t, before, listTokens(s), "what was shown stays")
	s.Compact()
	assert.LessOrEqual(t, listTokens(s), defaultMaxListedTokens/2)
	require.NoError(t, check(m, s))
}

// A tool is there if its owner's catalog has it, in any version, or holds it back. What
// another owner's server of that name has is another tool.
func TestIsThere(t *testing.T) {
	t.Parallel()
	ann, bob := &owner{user: "ann"}, &owner{user: "bob"}
	made := func(of *owner) *BridgeTool {
		t := &BridgeTool{name: "mcp_git__log", owner: of, def: new(definition)}
		t.def.Server, t.def.Own = "git", "log"
		return t
	}
	held := map[[2]string]*ChangedError{{"git", "log"}: {}}
	for _, of := range []*owner{ann, bob} {
		assert.Equal(t, of == ann, isThere(made(ann), []*catalog{{owner: of, tools: []*BridgeTool{made(of)}}}), of.user)
		assert.Equal(t, of == ann, isThere(made(ann), []*catalog{{owner: of, quarantinedOwn: held}}), of.user)
		assert.False(t, isThere(made(ann), []*catalog{{owner: of}}), of.user)
	}
}

// Each limit of the list, with pins, by number and by tokens.
func TestListLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		opts   Options
		inline []int // of the servers a, b and c with 20 tools each
		active int   // of all that are left
	}{
		{"the defaults", Options{}, []int{20, 20, 0}, 20},
		{"all", Options{List: ListOptions{Max: 30}}, []int{20, 10, 0}, 0},
		{"each server", Options{List: ListOptions{ServerMax: 15}}, []int{15, 15, 10}, 5},
		{"none", Options{List: ListOptions{Max: -1}}, []int{0, 0, 0}, 0},
		{"pins", Options{Inline: InlineOptions{Max: -1}, Pins: []string{"*"}, List: ListOptions{Max: 50, ServerMax: 18}}, []int{18, 18, 14}, 0},
		{"tokens", Options{List: ListOptions{MaxTokens: 30 * 75, ServerTokens: NoLimit}}, []int{20, 10, 0}, 0},
		{"half of them for a server", Options{List: ListOptions{MaxTokens: 30 * 75}}, []int{15, 15, 0}, 0},
		{"tokens of each server", Options{List: ListOptions{ServerTokens: 5 * 75}}, []int{5, 5, 5}, 0},
		{"more inline", Options{Inline: InlineOptions{Max: 60}}, []int{20, 20, 20}, 0},
		{"no limit", Options{List: ListOptions{Max: NoLimit, MaxTokens: NoLimit, ServerMax: NoLimit, ServerTokens: NoLimit}}, []int{20, 20, 0}, 20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.opts.Servers = []ServerConfig{inProcess("a", 20), inProcess("b", 20), inProcess("c", 20)}
			test.opts.Tokens = definitions75{}
			m, _ := newTestManager(t, &test.opts)
			s := m.NewSession(nil)
			inline := make([]int, 3)
			for _, tool := range s.InlineTools() {
				inline[strings.Index("abc", tool.Server())]++
			}
			assert.Equal(t, test.inline, inline)
			s.ActivateTools(namesOf(s.DeferredTools()))
			assert.Len(t, s.ActiveTools(), test.active)
			require.NoError(t, check(m, s))
		})
	}
}

// definitions75 counts 75 tokens for each text.
type definitions75 struct{}

func (definitions75) CountTokens(string) int { return 75 }

// A session that may not search has all its tools, but no list that grows for ever.
func TestListWithoutSearch(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 150)}})
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{SearchToolName}}})
	assert.Len(t, s.Tools(), 150)
	for round := range 5 {
		rotate(t, m, "wild", round, 40)
		assert.LessOrEqual(t, len(s.Tools()), 190+int(metaKinds))
	}
	require.NoError(t, check(m, s))
}

// The lines of tools that a rule summarizes stay bounded, and so does a list with
// all deferred tools.
func TestRotatingSummaries(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Rules: []Rule{{Name: "all", Patterns: []string{"*"}, Action: RuleSummarize}}, Servers: []ServerConfig{inProcess("calm", 3)}})
	s, provider := m.NewSession(nil), m.NewSession(&SessionOptions{Disclosure: ByProvider})
	for round := range 30 {
		rotate(t, m, "wild", round, 40)
		s.PromptSections(PromptFull)
		provider.Tools()
	}
	assert.LessOrEqual(t, strings.Count(s.PromptSections(PromptFull), "\n- mcp_wild__"), 100)
	assert.LessOrEqual(t, len(allTools(provider)), 128)
	require.NoError(t, check(m, s, provider))
}

// A session that had no room goes on the same way where it is restored.
func TestFullSessionIsRestored(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{List: ListOptions{Max: 4}, Servers: []ServerConfig{inProcess("a", 9)}})
	s := m.NewSession(nil)
	s.Tools()
	s.ActivateTools([]string{"mcp_a__tool_007"})
	sections, tools := sentBytes(s)
	restored, changed, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Empty(t, changed)
	nowSections, nowTools := sentBytes(restored)
	assert.Equal(t, sections, nowSections)
	assert.Equal(t, tools, nowTools)
	assert.Contains(t, callThrough(t, restored, "mcp_a__tool_007"), "hello")
	require.NoError(t, check(m, restored))
}

// A list that was saved under wider limits is shown as it was, whether its servers
// are here or not. Nothing more is appended, and what is left is called by the tools
// for it, until Compact.
func TestLongerListIsRestored(t *testing.T) {
	t.Parallel()
	servers := []ServerConfig{inProcess("a", 9), inProcess("b", 6)}
	roomy, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 10}, Servers: servers})
	saved := roomy.NewSession(nil)
	saved.Tools()
	saved.ActivateTools([]string{"mcp_b__tool_001", "mcp_b__tool_002"})
	sections, tools := sentBytes(saved)
	for _, there := range [][]ServerConfig{servers, servers[1:]} {
		t.Run(fmt.Sprint(len(there)), func(t *testing.T) {
			t.Parallel()
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 10}, List: ListOptions{Max: 4}, Servers: there})
			r := NewRegistry()
			s, changed, err := m.RestoreSession(saved.Save(), &SessionOptions{Registry: r})
			require.NoError(t, err)
			assert.Len(t, changed, 9*(2-len(there)))
			nowSections, nowTools := sentBytes(s)
			assert.True(t, strings.HasPrefix(nowSections, sections))
			assert.Equal(t, tools, nowTools)
			assert.Equal(t, []string{"mcp_b__tool_001", "mcp_b__tool_002"}, namesOf(s.ActiveTools()))

			assert.Empty(t, s.ActivateTools([]string{"mcp_b__tool_004"}))
			_, nowTools = sentBytes(s)
			assert.Equal(t, tools, nowTools[:len(tools)])
			assert.Equal(t, []string{DescribeToolName, CallToolName}, namesOf(s.Tools())[len(tools):])
			assert.Contains(t, namesOf(r.List()), CallToolName)
			assert.Contains(t, callThrough(t, s, "mcp_b__tool_004"), "hello")

			again, _, err := m.RestoreSession(s.Save(), nil)
			require.NoError(t, err)
			_, tools := sentBytes(again)
			assert.Equal(t, nowTools, tools)
			assert.Contains(t, callThrough(t, again, "mcp_b__tool_005"), "hello")

			s.Compact()
			again.Close()
			assert.Len(t, slices.DeleteFunc(s.Tools(), func(t Tool) bool { return !isBridgeTool(t) }), 4)
			require.NoError(t, check(m, s))
		})
	}
}

// Tools of servers that are away count too, and need no room when these are back.
func TestToolsThatAreAwayTakeRoom(t *testing.T) {
	t.Parallel()
	opts := func(servers ...ServerConfig) *Options {
		return &Options{Inline: InlineOptions{Max: 3}, List: ListOptions{Max: 6, ServerMax: 6}, Servers: servers}
	}
	a := inProcess("a", 5)
	first, _ := newTestManager(t, opts(a))
	saved := first.NewSession(nil)
	saved.Tools()
	saved.ActivateTools([]string{"mcp_a__tool_004"})
	saved.Tools()
	saved.ActivateTools([]string{"mcp_a__tool_003"}) // and is not shown yet

	m, _ := newTestManager(t, opts(inProcess("c", 9)))
	s, _, err := m.RestoreSession(saved.Save(), nil)
	require.NoError(t, err)
	assert.Empty(t, s.InlineTools(), "the room for inline tools is taken")
	_, before := sentBytes(s)
	assert.Equal(t, []string{"mcp_c__tool_000", "mcp_c__tool_001"}, s.ActivateTools([]string{"mcp_c__tool_000", "mcp_c__tool_001", "mcp_c__tool_002"}))
	_, now := sentBytes(s)
	assert.Equal(t, before, now[:len(before)])
	require.NoError(t, check(m, s))

	require.NoError(t, m.AddServer(t.Context(), a))
	assert.Equal(t, []string{"mcp_a__tool_004"}, namesOf(s.ActiveTools()))
	assert.Equal(t, []string{"mcp_c__tool_000", "mcp_c__tool_001"}, namesOf(s.InlineTools()), "the first in the catalog, and in the list")
	_, back := sentBytes(s)
	assert.Equal(t, now, back[:len(now)])
	assert.Contains(t, callThrough(t, s, "mcp_a__tool_003"), "hello", "there is no room for it any more")
	require.NoError(t, check(m, s))
}

// A counter that panics must not keep the Manager from working.
func TestTokenCounterMayPanic(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{MaxTokens: 1000}, Tokens: panicking{}})
	require.NoError(t, m.AddTools("a", mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}}))
	require.NoError(t, m.AddTools("b", echoTool("run", "")))
	assert.Len(t, m.InlineTools(), 2)
}
