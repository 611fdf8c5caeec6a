package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpecF1EqualCatalogsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	snapshot := func(m *Manager) string {
		var b strings.Builder
		for _, tool := range m.Default().Tools() {
			fmt.Fprintln(&b, tool.Name(), tool.Description(), string(tool.InputSchema()))
		}
		for _, h := range m.Search("chore 7", 20) {
			fmt.Fprintln(&b, h.Tool.Name(), h.Score)
		}
		return b.String() + m.PromptSections(PromptFull)
	}
	servers := []ServerConfig{inProcess("a", 30), inProcess("b", 30), inProcess("c", 30), inProcess("d", 30)}
	m, _ := newTestManager(t, &Options{Servers: servers})
	want := snapshot(m)
	for range 20 {
		again, _ := newTestManager(t, &Options{Servers: servers})
		assert.Equal(t, want, snapshot(again))
	}
	// Also after a detour.
	require.NoError(t, m.AddServer(t.Context(), inProcess("e", 3)))
	require.True(t, m.RemoveServer("e"))
	assert.Equal(t, want, snapshot(m))
}

// A session sees the catalog as it is, and only its own activations.

func TestSessionsAreIndependent(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Servers: []ServerConfig{inProcess("a", 100)}})
	var wg sync.WaitGroup
	sessions := make([]*Session, 50)
	for i := range sessions {
		wg.Go(func() {
			s := m.NewSession(nil)
			sessions[i] = s
			for j := range 10 {
				_, err := s.Call(t.Context(), fmt.Sprintf("mcp_a__tool_%03d", 5+(i+j)%95), nil)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	for i, s := range sessions {
		var want []string
		for j := range 10 {
			want = append(want, fmt.Sprintf("mcp_a__tool_%03d", 5+(i+j)%95))
		}
		assert.Equal(t, want, toolNames(s.ActiveTools()))
	}
	assert.Empty(t, m.ActiveTools())
	assert.Len(t, r.List(), 6)
	assert.NoError(t, check(m, sessions...))
}

// Call gives an answer for the model whatever it is called with.

func TestCallAlwaysAnswers(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	for _, test := range []struct {
		name string
		args any
		err  error
		want string
	}{
		{"mcp_a__tool_000", nil, nil, "tool_000 {}"},
		{"mcp_a__tool_000", "", nil, "tool_000 {}"},
		{"mcp_a__tool_000", "null", nil, "tool_000 {}"},
		{"mcp_a__tool_002", `{"text":null}`, nil, "tool_002 {}"},
		{"mcp_a__tool_002", []byte(`{"text":"USD"}`), nil, `tool_002 {"text":"USD"}`},
		{"mcp_a__tool_002", json.RawMessage(`{"n": 9007199254740993}`), nil, `tool_002 {"n":9007199254740993}`},
		{"mcp_a__tool_001", map[string]any{"text": "x"}, nil, `tool_001 {"text":"x"}`},
		{"mcp_a__tool_001", `[1]`, ErrBadArguments, "- the arguments: the arguments are not a JSON object\nThe schema: {"},
		{"mcp_a__tool_001", `{"a":`, ErrBadArguments, "column"},
		{"mcp_a__tool_001", func() {}, ErrBadArguments, "unsupported type"},
		{"mcp_a__nope", nil, ErrUnknownTool, `There is no tool named "mcp_a__nope". Use a name from the tool list, or find one with mcp_tool_search.`},
		{"tool_000\n## x", nil, ErrUnknownTool, `There is no tool named "tool_000 ## x".`},
	} {
		r, err := m.Call(t.Context(), test.name, test.args)
		if test.err == nil {
			require.NoError(t, err)
			assert.False(t, r.IsError)
		} else {
			assert.ErrorIs(t, err, test.err)
			assert.True(t, r.IsError)
		}
		assert.Contains(t, resultText(t, r), test.want)
	}
}

// A result that is an error is the tool's answer, and a result that speaks of

// an error is none.

func TestCallKeepsResults(t *testing.T) {
	t.Parallel()
	results := map[string]*mcp.CallToolResult{
		"failed":     mcp.NewToolResultError("no such file"),
		"error_key":  mcp.NewToolResultText(`{"error": false}`),
		"structured": {Content: []mcp.Content{mcp.NewImageContent("aGk=", "image/png")}, StructuredContent: map[string]any{"n": 1.0}},
	}
	var m *Manager
	for name, want := range results {
		tool := echoTool(name, "")
		tool.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return want, nil }
		m, _ = newTestManager(t, &Options{Servers: []ServerConfig{serving("s", tool)}})
		got, err := m.Call(t.Context(), "mcp_s__"+name, nil)
		require.NoError(t, err)
		assert.Equal(t, want.IsError, got.IsError)
		assert.Equal(t, want.Content, got.Content)
		assert.Equal(t, want.StructuredContent, got.StructuredContent)
	}
}

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

// On our own corpus the default ranker finds more than the reference, in each

// kind of query that the corpus has.
