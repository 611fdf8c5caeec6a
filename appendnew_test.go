package mcphybrid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentBytes returns what a host sends with each request of s, item by item.
func sentBytes(s *Session) (sections string, tools []string) {
	for _, t := range allTools(s) {
		tools = append(tools, definitionText(t))
	}
	return s.PromptSections(PromptFull), tools
}

// allTools returns the tools that s shows, with those that a provider hides.
func allTools(s *Session) (list []Tool) {
	for _, e := range s.show() {
		switch {
		case e.isTool():
			list = append(list, e.tool)
		case e.slot == asMeta:
			list = append(list, metaTool{s, e.meta})
		}
	}
	return list
}

// A walk takes a session and its catalog through random steps.
type walk struct {
	t        *testing.T
	random   *rand.Rand
	m        *Manager
	s        *Session
	opts     SessionOptions
	servers  int
	compacts bool // steps may compact
}

func newWalk(t *testing.T, seed uint64, d Disclosure) *walk {
	list := ListOptions{Max: []int{0, 12}[seed%2]} // half of the walks fill the list
	var parts store.Parts
	if seed%4 < 2 {
		parts = new(partMap)
	}
	m, _ := newTestManager(t, &Options{StateParts: parts, Prompt: PromptOptions{ListInline: seed%3 == 1}, Tokens: counters[seed%3], Inline: InlineOptions{Max: 8}, List: list, MaxResult: 200, Active: ActiveOptions{Max: 5, Turns: 3}, Servers: []ServerConfig{inProcess("first", 5), inProcess("second", 7)}})
	w := &walk{t: t, random: rand.New(rand.NewPCG(seed, uint64(d))), m: m, opts: SessionOptions{Disclosure: d}, servers: 2}
	w.s = m.NewSession(&w.opts)
	return w
}

// counters has, by seed, who counts the tokens of a walk. The last one's inline tools
// have so many that there is a guide to them.
var counters = [3]TokenCounter{2: constantTokens(300)}

// anyName returns the name of a tool that is, was or never was there.
func (w *walk) anyName() string {
	server := []string{"first", "second", fmt.Sprintf("s%d", w.random.IntN(w.servers+1))}[w.random.IntN(3)]
	return fmt.Sprintf("mcp_%s__tool_%03d", server, w.random.IntN(9))
}

// step does one random thing and describes it.
func (w *walk) step() string {
	ctx := w.t.Context()
	call := func(name, args string) string {
		_, _ = w.s.Call(ctx, name, args)
		return name + args
	}
	switch w.random.IntN(12) {
	case 0, 1:
		return call(SearchToolName, fmt.Sprintf(`{"query":"chore %d","max_results":%d}`, w.random.IntN(9), 1+w.random.IntN(3)))
	case 2, 3:
		return call(w.anyName(), `{"text":"x"}`)
	case 4:
		return call(w.anyName(), `{"text":"`+strings.Repeat("long ", 100)+`"}`)
	case 5:
		return call(w.anyName(), `{"text":1}`)
	case 6:
		name := w.anyName()
		w.s.ActivateTools([]string{name, w.anyName()})
		return "activate " + name
	case 7:
		w.servers++
		name := fmt.Sprintf("s%d", w.servers)
		assert.NoError(w.t, w.m.AddServer(ctx, inProcess(name, w.random.IntN(9))))
		return "add " + name
	case 8:
		name := fmt.Sprintf("s%d", w.random.IntN(w.servers+1))
		if w.random.IntN(8) == 0 {
			name = "second"
		}
		w.m.RemoveServer(name)
		return "remove " + name
	case 9:
		name := fmt.Sprintf("s%d", w.random.IntN(w.servers+1))
		_ = w.m.AddTools(name+"_local", echoTool(fmt.Sprintf("tool_%03d", w.random.IntN(9)), "Does a local chore"))
		return "add tools " + name
	case 10:
		w.s.NextTurn()
		return "next turn"
	}
	if w.compacts && w.random.IntN(4) == 0 {
		w.s.Compact()
		return "compact"
	}
	return call(PageToolName, `{"id":"r1"}`)
}

