package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
)

// SPEC H6: the gateway's instructions have a line of those of each server whose tools a client
// can find.
func TestSpecH6InstructionsPassTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := server.NewMCPServer("ledger", "1", server.WithToolCapabilities(true), server.WithInstructions("# Ledger\nKeeps\u200b accounts. More"))
		for i := range 100 {
			ledger.AddTools(mcptest.Echo(fmt.Sprint("tool_", i), "Does a chore"))
		}
		g := quiet(gatewayOptions{wait: defaultWait, servers: []mcphybrid.ServerConfig{
			{Name: "quick", InProcess: mcptest.Server("quick", mcptest.Chores("quick", 100)...)}, {Name: "ledger", InProcess: ledger},
		}})
		defer g.close()
		synctest.Wait()
		c := newNewcomer(t, g, "one")
		assert.Contains(t, c.say(ping).Result.Instructions, "\n- ledger: Keeps accounts.\n")
		c.say(initialized)
		search := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_tool_search","arguments":{"query":"select:ledger"}}}`
		assert.Contains(t, c.say(search).text(), `"servers":[{"name":"ledger","instructions":"# Ledger\nKeeps accounts. More"}]`)
		guest := g.stranger(holding(t, mcphybrid.Access{Allow: []string{"quick/*"}}))
		assert.NotContains(t, g.instructions(guest), "ledger")
	})
}
