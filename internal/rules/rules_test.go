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
	parts := []string{"a", "b", "ab", "*", "*", "?", "/", "_", "文", "mcp_", "abab"}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		word := func(n int, of []string) (w string) {
			for range rnd.IntN(n) {
				w += of[rnd.IntN(len(of))]
			}
			return w
		}
		uri := func() string {
			return word(2, []string{"s:", "S:"}) + word(2, []string{"//", "/"}) + word(5, []string{"a", "A", "b", "B", "/"})
		}
		rules := make([]Rule, 1+rnd.IntN(5))
		for i := range rules {
			rules[i] = Rule{Name: fmt.Sprint(i), Priority: rnd.IntN(3), Patterns: []string{"x" + word(4, parts), word(5, parts) + "*", word(3, parts) + "/" + uri()},
				Action: []Action{Exclude, Include}[rnd.IntN(2)]}
		}
		set, err := NewSet(rules)
		require.NoError(t, err)
		for range 20 {
			name := func() string { return word(7, []string{"a", "b", "x", "*", "_", "文", "mcp_"}) }
			tool := Subject{Name: name(), Server: word(3, parts), Own: name() + "/"[:rnd.IntN(2)], Wanted: name()}
			if rnd.IntN(2) == 0 {
				tool.URI, tool.Forms = uri(), []string{uri(), uri()}[:rnd.IntN(3)]
			}
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

// A name is matched with the few globs that have three of its bytes, whatever their number.
func TestANameIsMatchedWithFewGlobs(t *testing.T) {
	t.Parallel()
	var rules []Rule
	for i := range 500 {
		rules = append(rules, Rule{Name: "r", Action: Include, Patterns: []string{fmt.Sprintf("*_get_%03d?*", i)}})
	}
	rules = append(rules, Rule{Name: "short", Action: Include, Patterns: []string{"*a?b*"}})
	set, err := NewSet(rules)
	require.NoError(t, err)
	tb, name := &set.tables[formAny], "mcp_git__get_123_ab"
	tried := len(tb.short)
	for i := range len(name) - 2 {
		tried += len(tb.byBytes[three([]byte(name[i:i+3]))])
	}
	assert.Less(t, tried, 40)
	assert.Equal(t, []uint16{123}, set.Matches(Subject{Name: name, Server: "git", Own: "get_123_ab"}))
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

// A pattern with a slash is about the path, wherever its wildcards stand.
func TestPatternsOfPaths(t *testing.T) {
	t.Parallel()
	patterns := []string{""}
	for begin := 0; len(patterns) < 5*5*5*5; begin++ {
		for _, c := range "ab*?/" {
			patterns = append(patterns, patterns[begin]+string(c))
		}
	}
	for _, server := range []string{"", "a", "b", "ab", "aab", "ä"} {
		for _, own := range []string{"a", "b", "ba", "a/b", "*"} {
			about := Subject{Name: "mcp_x", Server: server, Own: own}
			for _, pattern := range patterns {
				if strings.Contains(pattern, "/") {
					assert.Equal(t, Match(pattern, server+"/"+own), about.Matches(pattern), "%q and %s/%s", pattern, server, own)
				}
			}
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
// A session without an intent has the rules that are for each, whatever else a pattern matches.
func TestRulesOfNoIntent(t *testing.T) {
	t.Parallel()
	var rules []Rule
	for _, intent := range []string{"", "*", "**", "?", "a", "a*"} {
		rules = append(rules, Rule{Name: "r", Intent: intent, Patterns: []string{"x"}, Action: Include})
	}
	set, err := NewSet(rules)
	require.NoError(t, err)
	assert.Equal(t, []bool{true, true, false, false, false, false}, set.Applying(""))
	assert.Equal(t, []bool{true, true, true, true, true, true}, set.Applying("a"))
	assert.Equal(t, []bool{true, true, true, false, false, false}, set.Applying("b c"))
}

func TestCutIntent(t *testing.T) {
	for behind := range 4 {
		begin := strings.Repeat("x", 1000-behind)
		want := begin
		if behind == 3 {
			want += "文"
		}
		assert.Equal(t, want, CutIntent(begin+"文 and more"))
		assert.Equal(t, begin, CutIntent(begin))
	}
	assert.Empty(t, CutIntent(strings.Repeat("\x80", 1000+1)), "no code point begins")
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

// What is wrong with a rule is named, and each limit is where it is said to be.
func TestValidateRules(t *testing.T) {
	t.Parallel()
	good := Rule{Name: "r", Intent: "*", Patterns: []string{"a"}, Action: Include}
	for name, test := range map[string]struct {
		change func(*Rule)
		want   string
	}{
		"good":                 {func(*Rule) {}, ""},
		"exclude":              {func(r *Rule) { r.Action = "exclude" }, ""},
		"summarize":            {func(r *Rule) { r.Action = "summarize" }, ""},
		"no name":              {func(r *Rule) { r.Name = "" }, "the name is missing"},
		"a bracket":            {func(r *Rule) { r.Intent = "a[b" }, `the intent: "a[b" has a '[', which is no wildcard: * and ? are`},
		"the longest intent":   {func(r *Rule) { r.Intent = strings.Repeat("x", 1000) }, ""},
		"a longer intent":      {func(r *Rule) { r.Intent = strings.Repeat("x", 1001) }, "the intent has 1001 bytes, more than the limit of 1000"},
		"no patterns":          {func(r *Rule) { r.Patterns = nil }, "there are no patterns"},
		"an empty pattern":     {func(r *Rule) { r.Patterns = []string{"a", ""} }, "pattern 1 is empty"},
		"a closing bracket":    {func(r *Rule) { r.Patterns = []string{"a", "b]"} }, `pattern 1: "b]" has a ']', which is no wildcard: * and ? are`},
		"a backslash":          {func(r *Rule) { r.Patterns = []string{`\a`} }, `pattern 0: "\\a" has a '\\', which is no wildcard: * and ? are`},
		"no action":            {func(r *Rule) { r.Action = "" }, `the action is missing: it must be "include", "exclude" or "summarize"`},
		"another action":       {func(r *Rule) { r.Action = "drop" }, `the action is "drop", must be "include", "exclude" or "summarize"`},
		"wildcards are none":   {func(r *Rule) { r.Patterns = []string{"a*?b"} }, ""},
		"an intent without it": {func(r *Rule) { r.Intent = "" }, ""},
	} {
		r := good
		test.change(&r)
		_, err := NewSet([]Rule{good, r})
		if test.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, fmt.Sprintf("rule 1 %q: %s", r.Name, test.want), name)
		}
	}
}

func TestRulesAtTheirLimit(t *testing.T) {
	t.Parallel()
	rules := slices.Repeat([]Rule{{Name: "r", Patterns: []string{"a"}, Action: Include}}, 10_001)
	set, err := NewSet(rules[:10_000])
	require.NoError(t, err)
	assert.Len(t, set.Matches(Subject{Name: "a"}), 10_000)
	_, err = NewSet(rules)
	assert.EqualError(t, err, "there are 10001 rules, more than the limit of 10000")
}

// Rules stand by descending priority, equal ones in their order; of those that apply, the
// ones that include are named.
func TestIncluders(t *testing.T) {
	t.Parallel()
	set, err := NewSet([]Rule{
		{Name: "low", Priority: 1, Patterns: []string{"a"}, Action: Include},
		{Name: "first", Priority: 2, Patterns: []string{"a"}, Action: Include},
		{Name: "out", Priority: 2, Patterns: []string{"a"}, Action: Exclude},
		{Name: "other", Priority: 2, Intent: "other", Patterns: []string{"a"}, Action: Include},
	})
	require.NoError(t, err)
	assert.Equal(t, `: "first" "low"`, set.Includers(set.Applying("this")))
	assert.Equal(t, `: "first" "other" "low"`, set.Includers(set.Applying("other")))
	assert.Equal(t, ":", set.Includers(make([]bool, 4)))
}

// A rule that excludes one of the forms of a URI excludes it, and one that includes a form
// does not include it.
func TestRulesOfForms(t *testing.T) {
	t.Parallel()
	set, err := NewSet([]Rule{
		{Name: "out", Patterns: []string{"s/mem://H/a"}, Action: Exclude},
		{Name: "in", Patterns: []string{"s/mem://h/a"}, Action: Include},
		{Name: "as it is", Patterns: []string{"s/mem://h/%61"}, Action: Include},
	})
	require.NoError(t, err)
	of := Subject{Server: "s", Own: "x", URI: "mem://h/%61"}
	assert.Equal(t, []uint16{2}, set.Matches(of))
	of.Forms = []string{"mem://other", "mem://h/a"}
	assert.Equal(t, []uint16{0, 2}, set.Matches(of))
	assert.True(t, of.Forbidden([]string{"s/mem://h/a"}))
	assert.True(t, of.Forbidden([]string{"s/mem://h/%61"}))
	assert.False(t, of.Forbidden([]string{"s/mem://h/b"}))
	assert.False(t, of.MatchesAny([]string{"s/mem://h/a"}), "only what forbids looks at forms")
}
