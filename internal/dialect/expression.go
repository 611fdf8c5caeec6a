package dialect

import (
	"regexp/syntax"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/expression"
)

// refuses returns why the provider refuses a regular expression, or "".
func (c *converter) refuses(pattern string) string {
	why, known := c.refused[pattern]
	if !known {
		why = c.Dialect.refuses(pattern, &c.reading)
		c.refused[pattern] = why
	}
	return why
}

// refuses is [converter.refuses]. What it costs to read the expression is taken from reading.
func (d *Dialect) refuses(pattern string, reading *int64) string {
	switch {
	case d.noLook && looksAround(pattern):
		return "a regular expression that looks ahead or behind, left out"
	case isBroken(pattern, reading):
		return "not a regular expression, left out"
	}
	return ""
}

// looksAround reports whether a regular expression has a lookahead or a
// lookbehind.
func looksAround(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '(':
			rest := pattern[i+1:]
			for _, look := range []string{"?=", "?!", "?<=", "?<!"} {
				if strings.HasPrefix(rest, look) {
					return true
				}
			}
		}
	}
	return false
}

// isBroken reports whether an expression certainly is not a regular one, neither of
// ECMA 262 nor of Go: it has a parenthesis or bracket too many, a backslash at the end, a
// range that ends before it begins, or repeats nothing or twice. In doubt, it is one, unless
// to find out costs more than what is left of reading.
func isBroken(pattern string, reading *int64) bool {
	if !looksBroken([]rune(pattern)) {
		return false
	}
	if *reading -= expression.ReadingCost(pattern); *reading < 0 {
		return true
	}
	_, err := syntax.Parse(pattern, syntax.Perl)
	return err != nil
}

func looksBroken(r []rune) bool {
	const (
		nothing  = iota // to repeat
		atom            // that may be repeated
		repeated        // already
	)
	open, before, inClass := 0, nothing, false
	is := func(i int, c rune) bool { return i < len(r) && r[i] == c }
	for i := 0; i < len(r); i++ {
		if r[i] == '\\' {
			if i++; i == len(r) {
				return true
			}
			if !inClass {
				before = atom
			}
			continue
		}
		if inClass {
			switch {
			case r[i] == ']':
				inClass, before = false, atom
			case is(i+1, '-') && i+2 < len(r) && r[i+2] != ']' && r[i+2] != '\\':
				if r[i] > r[i+2] && r[i] != '[' && r[i+2] != '[' {
					return true
				}
				i += 2
			}
			continue
		}
		switch r[i] {
		case '[':
			inClass = true
			if is(i+1, '^') {
				i++
			}
		case '(':
			open, before = open+1, nothing
			if is(i+1, '?') {
				if i++; is(i+1, ':') || is(i+1, '=') || is(i+1, '!') {
					i++
				}
			}
		case ')':
			if open--; open < 0 {
				return true
			}
			before = atom
		case '|':
			before = nothing
		case '*', '+', '?':
			if before == nothing || before == repeated && r[i] == '*' {
				return true
			}
			before = repeated
		default:
			before = atom
		}
	}
	return inClass || open > 0
}
