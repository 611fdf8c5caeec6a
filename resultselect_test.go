package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/jq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hundredUsers is a result of a hundred users, in the form that a test wants.
func hundredUsers(form string) *mcp.CallToolResult {
	var list []map[string]any
	for i := range 100 {
		list = append(list, map[string]any{"id": i, "name": fmt.Sprintf("User %d", i), "bio": strings.Repeat("x", 50)})
	}
	data, _ := json.Marshal(map[string]any{"users": list})
	switch form {
	case "structured":
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(data), RawStructuredContent: data, Content: []mcp.Content{
			mcp.NewImageContent("AAAA", "image/png"), mcp.NewTextContent("100 users"), mcp.NewTextContent("were found"),
		}}
	case "words":
		return mcp.NewToolResultText("no users")
	case "none":
		return mcp.NewToolResultText(`{"users": []}`)
	case "error":
		return mcp.NewToolResultError(`{"users": [{"id": 1}]}`)
	}
	return mcp.NewToolResultText(string(data))
}

func usersTool() mcpserver.ServerTool {
	tool := mcp.NewTool("users", mcp.WithString("form"), mcp.WithRawOutputSchema(json.RawMessage(`{"type":"object"}`)))
	return mcpserver.ServerTool{Tool: tool, Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return hundredUsers(r.GetString("form", "")), nil
	}}
}

func textContents(t *testing.T, r *mcp.CallToolResult) (texts []string) {
	t.Helper()
	for _, c := range r.Content {
		if _, ok := c.(mcp.TextContent); ok {
			texts = append(texts, mcp.GetTextFromContent(c))
		}
	}
	return texts
}

// The model gets what a host selects of a tool's results, and can read the whole. What fails loses
// nothing.
func TestResultSelect(t *testing.T) {
	t.Parallel()
	cfg := serving("a", usersTool(), writer())
	cfg.ResultSelect = map[string]string{"users": ".users[1:3][] | {id, name}"}
	m, r := newTestManager(t, &Options{Select: jq.Selector{}, Servers: []ServerConfig{cfg}})
	call := func(form string) *mcp.CallToolResult {
		t.Helper()
		result, err := m.Call(t.Context(), "mcp_a__users", map[string]any{"form": form})
		require.NoError(t, err)
		return result
	}
	const part = `{"id":1,"name":"User 1"}` + "\n" + `{"id":2,"name":"User 2"}`
	whole := mcp.GetTextFromContent(hundredUsers("").Content[0])
	assert.Equal(t, []string{part, fmt.Sprintf(`[This is a part of result r1. To read all %d bytes of it, call mcp_tool_page with {"id": "r1"}]`, len(whole))}, textContents(t, call("")))
	assert.NoError(t, checkRegistry(m.def, r))

	read, err := m.Call(t.Context(), PageToolName, `{"id":"r1"}`)
	require.NoError(t, err)
	assert.Equal(t, whole+fmt.Sprintf("\n[the end of result r1, %d bytes]", len(whole)), resultText(t, read))
	read, err = m.Call(t.Context(), PageToolName, `{"id":"r1","select":".users[99].name"}`)
	require.NoError(t, err)
	assert.Equal(t, `"User 99"`, resultText(t, read))

	// Of structured content too; what is no text stays in its place.
	result := call("structured")
	assert.Equal(t, mcp.NewImageContent("AAAA", "image/png"), result.Content[0])
	assert.Equal(t, part, textContents(t, result)[0])
	assert.Len(t, textContents(t, result), 2)
	assert.Nil(t, result.StructuredContent)
	assert.Nil(t, result.RawStructuredContent)
	read, err = m.Call(t.Context(), PageToolName, `{"id":"r2"}`)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(resultText(t, read), "100 users\nwere found\n{\"users\""), resultText(t, read)[:50])

	assert.Equal(t, []string{"no users", "[Nothing was selected in this result, so all of it was taken: the result is not JSON.]"}, textContents(t, call("words")))
	assert.Equal(t, []string{`{"users": []}`, "[Nothing was selected in this result, so all of it was taken.]"}, textContents(t, call("none")))
	assert.Equal(t, []string{`{"users": [{"id": 1}]}`}, textContents(t, call("error")), "an error is not selected from")

	other, err := m.Call(t.Context(), "mcp_a__write", `{"n":2}`)
	require.NoError(t, err)
	assert.NotContains(t, resultText(t, other), "selected", "another tool")

	tools := m.InlineTools()
	tool := tools[slices.IndexFunc(tools, func(t *BridgeTool) bool { return t.OriginalName() == "users" })]
	assert.Nil(t, tool.OutputSchema(), "a part is not of the schema")
	assert.Empty(t, m.Problems())
}

// A part that is too long is cut too, and whoever may not read the whole is not told that there is more.
func TestResultSelectIsBounded(t *testing.T) {
	t.Parallel()
	cfg := serving("a", usersTool())
	cfg.ResultSelect = map[string]string{"users": ".users[].name"}
	m, _ := newTestManager(t, &Options{MaxResult: 500, Select: jq.Selector{}, Servers: []ServerConfig{cfg}})
	result, err := m.Call(t.Context(), "mcp_a__users", nil)
	require.NoError(t, err)
	texts := textContents(t, result)
	require.Len(t, texts, 3)
	assert.LessOrEqual(t, len(texts[0]), 500)
	assert.Equal(t, fmt.Sprintf("[… the first %d of 989 bytes of what is selected …]", len(texts[0])), texts[1])
	assert.Contains(t, texts[2], "a part of result r1")

	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{PageToolName}}})
	result, err = s.Call(t.Context(), "mcp_a__users", nil)
	require.NoError(t, err)
	assert.Len(t, textContents(t, result), 2)
}

// What can't be evaluated is refused before the server starts, by the name of the tool.
func TestResultSelectIsChecked(t *testing.T) {
	t.Parallel()
	with := func(name, expression string) ServerConfig {
		cfg := serving(name, usersTool())
		cfg.ResultSelect = map[string]string{"users": expression, "other": "."}
		return cfg
	}
	m := NewManager(&Options{Select: jq.Selector{}, Servers: []ServerConfig{with("bad", ".users[}"), with("good", ".users")}})
	defer m.Close()
	err := m.Start(t.Context())
	assert.EqualError(t, err, `mcphybrid: server "bad": its ResultSelect for "users": the expression is wrong before byte 8, at "}"`)
	assert.Equal(t, []error{errors.New(`mcphybrid: server "good": its ResultSelect is for "other", which is not there`)}, m.Problems())

	for selector, want := range map[ResultSelector]string{nil: `its ResultSelect for "other" needs Options.Select`, panickingSelector{}: "panic"} {
		m := NewManager(&Options{Select: selector, Servers: []ServerConfig{with("a", ".users")}})
		defer m.Close()
		assert.ErrorContains(t, m.Start(t.Context()), want)
	}
}
