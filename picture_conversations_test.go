package mcphybrid

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/provider"
)

// turn writes what a Turn returned. What it has in common with the Turn before is not written.
func (p *picture) turn(turn Turn, err error) {
	synctest.Wait()
	p.happened()
	if err != nil {
		p.line("error %v", err)
		return
	}
	p.line("%s, as %s; place %d after %d", turn.Disclosure, turn.Why, turn.Place, turn.Before)
	p.part("system", turn.System)
	var names []string
	for _, t := range turn.Tools {
		name := t.Name
		if t.Deferred {
			name += " (deferred)"
		}
		names = append(names, name)
	}
	p.part("tools", strings.Join(names, "\n"))
	p.block("news", turn.News)
	for _, t := range turn.Added {
		p.line("added %s deferred=%v", t.Name, t.Deferred)
	}
	if turn.Removed != nil {
		p.line("removed %v", turn.Removed)
	}
	p.part("waiting", strings.Join(turn.Waiting, "\n"))
	p.part("betas", strings.Join(turn.Betas, "\n"))
	p.messages("append", turn.Append)
	for _, in := range turn.Inserts {
		p.line("insert at %d, after place %d: %q", in.At, in.Before, in.News)
		p.messages("  it has", in.Messages)
	}
}

// messages writes messages for a provider without what the news say.
func (p *picture) messages(title string, list []json.RawMessage) {
	for _, m := range list {
		text := string(m)
		if len(text) > 300 {
			text = fmt.Sprintf("%s… of %d bytes", text[:300], len(text))
		}
		p.line("%s %s", title, text)
	}
}

func TestPictureOfConversations(t *testing.T) {
	for _, of := range []struct {
		name       string
		disclosure Disclosure
		format     provider.Format
		model      string
	}{
		{"by activation", ByActivation, provider.OpenAIChat, "gpt-5"},
		{"by the bridge", ByBridge, provider.OpenAIChat, "gpt-5"},
		{"by addition", ByAddition, provider.Anthropic, ""},
		{"by provider", ByProvider, provider.Anthropic, "claude-sonnet-4-5"},
		{"by provider, searching", ByProvider, provider.OpenAIResponses, "gpt-5.6"},
		{"automatic", Automatic, provider.Gemini, ""},
	} {
		t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(of.name), func(t *testing.T) {
			inPicture(t, "A conversation "+of.name+", in the format "+string(of.format)+": what each Turn gives the host while tools are found, come, change and leave.", func(p *picture) {
				cfg := inProcess("chores", 6)
				server := mcpServer(cfg)
				m := p.start("A server with six tools, of which two are inline.", Options{
					Inline: InlineOptions{Max: 2}, Active: ActiveOptions{Max: 2, Turns: 2}, MaxResult: 200, Servers: []ServerConfig{cfg},
					Rules: []Rule{{Name: "listed", Patterns: []string{"*late*"}, Action: RuleSummarize}},
				})
				s := m.NewSession(&SessionOptions{Disclosure: of.disclosure, Label: "talk"})
				defer s.Close()
				next := func(title string) {
					p.step(title)
					p.turn(s.Turn(of.format, of.model))
					p.session("", s)
				}
				next("The beginning.")
				next("Nothing has happened.")
				p.called(s, SearchToolName, `{"query":"chore 3","max_results":1}`)
				next("The model has searched.")
				found, err := s.AnswerToolSearch(t.Context(), json.RawMessage(`{"type":"tool_search_call","call_id":"call_1","arguments":"{\"query\":\"chore 5\",\"max_results\":1}"}`))
				next("The model has searched by tool_search, if it has that.")
				p.line("found %s, error %v", found, err)
				p.called(s, "mcp_chores__tool_004", `{"text":"x"}`)
				next("The model has called a deferred tool.")
				server.AddTools(echoTool("late_1", "Comes late."), echoTool("tool_0005", "Comes late, but is listed early."))
				next("Tools have come.")
				p.line("activated %v", s.ActivateTools([]string{"mcp_chores__late_1", "mcp_chores__late_1", "mcp_chores__tool_000", "none"}))
				next("The host has activated one, one that is inline, and one that is not there.")
				server.DeleteTools("tool_000", "tool_004", "tool_003")
				next("Tools have left: one inline, two active.")
				server.AddTools(echoTool("tool_000", "Is another."))
				next("One is there again, and another.")
				p.called(s, "mcp_chores__tool_000", `{"text":"x"}`)
				for i := range 5 {
					server.DeleteTools("tool_000")
					settle()
					_, err := s.Turn(of.format, of.model)
					require.NoError(p, err)
					server.AddTools(echoTool("tool_000", fmt.Sprintf("Version %d.", i)))
					settle()
					_, err = s.Turn(of.format, of.model)
					require.NoError(p, err)
				}
				next("It has left and come five times.")
				require.NoError(p, m.AddServer(p.Context(), ServerConfig{Name: "archive", InProcess: newArchive()}))
				next("A server with resources has come.")
				s.TakeBack(3)
				next("The host has taken back to place 3.")
				s.NextTurn()
				s.NextTurn()
				p.line("activated %v", s.ActivateTools([]string{"mcp_chores__tool_002"}))
				p.heading("After two messages of the user, and one activation, Compact.")
				p.line("dropped %v", namesOf(s.Compact()))
				next("The conversation begins anew.")
				p.step("In another format.")
				p.turn(s.Turn(provider.Bedrock, "amazon.nova-pro"))
				p.step("In one that does not exist.")
				p.turn(s.Turn("smoke", ""))
				require.NoError(p, m.Close())
				next("The Manager is closed.")
			})
		})
	}
}

