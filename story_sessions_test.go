package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/jq"
	"github.com/mcphybrid/mcphybrid/provider"
)

// session returns the lines of what a session's model has and was told.
func (s *story) session(as string, of *Session) (lines []string) {
	lines = s.tools(as, of)
	lines = append(lines, fmt.Sprintf("%s: list %v", as, namesOf(of.Tools())))
	for _, line := range strings.Split(of.PromptSections(PromptFull), "\n") {
		if line != "" {
			lines = append(lines, as+" reads "+line)
		}
	}
	return append(lines, as+": "+s.show(of.Stats()))
}

// answers tells what a tool answers a session's model, and what its host gets.
func (s *story) answers(of *Session, name, args string) {
	r, err := of.Call(s.Context(), name, args)
	s.say(name+" "+args, r)
	if err != nil {
		s.say("  to the host", err)
	}
}

func doing(name string, options ...mcp.ToolOption) mcpserver.ServerTool {
	return mcpserver.ServerTool{Tool: mcp.NewTool(name, options...), Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(name + " did"), nil
	}}
}

func forApps(name string, visibility ...any) mcpserver.ServerTool {
	t := doing(name)
	t.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"visibility": visibility, "resourceUri": "ui://page"}})
	return t
}

// What becomes of calls by name, by the bridge, from apps and from code.
func TestStoryOfCalls(t *testing.T) {
	tellStory(t, "calls", "Calls of a session's model, of its code and of apps, and why some get no result.", func(s *story) {
		srv := changing(doing("read", mcp.WithReadOnlyHintAnnotation(true), mcp.WithString("path", mcp.Required()), mcp.WithNumber("lines")), doing("write"), doing("secret"), forApps("click", "app"), forApps("both", "app", "model"), forApps("denied", "app"), forApps("quiet", "model"), mcpserver.ServerTool{Tool: mcp.NewTool("fail"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("no such\nfile"), nil
		}})
		own := s.server("disk", srv)
		slow := s.server("slow", mcptest.Server("slow", doing("wait")))
		slow.does(errOfStory, time.Second)
		decide := func(next Handler) Handler {
			return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
				switch c.Tool.Name() {
				case "mcp_disk__write":
					if strings.Contains(string(c.Arguments), "stop") {
						return nil, errors.New("the user did not agree")
					}
					if strings.Contains(string(c.Arguments), "nothing") {
						return nil, nil
					}
					if strings.Contains(string(c.Arguments), "panic") {
						panic("oops")
					}
					if strings.Contains(string(c.Arguments), "change") {
						srv.AddTools(doing("write", mcp.WithString("now")))
						time.Sleep(time.Minute)
					}
					if strings.Contains(string(c.Arguments), "no tool") {
						c.Tool = nil
					}
				}
				s.hear("said", "", "the host sees %s %s, of an app %t, of code %t", c.Session.asked.label, c.Arguments, c.FromApp, c.FromCode)
				return next(ctx, c)
			}
		}
		m := s.manager(Options{Inline: InlineOptions{Max: 1}, Trust: TrustQuarantine, Limits: config.Limits{Refresh: -1, Reconnect: -1, CallTimeout: 10 * time.Second}, Middleware: []Middleware{decide},
			Servers: []ServerConfig{{Name: "disk", InProcess: own, Tools: Access{Deny: []string{"*__denied"}}}, {Name: "slow", InProcess: slow}}})
		bg := s.Context()
		s.step("it starts", func() { s.say("Start", m.Start(bg)) })
		one := m.NewSession(&SessionOptions{Label: "one", Access: Access{Deny: []string{"*__secret"}}})
		bridge := m.NewSession(&SessionOptions{Label: "bridge", Disclosure: ByBridge, Client: true})
		s.picture = func() []string { return slices.Concat(s.session("one", one), s.session("bridge", bridge)) }
		s.step("two sessions begin", func() {})
		s.step("calls by name", func() {
			s.answers(one, "mcp_disk__read", `{"path":"a"}`)
			s.answers(one, "mcp_disk__read", `{"path":"a","lines":null}`)
			s.answers(one, "mcp_disk__read", `{}`)
			s.answers(one, "mcp_disk__read", `{}`)
			s.answers(one, "mcp_disk__read", `{"path":5,"lines":"x"}`)
			s.answers(one, "mcp_disk__read", `[]`)
			s.answers(one, "mcp_disk__read", `{`)
			s.answers(one, "mcp_disk__write", ``)
			s.answers(one, "mcp_disk__secret", `{}`)
			s.answers(one, "mcp_disk__raed", `{}`)
			s.answers(one, "mcp_disk__click", `{}`)
			s.answers(one, "mcp_disk__denied", `{}`)
			s.answers(one, "mcp_disk__fail", `{}`)
			s.answers(one, "mcp_slow__wait", `{}`)
			s.answers(one, strings.Repeat("x", 600), `{}`)
			s.answers(one, SearchToolName, `[]`)
			s.answers(one, "", `{}`)
		})
		s.step("what the host's middleware does", func() {
			for _, args := range []string{`{"a":"stop"}`, `{"a":"nothing"}`, `{"a":"panic"}`, `{"a":"no tool"}`, `{"a":"change"}`} {
				s.answers(one, "mcp_disk__write", args)
			}
		})
		s.step("what is held back by now", func() {
			s.answers(one, "mcp_disk__write", `{}`)
			for _, app := range []string{"click", "both", "write", "denied", "secret", "none"} {
				r, err := one.CallFromApp(bg, "disk", app, nil)
				s.say("an app calls "+app, r, err)
			}
			s.say("of an unknown server", second(one.CallFromApp(bg, "nowhere", "click", nil)))
			s.say("of a server that is down", second(one.CallFromApp(bg, "slow", "wait", nil)))
			s.say("its arguments", second(one.CallFromApp(bg, "disk", "click", "[]")))
			s.say("tools of apps", one.AppTools("disk"), one.AppTools("slow"), one.AppTools("nowhere"))
		})
		s.step("a tool of apps changes", func() {
			click, quiet := forApps("click", "app"), forApps("quiet", "model")
			click.Tool.Description, quiet.Tool.Description = "Changed", "Changed"
			srv.AddTools(click, quiet)
			s.pass(time.Minute)
			s.say("an app calls it", second(one.CallFromApp(bg, "disk", "click", nil)))
			s.say("one that is not for apps changes too", second(one.CallFromApp(bg, "disk", "quiet", nil)))
			for _, app := range []string{"read", "fail"} {
				r, err := one.CallFromApp(bg, "disk", app, `{"path":"a"}`)
				s.say("and "+app, r, err)
			}
		})
		s.step("calls by the bridge", func() {
			for _, args := range []string{`{"name":"mcp_disk__read","arguments":{"path":"a"}}`, `{"name":"mcp_disk__read","arguments":{}}`, `{"name":"mcp_disk__write"}`, `{"name":"mcp_disk__fail"}`, `{"name":"none"}`, `{"name":"mcp_tool_search","arguments":{"query":"read"}}`, `{}`} {
				s.answers(bridge, CallToolName, args)
				s.answers(bridge, ReadOnlyCallToolName, args)
			}
		})
		s.step("calls from code", func() {
			for _, name := range []string{"mcp_disk__read", "mcp_disk__fail", SearchToolName, "mcp_disk__both"} {
				r, err := one.CallFromCode(bg, name, map[string]any{"path": "a"})
				s.say(name, r, err)
			}
		})
		s.step("the server takes too long, then fails", func() {
			own.does(nil, time.Minute)
			s.answers(one, "mcp_disk__read", `{"path":"slow"}`)
			own.does(errOfStory, 0)
			s.answers(one, "mcp_disk__read", `{"path":"b"}`)
			own.does(nil, 0)
		})
		s.step("an intent excludes tools, which come back", func() {
			s.say("SetRules", m.SetRules([]Rule{{Name: "quiet", Intent: "quiet", Patterns: []string{"*__fail", "*__both"}, Action: RuleExclude}}))
			one.SetIntent("quiet")
			s.answers(one, "mcp_disk__fail", `{}`)
			s.say("an app", second(one.CallFromApp(bg, "disk", "both", nil)))
			one.SetIntent("")
		})
		s.step("tools leave, and their calls say so", func() {
			srv.DeleteTools("fail", "secret")
			s.pass(time.Minute)
			s.answers(one, "mcp_disk__fail", `{}`)
			s.answers(one, "mcp_disk__secret", `{}`)
		})
		s.step("the session is closed", func() {
			one.Close()
			one.Close()
			s.answers(one, "mcp_disk__read", `{"path":"a"}`)
			s.say("an app", second(one.CallFromApp(bg, "disk", "both", nil)))
			s.say("from code", second(one.CallFromCode(bg, "mcp_disk__read", nil)))
		})
	})
}

