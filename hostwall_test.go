package mcphybrid

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tryingHost is a host whose every piece of code that the library calls uses the
// Manager first, and panics if it is its turn.
type tryingHost struct {
	t       *testing.T
	panics  string // the code that panics, until calm
	calm    atomic.Bool
	loading atomic.Int64 // loads of stores for which AddServer and AddTools wait
	use     func(h *tryingHost)
	times   int // how often each piece uses the Manager

	m atomic.Pointer[Manager]

	mu      sync.Mutex
	called  map[string]bool
	entered map[string]int  // how often it used the Manager
	inside  map[string]bool // it uses it now
	told    bytes.Buffer    // what was logged, and errors
}

// hostCode is all code of a host that the library calls, with what its panic is
// named. A handler of slog has no one to tell.
var hostCode = map[string]string{
	"register": "the registry", "unregister": "the registry", "get": "the registry", "group": "the registry", "activator": "the registry",
	"log": "", "embed": "the embedder", "embed query": "the embedder", "dimensions": "the embedder",
	"upsert": "the vector store", "delete": "the vector store", "sums": "the vector store", "search": "the vector store", "vectors get": "the vector store", "drop": "SemanticOptions.Store",
	"vectors load": "SemanticOptions.Cache", "vectors save": "SemanticOptions.Cache",
	"cache load": "Options.Cache", "cache save": "Options.Cache", "trust load": "Options.TrustStore", "trust save": "Options.TrustStore",
	"put part": "Options.StateParts", "get part": "Options.StateParts",
	"usage load": "UsageOptions.Store", "usage save": "UsageOptions.Store", "learn load": "LearnOptions.Store", "learn save": "LearnOptions.Store", "tokens": "Options.Tokens", "event": "Options.OnEvent", "request": "Options.OnRequest",
	"middleware": "Options.Middleware[0]", "enricher": "the enricher", "embedded": "SemanticOptions.Progress", "skill": "its Load", "handler": "the handler",
	"list": "the server", "call": "the server", "notification": "ServerConfig.OnNotification", "progress": "the function of WithProgress",
	"elicit": "ask.Hooks.Elicit", "sample": "ask.Hooks.Sample", "roots": "ask.Hooks.Roots",
}

func (h *tryingHost) at(code string) {
	m := h.m.Load()
	h.mu.Lock()
	h.called[code] = true
	use := m != nil && !h.inside[code] && h.entered[code] < h.times // more would never end: what a save changes is saved, and so on
	if use {
		h.inside[code] = true
		h.entered[code]++
	}
	h.mu.Unlock()
	if use {
		loads := code == "trust load" || code == "cache load"
		if loads {
			h.loading.Add(1)
		}
		h.use(h)
		if loads {
			h.loading.Add(-1)
		}
		h.mu.Lock()
		h.inside[code] = false
		h.mu.Unlock()
	}
	if h.panics == code && !h.calm.Load() {
		panic("the host's fault")
	}
}

// reads calls all that reads.
func reads(h *tryingHost) {
	m := h.m.Load()
	m.Servers()
	m.Problems()
	m.Marks()
	snapshot, err := m.Snapshot(0)
	if err == nil {
		snapshot.Servers()
		snapshot.Sessions(0, 10)
		snapshot.Samples()
	}
	for _, s := range []*Session{m.Default(), m.NewSession(nil)} {
		s.Stats()
		s.Tools()
		s.InlineTools()
		s.DeferredTools()
		s.ActiveTools()
		s.PromptSections(PromptFull)
		s.Placements()
		s.Save()
		s.Explain("chore", "mcp_a__tool_009")
		hintsOf(s, "mcp_a__tool_009")
		s.Find(context.Background(), "chore", SearchOptions{By: ByWords})
		_, _ = s.Export(provider.Anthropic)
	}
}

// changes calls much that changes something.
func changes(h *tryingHost) {
	reads(h)
	m := h.m.Load()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.loading.Load() == 0 {
		_ = m.AddTools("from within", echoTool("x", ""))
		_ = m.AddServer(ctx, inProcess("deep within", 2))
	}
	m.Default().ActivateTools([]string{"mcp_a__tool_009"})
	m.Search("chore", 3)
	_, _ = m.Call(ctx, "mcp_a__tool_001", nil)
	m.Default().Compact()
	_ = m.Reorder()
	m.RemoveServer("from within")
}

func (h *tryingHost) wasCalled(code string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called[code]
}

type hostRegistry struct {
	*ToolRegistry
	h *tryingHost
}