// A host whose runtime keeps the conversation is given all that was ever appended.
func TestPictureOfInserts(t *testing.T) {
	inPicture(t, "What a host inserts that keeps no messages of the session's: all that came, by where it was told.", func(p *picture) {
		for _, of := range []struct {
			disclosure Disclosure
			format     provider.Format
		}{{ByBridge, provider.OpenAIChat}, {ByBridge, provider.Anthropic}, {ByAddition, provider.Anthropic}, {ByBridge, provider.Bedrock}} {
			cfg := inProcess("chores", 3)
			server := mcpServer(cfg)
			m := p.start(fmt.Sprintf("%s in the format %s", of.disclosure, of.format), Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{cfg}})
			s := m.NewSession(&SessionOptions{Disclosure: of.disclosure})
			at := func(messages int, title string) {
				p.step(fmt.Sprintf("%s There are %d messages.", title, messages))
				p.turn(s.TurnAt(of.format, "", messages))
			}
			add := func(name string) {
				server.AddTools(echoTool(name, "Comes late."))
				settle()
				s.ActivateTools([]string{"mcp_chores__" + name})
			}
			at(1, "The beginning.")
			add("late_1")
			at(3, "A tool has come.")
			add("late_2")
			at(3, "Another, at the same place.")
			at(5, "Nothing new.")
			add("late_3")
			at(7, "A third.")
			at(5, "The user went back.")
			at(-1, "To before the beginning.")
			at(9, "It goes on.")
			s.Close()
		}
	})
}

