package mcpopenai_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

// strictly reads JSON into a type of the SDK. It fails if that type does not have all members,
// to any depth: what is unknown to it is not written again.
func strictly[T any](t *testing.T, raw json.RawMessage) (v T) {
	require.NoError(t, json.Unmarshal(raw, &v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(out))
	return v
}

// What a session by provider sends is what the SDK has types for.
func TestToolSearchShapes(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("early", tools(1)...))
	require.NoError(t, mgr.AddTools("other", tools(2)...))
	s := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider})
	turn, err := s.Turn(provider.OpenAIResponses, "gpt-5.5")
	require.NoError(t, err)
	require.Len(t, turn.Tools, 2)
	require.Equal(t, "mcp_early__find_invoices_1", strictly[responses.ToolUnionParam](t, turn.Tools[0].JSON).OfFunction.Name)
	search := strictly[responses.ToolUnionParam](t, turn.Tools[1].JSON).OfToolSearch
	require.Equal(t, responses.ToolSearchToolExecutionClient, search.Execution)
	require.NotEmpty(t, search.Description.Value)
	require.Contains(t, search.Parameters.(map[string]any)["properties"], "query")

	asked := `{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","status":"completed","arguments":{"query":"select:mcp_early__find_stars_1,mcp_other__find_stars_2"}}`
	strictly[responses.ResponseInputItemToolSearchCallParam](t, json.RawMessage(asked))
	item, err := s.AnswerToolSearch(t.Context(), json.RawMessage(asked))
	require.NoError(t, err)
	found := strictly[responses.ResponseInputItemUnionParam](t, item).OfToolSearchOutput
	require.Equal(t, "call_1", found.CallID.Value)
	require.Equal(t, responses.ResponseToolSearchOutputItemParamExecutionClient, found.Execution)
	require.Len(t, found.Tools, 2)
	for i, want := range []string{"mcp_early", "mcp_other"} {
		n := found.Tools[i].OfNamespace
		require.Equal(t, want, n.Name)
		require.NotContains(t, n.Description, "\n")
		f := n.Tools[0].OfFunction
		require.True(t, strings.HasPrefix(f.Name, want+"__find_stars"), f.Name)
		require.True(t, f.DeferLoading.Value)
		require.NotNil(t, f.Parameters)
	}

	// The check finds what the SDK does not know.
	var more responses.ResponseInputItemUnionParam
	strange := bytes.Replace(item, []byte(`"type":"namespace"`), []byte(`"type":"namespace","strange":1`), 1)
	require.NoError(t, json.Unmarshal(strange, &more))
	out, err := json.Marshal(more)
	require.NoError(t, err)
	require.NotContains(t, string(out), "strange")
}