func (r hostRegistry) Register(t Tool)   { r.h.at("register"); r.ToolRegistry.Register(t) }
func (r hostRegistry) Unregister(t Tool) { r.ToolRegistry.Unregister(t); r.h.at("unregister") }
func (r hostRegistry) Get(name string) (Tool, bool) {
	r.h.at("get")
	return r.ToolRegistry.Get(name)
}
func (r hostRegistry) RegisterToolGroup(g string, names []string) {
	r.h.at("group")
	r.ToolRegistry.RegisterToolGroup(g, names)
}
func (r hostRegistry) SetDeferredActivator(f func(string) bool) {
	r.ToolRegistry.SetDeferredActivator(f)
	r.h.at("activator")
}

type hostStore struct {
	mcptest.Store
	h    *tryingHost
	name string
}

func (s *hostStore) Load() ([]byte, error) {
	s.h.at(s.name + " load")
	return s.Store.Load()
}

func (s *hostStore) Save(data []byte) error {
	err := s.Store.Save(data)
	s.h.at(s.name + " save")
	return err
}

type hostParts struct {
	partMap
	h *tryingHost
}

func (p *hostParts) Put(key string, part []byte) error {
	p.h.at("put part")
	return p.partMap.Put(key, part)
}

func (p *hostParts) Get(key string) ([]byte, error) {
	p.h.at("get part")
	return p.partMap.Get(key)
}

type hostLog struct{ h *tryingHost }

func (l hostLog) Enabled(context.Context, slog.Level) bool { return true }
func (l hostLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l hostLog) WithGroup(string) slog.Handler            { return l }
func (l hostLog) Handle(_ context.Context, r slog.Record) error {
	l.h.mu.Lock()
	fmt.Fprintln(&l.h.told, r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintln(&l.h.told, a); return true })
	l.h.mu.Unlock()
	l.h.at("log")
	return nil
}

type hostEmbedder struct {
	*concepts
	h *tryingHost
}

func (e hostEmbedder) Dimensions() int { e.h.at("dimensions"); return e.concepts.Dimensions() }
func (e hostEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.h.at("embed")
	return e.concepts.Embed(ctx, texts)
}
func (e hostEmbedder) EmbedQuery(ctx context.Context, query string) ([]float32, error) {
	e.h.at("embed query")
	return e.concepts.EmbedQuery(ctx, query)
}

type hostVectors struct {
	vector.MemoryStore
	h *tryingHost
}

func (s *hostVectors) Upsert(ctx context.Context, scope string, records []vector.Record) error {
	s.h.at("upsert")
	return s.MemoryStore.Upsert(ctx, scope, records)
}
func (s *hostVectors) Delete(ctx context.Context, scope string, ids []string) error {
	s.h.at("delete")
	return s.MemoryStore.Delete(ctx, scope, ids)
}
func (s *hostVectors) Sums(ctx context.Context, scope string) (map[string]string, error) {
	s.h.at("sums")
	return s.MemoryStore.Sums(ctx, scope)
}
func (s *hostVectors) Get(ctx context.Context, scope string, ids []string) ([]vector.Record, error) {
	s.h.at("vectors get")
	return s.MemoryStore.Get(ctx, scope, ids)
}
func (s *hostVectors) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	s.h.at("search")
	return s.MemoryStore.Search(ctx, scope, q)
}
func (s *hostVectors) Drop(ctx context.Context, scope string) error {
	s.h.at("drop")
	return s.MemoryStore.Drop(ctx, scope)
}

type hostCounter struct{ h *tryingHost }

func (c hostCounter) CountTokens(text string) int { c.h.at("tokens"); return len(text) / 3 }

func newTryingHost(t *testing.T, panics string, use func(*tryingHost), times int) *tryingHost {
	return &tryingHost{t: t, panics: panics, use: use, times: times, called: make(map[string]bool), entered: make(map[string]int), inside: make(map[string]bool)}
}

// server returns a server in this process with code of the host in it, and an
// address of one that is down.
func (h *tryingHost) servers() []ServerConfig {
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { h.at("list") })
	s := mcpserver.NewMCPServer("hooked", "1", mcpserver.WithHooks(hooks), mcpserver.WithToolCapabilities(true), mcpserver.WithResourceCapabilities(false, true))
	s.AddResources(textResource("mem://hooked", "hooked", ""))
	s.AddTools(mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.Meta != nil {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1})
			_ = s.SendNotificationToClient(ctx, "notifications/message", map[string]any{"level": "info", "data": "x"})
			for !(h.wasCalled("progress") && h.wasCalled("notification")) && ctx.Err() == nil { // until they have arrived
				runtime.Gosched()
			}
		}
		_, _ = s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: map[string]any{"type": "object"}}})
		//lint:ignore SA1019 servers use it
		_, _ = s.RequestSampling(ctx, mcp.CreateMessageRequest{})
		_, _ = s.RequestRoots(ctx, mcp.ListRootsRequest{})
		h.at("call")
		return mcp.NewToolResultText("ran"), nil
	}})
	return []ServerConfig{inProcess("a", 12),
		{Name: "hooked", InProcess: s, OnNotification: func(mcp.JSONRPCNotification) { h.at("notification") }},
		{Name: "down", URL: "http://127.0.0.1:1/"}}
}

