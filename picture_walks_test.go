package mcphybrid

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/provider"
)

// A stroll takes one session through random steps, and writes of each what is new.
type stroll struct {
	*picture
	owner   *Manager // of the session
	s       *Session
	asked   SessionOptions
	git     *mcpserver.MCPServer
	format  provider.Format
	model   string
	random  *rand.Rand
	names   []string // of all tools that there ever are
	list    []string // what was written last, as are the others
	reads   []string
	places  []string
	stats   []string
	sends   []string // the tools of a Turn
	known   int
	unseen  bool // nobody looks at the list but the Turns
	steps   int
	added   map[string]int  // how often git's tools were added
	present map[string]bool // the other servers, by their owners
}

// short returns names without what all begin with.
func short(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strings.TrimPrefix(name, "mcp_")
	}
	return list
}

// news writes the lines that are new, and how many are gone.
func (w *stroll) news(what string, was *[]string, now []string) {
	if gone := without(*was, now); len(gone) > 0 {
		w.line("    %s - %s", what, strings.Join(gone, " | "))
	}
	if came := without(now, *was); len(came) > 0 {
		w.line("    %s + %s", what, strings.Join(came, " | "))
	}
	*was = now
}

// cut returns the beginning of a line.
func cut(line string) string {
	if runes := []rune(line); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return line
}

// look writes what is new of the session.
func (w *stroll) look() {
	synctest.Wait()
	w.mu.Lock()
	events := w.events
	w.events = nil
	w.mu.Unlock()
	for _, e := range events {
		if e.Session != nil && e.Kind != EventCall && e.Kind != EventSearch {
			line := fmt.Sprintf("    event %s %v", e.Kind, short(e.Tools))
			if e.Kind == EventCacheLost {
				line += fmt.Sprintf(" %d tokens, %s, for the provider %q", e.Loss.Tokens, e.Loss.Cause, e.Loss.Miss)
			}
			w.line("%s", line)
		}
	}
	var reads, places []string
	if !w.unseen {
		w.news("list", &w.list, short(toolNames(w.s.Tools())))
		for _, line := range strings.Split(w.s.PromptSections(PromptFull), "\n") {
			if line != "" {
				reads = append(reads, cut(line))
			}
		}
		w.news("reads", &w.reads, reads)
	}
	for _, p := range w.s.Placements() {
		places = append(places, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(p.Tool.name, "mcp_"), p.Standing, p.Reason))
	}
	w.news("places", &w.places, places)
	stats := strings.Fields(fieldsOf(w.s.Stats()))
	if changed := without(stats, w.stats); len(changed) > 0 {
		w.line("    stats %s", strings.Join(changed, " "))
	}
	w.stats = stats
	if known := len(w.s.knownNames); known != w.known {
		w.line("    known by name alone: %d", known)
		w.known = known
	}
	require.NoError(w, check(w.m, w.s), "after %s", &w.text)
	if r, ok := w.asked.Registry.(*ToolRegistry); ok {
		require.NoError(w, checkRegistry(w.s, r))
	}
}

// serverOfWalk returns the tools of a server that comes and goes.
func serverOfWalk(name string) []mcpserver.ServerTool {
	return map[string][]mcpserver.ServerTool{
		"mail":  {echoTool("send", "Sends a letter."), echoTool("list", "Lists letters."), echoTool("draft", "Drafts a letter to send later."), echoTool("sort", "Sorts letters.")},
		"maps":  {echoTool("route", "Finds a route on the map."), echoTool("zoom", strings.Repeat("Zooms in, and out. ", 12))},
		"music": {wanted("play", "Plays a song."), echoTool("list", "Lists songs.")},
	}[name]
}