// What a model reads of long results.
func TestStoryOfResults(t *testing.T) {
	tellStory(t, "results", "Results that are cut, read on, and selected from.", func(s *story) {
		answer := func(name, text string, more ...mcp.Content) mcpserver.ServerTool {
			return mcpserver.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: append([]mcp.Content{mcp.NewTextContent(text)}, more...)}, nil
			}}
		}
		long := strings.Repeat("0123456789", 12)
		list := `{"items":[` + strings.Repeat(`{"id":1,"name":"n"},`, 10) + `{"id":2,"name":"last"}],"total":11}`
		structured := mcpserver.ServerTool{Tool: mcp.NewTool("structured", mcp.WithRawOutputSchema(json.RawMessage(`{"type":"object"}`))), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructured(map[string]any{"text": long}, long), nil
		}}
		srv := mcptest.Server("data", answer("short", "all"), answer("exact", long[:100]), answer("more", long[:101]), answer("long", long), answer("json", list), answer("part", list), answer("bad", "no json"), answer("none", `{"items":[]}`),
			answer("image", "see", mcp.NewImageContent(strings.Repeat("A", 10_000), "image/png")), structured)
		m := s.manager(Options{MaxResult: 100, Select: jq.Selector{}, Limits: config.Limits{Refresh: -1}, Servers: []ServerConfig{
			{Name: "data", InProcess: srv, ResultSelect: map[string]string{"part": ".items[].name", "bad": ".items", "none": ".items[]", "away": "."}},
			{Name: "wrong", InProcess: mcptest.Server("wrong"), ResultSelect: map[string]string{"x": ".["}},
		}})
		bg := s.Context()
		s.step("it starts", func() {
			s.say("Start", m.Start(bg))
			s.say("problems", m.Problems())
		})
		one := m.NewSession(&SessionOptions{Label: "one"})
		none := m.NewSession(&SessionOptions{Label: "may not page", Access: Access{Deny: []string{PageToolName}}})
		client := m.NewSession(&SessionOptions{Label: "client", Client: true})
		s.picture = func() []string {
			return []string{fmt.Sprint("one: ", namesOf(one.Tools())), fmt.Sprint("may not page: ", namesOf(none.Tools()))}
		}
		for _, name := range []string{"short", "exact", "more", "long", "json", "part", "bad", "none", "image", "structured"} {
			s.step(name, func() {
				s.answers(one, "mcp_data__"+name, `{}`)
				s.say("without pages", first(none.Call(bg, "mcp_data__"+name, nil)))
				s.say("a client", first(client.Call(bg, "mcp_data__"+name, nil)))
				s.say("code", first(one.CallFromCode(bg, "mcp_data__"+name, nil)))
			})
		}
		s.step("reading on", func() {
			for _, args := range []string{`{"id":"r1","offset":50}`, `{"id":"r1"}`, `{"id":"r2","offset":119}`, `{"id":"r2","offset":120}`, `{"id":"r2","offset":-5}`, `{"id":"r2","offset":1e30}`, `{"id":"r2","offset":5.5}`, `{"id":"r9"}`, `{"id":""}`, `{}`, `[]`, `{"id":"r3","select":".total"}`, `{"id":"r3","select":".items[].name"}`, `{"id":"r3","select":".items"}`, `{"id":"r3","select":"empty"}`, `{"id":"r3","select":".["}`, `{"id":"r2","select":"."}`, `{"id":5}`} {
				s.answers(one, PageToolName, args)
			}
			s.answers(none, PageToolName, `{"id":"r1"}`)
		})
		s.step("a saved session has none without parts", func() {
			restored, changed, err := m.RestoreSession(one.Save(), &SessionOptions{Label: "restored"})
			s.say("RestoreSession", changed, err)
			s.answers(restored, PageToolName, `{"id":"r1"}`)
			s.answers(restored, "mcp_data__long", `{}`)
		})
	})
}

