package config

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A name that a client has cut stands for all tools that it cuts to that name.
func TestCutNames(t *testing.T) {
	t.Parallel()
	const (
		server = "atlassian-rovo-mcp-server-cloud"
		tool   = "createConfluencePageWithAttachmentsAndPermissions"
	)
	end := func(n int) func(string) string { return func(name string) string { return name[:n] } }
	for _, test := range []struct {
		dialect, list string // with %q for the name
		name          string
		cut           func(string) string
	}{
		{"claude-code", `"permissions": {"deny": [%q]}`, "mcp__" + server + "__" + tool, end(64)},
		{"opencode", `"tools": {%q: false}`, server + "_" + tool, end(64)},
		{"opencode", `"permission": {%q: "deny"}`, server + "_" + tool, end(63)},
		{"crush", `"options": {"disabled_tools": [%q]}`, "mcp_" + server + "_" + tool, end(64)},
		{"mcphybrid", `"disallowedTools": [%q]`, "mcp__" + server + "__" + tool, end(60)},
		{"mcphybrid", `"excludeTools": [%q]`, server + "__" + tool, func(s string) string { return s[:28] + "___" + s[len(s)-32:] }},
		{"gemini", `"tools": {"exclude": [%q]}`, "mcp_" + server + "_" + tool, func(s string) string { return s[:30] + "..." + s[len(s)-30:] }},
		{"gemini", `"excludeTools": [%q]`, server + "__" + tool, func(s string) string { return s[:28] + "___" + s[len(s)-32:] + "(x)" }},
	} {
		at := "mcpServers"
		if test.dialect == "opencode" || test.dialect == "crush" {
			at = "mcp"
		}
		list := fmt.Sprintf(test.list, test.cut(test.name))
		file, err := parse(fmt.Appendf(nil, `{%q: {%q: {"command": "run"}, "other": {"command": "run"}}, %s}`, at, server, list), source{Options: Options{Dialect: test.dialect}, env: environment()})
		require.NoError(t, err, list)
		assert.True(t, rules.MatchAny(file.servers[0].Tools.Deny, tool), "%s: %q", list, file.servers[0].Tools.Deny)
		assert.False(t, rules.MatchAny(file.servers[0].Tools.Deny, "createPage"), list)
		assert.False(t, rules.MatchAny(file.servers[1].Tools.Deny, tool), list)
	}
	deny := ownTools(strings.Repeat("s", 70), []string{"mcp__" + strings.Repeat("s", 59)}, []string{"mcp__*__"})
	assert.Equal(t, []string{"*"}, deny, "the name of the server is cut")
	assert.Equal(t, []string{"get"}, ownTools("s", []string{"mcp__s__get"}, []string{"mcp__*__"}), "a short name is whole")
}

// Clients keep more characters than others, and Gemini CLI does not write "mcp_" twice.
func TestNamesOfClients(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]string{"mcp_a.b_c_get": "a.b c", "mcp_git_get": "mcp_git", "mcp_mcp_git_get": "mcp_git", "mcp_a_b_get": "a.b"} {
		assert.Contains(t, ownTools(server, []string{name}, []string{"mcp_*_"}), "get", name)
	}
	assert.Empty(t, ownTools("mcp_git", []string{"mcp_git_get"}, []string{"*_x"}))
}

// The rest of a pattern matches exactly what follows the prefix.
func TestRestOfPatterns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, most int) string {
		var b strings.Builder
		for range random.IntN(most + 1) {
			letters := []rune(letters)
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 50_000 {
		pattern, prefix, name := word("ab*?é", 6), word("abé", 3), word("abé", 4)
		want := rules.Match(pattern, prefix+name)
		require.Equal(t, want, rules.MatchAny(rest([]rune(pattern), prefix), name), fmt.Sprintf("%q %q %q", pattern, prefix, name))
		if want {
			matched++
		}
	}
	assert.Greater(t, matched, 1000)
}
