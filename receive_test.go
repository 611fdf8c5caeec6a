package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A tool that is listed as it was the time before is the same definition. Any other
// is a new one.
func TestBindCallsKeepsUnchangedDefinitions(t *testing.T) {
	t.Parallel()
	m := NewManager(nil)
	defer m.Close()
	src := &source{}
	list := func(raws ...string) []*definition {
		var elements []json.RawMessage
		for _, raw := range raws {
			elements = append(elements, json.RawMessage(raw))
		}
		defs, problems := parseAll(t, ServerConfig{Name: "s"}, elements, 1000)
		require.Empty(t, problems)
		m.bindCalls(src, defs)
		src.listed = defs
		for _, d := range defs {
			assert.NotNil(t, d.call)
		}
		return defs
	}
	first := list(`{"name":"a"}`, `{"name":"b"}`)
	second := list(`{"name":"b"}`, `{"name":"a","title":"A"}`)
	assert.Same(t, first[1], second[0])
	assert.NotSame(t, first[0], second[1])
	third := list(`{"name":"a","title":"A"}`)
	assert.Same(t, second[1], third[0])
	assert.NotSame(t, second[0], list(`{"name":"b"}`)[0])
}

// Reading a long list ends when its context ends.
func TestParsingEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defs, problems, _, err := new(source).parseDefinitions(ctx, []upstream.Element{{Raw: json.RawMessage(`{"name":"a"}`)}}, names.NewBook(1), new(rawDefinitions), 1000)
	assert.Equal(t, context.Canceled, err)
	assert.Empty(t, defs)
	assert.Empty(t, problems)
}

// All servers together may list no more than the limit. What is refused leaves
// what was there, and the others go on.
func TestMaxCatalog(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 10_000)
	list := func(n, size int) (tools []mcpserver.ServerTool) {
		for i := range n {
			tools = append(tools, echoTool(fmt.Sprint("tool", i), text[:size]))
		}
		return tools
	}
	srv := mcpserver.NewMCPServer("a", "1", mcpserver.WithToolCapabilities(true))
	srv.SetTools(list(5, 10_000)...)
	m, _ := newTestManager(t, &Options{Limits: config.Limits{MaxCatalog: 100_000, Reconnect: time.Millisecond}, Servers: []ServerConfig{{Name: "a", InProcess: srv}}})
	err := m.AddServer(t.Context(), serving("b", list(5, 10_000)...))
	assert.ErrorContains(t, err, `server "b": its tools, resources, prompts and skills have 51`)
	assert.ErrorContains(t, err, "together more than the limit of 100000")
	require.NoError(t, m.AddServer(t.Context(), serving("c", list(4, 10_000)...)))
	srv.SetTools(list(7, 10_000)...)
	soon(t, func() bool { return m.Servers()[0].State == StateDegraded })
	assert.ErrorContains(t, m.Servers()[0].Err, "together more than the limit of 100000")
	assert.Equal(t, 9, m.Stats().Tools)
	_, err = m.Call(t.Context(), "mcp_a__tool4", nil)
	assert.NoError(t, err)
	require.True(t, m.RemoveServer("c"))
	soon(t, func() bool { return m.Stats().Tools == 7 && m.Servers()[0].State == StateReady }, "there is room now")

	u, err := m.NewUser("u", &UserOptions{Servers: []ServerConfig{serving("own", list(9, 10_000)...)}})
	require.NoError(t, err)
	assert.NoError(t, u.Start(t.Context()), "a user's servers are counted for themselves")
	assert.NoError(t, errors.Join(m.Problems()...))
}

// Of two tools of one name, a server has the first.
func TestParsingKeepsTheFirstOfAName(t *testing.T) {
	t.Parallel()
	defs, problems := parseAll(t, ServerConfig{Name: "s"}, []json.RawMessage{
		json.RawMessage(`{"name":"a","description":"first"}`), json.RawMessage(`{"name":"b"}`), json.RawMessage(`{"name":"a","description":"second"}`),
	}, 1000)
	require.Len(t, defs, 2)
	assert.Equal(t, []string{"first", ""}, []string{defs[0].Description, defs[1].Description})
	require.Len(t, problems, 1)
	assert.EqualError(t, problems[0], `mcphybrid: server "s": tool 2: another tool is named "a" too; the first is kept`)
}

