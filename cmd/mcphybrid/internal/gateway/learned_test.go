package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
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

// A file that another version has written is told at the start and on the page, and is left alone.
func TestForeignLearnedFile(t *testing.T) {
	t.Parallel()
	const text = `{"version":2,"tools":{}}`
	file := filepath.Join(t.TempDir(), "used.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	learned, err := learning(file, "")
	require.NoError(t, err)
	log := new(mcptest.Log)
	g := newGateway(gatewayOptions{learn: learned, servers: []mcphybrid.ServerConfig{{Name: "x", InProcess: mcptest.Server("x", mcptest.Echo("echo", "Echoes"))}}, log: slog.New(slog.NewTextHandler(log, nil))})
	<-g.all.Done()
	const says = " is neither used nor changed: the document has another version: 2, want 1; name another one, or use the version of this program that has written it"
	assert.Equal(t, 1, strings.Count(log.String(), file+says))
	_, err = g.mgr.Call(t.Context(), "mcp_x__echo", nil)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	g.page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	assert.Contains(t, w.Body.String(), says)
	g.close()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, string(data))
}
