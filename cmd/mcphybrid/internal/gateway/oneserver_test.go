package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// saying is a tool that answers with who it is and its text.
func saying(name, who string, visibility ...string) server.ServerTool {
	tool := mcp.NewTool(name, mcp.WithDescription("Tells who "+who+" is"), mcp.WithString("text"))
	if visibility != nil {
		tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"visibility": visibility}})
	}
	return server.ServerTool{Tool: tool, Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.TrimSpace(who + " " + r.GetString("text", ""))), nil
	}}
}

// twins are two servers whose tools, resources and prompts have equal names. cats has 60 more
// tools, which are deferred for others, and two that are for apps.
func twins() (cats, dogs *server.MCPServer, list []mcphybrid.ServerConfig) {
	make := func(name string, more ...server.ServerTool) *server.MCPServer {
		s := server.NewMCPServer(name, "1", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithInstructions("All about "+name+"."))
		s.AddTools(append([]server.ServerTool{saying("who.is-it", name), saying("search", name)}, more...)...)
		s.AddResource(mcp.NewResource("pet://one", "one"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "pet://one", Text: name}}, nil
		})
		s.AddPrompt(mcp.NewPrompt("greet"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewResourceLink("pet://one", name, "", "")}}}, nil
		})
		return s
	}
	more := []server.ServerTool{saying("refresh", "the app's", "app"), saying("think", "the model's", "model"), saying("both", "both's", "model", "app")}
	for i := range 60 {
		more = append(more, saying(fmt.Sprintf("cat_%02d", i), fmt.Sprintf("cat %d", i)))
	}
	cats, dogs = make("cats", more...), make("dogs")
	return cats, dogs, []mcphybrid.ServerConfig{{Name: "dogs", InProcess: dogs}, {Name: "cats", InProcess: cats}}
}

// Each server is served alone under its own names, beside all of them.
func TestServerAlone(t *testing.T) {
	_, _, list := twins()
	book := new(logBook)
	_, url, _ := startHTTP(t, gatewayOptions{servers: list, log: book.logger(), logCalls: true}, web.Options{})
	for generation, opts := range generations {
		all, _ := connect(t, overHTTP(url), "test", opts...)
		assert.Subset(t, toolNames(t, all), []string{"mcp_cats__both", "mcp_dogs__search"})
		for _, of := range []string{"cats", "dogs"} {
			c, _ := connect(t, overHTTP(url+"/"+of), "test", opts...)
			about := generation + " " + of
			names := toolNames(t, c)
			want := []string{"who.is-it", "search"}
			if of == "cats" {
				want = append(want, "refresh", "think", "both")
				for i := range 60 {
					want = append(want, fmt.Sprintf("cat_%02d", i))
				}
			}
			if generation == "legacy" {
				want = append(want, mcphybrid.PageToolName)
			}
			assert.ElementsMatch(t, want, names, about)
			assert.Equal(t, of+" meow", say(t, c, "who.is-it", map[string]any{"text": "meow"}), about)
			assert.Equal(t, of, say(t, c, "search", nil), about)

			read, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "pet://one"}})
			require.NoError(t, err, about)
			assert.Equal(t, []mcp.ResourceContents{mcp.TextResourceContents{URI: "pet://one", Text: of}}, read.Contents, about)
			resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
			require.NoError(t, err)
			require.Len(t, resources.Resources, 1, about)
			assert.Equal(t, "pet://one", resources.Resources[0].URI)
			prompts, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
			require.NoError(t, err)
			require.Len(t, prompts.Prompts, 1, about)
			assert.Equal(t, "greet", prompts.Prompts[0].Name)
			greeting, err := c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "greet"}})
			require.NoError(t, err, about)
			link := greeting.Messages[0].Content.(mcp.ResourceLink)
			assert.Equal(t, []string{of, "pet://one"}, []string{link.Name, link.URI}, about)

			for name, says := range map[string]string{
				"mcp_" + of + "__search": `There is no tool named "mcp_` + of, "mcp_tool_search": `There is no tool named "mcp_tool_search"`,
				"serch": `Did you mean search`, "nonsense/../search": `There is no tool named`, strings.Repeat("x", 5000): "There is no tool named",
			} {
				result, err := call(t.Context(), c, name, map[string]any{})
				require.NoError(t, err)
				assert.True(t, result.IsError, name)
				assert.Contains(t, textOf(result), says, about)
				if !strings.HasPrefix(name, "mcp_") {
					assert.NotContains(t, textOf(result), "mcp_", about)
				}
			}
			result, err := call(t.Context(), c, "search", map[string]any{"text": 1})
			require.NoError(t, err)
			assert.True(t, result.IsError)
			assert.True(t, strings.HasPrefix(textOf(result), "search was not called"), textOf(result))
			require.NoError(t, c.Close())
		}

		// Tools for apps are there for the app's client, as its server wrote them.
		c, _ := connect(t, overHTTP(url+"/cats"), "test", opts...)
		tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		require.NoError(t, err)
		i := slices.IndexFunc(tools.Tools, func(t mcp.Tool) bool { return t.Name == "refresh" })
		require.GreaterOrEqual(t, i, 0)
		ui, err := json.Marshal(tools.Tools[i].Meta)
		require.NoError(t, err)
		assert.JSONEq(t, `{"ui":{"visibility":["app"]}}`, string(ui))
		assert.Equal(t, "the app's x", say(t, c, "refresh", map[string]any{"text": "x"}))
		assert.Equal(t, "the model's", say(t, c, "think", nil))
		assert.Equal(t, "both's", say(t, c, "both", nil))
		assert.Equal(t, "cat 59", say(t, c, "cat_59", nil))
		result, err := call(t.Context(), c, "refresh", map[string]any{"text": 1})
		require.NoError(t, err)
		assert.True(t, result.IsError)
		assert.Contains(t, textOf(result), "/text is a number")
		assert.NotContains(t, textOf(result), "mcp")
	}

	// They count under the names of all.
	logged := fmt.Sprint(book.calls(t, 40))
	assert.Contains(t, logged, "mcp_cats__search")
	assert.Contains(t, logged, "mcp_dogs__search")
	assert.Contains(t, logged, "mcp_cats__refresh")
}

