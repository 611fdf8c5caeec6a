package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What two runs used comes sooner in the next, and the file has names alone.
func TestGatewayLearns(t *testing.T) {
	t.Parallel()
	config, file := writeConfig(t, "kitchen"), filepath.Join(t.TempDir(), "used.json")
	useful := ""
	run := func(args ...string) (found []string) {
		c, _ := connect(t, overStdio(append([]string{"-config", config}, args...)...), "client")
		var answer struct{ Tools []struct{ Name string } }
		require.NoError(t, json.Unmarshal([]byte(say(t, c, "mcp_tool_search", map[string]any{"query": "cooks a dish", "max_results": 8})), &answer))
		for _, tool := range answer.Tools {
			found = append(found, tool.Name)
		}
		useful = cmp.Or(useful, found[7])
		say(t, c, "mcp_tool_call", map[string]any{"name": useful, "arguments": map[string]any{"text": "a secret soup"}})
		require.NoError(t, c.Close())
		return found
	}
	first := run("-learn", file)
	assert.Equal(t, first, run("-learn", file), "one session tells nothing")
	learned := run("-learn", file)
	assert.Equal(t, first[0], learned[0])
	assert.Less(t, slices.Index(learned, useful), slices.Index(first, useful))
	assert.Equal(t, first, run(), "without -learn")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(data), useful)
	for _, other := range append(strings.Fields("soup cooks"), first[0]) {
		assert.NotContains(t, string(data), other)
	}
}

// Tokens of several people don't learn together.
func TestLearningIsForOneUser(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end() // if it served, it would end at once
	err := run(ended, []string{"-config", writeConfig(t, "kitchen"), "-http", "127.0.0.1:0", "-token-file", writeSecret(t, "hunter2"), "-learn", "used.json"}, nil, nil, t.Output())
	assert.ErrorIs(t, err, errSeveralUsers)
	assert.NoFileExists(t, "used.json")
}
