package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writer returns a tool whose result has n lines of 10 bytes, line breaks
// included.
func writer() mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool("write", mcp.WithNumber("n")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(linesOf(r.GetInt("n", 0))), nil
		},
	}
}

func linesOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %4d\n", i)
	}
	return b.String()
}

// A long result is cut and says so. The model can read it to its last byte.
func TestLongResultIsReadPageByPage(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{MaxResult: 1000, Servers: []ServerConfig{serving("a", writer())}})
	call := func(name, args string) *mcp.CallToolResult {
		t.Helper()
		result, err := m.Call(t.Context(), name, args)
		require.NoError(t, err)
		return result
	}
	assert.Equal(t, linesOf(100), resultText(t, call("mcp_a__write", `{"n":100}`)), "as long as may be")
	before := m.Default().Tools()
	assert.NotContains(t, namesOf(before), PageToolName)

	cut := resultText(t, call("mcp_a__write", `{"n":1000}`))
	assert.Less(t, len(cut), 1300)
	assert.True(t, strings.HasPrefix(cut, "line    0\n"))
	assert.True(t, strings.HasSuffix(cut, "line  999\n"))
	assert.Contains(t, cut, `of 10000 bytes are left out here. To read them, call mcp_tool_page with {"id": "r1", "offset": 6`)
	assert.Equal(t, append(namesOf(before), PageToolName), namesOf(m.Default().Tools()))
	assert.NoError(t, checkRegistry(m.def, r))

	whole, offset := "", 0
	for offset < 10000 {
		part := resultText(t, call(PageToolName, fmt.Sprintf(`{"id":"r1","offset":%d}`, offset)))
		text, note, ok := strings.Cut(part, "\n[")
		require.True(t, ok)
		whole += text
		offset += len(text)
		assert.Equal(t, offset == 10000, note == "the end of result r1, 10000 bytes]", note)
		if offset < 10000 {
			assert.Contains(t, note, fmt.Sprintf(`{"id": "r1", "offset": %d}; %d bytes are left`, offset, 10000-offset))
		}
	}
	assert.Equal(t, linesOf(1000), whole)

	for args, text := range map[string]string{
		`{"id":"r2"}`:              "There is no result \"r2\" any more: only the last few are kept. Call its tool again if you need it.",
		`{"offset":5}`:             `mcp_tool_page was not run: "id" is missing or empty. Call it with {"id": "a result's id", "offset": 0}.`,
		`{"id":"r1","offset":"5"}`: `mcp_tool_page was not run: "offset" is a JSON string, want a number. Call it with {"id": "a result's id", "offset": 0}.`,
	} {
		result := call(PageToolName, args)
		assert.True(t, result.IsError)
		assert.Equal(t, text, resultText(t, result))
	}
	for _, offset := range []string{"-5", "1e300", "10000", "0.5"} {
		assert.False(t, call(PageToolName, `{"id":"r1","offset":`+offset+`}`).IsError, offset)
	}

	m.Default().Compact()
	assert.NotContains(t, namesOf(m.Default().Tools()), PageToolName)
	assert.NoError(t, checkRegistry(m.def, r))
}

func TestOnlyTheNewestResultsAreKept(t *testing.T) {
	t.Parallel()
	var p pages
	for i := range 20 {
		p.keep(pageID(i), "text")
	}
	require.Len(t, p.kept, maxKeptResults)
	assert.Equal(t, "r12", p.kept[0].id)
	huge := strings.Repeat("x", maxKeptBytes/2)
	p.keep("a", huge)
	p.keep("b", huge)
	assert.Equal(t, []keptResult{{"a", huge}, {"b", huge}}, p.kept)
	p.keep("c", huge+huge+huge)
	require.Len(t, p.kept, 1)
	assert.Equal(t, "c", p.kept[0].id)
}

// A session can't read the pages of another session.
func TestPagesAreOfOneSession(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: 100, Servers: []ServerConfig{serving("a", writer())}})
	one, other := m.NewSession(nil), m.NewSession(nil)
	_, err := one.Call(t.Context(), "mcp_a__write", json.RawMessage(`{"n":50}`))
	require.NoError(t, err)
	_, err = other.Call(t.Context(), PageToolName, `{"id":"r1"}`)
	assert.ErrorIs(t, err, ErrUnknownTool)
	r, err := one.Call(t.Context(), PageToolName, `{"id":"r1","offset":490}`)
	require.NoError(t, err)
	assert.Equal(t, "line   49\n\n[the end of result r1, 500 bytes]", resultText(t, r))
}

func TestResultsWithoutLimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: NoLimit, Servers: []ServerConfig{serving("a", writer())}})
	r, err := m.Call(t.Context(), "mcp_a__write", `{"n":9000}`)
	require.NoError(t, err)
	assert.Len(t, resultText(t, r), 90_000)
}
