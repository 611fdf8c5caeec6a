package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/require"
)

// A guest is a client of a story among others.
type guest struct {
	*story
	id  string
	ctx context.Context
}

// Notify implements wire.Sink.
func (c *guest) Notify(method string, params any) bool {
	return c.story.Notify(c.id+" is told "+method, params)
}

// say sends requests, each a method and its params.
func (c *guest) say(id int, requests ...string) {
	c.story.ctx = c.ctx
	for i, r := range requests {
		method, params, _ := strings.Cut(r, " ")
		c.ask(id+i, method, params)
	}
}

// joins has another client connect to the endpoint of a server or, if that is "", of all. who is nil without a
// token.
func (s *story) joins(id, endpoint string, who *tokens.Holder) *guest {
	session := server.NewInProcessSession(id, nil)
	ctx := s.g.front.WithContext(atEndpoint(s.t, endpoint), session)
	require.NoError(s.t, s.g.front.RegisterSession(ctx, session))
	ctx, release := tokens.With(ctx, who)
	s.t.Cleanup(release)
	c := &guest{s, id, ctx}
	s.g.open(id).Attach(c, true)
	s.step(fmt.Sprintf("%s joins at %q", id, endpoint))
	c.say(1, "initialize "+strings.Replace(hello, "teller", id, 1))
	s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// leaves ends the session of a client.
func (c *guest) leaves() {
	c.g.front.UnregisterSession(c.ctx, c.id)
	c.step(c.id + " leaves")
}

// atEndpoint returns the context of a request to the endpoint of a server, or of all.
func atEndpoint(t *testing.T, endpoint string) (ctx context.Context) {
	none, err := tokens.Read("")
	require.NoError(t, err)
	site := &web.Site{Tokens: none}
	site.Within(limits.Limits{}.WithDefaults(), figures.New())
	h := site.Server(web.Front{
		Has: func(string) bool { return true }, Health: http.NotFoundHandler(), Streams: t.Context(), Log: slog.New(slog.DiscardHandler),
		Messages: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = context.WithoutCancel(r.Context()) }),
	}).Handler
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, strings.TrimSuffix("/mcp/"+endpoint, "/"), strings.NewReader("{}")))
	require.NotNil(t, ctx)
	return ctx
}

// library is a server whose URIs and names others have, too. It has a skill, long results, links, and
// tools for apps.
func library() *mcptest.Skilled {
	docs := &mcptest.Skilled{MCPServer: shelf("library"), Files: make(map[string]string)}
	for _, option := range []server.ServerOption{server.WithExtensions(map[string]any{skillsExtension: struct{}{}}), server.WithInstructions("Has books."), server.WithResourceCapabilities(true, true), server.WithLogging()} {
		option(docs.MCPServer)
	}
	docs.Has("lend", "Lend with care.", `,"tools":["link"]`, "a.md", "Alpha")
	docs.AddTools(saying("echo", "the library's"), saying("refresh", "the app's", "app"))
	docs.AddTool(mcp.NewTool("long"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("begins " + strings.Repeat("and ", 20_000) + "ends"), nil
	})
	docs.AddTool(mcp.NewTool("report"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewResourceLink("mem://pages/new", "new", "", ""), mcp.NewResourceLink("https://example.com/", "web", "", ""), mcp.NewResourceLink("http://example.com/", "web", "", ""),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "mem://a", Text: "x"}), mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "ui://chart", Blob: "AAAA"}), mcp.NewTextContent("mem://a"),
		}}, nil
	})
	return docs
}

// libraryOf returns a library's configuration. Mcptest's server with skills has one request at a time, so none
// must stay open.
func libraryOf(name string, s *mcptest.Skilled) mcphybrid.ServerConfig {
	return mcphybrid.ServerConfig{Name: name, InProcess: s, Protocol: mcp.LATEST_LEGACY_PROTOCOL_VERSION}
}