// What is not permitted, or held back, is so at a server's own endpoint, too.
func TestServerAloneKeepsThePolicy(t *testing.T) {
	cats, _, list := twins()
	list[1].Tools = mcphybrid.Access{Deny: []string{"cat_1*"}}
	known, err := (&trust.Flags{File: filepath.Join(t.TempDir(), "known.json")}).Options(servers.Sources{})
	require.NoError(t, err)
	g, url, _ := startHTTP(t, gatewayOptions{servers: list, trust: known}, web.Options{TokenFile: writeSecret(t, `{"tokens": [
		{"name": "me", "token": "for-me", "operator": true},
		{"name": "dogs", "token": "for-dogs", "allow": ["dogs/*"]},
		{"name": "few", "token": "for-few", "deny": ["cats/cat_*", "cats/refresh", "mcp_cats__search", "cats/pet:*"]}]}`)})
	<-g.all.Done()
	refused := func(endpoint, token, tool, want string) {
		for generation, opts := range generations {
			c, _ := connect(t, overHTTP(url+endpoint, bearing(token)), "test", opts...)
			about := fmt.Sprint(generation, " ", endpoint, " ", token, " ", tool)
			assert.NotContains(t, toolNames(t, c), tool, about)
			result, err := call(t.Context(), c, tool, map[string]any{})
			require.NoError(t, err, about)
			assert.True(t, result.IsError, about)
			assert.Contains(t, textOf(result), want, about)
			assert.NotContains(t, textOf(result), "mcp_cats", about)
			require.NoError(t, c.Close())
		}
	}
	refused("/cats", "for-me", "cat_11", `There is no tool named "cat_11"`) // the file says that nobody has it
	refused("/cats", "for-dogs", "search", "not permitted")
	refused("/cats", "for-few", "search", "not permitted")
	refused("/cats", "for-few", "cat_20", "not permitted")
	refused("/cats", "for-few", "refresh", "There is no tool named")
	for generation, opts := range generations {
		c, _ := connect(t, overHTTP(url+"/cats", bearing("for-few")), "test", opts...)
		assert.Subset(t, []string{"who.is-it", "think", "both", mcphybrid.PageToolName}, toolNames(t, c), generation)
		resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
		require.NoError(t, err)
		assert.Empty(t, resources.Resources, generation)
		_, err = c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "pet://one"}})
		assert.ErrorContains(t, err, "not permitted", generation)
		dogs, _ := connect(t, overHTTP(url+"/cats", bearing("for-dogs")), "test", opts...)
		assert.Empty(t, toolNames(t, dogs), generation)
		require.NoError(t, c.Close())
		require.NoError(t, dogs.Close())
	}

	// A changed tool waits, also one that is for apps.
	c, told := connect(t, overHTTP(url+"/cats", bearing("for-me"), transport.WithContinuousListening()), "test", generations["legacy"]...)
	tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	require.NoError(t, err)
	i := slices.IndexFunc(tools.Tools, func(t mcp.Tool) bool { return t.Name == "refresh" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, map[string]any{"ui": map[string]any{"visibility": []any{"app"}}}, tools.Tools[i].Meta.AdditionalFields, "what is compared is passed on")
	cats.AddTools(saying("search", "another"))
	wait(t, told, mcp.MethodNotificationToolsListChanged)
	cats.AddTools(saying("refresh", "another app's", "app"))
	for slices.Contains(toolNames(t, c), "refresh") {
		wait(t, told, mcp.MethodNotificationToolsListChanged)
	}
	refused("/cats", "for-me", "search", "a person has not yet agreed")
	refused("/cats", "for-me", "refresh", "held back")
	refused("/cats", "for-few", "refresh", "There is no tool named")
}

