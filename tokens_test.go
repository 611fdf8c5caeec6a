package mcphybrid

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpecE3EstimateAndPrune(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 5)}})
	tools := m.InlineTools()
	each := EstimateTokens(tools[:1], nil)
	assert.Equal(t, (len(definitionText(tools[0]))+3)/4, each)
	assert.Equal(t, m.Stats().Tokens.Inline, EstimateTokens(tools, nil), "what the figures say, too")
	assert.Equal(t, 5*100, EstimateTokens(tools, constantTokens(100)))

	assert.Empty(t, Prune(tools, each-1, nil))
	assert.Len(t, Prune(tools, each, nil), 1)
	assert.Len(t, Prune(tools, 2*100+99, constantTokens(100)), 2)
	assert.Equal(t, tools, Prune(tools, 500, constantTokens(100)))
	assert.Empty(t, Prune(tools, -1, constantTokens(0)))
	assert.Empty(t, Prune([]Tool(nil), 10, nil))
}

type constantTokens int

func (c constantTokens) CountTokens(string) int { return int(c) }

// The inline tools fit the budget, without counting pins. A pin is never lost,
// and a larger budget loses no tool.
func TestSpecE3BudgetProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var tools []*BridgeTool
		var pins []string
		pinned, all := 0, 0
		for i := range 1 + rnd.IntN(50) {
			tool := namedTool(fmt.Sprint("tool", i))
			cost := 1 + rnd.IntN(1000)
			tool.tokens.Store(int64(cost))
			tool.def.Always, tool.def.Server = rnd.IntN(5) == 0, fmt.Sprint(i/10)
			tools = append(tools, tool)
			all += cost
			if rnd.IntN(8) == 0 {
				pins = append(pins, tool.name)
				pinned += cost
			}
		}
		limit := 1 + rnd.IntN(50)
		var before []*BridgeTool
		for budget := 1; budget < 2*all; budget += 1 + rnd.IntN(all) {
			opts := Options{Inline: InlineOptions{Max: limit, MaxTokens: budget}, Pins: pins}
			s := judged(policyOf(opts), tools)
			require.Equal(t, s.verdicts, judged(policyOf(opts), tools).verdicts)
			cost := 0
			for _, tool := range s.inlineTools {
				cost += int(tool.tokens.Load())
			}
			require.LessOrEqual(t, cost, max(budget, pinned), "seed %d, budget %d", seed, budget)
			for _, tool := range before {
				require.Contains(t, s.inlineTools, tool, "seed %d, budget %d", seed, budget)
			}
			for i, tool := range tools {
				if slices.Contains(pins, tool.name) {
					require.Equal(t, verdict{standing: inline, why: whyPin}, s.verdicts[0].ofTool(i))
				}
			}
			before = s.inlineTools
		}
	}
}

func TestSpecE3ShareOfTheWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts Options
		want int
	}{
		{Options{}, 10},
		{Options{Inline: InlineOptions{MaxTokens: 450}}, 4},
		{Options{Inline: InlineOptions{ContextWindow: 3000}}, 3},
		{Options{Inline: InlineOptions{ContextWindow: 3000, Share: 0.25}}, 7},
		{Options{Inline: InlineOptions{ContextWindow: 3000, MaxTokens: 200}}, 2},
		{Options{Inline: InlineOptions{Max: 1, MaxTokens: 450}}, 1},
		{Options{Inline: InlineOptions{ContextWindow: NoLimit, Share: 1}}, 10},
		{Options{Inline: InlineOptions{ContextWindow: 9}}, 0},
	} {
		test.opts.Tokens = constantTokens(100)
		test.opts.Servers = []ServerConfig{inProcess("a", 10)}
		m, _ := newTestManager(t, &test.opts)
		assert.Len(t, m.InlineTools(), test.want, "%+v", test.opts)
		assert.Equal(t, test.want < 10, m.IsSearchMode())
		if test.want < 10 {
			assert.Len(t, deferredHits(m.def, "chore", 20), 10-test.want, "what is not inline is found")
		}
	}
	for _, opts := range []Options{{Inline: InlineOptions{Share: 2}}, {Inline: InlineOptions{Share: -1}}} {
		assert.Panics(t, func() { NewManager(&opts) }, "%+v", opts)
	}
}

