package mcphybrid_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC D1: core tools are there whatever the message says. No store has them,
// and nothing finds or activates them.
func TestSpecD1CoreTools(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	m, _ := newTestManager(t, &mcphybrid.Options{Pins: []string{"mcp_s__pay_bill"}, JustInTime: new(mcphybrid.JustInTimeOptions), Servers: []mcphybrid.ServerConfig{inProcess("a", 11), meaningTools()},
		Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Store: store, Least: 0.5}})
	embedded(t, m, 15)
	sums, err := store.Sums(t.Context(), "system")
	require.NoError(t, err)
	assert.Len(t, sums, 15)
	assert.NotContains(t, sums, "mcp_s__pay_bill")
	assert.Empty(t, m.Default().SelectFor(t.Context(), "settle an invoice: pay it from the bank"))
	for _, message := range []string{"", "zebra", "tomorrow's weather"} {
		m.Default().SelectFor(t.Context(), message)
		assert.Equal(t, []string{"mcp_s__pay_bill"}, names(m.InlineTools()))
		assert.Contains(t, names(m.Default().Tools()), "mcp_s__pay_bill")
		assert.NotContains(t, names(m.ActiveTools()), "mcp_s__pay_bill")
	}
}

// at is an embedder in which a text gives its own angle to every query: "cos
// 0.76" has a similarity of 0.76.
type at struct{}

func (at) Model() string   { return "at" }
func (at) Dimensions() int { return 2 }

func (at) Embed(_ context.Context, texts []string) (list [][]float32, err error) {
	for _, text := range texts {
		var cos float64
		_, rest, _ := strings.Cut(text, "cos ")
		if _, err := fmt.Sscan(strings.Split(rest, ". ")[0], &cos); err != nil {
			return nil, err
		}
		list = append(list, []float32{float32(cos), float32(math.Sqrt(1 - cos*cos))})
	}
	return list, nil
}

func (at) EmbedQuery(context.Context, string) ([]float32, error) { return []float32{1, 0}, nil }

// SPEC D3: with the published threshold of 0.75, a less similar tool is not
// found, whether it is the system's or the user's.
func TestSpecD3Threshold(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Semantic: &mcphybrid.SemanticOptions{Embedder: at{}, Least: 0.75}})
	tools := []mcpserver.ServerTool{echoTool("below", "cos 0.74"), echoTool("above", "cos 0.76"), echoTool("far", "cos 0.1")}
	require.NoError(t, m.AddTools("sys", tools...))
	u, own := mcphybrid.NewTestUser(t, m, "u", tools...)
	embedded(t, m, 3)
	embedded(t, own, 3)
	a := u.Default().Find(t.Context(), "zebra", mcphybrid.SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []string{"mcp_own__above", "mcp_sys__above"}, hitNames(a.Hits))
	assert.Equal(t, 2, a.Meaning)
}

// A gate is a store whose searches wait until two are under way.
type gate struct {
	vector.MemoryStore
	mu     sync.Mutex
	scopes []string
	both   chan struct{}
}

func (g *gate) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	g.mu.Lock()
	if g.scopes = append(g.scopes, scope); len(g.scopes) == 2 {
		close(g.both)
	}
	g.mu.Unlock()
	select {
	case <-g.both:
		return g.MemoryStore.Search(ctx, scope, q)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SPEC D3: the two scopes are searched at the same time.
func TestSpecD3InParallel(t *testing.T) {
	t.Parallel()
	store := &gate{both: make(chan struct{})}
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{meaningTools()},
		Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Store: store, Least: 0.5, Timeout: 10 * time.Second}})
	u, own := mcphybrid.NewTestUser(t, m, "u", echoTool("feed", "Feeds the cat"))
	embedded(t, m, 5)
	embedded(t, own, 1)
	a := u.Default().Find(t.Context(), "vet", mcphybrid.SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []string{"mcp_s__groom", "mcp_own__feed", "mcp_s__walk_dog"}, hitNames(a.Hits))
	slices.Sort(store.scopes)
	assert.Equal(t, []string{"system", "user:u"}, store.scopes)
}

// SPEC D5: the embedded text has the tool's own name, its description and the
// names of its arguments, in the order of its schema.
func TestSpecD5EmbeddedText(t *testing.T) {
	t.Parallel()
	e := mcphybrid.NewConcepts(nil)
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Semantic: &mcphybrid.SemanticOptions{Embedder: e}})
	for i, test := range []struct {
		tool mcp.Tool
		want string
	}{
		{mcp.NewTool("send", mcp.WithDescription("Sends mail"), mcp.WithString("to", mcp.Required()), mcp.WithString("body")), "Tool Name: send. Description: Sends mail. Arguments: %s"},
		{mcp.NewTool("stop", mcp.WithDescription("Ends all.\n")), "Tool Name: stop. Description: Ends all."},
		{mcp.NewTool("天气", mcp.WithDescription("明天")), "Tool Name: 天气. Description: 明天."},
		{mcp.NewToolWithRawSchema("a", "b", json.RawMessage(`{"type":"object","properties":{"z":{"type":"object","properties":{"deep":{}}},"y":{}}}`)), "Tool Name: a. Description: b. Arguments: z, deep, y"},
	} {
		require.NoError(t, m.AddTools(fmt.Sprint("s", i), mcpserver.ServerTool{Tool: test.tool}))
		embedded(t, m, i+1)
		text := e.Texts()[i]
		if strings.Contains(test.want, "%s") { // mcp-go writes a map
			assert.Contains(t, []string{fmt.Sprintf(test.want, "to, body"), fmt.Sprintf(test.want, "body, to")}, text)
			continue
		}
		assert.Equal(t, test.want, text)
	}
}

