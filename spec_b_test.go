package mcphybrid_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC B1: at the start, a tool is a line with its name, which includes its
// server, and 100 characters of its description, or it has no line at all. A
// search tells its server. Its definition comes when it is used.
func TestSpecB1ThreeLayers(t *testing.T) {
	t.Parallel()
	long := "Sends a parcel. " + strings.Repeat("é", 200)
	options := mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Prompt: mcphybrid.PromptOptions{MaxDescription: 100}, Servers: []mcphybrid.ServerConfig{serving("post", echoTool("send_parcel", long), echoTool("buy_stamps", "Buys stamps"))}}
	none, _ := newTestManager(t, &options)
	assert.NotContains(t, none.PromptSections(mcphybrid.PromptFull), "send_parcel")
	assert.Contains(t, none.PromptSections(mcphybrid.PromptFull), "post (2: ")

	options.Rules = []mcphybrid.Rule{{Name: "metadata", Patterns: []string{"*"}, Action: mcphybrid.RuleSummarize}}
	m, _ := newTestManager(t, &options)
	sections := m.PromptSections(mcphybrid.PromptFull)
	short := string([]rune(long)[:99]) + "…"
	require.Equal(t, 100, utf8.RuneCountInString(short))
	assert.Contains(t, sections, "\n- mcp_post__buy_stamps: Buys stamps\n- mcp_post__send_parcel: "+short+"\n")
	var before int
	for _, tool := range m.Default().Tools() {
		before++
		assert.NotContains(t, tool.Name()+tool.Description()+string(tool.InputSchema()), "send_parcel")
	}

	r, err := m.Call(t.Context(), mcphybrid.SearchToolName, `{"query":"parcel"}`)
	require.NoError(t, err)
	var found searchAnswer
	require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &found))
	assert.Equal(t, []foundTool{{Name: "mcp_post__send_parcel", OriginalName: "send_parcel", Server: "post", Description: short}}, found.Tools)
	assert.NotContains(t, resultText(t, r), "properties")
	require.Len(t, m.Default().Tools(), before+1)
	assert.Equal(t, long, m.Default().Tools()[before].Description())
	assert.Contains(t, string(m.Default().Tools()[before].InputSchema()), "properties")
}

// SPEC B2: a stored list is used for 5 minutes. An older one, or one of the
// future, is used too and read again in the background.
func TestSpecB2FiveMinutes(t *testing.T) {
	t.Parallel()
	doc := mcphybrid.NewTestStore()
	first, _ := newTestManager(t, &mcphybrid.Options{Cache: doc, Servers: []mcphybrid.ServerConfig{child(t, "one", "plain")}})
	require.NoError(t, first.Close())
	for _, test := range []struct {
		age  time.Duration
		want mcphybrid.State
	}{{0, mcphybrid.StateCached}, {5*time.Minute - 20*time.Second, mcphybrid.StateCached}, {5*time.Minute + time.Second, mcphybrid.StateReady}, {-time.Hour, mcphybrid.StateReady}} {
		data, err := doc.Load()
		require.NoError(t, err)
		listed := regexp.MustCompile(`"listed":"[^"]*"`)
		require.Len(t, listed.FindAll(data, -1), 1)
		data = listed.ReplaceAll(data, fmt.Appendf(nil, `"listed":%q`, time.Now().Add(-test.age).Format(time.RFC3339Nano)))
		require.NoError(t, doc.Save(data))

		m, _ := newTestManager(t, &mcphybrid.Options{Cache: doc, Servers: []mcphybrid.ServerConfig{child(t, "one", "plain")}})
		assert.Len(t, m.InlineTools(), 6, "at once")
		soon(t, func() bool { return m.Servers()[0].State != mcphybrid.StateConnecting })
		assert.Equal(t, test.want, m.Servers()[0].State, test.age)
		require.NoError(t, m.Close())
	}
}

// SPEC B4: 10 candidates by words and 10 by meaning make 5 results without
// duplicates. While tools are being embedded, words find them.
func TestSpecB4TenAndTen(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	e := mcphybrid.NewConcepts(func(ctx context.Context) error {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	var tools []mcpserver.ServerTool
	for i := range 20 {
		tools = append(tools, echoTool(fmt.Sprintf("kennel_%02d", i), "Has a place for the dog"), echoTool(fmt.Sprintf("clinic_%02d", i), "Heals each animal and pet"))
	}
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{serving("s", tools...)}, Semantic: &mcphybrid.SemanticOptions{Embedder: e, Candidates: 10}})
	a := m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{})
	assert.ErrorIs(t, a.Err, mcphybrid.ErrNotEmbedded)
	assert.Len(t, a.Hits, 5)
	close(ready)
	embedded(t, m, 40)

	a = m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{})
	require.NoError(t, a.Err)
	assert.Equal(t, []int{10, 10, 5}, []int{a.Words, a.Meaning, len(a.Hits)})
	// Both sides find more than five of the same tools. Each tool is in the
	// results once.
	a = m.Default().Find(t.Context(), "dog", mcphybrid.SearchOptions{Limit: 20})
	names := hitNames(a.Hits)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
	assert.LessOrEqual(t, len(names), 20)
	assert.Positive(t, a.Hits[0].Words)
	assert.Positive(t, a.Hits[0].Similarity)
}

