package genkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	mcpgenkit "github.com/mcphybrid/mcphybrid/adapters/genkit"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/stretchr/testify/require"
)

// each runs a test, streaming and not.
func each(t *testing.T, by mcphybrid.Disclosure, test func(*testing.T, adaptertest.Runtime)) {
	t.Parallel()
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", streams), func(t *testing.T) {
			t.Parallel()
			r := runtime(streams)
			r.Disclosure = by
			test(t, r)
		})
	}
}

// The conversation with a list of tools that never changes.
func TestByBridge(t *testing.T) { each(t, mcphybrid.ByBridge, adaptertest.Run) }

// The conversation with a list of tools that grows.
func TestByActivation(t *testing.T) { each(t, mcphybrid.ByActivation, adaptertest.Run) }

// Servers come and go.
func TestLate(t *testing.T) { each(t, mcphybrid.Automatic, adaptertest.Late) }

// Where the host has rewritten its messages, news still don't part calls from results.
func TestNewsAndResults(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { mgr.Close() })
	tool := server.ServerTool{Tool: mcp.NewTool("a")}
	require.NoError(t, mgr.AddTools("early", tool))
	sess := mgr.NewSession(nil)
	g := genkit.Init(t.Context())
	var sent []ai.Role
	genkit.DefineModelAction(g, "test/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true}}, func(_ context.Context, req *ai.ModelRequest, _ struct{}, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		sent = nil
		for _, m := range req.Messages {
			sent = append(sent, m.Role)
		}
		return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("done")}, nil
	})
	send := func(messages ...*ai.Message) {
		_, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithMessages(messages...), ai.WithUse(mcpgenkit.Use(sess, nil)))
		require.NoError(t, err)
	}
	system, user, model := ai.NewSystemTextMessage("text"), ai.NewUserTextMessage("text"), ai.NewModelTextMessage("text")
	send(system, user)
	require.NoError(t, mgr.AddTools("late", tool))
	send(system, user, user)
	require.Len(t, sent, 4)
	call := ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: "mcp_early__a", Ref: "1"}))
	result := ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(&ai.ToolResponse{Name: "mcp_early__a", Ref: "1", Output: "text"}))
	send(system, user, call, result, model)
	require.Equal(t, []ai.Role{ai.RoleSystem, ai.RoleUser, ai.RoleModel, ai.RoleTool, ai.RoleUser, ai.RoleModel}, sent)
}
