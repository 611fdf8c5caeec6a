package langchaingo_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/langchaingo"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
)

// If one call of an answer is of no function, none is made: nobody would wait for the others.
func TestCallOfNoFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		called := make(chan struct{}, 1)
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		require.NoError(t, mgr.AddTools("own", server.ServerTool{Tool: mcp.NewTool("do"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			called <- struct{}{}
			return mcp.NewToolResultText("done"), nil
		}}))
		choice := &llms.ContentChoice{ToolCalls: []llms.ToolCall{
			{ID: "1", FunctionCall: &llms.FunctionCall{Name: "mcp_own__do", Arguments: "{}"}}, {ID: "2", Type: "custom"},
		}}
		_, err := langchaingo.Answer(t.Context(), mgr.NewSession(nil), choice, langchaingo.ImagesByURL)
		require.ErrorContains(t, err, `"2" is of no function`)
		synctest.Wait()
		require.Empty(t, called)
	})
}