// Of several servers, each URI says whose it is, and what is cut can be read on.
func TestStoryOfSeveralServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		food, docs := larder(), library()
		s := begins(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: food}, libraryOf("the library", docs)}, logCalls: true, grace: time.Second})
		c := s.joins("ann", "", nil)
		c.say(10, "tools/list {}", "resources/list {}", "resources/templates/list {}", "prompts/list {}", "skills/list {}")
		for i, uri := range []string{
			"mcphybrid://the%20library/mem://a", "mem://a", "mem://pages/1", "mem://jam", "mcphybrid://larder/mem://a", "mcphybrid://the library/mem://a",
			"mcphybrid://%zz/mem://a", "mcphybrid://", "mcphybrid:///", "any:",
		} {
			c.say(20+i, fmt.Sprintf(`resources/read {"uri":%q}`, uri))
		}
		of := func(own string) string { return s.g.registered("the library", own) }
		c.say(30,
			`prompts/get {"name":"`+of("greet")+`","arguments":{"whom":"Bob"}}`, `prompts/get {"name":"greet"}`,
			`completion/complete {"ref":{"type":"ref/prompt","name":"`+of("greet")+`"},"argument":{"name":"whom","value":"B"}}`,
			`completion/complete {"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"whom","value":"B"}}`,
			`completion/complete {"ref":{"type":"ref/resource","uri":"mcphybrid://the%20library/mem://pages/{page}"},"argument":{"name":"page","value":"1"}}`,
			`completion/complete {"ref":{"type":"ref/resource","uri":"mem://none/{page}"},"argument":{"name":"page","value":"1"}}`,
		)
		for i, uri := range []string{"mcphybrid://the%20library/skill://lend/SKILL.md", "skill://lend/SKILL.md", "mcphybrid://larder/skill://lend/SKILL.md", "mcphybrid://the%20library/skill://none/SKILL.md", ""} {
			c.say(40+i, fmt.Sprintf(`skills/get {"uri":%q}`, uri))
		}
		c.say(45, "skills/list 5", "skills/other {}")
		docs.List = append(docs.List, `{"uri":"skill://odd/SKILL.md","frontmatter":{"name":"odd","description":"Has odd files"},"resources":5}`)
		docs.Relist()
		time.Sleep(time.Second)
		s.step("a skill comes of which nobody can read the files")
		docs.AddResource(mcp.NewResource("mem://a/1", "part of a"), nil)
		food.AddResource(mcp.NewResource("mem://jam/1", "part of jam"), nil)
		time.Sleep(time.Second)
		s.step("both servers get a part of a resource")
		c.say(47, "skills/list {}", `resources/subscribe {"uri":"mcphybrid://the%20library/mem://a"}`, `resources/subscribe {"uri":"mem://jam"}`)
		for _, uri := range []string{"mem://a", "mem://a/1", "mem://jam", "mem://jam/1", "mem://other"} {
			for _, of := range []*server.MCPServer{docs.MCPServer, food} {
				of.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": uri})
			}
			s.step("both servers tell of an update of " + uri)
		}
		call := func(id int, name, args string) {
			c.say(id, fmt.Sprintf(`tools/call {"name":%q,"arguments":%s}`, name, args))
		}
		call(50, of("link"), `{}`)
		call(51, of("report"), `{}`)
		call(52, of("refresh"), `{}`)
		call(53, mcphybrid.SkillLoadToolName, `{"name":"`+of("lend")+`"}`)
		for i, args := range []string{`{"uri":"mcphybrid://the%20library/mem://a"}`, `{"uri":"mem://a","server":"larder"}`, `{"uri":"mem://jam"}`, `{"uri":5}`, `{}`} {
			call(60+2*i, mcphybrid.ResourceReadToolName, args)
			call(61+2*i, mcphybrid.CallToolName, `{"name":"mcp_resource_read","arguments":`+args+`}`)
		}
		call(70, of("long"), `{}`)
		for i, args := range []string{`{"id":"r1","offset":79990}`, `{"id":"r1","offset":80011}`, `{"id":"r1","select":".a"}`, `{"id":"nonsense"}`} {
			call(71+i, mcphybrid.PageToolName, args)
		}
		s.end("story-several", "Of several servers, each URI says whose it is.")
	})
}

