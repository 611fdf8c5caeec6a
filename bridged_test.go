package mcphybrid

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// searched returns the answer to a search of the model.
func searched(t *testing.T, s *Session, query string) (a searchAnswer) {
	t.Helper()
	r, err := s.Call(t.Context(), SearchToolName, map[string]any{"query": query})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &a))
	return a
}

// The best found tools that fit bring their schemas with them, if they are called by
// another tool.
func TestSearchSchemas(t *testing.T) {
	t.Parallel()
	tools := []mcpserver.ServerTool{echoTool("zebra_a", "A zebra"), echoTool("zebra_b", "A zebra"), echoTool("zebra_c", "A zebra")}
	tools[0].Tool = mcp.NewTool("zebra_a", mcp.WithDescription("A zebra"), mcp.WithString("text", mcp.Description(strings.Repeat("long ", 100))))
	short := 1 << 20
	with := func(schemas int, d Disclosure) (names []string) {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Schemas: schemas}})
		require.NoError(t, m.AddTools("zoo", tools...))
		for _, found := range searched(t, m.NewSession(&SessionOptions{Disclosure: d}), "zebra").Tools {
			if found.InputSchema != nil {
				there, _ := m.Default().view().lookup(found.Name)
				assert.Equal(t, string(there.InputSchema()), string(found.InputSchema))
				short = min(short, len(found.InputSchema))
				names = append(names, found.OriginalName)
			}
		}
		return names
	}
	assert.Equal(t, []string{"zebra_a", "zebra_b", "zebra_c"}, with(0, ByBridge))
	assert.Equal(t, []string{"zebra_b"}, with(2*short-1, ByBridge))
	assert.Equal(t, []string{"zebra_b", "zebra_c"}, with(2*short, ByBridge))
	assert.Empty(t, with(-1, ByBridge))
	assert.Empty(t, with(0, ByActivation), "their definitions are in the list")
}

// With the schemas that an answer has, most tools need not be described before they
// are called.
func TestSchemasSaveSteps(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	lists := mcptest.CatalogTools(t)
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		require.NoError(t, m.AddTools(name, lists[name]...))
	}
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	queries, saved, bytes := 0, 0, 0
	for _, name := range []string{"seen", "kept-aside"} {
		f, err := os.Open("testdata/catalog/" + name + ".jsonl")
		require.NoError(t, err)
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var q struct {
				Query    string
				Relevant []string
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &q))
			right := false
			for _, found := range searched(t, s, q.Query).Tools {
				bytes += len(found.InputSchema)
				right = right || found.InputSchema != nil && slices.Contains(q.Relevant, found.Server+"/"+found.OriginalName)
			}
			queries++
			if right {
				saved++
			}
		}
	}
	t.Logf("%d of %d queries need no description of the tool; %d bytes of schemas in an answer", saved, queries, bytes/queries)
	assert.Greater(t, float64(saved)/float64(queries), 0.68)
	assert.Less(t, bytes/queries, 1800)
}

// Models write arguments for the call tool in many ways. What has one meaning is
// understood.
func TestModelsPassArguments(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	head := echoTool("head", "Shows the first lines of a file")
	head.Tool = mcp.NewTool("head", mcp.WithString("path", mcp.Required()), mcp.WithNumber("lines"))
	require.NoError(t, m.AddTools("fs", head))
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	for _, args := range []string{
		`"arguments":{"path":"a","lines":2}`, `"path":"a","lines":2`, `"args":{"path":"a","lines":2}`, `"parameters":"{\"path\":\"a\",\"lines\":\"2\"}"`,
		`"arguments":{"path":"a","lines":"2"}`,
	} {
		r, err := s.Call(t.Context(), CallToolName, `{"name":"mcp_fs__head",`+args+`}`)
		require.NoError(t, err, args)
		assert.Equal(t, `head {"path":"a","lines":2}`, resultText(t, r), args)
	}
	refused := func(args string) string {
		r, _ := s.Call(t.Context(), CallToolName, `{"name":"mcp_fs__head",`+args+`}`)
		require.True(t, r.IsError)
		return resultText(t, r)
	}
	assert.Equal(t, `mcp_tool_call was not run: "lines" stands beside "arguments", but all that the tool takes belongs in "arguments". Call it with {"name": "a tool's name", "arguments": {…}}.`,
		refused(`"arguments":{"path":"a"},"lines":2`))
	for _, args := range []string{`"lines":1`, `"lines":2`, `"lines":"two"`, `"args":[]`} {
		assert.NotContains(t, refused(args), "already been refused", "it was another call")
	}
	assert.Contains(t, refused(`"args":[]`), "already been refused")
	_, err := s.Call(t.Context(), "mcp_fs__head", `{"path":"a","lines":"2"}`)
	assert.ErrorIs(t, err, ErrBadArguments, "the model had the schema")
}

