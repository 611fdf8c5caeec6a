package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// searching are the tools that find, describe and call others.
var searching = []string{mcphybrid.SearchToolName, mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.ReadOnlyCallToolName}

// A kind of client asks a gateway as such a client does. It returns what greets a new one, and its tools.
var clientKinds = map[string]func(t *testing.T, g *gateway) (instructions string, tools []string){
	"session": func(t *testing.T, g *gateway) (string, []string) { return greeted(t, g, "test") },
	"follows": func(t *testing.T, g *gateway) (string, []string) { return greeted(t, g, "follower") },
	"once":    func(t *testing.T, g *gateway) (string, []string) { return greeted(t, g, listsOnce[0]) },
	"2026-07-28": func(t *testing.T, g *gateway) (string, []string) {
		ask := func(method string) line {
			message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{%q:%q,%q:{}}}}`,
				method, mcp.MetaKeyProtocolVersion, mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities)
			answer, err := json.Marshal(g.front.HandleMessage(t.Context(), json.RawMessage(message)))
			require.NoError(t, err)
			return parse(t, answer)
		}
		return ask("server/discover").Result.Instructions, ask("tools/list").names()
	},
}

// greeted is what a new client of that name gets.
func greeted(t *testing.T, g *gateway, name string) (instructions string, tools []string) {
	c := newNewcomer(t, g, fmt.Sprint(name, time.Now().UnixNano()))
	hello := c.say(strings.Replace(ping, `"name":"test"`, fmt.Sprintf(`"name":%q`, name), 1))
	c.say(initialized)
	return hello.Result.Instructions, c.say(listTools).names()
}

// Without deferred tools a client gets the tools as they are, whatever their number and its kind.
// It gets the tool that reads on in results, if it keeps them.
func TestToolsAsTheyAreWithoutDeferredOnes(t *testing.T) {
	g := quiet(gatewayOptions{wait: defaultWait, follow: []string{"follower"}})
	defer g.close()
	<-g.all.Done()
	for n := range 61 {
		if n > 0 {
			require.NoError(t, g.mgr.AddTools("s", mcptest.Echo(fmt.Sprintf("tool_%02d", n), "Does a chore")))
		}
		for kind, ask := range clientKinds {
			instructions, tools := ask(t, g)
			what := fmt.Sprintf("%d tools, a client that is %s", n, kind)
			own := slices.DeleteFunc(slices.Clone(tools), func(name string) bool { return strings.HasPrefix(name, "mcp_s__") })
			assert.Len(t, tools, min(n, 40)+len(own), what)
			var want []string
			switch {
			case n > 40 && kind == "follows":
				want = searching[:1]
			case n > 40:
				want = slices.Clone(searching)
			}
			if n > 0 && (kind == "session" || kind == "once") {
				want = append(want, mcphybrid.PageToolName)
			}
			assert.ElementsMatch(t, want, own, what)
			if n <= 40 {
				assert.Empty(t, instructions, what)
				continue
			}
			assert.Contains(t, instructions, fmt.Sprintf("%d more tools are available from these MCP servers: s (%d", n-40, n-40), what)
		}
	}
}

// A client that has the tools as they are is told when some are deferred, and then has
// those that search. What it has listed before stays callable when they are gone again, and
// nothing points to a search that is not listed.
func TestSearchComesWithMoreTools(t *testing.T) {
	for _, name := range []string{"test", "follower"} {
		synctest.Test(t, func(t *testing.T) {
			g := quiet(gatewayOptions{wait: defaultWait, follow: []string{"follower"}})
			defer g.close()
			<-g.all.Done()
			require.NoError(t, g.mgr.AddTools("s", mcptest.Chores("s", 40)...))
			c := newNewcomer(t, g, "one")
			c.say(strings.Replace(ping, `"name":"test"`, fmt.Sprintf(`"name":%q`, name), 1))
			c.say(initialized)
			call := func(tool, args string) string {
				return c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args)).text()
			}
			told := func() (n int) {
				synctest.Wait()
				for ; len(c.told) > 0; n++ {
					assert.Equal(t, mcp.MethodNotificationToolsListChanged, <-c.told)
				}
				return n
			}
			first := c.say(listTools).names()
			assert.NotContains(t, first, mcphybrid.SearchToolName)
			assert.NotContains(t, call("nonsense", `{}`), mcphybrid.SearchToolName)
			told()

			require.NoError(t, g.mgr.AddTools("more", mcptest.Echo("zebra", "Rides a zebra")))
			assert.Equal(t, 1, told())
			second := c.say(listTools).names()
			assert.Subset(t, second, first)
			assert.Contains(t, second, mcphybrid.SearchToolName)
			assert.Contains(t, call("nonsense", `{}`), mcphybrid.SearchToolName)
			assert.Contains(t, call(mcphybrid.SearchToolName, `{"query":"zebra"}`), "mcp_more__zebra")
			told()
			require.NoError(t, g.mgr.AddTools("yet", mcptest.Echo("okapi", "Rides an okapi")))
			assert.Equal(t, 1, told(), "the search tool says what it finds, and others may see fewer tools")

			require.True(t, g.mgr.RemoveServer("more"))
			require.True(t, g.mgr.RemoveServer("yet"))
			assert.Equal(t, name == "follower", slices.Contains(c.say(listTools).names(), mcphybrid.SearchToolName), "what a session has shown stays")
			assert.Contains(t, call(mcphybrid.SearchToolName, `{"query":"zebra"}`), "No further tool matches", "a client that has not listed again")
		})
	}
}

// While a server may still list its tools, the search stays: what comes can be found. If that
// fails, a client that never lists again keeps it: the server may come later.
func TestSearchStaysForServersThatMayCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{wait: defaultWait, servers: []mcphybrid.ServerConfig{
			{Name: "quick", InProcess: mcptest.Server("quick", mcptest.Echo("one", "The first"))},
			slowServer("silent", after(time.Hour), mcptest.Echo("two", "The second")),
		}})
		defer g.close()
		instructions, tools := greeted(t, g, "test")
		assert.Contains(t, instructions, "If `mcp_tool_search` is listed")
		assert.NotContains(t, instructions, "not shown")
		assert.Subset(t, tools, searching)

		<-g.all.Done() // the silent one has failed
		_, tools = greeted(t, g, "test")
		assert.ElementsMatch(t, []string{"mcp_quick__one", mcphybrid.PageToolName}, tools)
		_, tools = greeted(t, g, listsOnce[0])
		assert.Subset(t, tools, searching)
		time.Sleep(time.Hour) // of the bubble: the server does not wait for ever
		synctest.Wait()
	})
}

// A meta tool stays if it can do something without deferred tools: for resources, and for skills, whose
// texts name those that describe and call.
func TestMetaToolsOfResourcesAndSkillsStay(t *testing.T) {
	books := server.NewMCPServer("books", "1")
	books.AddResource(mcp.NewResource("book://1", "A book"), nil)
	docs := mcptest.NewSkilled("docs", mcptest.Echo("merge", "Merges pages"))
	docs.Has("merge-pages", "Merge with care.", `,"tools":["merge"]`)
	reading := []string{mcphybrid.ResourceSearchToolName, mcphybrid.ResourceReadToolName, mcphybrid.PageToolName}
	for _, test := range []struct {
		server mcphybrid.ServerConfig
		want   []string
	}{
		{mcphybrid.ServerConfig{Name: "books", InProcess: books}, reading},
		{mcphybrid.ServerConfig{Name: "docs", InProcess: docs}, []string{
			"mcp_docs__merge", mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.SkillSearchToolName, mcphybrid.SkillLoadToolName,
			mcphybrid.PageToolName,
		}},
	} {
		_, url, end := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{test.server}}, web.Options{})
		c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
		assert.ElementsMatch(t, test.want, toolNames(t, c))
		require.NoError(t, c.Close())
		end()
	}
}

// A client that follows has the tool that reads on once a result was cut: it is told.
func TestFollowerIsToldOfTheToolThatReadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{wait: defaultWait, follow: []string{"*"}})
		defer g.close()
		<-g.all.Done()
		require.NoError(t, g.mgr.AddTools("s", mcptest.Echo("long", "Says much")))
		c := newNewcomer(t, g, "one")
		c.say(ping)
		c.say(initialized)
		assert.Equal(t, []string{"mcp_s__long"}, c.say(listTools).names())
		told := func() (n int) {
			synctest.Wait()
			for ; len(c.told) > 0; n++ {
				assert.Equal(t, mcp.MethodNotificationToolsListChanged, <-c.told)
			}
			return n
		}
		told()
		long := strings.Repeat("much ", 20_000)
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_s__long","arguments":{"text":%q}}}`, long)
		require.Contains(t, c.say(call).text(), mcphybrid.PageToolName)
		assert.Equal(t, 1, told())
		assert.Equal(t, []string{"mcp_s__long", mcphybrid.PageToolName}, c.say(listTools).names())
		c.say(call)
		assert.Zero(t, told())
	})
}
