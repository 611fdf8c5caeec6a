package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/itchyny/gojq"
	"github.com/mcphybrid/mcphybrid/internal/expression"
)

// What is made at once before it can be counted is bounded by these.
const (
	maxPairs  = 1_000_000 // pairs of elements that an operator compares, if they are small
	smallCost = 32        // of an element that is small
	maxSorted = 250_000   // elements of an array that is sorted
	maxPlace  = 200       // bytes of an array that is looked for in another
	anObject  = 256       // bytes of an object beside what is in it
	maxPart   = 16 << 10  // bytes of a part of a string with \(…): all parts are joined first
	maxDigits = 1000      // of a number
	maxRegexp = 5000      // instructions of a regular expression
	maxMatch  = 100 << 20 // bytes of a text times instructions
)

// native are gojq's own operators, of numbers and for what can't be large.
var native = map[string]*gojq.Code{
	plus: compiled(".[0] + .[1]"), minus: compiled(".[0] - .[1]"), times: compiled(".[0] * .[1]"), divided: compiled(".[0] / .[1]"),
	"fromjson": compiled(".[0] | fromjson"), "tonumber": compiled(".[0] | tonumber"),
}

func compiled(expression string) *gojq.Code {
	q, err := gojq.Parse(expression)
	if err != nil {
		panic(err)
	}
	code, err := gojq.Compile(q)
	if err != nil {
		panic(err)
	}
	return code
}

func operate(name string, a, b any) any {
	v, _ := native[name].Run([]any{a, b}).Next()
	return v
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, float64, *big.Int, json.Number:
		return true
	}
	return false
}

func isLong(v any) bool {
	n, ok := v.(*big.Int)
	return ok && n.BitLen() > 4*maxDigits
}

// numbers is an operator that is here only for numbers.
func numbers(name string, a, b any) any {
	switch {
	case !isNumber(a) || !isNumber(b):
		return fmt.Errorf("only numbers can be multiplied and divided, not %s and %s", gojq.TypeOf(a), gojq.TypeOf(b))
	case isLong(a) || isLong(b):
		return errMade
	}
	return operate(name, a, b)
}

func (s *spending) plus(a, b any) any {
	if isLong(a) || isLong(b) {
		return errMade
	}
	if isNumber(a) && isNumber(b) {
		return operate(plus, a, b)
	}
	if n := min(cost(a, maxValue), maxValue+1) + min(cost(b, maxValue), maxValue+1); n > maxValue || !s.pay(n) {
		s.over = true
		return errMade
	}
	return operate(plus, a, b)
}

func (s *spending) minus(a, b any) any {
	x, _ := a.([]any)
	y, _ := b.([]any)
	switch {
	case isLong(a) || isLong(b):
		return errMade
	case len(x)*len(y) > maxPairs, min(len(y)*min(cost(a, maxValue), maxValue), len(x)*min(cost(b, maxValue), maxValue)) > maxPairs*smallCost:
		return errors.New("the arrays are too long to be subtracted")
	case !s.pay(16 * len(x)):
		return errMade
	}
	return operate(minus, a, b)
}

// part returns a part of a string with \(…).
func part(v any) any {
	if cost(v, maxPart) > maxPart {
		return fmt.Errorf("a part of a string has more than %d bytes", maxPart)
	}
	return v
}

// few returns what is to be sorted.
func few(v any) any {
	if list, ok := v.([]any); ok && len(list) > maxSorted {
		return fmt.Errorf("an array of more than %d elements can't be sorted", maxSorted)
	}
	return v
}

// at returns what says where something is in an array or object. An array is looked for.
func at(v any) any {
	if _, looked := v.([]any); looked && cost(v, maxPlace) > maxPlace {
		return errors.New("the array is too large to be looked for in another")
	}
	return v
}

// atPath returns a path.
func atPath(v any) any {
	path, _ := v.([]any)
	for _, e := range path {
		if err, ok := at(e).(error); ok {
			return err
		}
	}
	return v
}

// toNumber makes a number of a text.
func toNumber(v any) any {
	if text, ok := v.(string); ok && len(text) > maxDigits {
		return fmt.Errorf("tonumber is for at most %d digits", maxDigits)
	}
	return operate("tonumber", v, nil)
}

// fromJSON makes a value of a text.
func (s *spending) fromJSON(v any) any {
	text, ok := v.(string)
	if !ok {
		return operate("fromjson", v, nil)
	}
	if len(text) > MaxInput {
		s.over = true
		return errMade
	}
	objects, err := measure(text, "text")
	switch {
	case err != nil:
		return err
	case !s.pay(objects * anObject):
		return errMade
	}
	return s.spend(operate("fromjson", text, nil))
}

func contains(v, part any) any {
	a, isText := v.(string)
	b, both := part.(string)
	if isText && both {
		return strings.Contains(a, b)
	}
	return fmt.Errorf("contains is only for strings here, not for %s and %s: use any(. == $x)", gojq.TypeOf(v), gojq.TypeOf(part))
}

func (s *spending) join(v, with any) any {
	list, ok := v.([]any)
	between, isText := with.(string)
	if !ok || !isText {
		return fmt.Errorf("join needs an array and a string, not %s and %s", gojq.TypeOf(v), gojq.TypeOf(with))
	}
	parts, size := make([]string, len(list)), len(between)*len(list)
	for i, e := range list {
		switch e := e.(type) {
		case string:
			parts[i] = e
		case nil:
		case []any, map[string]any:
			return fmt.Errorf("join can't join %s", gojq.TypeOf(e))
		default:
			text, err := gojq.Marshal(e)
			if err != nil {
				return err
			}
			parts[i] = string(text)
		}
		size += len(parts[i])
	}
	if size > maxValue || !s.pay(size) {
		s.over = true
		return errMade
	}
	return strings.Join(parts, between)
}

func (s *spending) split(v, at any) any {
	text, ok := v.(string)
	between, both := at.(string)
	if !ok || !both {
		return fmt.Errorf("split needs two strings, not %s and %s", gojq.TypeOf(v), gojq.TypeOf(at))
	}
	n := strings.Count(text, between) + 1
	if size := 48*n + len(text); size > maxValue || !s.pay(size) {
		s.over = true
		return errMade
	}
	parts := make([]any, 0, n)
	if text != "" {
		for _, part := range strings.Split(text, between) {
			parts = append(parts, part)
		}
	}
	return parts
}

// test reports whether a regular expression matches.
func test(v, pattern any) any {
	text, ok := v.(string)
	source, both := pattern.(string)
	if !ok || !both {
		return fmt.Errorf("test needs two strings, not %s and %s", gojq.TypeOf(v), gojq.TypeOf(pattern))
	}
	if expression.ReadingCost(source) > expression.MaxReading {
		return errors.New("the regular expression is too large")
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return errors.New(cut(err.Error()))
	}
	n := instructions(tree)
	if n > maxRegexp || n*len(text) > maxMatch {
		return errors.New("the regular expression is too large for the text")
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return errors.New(cut(err.Error()))
	}
	return re.MatchString(text)
}

// instructions returns about how many instructions a regular expression takes, or more than
// [maxRegexp].
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxRegexp+1)
}
