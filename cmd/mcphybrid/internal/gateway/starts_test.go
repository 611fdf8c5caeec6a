package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callOf is a call of a tool, by its name or through [mcphybrid.CallToolName].
func callOf(tool string, throughCallTool bool) string {
	if throughCallTool {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp_tool_call","arguments":{"name":%q,"arguments":{"text":"x"}}}}`, tool)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":%q,"arguments":{"text":"x"}}}`, tool)
}

// A call of a server that is starting waits for that server, and for no other one.
func TestCallsWaitForTheirServerOnly(t *testing.T) {
	for _, through := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const soon, late = 6 * time.Second, 40 * time.Second
			g := quiet(gatewayOptions{wait: defaultWait, servers: []mcphybrid.ServerConfig{
				slowServer("slow", after(soon), mcptest.Echo("one", "The first")),
				slowServer("silent", after(late), mcptest.Echo("two", "The second")),
			}})
			defer g.close()
			begun := time.Now()
			c := newNewcomer(t, g, "one")
			c.say(ping)
			c.say(initialized)
			assert.Contains(t, c.say(callOf("mcp_slow__one", through)).text(), `one {"text":"x"}`)
			assert.Equal(t, soon, time.Since(begun))
			assert.Contains(t, c.say(callOf("mcp_silent__two", through)).text(), `two {"text":"x"}`)
			assert.Equal(t, late, time.Since(begun))
		})
	}
}

// So does a call of a server that came, or was replaced, while the gateway ran: of one that is
// slow to end, too.
func TestCallsWaitForServersThatComeLater(t *testing.T) {
	for _, through := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := quiet(gatewayOptions{wait: defaultWait, grace: time.Second, servers: []mcphybrid.ServerConfig{
				{Name: "turns", InProcess: mcptest.Server("turns", mcptest.Echo("one", "The first"))},
			}})
			defer g.close()
			c := newNewcomer(t, g, "one")
			c.say(ping)
			c.say(initialized)
			assert.Contains(t, c.say(callOf("mcp_turns__one", through)).text(), `one {"text":"x"}`)

			begun := time.Now()
			comes := slowServer("comes", after(2*time.Second), mcptest.Echo("two", "The second"))
			go g.replace(g.begin, "comes", &comes)
			synctest.Wait()
			assert.Contains(t, c.say(callOf("mcp_comes__two", through)).text(), `two {"text":"x"}`)
			assert.Equal(t, 2*time.Second, time.Since(begun))

			begun = time.Now()
			turns := slowServer("turns", after(3*time.Second), mcptest.Echo("one", "The first"))
			go g.replace(g.begin, "turns", &turns)
			synctest.Wait()
			assert.Contains(t, c.say(callOf("mcp_turns__one", through)).text(), `one {"text":"x"}`)
			assert.Equal(t, 3*time.Second, time.Since(begun))

			end := g.starts.begin(comes) // as while the one before ends
			g.mgr.RemoveServer("comes")
			time.AfterFunc(time.Second, end)
			begun = time.Now()
			assert.Contains(t, c.say(callOf("mcp_comes__two", through)).text(), "is gone")
			assert.Equal(t, time.Second, time.Since(begun))
			assert.Contains(t, c.say(callOf("mcp_comes__two", through)).text(), "is gone")
			assert.Equal(t, time.Second, time.Since(begun), "nothing comes any more")
		})
	}
}

// full is slowServer with a resource, a template and a prompt that complete the value "v", and a
// skill.
func full(name string, answers <-chan struct{}) mcphybrid.ServerConfig {
	c := slowServer(name, answers)
	s := c.InProcess.(*server.MCPServer)
	for _, option := range []server.ServerOption{
		server.WithExtensions(map[string]any{skillsExtension: struct{}{}}), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithCompletions(),
		server.WithPromptCompletionProvider(completes{}), server.WithResourceCompletionProvider(completes{}),
	} {
		option(s)
	}
	says := func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "content of " + name}}, nil
	}
	s.AddResource(mcp.NewResource("x://1", "one"), says)
	s.AddResourceTemplate(mcp.NewResourceTemplate("t://{id}", "some"), says)
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("who")), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("content of "+name))}), nil
	})
	skilled := &mcptest.Skilled{MCPServer: s, Files: make(map[string]string)}
	skilled.Has("cook", "content of "+name, "")
	c.InProcess = skilled
	return c
}

type completes struct{}

func (completes) CompletePromptArgument(context.Context, string, mcp.CompleteArgument, mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{"content of a completion"}}, nil
}

func (completes) CompleteResourceArgument(context.Context, string, mcp.CompleteArgument, mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{"content of a completion"}}, nil
}

// So does whatever is asked of its resources, prompts and skills, however they name it.
func TestReadsWaitForServersThatComeLater(t *testing.T) {
	const takes = 2 * time.Second
	resource, template, prompt := "mcphybrid://comes/x://1", "mcphybrid://comes/t://{id}", "mcp_comes__greet"
	for _, test := range []struct{ endpoint, resource, template, prompt string }{
		{"", resource, template, prompt},
		{"comes", "x://1", "t://{id}", "greet"},
		{"alone", "x://1", "t://{id}", prompt},
	} {
		skill := "skill://cook/SKILL.md"
		if test.endpoint == "" {
			skill = "mcphybrid://comes/" + skill
		}
		const read = `{"name":"mcp_resource_read","arguments":{"uri":"x://1","server":"comes"}}`
		for request, has := range map[string]string{
			fmt.Sprintf(`"resources/subscribe","params":{"uri":%q}`, test.resource):                                                                    `"result":{`,
			fmt.Sprintf(`"skills/get","params":{"uri":%q}`, skill):                                                                                     "Says how to cook",
			`"tools/call","params":` + read:                                                                                                            "content of",
			`"tools/call","params":{"name":"mcp_tool_call","arguments":` + read + `}`:                                                                  "content of",
			`"tools/call","params":{"name":"skill_load","arguments":{"name":"skill://cook/SKILL.md","server":"comes"}}`:                                "content of",
			fmt.Sprintf(`"resources/read","params":{"uri":%q}`, test.resource):                                                                         "content of",
			fmt.Sprintf(`"prompts/get","params":{"name":%q}`, test.prompt):                                                                             "content of",
			fmt.Sprintf(`"completion/complete","params":{"ref":{"type":"ref/resource","uri":%q},"argument":{"name":"id","value":"v"}}`, test.template): "content of",
			fmt.Sprintf(`"completion/complete","params":{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"who","value":"v"}}`, test.prompt):   "content of",
		} {
			if test.endpoint == "comes" && strings.HasPrefix(request, `"tools/call"`) {
				continue // there, a model has no such tool
			}
			synctest.Test(t, func(t *testing.T) {
				g := quiet(gatewayOptions{wait: defaultWait, grace: time.Second})
				defer g.close()
				<-g.all.Done()
				never := make(chan struct{})
				defer close(never)
				comes, other := full("comes", after(takes)), full("other", never)
				all := []mcphybrid.ServerConfig{comes}
				if test.endpoint != "alone" {
					all = append(all, other)
					go g.replace(g.begin, "other", &other)
				}
				g.servers.Store(&all)
				c := newNewcomer(t, g, "one")
				if test.endpoint == "comes" {
					g.client(c.ctx).server = "comes" // as at an endpoint of its own
				}
				begun := time.Now()
				go g.replace(g.begin, "comes", &comes)
				synctest.Wait()
				ask := func(request string) string {
					answer, err := json.Marshal(g.front.HandleMessage(c.ctx, json.RawMessage(`{"jsonrpc":"2.0","id":4,"method":`+request+`}`)))
					require.NoError(t, err)
					return string(answer)
				}
				assert.Contains(t, ask(request), has, test.endpoint)
				assert.Equal(t, takes, time.Since(begun), request)
				gone := strings.NewReplacer("greet", "goodbye", "x://", "y://", "t://", "u://", "cook", "bake").Replace(request)
				assert.NotContains(t, ask(gone), has, test.endpoint)
				assert.Equal(t, takes, time.Since(begun), "nothing comes any more")
			})
		}
	}
}

// A server that is removed keeps no call waiting.
func TestCallsDoNotWaitForServersThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		g := quiet(gatewayOptions{wait: time.Second, grace: time.Second, servers: []mcphybrid.ServerConfig{
			slowServer("goes", answers, mcptest.Echo("one", "The first")),
		}})
		defer g.close()
		begun := time.Now()
		c := newNewcomer(t, g, "one")
		c.say(ping)
		c.say(initialized)
		time.AfterFunc(5*time.Second, func() { g.replace(g.begin, "goes", nil) })
		assert.Contains(t, c.say(callOf("mcp_goes__one", false)).text(), "no tool")
		assert.Equal(t, 5*time.Second, time.Since(begun))
		assert.Empty(t, g.starts.waiting)
	})
}

// The first list of one server alone waits for it, too, also if it came later, but not longer
// than the client may.
func TestListsOfOneServerWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{wait: defaultWait, grace: time.Second})
		defer g.close()
		<-g.all.Done()
		for name, takes := range map[string]time.Duration{"quick": 2 * time.Second, "slow": time.Minute / 2} {
			begun := time.Now()
			comes := slowServer(name, after(takes), mcptest.Echo("one", "The first"))
			g.servers.Store(&[]mcphybrid.ServerConfig{comes})
			go g.replace(g.begin, name, &comes)
			synctest.Wait()
			ctx := newNewcomer(t, g, name).ctx
			g.client(ctx).server = name // as at an endpoint of its own
			tools := g.list(ctx)
			assert.Equal(t, min(takes, defaultWait), time.Since(begun), name)
			assert.Len(t, tools, map[string]int{"quick": 2}[name], "%s: its tool, and the one that reads on", name)
			time.Sleep(takes)
			synctest.Wait()
		}
	})
}

// Who may have nothing of a server is answered as if it were not there, and as soon, also while the
// server is being replaced: before it has begun to start, and while it starts.
func TestWaitTellsNoServers(t *testing.T) {
	const takes = 2 * time.Second
	requests := []string{
		`"tools/call","params":{"name":"mcp_comes__one"}`,
		`"tools/call","params":{"name":"mcp_tool_call","arguments":{"name":"mcp_comes__one","arguments":{}}}`,
		`"tools/call","params":{"name":"mcp_resource_read","arguments":{"uri":"x://1","server":"comes"}}`,
		`"resources/read","params":{"uri":"mcphybrid://comes/x://1"}`,
		`"resources/subscribe","params":{"uri":"mcphybrid://comes/x://1"}`,
		`"skills/get","params":{"uri":"mcphybrid://comes/skill://cook/SKILL.md"}`,
		`"prompts/get","params":{"name":"mcp_comes__greet"}`,
		`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"mcp_comes__greet"},"argument":{"name":"who","value":"v"}}`,
		`"completion/complete","params":{"ref":{"type":"ref/resource","uri":"mcphybrid://comes/t://{id}"},"argument":{"name":"id","value":"v"}}`,
	}
	refusal := regexp.MustCompile(`[A-Z2-7]{26}:`) // by which the wire knows one
	for _, test := range []struct {
		may   mcphybrid.Access
		waits bool
	}{
		{mcphybrid.Access{Allow: []string{"other/*"}}, false},
		{mcphybrid.Access{Deny: []string{"comes/*"}}, false},
		{mcphybrid.Access{Deny: []string{"mcp_comes__*", "comes/*"}}, false},
		{mcphybrid.Access{Allow: []string{"comes/*"}}, true},
		{mcphybrid.Access{Deny: []string{"other/*"}}, true},
	} {
		for _, starts := range []bool{false, true} {
			for _, request := range requests {
				synctest.Test(t, func(t *testing.T) {
					g := quiet(gatewayOptions{wait: defaultWait, grace: time.Second})
					defer g.close()
					<-g.all.Done()
					defer time.Sleep(takes) // until it has started
					comes := full("comes", after(takes))
					g.servers.Store(&[]mcphybrid.ServerConfig{comes, {Name: "other"}})
					c := newNewcomer(t, g, "one")
					holds, release := tokens.With(c.ctx, &tokens.Holder{Access: test.may, Over: context.Background()})
					defer release()
					if starts {
						go g.replace(g.begin, "comes", &comes)
						synctest.Wait()
					} else { // as while the one before ends
						time.AfterFunc(takes, g.starts.begin(comes))
					}
					ask := func(request string) string {
						answer, err := json.Marshal(g.front.HandleMessage(holds, json.RawMessage(`{"jsonrpc":"2.0","id":4,"method":`+request+`}`)))
						require.NoError(t, err)
						return refusal.ReplaceAllString(strings.ReplaceAll(string(answer), "comes", "nobody"), "")
					}
					begun := time.Now()
					there := ask(request)
					if test.waits {
						assert.Equal(t, takes, time.Since(begun), request)
						return
					}
					assert.Zero(t, time.Since(begun), request)
					assert.Equal(t, ask(strings.ReplaceAll(request, "comes", "nobody")), there, request)
					c.ctx = holds
					g.client(holds).server = "comes" // as at an endpoint of its own
					assert.Empty(t, g.list(holds))
					assert.Zero(t, time.Since(begun), request)
				})
			}
		}
	}
}