// next takes one random step, and writes it in one line.
func (w *stroll) next() {
	some := func(n int) (names []string) {
		for range n {
			names = append(names, w.names[w.random.IntN(len(w.names))])
		}
		return names
	}
	git := []string{"log", "push", "pull", "diff", "blame", "stash"}
	of := w.random.IntN(24)
	for at, name := range map[int]string{5: CallToolName, 21: DescribeToolName, 22: SkillLoadToolName} {
		if of == at && w.s.metaNamed(w.s.view(), name) == nil {
			of = 17 // a Turn
		}
	}
	if w.steps++; w.unseen && w.steps <= 15 && (of == 17 || of == 18) {
		of = 6 // before the first Turn
	}
	switch of {
	case 0, 1, 2:
		query := []string{"letter", "route", "song list", "log of changes", "select:" + some(1)[0], "nothing of the kind", "send mail", "push"}[w.random.IntN(8)]
		if w.s.Disclosure() == ByProvider && w.format == provider.OpenAIResponses && w.random.IntN(4) > 0 {
			item := fmt.Sprintf(`{"type":"tool_search_call","call_id":"c","arguments":%q}`, fmt.Sprintf(`{"query":%q}`, query))
			found, err := w.s.AnswerToolSearch(w.Context(), json.RawMessage(item))
			var answer struct{ Tools []struct{ Name string } }
			_ = json.Unmarshal(found, &answer)
			w.line("the provider searches %q: %v, error %v", query, answer.Tools, err)
			return
		}
		r, err := w.s.Call(w.Context(), SearchToolName, map[string]any{"query": query, "max_results": 1 + w.random.IntN(4)})
		text := mcp.GetTextFromContent(r.Content[0])
		var answer searchAnswer
		if json.Unmarshal([]byte(text), &answer) != nil {
			w.line("search %q: %s, error %v", query, text, err)
			return
		}
		var found []string
		for _, t := range answer.Tools {
			line := strings.TrimPrefix(t.Name, "mcp_")
			if t.NeededBy != "" {
				line += " for " + t.NeededBy
			}
			if t.InputSchema != nil {
				line += " with its schema"
			}
			found = append(found, line)
		}
		w.line("search %q: %v: %s", query, found, answer.Message)
	case 3, 4:
		name := some(1)[0]
		r, err := w.s.Call(w.Context(), name, `{"text":"x"}`)
		w.line("call %s: %s, error %v", name, cut(mcp.GetTextFromContent(r.Content[0])), err)
	case 5:
		name := some(1)[0]
		r, err := w.s.Call(w.Context(), CallToolName, map[string]any{"name": name, "arguments": map[string]any{"text": "x"}})
		w.line("call by the call tool %s: %s, error %v", name, cut(mcp.GetTextFromContent(r.Content[0])), err)
	case 6, 7:
		names := some(1 + w.random.IntN(3))
		w.line("activate %v: %v", short(names), short(w.s.ActivateTools(names)))
	case 8, 9:
		name := git[w.random.IntN(len(git))]
		w.added[name]++
		w.git.AddTools(echoTool(name, fmt.Sprintf("Does %s, version %d.", name, w.added[name])))
		settle()
		w.line("git has %s in version %d", name, w.added[name])
	case 10:
		name := git[w.random.IntN(len(git))]
		w.git.DeleteTools(name)
		settle()
		w.line("git has no %s", name)
	case 11:
		var accepted []string
		for _, err := range w.m.Problems() {
			if changed, ok := err.(*ChangedError); ok {
				require.NoError(w, w.m.Accept(changed.Server, changed.Tool, changed.Is))
				accepted = append(accepted, changed.Name)
			}
		}
		w.line("accepted %v", short(accepted))
	case 12, 13:
		server := []string{"mail", "maps", "music"}[w.random.IntN(3)]
		of, whose := w.m, "the system's"
		if w.owner != w.m && w.random.IntN(2) == 0 {
			of, whose = w.owner, "the user's"
		}
		if w.present[whose+server] {
			require.True(w, of.RemoveServer(server))
		} else {
			require.NoError(w, of.AddTools(server, serverOfWalk(server)...))
		}
		w.present[whose+server] = !w.present[whose+server]
		w.line("%s %s is there: %t", whose, server, w.present[whose+server])
	case 14:
		rules := [][]Rule{{}, {{Name: "listed", Patterns: []string{"mail/*"}, Action: RuleSummarize}}, {{Name: "out", Intent: "work", Patterns: []string{"music/*", "git/p*"}, Action: RuleExclude}, {Name: "in", Patterns: []string{"maps/zoom"}, Action: RuleInclude}}}
		i := w.random.IntN(len(rules))
		require.NoError(w, w.m.SetRules(rules[i]))
		w.line("rules %v", rules[i])
	case 15:
		intent := []string{"", "work"}[w.random.IntN(2)]
		w.s.SetIntent(intent)
		w.asked.Intent = intent
		w.line("intent %q", intent)
	case 16:
		if w.random.IntN(3) == 0 {
			w.line("Compact drops %v", short(namesOf(w.s.Compact())))
			return
		}
		w.s.NextTurn()
		w.line("the user says more")
	case 17, 18:
		if w.random.IntN(4) == 0 {
			place := w.random.IntN(12)
			w.s.TakeBack(place)
			w.line("back to place %d", place)
			return
		}
		w.turn()
		w.s.CountUsage(provider.Usage{Input: 20_000, Cached: 18_000 * w.random.IntN(2), Written: 1_000, Miss: []string{"", "", "tools_changed", "system_changed"}[w.random.IntN(4)]})
	case 19:
		state := w.s.Save()
		w.s.Close()
		var changed []string
		var err error
		w.s, changed, err = w.owner.RestoreSession(state, &w.asked)
		require.NoError(w, err)
		w.line("saved and restored; changed %v", short(changed))
	case 20:
		message := []string{"send a letter", "find the route", "play a song", "nothing"}[w.random.IntN(4)]
		w.line("selected for %q: %v", message, short(namesOf(w.s.SelectFor(w.Context(), message))))
	case 21:
		names := some(2)
		r, err := w.s.Call(w.Context(), DescribeToolName, map[string]any{"names": names})
		w.line("describe %v: %s, error %v", short(names), cut(mcp.GetTextFromContent(r.Content[0])), err)
	case 22:
		r, err := w.s.Call(w.Context(), SkillLoadToolName, `{"name":"plan"}`)
		w.line("load a skill: %s, error %v", cut(mcp.GetTextFromContent(r.Content[0])), err)
	case 23:
		r, err := w.s.Call(w.Context(), some(1)[0], map[string]any{"text": strings.Repeat("long ", 20)})
		w.line("call with a long answer: %s, error %v", cut(mcp.GetTextFromContent(r.Content[0])), err)
	}
}