// The session of an MCP client says in the description of the search tool what there
// is to find, and has a tool of its own for calls that only read.
func TestClientSession(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	reads, writes := echoTool("look", "Looks at a zebra"), echoTool("paint", "Paints a zebra")
	reads.Tool.Annotations.ReadOnlyHint = mcp.ToBoolPtr(true)
	require.NoError(t, m.AddTools("zoo", reads, writes))
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Client: true})
	names := []string{SearchToolName, DescribeToolName, CallToolName, ReadOnlyCallToolName, PageToolName}
	assert.Equal(t, names, namesOf(s.Tools()))
	const finds = "2 more tools are available from these MCP servers: zoo (2: paint)."
	description := func(s *Session) string { return s.Tools()[0].Description() }
	assert.True(t, strings.HasSuffix(description(s), finds), description(s))
	require.NoError(t, m.AddTools("later", echoTool("fly", "Flies")))
	assert.True(t, strings.HasSuffix(description(s), finds), "what was shown stays")
	assert.NotContains(t, description(m.NewSession(&SessionOptions{Disclosure: ByBridge})), "zoo")

	call := func(name, args string) (*mcp.CallToolResult, error) { return s.Call(t.Context(), name, args) }
	r, err := call(SearchToolName, `{"query":"zebra"}`)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(resultText(t, r), `"read_only":true`))
	assert.Contains(t, resultText(t, r), "Those with read_only may be called with mcp_tool_call_readonly as well.")
	r, err = call(DescribeToolName, `{"names":["mcp_zoo__look","mcp_zoo__paint"]}`)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(resultText(t, r), `"read_only":true`))
	r, err = call(ReadOnlyCallToolName, `{"name":"mcp_zoo__look","arguments":{"text":"x"}}`)
	require.NoError(t, err)
	assert.Equal(t, `look {"text":"x"}`, resultText(t, r))
	r, err = call(ReadOnlyCallToolName, `{"name":"mcp_zoo__paint"}`)
	assert.ErrorIs(t, err, ErrNotPermitted)
	assert.Equal(t, "mcp_zoo__paint was not called: it does not say that it only reads. Call it with mcp_tool_call.", resultText(t, r))
	_, err = call(CallToolName, `{"name":"mcp_zoo__paint"}`)
	require.NoError(t, err)
	for _, by := range []string{CallToolName, ReadOnlyCallToolName} {
		for _, called := range []string{CallToolName, ReadOnlyCallToolName} {
			r, err = call(by, `{"name":"`+called+`","arguments":{"name":"mcp_zoo__look"}}`)
			require.NoError(t, err)
			assert.Contains(t, resultText(t, r), by+" was not run: it can't call itself", called)
		}
	}

	for i, tool := range s.Tools() {
		hints := tool.(interface{ Annotations() mcp.ToolAnnotation }).Annotations()
		assert.Equal(t, names[i] != CallToolName, *hints.ReadOnlyHint, names[i])
	}
}

// A call that connects its server runs no other definition than the one that was
// checked and approved.
func TestCallThatConnectsRunsWhatWasShown(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	look := func(destroys bool) mcpserver.ServerTool {
		tool := echoTool("look", "Looks at a zebra")
		tool.Tool.Annotations.ReadOnlyHint, tool.Tool.Annotations.DestructiveHint = mcp.ToBoolPtr(!destroys), mcp.ToBoolPtr(destroys)
		handle := tool.Handler
		tool.Handler = func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ran.Add(1)
			return handle(ctx, r)
		}
		return tool
	}
	var serves atomic.Pointer[mcpserver.StreamableHTTPServer]
	serve := func(destroys bool) {
		serves.Store(mcpserver.NewStreamableHTTPServer(mcptest.Server("zoo", look(destroys))))
	}
	serve(false)
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serves.Load().ServeHTTP(w, r) }), "127.0.0.1:0")
	opts := &Options{Cache: new(mcptest.Store), Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{{Name: "zoo", URL: url}}}
	m := NewManager(opts)
	require.NoError(t, m.Start(t.Context()))
	require.NoError(t, m.Close())

	serve(true)
	m, _ = newTestManager(t, opts)
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Client: true})
	r, err := s.Call(t.Context(), ReadOnlyCallToolName, `{"name":"mcp_zoo__look"}`)
	assert.ErrorIs(t, err, ErrChanged)
	assert.Contains(t, resultText(t, r), "its definition changed while the call waited")
	_, err = s.Call(t.Context(), ReadOnlyCallToolName, `{"name":"mcp_zoo__look"}`)
	assert.ErrorIs(t, err, ErrNotPermitted)
	assert.Zero(t, ran.Load())
	_, err = s.Call(t.Context(), CallToolName, `{"name":"mcp_zoo__look"}`)
	require.NoError(t, err)
	assert.EqualValues(t, 1, ran.Load())
}

// A restored session that no client has offers no call tool for reading.
func TestRestoredWithoutClient(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 1)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Client: true})
	assert.Contains(t, namesOf(s.Tools()), ReadOnlyCallToolName)
	restored, _, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{SearchToolName, PageToolName}, namesOf(restored.Tools()))
}

// Sessions of clients and others begin with lists of their own, whoever looks first.
func TestClientsBeginWithTheirOwnList(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		m := replicaOf(t, nil, "s0", "s1", "s2")
		for _, client := range []bool{first, !first} {
			s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Client: client})
			assert.Equal(t, client, slices.Contains(namesOf(s.Tools()), ReadOnlyCallToolName))
		}
	}
}
