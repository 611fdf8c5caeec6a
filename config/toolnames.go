package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// anyPrefixes are those of all clients, but opencode's, which could begin any name.
var anyPrefixes = []string{"", "*__", "*/", "*:", "mcp_*_", "mcp__*__"}

// tools returns patterns of the server's own tools that are switched off. The clients
// write _ for each character of a tool's name that providers refuse, so in their
// lists it may stand for any.
func (s *switches) tools(server string) (deny []string) {
	deny = append(ownTools(server, s.patterns, s.prefixes), ownTools(server, s.anyForm, anyPrefixes)...)
	slices.Sort(deny)
	return slices.Compact(deny)
}

// ownTools returns patterns of the server's own tools that are among the patterns.
func ownTools(server string, patterns, prefixes []string) (own []string) {
	var starts []string
	for _, prefix := range prefixes {
		starts = append(starts, startsOf(server, prefix)...)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for _, pattern := range toolNames(patterns) {
		for _, whole := range uncut(pattern) {
			whole := []rune(whole)
			for _, start := range starts {
				for _, name := range rest(whole, start) {
					own = append(own, written(name, start != "")...)
				}
			}
		}
		if slices.ContainsFunc(starts, func(start string) bool { return strings.EqualFold(start, pattern+"__") }) {
			own = append(own, "*") // mcp__server of Claude Code
		}
	}
	return own
}

// startsOf returns what names of the server's tools may begin with where clients write
// prefix.
func startsOf(server, prefix string) (starts []string) {
	for _, name := range []string{server, safeName(server, "", 1), safeName(server, ".:", 1), safeName(server, "", 2), safeName(server, ".:", 2)} {
		starts = append(starts, strings.Replace(prefix, "*", name, 1))
		if prefix == "mcp_*_" && strings.HasPrefix(name, "mcp_") {
			starts = append(starts, name+"_") // Gemini CLI does not repeat it
		}
	}
	return starts
}

// safeName returns name with _ for characters that providers refuse. Some accept more.
// Clients in JavaScript write two for a character beyond the 16 bits of theirs.
func safeName(name, more string, beyond int) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', strings.ContainsRune(more, r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__"[:beyond])
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// maxWritten bounds the patterns of one name.
const maxWritten = 32

var underscores = regexp.MustCompile("_+")

// written returns patterns of the names that a client may have written as name, with a
// _ for each character that providers refuse; if pairs, also with two for one.
func written(name string, pairs bool) []string {
	patterns, end := []string{""}, 0
	for _, at := range underscores.FindAllStringIndex(name, -1) {
		n := at[1] - at[0]
		least := n
		if pairs && len(patterns)*(n/2+1) <= maxWritten {
			least -= n / 2
		}
		var longer []string
		for count := n; count >= least; count-- {
			for _, pattern := range patterns {
				longer = append(longer, pattern+name[end:at[0]]+strings.Repeat("?", count))
			}
		}
		patterns, end = longer, at[1]
	}
	for i := range patterns {
		patterns[i] += name[end:]
	}
	return patterns
}

// Providers accept names of up to 64 characters, so clients cut longer ones to that or
// a few less.
const minCut, maxCut = 60, 64

// uncut returns patterns of the names that a client may have cut to name, and of name
// itself: for one of 64 characters, all that begin with it.
func uncut(name string) []string {
	if len(name) < minCut || len(name) > maxCut || strings.ContainsAny(name, "*?") {
		return []string{name}
	}
	patterns := []string{name + "*"}
	for gap, at := range map[string]int{"___": 28, "...": 30} { // where Gemini CLI has cut the middle out
		if strings.HasPrefix(name[at:], gap) {
			patterns = append(patterns, name[:at]+"*"+name[at+len(gap):])
		}
	}
	return patterns
}

// rest returns patterns of what follows prefix in the names that pattern matches:
// for "git*_x" and "github_", both "*_x" and "x". In the prefix, letter case does not
// count.
func rest(pattern []rune, prefix string) (patterns []string) {
	at, next := make([]int, 1, 8), make([]int, 0, 8) // where in pattern the match may be
	for _, c := range prefix {
		for _, i := range at {
			for ; i < len(pattern) && pattern[i] == '*'; i++ {
				next = append(next, i) // a * may also be empty
			}
			if i < len(pattern) && (pattern[i] == '?' || unicode.ToLower(pattern[i]) == unicode.ToLower(c)) {
				next = append(next, i+1)
			}
		}
		if len(next) == 0 {
			return nil
		}
		at, next = slices.Compact(next), at[:0]
	}
	for _, i := range at {
		patterns = append(patterns, string(pattern[i:]))
	}
	return patterns
}