// A list that is received after its time changes nothing, and says so: whichever part is read then.
func TestReceivingEnds(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var tool, resource, none upstream.List
	tool.Elements[upstream.Tools] = []upstream.Element{{Raw: json.RawMessage(`{"name":"a"}`)}}
	resource.Elements[upstream.Resources] = []upstream.Element{{Raw: json.RawMessage(`{"uri":"mem://a","name":"a"}`)}}
	for name, list := range map[string]upstream.List{"tools": tool, "resources": resource, "tokens": none} {
		t.Run(name, func(t *testing.T) {
			m, _ := newTestManager(t, &Options{Tokens: constantTokens(1), Servers: []ServerConfig{inProcess("s", 2)}})
			before := m.cur.Load()
			assert.ErrorIs(t, m.receive(ended, m.sources[0], list), context.Canceled)
			assert.Same(t, before, m.cur.Load())
		})
	}
}

type countedStore struct {
	mcptest.Store
	saves atomic.Int32
}

func (s *countedStore) Save(data []byte) error {
	s.saves.Add(1)
	return s.Store.Save(data)
}

// Servers that list their tools during a start are stored once, after it.
func TestStartSavesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		doc := new(countedStore)
		m := NewManager(&Options{TrustStore: doc, Servers: []ServerConfig{inProcess("a", 1), inProcess("b", 1), inProcess("c", 1)}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		assert.EqualValues(t, 1, doc.saves.Load())
		require.NoError(t, m.AddServer(t.Context(), inProcess("d", 1)))
		synctest.Wait()
		assert.EqualValues(t, 2, doc.saves.Load())
	})
}

// A vector store is told what servers have listed since they were connected, what the host added, and which
// servers it removed.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cached := new(mcptest.Split)
		public := mcpserver.NewMCPServer("web", "1", mcpserver.WithCacheHints(0, mcp.CacheScopePublic))
		public.AddTools(echoTool("open", "Opens"), echoTool("close", "Closes"))
		web := mcpserver.NewStreamableHTTPServer(public, mcpserver.WithStateLess(true))
		process := func() *Manager {
			return NewManager(&Options{Cache: cached, Limits: config.Limits{Refresh: -1}, Semantic: &SemanticOptions{Embedder: newConcepts()}, Servers: []ServerConfig{{Name: "web", URL: "http://web", HTTPClient: unwired(web)}}})
		}
		m := process()
		assert.Empty(t, m.ownNames())
		require.NoError(t, m.Start(t.Context()))
		time.Sleep(time.Minute)
		want := map[string][]string{"web": {"close", "open"}}
		assert.Equal(t, want, m.ownNames())
		require.NoError(t, m.Close())

		m = process()
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		require.Len(t, m.Default().InlineTools(), 2)
		assert.Empty(t, m.ownNames(), "only the cache has said it")
		require.NoError(t, m.Preload(t.Context(), "*"))
		time.Sleep(time.Minute)
		assert.Equal(t, want, m.ownNames(), "it has listed the same")
		require.NoError(t, m.AddTools("local", echoTool("one", "Does one"), echoTool("two", "Does two")))
		require.NoError(t, m.AddServer(t.Context(), serving("left")))
		assert.Equal(t, map[string][]string{"web": want["web"], "local": {"one", "two"}, "left": {}}, m.ownNames())
		m.RemoveServer("left")
		m.RemoveServer("web")
		assert.Equal(t, map[string][]string{"web": nil, "local": {"one", "two"}, "left": nil}, m.ownNames())
		require.NoError(t, m.AddServer(t.Context(), serving("web", echoTool("open", "Opens"))))
		assert.Equal(t, map[string][]string{"web": {"open"}, "local": {"one", "two"}, "left": nil}, m.ownNames())
	})
}
