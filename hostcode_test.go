package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Arguments of the host's making that can't be written are refused, and told as
// repeated when they come again.
func TestArgumentsThatContainThemselves(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("a", echoTool("run", "")))
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for i, args := range []any{cyclic, cyclic, func() {}, panickingArguments{}} {
		result, err := m.Call(t.Context(), "mcp_a__run", args)
		require.ErrorIs(t, err, ErrBadArguments)
		assert.True(t, result.IsError)
		var bad *ArgumentsError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, []int{0, 1, 0, 0}[i], bad.Repeated)
		result, err = m.Call(t.Context(), SearchToolName, args)
		assert.ErrorIs(t, err, ErrBadArguments)
		assert.Contains(t, resultText(t, result), "mcp_tool_search was not run: ")
	}
}

type panickingArguments struct{}

func (panickingArguments) MarshalJSON() ([]byte, error) { panic("not mine") }

// What a failed AddTools was for is free afterwards.
func TestAddToolsTakesNoName(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	require.ErrorIs(t, m.AddTools("x", echoTool("a", ""), echoTool("a", "")), ErrDuplicate)
	assert.False(t, m.RemoveServer("x"), "there is nothing to remove")
	assert.NoError(t, m.AddServer(t.Context(), inProcess("x", 1)))
}

// Close does not wait for code of the host that does not heed its context.
func TestCloseWaitsForNoStuckHost(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	stuck := func(reached chan<- struct{}) func() {
		return sync.OnceFunc(func() { close(reached); <-release })
	}
	for name, configure := range map[string]func(o *Options, hang func()){
		"embedder": func(o *Options, hang func()) {
			e := newConcepts()
			e.embed = func(context.Context) error { hang(); return nil }
			o.Semantic = &SemanticOptions{Embedder: e}
		},
		"store": func(o *Options, hang func()) {
			doc := new(failingStore)
			doc.failing = func(context.Context) error { hang(); return nil }
			o.Semantic = &SemanticOptions{Embedder: newConcepts(), Store: doc}
		},
		"vector cache": func(o *Options, hang func()) {
			o.Semantic = &SemanticOptions{Embedder: newConcepts(), Cache: hangingStore{hang}}
		},
		"skill": func(o *Options, hang func()) {
			o.Skills = []Skill{{Name: "s", Description: "d", Load: func(context.Context) (string, error) { hang(); return "", nil }}}
		},
		"counter": func(o *Options, hang func()) {
			o.Tokens, o.Servers = countFunc(func(text string) int { hang(); return len(text) }), []ServerConfig{inProcess("b", 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{})
			o := Options{Inline: InlineOptions{Max: -1}}
			configure(&o, stuck(reached))
			m := NewManager(&o)
			go func() {
				_ = m.Start(context.Background())
				_ = m.AddTools("a", echoTool("x", ""))
				_, _ = m.Call(context.Background(), SkillLoadToolName, `{"name":"s"}`)
			}()
			<-reached
			within(time.Minute, "Close", func() { require.NoError(t, m.Close()) })
		})
	}
}

// Close waits for stores that hang, but not for ever, and so do a start and a change.
func TestCloseOfStoresThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, configure := range map[string]func(*Options, store.Document){
			"cache": func(o *Options, s store.Document) { o.Cache = s },
			"trust": func(o *Options, s store.Document) { o.TrustStore = s },
			"usage": func(o *Options, s store.Document) { o.Usage = &UsageOptions{Store: s} },
			"learn": func(o *Options, s store.Document) { o.Learn = &LearnOptions{Store: s} },
		} {
			release := make(chan struct{})
			o := &Options{Servers: []ServerConfig{inProcess("b", 1)}}
			configure(o, savesLater{release})
			m := NewManager(o)
			start := time.Now()
			require.NoError(t, m.Start(t.Context()))
			_, err := m.Call(t.Context(), "mcp_b__tool_000", nil)
			require.NoError(t, err)
			require.NoError(t, m.AddTools("a", echoTool("x", "")))
			require.NoError(t, m.Close())
			assert.Less(t, time.Since(start), 30*time.Second, name)
			assert.Greater(t, time.Since(start), 10*time.Second, name)
			close(release)
			synctest.Wait()
		}
	})
}

