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

// A tool is off by its name as any client writes it, and no other is.
func TestToolsOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ server, pattern, off string }{
		{"gh", "x", "x"}, {"gh", "gh__x", "x"}, {"gh", "gh/x", "x"}, {"gh", "gh:x", "x"}, {"gh", "mcp_gh_x", "x"}, {"gh", "mcp__gh__x", "x"}, {"gh", "mcp__gh", "anything"},
		{"a.b", "mcp__a_b__x", "x"}, {"a.b", "mcp__a.b__x", "x"}, {"📁f", "mcp____f__x", "x"}, {"gh", "mcp__gh__issue_delete", "issue.delete"}, {"gh", "gh__x(args)", "x"},
		{"GitHub (work)", "GitHub (work)/x", "x"}, {"gh", "mcp__*__x", "x"}, {"gh", "*", "x"},
	} {
		deny := toolsOf(test.server, []string{test.pattern}, anyPrefixes)
		assert.True(t, rules.MatchAny(deny, test.off), "%v: %q", test, deny)
		other := toolsOf("other", []string{test.pattern}, anyPrefixes)
		assert.Equal(t, strings.Contains("x mcp__*__x *", test.pattern), rules.MatchAny(other, test.off), "%v: %q", test, other)
	}
	assert.Empty(t, toolsOf("gh", []string{"bash", "other_x"}, []string{"*_"}), "the client's own tools")
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
