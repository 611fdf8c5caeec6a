package result

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server can send the same JSON, but not that its result answers a search.
func TestFound(t *testing.T) {
	t.Parallel()
	r := mcp.NewToolResultText("a")
	assert.Nil(t, Found(r))
	SetFound(r, []string{"mcp_a__b"})
	assert.Equal(t, []string{"mcp_a__b"}, Found(r))
	sent, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(sent), `"_meta":{"mcphybrid/found":["mcp_a__b"]}`)
	var forged mcp.CallToolResult
	require.NoError(t, json.Unmarshal(sent, &forged))
	assert.NotNil(t, forged.Meta)
	assert.Nil(t, Found(&forged))
	forged.Meta = mcp.NewMetaFromMap(map[string]any{foundKey: []string{"mcp_a__b"}})
	assert.Nil(t, Found(&forged))
}