// savesLater is a document whose Save hangs until the channel is closed.
type savesLater struct{ release chan struct{} }

func (s savesLater) Load() ([]byte, error) { return nil, nil }
func (s savesLater) Save([]byte) error     { <-s.release; return nil }

type countFunc func(string) int

func (f countFunc) CountTokens(text string) int { return f(text) }

type hangingStore struct{ hang func() }

func (s hangingStore) Load() ([]byte, error) { s.hang(); return nil, nil }
func (hangingStore) Save([]byte) error       { return nil }

// A nil context is the caller's fault, and costs only the call.
func TestNilContext(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts()}, Servers: []ServerConfig{inProcess("a", 3)}})
	u := newUser(t, m, "u", nil, echoTool("x", ""))
	down := NewManager(&Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{child(t, "silent", "silent")}})
	defer down.Close()
	var none context.Context
	for name, use := range map[string]func(){
		"call":    func() { _, _ = m.Call(none, "mcp_a__tool_001", nil) },
		"search":  func() { _, _ = m.Call(none, SearchToolName, `{"query":"chore"}`) },
		"find":    func() { m.Default().Find(none, "chore", SearchOptions{}) },
		"select":  func() { m.Default().SelectFor(none, "chore") },
		"add":     func() { _ = m.AddServer(none, inProcess("b", 1)) },
		"start":   func() { _ = m.Start(none) },
		"preload": func() { _ = m.Preload(none, "*") },
		"users":   func() { u.Default().Find(none, "chore", SearchOptions{}) },
		"begin":   func() { _ = down.Start(none) },
		"drop":    func() { _ = m.DropUser(none, "u") },
		"refresh": func() { _ = m.RefreshHints(none) },
	} {
		within(time.Minute, name, func() {
			func() {
				defer func() { _ = recover() }()
				use()
			}()
			m.Servers()
			m.Stats()
			require.NoError(t, m.AddTools("after "+name, echoTool("x", "")))
		})
	}
	m.RemoveServer("b")
	within(time.Minute, "Close", func() { require.NoError(t, m.Close()) })
}

// A handler may remove its own tools, close its session and, in a server of this
// process, remove the server and close the Manager.
func TestHandlersCloseWhatRunsThem(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{inProcess("b", 2)}})
	require.NoError(t, m.Start(t.Context()))
	s := m.NewSession(nil)
	closer := func(f func()) mcpserver.ServerTool {
		return mcpserver.ServerTool{Tool: mcp.NewTool("c"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f()
			return mcp.NewToolResultText("ok"), nil
		}}
	}
	require.NoError(t, m.AddTools("l1", closer(func() { m.RemoveServer("l1") })))
	within(time.Minute, "l1", func() { _, _ = s.Call(t.Context(), "mcp_l1__c", nil) })
	require.NoError(t, m.AddTools("l2", closer(func() { s.Close() })))
	within(time.Minute, "l2", func() { _, _ = s.Call(t.Context(), "mcp_l2__c", nil) })
	require.NoError(t, m.AddServer(t.Context(), serving("p", closer(func() { m.RemoveServer("p") }))))
	within(time.Minute, "p", func() { _, _ = m.Call(t.Context(), "mcp_p__c", nil) })
	require.NoError(t, m.AddServer(t.Context(), serving("q", closer(func() { _ = m.Close() }))))
	within(time.Minute, "q", func() { _, _ = m.Call(t.Context(), "mcp_q__c", nil) })
	assert.ErrorIs(t, m.AddTools("x", echoTool("y", "")), ErrClosed)
}

