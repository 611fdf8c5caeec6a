package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShow(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out))
	for _, want := range []string{
		"150 tools: 40 inline, 110 deferred",
		"## MCP Tools (prefer over core tools)",
		"## Additional MCP Tools (use mcp_tool_search to discover)",
		"← Wrote 26 bytes to prices.csv.",
		`"name":"mcp_text__csv_to_json"`,
		`← [{"item":"tea","price":"3"},{"item":"coffee","price":"4"}]`,
		"← [1,3]",
		"\n 41  mcp_tool_search\n 42  mcp_text__csv_to_json\n 43  mcp_text__json_query\n 44  mcp_math__solve_linear_system\n",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.Regexp(t, `\nsaved in the next request +1\d{4}  \([67]\d %\)\n$`, out.String())
	assert.NotContains(t, out.String(), "! ")
	assert.NotContains(t, out.String(), "not implemented")

	var again bytes.Buffer
	require.NoError(t, show(t.Context(), &again))
	assert.Equal(t, out.String(), again.String())
}
