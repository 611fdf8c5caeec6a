package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/require"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcphybrid/mcphybrid/provider"
)

// What a name means in a user's session does not change while its model has read of it.
func TestPictureOfNamesThatChangeHands(t *testing.T) {
	for _, of := range []struct {
		name   string
		turns  bool
		follow Disclosure
	}{{"in a list", false, ByActivation}, {"in turns", true, ByAddition}, {"over the bridge", true, ByBridge}} {
		t.Run(strings.ReplaceAll(of.name, " ", "_"), func(t *testing.T) {
			inPicture(t, "What names mean in a user's session, "+of.name+", while a tool of the system is held back, and the user has one of its name.", func(p *picture) {
				a := serving("a", echoTool("one", "The system's."), echoTool("two", "The system's."), echoTool("three", "The system's."))
				m := p.start("The system has three tools of a.", Options{Trust: TrustQuarantine, Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{a}})
				u := newUser(p.T, m, "ada", nil)
				s := u.NewSession(&SessionOptions{Disclosure: of.follow})
				defer s.Close()
				look := func(title string) {
					p.step(title)
					if of.turns {
						p.turn(s.Turn(provider.Anthropic, ""))
					} else {
						p.shown(s)
					}
					p.session("", s)
					for _, name := range []string{"mcp_a__one", "mcp_a__two", "mcp_a__three"} {
						r, err := s.Call(p.Context(), name, nil)
						p.line("%s: %s, error %v", name, strings.ReplaceAll(resultText(p.T, r), "\n", " "), err)
					}
					p.hits("found", s.Find(p.Context(), "system user", SearchOptions{}))
				}
				p.line("activated %v", s.ActivateTools([]string{"mcp_a__two"}))
				look("The model has one inline and another active.")
				mcpServer(a).AddTools(echoTool("one", "The system's, changed."), echoTool("two", "The system's, changed."))
				look("Both have changed, and are held back.")
				require.NoError(p, u.AddTools("a", echoTool("one", "The user's."), echoTool("two", "The user's."), echoTool("three", "The user's."), echoTool("four", "The user's.")))
				look("The user has a server of that name.")
				for _, e := range p.changed() {
					require.NoError(p, m.Accept(e.Server, e.Tool, e.Is))
				}
				look("The system's are accepted.")
				mcpServer(a).DeleteTools("one", "three")
				look("Two of the system's have left.")
				p.line("dropped %v", namesOf(s.Compact()))
				look("After Compact.")
				require.True(p, u.RemoveServer("a"))
				look("The user's server is gone.")
			})
		})
	}
}