// A server alone has its own names, and tells no others.
func TestStoryOfAServerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		food, docs := larder(), library()
		s := begins(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: food}, libraryOf("library", docs)}, logCalls: true, grace: time.Second})
		c := s.joins("ann", "library", nil)
		c.say(10, "tools/list {}", "resources/list {}", "resources/templates/list {}", "prompts/list {}", "skills/list {}")
		for i, name := range []string{"echo", "ecco", "refresh", "link", "report", "long", "mcp_library__echo", "mcp_larder__echo", "fail", mcphybrid.SearchToolName, mcphybrid.ResourceReadToolName, mcphybrid.PageToolName} {
			c.say(20+i, fmt.Sprintf(`tools/call {"name":%q,"arguments":{}}`, name))
		}
		c.say(40, `tools/call {"name":"echo","arguments":{"text":5}}`, `tools/call {"name":"refresh","arguments":{"text":5}}`)
		for i, uri := range []string{"mem://a", "mem://jam", "mcphybrid://library/mem://a", "mcphybrid://larder/mem://jam", "skill://lend/a.md"} {
			c.say(50+i, fmt.Sprintf(`resources/read {"uri":%q}`, uri))
		}
		c.say(60, `prompts/get {"name":"greet","arguments":{"whom":"Bob"}}`, `prompts/get {"name":"menu"}`, `skills/get {"uri":"skill://lend/SKILL.md"}`,
			`completion/complete {"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"whom","value":"B"}}`,
			`completion/complete {"ref":{"type":"ref/resource","uri":"mem://pages/{page}"},"argument":{"name":"page","value":"1"}}`)
		c.say(70, `resources/subscribe {"uri":"mem://a"}`)
		docs.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://a"})
		food.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://a"})
		s.step("both servers tell of an update")
		docs.AddTools(saying("only", "the app's other", "app"))
		time.Sleep(time.Second)
		s.step("the server gets a tool for apps")
		c.say(80, "tools/list {}")
		food.AddTools(saying("more", "the larder's"))
		time.Sleep(time.Second)
		s.step("the other server gets a tool")
		d := s.joins("dan", "nobody", nil)
		d.say(90, "tools/list {}", "resources/list {}", `tools/call {"name":"echo","arguments":{}}`, `resources/read {"uri":"mem://a"}`)
		docs.AddTools(saying(mcphybrid.PageToolName, "the library's own"))
		time.Sleep(time.Second)
		s.step("the server gets a tool with the name of ours")
		c.say(100, "tools/list {}", `tools/call {"name":"mcp_tool_page","arguments":{"text":"x"}}`)
		s.end("story-alone", "A server that a client has alone.")
	})
}

// Servers come, go and are replaced, while clients call, follow and hear what is logged.
func TestStoryOfServersThatChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := larder(), larder()
		first.AddTool(mcp.NewTool("nap"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(2 * time.Second)
			return mcp.NewToolResultText("napped"), nil
		})
		second.DeleteTools("steps", "show", "broken", "fail")
		second.DeleteResources("mem://none")
		list := []mcphybrid.ServerConfig{{Name: "larder", InProcess: first}, libraryOf("library", library())}
		from := &source{problems: make(map[string]bool), notes: make(map[string]bool), changes: make(map[string]*change)}
		s := begins(t, gatewayOptions{servers: list, logCalls: true, grace: 3 * time.Second, follow: []string{"ann"}})
		becomes := func(what string, now ...mcphybrid.ServerConfig) {
			from.apply(s.g, now)
			s.step(what)
		}
		hears := func(of *server.MCPServer, what string) {
			of.SendNotificationToAllClients("notifications/message", map[string]any{"level": "error", "data": what})
			s.step("a server logs: " + what)
		}
		a := s.joins("ann", "", nil)
		a.say(10, "tools/list {}", `logging/setLevel {"level":"info"}`, `tools/call {"name":"mcp_larder__echo","arguments":{}}`)
		hears(first, "for ann, who alone has called")
		for i, uri := range []string{"mem://jam", "mcphybrid://larder/mem://none", "mcphybrid://library/mem://a"} {
			a.say(20+i, fmt.Sprintf(`resources/subscribe {"uri":%q}`, uri))
		}
		first.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://jam"})
		s.step("the larder tells of an update")

		a.say(30, `tools/call {"name":"mcp_larder__nap","arguments":{}}`)
		becomes("the larder is replaced while it works", mcphybrid.ServerConfig{Name: "larder", InProcess: second}, list[1])
		a.say(31, `tools/call {"name":"mcp_larder__echo","arguments":{"text":"to the old one"}}`)
		time.Sleep(2*time.Second - 1)
		s.step("almost two seconds later")
		time.Sleep(time.Nanosecond)
		s.step("the call has ended")
		a.say(40, "tools/list {}", `tools/call {"name":"mcp_larder__steps","arguments":{}}`, `tools/call {"name":"mcp_larder__echo","arguments":{"text":"to the new one"}}`)
		second.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://jam"})
		s.step("the new larder tells of an update")
		hears(second, "also for ann")

		becomes("the file says the same", mcphybrid.ServerConfig{Name: "larder", InProcess: second}, list[1])
		b := s.joins("bob", "", nil)
		b.say(50, `logging/setLevel {"level":"debug"}`, `tools/call {"name":"mcp_larder__echo","arguments":{}}`)
		hears(second, "for nobody, as two have called")
		comes := slowServer("comes", after(2*time.Second), mcptest.Echo("late", "Comes late"))
		becomes("one comes, and the library is switched off", mcphybrid.ServerConfig{Name: "larder", InProcess: second}, mcphybrid.ServerConfig{Name: "library", InProcess: list[1].InProcess, Protocol: list[1].Protocol, Disabled: true}, comes)
		b.say(60, `tools/call {"name":"mcp_comes__late","arguments":{"text":"waits"}}`, `tools/call {"name":"mcp_none__late","arguments":{}}`)
		time.Sleep(2 * time.Second)
		s.step("it has come")
		b.say(70, "tools/list {}", `resources/read {"uri":"mcphybrid://library/mem://a"}`)
		a.say(80, `resources/unsubscribe {"uri":"mem://jam"}`)
		a.leaves()
		hears(second, "for nobody, as ann is gone")
		becomes("all go but the larder, which has its old place", mcphybrid.ServerConfig{Name: "larder", InProcess: second})
		b.say(90, `tools/call {"name":"mcp_comes__late","arguments":{}}`, "resources/list {}")
		fmt.Fprintf(&s.told, "\nchanges that are noted: %d, subscriptions: %d\n", len(from.changes), s.g.updates.count())
		becomes("the last one goes")
		b.say(95, "tools/list {}", "resources/list {}", `resources/read {"uri":"mem://jam"}`)
		fmt.Fprintf(&s.told, "\nchanges that are noted: %d, subscriptions: %d, waiting: %d\n", len(from.changes), s.g.updates.count(), len(s.g.starts.waiting))
		s.end("story-changes", "Servers come, go and are replaced, while clients call, follow and hear what is logged.")
	})
}

