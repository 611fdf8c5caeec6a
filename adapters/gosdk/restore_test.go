package gosdk_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a search found of a server of the SDK is in the next list, and in that of another
// process that goes on. What is not permitted never gets to the server.
func TestAddedServerIsFoundRefusedAndRestored(t *testing.T) {
	t.Parallel()
	var deleted atomic.Int32
	process := func() *mcphybrid.Manager {
		server := mcp.NewServer(impl, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets a guest."}, greet)
		mcp.AddTool(server, &mcp.Tool{Name: "delete_all", Description: "Deletes all guests."}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			deleted.Add(1)
			return nil, nil, nil
		})
		m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
		done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, server)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, m.Close())
			assert.NoError(t, done())
		})
		return m
	}
	list := func(s *mcphybrid.Session) (all []string) {
		exported, err := s.Export(provider.OpenAIChat)
		require.NoError(t, err)
		for _, e := range exported {
			all = append(all, string(e.JSON))
		}
		return all
	}
	opts := &mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{"mcp_*__delete_*"}}}
	s := process().NewSession(opts)
	first := list(s)
	_, err := s.Call(t.Context(), mcphybrid.SearchToolName, `{"query":"greet a guest"}`)
	require.NoError(t, err)
	found := list(s)
	require.Len(t, found, len(first)+1)
	require.Equal(t, first, found[:len(first)])

	restored, changed, err := process().RestoreSession(s.Save(), opts)
	require.NoError(t, err)
	require.Empty(t, changed)
	require.Equal(t, found, list(restored))
	_, err = restored.Call(t.Context(), "mcp_sdk__greet", `{"name":"Ann"}`)
	require.NoError(t, err)
	res, err := restored.Call(t.Context(), "mcp_sdk__delete_all", `{}`)
	require.Error(t, err)
	require.True(t, res.IsError)
	require.Zero(t, deleted.Load())
}
