package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// plainMatch is the definition of a pattern, tried letter by letter.
func plainMatch(pattern, name []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == '*':
		return plainMatch(pattern[1:], name) || len(name) > 0 && plainMatch(pattern, name[1:])
	}
	return len(name) > 0 && (pattern[0] == '?' || pattern[0] == name[0]) && plainMatch(pattern[1:], name[1:])
}

// What a rule set finds at once is what its patterns match one by one.
func TestMatches(t *testing.T) {
	parts := []string{"a", "b", "ab", "*", "*", "?", "/", "_", "文"}
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
			rules[i] = Rule{Name: fmt.Sprint(i), Priority: rnd.IntN(3), Patterns: []string{"x" + word(4, parts), word(5, parts) + "*"}, Action: Exclude}
		}
		set, err := NewSet(rules)
		require.NoError(t, err)
		for range 20 {
			name := word(7, []string{"a", "b", "x", "*", "/", "_", "文"})
			var want []uint16
			for i, r := range set.Rules {
				if slices.ContainsFunc(r.Patterns, func(p string) bool {
					return plainMatch([]rune(p), []rune(name))
				}) {
					want = append(want, uint16(i))
				}
			}
			require.Equal(t, want, set.Matches(name), "seed %d, %q against %+v", seed, name, set.Rules)
		}
	}
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

// Only a rule that applies and includes leaves nothing else there.
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
