package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The patterns of real schemas have some hundred bytes and instructions. Within these
// limits, those of a schema take a few megabytes and milliseconds to compile. See also
// [readingCost].
const (
	maxPatternText  = 1 << 13 // bytes of all patterns of a schema
	maxPatternSize  = 1 << 14 // instructions
	maxPatternRunes = 1 << 19 // ends of the ranges in the classes of these instructions

	maxPatternRepeat = 1 << 40 // beyond all limits; sizes stop growing here
)

// patterns holds the regular expressions of a schema.
type patterns struct {
	seen  map[string]*pattern // by expression; nil for one that is refused
	left  patternSize         // what is still allowed
	fault error               // why an expression was refused for its size, or nil
}

type pattern struct {
	*regexp.Regexp
	size int // instructions; bounds the time to match a byte
}

func newPatterns() *patterns {
	return &patterns{make(map[string]*pattern), patternSize{maxPatternText, maxPatternSize, maxPatternRunes}, nil}
}

// find returns the compiled expression. It returns nil if the expression is not
// valid in Go or exceeds a limit together with the earlier ones.
func (p *patterns) find(expression string) *pattern {
	found, ok := p.seen[expression]
	if ok || p.fault != nil {
		return found
	}
	p.seen[expression] = nil
	if p.left.text -= readingCost(expression); p.left.text < 0 {
		p.fault = fmt.Errorf("the patterns of a schema may have %d bytes, where a class like \\pL counts %d, and a range of letters beyond ASCII without regard to case %d", maxPatternText, perUnicodeClass, perFoldedRange)
		return nil
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	size := sizeOf(parsed)
	p.left.instructions -= size.instructions
	p.left.runes -= size.runes
	switch {
	case p.left.instructions < 0:
		p.fault = fmt.Errorf("the patterns of a schema may have %d instructions", maxPatternSize)
		return nil
	case p.left.runes < 0:
		p.fault = fmt.Errorf("the classes in the patterns of a schema may have %d ends of ranges", maxPatternRunes)
		return nil
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil
	}
	found = &pattern{re, int(size.instructions)}
	p.seen[expression] = found
	return found
}

func (p *patterns) compile(expression string) (jsonschema.Regexp, error) {
	found := p.find(expression)
	switch {
	case found != nil:
		return found, nil
	case p.fault != nil:
		return nil, p.fault
	}
	return nil, errors.New("not a regular expression of Go's")
}

// kept returns how many bytes the compiled expressions take, more or less.
func (p *patterns) kept() int {
	return 100*int(maxPatternSize-max(p.left.instructions, 0)) + 6*int(maxPatternRunes-max(p.left.runes, 0))
}

// What takes longer to read than its bytes say.
const (
	perUnicodeClass = 1 << 6  // a class has up to 1,300 runes
	perFoldedRange  = 1 << 12 // all letters of the range are visited, up to 125,000
)

var foldsCase = regexp.MustCompile(`\(\?[msU]*i`)

// readingCost returns the cost of parsing an expression, in bytes.
func readingCost(expression string) int64 {
	cost := len(expression) + perUnicodeClass*(strings.Count(expression, `\p`)+strings.Count(expression, `\P`))
	if foldsCase.MatchString(expression) {
		for i := range len(expression) - 1 {
			if next := expression[i+1]; expression[i] == '-' && (next >= utf8.RuneSelf || strings.HasPrefix(expression[i+1:], `\x{`)) {
				cost += perFoldedRange
			}
		}
	}
	return int64(cost)
}

// A patternSize is how large an expression is.
type patternSize struct {
	text         int64 // see readingCost
	instructions int64
	runes        int64 // ends of the ranges in the classes of the instructions
}

// sizeOf returns the instructions and runes of an expression when it will be compiled, or
// more. It expands no repetition: that is what takes the memory.
func sizeOf(re *syntax.Regexp) patternSize {
	var sub patternSize
	for _, s := range re.Sub {
		size := sizeOf(s)
		sub.instructions += size.instructions
		sub.runes += size.runes
	}
	switch re.Op {
	case syntax.OpLiteral:
		sub.instructions = int64(len(re.Rune))
	case syntax.OpCharClass:
		return patternSize{instructions: 1, runes: int64(len(re.Rune))}
	case syntax.OpCapture, syntax.OpStar: // a star is (x+)? if x may be empty
		sub.instructions += 2
	case syntax.OpPlus, syntax.OpQuest:
		sub.instructions++
	case syntax.OpAlternate:
		sub.instructions += int64(len(re.Sub))
	case syntax.OpRepeat:
		times := int64(max(re.Min, re.Max, 1))
		sub.instructions = times*max(sub.instructions, 1) + max(int64(re.Max-re.Min), 2) // x{1,3} is x(x(x)?)?
		sub.runes *= times
	}
	return patternSize{instructions: min(max(sub.instructions, 1), maxPatternRepeat), runes: min(sub.runes, maxPatternRepeat)}
}