// Which way a first Turn chooses, and what it then has.
func TestPictureOfDisclosures(t *testing.T) {
	inPicture(t, "How the first Turn of a session chooses the way in which the model gets tools, by what the host asks for, by the format and by the model.", func(p *picture) {
		deny := func(names ...string) Access { return Access{Deny: names} }
		for _, of := range []struct {
			title   string
			tools   int
			asked   Disclosure
			format  provider.Format
			model   string
			session SessionOptions
		}{
			{"a model that takes tools in the conversation", 3, Automatic, provider.OpenAIResponses, "gpt-5.6", SessionOptions{}},
			{"a model that is not named", 3, Automatic, provider.Anthropic, "", SessionOptions{}},
			{"a model that takes none", 3, Automatic, provider.Anthropic, "claude-3-opus-20240229", SessionOptions{}},
			{"a format that takes none", 3, Automatic, provider.Gemini, "gemini-3", SessionOptions{}},
			{"nothing is deferred", 1, Automatic, provider.Gemini, "", SessionOptions{}},
			{"there is no tool", 0, Automatic, provider.Gemini, "", SessionOptions{}},
			{"no search", 3, Automatic, provider.Gemini, "", SessionOptions{Access: deny(SearchToolName)}},
			{"no search, no tool", 0, Automatic, provider.Gemini, "", SessionOptions{Access: deny(SearchToolName)}},
			{"no call tool", 3, Automatic, provider.Gemini, "", SessionOptions{Access: deny(CallToolName)}},
			{"no call tool, nothing is deferred", 1, Automatic, provider.Gemini, "", SessionOptions{Access: deny(CallToolName)}},
			{"no page tool", 3, Automatic, provider.Gemini, "", SessionOptions{Access: deny(PageToolName, DescribeToolName)}},
			{"a client", 3, Automatic, provider.OpenAIChat, "", SessionOptions{Client: true}},
			{"callers from code", 3, ByActivation, provider.Anthropic, "", SessionOptions{AllowedCallers: []string{"code_execution_20250825"}}},
			{"by addition, a model that refuses", 3, ByAddition, provider.Anthropic, "claude-3-opus-20240229", SessionOptions{}},
			{"by addition, a format that can't", 3, ByAddition, provider.Gemini, "", SessionOptions{}},
			{"by provider, a format that can't", 3, ByProvider, provider.Gemini, "", SessionOptions{}},
			{"by provider, no search", 3, ByProvider, provider.OpenAIResponses, "gpt-5.6", SessionOptions{Access: deny(SearchToolName)}},
			{"by provider, an old model", 3, ByProvider, provider.OpenAIResponses, "gpt-4o", SessionOptions{}},
			{"by the bridge, no tool", 0, ByBridge, provider.OpenAIChat, "", SessionOptions{}},
			{"by the bridge, no search", 3, ByBridge, provider.OpenAIChat, "", SessionOptions{Access: deny(SearchToolName)}},
		} {
			m := p.start(of.title, Options{Inline: InlineOptions{Max: 1}})
			if of.tools > 0 {
				require.NoError(p, m.AddTools("s", chores(of.tools)...))
			}
			of.session.Disclosure = of.asked
			s := m.NewSession(&of.session)
			p.line("before: %v, search mode %v", toolNames(s.Tools()), s.IsSearchMode())
			turn, err := s.Turn(of.format, of.model)
			p.turn(turn, err)
			p.line("the list now: %v, search mode %v", toolNames(s.Tools()), s.IsSearchMode())
			p.session("", s)
			require.NoError(p, m.AddTools("more", chores(2)...))
			if err == nil {
				p.line("There are two tools more.")
				p.turn(s.Turn(of.format, of.model))
			}
			s.Close()
		}
	})
}

// Searches of an OpenAI model.
func TestPictureOfToolSearches(t *testing.T) {
	inPicture(t, "What a search of an OpenAI model is answered, item by item.", func(p *picture) {
		m := p.start("Ten tools of two servers, of which one is inline.", Options{Inline: InlineOptions{Max: 1}, Search: RankingOptions{Results: 2, Limit: 4, Threshold: -1}, List: ListOptions{Max: 7}, Needs: map[string][]string{"mcp_a__tool_004": {"mcp_b__tool_001"}},
			Servers: []ServerConfig{inProcess("a", 6), inProcess("b", 4)}})
		s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
		defer s.Close()
		p.turn(s.Turn(provider.OpenAIResponses, "gpt-5.6"))
		for _, item := range []string{
			`{"type":"tool_search_call","call_id":"c1","arguments":{"query":"chore 4"}}`,
			`{"type":"tool_search_call","call_id":"c2","arguments":"{\"query\":\"chore 3 b\",\"max_results\":1}"}`,
			`{"type":"tool_search_call","call_id":"c3","arguments":{"query":"chore 4","max_results":0}}`,
			`{"type":"tool_search_call","call_id":"c4","arguments":{"query":"zebra"}}`,
			`{"type":"tool_search_call","call_id":"c5","arguments":{"query":""}}`,
			`{"type":"tool_search_call","call_id":"c6","arguments":"no JSON"}`,
			`{"type":"tool_search_call","call_id":"c7","arguments":""}`,
			`{"type":"tool_search_call","call_id":"c8"}`,
			`{"type":"tool_search_call","arguments":{"query":"chore","max_results":99}}`,
			`{"type":"tool_search_call","execution":"client","call_id":null,"arguments":{"query":"chore"}}`,
			`{"type":"tool_search_call","execution":"server","call_id":"c9","arguments":{"query":"chore"}}`,
			`{"type":"function_call","call_id":"c10"}`,
			`{"type":"` + strings.Repeat("x", 100) + `"}`,
			`{}`, `[]`, ``,
		} {
			p.heading(item)
			found, err := s.AnswerToolSearch(p.Context(), json.RawMessage(item))
			p.line("error %v", err)
			p.block("answer", indented(string(found)))
			p.happened()
			p.turn(s.Turn(provider.OpenAIResponses, "gpt-5.6"))
			p.session("", s)
		}
		p.heading("The same conversation in another format.")
		p.turn(s.Turn(provider.OpenAIChat, "gpt-5.6"))
		require.NoError(p, m.Close())
		found, err := s.AnswerToolSearch(p.Context(), json.RawMessage(`{"type":"tool_search_call","call_id":"c","arguments":{"query":"chore"}}`))
		p.line("closed: %s, error %v", found, err)
	})
}