// SPEC B6: with 53,000 tokens of definitions, a request has at most 2,600 at
// the start, 3,200 with one tool in use and 6,500 with five. This counts
// everything that is there because of tools, including the answers of meta
// tools. Each tool is searched for by the words of its name and then used.
func TestSpecB6Savings(t *testing.T) {
	t.Parallel()
	tokens := func(text string) int { return (len(text) + 3) / 4 } // as a Manager counts by default
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	data, err := os.ReadFile("testdata/corpus/tools.jsonl")
	require.NoError(t, err)
	of := make(map[string][]mcpserver.ServerTool)
	for line := range bytes.Lines(data) {
		var in struct {
			Server, Name, Description string
			Schema                    json.RawMessage `json:"input_schema"`
		}
		require.NoError(t, json.Unmarshal(line, &in))
		of[in.Server] = append(of[in.Server], mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(in.Name, in.Description, in.Schema)})
	}
	for _, copies := range []string{"", "2"} { // like two accounts of one service
		for _, server := range slices.Sorted(maps.Keys(of)) {
			if m.Stats().Tokens.All < 53_000 {
				require.NoError(t, m.AddTools(server+copies, of[server]...))
			}
		}
	}
	all := m.Stats().Tokens.All
	require.InDelta(t, 53_000, all, 2_000)
	tools := m.DeferredTools()
	for _, way := range []struct {
		disclosure mcphybrid.Disclosure
		results    int
	}{{mcphybrid.ByActivation, 5}, {mcphybrid.ByActivation, 2}, {mcphybrid.ByBridge, 5}} {
		worst := make(map[int]int)
		for seed := range uint64(50) {
			for used, most := range map[int]int{0: 2600, 1: 3200, 5: 6500} {
				random := rand.New(rand.NewPCG(seed, 1))
				s := m.NewSession(&mcphybrid.SessionOptions{Disclosure: way.disclosure})
				cost := 0
				for range used {
					tool := tools[random.IntN(len(tools))]
					query := fmt.Sprintf(`{"query":%q,"max_results":%d}`, strings.ReplaceAll(tool.OriginalName(), "_", " "), way.results)
					_, err := s.Call(t.Context(), mcphybrid.SearchToolName, query)
					require.NoError(t, err)
					if way.disclosure == mcphybrid.ByBridge {
						r, err := s.Call(t.Context(), mcphybrid.DescribeToolName, fmt.Sprintf(`{"names":[%q]}`, tool.Name()))
						require.NoError(t, err)
						cost += tokens(resultText(t, r))
					} else {
						require.True(t, s.ActivateToolIfDeferred(tool.Name()), "the model calls it, found or not")
					}
				}
				st := s.Stats().Tokens
				cost += st.Inline + st.Meta + st.Active + st.Sections + st.Searches
				assert.LessOrEqual(t, cost, most, "seed %d, %d used", seed, used)
				worst[used] = max(worst[used], cost)
			}
		}
		t.Logf("%+v: of %d tokens, at most %v by tools used", way, all, worst)
	}
}

// SPEC B6: a start from the cache takes at most 15 % of a start that connects.
// Both are medians of five.
func TestSpecB6ColdStart(t *testing.T) {
	doc := mcphybrid.NewTestStore()
	start := func(cache store.Document) time.Duration {
		m := mcphybrid.NewManager(&mcphybrid.Options{Cache: cache, Servers: []mcphybrid.ServerConfig{child(t, "one", "plain"), child(t, "two", "plain"), child(t, "three", "plain")}})
		start := time.Now()
		require.NoError(t, m.Start(t.Context()))
		took := time.Since(start)
		assert.Equal(t, 18, m.Stats().Tools)
		require.NoError(t, m.Close())
		return took
	}
	start(doc)
	var ways [2][]time.Duration
	for range 5 { // alternating, so that other load affects both
		ways[0], ways[1] = append(ways[0], start(nil)), append(ways[1], start(doc))
	}
	for _, took := range ways {
		slices.Sort(took)
	}
	connecting, cached := ways[0][2], ways[1][2]
	t.Logf("connecting: %v; from the cache: %v", connecting, cached)
	assert.LessOrEqual(t, cached, connecting*15/100)
}