// What a session has of resources and prompts.
func TestStoryOfResources(t *testing.T) {
	tellStory(t, "resources", "Resources, templates and prompts: listed, searched for, read, completed and subscribed to, where that is permitted.", func(s *story) {
		board := newNoticeboard()
		board.AddPrompts(mcpserver.ServerPrompt{Prompt: mcp.NewPrompt("ask", mcp.WithArgument("who")), Handler: func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: "user", Content: mcp.NewTextContent("Ask " + r.Params.Arguments["who"])}, {Role: "user", Content: mcp.ResourceLink{URI: "mem://linked", Type: "resource_link", Name: "linked"}}}}, nil
		}})
		linking := mcpserver.ServerTool{Tool: mcp.NewTool("link"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.ResourceLink{URI: "mem://hidden", Type: "resource_link", Name: "hidden"}}}, nil
		}}
		board.AddTools(linking)
		other := newNoticeboard()
		down := s.server("down", mcptest.Server("down"))
		down.does(errOfStory, 0)
		asked := s.server("board", board.MCPServer)
		m := s.manager(Options{Limits: config.Limits{Refresh: -1, Reconnect: -1}, OnRequest: func(_ context.Context, server string) { s.hear("said", "", "a request of %s", server) }, OnResources: func(user string) { s.hear("of servers", "", "resources of %q", user) },
			Servers: []ServerConfig{{Name: "board", InProcess: asked, Protocol: mcp.LATEST_LEGACY_PROTOCOL_VERSION}, {Name: "down", InProcess: down}}})
		bg := s.Context()
		s.step("it starts", func() { s.say("Start", m.Start(bg)) })
		one := m.NewSession(&SessionOptions{Label: "one"})
		few := m.NewSession(&SessionOptions{Label: "few", Access: Access{Deny: []string{"board/mem://b*", "board/mem://a/secret", "board/mem://hidden"}}})
		s.picture = func() (lines []string) {
			for name, of := range map[string]*Session{"one": one, "few": few} {
				for _, r := range of.Resources() {
					lines = append(lines, name+" resource "+s.show(r))
				}
				for _, r := range of.ResourceTemplates() {
					lines = append(lines, name+" template "+s.show(r))
				}
				for _, r := range of.Prompts() {
					lines = append(lines, name+" prompt "+s.show(r))
				}
				lines = append(lines, fmt.Sprint(name, " list ", namesOf(of.Tools())))
			}
			slices.Sort(lines)
			return lines
		}
		s.step("two sessions begin", func() {})
		read := func(of *Session, server, uri string) {
			r, err := of.ReadResource(bg, server, uri)
			s.say(of.asked.label+" reads "+server+" "+uri, r, err)
		}
		s.step("reading", func() {
			for _, of := range []*Session{one, few} {
				for _, uri := range []string{"mem://a", "mem://b", "mem://a/part", "mem://a/secret", "mem://none", "mem://hidden", ""} {
					read(of, "", uri)
				}
			}
			read(one, "board", "mem://a")
			read(one, "down", "mem://a")
			read(one, "nowhere", "mem://a")
		})
		s.step("links", func() {
			s.answers(one, "mcp_board__link", `{}`)
			s.answers(few, "mcp_board__link", `{}`)
			read(one, "board", "mem://hidden")
			read(few, "board", "mem://hidden")
		})
		s.step("prompts", func() {
			r, err := one.GetPrompt(bg, "", "ask", map[string]string{"who": "Ann"})
			s.say("ask", r, err)
			s.say("none", second(one.GetPrompt(bg, "board", "none", nil)))
			read(one, "", "mem://linked")
		})
		s.step("completions", func() {
			for _, ref := range []any{mcp.PromptReference{Name: "ask"}, mcp.ResourceReference{URI: "mem://a/{part}"}, mcp.ResourceReference{URI: "mem://none"}, "else", nil} {
				r, err := one.Complete(bg, "", mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteArgument{Name: "who", Value: "A"}})
				s.say(fmt.Sprintf("Complete %T", ref), r, err)
			}
		})
		s.step("the model's searches and reads", func() {
			for _, args := range []string{`{"query":"mem a"}`, `{}`, `{"query":" "}`, `{"query":"zebra"}`, `{"query":"mem","max_results":1}`, `{"query":"mem","max_results":0}`, `{"max_results":-1}`, `{"max_results":1000}`, `[]`} {
				s.answers(one, ResourceSearchToolName, args)
			}
			for _, args := range []string{`{"uri":"mem://a"}`, `{"uri":"mem://a","server":"board"}`, `{"uri":"mem://aa"}`, `{"uri":""}`, `{}`, `[]`} {
				s.answers(one, ResourceReadToolName, args)
			}
		})
		var stops []func()
		s.step("subscriptions", func() {
			for _, of := range []*Session{one, few} {
				for _, uri := range []string{"mem://a", "mem://b", "mem://none"} {
					stop, err := of.SubscribeResource(bg, "", uri, func(changed string) { s.hear("of servers", of.asked.label, "%s hears of %s", of.asked.label, changed) })
					s.say(of.asked.label+" subscribes to "+uri, stop != nil, err)
					if stop != nil {
						stops = append(stops, stop)
					}
				}
			}
		})
		s.step("changes of a, of a part and of a secret part of it", func() {
			for _, uri := range []string{"mem://a", "mem://a/part", "mem://a/secret"} {
				board.update(uri)
				s.pass(time.Second)
			}
		})
		s.step("all end", func() {
			stops[0]()
			stops[0]()
			board.update("mem://a")
			s.pass(time.Second)
			few.Close()
			board.update("mem://a")
			s.pass(time.Second)
			s.say("a closed session", second(few.SubscribeResource(bg, "", "mem://a", func(string) {})))
		})
		s.step("as many as are possible", func() {
			for i := range 101 {
				stop, err := one.SubscribeResource(bg, "", "mem://a", func(string) {})
				if i >= 98 {
					s.say(fmt.Sprint(i), stop != nil, err)
				}
			}
		})
		s.step("a second server has the same", func() {
			s.say("AddServer", m.AddServer(bg, other.config("other")))
			read(one, "", "mem://a")
			read(one, "other", "mem://a")
			s.answers(one, ResourceReadToolName, `{"uri":"mem://a"}`)
		})
		s.step("the server goes on failing", func() {
			asked.does(errOfStory, 0)
			read(one, "board", "mem://a")
			s.say("ask", second(one.GetPrompt(bg, "board", "ask", nil)))
		})
	})
}