// The list and the sections by themselves.
func TestPictureOfLists(t *testing.T) {
	for _, of := range []struct {
		name       string
		disclosure Disclosure
		prompt     PromptOptions
		list       ListOptions
	}{
		{"by activation", ByActivation, PromptOptions{}, ListOptions{}},
		{"with lines", ByActivation, PromptOptions{ListInline: true, MaxDescription: 12}, ListOptions{}},
		{"with few lines", ByActivation, PromptOptions{ListInline: true, MaxListingTokens: 30}, ListOptions{}},
		{"without lines", ByActivation, PromptOptions{ListInline: true, MaxListingTokens: 8, MaxSummaryTokens: 20}, ListOptions{}},
		{"in a short list", ByActivation, PromptOptions{}, ListOptions{Max: 4, ServerMax: 3}},
		{"by the bridge", ByBridge, PromptOptions{ListInline: true}, ListOptions{}},
		{"by provider", ByProvider, PromptOptions{}, ListOptions{Max: 5}},
	} {
		t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(of.name), func(t *testing.T) {
			inPicture(t, "What a host sends that builds its own requests, "+of.name+": the sections and the list of tools, while tools are found, come and leave.", func(p *picture) {
				a, b := inProcess("a", 3), serving("b", echoTool("look", "Looks at\nsomething far away."), echoTool("list", ""), echoTool("lend", "Lends."))
				m := p.start("Two servers.", Options{Inline: InlineOptions{Max: 3}, Prompt: of.prompt, List: of.list, Trust: TrustQuarantine, Active: ActiveOptions{Max: 1},
					Rules:   []Rule{{Name: "listed", Patterns: []string{"b/l*"}, Action: RuleSummarize}},
					Servers: []ServerConfig{a, b}})
				s := m.NewSession(&SessionOptions{Disclosure: of.disclosure})
				defer s.Close()
				look := func(title string) {
					p.step(title)
					p.shown(s)
					p.session("", s)
				}
				look("The beginning.")
				p.line("%d bytes of inline tools, %d of searching, for a short prompt %q", len(s.InlineSection()), len(s.SearchSection()), s.PromptSections(PromptMinimal)+s.PromptSections(PromptBootstrap))
				p.line("activated %v", s.ActivateTools([]string{"mcp_b__look", "mcp_b__lend"}))
				look("The host has activated two.")
				require.NoError(p, m.AddTools("c", echoTool("cut", "Cuts."), echoTool("cure", "Cures.")))
				require.NoError(p, m.AddTools("d", echoTool("dig", "Digs.")))
				look("There are two servers more.")
				p.line("%d bytes of inline tools, %d of searching", len(s.InlineSection()), len(s.SearchSection()))
				require.True(p, m.RemoveServer("c"))
				look("One is gone.")
				mcpServer(a).AddTools(echoTool("tool_001", "Is not what it was."))
				look("A tool has changed, and is held back.")
				for _, err := range m.Problems() {
					if changed, ok := err.(*ChangedError); ok {
						require.NoError(p, m.Accept(changed.Server, changed.Tool, changed.Is))
					}
				}
				look("It is accepted.")
				require.NoError(p, m.SetRules([]Rule{{Name: "listed", Patterns: []string{"d/*"}, Action: RuleSummarize}, {Name: "no", Patterns: []string{"mcp_a__tool_000"}, Action: RuleExclude}}))
				look("The rules are others.")
				s.SetIntent("anything")
				look("The session has an intent.")
				s.NextTurn()
				p.line("dropped %v", namesOf(s.Compact()))
				look("After Compact.")
				for _, f := range []provider.Format{provider.MCP, provider.Anthropic, provider.Gemini, "smoke"} {
					list, err := s.Export(f)
					var names []string
					for _, e := range list {
						names = append(names, fmt.Sprintf("%s:%d,%v", e.Name, len(e.JSON), e.Deferred))
					}
					p.line("as %s: %v, error %v", f, names, err)
				}
			})
		})
	}
}

// A server that says what it is for has a line in the section on searching.
func TestPictureOfServersToSearch(t *testing.T) {
	inPicture(t, "How the section on searching tells of servers, by the tokens that it may take.", func(p *picture) {
		for _, most := range []int{0, 20, 60, 90, -1, NoLimit} {
			m := p.start(fmt.Sprintf("At most %d tokens.", most), Options{Inline: InlineOptions{Max: -1}, Prompt: PromptOptions{MaxSummaryTokens: most}})
			for i, about := range []string{"", "Weather of each day.", "Money, and who has it.\nMore of it."} {
				name := fmt.Sprintf("server_%d", i)
				about := mcpserver.NewMCPServer(name, "1", mcpserver.WithInstructions(about))
				about.AddTools(echoTool("go", "Goes."), echoTool("stay", "Stays."))
				require.NoError(p, m.AddServer(p.Context(), ServerConfig{Name: name, InProcess: about}))
			}
			p.part("section", m.SearchSection())
			p.called(m.Default(), SearchToolName, `{"query":"select:server_1"}`)
			p.called(m.Default(), SearchToolName, `{"query":" 'SERVER_0' "}`)
		}
	})
}

// A Turn that fails has told nothing: the next one begins the conversation.
func TestFailedTurnTellsNothing(t *testing.T) {
	t.Parallel()
	begun := 0
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: NoLimit}, List: ListOptions{Max: 200, ServerMax: 200}, Servers: []ServerConfig{inProcess("s", 140)}, OnEvent: func(e Event) {
		if e.Kind == EventBegin {
			begun++
		}
	}})
	s := m.NewSession(nil)
	_, err := s.Turn(provider.OpenAIChat, "")
	require.Error(t, err, "it takes 128 tools")
	require.Zero(t, begun)
	turn, err := s.Turn(provider.Anthropic, "")
	require.NoError(t, err)
	require.Equal(t, 1, begun)
	require.GreaterOrEqual(t, len(turn.Tools), 140)
	require.Equal(t, turn.Place, turn.Before, "all is the beginning")
}
