package schema

import (
	"regexp/syntax"
	"strings"
)

// A regular expression of some kilobytes can take gigabytes, once compiled, and seconds to
// read. So what it takes is known before.

// foldLoad is the load of a range of characters whose case does not count: the parser goes
// through up to so many.
const foldLoad = 1 << 17

// classLoad is the load of a Unicode class such as \pL, most of which have fewer ranges.
const classLoad = 1 << 10

// loadOf bounds what it takes to read an expression: its bytes, and the ranges of
// characters in its classes.
func loadOf(expression string) int {
	load := len(expression)
	for _, class := range []string{`\p`, `\P`} {
		load += classLoad * min(strings.Count(expression, class), enough/classLoad)
	}
	if folds(expression) {
		load += foldLoad * min(strings.Count(expression, "-"), enough/foldLoad)
	}
	return load
}

// folds reports whether the case of letters may not count somewhere in an expression.
func folds(expression string) bool {
	for rest := expression; ; {
		i := strings.Index(rest, "(?")
		if i < 0 {
			return false
		}
		rest = rest[i+2:]
		flags := rest[:len(rest)-len(strings.TrimLeft(rest, "imsU-"))]
		if strings.Contains(flags, "i") {
			return true
		}
	}
}

// enough is more than any limit, and small enough to be multiplied by a repetition in 32
// bits.
const enough = 1 << 20

// sizeOf bounds how many instructions a parsed expression has once compiled, and how many
// characters their classes have as beginnings and ends of ranges.
func sizeOf(re *syntax.Regexp) (instructions, ranges int) {
	a, b := sizeWithin(re)
	return min(2+a, enough), min(b, enough) // it begins with a failure and ends with a match
}

func sizeWithin(re *syntax.Regexp) (instructions, ranges int) {
	for _, sub := range re.Sub {
		a, b := sizeWithin(sub)
		instructions, ranges = min(instructions+a, enough), min(ranges+b, enough)
	}
	switch re.Op {
	case syntax.OpLiteral:
		instructions = len(re.Rune)
	case syntax.OpCharClass:
		instructions, ranges = 1, len(re.Rune)
	case syntax.OpCapture:
		instructions += 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		instructions += 2 // a loop around what may be empty has one more
	case syntax.OpAlternate:
		instructions += len(re.Sub)
	case syntax.OpRepeat: // at most 1,000 times, within all others too
		times, each := re.Max, instructions
		if re.Max < 0 { // the last one is a loop
			times = re.Min + 1
		} else if re.Max > re.Min {
			each++ // for each that may be left out
		}
		instructions, ranges = min(2+each*times, enough), min(ranges*times, enough)
	case syntax.OpConcat:
		instructions++
	default:
		instructions++
	}
	return instructions, ranges
}