// Skills of the host and of servers.
func TestStoryOfSkills(t *testing.T) {
	tellStory(t, "skills", "Skills of the host and of servers: listed, searched for, loaded, and held back.", func(s *story) {
		docs := mcptest.NewSkilled("docs", doing("merge"), doing("split"))
		docs.Has("merge-pages", "Merge with care.", `,"tools":["merge","gone"]`, "a.txt", "Alpha")
		docs.Hides("rare", "Rare text.", "")
		m := s.manager(Options{Inline: InlineOptions{Max: 1}, Trust: TrustQuarantine, SkillListing: SkillListingOptions{Max: 3}, Limits: config.Limits{Refresh: -1, CallTimeout: 10 * time.Second}, Servers: []ServerConfig{{Name: "docs", InProcess: s.server("docs", docs)}}, Skills: []Skill{
			{Name: "release", Description: "How to release", Body: "Tag & push.", Tools: []string{"mcp_docs__split", "missing", "\n"}},
			{Name: "release", Description: "Twice", Body: "x"}, {Name: "Bad Name", Description: "d", Body: "x"},
			{Name: "slow", Description: "Loads <slowly>", Load: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
		}})
		bg := s.Context()
		s.step("it starts", func() { s.say("Start", m.Start(bg)) })
		sessions := map[string]*Session{"one": m.NewSession(&SessionOptions{Label: "one"}), "few": m.NewSession(&SessionOptions{Label: "few", Skills: Access{Deny: []string{"rel*", "docs/*"}}}), "none": m.NewSession(&SessionOptions{Access: Access{Deny: []string{SkillLoadToolName}}}),
			"client": m.NewSession(&SessionOptions{Client: true}), "bridge": m.NewSession(&SessionOptions{Disclosure: ByBridge}), "lists": m.NewSession(&SessionOptions{Access: Access{Deny: []string{SkillSearchToolName}}})}
		one := sessions["one"]
		s.picture = func() (lines []string) {
			lines = s.servers(m)
			for _, name := range sortedNames(sessions) {
				of := sessions[name]
				for _, line := range strings.Split(of.PromptSections(PromptFull), "\n") {
					if strings.Contains(line, "kill") {
						lines = append(lines, name+" reads "+line)
					}
				}
				lines = append(lines, fmt.Sprint(name, ": list ", namesOf(of.Tools())))
				for _, r := range of.ServerSkills() {
					lines = append(lines, name+" has "+r.Registered+" at "+r.URI)
				}
			}
			return lines
		}
		s.step("sessions begin", func() {})
		s.step("skills are loaded", func() {
			for _, args := range []string{`{"name":"release"}`, `{"name":"mcp_docs__merge-pages"}`, `{"name":"slow"}`, `{"name":"relaese"}`, `{"name":""}`, `[]`, `{"name":"skill://merge-pages/SKILL.md"}`, `{"name":"skill://rare/SKILL.md"}`, `{"name":"skill://rare/SKILL.md","server":"docs"}`, `{"name":"skill://none/SKILL.md"}`, `{"name":"skill://rare/SKILL.md","server":"nowhere"}`} {
				s.answers(one, SkillLoadToolName, args)
			}
			s.answers(one, SkillLoadToolName, `{"name":"skill://`+strings.Repeat("x", 4096)+`"}`)
			s.answers(sessions["few"], SkillLoadToolName, `{"name":"release"}`)
			s.answers(sessions["few"], SkillLoadToolName, `{"name":"mcp_docs__merge-pages"}`)
			s.answers(sessions["none"], SkillLoadToolName, `{"name":"release"}`)
			s.answers(sessions["bridge"], SkillLoadToolName, `{"name":"release"}`)
		})
		s.step("hosts ask for skills by their URIs", func() {
			for _, uri := range []string{"skill://merge-pages/SKILL.md", "skill://rare/SKILL.md", "skill://none/SKILL.md"} {
				r, err := one.ServerSkill(bg, "", uri)
				s.say(uri, r.Registered, r.Description, err)
			}
			s.say("who may not load", second(sessions["none"].ServerSkill(bg, "", "skill://merge-pages/SKILL.md")))
			s.say("a file", read(s.T, one, "docs", "skill://merge-pages/a.txt"))
		})
		s.step("skills are searched for", func() {
			for _, args := range []string{`{"query":"release"}`, `{"query":"merge pages"}`, `{"query":"slow release merge","max_results":1}`, `{"query":"release mcp_docs__merge-pages"}`, `{"query":"zebra"}`, `{"query":"the"}`, `{}`, `{"query":""}`} {
				s.answers(one, SkillSearchToolName, args)
				s.answers(sessions["client"], SkillSearchToolName, args)
			}
		})
		s.step("the server's skill changes, and another comes", func() {
			docs.Has("merge-pages", "Delete all.", "")
			docs.Has("split-pages", "Split.", "")
			docs.Relist()
			s.pass(time.Minute)
			s.answers(one, SkillLoadToolName, `{"name":"mcp_docs__merge-pages"}`)
		})
		s.step("what was held back is accepted", func() {
			for _, err := range m.Problems() {
				if c := new(ChangedError); errors.As(err, &c) {
					s.say("Accept", m.Accept(c.Server, c.Tool, c.Is))
				}
			}
		})
		s.step("what a hidden skill says changes", func() {
			docs.Hides("rare", "Another text.", "")
			s.answers(one, SkillLoadToolName, `{"name":"skill://rare/SKILL.md"}`)
		})
		s.step("further skills of the host", func() {
			s.say("SetSkills", m.SetSkills([]Skill{{Name: "release", Description: "How to release now", Body: "Push."}, {Name: "review", Description: "How to review", Body: "Look."}, {Name: "a", Description: "A", Body: ""}}))
		})
		s.step("more than are listed", func() {
			var many []Skill
			for i := range 5 {
				many = append(many, Skill{Name: fmt.Sprint("skill-", i), Description: fmt.Sprint("Skill number ", i), Body: "text"})
			}
			s.say("SetSkills", m.SetSkills(many))
		})
		s.step("a new conversation", func() {
			for _, name := range sortedNames(sessions) {
				sessions[name].Compact()
			}
		})
		s.step("many of the server", func() {
			for i := range 4 {
				docs.Has(fmt.Sprint("page-", i), "text", "")
			}
			docs.Relist()
			s.pass(time.Minute)
			for _, err := range m.Problems() {
				if c := new(ChangedError); errors.As(err, &c) {
					_ = m.Accept(c.Server, c.Tool, c.Is)
				}
			}
		})
		s.step("few of the host", func() {
			s.say("SetSkills", m.SetSkills([]Skill{{Name: "review", Description: "How to review", Body: "Look."}}))
		})
		s.step("a new conversation again, saved and restored", func() {
			for _, name := range sortedNames(sessions) {
				sessions[name].Compact()
				sessions[name].PromptSections(PromptFull)
			}
			s.say("SetSkills", m.SetSkills([]Skill{{Name: "review", Description: "How to review more", Body: "Look."}}))
			restored, changed, err := m.RestoreSession(one.Save(), &SessionOptions{Label: "restored"})
			s.say("RestoreSession", changed, err)
			s.say("it reads", restored.PromptSections(PromptFull))
			restored, changed, err = m.RestoreSession(one.Save(), &SessionOptions{Skills: Access{Deny: []string{"*"}}})
			s.say("without any", restored, changed, err)
		})
		s.step("no skills", func() { s.say("SetSkills", m.SetSkills(nil)) })
	})
}

// A logged is a registry that tells the story.
type loggedRegistry struct {
	*ToolRegistry
	s      *story
	panics bool
}

func (r *loggedRegistry) log(format string, args ...any) {
	r.s.hear("said", "", "registry: "+format, args...)
	if r.panics {
		panic("the registry is broken")
	}
}

func (r *loggedRegistry) Register(t Tool) { r.log("Register %s", t.Name()); r.ToolRegistry.Register(t) }
func (r *loggedRegistry) Unregister(t Tool) {
	r.log("Unregister %s", t.Name())
	r.ToolRegistry.Unregister(t)
}
func (r *loggedRegistry) RegisterToolGroup(group string, names []string) {
	r.log("RegisterToolGroup %s %v", group, names)
	r.ToolRegistry.RegisterToolGroup(group, names)
}
func (r *loggedRegistry) SetDeferredActivator(activate func(string) bool) {
	r.log("SetDeferredActivator %t", activate != nil)
	r.ToolRegistry.SetDeferredActivator(activate)
}

// What a session returns is the caller's own.
func TestReturnedSlicesAreTheCallers(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5)}})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_003", "mcp_a__tool_004"})
	for name, list := range map[string]func() []*BridgeTool{"inline": s.InlineTools, "deferred": s.DeferredTools, "active": s.ActiveTools, "of apps": func() []*BridgeTool { return s.AppTools("a") }} {
		first := list()
		require.NotEmpty(t, first, name)
		want := slices.Clone(first)
		clear(first)
		assert.Equal(t, want, list(), name)
	}
	tools := s.Tools()
	want := slices.Clone(tools)
	clear(tools)
	assert.Equal(t, namesOf(want), namesOf(s.Tools()))
}

