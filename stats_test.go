package mcphybrid

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStats(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, Servers: []ServerConfig{inProcess("a", 10), inProcess("b", 2)}})
	m.ActivateTools([]string{"mcp_b__tool_001"})
	st := m.Stats()
	assert.Equal(t, []int{2, 12, 3, 8, 1}, []int{st.Servers, st.Tools, st.Inline, st.Deferred, st.Active})
	one := m.toolTokens(m.InlineTools()[0])
	assert.Equal(t, 12*one, st.Tokens.All)
	assert.Equal(t, 3*one, st.Tokens.Inline)
	assert.Equal(t, m.tokens(definitionText(m.SearchTool())), st.Tokens.Meta)
	assert.Equal(t, one, st.Tokens.Active)
	assert.Equal(t, (len(m.PromptSections(PromptFull))+3)/4, st.Tokens.Sections)
}

// Without tools, there is no text.
func TestStatsOfNothing(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	assert.Empty(t, m.PromptSections(PromptFull))
	assert.Zero(t, m.Stats())
}

// A server begins with figures of its own, whatever was removed under its name.
func TestUsageOfARemovedServer(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	begun, release := make(chan struct{}), make(chan struct{})
	slow := echoTool("slow", "")
	slow.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(begun)
		<-release
		return mcp.NewToolResultText("done"), nil
	}
	require.NoError(t, m.AddTools("a", echoTool("run", ""), slow))
	_, err := m.Call(t.Context(), "mcp_a__run", nil)
	require.NoError(t, err)
	assert.Equal(t, 1, figuresOf(m)["a"].Usage.Calls)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = m.Call(context.Background(), "mcp_a__slow", nil)
	}()
	<-begun
	require.True(t, m.RemoveServer("a"))
	close(release)
	<-ended // a call that outlives its server is not counted either
	assert.NotContains(t, m.serverUsage, "a")
	require.NoError(t, m.AddTools("a", echoTool("run", "")))
	assert.Zero(t, figuresOf(m)["a"].Usage)
}

// Figures are of the tools that the session sees, and calls count whether or not it sees any.
func TestFiguresLeaveOutWhatIsHidden(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddServer(t.Context(), serving("a", echoTool("run", ""), echoTool("stop", ""))))
	_, err := m.Call(t.Context(), "mcp_a__run", `{}`)
	require.NoError(t, err)
	both := figuresOf(m)["a"]
	require.NoError(t, m.SetRules([]Rule{{Name: "no", Patterns: []string{"mcp_a__stop"}, Action: RuleExclude}}))
	one := figuresOf(m)["a"]
	assert.Equal(t, []int{2, 1}, []int{both.Tools, one.Tools})
	assert.Equal(t, both.Tokens/2, one.Tokens)
	require.NoError(t, m.SetRules([]Rule{{Name: "none", Patterns: []string{"*"}, Action: RuleExclude}}))
	assert.Zero(t, figuresOf(m)["a"].Tools)
	assert.Equal(t, 1, figuresOf(m)["a"].Usage.Calls)
	assert.Equal(t, 1, m.Servers()[0].Usage.Calls)
}

// figuresOf returns the figures of each server and group of tools as the default session
// sees them, without latencies.
func figuresOf(m *Manager) map[string]snapshot.Figures {
	of := m.figures(m.def.view())
	for name, f := range of {
		f.Usage.Latency = 0
		of[name] = f
	}
	return of
}
