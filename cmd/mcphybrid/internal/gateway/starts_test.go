package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
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
