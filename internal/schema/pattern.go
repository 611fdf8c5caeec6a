package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The patterns of real schemas have some hundred bytes and instructions. Within these
// limits, those of a schema take a few megabytes and milliseconds to compile. See also
// [expression.ReadingCost].
const (
	maxPatternText  = expression.MaxReading // bytes of all patterns of a schema
	maxPatternSize  = 1 << 14               // instructions
	maxPatternRunes = 1 << 19               // ends of the ranges in the classes of these instructions
)

// patterns holds the regular expressions of a schema.
type patterns struct {
	seen  map[string]*pattern // by expression; nil for one that is refused
	text  int64               // bytes that are still allowed
	left  expression.Size     // likewise, when they are compiled
	fault error               // why an expression was refused for its size, or nil
}

type pattern struct {
	*regexp.Regexp
	size int // instructions; bounds the time to match a byte
}

func newPatterns() *patterns {
	return &patterns{make(map[string]*pattern), maxPatternText, expression.Size{Instructions: maxPatternSize, Runes: maxPatternRunes}, nil}
}

// find returns the compiled expression. It returns nil if the expression is not
// valid in Go or exceeds a limit together with the earlier ones.
func (p *patterns) find(source string) *pattern {
	found, ok := p.seen[source]
	if ok || p.fault != nil {
		return found
	}
	p.seen[source] = nil
	if p.text -= expression.ReadingCost(source); p.text < 0 {
		p.fault = fmt.Errorf("the patterns of a schema may have %d bytes, where a class like \\pL counts %d, and a range of letters beyond ASCII without regard to case %d", maxPatternText, expression.PerUnicodeClass, expression.PerFoldedRange)
		return nil
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil
	}
	size := expression.SizeOf(parsed)
	p.left.Instructions -= size.Instructions
	p.left.Runes -= size.Runes
	switch {
	case p.left.Instructions < 0:
		p.fault = fmt.Errorf("the patterns of a schema may have %d instructions", maxPatternSize)
		return nil
	case p.left.Runes < 0:
		p.fault = fmt.Errorf("the classes in the patterns of a schema may have %d ends of ranges", maxPatternRunes)
		return nil
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil
	}
	found = &pattern{re, int(size.Instructions)}
	p.seen[source] = found
	return found
}

func (p *patterns) compile(source string) (jsonschema.Regexp, error) {
	found := p.find(source)
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
	return 100*int(maxPatternSize-max(p.left.Instructions, 0)) + 6*int(maxPatternRunes-max(p.left.Runes, 0))
}
