// Package expression tells what a regular expression takes before it is read and compiled. Those
// of servers, models and scripts may be written to take minutes or gigabytes, and nothing ends Go's
// functions before they return.
package expression

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// MaxReading is the cost up to which an expression is read in a fraction of a second: see [ReadingCost].
const MaxReading = 1 << 13

// What takes longer to read than its bytes say.
const (
	PerUnicodeClass = 1 << 6  // a class has up to 1,300 runes
	PerFoldedRange  = 1 << 12 // all letters of the range are visited, up to 125,000
)

var foldsCase = regexp.MustCompile(`\(\?[msU]*i`)

// ReadingCost returns the cost of parsing an expression, in bytes.
func ReadingCost(expression string) int64 {
	cost := len(expression) + PerUnicodeClass*(strings.Count(expression, `\p`)+strings.Count(expression, `\P`))
	if foldsCase.MatchString(expression) {
		for i := range len(expression) - 1 {
			if next := expression[i+1]; expression[i] == '-' && (next >= utf8.RuneSelf || strings.HasPrefix(expression[i+1:], `\x{`)) {
				cost += PerFoldedRange
			}
		}
	}
	return int64(cost)
}

// maxRepeat is beyond all limits; sizes stop growing here.
const maxRepeat = 1 << 40

// A Size is how large an expression is when it is compiled.
type Size struct {
	Instructions int64
	Runes        int64 // ends of the ranges in the classes of the instructions
}

// SizeOf returns the instructions and runes of an expression when it will be compiled, or
// more. It expands no repetition: that is what takes the memory.
func SizeOf(re *syntax.Regexp) Size {
	var sub Size
	for _, s := range re.Sub {
		size := SizeOf(s)
		sub.Instructions += size.Instructions
		sub.Runes += size.Runes
	}
	switch re.Op {
	case syntax.OpLiteral:
		sub.Instructions = int64(len(re.Rune))
	case syntax.OpCharClass:
		return Size{Instructions: 1, Runes: int64(len(re.Rune))}
	case syntax.OpCapture, syntax.OpStar: // a star is (x+)? if x may be empty
		sub.Instructions += 2
	case syntax.OpPlus, syntax.OpQuest:
		sub.Instructions++
	case syntax.OpAlternate:
		sub.Instructions += int64(len(re.Sub))
	case syntax.OpRepeat:
		times := int64(max(re.Min, re.Max, 1))
		sub.Instructions = times*max(sub.Instructions, 1) + max(int64(re.Max-re.Min), 2) // x{1,3} is x(x(x)?)?
		sub.Runes *= times
	}
	return Size{Instructions: min(max(sub.Instructions, 1), maxRepeat), Runes: min(sub.Runes, maxRepeat)}
}
