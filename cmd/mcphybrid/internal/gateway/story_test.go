package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/version"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/require"
)

// A story is what a client and a gateway say to each other, step by step, and what the gateway logs meanwhile.
type story struct {
	t    *testing.T
	g    *gateway
	ctx  context.Context // of the client's session
	out  mcptest.Log
	log  mcptest.Log
	seen [2]int // of out and log
	told strings.Builder
	asks sync.WaitGroup
}

// Notify implements wire.Sink.
func (s *story) Notify(method string, params any) bool {
	data, err := json.Marshal(params)
	fmt.Fprintf(&s.out, "%s %s\n", method, data)
	return err == nil
}

// tell begins a story. It is for a bubble.
func tell(t *testing.T, opts gatewayOptions) *story {
	s := &story{t: t}
	opts.logLevel, opts.wait = mcp.LoggingLevelInfo, defaultWait
	opts.log = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	s.g = newGateway(opts)
	synctest.Wait() // whether the client is there before the servers have started is a race
	session := server.NewInProcessSession("one", nil)
	require.NoError(t, s.g.front.RegisterSession(t.Context(), session))
	s.ctx = s.g.front.WithContext(t.Context(), session)
	s.g.open("one").Attach(s, true)
	s.step("it starts")
	return s
}

// step tells what has come since the last step, in the order of the alphabet: what goes on at once has no other.
func (s *story) step(what string) {
	synctest.Wait()
	fmt.Fprintf(&s.told, "\n%s\n", what)
	for i, from := range []*mcptest.Log{&s.out, &s.log} {
		text := from.String()
		var lines []string
		for line := range strings.Lines(text[s.seen[i]:]) {
			lines = append(lines, strings.TrimSpace(line))
		}
		s.seen[i] = len(text)
		slices.Sort(lines)
		for _, line := range slices.Compact(lines) { // two equal notices are one if the first still waits
			fmt.Fprintf(&s.told, "    %s %s\n", []string{"←", "log"}[i], s.short(line))
		}
	}
}

// What is random in messages, or the same in all: the state of an open call, what a client says of itself, and the mark of an
// error that has more than its words, which is taken off on the way out.
var (
	stateOf = regexp.MustCompile(`("requestState":")[^"]+`)
	metaOf  = regexp.MustCompile(`"_meta":\{"io\.modelcontextprotocol/protocolVersion":.*"io\.modelcontextprotocol/clientCapabilities":(.*),"io\.modelcontextprotocol/clientInfo":\{[^}]*\}\}`)
	markOf  = regexp.MustCompile(`"[A-Z2-7]{26}:`)
	manyOf  = regexp.MustCompile(`(?:and ){10,}`)
)

// short names the tools of a long list, and leaves out what differs from version to version.
func (s *story) short(line string) string {
	line = strings.ReplaceAll(line, version.Of(), "VERSION")
	line = manyOf.ReplaceAllStringFunc(line, func(many string) string { return fmt.Sprintf("and … %d times … ", strings.Count(many, "and ")) })
	line = metaOf.ReplaceAllString(line, `"_meta":{…$1}`)
	line = markOf.ReplaceAllString(stateOf.ReplaceAllString(line, "${1}STATE"), `"MARK:`)
	var list struct {
		ID     int
		Result struct{ Tools []struct{ Name string } }
	}
	if json.Unmarshal([]byte(line), &list) != nil || len(list.Result.Tools) < 6 {
		return line
	}
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return fmt.Sprintf("%d: %d tools: %s", list.ID, len(names), strings.Join(names, " "))
}

// say sends messages, and tells what comes.
func (s *story) say(messages ...string) {
	for _, message := range messages {
		s.asks.Go(func() {
			answer := s.g.front.HandleMessage(s.ctx, json.RawMessage(message))
			if data, err := json.Marshal(answer); answer != nil {
				require.NoError(s.t, err)
				fmt.Fprintf(&s.out, "%s\n", data)
			}
		})
		s.step("→ " + s.short(message))
	}
}

