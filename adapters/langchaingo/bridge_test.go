package langchaingo_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/mcphybrid/mcphybrid/adapters/langchaingo"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
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

// Where the host has rewritten its messages, news still don't part the results of an answer.
func TestNewsAndResults(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { mgr.Close() })
	tool := server.ServerTool{Tool: mcp.NewTool("a")}
	require.NoError(t, mgr.AddTools("early", tool))
	sess := mgr.NewSession(nil)
	_, _, err := langchaingo.Request(sess, make([]llms.MessageContent, 2))
	require.NoError(t, err)
	require.NoError(t, mgr.AddTools("late", tool))
	_, _, err = langchaingo.Request(sess, make([]llms.MessageContent, 4))
	require.NoError(t, err)

	roles := []llms.ChatMessageType{llms.ChatMessageTypeSystem, llms.ChatMessageTypeHuman, llms.ChatMessageTypeAI, llms.ChatMessageTypeTool, llms.ChatMessageTypeTool, llms.ChatMessageTypeAI}
	var messages []llms.MessageContent
	for _, role := range roles {
		messages = append(messages, llms.TextParts(role, "text"))
	}
	sent, _, err := langchaingo.Request(sess, messages)
	require.NoError(t, err)
	var got []llms.ChatMessageType
	for _, m := range sent {
		got = append(got, m.Role)
	}
	require.Equal(t, slices.Insert(roles, 5, llms.ChatMessageTypeHuman), got)
}

// Tools and System are of the moment, and the session is then by activation.
func TestToolsAndSystem(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { mgr.Close() })
	require.NoError(t, mgr.AddTools("clock", server.ServerTool{Tool: mcp.NewTool("hour")}))
	sess := mgr.NewSession(nil)
	names := func() (names []string) {
		tools, err := langchaingo.Tools(sess)
		require.NoError(t, err)
		for _, tool := range tools {
			names = append(names, tool.Function.Name)
		}
		return names
	}
	require.Equal(t, []string{mcphybrid.SearchToolName}, names())
	sent := langchaingo.System(sess, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "You help.")})
	require.Len(t, sent, 1)
	require.Equal(t, llms.TextPart("You help."+sess.PromptSections(mcphybrid.PromptFull)), sent[0].Parts[0])
	sess.ActivateTools([]string{"mcp_clock__hour"})
	require.Equal(t, []string{mcphybrid.SearchToolName, "mcp_clock__hour"}, names())
}