func (h *tryingHost) options() *Options {
	doc := func(name string) store.Document { return &hostStore{h: h, name: name} }
	vectors, e := &hostVectors{h: h}, newConcepts()
	text := "Tool Name: handled. Description: ." // of which the record has the vector, and nothing for readers
	key := vector.KeyOf(e.Model(), text)
	require.NoError(h.t, vectors.MemoryStore.Upsert(h.t.Context(), defaultScope, []vector.Record{
		{ID: "mcp_l__handled", Sum: strings.Repeat("0", 32) + hex.EncodeToString(key[:]), Server: "l", Text: text, Vector: e.vector(text)}}))
	return &Options{
		Servers: h.servers(), Registry: hostRegistry{NewRegistry(), h}, Logger: slog.New(hostLog{h}), Tokens: hostCounter{h},
		Needs:  map[string][]string{"mcp_a__tool_000": {"nothing"}}, // so that there is something to log
		Inline: InlineOptions{Max: 4, MaxTokens: 5000}, Prompt: PromptOptions{MaxListingTokens: 5000}, Limits: config.Limits{Reconnect: time.Hour},
		Semantic: &SemanticOptions{Embedder: hostEmbedder{e, h}, Store: vectors, Cache: doc("vectors"), Grace: -1,
			Timeout: time.Minute, Progress: func(int, int) { h.at("embedded") }},
		Cache: doc("cache"), TrustStore: doc("trust"), Usage: &UsageOptions{Store: doc("usage")}, Learn: &LearnOptions{Store: doc("learn")},
		StateParts: &hostParts{h: h},
		OnEvent:    func(Event) { h.at("event") },
		OnRequest:  func(context.Context, string) { h.at("request") },
		Enricher: lookupFunc(func(context.Context, hints.Tool) (hints.Hints, bool, error) {
			h.at("enricher")
			return hints.Hints{}, false, nil
		}),
		Middleware: []Middleware{func(next Handler) Handler {
			return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
				h.at("middleware")
				return next(ctx, c)
			}
		}},
		Ask: ask.Options{Hooks: ask.Hooks{
			Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
				h.at("elicit")
				return nil, ask.ErrDeclined
			},
			Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				h.at("sample")
				return nil, ask.ErrDeclined
			},
			Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { h.at("roots"); return nil, nil },
		}},
		Skills: []Skill{{Name: "skill", Description: "Says how", Load: func(context.Context) (string, error) { h.at("skill"); return "so", nil }}},
	}
}

func (h *tryingHost) note(err error) {
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		fmt.Fprintln(&h.told, err)
	}
}

// live uses a Manager such that all of the host's code is called.
func (h *tryingHost) live() {
	ctx := h.t.Context()
	m := NewManager(h.options())
	h.m.Store(m)
	m.Watch()
	h.note(m.Start(ctx))
	h.note(m.AddTools("l", mcpserver.ServerTool{Tool: mcp.NewTool("handled"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		h.at("handler")
		return mcp.NewToolResultText("ran"), nil
	}}))
	reg := hostRegistry{NewRegistry(), h}
	s := m.NewSession(&SessionOptions{Registry: reg})
	soon(h.t, func() bool { return m.semantic.InStep() || h.wasCalled(h.panics) && m.semantic.Reached() != nil })
	for _, name := range []string{"mcp_l__handled", "mcp_hooked__run", "mcp_a__tool_010"} {
		_, err := s.Call(WithProgress(ctx, func(mcp.ProgressNotificationParams) { h.at("progress") }), name, nil)
		h.note(err)
		s.ActivateToolIfDeferred("mcp_a__tool_011")
		s.ActivateToolIfDeferred("mcp_a__tool_011")
	}
	h.note(s.Find(ctx, "dog", SearchOptions{}).Err)
	_, err := s.ReadResource(ctx, "hooked", "mem://hooked")
	h.note(err)
	_, err = s.Call(ctx, SkillLoadToolName, `{"name":"skill"}`)
	h.note(err)
	h.note(m.RefreshHints(ctx))
	h.note(m.Reorder())
	h.note(m.Refresh())
	s.Stats()
	s.NextTurn()
	s.Compact()
	restored, _, err := m.RestoreSession(s.Save(), &SessionOptions{Registry: hostRegistry{NewRegistry(), h}})
	h.note(err)
	restored.Close()
	fresh := m.NewSession(nil)
	fresh.Tools()
	over, cancel := context.WithCancel(ctx)
	cancel()
	h.note(m.AwaitServers(over, fresh.Save()))
	u, err := m.NewUser("u", &UserOptions{Registry: hostRegistry{NewRegistry(), h}})
	require.NoError(h.t, err)
	h.note(u.AddTools("own", echoTool("x", "cat")))
	m.RemoveServer("l")
	soon(h.t, func() bool {
		return m.semantic.InStep() || m.semantic.Reached().Err != nil
	})
	h.note(m.DropUser(ctx, "u"))
	h.note(m.AddServer(ctx, inProcess("late", 1))) // at rest, what is saved is saved on this goroutine
	assert.NoError(h.t, check(m, s))

	h.calm.Store(true)
	soon(h.t, func() bool { _, err := m.Call(ctx, "mcp_a__tool_000", nil); return err == nil })
	require.NoError(h.t, m.AddTools("last", echoTool("x", "")))
	s.Close()
	assert.Empty(h.t, reg.List())
	require.NoError(h.t, m.Close())
}