// The last turn of all is not followed by the first.
func TestTurnsEnd(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Active: ActiveOptions{Max: 1, Turns: 1}, Servers: []ServerConfig{inProcess("a", 5)}})
	s, _, err := m.RestoreSession(json.RawMessage(`{"version":2,"turn":9223372036854775807,"tools":[{"name":"mcp_a__tool_003","server":"a","own":"tool_003"},{"name":"mcp_a__tool_002","server":"a","own":"tool_002"}],"active":[{"tool":1,"used":1},{"tool":2,"used":2}]}`), nil)
	require.NoError(t, err)
	s.NextTurn()
	assert.Contains(t, string(s.Save()), `"turn":9223372036854775807`)
	assert.NotEmpty(t, s.Compact())
}

// Everything can be called after Close, and nothing is there.
func TestUseAfterClose(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		m := NewManager(&Options{Servers: []ServerConfig{inProcess("a", 60)}, Skills: someSkills(5), JustInTime: &JustInTimeOptions{}})
		require.NoError(t, m.Start(t.Context()))
		s := m.NewSession(&SessionOptions{Disclosure: d, Registry: NewRegistry()})
		u, err := m.NewUser("u", &UserOptions{Servers: []ServerConfig{inProcess("own", 3)}})
		require.NoError(t, err)
		require.NoError(t, u.Start(t.Context()))
		us := u.NewSession(&SessionOptions{Disclosure: d})
		for _, x := range []*Session{s, us, m.Default()} {
			x.PromptSections(PromptFull)
			x.ActivateTools([]string{"mcp_a__tool_050"})
			x.Tools()
		}
		state := s.Save()
		require.NoError(t, m.Close())
		for _, x := range []*Session{s, us, m.Default(), m.NewSession(nil), m.NewSession(&SessionOptions{Registry: NewRegistry()})} {
			useSession(t.Context(), x, "mcp_a__tool_050")
			assert.Empty(t, x.Tools())
			x.Close()
			x.Close()
		}
		_, _, err = m.RestoreSession(state, nil)
		assert.NoError(t, err)
		_, err = m.NewUser("v", nil)
		assert.ErrorIs(t, err, ErrClosed)
		for name, err := range map[string]error{
			"AddTools": m.AddTools("x", echoTool("y", "")), "SetRules": m.SetRules([]Rule{}), "SetSkills": m.SetSkills(nil),
			"Start": m.Start(t.Context()), "AddServer": m.AddServer(t.Context(), inProcess("z", 1)),
		} {
			assert.ErrorIs(t, err, ErrClosed, name)
		}
		m.Servers()
		m.Problems()
		m.Marks()
		assert.False(t, m.RemoveServer("a"))
		assert.Error(t, m.Accept("a", "b", "c"))
		_ = m.Reorder()
		_ = m.DropUser(t.Context(), "u")
		_ = m.Preload(t.Context(), "*")
		assert.NoError(t, u.Close())
		assert.NoError(t, m.Close())
	}
}

// useSession calls the methods of a session.
func useSession(ctx context.Context, s *Session, tool string) {
	s.Stats()
	s.Tools()
	s.PromptSections(PromptFull)
	s.Save()
	s.Search("chore", 3)
	s.Find(ctx, "chore", SearchOptions{})
	s.Explain("chore", tool)
	s.Placements()
	s.OverrideBlock()
	hintsOf(s, tool)
	s.ActivateTools([]string{tool})
	_, _ = s.Call(ctx, tool, nil)
	_, _ = s.Call(ctx, SearchToolName, `{"query":"chore"}`)
	_, _ = s.Call(ctx, SkillLoadToolName, `{"name":"a001"}`)
	s.Compact()
	s.NextTurn()
	s.NewChild(nil).Stats()
	s.SelectFor(ctx, "chore")
	_, _ = s.Export(provider.Anthropic)
	s.SetIntent("x")
	s.DeferredTools()
	s.InlineTools()
	s.ActiveTools()
	s.SearchTool()
	s.IsSearchMode()
}

