package rules

import (
	"slices"
	"unicode/utf8"
)

// Match reports whether pattern stands for name. In a pattern, * stands for any
// run of characters, a slash among them, and ? for one character; all else
// stands for itself. Bytes that are not UTF-8 count as characters.
//
// It is not [path.Match], for which a slash is no ordinary character: a deny
// list "*" must not let a tool named "a/b" pass.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last * seen, and where in name the rest was last tried
	for n < len(name) {
		_, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p, n = p+1, n+size
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0: // let the * stand for one more
			_, size := utf8.DecodeRuneInString(name[from:])
			from += size
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// MatchAny reports whether one of patterns stands for name.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
}