// A host's table of tools follows what its session offers.
func TestStoryOfARegistry(t *testing.T) {
	tellStory(t, "registry", "A host's table of tools, which follows its session, also after it has panicked.", func(s *story) {
		srv := changing(doing("a"), doing("b"), doing("c"))
		m := s.manager(Options{Inline: InlineOptions{Max: 1}, Limits: config.Limits{Refresh: -1}, Servers: []ServerConfig{{Name: "x", InProcess: srv}}})
		bg := s.Context()
		s.step("it starts", func() { s.say("Start", m.Start(bg)) })
		r := &loggedRegistry{ToolRegistry: NewRegistry(), s: s}
		var one *Session
		s.step("a session begins", func() { one = m.NewSession(&SessionOptions{Label: "one", Registry: r}) })
		s.picture = func() (lines []string) {
			for _, t := range r.List() {
				lines = append(lines, "the table has "+t.Name()+": "+t.Description()[:min(len(t.Description()), 40)])
			}
			for _, group := range sortedNames(r.groups) {
				lines = append(lines, fmt.Sprintf("group %s %v", group, r.groups[group]))
			}
			return lines
		}
		s.step("nothing happens", func() {})
		s.step("a tool becomes active by its call", func() {
			s.answers(one, "mcp_x__b", `{}`)
			s.answers(one, "mcp_x__b", `{}`)
		})
		s.step("the host asks for one that is deferred", func() {
			s.say("activated", one.ActivateToolIfDeferred("mcp_x__c"), one.ActivateToolIfDeferred("mcp_x__c"), one.ActivateToolIfDeferred("none"), one.ActivateToolIfDeferred("mcp_x__a"))
		})
		s.step("the host calls its copy", func() {
			copied, _ := r.Get("mcp_x__c")
			s.say("call", first(copied.Call(bg, json.RawMessage(`{}`))))
		})
		s.step("tools come and change", func() {
			srv.AddTools(doing("b", mcp.WithDescription("changed")), doing("d"))
			s.pass(time.Minute)
		})
		s.step("a server comes", func() { s.say("AddTools", m.AddTools("y", doing("a"))) })
		s.step("tools leave", func() {
			srv.DeleteTools("a", "b")
			s.pass(time.Minute)
		})
		s.step("an intent hides one, and no longer", func() {
			_ = m.SetRules([]Rule{{Name: "q", Intent: "quiet", Patterns: []string{"mcp_x__c"}, Action: RuleExclude}})
			one.SetIntent("quiet")
		})
		s.step("no longer", func() { one.SetIntent("") })
		s.step("the table panics while a tool becomes active", func() {
			r.panics = true
			s.say("activated", one.ActivateToolIfDeferred("mcp_y__a"))
			srv.AddTools(doing("e"))
			s.pass(time.Minute)
		})
		s.step("it works again", func() {
			r.panics = false
			s.answers(one, "mcp_x__c", `{}`)
			one.SetIntent("")
		})
		s.step("Compact after many turns", func() {
			for range 30 {
				one.NextTurn()
			}
			s.say("Compact", one.Compact())
		})
		s.step("the session is closed", func() { one.Close() })
		s.step("a session after the end", func() {
			_ = m.Close()
			m.NewSession(&SessionOptions{Registry: r}).Close()
		})
	})
}

