package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
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

// An entry that no rule could have is told, also where a server is missing.
func TestIdleTellsWhatIsNoPattern(t *testing.T) {
	t.Parallel()
	k := Known{Missing: []Subject{{Name: "mcp_db__", Server: "db"}}, Tools: []Subject{{Name: "a]b"}}}
	idle := k.Idle("here", []string{"[a]", "fine", "a]b"}, Subject.MatchesAny)
	assert.Len(t, idle, 1)
	assert.EqualError(t, idle[0], `mcphybrid: here: "[a]" has a '[', which is no wildcard: * and ? are; it matches no tool`)
}