// letters counts each letter e of a text as a token, but for texts that have trouble in them.
type letters struct{ wait chan struct{} }

func (l letters) CountTokens(text string) int {
	switch {
	case strings.Contains(text, "panics"):
		panic("can't count this")
	case strings.Contains(text, "negative"):
		return -5
	case strings.Contains(text, "endless"):
		return 1 << 40
	case strings.Contains(text, "hangs"):
		<-l.wait
	}
	return strings.Count(text, "e")
}

func TestPictureOfCountedTokens(t *testing.T) {
	inPicture(t, "What tools cost where the host counts the letters e, and what becomes of a count that is none.", func(p *picture) {
		wait := make(chan struct{})
		m := p.start("A definition has 5 letters e besides those of its name and description.", Options{Tokens: letters{wait}, Inline: InlineOptions{Max: 3, MaxTokens: 30}, Prompt: PromptOptions{ListInline: true, MaxListingTokens: 9},
			Servers: []ServerConfig{serving("s", echoTool("one", "Sees."), echoTool("two", "Is negative."), echoTool("three", "Is free."), echoTool("zero", "It panics.")), serving("t", echoTool("one", "eeeeeeeeeee"), echoTool("two", "endless"))}})
		cost := func() {
			for t := range m.Default().view().each() {
				p.line("%s costs %d, its lines %d, %d and %d", t.name, m.toolTokens(t), m.lineTokens(t, lineFull), m.lineTokens(t, lineName), m.lineTokens(t, lineNone))
			}
			p.shown(m.Default())
			p.session("", m.Default())
		}
		cost()
		var all []*BridgeTool
		for t := range m.Default().view().each() {
			all = append(all, t)
		}
		for _, budget := range []int{-1, 0, 13, 14, 23, 24, 25, 26, NoLimit} {
			p.line("pruned to %d: %v", budget, namesOf(Prune(all[:2], budget, letters{})))
		}
		p.line("estimated: %d, counted %d, and of no tool %d", EstimateTokens(all[:2], nil), EstimateTokens(all[:1], letters{}), EstimateTokens[Tool](nil, nil))
		p.step("Tools are added whose names are taken, so that they get others.")
		require.NoError(p, m.AddTools("s!", echoTool("one", "Sees."), echoTool("two", "Is here.")))
		cost()
		p.step("A server is added whose definition can't be counted in time.")
		ctx, cancel := context.WithTimeout(p.Context(), 3*time.Second)
		defer cancel()
		p.line("error %v", m.AddServer(ctx, serving("u", echoTool("one", "It hangs."))))
		ctx, cancel = context.WithTimeout(p.Context(), 3*time.Second)
		defer cancel()
		p.line("removed: %v", m.RemoveServer("u"))
		close(wait)
		p.line("error %v", m.AddServer(ctx, serving("u", echoTool("one", "It hangs."))))
		p.step("The counter goes on.")
		cost()
	})
}