// A user beside the system.
func TestStoryOfUsers(t *testing.T) {
	tellStory(t, "users", "Users with servers of their own beside those of the system, of one name too.", func(s *story) {
		m := s.manager(Options{Inline: InlineOptions{Max: 2}, Limits: config.Limits{Refresh: -1, Reconnect: -1}, Servers: []ServerConfig{serving("mail", doing("send"), doing("find"), doing("draft")), serving("web", doing("open"), doing("close"))}, Access: Access{Deny: []string{"*__draft"}}, Learn: &LearnOptions{}})
		bg := s.Context()
		s.step("it starts", func() { s.say("Start", m.Start(bg)) })
		var ann *User
		s.step("users that can't be", func() {
			for _, id := range []string{"", "\xff", strings.Repeat("x", 1001)} {
				s.say(fmt.Sprint(len(id), " bytes"), second(m.NewUser(id, nil)))
			}
			s.say("1,000 bytes", second(m.NewUser(strings.Repeat("x", 1000), nil)))
		})
		s.step("ann comes", func() {
			var err error
			ann, err = m.NewUser("ann", &UserOptions{Servers: []ServerConfig{serving("mail", doing("send", mcp.WithDescription("Sends of ann")), doing("archive"), doing("draft")), serving("notes", doing("add"), doing("del"), doing("list"))}, Access: Access{Deny: []string{"*__close", "never"}}, SystemResults: 1, UserResults: 2})
			s.say("NewUser", err)
			s.say("again", second(m.NewUser("ann", nil)))
		})
		one := ann.NewSession(&SessionOptions{Label: "of ann"})
		system := m.NewSession(&SessionOptions{Label: "of the system"})
		s.picture = func() (lines []string) {
			for _, st := range ann.Servers() {
				lines = append(lines, "server of ann "+s.show(st))
			}
			for _, err := range ann.Problems() {
				lines = append(lines, "problem of ann "+err.Error())
			}
			return slices.Concat(lines, s.session("ann", one), s.tools("system", system))
		}
		s.step("before her start", func() { s.answers(one, "mcp_mail__send", `{}`) })
		s.step("her start", func() { s.say("Start", ann.Start(bg)) })
		s.step("what names mean", func() {
			for _, name := range []string{"mcp_mail__send", "mcp_mail__archive", "mcp_mail__draft", "mcp_mail__find", "mcp_web__close", "mcp_notes__add", "mcp_notes__ad"} {
				s.answers(one, name, `{}`)
				s.answers(system, name, `{}`)
			}
		})
		s.step("searches", func() {
			for _, args := range []string{`{"query":"send find open add del list archive"}`, `{"query":"mcp_mail__send mcp_web__open"}`, `{"query":"add","max_results":20}`} {
				s.answers(one, SearchToolName, args)
			}
		})
		s.step("her server leaves", func() {
			s.say("RemoveServer", ann.RemoveServer("mail"))
			s.answers(one, "mcp_mail__send", `{}`)
		})
		s.step("it comes back", func() {
			s.say("AddServer", ann.AddServer(bg, serving("mail", doing("send"), doing("find"))))
			s.answers(one, "mcp_mail__send", `{}`)
			s.answers(one, "mcp_mail__find", `{}`)
		})
		s.step("a new conversation", func() {
			one.Compact()
			s.answers(one, "mcp_mail__find", `{}`)
		})
		s.step("her session goes on as that of others", func() {
			state := one.Save()
			s.say("of the system", third(m.RestoreSession(state, nil)))
			bea, err := m.NewUser("bea", nil)
			s.say("NewUser", err)
			s.say("of bea", third(bea.RestoreSession(state, nil)))
			restored, changed, err := ann.RestoreSession(state, &SessionOptions{Label: "restored"})
			s.say("of ann", restored, changed, err)
		})
		s.step("users are dropped", func() {
			s.say("DropUser", m.DropUser(bg, "ann"), m.DropUser(bg, "nobody"), m.DropUser(bg, ""))
			s.say("a call", second(one.Call(bg, "mcp_notes__add", nil)))
		})
		s.step("ann comes again", func() {
			_, err := m.NewUser("ann", nil)
			s.say("NewUser", err)
		})
	})
}

func third[A, B, C any](_ A, _ B, c C) C { return c }