// What a client has follows from its token, and ends with it.
func TestStoryOfTokens(t *testing.T) {
	t.Parallel()
	file := writeSecret(t, `{"tokens": [{"name": "owner", "token": "a", "operator": true}, {"name": "reader", "token": "b", "allow": ["library/*"], "deny": ["*long*"]}, {"name": "nobody", "token": "c", "deny": ["*", "misspelled"]}]}`)
	all, err := tokens.Read(file)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		slow := slowServer("late", after(10*time.Second), mcptest.Echo("late", "Comes late"))
		s := begins(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: larder()}, libraryOf("library", library()), slow}, logCalls: true, grace: time.Second})
		for i, name := range []string{"a", "b", "c"} {
			s.joins([]string{"owner's app", "reader's app", "nobody's app"}[i], "late", all.Holder(name)).leaves()
		}
		for i, name := range []string{"a", "b", "c"} {
			c := s.joins([]string{"owner", "reader", "nobody"}[i], "", all.Holder(name))
			if i == 0 {
				time.Sleep(defaultWait)
				s.step("clients wait for the late server no longer")
			}
			c.say(10, "tools/list {}", "resources/list {}", "prompts/list {}", "skills/list {}")
			for i, tool := range []string{"mcp_larder__echo", "mcp_library__echo", "mcp_library__long"} {
				c.say(20+i, fmt.Sprintf(`tools/call {"name":%q,"arguments":{}}`, tool))
			}
			for i, uri := range []string{"mem://jam", "mem://a", "mcphybrid://larder/mem://jam"} {
				c.say(30+2*i, fmt.Sprintf(`resources/read {"uri":%q}`, uri), fmt.Sprintf(`resources/subscribe {"uri":%q}`, uri))
			}
			c.say(40, `prompts/get {"name":"mcp_larder__menu","arguments":{"guest":"Ann"}}`, `skills/get {"uri":"skill://lend/SKILL.md"}`)
			c.leaves()
		}
		time.Sleep(6 * time.Second)
		s.step("the late server has started")
		s.g.reportIdle(all)
		s.step("what the tokens deny is compared with what there is")
		s.end("story-tokens", "What clients have by their tokens.")
	})
}

// begins is tell, without a client.
func begins(t *testing.T, opts gatewayOptions) *story {
	s := tell(t, opts)
	s.g.front.UnregisterSession(s.ctx, "one")
	s.seen, s.told = [2]int{}, strings.Builder{}
	s.step("it starts")
	return s
}