// What a next process has of the lists that the last one kept.
func TestPictureOfKeptLists(t *testing.T) {
	inPicture(t, "What a process shows of lists that another has kept, before and after its servers list again.", func(p *picture) {
		cache := NewTestStore()
		servers := func(about string) (list []ServerConfig) {
			for name, tools := range map[string][]mcpserver.ServerTool{
				"s": {echoTool("one", about), echoTool("two", strings.Repeat("x", 300))}, "t": {echoTool("one", "Stays."), echoTool("large", strings.Repeat("x", 900))},
			} {
				server := mcpserver.NewMCPServer(name, "1", mcpserver.WithCacheHints(0, mcp.CacheScopePublic))
				server.AddTools(tools...)
				web := mcpserver.NewStreamableHTTPServer(server, mcpserver.WithStateLess(true))
				list = append(list, ServerConfig{Name: name, URL: "http://" + name + "/mcp", HTTPClient: unwired(web), Needs: map[string][]string{"none": {"one"}}})
			}
			slices.SortFunc(list, func(a, b ServerConfig) int { return strings.Compare(a.Name, b.Name) })
			return list
		}
		limits := config.Limits{MaxDefinition: 800}
		look := func(title string) {
			p.step(title)
			for _, s := range p.m.Servers() {
				s.Retry, s.Failures = time.Time{}, 0 // when it tries again is left to chance
				p.line("server %s", fieldsOf(s))
			}
			p.session("", p.m.Default())
		}
		m := p.start("The first process.", Options{Cache: cache, Limits: limits, Servers: servers("First.")})
		look("Its servers.")
		before := m.cur.Load()
		require.NoError(p, m.Refresh())
		for _, src := range m.sources {
			src.server.ListAgain() // as if it had been told
		}
		look("They have listed the same again.")
		p.line("the catalog is another: %v", m.cur.Load() != before)
		require.NoError(p, m.Close())
		for _, of := range []struct {
			title  string
			limits config.Limits
			about  string
		}{
			{"Nothing has changed.", limits, "First."},
			{"A tool has changed meanwhile.", limits, "Second."},
			{"There is less room for a server.", config.Limits{MaxDefinition: 800, MaxListing: 600}, "Second."},
			{"There is less room for all.", config.Limits{MaxDefinition: 800, MaxCatalog: 800}, "Second."},
			{"There is less room for a definition.", config.Limits{MaxDefinition: 500}, "Second."},
		} {
			again := NewManager(&Options{Cache: cache, Limits: of.limits, Servers: servers(of.about)})
			p.m, p.seen = again, make(map[string]string)
			p.heading(of.title)
			p.line("started: %v", again.Start(p.Context()))
			look("The next process has started.")
			before := again.cur.Load()
			down := make(map[string]bool) // they are asked again at a time that is left to chance
			for _, s := range again.Servers() {
				down["mcp_"+s.Name] = s.State == StateDown
			}
			for _, name := range []string{"mcp_s__one", "mcp_t__one", "mcp_s__two"} {
				if down[name[:len("mcp_s")]] {
					continue
				}
				r, err := again.Call(p.Context(), name, nil)
				p.line("%s: %s, error %v", name, resultText(p.T, r), err)
			}
			look("Its servers were called, and so have listed.")
			p.line("the catalog is another: %v", again.cur.Load() != before)
			require.NoError(p, check(again))
			require.NoError(p, again.Close())
		}
	})
}