// Close ends, whatever goes on, and leaves nothing.
func TestCloseDuringEverything(t *testing.T) {
	t.Parallel()
	for seed := range mcptest.Long(uint64(30), 4) {
		e := newConcepts()
		var asked atomic.Int64
		e.embed = func(context.Context) error {
			switch asked.Add(1) % 4 {
			case 0:
				return errors.New("flaky")
			case 1:
				panic("flaky")
			}
			return nil
		}
		m := NewManager(&Options{Inline: InlineOptions{Max: 5}, Cache: new(mcptest.Store), TrustStore: new(mcptest.Store), Usage: &UsageOptions{Store: new(mcptest.Store)},
			Semantic: &SemanticOptions{Embedder: e, Cache: new(mcptest.Store), Grace: -1}, Skills: someSkills(70), Logger: slog.New(slog.DiscardHandler),
			Limits:  config.Limits{Refresh: 20 * time.Millisecond, Reconnect: time.Millisecond},
			Servers: []ServerConfig{inProcess("a", 12), inProcess("b", 12)}})
		shared := m.NewSession(&SessionOptions{Registry: NewRegistry()})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var steps atomic.Int64
		enough := make(chan struct{})
		for g := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(g)))
				for ctx.Err() == nil {
					if steps.Add(1) == 400 {
						close(enough)
					}
					disturb(ctx, m, shared, r)
				}
			})
		}
		<-enough
		within(time.Minute, "Close", func() { assert.NoError(t, m.Close()) })
		cancel()
		wg.Wait()
		assert.Empty(t, shared.Tools())
		assert.Empty(t, m.Default().Tools())
	}
}

// disturb does one thing.
func disturb(ctx context.Context, m *Manager, s *Session, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
	defer cancel()
	if r.IntN(2) == 0 {
		s = m.NewSession(&SessionOptions{Disclosure: Disclosure(r.IntN(3))})
	}
	switch r.IntN(12) {
	case 0:
		_ = m.Start(ctx)
	case 1:
		_ = m.AddServer(ctx, inProcess(fmt.Sprint("s", r.IntN(4)), 3))
	case 2:
		m.RemoveServer(fmt.Sprint("s", r.IntN(4)))
	case 3:
		_ = m.AddTools("l", echoTool(fmt.Sprint("x", r.IntN(100)), "dog"))
	case 4:
		u, err := m.NewUser(fmt.Sprint("u", r.IntN(3)), &UserOptions{Servers: []ServerConfig{inProcess("own", 3)}, Registry: NewRegistry()})
		if err == nil {
			_ = u.Start(ctx)
			useSession(ctx, u.NewSession(nil), "mcp_own__tool_001")
			if r.IntN(2) == 0 {
				_ = u.Close()
			}
		}
	case 5:
		_ = m.DropUser(ctx, fmt.Sprint("u", r.IntN(3)))
	case 6:
		_ = m.SetSkills(someSkills(r.IntN(80)))
	case 7:
		_ = m.SetRules([]Rule{{Name: "r", Patterns: []string{fmt.Sprintf("*%d", r.IntN(10))}, Action: RuleExclude}})
	case 8:
		_, _, _ = m.RestoreSession(s.Save(), nil)
	case 9:
		useSession(ctx, s, fmt.Sprintf("mcp_a__tool_%03d", r.IntN(12)))
	case 10:
		_ = m.Reorder()
		_ = m.Preload(ctx, "*")
	case 11:
		m.Problems()
		m.Servers()
		m.RemoveServer("l")
	}
}