// ask sends a request.
func (s *story) ask(id int, method, params string) {
	s.t.Helper()
	s.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

// call sends a call of a tool.
func (s *story) call(id int, name, args string) {
	s.t.Helper()
	s.ask(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
}

// end has the gateway end, and compares the story with a golden file.
func (s *story) end(name, shows string) {
	s.t.Helper()
	s.g.drain()
	s.step("the gateway ends")
	s.asks.Wait()
	s.g.close()
	s.step("it is closed")
	s.compare(name, shows)
}

// compare compares the story so far with a golden file, which begins with what it shows.
func (s *story) compare(name, shows string) {
	s.t.Helper()
	golden.Compare(s.t, name+".golden", shows+"\n"+s.told.String())
}

// larder is a server with tools of all kinds of answers, resources and prompts.
func larder() *server.MCPServer {
	s := server.NewMCPServer("larder", "1", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithLogging(), server.WithInstructions("Keeps food."))
	tool := func(name string, run server.ToolHandlerFunc) {
		s.AddTool(mcp.NewTool(name, mcp.WithDescription("The tool "+name), mcp.WithString("text"), mcp.WithNumber("n")), run)
	}
	tool("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(string(r.Params.RawArguments)), nil
	})
	tool("fail", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("failed with " + r.GetString("text", "")), nil
	})
	tool("broken", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("the shelf broke")
	})
	tool("slow", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(time.Minute):
			return mcp.NewToolResultText("slept"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	tool("steps", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
			for i := range 2 {
				_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1, "message": "step"})
			}
		}
		return mcp.NewToolResultText("stepped"), nil
	})
	tool("show", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return everyContent(), nil })
	text := func(text string) server.ResourceHandlerFunc {
		return func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: text}}, nil
		}
	}
	s.AddResource(mcp.NewResource("mem://jam", "jam", mcp.WithResourceDescription("Jam"), mcp.WithMIMEType("text/plain")), text("plum"))
	s.AddResource(mcp.NewResource("mem://none", "none"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return nil, fmt.Errorf("none left")
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("mem://shelf/{n}", "shelf"), server.ResourceTemplateHandlerFunc(text("a shelf")))
	s.AddPrompt(mcp.NewPrompt("menu", mcp.WithPromptDescription("A menu"), mcp.WithArgument("guest", mcp.RequiredArgument())), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("For "+r.Params.Arguments["guest"], []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Cook."))}), nil
	})
	return s
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{},"sampling":{}},"clientInfo":{"name":"teller","version":"1"}}`

// A client lists, calls, reads and follows, and does what it should not.
func TestStoryOfAClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		food := larder()
		s := tell(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: food}}, logCalls: true, logArguments: true, grace: 2 * time.Second})
		s.call(1, "mcp_larder__echo", `{"text":"before hello"}`)
		s.ask(2, "initialize", hello)
		s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for i, method := range []string{"ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "nonsense"} {
			s.ask(10+i, method, `{}`)
		}
		for i, args := range []string{`{}`, `{"text":"a","n":9007199254740993}`, `{"text":5}`, `[]`, `null`, `"x"`} {
			s.call(20+i, "mcp_larder__echo", args)
		}
		for i, name := range []string{"fail", "broken", "show", "steps", "ecko", "mcp_larder__", ""} {
			s.call(30+i, "mcp_larder__"+name, `{"text":"t"}`)
		}
		s.call(38, "echo", `{}`)
		s.call(39, "", `{}`)
		s.ask(40, "tools/call", `{"name":"mcp_larder__steps","_meta":{"progressToken":"p"}}`)
		s.ask(41, "tools/call", `{}`)
		for i, uri := range []string{"mem://jam", "mem://none", "mem://shelf/3", "mem://other", ""} {
			s.ask(50+i, "resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
			s.ask(60+i, "resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri))
		}
		food.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://jam"})
		s.step("the server tells of an update")
		s.ask(70, "resources/unsubscribe", `{"uri":"mem://jam"}`)
		s.ask(71, "resources/unsubscribe", `{"uri":"mem://jam"}`)
		food.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "mem://jam"})
		s.step("the server tells of another update")
		for i, params := range []string{`{"name":"menu","arguments":{"guest":"Ann"}}`, `{"name":"menu"}`, `{"name":"mcp_larder__menu","arguments":{"guest":"Ann"}}`, `{"name":"none"}`, `{}`} {
			s.ask(80+i, "prompts/get", params)
		}
		for i, level := range []string{"debug", "error", "loud"} {
			s.ask(90+i, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))
		}
		for _, level := range []string{"warning", "error"} {
			food.SendNotificationToAllClients("notifications/message", map[string]any{"level": level, "data": "spilled"})
			s.step("the server logs a message of level " + level)
		}
		s.say(`{`, `[]`, `5`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":"text","method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/unknown"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`)
		s.call(100, "mcp_larder__slow", `{}`)
		s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100,"reason":"enough"}}`)
		food.AddTool(mcp.NewTool("late", mcp.WithDescription("Comes late")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("late"), nil
		})
		time.Sleep(time.Second)
		s.step("the server gets a tool")
		s.ask(110, "tools/list", `{}`)
		s.call(111, "mcp_larder__late", `{}`)
		food.DeleteTools("late")
		time.Sleep(time.Second)
		s.step("the server loses it")
		s.call(112, "mcp_larder__late", `{}`)
		food.AddResource(mcp.NewResource("mem://new", "new"), nil)
		time.Sleep(time.Second)
		s.step("the server gets a resource")
		require.True(t, s.g.mgr.RemoveServer("larder"))
		s.step("the server is removed")
		s.call(113, "mcp_larder__echo", `{}`)
		for i, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
			s.ask(120+i, method, `{}`)
		}
		s.end("story-client", "What a client and the gateway say to each other, and what is logged meanwhile.")
	})
}

// With many tools, a client searches, describes and calls; calls that run at the end are answered.
func TestStoryOfManyTools(t *testing.T) {
	t.Parallel()
	for name, follow := range map[string][]string{"lists": {"teller"}, "bridge": nil} {
		synctest.Test(t, func(t *testing.T) {
			s := tell(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: larder()}, {Name: "chores", InProcess: mcptest.Server("chores", mcptest.Chores("chores", 45)...)}, {Name: "gone", Command: "no-such-program-anywhere"}}, logCalls: true, grace: 2 * time.Second, follow: follow})
			s.ask(1, "initialize", hello)
			s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			s.ask(2, "tools/list", `{}`)
			s.call(3, mcphybrid.SearchToolName, `{"query":"chore 44"}`)
			s.ask(4, "tools/list", `{}`)
			s.call(5, mcphybrid.DescribeToolName, `{"names":["mcp_chores__tool_044","nowhere"]}`)
			s.call(6, mcphybrid.CallToolName, `{"name":"mcp_larder__echo","arguments":{"text":"through"}}`)
			s.call(7, mcphybrid.CallToolName, `{"name":"mcp_larder__fail","arguments":{"text":"through"}}`)
			s.call(8, mcphybrid.CallToolName, `{"name":"nowhere"}`)
			s.call(9, mcphybrid.CallToolName, `{}`)
			s.call(10, mcphybrid.SearchToolName, `{}`)
			s.call(11, mcphybrid.SearchToolName, `{"query":"zzyzx"}`)
			s.call(12, mcphybrid.ReadOnlyCallToolName, `{"name":"mcp_larder__echo"}`)
			s.call(13, "mcp_gone__x", `{}`)
			s.call(20, "mcp_larder__slow", `{}`)
			s.call(21, mcphybrid.CallToolName, `{"name":"mcp_larder__slow","arguments":{}}`)
			go s.g.drain()
			s.step("the gateway is told to end")
			s.call(22, "mcp_larder__echo", `{}`)
			s.ask(23, "resources/read", `{"uri":"mem://jam"}`)
			time.Sleep(2*time.Second - 1)
			s.step("almost the grace later")
			time.Sleep(time.Nanosecond)
			s.end("story-many-"+name, "A client of a gateway with many tools, until it ends while calls run.")
		})
	}
}

// A client of the protocol 2026-07-28 has no session: each request says who it is, and questions are answers.
func TestStoryOfQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := tell(t, gatewayOptions{servers: append(curiousServers(), mcphybrid.ServerConfig{Name: "larder", InProcess: larder()}), ask: true, logCalls: true, grace: time.Second})
		ask := func(id int, method, params, can string) (state string) {
			params = strings.TrimSuffix(params, "}")
			if params != "{" {
				params += ","
			}
			s.ask(id, method, fmt.Sprintf(`%s"_meta":{%q:%q,%q:%s,%q:{"name":"teller","version":"1"}}}`, params, mcp.MetaKeyProtocolVersion, mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities, can, mcp.MetaKeyClientInfo))
			if all := regexp.MustCompile(`"requestState":"([^"]+)"`).FindAllStringSubmatch(s.out.String(), -1); all != nil {
				return all[len(all)-1][1]
			}
			return ""
		}
		const all = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
		for i, method := range []string{"server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping"} {
			ask(1+i, method, `{}`, `{}`)
		}
		ask(10, "tools/call", `{"name":"mcp_larder__echo","arguments":{"text":"hi"}}`, `{}`)
		ask(11, "resources/read", `{"uri":"mem://jam"}`, `{}`)
		ask(12, "resources/read", `{"uri":"mem://other"}`, `{}`)
		ask(13, "prompts/get", `{"name":"mcp_larder__menu","arguments":{"guest":"Ann"}}`, `{}`)
		answers := map[string][]string{
			"elicit": {`{"action":"accept","content":{"color":"red"}}`, `{"action":"accept","content":{"color":"green"}}`, `{"action":"accept"}`, `{"action":"decline"}`, `{"action":"cancel"}`, `{"action":"odd"}`, `5`},
			"page":   {`{"action":"accept"}`, `{"action":"decline"}`},
			"sample": {`{"role":"assistant","model":"m","content":{"type":"text","text":"poem"}}`, `{"action":"accept"}`},
			"roots":  {`{"roots":[{"uri":"file:///a","name":"a"}]}`, `{"roots":5}`, `{}`},
		}
		id := 20
		for _, server := range []string{"curious", "modern"} {
			for _, kind := range []string{"elicit", "page", "sample", "roots"} {
				call := fmt.Sprintf(`{"name":"mcp_%s__ask","arguments":{"kind":%q,"text":"https://e.example/"}`, server, kind)
				ask(id, "tools/call", call+"}", `{}`)
				name := map[string]string{"curious": "question-1", "modern": "q"}[server]
				for _, answer := range answers[kind] {
					state := ask(id+1, "tools/call", call+"}", all)
					ask(id+2, "tools/call", call+fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}}`, state, name, answer), all)
				}
				id += 10
			}
		}
		state := ask(id, "tools/call", `{"name":"mcp_curious__ask","arguments":{"kind":"elicit","text":"x"}}`, all)
		ask(id+1, "tools/call", fmt.Sprintf(`{"name":"mcp_curious__ask","arguments":{"kind":"elicit","text":"x"},"requestState":%q,"inputResponses":{"other":{"action":"accept"}}}`, state), all)
		ask(id+2, "tools/call", fmt.Sprintf(`{"name":"mcp_curious__ask","arguments":{"kind":"elicit","text":"y"},"requestState":%q,"inputResponses":{"question-1":{"action":"accept"}}}`, state), all)
		ask(id, "tools/call", `{"name":"mcp_curious__ask","arguments":{"kind":"elicit","text":"x"},"requestState":"made up","inputResponses":{"q":{"action":"accept"}}}`, all)
		s.compare("story-questions", "A client of the protocol 2026-07-28, and the questions of servers.")
		s.g.drain() // which of those that wait for an answer ends how is a race
		s.asks.Wait()
		s.g.close()
	})
}

// Who is healthy, and what is counted.
func TestStoryOfFigures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := tell(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "larder", InProcess: larder()}, {Name: "gone", Command: "no-such-program-anywhere"}}})
		s.ask(1, "initialize", hello)
		s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for i, name := range []string{"echo", "echo", "fail", "broken", "none"} {
			s.call(2+i, "mcp_larder__"+name, `{}`)
		}
		s.call(10, "mcp_gone__x", `{}`)
		s.ask(11, "resources/read", `{"uri":"mem://jam"}`)
		for range 2 {
			w := httptest.NewRecorder()
			s.g.health(w, httptest.NewRequest("GET", "/health", nil))
			var text bytes.Buffer
			if json.Indent(&text, w.Body.Bytes(), "", " ") != nil {
				text.Write(w.Body.Bytes())
			}
			fmt.Fprintf(&s.told, "\nhealth: %d %v\n%s\n", w.Code, w.Header(), text.String())
			require.True(t, s.g.mgr.RemoveServer("gone") || true)
		}
		s.end("story-figures", "Who is healthy, with a server that can't be started and without it.")
	})
}