// Sessions of many rights take no more than so many screenings and partitions.
func TestScreeningsAreBounded(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("s", 2)}, Rules: []Rule{{Name: "r", Intent: "i*", Patterns: []string{"*0"}, Action: RuleInclude}}})
	most := mostPartitions(2)
	for i := range most + 10 {
		s := m.NewSession(&SessionOptions{Intent: fmt.Sprintf("i%d", i)})
		require.Len(t, s.Tools(), 1)
		s.Close()
	}
	m.screenings.mu.Lock()
	defer m.screenings.mu.Unlock()
	require.Len(t, m.screenings.byKey, most)
	require.Len(t, m.partitioned.byKey, most)
}

// Notes fill their room to the byte.
func TestNotesAtTheirLimits(t *testing.T) {
	t.Parallel()
	for _, spare := range []int{1, 0, -1} {
		// The texts of a note have 5 lines: four as long as they may be, and one that fills what is left.
		n := noted{tool: "t"}
		n.hints.Preconditions = []string{strings.Repeat("a", maxNoteText), strings.Repeat("b", maxNoteText), strings.Repeat("c", maxNoteText), strings.Repeat("d", maxNoteText)}
		lines := noteLines(n.hints)
		n.hints.Preconditions = append(n.hints.Preconditions, strings.Repeat("e", maxNote-len(lines)-len("  - Before: \n")-spare))
		got := noteLines(n.hints)
		if spare < 0 {
			require.Equal(t, lines, got, "one byte too many")
		} else {
			require.Len(t, got, maxNote-spare)
		}
	}
	var list []noted
	size := 0
	for i := range 12 {
		list = append(list, noted{tool: fmt.Sprintf("tool_%02d", i)})
		list[i].hints.Preconditions = []string{strings.Repeat("a", 200), strings.Repeat("b", 200), strings.Repeat("c", 200), strings.Repeat("d", 200)}
		size = len("- tool_00\n") + len(noteLines(list[i].hints))
	}
	left := maxBlock - 9*size // for a first one beside nine
	for _, spare := range []int{1, 0, -1} {
		first := noted{tool: strings.Repeat("t", 40)}
		first.hints.OutputShape = "x"
		first.tool += strings.Repeat("t", left-len("- \n")-len(first.tool)-len(noteLines(first.hints))-spare)
		block := overrideBlock(append([]noted{first}, list[:9]...))
		require.Equal(t, spare >= 0, strings.Contains(block, first.tool), spare)
		require.Equal(t, spare < 0, strings.HasSuffix(block, "for longer are left out.\n"), spare)
	}
}

// A tool that another has replaced has no standing, though that one has its name.
func TestReplacedToolHasNoStanding(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddTools("s", echoTool("one", "First.")))
	before := m.InlineTools()[0]
	require.True(t, m.RemoveServer("s"))
	require.NoError(t, m.AddTools("s", echoTool("one", "Second.")))
	p := m.Default().view().partition
	require.Equal(t, inline, p.standing(m.InlineTools()[0]))
	require.Equal(t, hidden, p.standing(before))
}

// What a session needs since before its list is first asked for is in the list.
func TestFirstListHasWhatIsNeededByThen(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: 100, Inline: InlineOptions{Max: 1}, List: ListOptions{Max: 2}, Servers: []ServerConfig{inProcess("s", 4)}})
	cut, full, plain := m.NewSession(nil), m.NewSession(nil), m.NewSession(nil)
	_, err := cut.Call(t.Context(), "mcp_s__tool_000", map[string]any{"text": strings.Repeat("x", 1000)})
	require.NoError(t, err)
	require.Equal(t, []string{"mcp_s__tool_000", SearchToolName, PageToolName}, toolNames(cut.Tools()))
	full.ActivateTools([]string{"mcp_s__tool_001", "mcp_s__tool_002"})
	require.Equal(t, []string{"mcp_s__tool_000", SearchToolName, DescribeToolName, CallToolName, "mcp_s__tool_001"}, toolNames(full.Tools()))
	require.Equal(t, []string{"mcp_s__tool_000", SearchToolName}, toolNames(plain.Tools()))
}