// within ends the test program with the stacks of all goroutines if f takes too long.
func within(d time.Duration, what string, f func()) {
	t := time.AfterFunc(d, func() {
		stacks := make([]byte, 1<<22)
		panic(fmt.Sprintf("%s hangs:\n%s", what, stacks[:runtime.Stack(stacks, true)]))
	})
	defer t.Stop()
	f()
}

// No lock is held while the host's code runs: all of it may use the Manager.
func TestHostCodeMayUseTheManager(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]*tryingHost{"reads": newTryingHost(nil, "", reads, 300), "changes": newTryingHost(nil, "", changes, 1)} {
		t.Run(name, func(t *testing.T) {
			h := host
			h.t = t
			within(2*time.Minute, name, h.live)
			h.mu.Lock()
			defer h.mu.Unlock()
			assert.Equal(t, slices.Sorted(maps.Keys(hostCode)), slices.Sorted(maps.Keys(h.entered)))
		})
	}
}

// Code of the host closes the Manager: Close waits for none of it. A logger leaves
// it to a new goroutine, as the documentation of Close says.
func TestHostCodeMayClose(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"tokens", "event", "middleware", "handler", "skill", "call", "list", "progress", "notification", "enricher", "embed", "upsert", "sums", "log"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			begun := false
			var h *tryingHost
			h = newTryingHost(t, "", func(*tryingHost) {
				h.mu.Lock()
				is := h.inside[code] && !begun
				begun = begun || is
				h.mu.Unlock()
				switch {
				case is && code == "log":
					go func() { assert.NoError(t, h.m.Load().Close()); cancel() }()
				case is:
					assert.NoError(t, h.m.Load().Close())
					cancel() // a handler waits for its context
				}
			}, 1)
			m := NewManager(h.options())
			defer m.Close()
			h.m.Store(m)
			within(time.Minute, code, func() {
				_ = m.Start(ctx)
				_ = m.AddTools("l", mcpserver.ServerTool{Tool: mcp.NewTool("handled"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					h.at("handler")
					return mcp.NewToolResultText("ran"), nil
				}})
				for _, name := range []string{"mcp_l__handled", "mcp_hooked__run"} {
					_, _ = m.Call(WithProgress(ctx, func(mcp.ProgressNotificationParams) { h.at("progress") }), name, nil)
				}
				_, _ = m.Call(ctx, SkillLoadToolName, `{"name":"skill"}`)
				_ = m.RefreshHints(ctx)
				<-ctx.Done()
			})
			assert.ErrorIs(t, m.AddTools("x", echoTool("y", "")), ErrClosed)
		})
	}
}

// Whatever of the host's code panics, each time: the Manager lives on, and what
// panicked is named.
func TestHostCodeMayPanic(t *testing.T) {
	t.Parallel()
	for code, name := range hostCode {
		t.Run(code, func(t *testing.T) {
			h := newTryingHost(t, code, func(*tryingHost) {}, 1)
			within(time.Minute, code, h.live)
			if h.mu.Lock(); assert.True(t, h.called[code]) && name != "" {
				assert.Contains(t, h.told.String(), name+": panic: the host's fault")
			}
			h.mu.Unlock()
		})
	}
}