// A server's endpoint tells its clients what changes, also of the tools for apps only.
func TestServerAloneTellsOfChanges(t *testing.T) {
	cats, _, list := twins()
	_, url, _ := startHTTP(t, gatewayOptions{servers: list}, web.Options{})
	c, told := connect(t, overHTTP(url+"/cats", transport.WithContinuousListening()), "test", generations["legacy"]...)
	require.NotContains(t, toolNames(t, c), "new")
	for _, tool := range []server.ServerTool{saying("new", "new"), saying("app_only", "app", "app")} {
		cats.AddTools(tool)
		for !slices.Contains(toolNames(t, c), tool.Tool.Name) {
			wait(t, told, mcp.MethodNotificationToolsListChanged)
		}
		say(t, c, tool.Tool.Name, nil)
	}
	cats.AddResource(mcp.NewResource("pet://two", "two"), nil)
	wait(t, told, mcp.MethodNotificationResourcesListChanged)
}

// A tool for the model and for apps is the model's, also where its server has listed it since the
// client called it in vain.
func TestServerAloneKnowsWhoseAToolIs(t *testing.T) {
	_, _, list := twins()
	g := quiet(gatewayOptions{servers: list, wait: defaultWait})
	defer g.close()
	<-g.all.Done()
	c := &conversation{scope: scope{server: "cats"}}
	c.session = g.newSession(c, "")
	for name, want := range map[string]bool{"both": false, "think": false, "search": false, "refresh": true, "none": false} {
		assert.Equal(t, want, g.isForApps(c, name), name)
	}
}

// While a server's tools come and go, its endpoint lists each once.
func TestServerAloneWhileToolsComeAndGo(t *testing.T) {
	g := quiet(gatewayOptions{wait: defaultWait})
	defer g.close()
	c := &conversation{scope: scope{server: "cats"}}
	c.session = g.newSession(c, "")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 1000 {
			assert.NoError(t, g.mgr.AddTools("cats", saying("both", fmt.Sprint(i), "model", "app"), saying("refresh", fmt.Sprint(i), "app")))
			g.mgr.RemoveServer("cats")
		}
	}()
	defer func() { <-ended }()
	for {
		times := make(map[string]int)
		for _, tool := range c.listOwn(false, false) {
			times[tool.Name]++
			require.Equal(t, 1, times[tool.Name], tool.Name)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// Who listens at a server's endpoint by a request is told of its tools for apps only. Who
// listens for all servers is not: those tools are in no list there.
func TestListenersOfAServerAlone(t *testing.T) {
	cats, _, list := twins()
	g, url, _ := startHTTP(t, gatewayOptions{servers: list}, web.Options{})
	<-g.all.Done()
	listen := func(endpoint string) <-chan mcp.JSONRPCNotification {
		c, told := connect(t, overHTTP(url+endpoint), "test", generations["modern"]...)
		stop, err := c.ListenAsync(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true}, func(error) {})
		require.NoError(t, err)
		t.Cleanup(stop)
		wait(t, told, mcp.MethodNotificationSubscriptionsAcknowledged)
		return told
	}
	alone, all := listen("/cats"), listen("")
	cats.AddTools(saying("app_only", "app", "app"))
	wait(t, alone, mcp.MethodNotificationToolsListChanged)
	cats.AddResource(mcp.NewResource("pet://two", "two"), nil)
	for range 2 { // for either change
		assert.Equal(t, mcp.MethodNotificationResourcesListChanged, (<-all).Method)
	}
}

// While a server is still starting, its endpoint answers as the one of all does: without its
// tools, and a call waits.
func TestServerAloneThatStarts(t *testing.T) {
	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "kitchen"))
	require.NoError(t, err)
	cfg.Servers[0].Env["TEST_WAIT"] = late.Addr().String()
	_, url, _ := startHTTP(t, gatewayOptions{servers: cfg.Servers, wait: time.Millisecond}, web.Options{})
	c, told := connect(t, overHTTP(url+"/kitchen", transport.WithContinuousListening()), "test", generations["legacy"]...)
	assert.Empty(t, toolNames(t, c))
	answer := make(chan string, 1)
	go func() {
		result, err := call(t.Context(), c, "a_arguments", nil)
		if assert.NoError(t, err) {
			answer <- textOf(result)
		}
	}()
	require.NoError(t, late.Close())
	assert.Equal(t, "{}", <-answer)
	wait(t, told, mcp.MethodNotificationToolsListChanged)
	assert.Contains(t, toolNames(t, c), "dish_59")

	long := say(t, c, "a_long", map[string]any{"n": 100_000})
	assert.Contains(t, long, mcphybrid.PageToolName)
	assert.Contains(t, say(t, c, mcphybrid.PageToolName, map[string]any{"id": "r1"}), "xxx")
}

