package integration

import (
	"encoding/json"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A found is one tool in a search's answer. The names in the JSON are a
// contract.
type found struct {
	Name         string `json:"name"`
	OriginalName string `json:"original_name"`
	Server       string `json:"server"`
	Description  string `json:"description"`
}

// search calls the search tool like a model.
func search(t *testing.T, c caller, args string) []found {
	t.Helper()
	answer := call(t, c, mcphybrid.SearchToolName, args)
	var got struct {
		Tools   []found `json:"tools"`
		Count   int     `json:"count"`
		Message string  `json:"message"`
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &got), answer)
	assert.Equal(t, len(got.Tools), got.Count)
	assert.NotEmpty(t, got.Message)
	return got.Tools
}

func foundNames(tools []found) []string {
	list := make([]string, len(tools))
	for i, f := range tools {
		list[i] = f.Name
	}
	return list
}

func TestSearch(t *testing.T) {
	mgr := startManager(t, fiveServers(t)...)
	registry := mcphybrid.NewRegistry()
	sess := mgr.NewSession(&mcphybrid.SessionOptions{Registry: registry})
	t.Cleanup(sess.Close)
	before := names(sess.DeferredTools())

	prometheus := search(t, sess, `{"query": "prometheus query"}`)
	require.Len(t, prometheus, mcphybrid.DefaultSearchResults)
	assert.Equal(t, "mcp_grafana__query_prometheus", prometheus[0].Name)
	for _, f := range prometheus {
		assert.Equal(t, "grafana", f.Server)
		assert.Equal(t, "mcp_grafana__"+f.OriginalName, f.Name)
		assert.NotEmpty(t, f.Description)
		assert.NotContains(t, f.Description, "\n")
		assert.LessOrEqual(t, len([]rune(f.Description)), mcphybrid.DefaultMaxDescription)
		assert.Contains(t, before, f.Name)
		assert.NotContains(t, names(sess.DeferredTools()), f.Name)
		registered, ok := registry.Get(f.Name)
		require.True(t, ok, f.Name)
		assert.Equal(t, f.Name, registered.Name())
		// The tool can be called now, with or without a Grafana, although not
		// without arguments.
		result, err := registry.Execute(t.Context(), f.Name, nil)
		if err != nil {
			require.ErrorIs(t, err, mcphybrid.ErrBadArguments, f.Name)
		}
		assert.True(t, result.IsError, f.Name)
	}
	assert.Equal(t, foundNames(prometheus), names(sess.ActiveTools()))
	assert.Empty(t, mgr.ActiveTools(), "another session's")

	// The same search again finds other tools.
	again := search(t, sess, `{"query": "prometheus query"}`)
	require.NotEmpty(t, again)
	for _, f := range again {
		assert.NotContains(t, foundNames(prometheus), f.Name)
	}

	// Found tools can be called in the same turn.
	graph := search(t, sess, `{"query": "read the entire knowledge graph", "max_results": 1}`)
	require.Equal(t, []string{"mcp_memory__read_graph"}, foundNames(graph))
	assert.Contains(t, call(t, sess, graph[0].Name, nil), "entities")

	assert.Empty(t, search(t, sess, `{"query": "xylophone zeppelin"}`))
}

func TestSearchIsBounded(t *testing.T) {
	mgr := startManager(t, fiveServers(t)...)
	many := search(t, mgr, `{"query": "grafana list get", "max_results": 10000}`)
	assert.Len(t, many, mcphybrid.DefaultSearchLimit)
	assert.Equal(t, foundNames(many), names(mgr.ActiveTools()))
	assert.Len(t, mgr.DeferredTools(), 90-len(many))
	assert.Len(t, mgr.Default().Tools(), 43+len(many))
}
