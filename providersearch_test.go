package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A searching is a conversation with an OpenAI model that searches by tool_search.
type searching struct {
	*testing.T
	m *Manager
	s *Session
}

func newSearching(t *testing.T, opts *Options) *searching {
	opts.Servers = append(opts.Servers, inProcess("a", 5))
	m, _ := newTestManager(t, opts)
	return &searching{t, m, m.NewSession(&SessionOptions{Disclosure: ByProvider})}
}

func (c *searching) turn() Turn {
	turn, err := c.s.Turn(provider.OpenAIResponses, "gpt-5.6")
	require.NoError(c, err)
	return turn
}

// ask has the model search, and returns the answer and the names of the functions in it, by
// namespace.
func (c *searching) ask(query string) (answer string, found map[string][]string) {
	item := fmt.Sprintf(`{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","status":"completed","arguments":{"query":%q}}`, query)
	out, err := c.s.AnswerToolSearch(c.Context(), json.RawMessage(item))
	require.NoError(c, err)
	var in struct {
		Tools []struct {
			Name  string
			Tools []struct{ Name string }
		}
	}
	require.NoError(c, json.Unmarshal(out, &in))
	found = make(map[string][]string)
	for _, n := range in.Tools {
		for _, f := range n.Tools {
			found[n.Name] = append(found[n.Name], f.Name)
		}
	}
	return string(out), found
}

// Each server has a namespace of its own, also if its prefix has what stands behind prefixes.
func TestToolSearchNamespaces(t *testing.T) {
	t.Parallel()
	c := newSearching(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("my__a", 1), inProcess("my__b", 1)}})
	c.turn()
	_, found := c.ask("select:mcp_my__a__tool_000,mcp_my__b__tool_000,mcp_a__tool_000")
	assert.Equal(t, map[string][]string{"mcp_my__a": {"mcp_my__a__tool_000"}, "mcp_my__b": {"mcp_my__b__tool_000"}, "mcp_a": {"mcp_a__tool_000"}}, found)
}

// The list has the inline tools and tool_search; what the model finds comes with the answer,
// and only there.
func TestToolSearch(t *testing.T) {
	t.Parallel()
	c := newSearching(t, &Options{Inline: InlineOptions{Max: 1}})
	first := c.turn()
	require.Equal(t, []string{"mcp_a__tool_000", "tool_search"}, exportedNames(first.Tools))
	assert.True(t, strings.HasPrefix(string(first.Tools[1].JSON), `{"type":"tool_search","execution":"client","description":"`), string(first.Tools[1].JSON))
	assert.Contains(t, string(first.Tools[1].JSON), `"parameters":{"type":"object","properties":{"query":{`)
	assert.Contains(t, first.System, "`tool_search` finds them")
	assert.NotContains(t, first.System, "mcp_tool_search")

	answer, found := c.ask("select:mcp_a__tool_002,mcp_a__tool_003")
	assert.Equal(t, map[string][]string{"mcp_a": {"mcp_a__tool_002", "mcp_a__tool_003"}}, found)
	assert.Contains(t, answer, `"call_id":"call_1"`)
	assert.Contains(t, answer, `"defer_loading":true`)
	assert.Contains(t, answer, `"description":"Tools of the MCP server a`)
	assert.Contains(t, namesOf(c.s.view().active), "mcp_a__tool_002")
	second := c.turn()
	assert.Nil(t, second.Append)
	assert.Equal(t, first.Tools, second.Tools)

	// What is called after a search is not added; what no search has found is.
	for _, name := range []string{"mcp_a__tool_002", "mcp_a__tool_004"} {
		_, err := c.s.Call(t.Context(), name, nil)
		require.NoError(t, err)
	}
	third := c.turn()
	assert.Equal(t, []string{"mcp_a__tool_004"}, exportedNames(third.Added))
	assert.Contains(t, string(third.Append[0]), `"additional_tools"`)

	// It is found again, since the host may have taken the answer back, but it is added no more.
	_, found = c.ask("select:mcp_a__tool_002,mcp_a__tool_004")
	assert.Equal(t, map[string][]string{"mcp_a": {"mcp_a__tool_002"}}, found)
	assert.Nil(t, c.turn().Append)

	// The conversation goes on elsewhere.
	restored, _, err := c.m.RestoreSession(c.s.Save(), &SessionOptions{Disclosure: ByProvider})
	require.NoError(t, err)
	c.s = restored
	_, found = c.ask("select:mcp_a__tool_001")
	assert.Equal(t, map[string][]string{"mcp_a": {"mcp_a__tool_001"}}, found)
	again := c.turn()
	assert.Nil(t, again.Append)
	assert.Equal(t, []any{first.System, first.Tools}, []any{again.System, again.Tools})
	_, err = c.s.Turn(provider.Anthropic, "claude-opus-5-5")
	require.ErrorContains(t, err, "no tool_search")

	// Compact begins anew, with what is in use.
	c.s.Compact()
	require.Contains(t, exportedNames(c.turn().Tools), "mcp_a__tool_002")
}

