package mcphybrid_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC E1: between an inclusion and a summary, the higher priority wins, in
// whatever order they are given. An exclusion of any priority wins over both.
func TestSpecE1HigherPriorityFirst(t *testing.T) {
	t.Parallel()
	include := mcphybrid.Rule{Name: "include", Patterns: []string{"build_*"}, Action: mcphybrid.RuleInclude}
	summarize := mcphybrid.Rule{Name: "summarize", Patterns: []string{"build_*"}, Action: mcphybrid.RuleSummarize}
	exclude := mcphybrid.Rule{Name: "exclude", Patterns: []string{"*_js"}, Action: mcphybrid.RuleExclude, Priority: -100}
	for _, test := range []struct {
		include, summarize int
		want               string
	}{{2, 1, "inline"}, {1, 2, "summarized summarize"}, {-1, -2, "inline"}, {-2, -1, "summarized summarize"}} {
		include.Priority, summarize.Priority = test.include, test.summarize
		for _, rules := range [][]mcphybrid.Rule{{include, summarize, exclude}, {exclude, summarize, include}} {
			m, _ := newTestManager(t, &mcphybrid.Options{Rules: rules})
			require.NoError(t, m.AddTools("x", echoTool("build_go", ""), echoTool("build_js", ""), echoTool("deploy", "")))
			assert.Equal(t, map[string]string{"build_go": test.want, "build_js": "hidden exclude", "deploy": "hidden"}, placements(m.Default()), "%+v", test)
		}
	}
}

// SPEC E2: keywords score tools, best first, up to the limit. The name of an
// intent works as words. Names look tools up: a search finds deferred ones, and
// activation takes any.
func TestSpecE2ScoresAndLookups(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 2}, Servers: []mcphybrid.ServerConfig{
		serving("a", echoTool("tasks_create", "Create a task"), echoTool("tasks_list", "List tasks")),
		serving("b", echoTool("run_go_build", "Runs the build of a Go project"), echoTool("build_log", "Shows a log"), echoTool("post", "Sends a message")),
	}})
	var scores []float64
	hits := m.Search("run a build", 2)
	for _, h := range hits {
		scores = append(scores, h.Score)
	}
	assert.Equal(t, []string{"mcp_b__run_go_build", "mcp_b__build_log"}, hitNames(hits))
	assert.Greater(t, scores[0], scores[1])
	assert.Len(t, m.Search("run a build", 1), 1)
	assert.Equal(t, hitNames(hits), hitNames(m.Search("run_build", 5)), "the name of an intent")
	assert.Equal(t, []string{"mcp_b__post"}, hitNames(m.Search("send_message", 1)))
	assert.Equal(t, []string{"mcp_b__post"}, hitNames(m.Search(search.DetectIntents("please send a message to Anna", nil)[0].Name, 1)))

	assert.Equal(t, []string{"mcp_b__post", "mcp_b__build_log"}, hitNames(m.Search("select:post,nope,mcp_b__build_log", 5)), "in the order of the names")
	assert.Empty(t, deferredHits(m, "select:mcp_a__tasks_list", 5), "what is inline needs no search")
	assert.Equal(t, []string{"mcp_a__tasks_list"}, hitNames(m.Search("select:mcp_a__tasks_list", 5)), "but a host may ask where it is")
	assert.Equal(t, []string{"mcp_a__tasks_list", "mcp_b__post"}, m.ActivateTools([]string{"mcp_a__tasks_list", "nope", "mcp_b__post"}))
}

// SPEC E6: tools come and go and rules are loaded while sessions select. Each
// partition is made of one rule set and of whole servers.
func TestSpecE6RegisteringWhileSessionsSelect(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 5}, Servers: []mcphybrid.ServerConfig{inProcess("a", 30)}})
	sets := [][]mcphybrid.Rule{
		{{Name: "even", Patterns: []string{"tool_??0", "tool_??2", "tool_??4", "tool_??6", "tool_??8"}, Action: mcphybrid.RuleInclude}},
		{{Name: "odd", Patterns: []string{"tool_??0", "tool_??2", "tool_??4", "tool_??6", "tool_??8"}, Action: mcphybrid.RuleExclude}},
	}
	require.NoError(t, m.SetRules(sets[0]))
	const rounds = 60
	var wg sync.WaitGroup
	partitions := make([]int, 6)
	for g := range partitions {
		wg.Go(func() {
			s := m.NewSession(nil)
			for range 5 * rounds {
				seen, parity := make(map[string]int), make(map[byte]bool)
				for _, p := range s.Placements() {
					if name := p.Tool.Name(); p.Standing != "hidden" {
						seen[p.Tool.Server()]++
						parity[(name[len(name)-1]-'0')%2] = true
					}
				}
				for server, n := range seen {
					if n != 15 && n != 5 {
						t.Errorf("%d tools of %s are seen", n, server)
					}
				}
				if len(parity) > 1 {
					t.Error("a partition is of two rule sets")
				}
				partitions[g]++
			}
			assert.NoError(t, check(m, s))
		})
	}
	wg.Go(func() {
		for i := range rounds {
			assert.NoError(t, m.SetRules(sets[i%2]))
		}
	})
	for g := range 2 {
		wg.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("more%d", g)
				assert.NoError(t, m.AddServer(t.Context(), inProcess(name, 10)))
				if i < rounds-1 {
					assert.True(t, m.RemoveServer(name))
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, slices.Repeat([]int{5 * rounds}, len(partitions)), partitions)
	assert.Len(t, m.Default().Placements(), 50)
	assert.Equal(t, 25, m.Stats().Tools, "the odd ones")
}

// A host that has detected an intent searches by the words of the message.
func TestSpecE2SearchByIntentAndByNames(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{
		serving("github", echoTool("create_pull_request", "Opens a pull request"), echoTool("list_branches", "Lists branches of a repository")),
		serving("slack", echoTool("post_message", "Sends a message to a channel"), echoTool("list_users", "Lists people")),
	}})
	s := m.NewSession(nil)
	intents := search.DetectIntents("Could you, when you have a minute, open a pull request on GitHub, and then send a message about it to Anna?", nil)
	require.Len(t, intents, 2)
	assert.Equal(t, "version_control", intents[0].Name)
	assert.Equal(t, "mcp_github__create_pull_request", s.Search(strings.Join(intents[0].Keywords, " "), 1)[0].Tool.Name())
	assert.Equal(t, "send_message", intents[1].Name)
	assert.Equal(t, "mcp_slack__post_message", s.Search(strings.Join(intents[1].Keywords, " "), 1)[0].Tool.Name())

	assert.Equal(t, []string{"mcp_slack__list_users", "mcp_github__list_branches"}, hitNames(s.Search("select:list_users,mcp_github__list_branches", 5)))
	assert.Empty(t, s.Search("select:no_such_tool", 5))
}