func hintedTool(name string, meta map[string]any) mcpserver.ServerTool {
	t := echoTool(name, "Does "+name)
	t.Tool.Meta = &mcp.Meta{AdditionalFields: meta}
	return t
}

// A server's tools that are always loaded take none of the places of a server of the
// same name that another owner has.
func TestAlwaysLoadedByOwner(t *testing.T) {
	t.Parallel()
	wanted := func(of string) ServerConfig {
		var tools []mcpserver.ServerTool
		for i := range maxAlwaysLoaded {
			tools = append(tools, hintedTool(fmt.Sprint(of, i), map[string]any{"anthropic/alwaysLoad": true}))
		}
		return serving("github", tools...)
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2 * maxAlwaysLoaded}, Servers: []ServerConfig{inProcess("first", 10), wanted("system")}})
	u, err := m.NewUser("ann", &UserOptions{Servers: []ServerConfig{wanted("own")}})
	require.NoError(t, err)
	require.NoError(t, u.Start(t.Context()))
	tools := u.NewSession(nil).InlineTools()
	require.Len(t, tools, 2*maxAlwaysLoaded)
	for _, tool := range tools {
		assert.Equal(t, "github", tool.Server(), tool.Name())
	}
}

// A server may ask for tools to be inline and give words to find them by,
// within limits.
func TestServerHints(t *testing.T) {
	t.Parallel()
	var tools []mcpserver.ServerTool
	for i := range 6 {
		tools = append(tools, hintedTool(fmt.Sprint("plain", i), map[string]any{"anthropic/searchHint": []string{"of the wrong type"}}))
	}
	for i := range 7 {
		tools = append(tools, hintedTool(fmt.Sprint("want", i), map[string]any{"anthropic/alwaysLoad": true, "anthropic/searchHint": "zebra crossing"}))
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 8}, Pins: []string{"*plain5"}})
	require.NoError(t, m.AddTools("a", tools...))
	var names []string
	for _, tool := range m.InlineTools() {
		names = append(names, tool.def.Own)
	}
	assert.Equal(t, []string{"plain0", "plain1", "plain5", "want0", "want1", "want2", "want3", "want4"}, names)
	hits := deferredHits(m.def, "zebra", 5)
	require.Len(t, hits, 2)
	assert.Equal(t, "want5", hits[0].Tool.def.Own)
	reasons := make(map[string]string)
	for _, p := range m.Default().Placements() {
		reasons[p.Tool.def.Own] = p.Standing + ": " + p.Reason
	}
	assert.Equal(t, "inline: there is room", reasons["plain1"])
	assert.Equal(t, "inline: it is pinned", reasons["plain5"])
	assert.Equal(t, "inline: its server wants it always loaded", reasons["want4"])
	assert.Equal(t, "deferred: 8 tools before it are inline", reasons["want5"])
}

// Whatever a counter returns, sums are sums.
func TestTokensDoNotOverflow(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{math.MaxInt: 1 << 30, math.MinInt: 0, 1<<30 + 1: 1 << 30, 1 << 20: 1 << 20} {
		counter := countFunc(func(string) int { return count })
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Tokens: counter, Servers: []ServerConfig{inProcess("a", 3)}})
		tokens := m.Stats().Tokens
		assert.Equal(t, 3*want, tokens.All, count)
		assert.GreaterOrEqual(t, tokens.Sent(), 0)
		tools := m.DeferredTools()
		require.NotEmpty(t, tools)
		assert.Equal(t, len(tools)*want, EstimateTokens(tools, counter))
		assert.Equal(t, want == 0, len(Prune(tools, 1, counter)) == len(tools))
	}
}

// A counter may use the session for which it counts.
func TestCounterMayUseTheSession(t *testing.T) {
	t.Parallel()
	var s atomic.Pointer[Session]
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{inProcess("a", 3)}, Tokens: countFunc(func(text string) int {
		if s := s.Load(); s != nil {
			s.ActiveTools()
		}
		return len(text) / 4
	})})
	s.Store(m.NewSession(&SessionOptions{Client: true}))
	within(time.Minute, "the description", func() { assert.Contains(t, s.Load().SearchTool().Description(), "a (3)") })
}