// A server that comes late is told of, and its tools are found; the list stays. That is so
// if nothing was deferred at first, too.
func TestToolSearchFindsALateServer(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{1, 5} {
		c := newSearching(t, &Options{Inline: InlineOptions{Max: inline}})
		first := c.turn()
		require.Contains(t, exportedNames(first.Tools), "tool_search")
		require.NoError(t, c.m.AddTools("late", server.ServerTool{Tool: mcp.NewTool("brew_tea", mcp.WithDescription("Makes tea.")), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("Tea."), nil
		}}))
		second := c.turn()
		require.Len(t, second.Append, 1, inline)
		assert.Contains(t, string(second.Append[0]), "MCP servers: late (1")
		assert.Empty(t, second.Added)
		assert.Equal(t, first.Tools, second.Tools)
		_, found := c.ask("tea")
		assert.Equal(t, map[string][]string{"mcp_late": {"mcp_late__brew_tea"}}, found)
		assert.Nil(t, c.turn().Append)
	}
}

// A search that finds nothing is answered; an item that is none for the host is an error.
func TestToolSearchFails(t *testing.T) {
	t.Parallel()
	c := newSearching(t, &Options{Inline: InlineOptions{Max: 1}})
	call := `{"type":"tool_search_call","execution":"client","arguments":{"query":"tool"}}`
	_, err := c.s.AnswerToolSearch(t.Context(), json.RawMessage(call))
	require.ErrorContains(t, err, "no tool_search") // there was no Turn
	c.turn()
	for item, want := range map[string]string{
		`{`:                        "not JSON",
		`{"type":"function_call"}`: `has the type "function_call"`,
		`{"type":"tool_search_call","execution":"server","arguments":{}}`: "provider has answered",
	} {
		_, err := c.s.AnswerToolSearch(t.Context(), json.RawMessage(item))
		assert.ErrorContains(t, err, want)
	}
	for _, arguments := range []string{`{"query":"zebra"}`, `{"query":" "}`, `{}`, `null`, `7`, `"{"`, `{"query":"` + strings.Repeat("tool ", 20_000) + `"}`} {
		out, err := c.s.AnswerToolSearch(t.Context(), json.RawMessage(`{"type":"tool_search_call","call_id":null,"arguments":`+arguments+`}`))
		require.NoError(t, err)
		assert.JSONEq(t, `{"type":"tool_search_output","execution":"client","call_id":null,"status":"completed","tools":[]}`, string(out), arguments[:min(len(arguments), 20)])
	}
	// Some clients keep arguments as a string.
	out, err := c.s.AnswerToolSearch(t.Context(), json.RawMessage(`{"type":"tool_search_call","arguments":"{\"query\":\"select:mcp_a__tool_003\"}"}`))
	require.NoError(t, err)
	assert.Contains(t, string(out), "mcp_a__tool_003")

	denied := c.m.NewSession(&SessionOptions{Disclosure: ByProvider, Access: Access{Deny: []string{SearchToolName, "mcp_a__tool_003"}}})
	turn, err := denied.Turn(provider.OpenAIResponses, "gpt-5.6")
	require.NoError(t, err)
	assert.NotContains(t, exportedNames(turn.Tools), "tool_search")
	out, err = denied.AnswerToolSearch(t.Context(), json.RawMessage(call))
	require.NoError(t, err)
	assert.Contains(t, string(out), `"tools":[]`)
}

// Tools for which the conversation has no room are not loaded; a tool is offered that calls them.
func TestToolSearchIsBounded(t *testing.T) {
	t.Parallel()
	c := newSearching(t, &Options{Inline: InlineOptions{Max: 1}, List: ListOptions{Max: 3}})
	c.turn()
	_, found := c.ask("select:mcp_a__tool_001,mcp_a__tool_002,mcp_a__tool_003,mcp_a__tool_004")
	assert.Equal(t, map[string][]string{"mcp_a": {"mcp_a__tool_001", "mcp_a__tool_002"}}, found)
	assert.Equal(t, []string{DescribeToolName, CallToolName}, exportedNames(c.turn().Added))
}