// Stores whose documents were damaged at random cost what they hold, and nothing
// else.
func TestDamagedStores(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: a hundred damaged stores")
	}
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	stores := []*mcptest.Store{{}, {}, {}, {}, {}}
	run := func(policy TrustPolicy) {
		m := NewManager(&Options{Inline: InlineOptions{Max: 2}, Cache: stores[0], Trust: policy, TrustStore: stores[1], Usage: &UsageOptions{Store: stores[2]}, Learn: &LearnOptions{Store: stores[4]},
			Semantic: &SemanticOptions{Embedder: newConcepts(), Cache: stores[3]},
			Servers:  []ServerConfig{inProcess("a", 5), {Name: "h", URL: "http://127.0.0.1:1/x"}}})
		_ = m.Start(t.Context())
		s := m.NewSession(nil)
		s.Tools()
		_, _ = s.Call(t.Context(), "mcp_a__tool_004", `{}`)
		s.Search("chore", 3)
		_ = m.Reorder()
		soon(t, func() bool { return m.semantic.InStep() || len(m.DeferredTools()) == 0 }) // none, if a damaged store stops the start
		assert.NoError(t, check(m, s))
		require.NoError(t, m.Close())
	}
	run(TrustWarn)
	stores[0].Data = []byte(`{"version":1,"servers":{"h":{"config":"` + cacheKey(&ServerConfig{Name: "h", URL: "http://127.0.0.1:1/x"}, nil, public) +
		`","listed":"2026-01-01T00:00:00Z","tools":["{\"name\":\"x\",\"inputSchema\":{\"type\":\"object\"}}"]}}}`)
	var whole [][]byte
	for i, s := range stores {
		require.NotEmpty(t, s.Data, "%d", i)
		whole = append(whole, s.Data)
	}
	for i := range mcptest.Long(1000, 100) {
		for k, s := range stores {
			require.NoError(t, s.Save(damaged(whole[k], r)))
		}
		run([]TrustPolicy{TrustWarn, TrustQuarantine}[i%2])
	}
}

// damaged returns data with some of its bytes changed, added or missing.
func damaged(data []byte, r *rand.Rand) []byte {
	d := slices.Clone(data)
	for range 1 + r.IntN(4) {
		if len(d) == 0 {
			break
		}
		i, j := r.IntN(len(d)), r.IntN(len(d))
		switch r.IntN(5) {
		case 0:
			d[i] ^= 1 << r.IntN(8)
		case 1:
			d = d[:i]
		case 2:
			d = slices.Insert(d, i, []byte("9999999999999999999")...)
		case 3:
			d = slices.Delete(d, min(i, j), max(i, j))
		case 4:
			d[i] = byte(r.IntN(256))
		}
	}
	return d
}

// A crafted vector cache is refused, and the tools are embedded.
func TestCraftedCacheOfVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &mcptest.Store{Data: append([]byte("mcpvec02"+strings.Repeat("\x00", 40)+"\x04\x00\xfc\xff\x02\x00\x01\x40"), make([]byte, 64)...)}
		e := newConcepts()
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e, Cache: cache}})
		require.NoError(t, m.AddTools("a", echoTool("run", "dog")))
		synctest.Wait()
		assert.Equal(t, 1, e.embedded())
		assert.Equal(t, 1, vector.LoadCache(cache, "concepts", nil).Len(), "and replaced")
		require.NoError(t, m.Close())
	})
}

type panickingContent struct{ mcp.TextContent }

func (panickingContent) MarshalJSON() ([]byte, error) { panic("not mine") }

// A result of the host's making that can't be written fails its call only.
func TestResultsThatPanic(t *testing.T) {
	t.Parallel()
	for _, result := range []*mcp.CallToolResult{{StructuredContent: panickingArguments{}}, {Content: []mcp.Content{panickingContent{}}}} {
		m, _ := newTestManager(t, nil)
		require.NoError(t, m.AddTools("own", mcpserver.ServerTool{
			Tool:    mcp.NewTool("run"),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil },
		}))
		r, err := m.Call(t.Context(), "mcp_own__run", nil)
		require.EqualError(t, err, "the tool's result: panic: not mine")
		assert.True(t, r.IsError)
	}
}
