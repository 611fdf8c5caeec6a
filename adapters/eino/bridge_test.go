package eino_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/stretchr/testify/require"
)

// each runs a test with both agents, streaming and not.
func each(t *testing.T, by mcphybrid.Disclosure, test func(*testing.T, adaptertest.Runtime)) {
	t.Parallel()
	for agent, runtime := range map[string]func(streams bool) adaptertest.Runtime{"react": reactRuntime, "adk": adkRuntime} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", agent, streams), func(t *testing.T) {
				t.Parallel()
				r := runtime(streams)
				r.Disclosure = by
				test(t, r)
			})
		}
	}
}

// The conversation with a list of tools that never changes.
func TestByBridge(t *testing.T) { each(t, mcphybrid.ByBridge, adaptertest.Run) }

// The conversation with a list of tools that grows.
func TestByActivation(t *testing.T) { each(t, mcphybrid.ByActivation, adaptertest.Run) }

// Servers come and go.
func TestLate(t *testing.T) { each(t, mcphybrid.Automatic, adaptertest.Late) }

// Where the host has rewritten its messages, news still don't part the results of an answer.
func TestNewsAndResults(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { mgr.Close() })
	tool := server.ServerTool{Tool: mcp.NewTool("a")}
	require.NoError(t, mgr.AddTools("early", tool))
	r := new(recorder)
	chat := eino.Model(mgr.NewSession(nil), r)
	send := func(roles ...schema.RoleType) (sent []schema.RoleType) {
		var messages []*schema.Message
		for _, role := range roles {
			messages = append(messages, &schema.Message{Role: role, Content: "text"})
		}
		_, err := chat.Generate(t.Context(), messages)
		require.NoError(t, err)
		for _, m := range r.got[len(r.got)-1] {
			sent = append(sent, m.Role)
		}
		return sent
	}
	send(schema.System, schema.User)
	require.NoError(t, mgr.AddTools("late", tool))
	require.Len(t, send(schema.System, schema.User, schema.Assistant, schema.User), 5)
	roles := []schema.RoleType{schema.System, schema.User, schema.Assistant, schema.Tool, schema.Tool, schema.Assistant}
	require.Equal(t, slices.Insert(slices.Clone(roles), 5, schema.User), send(roles...))
}