// The lists of servers and what sessions were shown outlive a process.
func TestStoryOfTheCache(t *testing.T) {
	tellStory(t, "cache", "Processes one after the other, and one beside the other, that share a cache, with a server over HTTP.", func(s *story) {
		web := mcpserver.NewMCPServer("web", "1", mcpserver.WithInstructions("Reads the web."), mcpserver.WithResourceCapabilities(false, false), mcpserver.WithCacheHints(0, mcp.CacheScopePublic))
		web.AddTools(doing("open"), doing("close"))
		web.AddResource(mcp.NewResource("web://1", "first"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { return nil, nil })
		doc := new(mcptest.Split)
		server := func(change func(*ServerConfig)) ServerConfig {
			cfg := ServerConfig{Name: "web", URL: "http://web", HTTPClient: unwired(mcpserver.NewStreamableHTTPServer(web, mcpserver.WithStateLess(true)))}
			if change != nil {
				change(&cfg)
			}
			return cfg
		}
		bg := s.Context()
		process := func(title string, opts Options, then func(m *Manager)) {
			var m *Manager
			s.picture = func() []string {
				if m == nil {
					return nil
				}
				lines := append(s.servers(m), s.tools("default", m.Default())...)
				for _, r := range m.Default().Resources() {
					lines = append(lines, "resource "+r.URI)
				}
				return lines
			}
			s.last = nil
			s.step(title, func() {
				opts.Cache = doc
				opts.Limits.Reconnect = -1
				m = s.manager(opts)
				s.say("Start", m.Start(bg))
				s.pass(3 * time.Second)
				if then != nil {
					then(m)
					s.pass(3 * time.Second)
				}
				s.say("saved", doc.Saved().Times > 0)
			})
			m.Close()
			m = nil
		}
		one := func(change func(*ServerConfig)) Options { return Options{Servers: []ServerConfig{server(change)}} }
		process("the first", one(nil), nil)
		process("the second has all without the server", one(nil), func(m *Manager) { s.answers(m.Default(), "mcp_web__open", `{}`) })
		process("one that is eager", one(func(c *ServerConfig) { c.Eager = true }), nil)
		process("one with other extensions", Options{Extensions: map[string]any{"x": 1}, Servers: []ServerConfig{server(nil)}}, nil)
		process("one with headers", one(func(c *ServerConfig) { c.Headers = map[string]string{"Key": "secret-0123456789"} }), nil)
		process("one with a prefix", one(func(c *ServerConfig) { c.Prefix = "www" }), nil)
		process("one that permits less", one(func(c *ServerConfig) { c.Tools = Access{Deny: []string{"*__close"}} }), nil)
		process("one with too small limits", Options{Limits: config.Limits{MaxTools: 2}, Servers: []ServerConfig{server(nil)}}, nil)
		process("as the first again", one(nil), nil)
		s.pass(time.Hour)
		process("an hour later", one(nil), nil)
		web.AddTools(doing("more"))
		process("without a refresh", Options{Limits: config.Limits{Refresh: -1}, Servers: []ServerConfig{server(nil)}}, func(m *Manager) {
			s.say("Preload", m.Preload(bg, "mcp_web__*"))
		})
		process("two at once", one(nil), func(m *Manager) {
			other := s.manager(Options{Cache: doc, Servers: []ServerConfig{server(func(c *ServerConfig) { c.Eager = true })}})
			web.DeleteTools("more")
			s.say("Start", other.Start(bg))
			s.pass(3 * time.Second)
			s.say("Refresh", m.Refresh())
			s.pass(3 * time.Second)
			_ = other.Close()
		})
		private := mcpserver.NewMCPServer("web", "1", mcpserver.WithCacheHints(0, mcp.CacheScopePrivate))
		private.AddTools(doing("open"), doing("mine"))
		public := web
		web = private
		process("its list is private now", one(func(c *ServerConfig) { c.Eager = true }), nil)
		process("it is not kept, and what was public stays for a month", one(nil), nil)
		web = public
		process("it is public again", one(nil), nil)
		process("it is removed", one(nil), func(m *Manager) { s.say("RemoveServer", m.RemoveServer("web")) })
		process("and comes back", one(nil), nil)
		doc.FailParts(errOfStory)
		doc.Fail(errOfStory)
		s.silent = []string{"-"} // how often saving fails depends on when it is tried
		process("the cache fails", one(nil), func(m *Manager) { s.say("Refresh", m.Refresh()) })
		doc.FailParts(nil)
		doc.Fail(nil)
		doc.Data = []byte("{")
		s.silent = nil
		process("the cache is no cache", one(nil), func(m *Manager) { s.say("Refresh", m.Refresh()) })
	})
}

// What a session counts of the provider's cache, and why it says that the cache was lost.
func TestStoryOfUsage(t *testing.T) {
	tellStory(t, "usage", "Requests of sessions whose provider's cache is lost again and again, and what the session takes for the cause.", func(s *story) {
		for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
			srv := changing(doing("a"), doing("b"), doing("c"), doing("d"))
			m := s.manager(Options{Inline: InlineOptions{Max: 1}, Limits: config.Limits{Refresh: -1}, Servers: []ServerConfig{{Name: "x", InProcess: srv}}})
			if err := m.Start(s.Context()); err != nil {
				s.say("Start", err)
			}
			one := m.NewSession(&SessionOptions{Label: d.String(), Disclosure: d, Registry: NewRegistry()})
			s.picture = func() []string {
				return []string{s.show(one.Stats().Measured), fmt.Sprint("saved ", one.Stats().EstimatedSaved)}
			}
			s.last = nil
			lost := func(title string, do func()) {
				s.step(d.String()+": "+title, func() {
					one.CountUsage(provider.Usage{Input: 9000, Written: 9000, Output: 5})
					do()
					one.CountUsage(provider.Usage{Input: 9000})
				})
			}
			lost("nothing was shown", func() {})
			lost("the list is shown", func() { one.Tools() })
			lost("and the sections", func() { one.PromptSections(PromptFull) })
			lost("a tool becomes active", func() { one.ActivateTools([]string{"mcp_x__b"}) })
			lost("a server comes, and the sections are read", func() {
				_ = m.AddTools("y", doing("e"), doing("f"))
				one.PromptSections(PromptFull)
			})
			lost("a Turn", func() { _, _ = one.Turn(provider.Anthropic, "claude-opus-4-8") })
			lost("a tool becomes active after it", func() {
				one.ActivateTools([]string{"mcp_x__c"})
				_, _ = one.Turn(provider.Anthropic, "claude-opus-4-8")
			})
			lost("a pause", func() { s.pass(5*time.Minute + time.Second) })
			lost("Compact", func() { one.Compact() })
			lost("Compact twice", func() {
				one.Tools()
				one.CountUsage(provider.Usage{Input: 9000, Written: 9000})
				one.Compact()
				one.Compact()
			})
			lost("closed", func() { one.Close() })
		}
	})
}