// turn writes what the next request has.
func (w *stroll) turn() {
	turn, err := w.s.Turn(w.format, w.model)
	if err != nil {
		w.line("Turn: %v", err)
		return
	}
	var names, added, news []string
	for _, t := range turn.Tools {
		name := strings.TrimPrefix(t.Name, "mcp_")
		if t.Deferred {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	for _, t := range turn.Added {
		added = append(added, t.Name)
	}
	for _, line := range strings.Split(turn.News, "\n") {
		if line != "" {
			news = append(news, cut(line))
		}
	}
	w.line("Turn: %s, place %d after %d, %d bytes of system, added %v, removed %v, waiting %v, news %s", turn.Disclosure, turn.Place, turn.Before, len(turn.System), short(added), short(turn.Removed), short(turn.Waiting), strings.Join(news, " | "))
	w.news("its tools", &w.sends, names)
}

// Sessions of every kind, while tools are found, called, listed, changed, held back, accepted and
// removed, servers come and go, rules and the intent change, and the session is saved and restored.
func TestPictureOfWalks(t *testing.T) {
	without := func(name string) Access { return Access{Deny: []string{name}} }
	plan := []Skill{{Name: "plan", Description: "How to plan a day.", Body: "Sort, then send.", Tools: []string{"mcp_mail__sort", "mcp_maps__route"}}}
	for i, of := range []struct {
		name    string
		asked   SessionOptions
		ofAUser bool
		opts    Options // but for limits that all have
		format  provider.Format
		model   string
	}{
		{"by activation", SessionOptions{Disclosure: ByActivation}, false, Options{Learn: new(LearnOptions), Prompt: PromptOptions{ListInline: true}}, provider.OpenAIChat, ""},
		{"by the bridge", SessionOptions{Disclosure: ByBridge}, false, Options{MaxResult: 60, Skills: plan, List: ListOptions{Max: 5, ServerMax: 3}}, provider.OpenAIChat, ""},
		{"by activation, without the search tool", SessionOptions{Disclosure: ByActivation, Access: without(SearchToolName)}, false, Options{Prompt: PromptOptions{ListInline: true}}, provider.OpenAIChat, ""},
		{"by the bridge, without the call tool", SessionOptions{Disclosure: ByBridge, Access: without(CallToolName)}, false, Options{}, provider.OpenAIChat, ""},
		{"by addition", SessionOptions{Disclosure: ByAddition, Registry: NewRegistry()}, false, Options{MaxResult: 60, JustInTime: &JustInTimeOptions{Threshold: 4}}, provider.Anthropic, ""},
		{"by provider", SessionOptions{Disclosure: ByProvider}, false, Options{Skills: plan, Learn: new(LearnOptions)}, provider.Anthropic, "claude-sonnet-4-5"},
		{"by provider, searching", SessionOptions{Disclosure: ByProvider}, false, Options{}, provider.OpenAIResponses, "gpt-5.6"},
		{"automatic", SessionOptions{}, false, Options{Skills: plan, Prompt: PromptOptions{ListInline: true, MaxListingTokens: 60}}, provider.Gemini, ""},
		{"of a user", SessionOptions{Disclosure: ByActivation, Registry: NewRegistry()}, true, Options{}, provider.OpenAIChat, ""},
		{"of a user by addition", SessionOptions{Disclosure: ByAddition}, true, Options{MaxResult: 60}, provider.Anthropic, ""},
		{"unseen, by activation", SessionOptions{Disclosure: ByActivation}, false, Options{List: ListOptions{Max: 6, ServerMax: 4}}, provider.OpenAIChat, ""},
		{"unseen, by provider", SessionOptions{Disclosure: ByProvider}, false, Options{List: ListOptions{Max: 6, ServerMax: 4}}, provider.Anthropic, "claude-sonnet-4-5"},
		{"of a user, unseen, by addition", SessionOptions{Disclosure: ByAddition}, true, Options{List: ListOptions{Max: 6, ServerMax: 4}, Prompt: PromptOptions{ListInline: true, MaxListingTokens: 30}}, provider.Anthropic, ""},
		{"of a user by the bridge", SessionOptions{Disclosure: ByBridge, Access: Access{Deny: []string{"*__sort"}}}, true, Options{Learn: new(LearnOptions)}, provider.OpenAIChat, ""},
	} {
		t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(of.name), func(t *testing.T) {
			inPicture(t, "A session "+of.name+", step by step, and what each changes.", func(p *picture) {
				cfg := serving("git", echoTool("log", "Shows the log of changes."), echoTool("push", "Pushes changes."), echoTool("pull", "Pulls changes."))
				opts := of.opts
				opts.Inline, opts.Active = InlineOptions{Max: 4}, ActiveOptions{Max: 2, Turns: 2}
				if opts.List.Max == 0 {
					opts.List = ListOptions{Max: 11, ServerMax: 5}
				}
				opts.Search, opts.Trust = RankingOptions{Results: 2, Limit: 3, Threshold: -1, Schemas: 150}, TrustQuarantine
				opts.Needs, opts.Servers = map[string][]string{"mcp_mail__send": {"mcp_mail__draft"}, "mcp_git__push": {"mcp_git__pull"}}, []ServerConfig{cfg}
				m := p.start("A server has three tools.", opts)
				w := &stroll{picture: p, owner: m, asked: of.asked, git: mcpServer(cfg), format: of.format, model: of.model, random: rand.New(rand.NewPCG(uint64(i), 7)), added: make(map[string]int), present: make(map[string]bool), unseen: strings.Contains(of.name, "unseen")}
				w.asked.Label = "walk"
				w.names = []string{"mcp_git__log", "mcp_git__push", "mcp_git__pull", "mcp_git__diff", "mcp_mail__send", "mcp_mail__list", "mcp_mail__draft", "mcp_mail__sort", "mcp_maps__route", "mcp_maps__zoom", "mcp_music__play", "mcp_music__list", "mcp_none__x"}
				if of.ofAUser {
					w.owner = newUser(p.T, m, "ada", nil)
				}
				for _, server := range []string{"mail", "music"} {
					require.NoError(p, m.AddTools(server, serverOfWalk(server)...))
					w.present["the system's"+server] = true
				}
				w.s = w.owner.NewSession(&w.asked)
				w.look()
				for range 65 {
					w.next()
					w.look()
					time.Sleep(time.Minute)
				}
				w.s.Close()
			})
		})
	}
}
