package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// toolCounts are the numbers of tools that the pinned servers list for a client
// without capabilities.
var toolCounts = map[string]int{
	"filesystem": 14, "everything": 13, "everything-http": 13, "memory": 9, "grafana": 81,
}

func TestConnect(t *testing.T) {
	servers := fiveServers(t)
	mgr := startManager(t, servers...)

	var order []string // "server tool" of all tools
	for i, s := range servers {
		tools := listRaw(t, s)
		assert.Len(t, tools, toolCounts[s.name], s.name)
		for _, raw := range tools {
			order = append(order, s.name+" "+field(t, raw, "name"))
		}
		status := mgr.Servers()[i]
		assert.Equal(t, s.name, status.Name)
		assert.Equal(t, mcphybrid.StateReady, status.State, s.name)
		assert.NoError(t, status.Err, s.name)
		assert.Equal(t, toolCounts[s.name], status.Tools, s.name)
	}
	assert.Len(t, mgr.Servers(), len(servers))
	assert.Empty(t, mgr.Problems())

	inline, deferred := mgr.InlineTools(), mgr.DeferredTools()
	assert.Len(t, inline, 40)
	assert.Len(t, deferred, 90)
	assert.Empty(t, mgr.ActiveTools())
	var got []string
	for _, tool := range slices.Concat(inline, deferred) {
		got = append(got, tool.Server()+" "+tool.OriginalName())
		assert.Equal(t, "mcp_"+strings.ReplaceAll(tool.Server(), "-", "_")+"__"+tool.OriginalName(), tool.Name())
	}
	assert.Equal(t, order, got, "file order, then the servers' own")

	// The model gets the inline tools and the search tool and can call them.
	require.Len(t, mgr.Default().Tools(), 43)
	assert.Equal(t, mcphybrid.SearchToolName, mgr.Default().Tools()[40].Name())
}

// Whichever server connects first, Managers of one file give the model the same
// bytes.
func TestConnectIsReproducible(t *testing.T) {
	path := writeConfig(t, fiveServers(t)...)
	var first string
	for i := range 3 {
		mgr := loadManager(t, path)
		require.NoError(t, mgr.Start(t.Context()))
		got := everyByte(mgr)
		if i == 0 {
			first = got
			assert.Equal(t, 130, strings.Count(got, `"inputSchema"`))
		}
		require.Equal(t, first, got, "Manager %d", i)
		require.NoError(t, mgr.Close())
	}
}

// everyByte returns everything that a model or a host can get from mgr before
// it calls anything.
func everyByte(mgr *mcphybrid.Manager) string {
	var b strings.Builder
	for kind, tools := range [][]*mcphybrid.BridgeTool{mgr.InlineTools(), mgr.DeferredTools()} {
		for _, t := range tools {
			fmt.Fprintf(&b, "%d %s %s %s %q\n%s\n%s\n%s\n",
				kind, t.Name(), t.Server(), t.OriginalName(), t.Description(), t.InputSchema(), t.OutputSchema(), t.Raw())
		}
	}
	for _, t := range mgr.Default().Tools() {
		fmt.Fprintf(&b, "%s %q\n%s\n", t.Name(), t.Description(), t.InputSchema())
	}
	b.WriteString(mgr.PromptSections(mcphybrid.PromptFull))
	return b.String()
}

// draft is the beginning of a schema that says by which draft it is to be read.
var draft = regexp.MustCompile(`^\{"\$schema":"[^"]*",`)

// Definitions are as the servers send them. mcp-go's own types would lose oneOf and
// others. A schema for models lacks a $schema that makes no difference; all of these do.
func TestSchemasAreRaw(t *testing.T) {
	servers := fiveServers(t)
	mgr := startManager(t, servers...)
	tools := slices.Concat(mgr.InlineTools(), mgr.DeferredTools())

	keywords := make(map[string]int) // how many schemas have them at the top
	nested := 0                      // schemas with a oneOf, at any depth
	for _, s := range servers {
		for _, raw := range listRaw(t, s) {
			tool := tools[0]
			tools = tools[1:]
			require.Equal(t, field(t, raw, "name"), tool.OriginalName())
			assert.Equal(t, string(raw), string(tool.Raw()), tool.Name())
			assert.Equal(t, field(t, raw, "description"), tool.Description(), tool.Name())
			for sent, shown := range map[string]json.RawMessage{compact(t, raw, "inputSchema"): tool.InputSchema(), compact(t, raw, "outputSchema"): tool.OutputSchema()} {
				assert.Equal(t, draft.ReplaceAllLiteralString(sent, "{"), string(shown), tool.Name())
			}
			var schema map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(member(t, raw, "inputSchema"), &schema), tool.Name())
			for keyword := range schema {
				keywords[keyword]++
			}
			if bytes.Contains(tool.InputSchema(), []byte(`"oneOf"`)) {
				nested++
			}
		}
	}
	assert.Empty(t, tools)

	// Counts of the pinned servers, so that the comparison above is not empty.
	assert.Equal(t, map[string]int{
		"$schema": 49, "type": 130, "properties": 130, "required": 112, "additionalProperties": 81,
	}, keywords)
	assert.Positive(t, nested)
}

// field returns a string member of a JSON object.
func field(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var s string
	require.NoError(t, json.Unmarshal(member(t, object, name), &s))
	return s
}

// compact returns a member of a JSON object without white space, or "" if there
// is none.
func compact(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	value := member(t, object, name)
	if value == nil {
		return ""
	}
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, value))
	return b.String()
}

func member(t *testing.T, object json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members))
	return members[name]
}

// Servers listen only on 127.0.0.1, which server-everything must be made to do.
func TestListensOnLoopbackOnly(t *testing.T) {
	servers := fiveServers(t)
	startManager(t, servers...)
	var want []string
	for _, s := range servers {
		if s.URL != "" {
			want = append(want, strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp"))
		}
	}
	require.Len(t, want, 1)
	assert.Equal(t, want, listeners())
}
