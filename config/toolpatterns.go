package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// anyPrefixes are what clients write before a tool's own name in lists for all servers.
// * stands for the server's name. In lists with a client's own tools, it writes but one:
// see dialect.toolPrefixes.
var anyPrefixes = []string{"", "*__", "*/", "*:", "mcp_*_", "mcp__*__"}

var stars = regexp.MustCompile(`\*+`)

// toolsOf returns patterns of the server's own tools that are among the patterns of a
// list for all servers, in which prefixes stand before their names; nil stands for
// anyPrefixes. Clients write _ for each character of a tool's name that
// providers refuse, so there it stands for any.
func toolsOf(server string, patterns, prefixes []string) (own []string) {
	if prefixes == nil {
		prefixes = anyPrefixes
	}
	for _, prefix := range prefixes {
		for _, name := range slices.Compact([]string{server, safeName(server)}) {
			start := strings.Replace(prefix, "*", name, 1)
			for _, pattern := range toolNames(patterns) {
				pattern = stars.ReplaceAllString(pattern, "*") // ** is *, but takes much longer
				for _, tool := range rest([]rune(pattern), start) {
					own = append(own, strings.ReplaceAll(tool, "_", "?"))
				}
				if strings.EqualFold(start, pattern+"__") { // mcp__server: all of them
					own = append(own, "*")
				}
			}
		}
	}
	return own
}

// safeName returns name with _ for characters that providers refuse. Clients in
// JavaScript write two for a character beyond the 16 bits of theirs.
func safeName(name string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(name)) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
			b.WriteByte(byte(c))
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
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