// A server whose name is a pattern has no more than itself at its endpoint.
func TestServerAloneWithAPatternForAName(t *testing.T) {
	_, _, list := twins()
	star := server.NewMCPServer("star", "1")
	star.AddTools(saying("shine", "star"))
	_, url, _ := startHTTP(t, gatewayOptions{servers: append(list, mcphybrid.ServerConfig{Name: "*", InProcess: star})}, web.Options{})
	for _, opts := range generations {
		c, _ := connect(t, overHTTP(url+"/%2A"), "test", opts...)
		assert.Subset(t, []string{"shine", mcphybrid.PageToolName}, toolNames(t, c))
		assert.Equal(t, "star", say(t, c, "shine", nil))
		result, err := call(t.Context(), c, "search", nil)
		require.NoError(t, err)
		assert.True(t, result.IsError)
		prompts, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
		require.NoError(t, err)
		assert.Empty(t, prompts.Prompts)
		_, err = c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "greet"}})
		assert.Error(t, err)
		resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
		require.NoError(t, err)
		assert.Empty(t, resources.Resources)
		_, err = c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "pet://one"}})
		assert.Error(t, err)
		require.NoError(t, c.Close())
	}
}

// A session is of no use at another endpoint, and who may not call learns nothing of servers.
func TestSessionsBelongToEndpoints(t *testing.T) {
	t.Setenv(tokens.Variable, "right")
	_, _, list := twins()
	_, url, _ := startHTTP(t, gatewayOptions{servers: list}, web.Options{})
	c, _ := connect(t, overHTTP(url+"/cats", bearing("right")), "test", generations["legacy"]...)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}`
	headers := map[string]string{"Authorization": "Bearer right", server.HeaderKeySessionID: c.GetSessionId()}
	for endpoint, want := range map[string]int{"": http.StatusNotFound, "/dogs": http.StatusNotFound, "/cats": http.StatusOK, "/%63ats": http.StatusOK, "/birds": http.StatusNotFound} {
		status, _ := post(t, url+endpoint, body, headers)
		assert.Equal(t, want, status, endpoint)
	}
	for _, endpoint := range []string{"/cats", "/birds"} {
		status, _ := post(t, url+endpoint, ping, nil)
		assert.Equal(t, http.StatusUnauthorized, status, endpoint)
	}
	assert.Equal(t, "cats", say(t, c, "search", nil))
}

// A client is greeted with what its server says of itself.
func TestServerAloneGreets(t *testing.T) {
	_, _, list := twins()
	g := quiet(gatewayOptions{servers: list, wait: defaultWait})
	defer g.close()
	<-g.all.Done()
	assert.Equal(t, "All about cats.", g.instructions(&conversation{scope: scope{server: "cats"}}))
	of := tokens.Holder{Access: mcphybrid.Access{Allow: []string{"dogs/*"}}}
	assert.Empty(t, g.instructions(&conversation{scope: scope{server: "cats"}, of: &of}))
	assert.Equal(t, "All about dogs.", g.instructions(&conversation{scope: scope{server: "dogs"}, of: &of}))
	assert.Empty(t, g.instructions(&conversation{scope: scope{server: "birds"}}))
}

// What a client goes on with at one endpoint is not a request of another.
func TestRequestStateBelongsToItsEndpoint(t *testing.T) {
	one, _ := sumOf("cats", request{method: "tools/call", name: "search"})
	other, _ := sumOf("dogs", request{method: "tools/call", name: "search"})
	assert.NotEqual(t, one, other)
}
