package rules

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Match reports whether pattern matches the whole name. In a pattern, * matches
// any run of characters, including slashes, and ? matches one character. Other
// characters match themselves. A byte that is not UTF-8 counts as a character.
//
// Match differs from [path.Match], whose * does not match a slash: a deny list
// "*" must not let a tool named "a/b" pass.
func Match(pattern, name string) bool { return match(pattern, name, 0, 0) }

// match is [Match] for a name of which the case of the bytes from begin to end means
// nothing.
func match(pattern, name string, begin, end int) bool {
	p, n := 0, 0
	star, from := -1, 0 // position of the last *, and where in name its run ends so far
	for n < len(name) {
		r, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p, n = p+1, n+size
		case begin <= n && n < end && startsWith(pattern[p:], r):
			_, width := utf8.DecodeRuneInString(pattern[p:])
			p, n = p+width, n+size
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0: // let the * match one more character
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

// startsWith reports whether r is the first letter of s, in whatever case.
func startsWith(s string, r rune) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return first != utf8.RuneError && unicode.ToLower(first) == unicode.ToLower(r)
}

// MatchAny reports whether one of patterns matches name.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
}
