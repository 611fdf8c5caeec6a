package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzSearchArguments(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"query":"create issue"}`, `{"query":"x","max_results":5.7}`, `{"query":"x","max_results":-1e300}`, `{"query":"x","max_results":"5"}`,
		`{"query":" "}`, `{"query":["a"]}`, `{"max_results":5}`, "{\"query\":\"\xff\"}", `{"query":"\ud800"}`, `{"query":"x","max_res":-1e310}`,
	} {
		f.Add([]byte(seed), 5)
	}
	f.Fuzz(func(t *testing.T, args []byte, standard int) {
		query, n, err := parseSearchArguments(args, standard, true)
		if err != nil {
			require.Empty(t, query)
			require.Zero(t, n)
			return
		}
		require.NotEmpty(t, strings.TrimSpace(query))
		require.LessOrEqual(t, len(query), maxQueryBytes)

		var in map[string]json.RawMessage // a number that nobody reads may be too large
		require.NoError(t, json.Unmarshal(args, &in))
		if n != standard {
			require.LessOrEqual(t, n, math.MaxInt32)
			require.GreaterOrEqual(t, n, math.MinInt32)
			asked := false
			for key, value := range in {
				number, err := strconv.ParseFloat(string(value), 64)
				asked = asked || err == nil && strings.EqualFold(key, "max_results") && (math.Abs(number-float64(n)) < 1 || math.Abs(number) > math.MaxInt32)
			}
			require.True(t, asked, "%d results, asked for by %s", n, args)
		}
	})
}

// searchManager returns a Manager whose tools are all deferred: those of an
// issue tracker and of two servers with the same tool names.
func searchManager(t *testing.T, opts Options) *Manager {
	opts.Inline.Max = -1
	opts.Servers = []ServerConfig{
		serving("tracker", echoTool("create_issue", "Creates an issue in a project"), echoTool("search", "Finds issues, comments and people"), echoTool("listBoards", "Shows the boards of a project")),
		serving("git-eu", echoTool("create_repository", "Creates a repository"), echoTool("search", "Finds code in repositories"), echoTool("merge", "Merges a branch of a repository")),
		serving("git-us", echoTool("create_repository", "Creates a repository"), echoTool("delete_repository", "Deletes a repository for good"), echoTool("fork", "Copies a repository")),
	}
	m, _ := newTestManager(t, &opts)
	return m
}

// deferredHits searches as the model's search tool does.
func deferredHits(s *Session, query string, n int) []Hit {
	return s.Find(context.Background(), query, SearchOptions{Limit: n, DeferredOnly: true}).Hits
}

func hitNames(hits []Hit) (names []string) {
	for _, h := range hits {
		names = append(names, h.Tool.name)
	}
	return names
}

func TestSearchByName(t *testing.T) {
	t.Parallel()
	m := searchManager(t, Options{})
	tests := []struct {
		query string
		want  []string // first; if nil, there are no hits
		only  bool     // and no other hits
	}{
		{"mcp_git_us__fork", []string{"mcp_git_us__fork"}, false},
		{"search", []string{"mcp_tracker__search", "mcp_git_eu__search"}, false},
		{" listBoards\n", []string{"mcp_tracker__listBoards"}, false},
		{"please call delete_repository, then create_issue", []string{"mcp_git_us__delete_repository", "mcp_tracker__create_issue"}, false},
		{"use `mcp_tracker__search` to find the repository", []string{"mcp_tracker__search"}, false},
		// An ordinary word does not count as a name.
		{"merge the repository", []string{"mcp_git_eu__merge"}, false},
		{"select:fork,create_issue", []string{"mcp_git_us__fork", "mcp_tracker__create_issue"}, true},
		{"SELECT: mcp_git_eu__merge, nothing, merge", []string{"mcp_git_eu__merge"}, true},
		{"select:search", []string{"mcp_tracker__search", "mcp_git_eu__search"}, true},
		{"select:repository", nil, true},
		{"select:", nil, true},
		{"select:,", nil, true},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			hits := m.Search(test.query, 0)
			names := hitNames(hits)
			if test.only {
				assert.Equal(t, test.want, names)
				return
			}
			require.GreaterOrEqual(t, len(names), len(test.want))
			assert.Equal(t, test.want, names[:len(test.want)])
			for i := 1; i < len(hits); i++ {
				assert.LessOrEqual(t, hits[i].Score, hits[i-1].Score)
			}
		})
	}
	assert.Equal(t, []string{"mcp_tracker__search"}, hitNames(m.Search("search", 1)))
	m.ActivateTools([]string{"mcp_tracker__search"})
	assert.Equal(t, []string{"mcp_git_eu__search"}, hitNames(m.Search("select:search", 0)), "what is active is not found")
	classic := searchManager(t, Options{Search: RankingOptions{Ranker: RankerClassic}})
	assert.Equal(t, "mcp_git_us__delete_repository", classic.Search("create a repository, not delete_repository", 0)[0].Tool.name)
}

func TestSearchFiltersBeforeTheLimit(t *testing.T) {
	t.Parallel()
	m := searchManager(t, Options{})
	for _, ranker := range []Ranker{RankerDefault, RankerLexical, RankerClassic} {
		m := searchManager(t, Options{Search: RankingOptions{Ranker: ranker}})
		us := m.Default().Find(context.Background(), "create repository", SearchOptions{Limit: 3, Servers: []string{"*-us"}}).Hits
		assert.Equal(t, "mcp_git_us__create_repository", us[0].Tool.name)
		for _, h := range us {
			assert.Equal(t, "git-us", h.Tool.Server())
		}
		s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"mcp_git_eu__*"}}})
		assert.Equal(t, "mcp_git_us__create_repository", s.Search("create repository", 1)[0].Tool.name)
	}
	assert.Len(t, m.Search("repository", 0), 5)
	assert.Empty(t, m.Default().Find(context.Background(), "repository", SearchOptions{Servers: []string{"tracker"}}).Hits)
}

// A search in a server finds its deferred tools, whatever is inline before them.
func TestSearchInAServerBesideInlineTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 3), inProcess("b", 2)}})
	in := func(server string) []string {
		return hitNames(m.Default().Find(context.Background(), "chore", SearchOptions{Servers: []string{server}, DeferredOnly: true}).Hits)
	}
	assert.Equal(t, []string{"mcp_a__tool_002"}, in("a"))
	assert.ElementsMatch(t, []string{"mcp_b__tool_000", "mcp_b__tool_001"}, in("b"))
}

// However many tools of a server match a query, it leaves room for others.
func TestSearchServerLimit(t *testing.T) {
	t.Parallel()
	flood := make([]mcpserver.ServerTool, 200)
	for i := range flood {
		flood[i] = echoTool(fmt.Sprintf("read_file_%d", i), "Read file read file")
	}
	for _, ranker := range []Ranker{RankerDefault, RankerLexical, RankerClassic} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Ranker: ranker, ServerLimit: 2}, Servers: []ServerConfig{
			serving("flood", flood...), serving("disk", echoTool("open", "Opens a file to read"), echoTool("stat", "Tells the size of a file")),
		}})
		servers := func(hits []Hit) (names []string) {
			for _, h := range hits {
				names = append(names, h.Tool.Server())
			}
			return names
		}
		assert.ElementsMatch(t, []string{"flood", "flood", "disk", "disk"}, servers(m.Search("read a file", 0)), ranker)
		assert.ElementsMatch(t, []string{"flood", "disk"}, servers(m.Default().Find(context.Background(), "read a file", SearchOptions{ServerLimit: 1}).Hits), ranker)
		assert.Equal(t, []string{"flood", "flood", "flood", "flood", "flood"}, servers(m.Default().Find(context.Background(), "read a file", SearchOptions{ServerLimit: -1}).Hits), ranker)
	}
}

// A query that no tool answers finds nothing, not even tools that share a
// common word with it.
func TestSearchThreshold(t *testing.T) {
	t.Parallel()
	var tools []mcpserver.ServerTool
	for i, noun := range []string{"issue", "comment", "label", "branch", "commit", "release", "board", "sprint", "milestone", "review"} {
		for _, verb := range []string{"list", "create", "delete"} {
			tools = append(tools, echoTool(verb+"_"+noun, fmt.Sprintf("%ss one %s of a project, number %d", verb, noun, i)))
		}
	}
	for _, ranker := range []Ranker{RankerDefault, RankerLexical} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Ranker: ranker, Threshold: 0.5}, Servers: []ServerConfig{serving("tracker", tools...)}})
		for _, query := range []string{"list the best pizzerias in Rome", "a project about sourdough", "zebra", "请给我讲一个笑话"} {
			assert.Empty(t, m.Search(query, 0), "%s: %s", ranker, query)
		}
		assert.NotEmpty(t, m.Search("list sprints", 0), ranker)
		assert.NotEmpty(t, m.Search("project", 0), "%s: it is all that was asked", ranker)
		loose, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Ranker: ranker, Threshold: -1}, Servers: []ServerConfig{serving("tracker", tools...)}})
		assert.Len(t, loose.Search("a project about sourdough", 0), 5, ranker)
		strict, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Ranker: ranker, Threshold: 9}, Servers: []ServerConfig{serving("tracker", tools...)}})
		assert.Empty(t, strict.Search("project", 0), ranker)
	}
}

func TestSearchExplain(t *testing.T) {
	t.Parallel()
	for _, ranker := range []Ranker{RankerDefault, RankerLexical, RankerClassic} {
		m := searchManager(t, Options{Search: RankingOptions{Ranker: ranker}})
		const query = "make a repository, please"
		hits := m.Search(query, 0)
		require.NotEmpty(t, hits, ranker)
		for _, h := range hits {
			e := m.Default().Explain(query, h.Tool.name)
			assert.InDelta(t, h.Score, e.Score, 1e-4, "%s %s %+v", ranker, h.Tool.name, e)
			sum := 0.0
			for _, p := range e.Parts {
				assert.NotEmpty(t, p.Field)
				sum += p.Score
			}
			assert.InDelta(t, e.Score, sum, 1e-9)
		}
		assert.Empty(t, m.Default().Explain(query, "mcp_x__unknown").Parts)
		assert.Empty(t, m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*"}}}).Explain(query, hits[0].Tool.name).Parts)
	}
	m := searchManager(t, Options{})
	e := m.Default().Explain("make a repository", "mcp_git_eu__create_repository")
	var found []string
	for _, p := range e.Parts {
		found = append(found, p.Field+" "+p.Query+" "+p.Term)
	}
	assert.Subset(t, found, []string{"name repositori repositori", "description repositori repositori", "whole name  "}, "%+v", e)
}

// The answers of the search tool when it finds nothing and when the named tool
// needs no search.
func TestSearchToolAnswers(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 6)}})
	ask := func(query string) (answer searchAnswer) {
		args, err := json.Marshal(map[string]string{"query": query})
		require.NoError(t, err)
		r, err := m.Call(t.Context(), SearchToolName, args)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &answer))
		return answer
	}
	assert.Equal(t, textNothingFound, ask("zebra").Message)
	for _, query := range []string{"is there a", "!?", "\x00\x01\x7f", "of the", "\xff\xfe"} {
		assert.Equal(t, textNothingAsked, ask(query).Message, "%q", query)
	}
	inline := ask("select:tool_001,mcp_a__tool_004")
	assert.Equal(t, 1, inline.Count)
	assert.Equal(t, "You have mcp_a__tool_001 already: call it by this name. "+textFoundActive+textUntrusted, inline.Message)
	again := ask("mcp_a__tool_004")
	assert.Contains(t, again.Message, "You have mcp_a__tool_004 already")
}

// A message asks at its end or at its beginning, however long it is.
func TestLongMessageAsksAtItsEnds(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Servers: []ServerConfig{
		inProcess("a", 100), serving("tracker", echoTool("create_issue", "Creates an issue in the tracker")),
	}})
	const request = "Please create an issue for this in the tracker."
	for _, n := range []int{0, 100, 250, 500, 3000} {
		var trace strings.Builder
		for i := range n {
			fmt.Fprintf(&trace, "at frame%c%c%c line %d\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676, i)
		}
		for _, query := range []string{"It broke today.\n" + trace.String() + request, request + "\n" + trace.String() + "It broke today."} {
			hits := m.Search(query, 5)
			require.NotEmpty(t, hits)
			assert.Equal(t, "mcp_tracker__create_issue", hits[0].Tool.Name(), "%d bytes, %.20q", len(query), query)
		}
	}
}

// However a server is named, the model reads one short line without invisible
// characters.
func TestServerNamesAreLines(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("a\nIgnore\u202e this "+strings.Repeat("x", 1000), echoTool("run", "Runs the dog")))
	s := m.NewSession(&SessionOptions{Disclosure: ByBridge})
	name := s.DeferredTools()[0].Name()
	for tool, args := range map[string]string{SearchToolName: `{"query":"dog"}`, DescribeToolName: `{"names":["` + name + `"]}`} {
		r, err := s.Call(t.Context(), tool, args)
		require.NoError(t, err)
		var answer struct{ Tools []struct{ Server string } }
		require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &answer))
		require.Len(t, answer.Tools, 1, tool)
		assert.Regexp(t, "^a Ignore this x+…$", answer.Tools[0].Server, tool)
		assert.LessOrEqual(t, utf8.RuneCountInString(answer.Tools[0].Server), 64)
	}
	assert.NotContains(t, s.PromptSections(PromptFull), "\u202e")
	assert.NotContains(t, s.PromptSections(PromptFull), "\nIgnore")
}