// TestSpecF2WhatWasSentNeverChanges checks, for each way of disclosure, that
// what the model was sent stays and only grows at its end.
func TestSpecF2WhatWasSentNeverChanges(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		for seed := range mcptest.Long[uint64](30, 10) {
			w := newWalk(t, seed, d)
			sections, tools := sentBytes(w.s)
			appended := 0
			for range 60 {
				did := w.step()
				nowSections, nowTools := sentBytes(w.s)
				require.True(t, strings.HasPrefix(nowSections, sections), "%s changed the sections from\n%s\nto\n%s", did, sections, nowSections)
				require.GreaterOrEqual(t, len(nowTools), len(tools), did)
				require.Equal(t, tools, nowTools[:len(tools)], did)
				appended += len(nowTools) - len(tools)
				if d == ByBridge {
					require.Zero(t, appended, did)
					require.Equal(t, sections, nowSections, did)
				}
				sections, tools = nowSections, nowTools
			}
			require.NoError(t, check(w.m, w.s))
			assert.Equal(t, d != ByBridge, appended > 0, "disclosure %d, seed %d", d, seed)

			w.s.Compact()
			_, tools = sentBytes(w.s)
			fresh := w.m.NewSession(&w.opts)
			fresh.ActivateTools(namesOf(w.s.ActiveTools()))
			_, want := sentBytes(fresh)
			assert.Equal(t, want, tools, "after Compact it is as in a new session with the same active tools")
		}
	}
}

// The model can call everything that it is told to call.
func TestShownToolsAreCallable(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		for seed := range uint64(10) {
			w := newWalk(t, seed, d)
			for range 40 {
				w.step()
			}
			for _, tool := range allTools(w.s) {
				_, err := w.s.Call(t.Context(), tool.Name(), nil)
				if _, there := w.m.cur.Load().indexOf(tool.Name()); there || !isBridgeTool(tool) {
					assert.NoError(t, err, tool.Name())
				} else {
					assert.ErrorIs(t, err, ErrUnknownTool)
				}
			}
		}
	}
}

func isBridgeTool(t Tool) bool { _, ok := t.(*BridgeTool); return ok }

// The first request decides what is sent. Looking at the figures before does
// not.
func TestNothingIsFixedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	s := m.NewSession(nil)
	assert.Empty(t, s.Tools())
	assert.Empty(t, s.PromptSections(PromptFull))
	require.NoError(t, m.AddTools("b", echoTool("one", "")))
	s.Stats()
	s.InlineTools()
	require.NoError(t, m.AddServer(t.Context(), inProcess("a", 1)))
	m.RemoveServer("b")
	assert.Equal(t, []string{"mcp_a__tool_000"}, namesOf(s.Tools()))
}

