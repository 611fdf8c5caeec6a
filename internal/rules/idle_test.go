package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIdle(t *testing.T) {
	t.Parallel()
	k := Known{Tools: []Subject{
		{Name: "mcp_git__push", Server: "git", Own: "push"},
		{Name: "mcp_git_0a1b__pull", Server: "git2", Own: "pull", Wanted: "mcp_git__pull"},
		{Name: "search_tools"},
	}}
	for pattern, matches := range map[string]bool{
		"push": true, "mcp_git__push": true, "git/push": true, "git/*": true, "p?sh": true, "search_*": true, "mcp_git2__pull": false, "git2/*": true,
		"pusch": false, "mcp_git__pusch": false, "git/pusch": false, "gti/*": false, "/push": false, "": false, "*_push*": true, "*": true,
	} {
		assert.Equal(t, !matches, len(k.Idle("here", []string{pattern}, Subject.MatchesAny)) == 1, pattern)
	}
	both := []string{"mcp_git__pull", "nowhere"}
	assert.Len(t, k.Idle("here", both, Subject.MatchesAny), 2)
	idle := k.Idle("here", both, Subject.Forbidden)
	assert.Len(t, idle, 1, "a deny entry is about the wanted name, too")
	assert.EqualError(t, idle[0], `mcphybrid: here: "nowhere" matches no tool`)
	idle = Access{Allow: both, Deny: both}.Idle(k, "here")
	assert.Len(t, idle, 3, "each list by what it matches")
	assert.EqualError(t, idle[2], `mcphybrid: here.Deny: "nowhere" matches no tool`)

	k.Missing = []Subject{{Name: "mcp_db__", Server: "db"}}
	for pattern, waits := range map[string]bool{
		"nowhere": true, "*_drop": true, // any server may have it
		"db/drop": true, "db/*": true, "d*": true, "d*/x": true, "?b/x": true, "db?/x": true, "dx*/x": false, "git/nowhere": false, "dbs/x": false,
		"mcp_db__drop": true, "mcp_*": true, "mcp_d*": true, "mcp_db__*": true, "mcp_git__nowhere": false, "mcp_db": false, "mcp_dbs__*": false,
	} {
		assert.Equal(t, waits, len(k.Idle("here", []string{pattern}, Subject.MatchesAny)) == 0, pattern)
	}
}

// Indexed tools are found by the same patterns, and few of them are tried.
func TestIdleTriesFewTools(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "ab", "文", "mcp_", "/", "x\n", "long_word_of_more_than_thirty_two_bytes"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		word := func(more ...string) (w string) {
			all := slices.Concat(words, more)
			for range rnd.IntN(4) {
				w += all[rnd.IntN(len(all))]
			}
			return w
		}
		var k Known
		for range rnd.IntN(6) {
			tool := Subject{Name: word(), Server: word(), Own: word(), Wanted: word(), Within: rnd.IntN(3) == 0}
			if rnd.IntN(3) == 0 {
				tool.URI, tool.Forms = "HTTP://"+word(), []string{"http:" + word()}
			}
			k.Tools = append(k.Tools, tool)
		}
		for range 40 {
			patterns := []string{word("*", "?", "*", "http:", "HTTP://")}
			for _, matches := range []func(Subject, []string) bool{Subject.MatchesAny, Subject.Forbidden} {
				require.Equal(t, k.Idle("here", patterns, matches), k.Indexed().Idle("here", patterns, matches), "%q in %q", patterns, k.Tools)
			}
		}
	}
	var k Known
	for i := range 1000 {
		k.Tools = append(k.Tools, Subject{Name: fmt.Sprint("mcp_s__tool_", i), Server: "s", Own: fmt.Sprint("tool_", i)})
	}
	k = k.Indexed()
	tried := 0
	count := func(t Subject, patterns []string) bool { tried++; return t.MatchesAny(patterns) }
	assert.Empty(t, k.Idle("here", []string{"*_777", "s/tool_99?", "*"}, count))
	assert.Len(t, k.Idle("here", []string{"gone/*", "*_issue_*", "tool_999x"}, count), 3)
	assert.Less(t, tried, 10)
}

// An entry that no rule could have is told, also where a server is missing.
func TestIdleTellsWhatIsNoPattern(t *testing.T) {
	t.Parallel()
	k := Known{Missing: []Subject{{Name: "mcp_db__", Server: "db"}}, Tools: []Subject{{Name: "a]b"}}}
	idle := k.Idle("here", []string{"[a]", "fine", "a]b"}, Subject.MatchesAny)
	assert.Len(t, idle, 1)
	assert.EqualError(t, idle[0], `mcphybrid: here: "[a]" has a '[', which is no wildcard: * and ? are; it matches no tool`)
}
