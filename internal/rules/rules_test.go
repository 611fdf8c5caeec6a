package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainMatch implements the definition of a pattern, letter by letter.
func plainMatch(pattern, name []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == '*':
		return plainMatch(pattern[1:], name) || len(name) > 0 && plainMatch(pattern, name[1:])
	}
	return len(name) > 0 && (pattern[0] == '?' || pattern[0] == name[0]) && plainMatch(pattern[1:], name[1:])
}

// A rule set finds at once exactly what its patterns match one by one.
func TestMatches(t *testing.T) {
	parts := []string{"a", "b", "ab", "*", "*", "?", "/", "_", "文", "mcp_"}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		word := func(n int, of []string) (w string) {
			for range rnd.IntN(n) {
				w += of[rnd.IntN(len(of))]
			}
			return w
		}
		rules := make([]Rule, 1+rnd.IntN(5))
		for i := range rules {
			rules[i] = Rule{Name: fmt.Sprint(i), Priority: rnd.IntN(3), Patterns: []string{"x" + word(4, parts), word(5, parts) + "*"},
				Action: []Action{Exclude, Include}[rnd.IntN(2)]}
		}
		set, err := NewSet(rules)
		require.NoError(t, err)
		for range 20 {
			name := func() string { return word(7, []string{"a", "b", "x", "*", "_", "文", "mcp_"}) }
			tool := Subject{Name: name(), Server: word(3, parts), Own: name() + "/"[:rnd.IntN(2)], Wanted: name()}
			var want []uint16
			for i, r := range set.Rules {
				if tool.MatchesAny(r.Patterns) || r.Action == Exclude && tool.Forbidden(r.Patterns) {
					want = append(want, uint16(i))
				}
			}
			require.True(t, slices.Equal(want, set.Matches(tool)), "seed %d, %q against %+v", seed, tool, set.Rules)
		}
	}
}

func TestToolMatches(t *testing.T) {
	tool := Subject{Name: "mcp_p_0a1b2c3d__create_issue_11111111", Server: "github", Own: "create/issue", Wanted: "mcp_p__create_issue"}
	for _, pattern := range []string{
		"*", "create*", "*issue*", "github/create/issue", "github/*", "*/issue", "mcp_p_0a1b2c3d__*", "mcp_*", "mcp*", "*_11111111",
	} {
		assert.True(t, tool.Matches(pattern), pattern)
	}
	for _, pattern := range []string{"", "create/*", "create_issue", "github", "Github/*", "mcp_p__create_issue", "mcp_p__*"} {
		assert.False(t, tool.Matches(pattern), pattern)
	}
	assert.True(t, tool.Forbidden([]string{"x", "mcp_p__*"}), "as it would be named alone")
	assert.True(t, tool.Forbidden([]string{"github/*"}))
	assert.False(t, tool.Forbidden([]string{"mcp_q__*"}))

	evil := Subject{Name: "mcp_evil__mcp_github__x", Server: "evil", Own: "mcp_github__x"}
	assert.False(t, evil.Matches("mcp_github__*"), "an own name does not get it past a list for another server")
	evil = Subject{Name: "mcp_evil__github_x_11111111", Server: "evil", Own: "github/x"}
	assert.False(t, evil.Matches("github/*"))
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?文*", "axxb文文")
	f.Add("*", "a/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		pattern, name = pattern[:min(len(pattern), 12)], name[:min(len(name), 24)]
		if !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			Match(pattern, name)
			return
		}
		if got, want := Match(pattern, name), plainMatch([]rune(pattern), []rune(name)); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}

// Only an include rule that applies hides all other tools.
func TestIncluding(t *testing.T) {
	set, err := NewSet([]Rule{
		{Name: "a", Patterns: []string{"x"}, Action: Exclude},
		{Name: "b", Intent: "write_*", Patterns: []string{"x"}, Action: Include},
	})
	require.NoError(t, err)
	require.False(t, set.Including(set.Applying("")))
	require.False(t, set.Including(set.Applying("read")))
	require.True(t, set.Including(set.Applying("write_code")))
}

// A long intent is cut, between code points.
func TestCutIntent(t *testing.T) {
	for behind := range 4 {
		begin := strings.Repeat("x", MaxIntent-behind)
		want := begin
		if behind == 3 {
			want += "文"
		}
		assert.Equal(t, want, CutIntent(begin+"文 and more"))
		assert.Equal(t, begin, CutIntent(begin))
	}
	assert.Empty(t, CutIntent(strings.Repeat("\x80", MaxIntent+1)), "no code point begins")
}

// A Set keeps its rules as they were when it was made.
func TestSetKeepsItsPatterns(t *testing.T) {
	t.Parallel()
	patterns := []string{"mcp_a__*", "mcp_b__*"}
	s, err := NewSet([]Rule{{Name: "r", Patterns: patterns, Action: Include}})
	require.NoError(t, err)
	patterns[0] = "mcp_c__*"
	require.Equal(t, []string{"mcp_a__*", "mcp_b__*"}, s.Rules[0].Patterns)
}