// A session ByBridge finds, describes and calls without changing its list.
func TestByBridge(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 9)}})
	reg := NewRegistry()
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Registry: reg})
	t.Cleanup(s.Close)
	want := []string{"mcp_a__tool_000", SearchToolName, DescribeToolName, CallToolName, PageToolName}
	assert.Equal(t, want, namesOf(s.Tools()))
	assert.Contains(t, s.SearchSection(), "`mcp_tool_call`")

	ask := func(name, args string) *mcp.CallToolResult {
		r, err := s.Call(t.Context(), name, args)
		require.NoError(t, err)
		return r
	}
	found := resultText(t, ask(SearchToolName, `{"query":"chore 7"}`))
	assert.Contains(t, found, `"mcp_a__tool_007"`)
	assert.Contains(t, found, textFoundBridge)
	assert.Equal(t, 1, strings.Count(found, `"inputSchema":{"properties":{"text":{"type":"string"}},`))
	described := resultText(t, ask(DescribeToolName, `{"names":["mcp_a__tool_007","mcp_a__tool_07"]}`))
	assert.Contains(t, described, `"inputSchema":{"properties":{"text":{"type":"string"}},`)
	assert.Contains(t, described, `"problems":["There is no tool named \"mcp_a__tool_07\".`)
	for _, arguments := range []string{`{"text":"hi"}`, `"{\"text\":\"hi\"}"`} {
		assert.Equal(t, `tool_007 {"text":"hi"}`, resultText(t, ask(CallToolName, `{"name":"mcp_a__tool_007","arguments":`+arguments+`}`)))
	}
	for _, arguments := range []string{`null`, `""`, `{}`} {
		assert.Equal(t, `tool_007 {}`, resultText(t, ask(CallToolName, `{"name":"mcp_a__tool_007","arguments":`+arguments+`}`)))
	}
	assert.Equal(t, `tool_007 {}`, resultText(t, ask(CallToolName, `{"name":"mcp_a__tool_007"}`)))
	assert.Equal(t, want, namesOf(s.Tools()))
	assert.Empty(t, s.ActiveTools())
	assert.NoError(t, checkRegistry(s, reg))

	for args, text := range map[string]string{
		`{}`:         `mcp_tool_call was not run: "name" is missing or empty. Call it with {"name": "a tool's name", "arguments": {…}}.`,
		`{"name":1}`: `mcp_tool_call was not run: "name" is a JSON number, want a string. Call it with {"name": "a tool's name", "arguments": {…}}.`,
		`{"name":"mcp_a__tool_7","arguments":{}}`: ``,
	} {
		r, _ := s.Call(t.Context(), CallToolName, args)
		assert.True(t, r.IsError)
		if text != "" {
			assert.Equal(t, text, resultText(t, r))
		}
	}
	most := `{"names":["` + strings.Repeat(`x","`, maxDescribed-1) + `x"`
	for args, text := range map[string]string{
		`{}`: `"names" is missing or empty`, `{"names":[]}`: `"names" is missing or empty`, `{"names":"x"}`: `"names" is a JSON string, want a list`,
		most + `,"y"]}`: `"names" has 21 names, more than the limit of 20`, most + `,1]}`: `"names" is a JSON number, want a string`,
	} {
		r := ask(DescribeToolName, args)
		assert.True(t, r.IsError, args)
		assert.Contains(t, resultText(t, r), text, args)
	}
	assert.False(t, ask(DescribeToolName, most+`]}`).IsError, "so many are described")
	assert.Contains(t, resultText(t, ask(CallToolName, `{"name":"mcp_tool_search","query":"chore 7"}`)), `"mcp_a__tool_007"`)
	assert.Contains(t, resultText(t, ask(CallToolName, `{"name":"mcp_tool_call","arguments":{"name":"mcp_a__tool_007"}}`)), "it can't call itself")
	assert.NotContains(t, want, ReadOnlyCallToolName)
}

func TestDisclosureIsChecked(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	assert.PanicsWithValue(t, "mcphybrid: SessionOptions.Disclosure is 7", func() { m.NewSession(&SessionOptions{Disclosure: 7}) })
}

// With ByProvider, all tools are exported from the start, and the list has those that the
// provider does not hide. A search changes neither.
func TestByProvider(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 6)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
	want := []string{"mcp_a__tool_000", "mcp_a__tool_001", SearchToolName}
	all := append(slices.Clone(want), "mcp_a__tool_002", "mcp_a__tool_003", "mcp_a__tool_004", "mcp_a__tool_005")
	assert.Equal(t, want, namesOf(s.Tools()))
	assert.Equal(t, all, namesOf(allTools(s)))
	_, err := s.Call(t.Context(), SearchToolName, `{"query":"chore 4"}`)
	require.NoError(t, err)
	assert.NotEmpty(t, s.ActiveTools())
	assert.Equal(t, want, namesOf(s.Tools()))
	assert.Equal(t, all, namesOf(allTools(s)))
}

// A tool whose definition changes is still shown as it was sent, and called by
// its new definition.
func TestChangedDefinitionIsShownAsSent(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	tool := func(description string) mcpserver.ServerTool {
		return mcpserver.ServerTool{
			Tool: mcp.NewTool("run", mcp.WithDescription(description)),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(description), nil
			},
		}
	}
	require.NoError(t, m.AddTools("a", tool("old")))
	s := m.NewSession(nil)
	require.Equal(t, "old", s.Tools()[0].Description())
	m.RemoveServer("a")
	require.NoError(t, m.AddTools("a", tool("new")))
	assert.Equal(t, "old", s.Tools()[0].Description())
	r, err := s.Call(t.Context(), "mcp_a__run", nil)
	require.NoError(t, err)
	assert.Equal(t, "new", resultText(t, r))
	s.Compact()
	assert.Equal(t, "new", s.Tools()[0].Description())
}