// SPEC D6: a store gets the changed and the removed tools, and no others.
func TestSpecD6OnlyChangesAreStored(t *testing.T) {
	t.Parallel()
	store := new(mcphybrid.Recorder)
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Store: store, Grace: -1}})
	require.NoError(t, m.AddTools("a", echoTool("x", "dog"), echoTool("y", "car")))
	embedded(t, m, 2)
	soon(t, func() bool { return mcphybrid.TextsEmbedded(m) })
	assert.Equal(t, []string{"upsert mcp_a__x mcp_a__y"}, store.Noted())
	require.NoError(t, m.AddTools("b", echoTool("z", "money")))
	embedded(t, m, 3)
	soon(t, func() bool { return mcphybrid.TextsEmbedded(m) })
	assert.Equal(t, []string{"upsert mcp_b__z"}, store.Noted())
	require.True(t, m.RemoveServer("a"))
	embedded(t, m, 1)
	soon(t, func() bool { return mcphybrid.TextsEmbedded(m) })
	assert.Equal(t, []string{"delete mcp_a__x mcp_a__y"}, store.Noted())
}

// SPEC D6: an unchanged index is trusted for 24 hours and then compared with
// the store again. A changed one is compared at once.
func TestSpecD6ADay(t *testing.T) {
	t.Parallel()
	cache, store := mcphybrid.NewTestStore(), new(mcphybrid.Recorder)
	var trust time.Duration
	start := func(tools ...mcpserver.ServerTool) {
		m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{serving("s", tools...)},
			Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Store: store, Cache: cache, CacheTrust: trust, Grace: -1}})
		embedded(t, m, len(tools))
		soon(t, func() bool { return mcphybrid.TextsEmbedded(m) })
		require.NoError(t, m.Close())
	}
	age := func(d time.Duration) {
		var h struct { // the head of the cache's document
			Magic       [8]byte
			Print       [32]byte
			Synced      int64
			Dims, Count uint32
		}
		data, err := cache.Load()
		require.NoError(t, err)
		n, err := binary.Decode(data, binary.LittleEndian, &h)
		require.NoError(t, err)
		h.Synced = time.Now().Add(-d).Unix()
		var b bytes.Buffer
		require.NoError(t, binary.Write(&b, binary.LittleEndian, h))
		require.NoError(t, cache.Save(append(b.Bytes(), data[n:]...)))
	}
	dog, car := echoTool("a", "dog"), echoTool("b", "car")
	start(dog, car)
	require.Equal(t, 1, store.Sum())
	age(24*time.Hour - time.Minute)
	start(dog, car)
	assert.Equal(t, 1, store.Sum())
	age(24 * time.Hour)
	start(dog, car)
	assert.Equal(t, 2, store.Sum())
	start(dog, car)
	assert.Equal(t, 2, store.Sum(), "for another day")
	start(dog)
	assert.Equal(t, 3, store.Sum())
	assert.Equal(t, []string{"upsert mcp_s__a mcp_s__b", "delete mcp_s__b"}, store.Noted())
	trust = -1
	start(dog)
	assert.Equal(t, 4, store.Sum())
	trust = 48 * time.Hour
	age(47 * time.Hour)
	start(dog)
	assert.Equal(t, 4, store.Sum())
}

// SPEC D7: the prompt says that the model sees what a message most likely
// needs, and gives both ways to ask for more. It says neither if all tools are
// inline.
func TestSpecD7PromptNote(t *testing.T) {
	t.Parallel()
	for n, told := range map[int]bool{15: false, 16: true} {
		m, _ := newTestManager(t, &mcphybrid.Options{JustInTime: new(mcphybrid.JustInTimeOptions), Servers: []mcphybrid.ServerConfig{inProcess("a", n)}})
		sections := m.PromptSections(mcphybrid.PromptFull)
		for _, want := range []string{"the tools that a message most likely needs are put into your list", "`SEARCH_TOOLS: ", "call `mcp_tool_search`", fmt.Sprint(n, " more tools")} {
			assert.Equal(t, told, strings.Contains(sections, want), "%d tools: %s", n, want)
		}
	}
	m, _ := newTestManager(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 50)}})
	assert.NotContains(t, m.PromptSections(mcphybrid.PromptFull), "SEARCH_TOOLS:")
}

// SPEC D10: without a store of the host, there is one in this process. It is
// exact and ready with the first tool.
func TestSpecD10EmbeddedStore(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{meaningTools()}, Semantic: &mcphybrid.SemanticOptions{Embedder: mcphybrid.NewConcepts(nil), Least: 0.5}})
	assert.IsType(t, new(vector.MemoryStore), mcphybrid.StoreOf(m))
	embedded(t, m, 5)
	assert.Equal(t, []string{"mcp_s__groom", "mcp_s__walk_dog"}, hitNames(m.Search("vet", 5)))
}