// States that are saved in one process and restored in others.
func TestStoryOfStates(t *testing.T) {
	tellStory(t, "states", "A session that is saved and restored where servers are missing, others, or may not be used.", func(s *story) {
		tools := func(names ...string) (list []mcpserver.ServerTool) {
			for _, name := range names {
				list = append(list, doing(name))
			}
			return list
		}
		process := func(opts Options, servers ...string) *Manager {
			opts.Inline.Max = 2
			opts.Skills = []Skill{{Name: "release", Description: "How to release", Body: "Push."}}
			opts.Rules = append(opts.Rules, Rule{Name: "short", Patterns: []string{"mcp_c__*"}, Action: RuleSummarize})
			m := s.manager(opts)
			for _, name := range servers {
				_ = m.AddTools(name, tools("t1", "t2", "t3")...)
			}
			return m
		}
		home := process(Options{}, "a", "b", "c")
		for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
			one := home.NewSession(&SessionOptions{Disclosure: d, Intent: "work"})
			s.step("a session "+d.String(), func() {
				_, err := one.Turn(provider.Anthropic, "claude-opus-4-8")
				s.say("Turn", err)
				s.answers(one, "mcp_b__t3", `{}`)
				s.answers(one, "mcp_c__t1", `{"a":1}`)
				one.NextTurn()
				s.answers(one, SearchToolName, `{"query":"t2"}`)
				_, err = one.Turn(provider.Anthropic, "claude-opus-4-8")
				s.say("Turn", err)
				s.say("state", string(one.Save()))
			})
			for _, to := range []struct {
				title string
				in    *Manager
				opts  SessionOptions
			}{
				{"the same", home, SessionOptions{}},
				{"another process", process(Options{}, "a", "b", "c"), SessionOptions{}},
				{"without b", process(Options{}, "a", "c"), SessionOptions{}},
				{"without all", process(Options{}), SessionOptions{}},
				{"where b is not permitted", home, SessionOptions{Access: Access{Deny: []string{"mcp_b__*"}}}},
				{"where b is not permitted to anybody", process(Options{Access: Access{Deny: []string{"mcp_b__*"}}}, "a", "b"), SessionOptions{}},
				{"that may not search, or call by name", home, SessionOptions{Access: Access{Deny: []string{SearchToolName, CallToolName, SkillLoadToolName}}}},
				{"by the bridge", home, SessionOptions{Disclosure: ByBridge}},
				{"by activation", home, SessionOptions{Disclosure: ByActivation}},
			} {
				s.step(d.String()+", restored in "+to.title, func() {
					to.opts.Intent = "work"
					restored, changed, err := to.in.RestoreSession(one.Save(), &to.opts)
					s.say("RestoreSession", changed, err)
					if err != nil {
						return
					}
					s.say("it is saved the same", string(restored.Save()) == string(one.Save()))
					s.picture = func() []string { return s.session("it", restored) }
					s.last = nil
					s.say("a call", second(restored.Call(s.Context(), "mcp_b__t3", nil)))
					s.say("a call", second(restored.Call(s.Context(), "mcp_b__t9", nil)))
					_, err = restored.Turn(provider.Anthropic, "claude-opus-4-8")
					s.say("the next Turn", err)
				})
				s.picture = nil
			}
		}
		s.step("forged states", func() {
			home := process(Options{StateVersion: saved.Oldest}, "a", "b", "c") // whose states have nothing apart
			one := home.NewSession(nil)
			one.PromptSections(PromptFull)
			one.ActivateTools([]string{"mcp_b__t3"})
			good := string(one.Save())
			s.say("good", good)
			for _, of := range [][2]string{
				{`"version":4`, `"version":6`}, {`"version":4`, `"version":1`}, {`"user":""`, `"user":"ann"`}, {`"kind":"tool"`, `"kind":"none"`}, {`"kind":"tool"`, `"kind":"name"`}, {`"kind":"tool"`, `"kind":"summary"`}, {`"kind":"tool"`, `"kind":"removed"`}, {`"kind":"tool"`, `"kind":"deferred"`}, {`"kind":"tool"`, `"kind":"inline"`}, {`"kind":"tool"`, `"kind":"guide"`},
				{`"kind":"search"`, `"kind":"meta"`}, {`"kind":"search"`, `"kind":"callable"`}, {`"mcp_tool_search"`, `"mcp_tool_none"`}, {`mcp_b__t3`, `mcp_tool_search`}, {`"used":0`, `"used":9`}, {`"tool":1`, `"tool":99`}, {`"tool":2`, `"tool":1`}, {`"tools":3`, `"tools":-3`}, {`"name\":\"t3\"`, `"name\":\"t4\"`},
			} {
				forged := strings.ReplaceAll(good, of[0], of[1])
				if forged == good {
					continue
				}
				restored, changed, err := home.RestoreSession(json.RawMessage(forged), nil)
				s.say(of[0]+" is "+of[1], changed, err)
				if err == nil {
					s.say("  it shows", namesOf(restored.Tools()), namesOf(restored.ActiveTools()))
				}
			}
			for _, state := range []string{"", "{", "[]", "null", "{}"} {
				s.say(state, third(home.RestoreSession(json.RawMessage(state), nil)))
			}
		})
		s.step("forged conversations", func() {
			one := home.NewSession(&SessionOptions{Disclosure: ByBridge})
			_, _ = one.Turn(provider.Anthropic, "claude-opus-4-8")
			good := string(one.Save())
			for _, of := range [][2]string{{`"by":"bridge"`, `"by":"none"`}, {`"by":"bridge"`, `"by":"automatic"`}, {`"by":"bridge"`, `"by":"provider"`}, {`"begun":`, `"begun":1`}, {`"begun":`, `"begun":-`}, {`"why":`, `"why":9`}, {`"why":`, `"why":-`}} {
				restored, changed, err := home.RestoreSession(json.RawMessage(strings.Replace(good, of[0], of[1], 1)), nil)
				s.say(of[0]+" is "+of[1], strings.Contains(good, of[0]), changed, err)
				if err == nil {
					s.say("  it has", restored.Disclosure(), namesOf(restored.Tools()))
				}
			}
		})
		s.step("more rights than here", func() {
			one := home.NewSession(&SessionOptions{Access: Access{Deny: []string{"x"}}, Skills: Access{Deny: []string{"y"}}, Intent: "work"})
			state := one.Save()
			s.say("no access", third(home.RestoreSession(state, &SessionOptions{Skills: Access{Deny: []string{"y"}}, Intent: "work"})))
			s.say("no skills", third(home.RestoreSession(state, &SessionOptions{Access: Access{Deny: []string{"x"}}, Intent: "work"})))
			s.say("no intent", third(home.RestoreSession(state, &SessionOptions{Access: Access{Deny: []string{"x"}}, Skills: Access{Deny: []string{"y"}}})))
			s.say("all", third(home.RestoreSession(state, &SessionOptions{Access: Access{Deny: []string{"x"}}, Skills: Access{Deny: []string{"y"}}, Intent: "else"})))
			child := one.NewChild(nil)
			s.say("a child", third(one.RestoreChild(child.Save(), nil)))
			s.say("a child elsewhere", third(home.RestoreSession(child.Save(), nil)))
		})
		s.step("waiting for servers", func() {
			one := home.NewSession(nil)
			one.Tools()
			ctx, cancel := context.WithTimeout(s.Context(), time.Second)
			defer cancel()
			away := process(Options{Servers: []ServerConfig{serving("a")}}, "c")
			s.say("here", home.AwaitServers(ctx, one.Save()))
			s.say("elsewhere", away.AwaitServers(ctx, one.Save()))
			s.say("no state", away.AwaitServers(ctx, nil))
			go func() {
				time.Sleep(time.Minute)
				_ = away.Close()
			}()
			s.say("until it is closed", away.AwaitServers(s.Context(), one.Save()))
		})
	})
}