// An agent's loop of 200 turns over the tools of published servers never
// changes a byte that was sent, in any format, unless Compact does.
func TestSpecF2AgentLoop(t *testing.T) {
	t.Parallel()
	var servers []string
	lists := mcptest.CatalogTools(t)
	for name := range lists {
		servers = append(servers, name)
	}
	slices.Sort(servers)
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		m, _ := newTestManager(t, nil)
		var names []string
		add := func(server string) { require.NoError(t, m.AddTools(server, lists[server]...)) }
		for _, name := range servers[:len(servers)/2] {
			add(name)
		}
		s := m.NewSession(&SessionOptions{Disclosure: d})
		random := rand.New(rand.NewPCG(3, uint64(d)))
		sent := make(map[provider.Format][]string)
		sections, compactions := "", 0
		for turn := range 200 {
			s.NextTurn()
			for _, f := range formats {
				list, err := s.Export(f)
				if d == ByProvider && slices.Contains([]provider.Format{provider.MCP, provider.Gemini, provider.Bedrock}, f) {
					require.ErrorContains(t, err, "can't defer tools")
					continue
				}
				if err != nil {
					require.ErrorContains(t, err, "accepts at most")
				}
				require.GreaterOrEqual(t, len(list), len(sent[f]))
				for i, e := range list {
					if i < len(sent[f]) {
						require.Equal(t, sent[f][i], string(e.JSON), "%s, turn %d", f, turn)
					} else {
						sent[f] = append(sent[f], string(e.JSON))
					}
				}
			}
			now := s.PromptSections(PromptFull)
			require.True(t, strings.HasPrefix(now, sections))
			sections = now

			names = namesOf(m.cur.Load().tools)
			name := names[random.IntN(len(names))]
			_, own, _ := strings.Cut(name, "__")
			_, err := s.Call(t.Context(), SearchToolName, map[string]any{"query": strings.ReplaceAll(own, "_", " "), "max_results": 2})
			require.NoError(t, err)
			_, _ = s.Call(t.Context(), name, `{}`)
			switch {
			case turn%20 == 5 && turn/20 < len(servers)/2:
				add(servers[len(servers)/2+turn/20])
			case turn%60 == 33:
				m.RemoveServer(servers[turn/60])
			case turn%70 == 69:
				s.Compact()
				clear(sent)
				sections = ""
				compactions++
			}
		}
		assert.Equal(t, 2, compactions)
		assert.Greater(t, len(names), 250)
	}
}

// With ByBridge, a search finds an inline tool that came after the list was
// sent.
func TestByBridgeFindsLaterInlineTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 2)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	s.Tools()
	s.PromptSections(PromptFull)
	require.NoError(t, m.AddTools("later", echoTool("airship", "Flies a zeppelin")))
	r, err := s.Call(t.Context(), SearchToolName, `{"query":"zeppelin"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, r), `"name":"mcp_later__airship"`)
	r, err = s.Call(t.Context(), SearchToolName, `{"query":"chore"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, r), `{"tools":[],"count":0,"message":"You have mcp_a__tool_000, mcp_a__tool_001 already: call them by these names.`)
}

// A session whose list is full before its first look neither takes what the others
// begin with nor gives them what it has besides.
func TestFullSessionBeginsAlone(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, List: ListOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 3)}})
		full, other := m.NewSession(nil), m.NewSession(nil)
		require.Empty(t, full.ActivateTools([]string{"mcp_a__tool_002"}))
		if first {
			full.Tools()
		}
		assert.NotContains(t, toolNamesOf(other.Tools()), CallToolName)
		assert.Contains(t, toolNamesOf(full.Tools()), CallToolName)
		assert.NoError(t, check(m, full, other))
	}
}
