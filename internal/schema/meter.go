package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Real schemas have a few hundred values and nest less than ten deep; their calls
// take some dozens of steps. Within these bounds, the worst schemas and arguments
// that we know take a fraction of a second.
const (
	maxSchemaValues = 1 << 13 // a schema with that many takes 16 MB for a moment
	maxJSONNesting  = 256
	maxSteps        = 100_000
	maxNumber       = 400 // digits, or exponent; float64 has 309 and 308

	perObject = 8 // values that an object or a boolean counts: it is likely a schema
)

// A gauge checks whether a decoded JSON value is small enough for the library.
type gauge struct {
	left  int   // values; a deep value counts more, because the library builds its pointer
	kept  int   // bytes that the values take when they are compiled, more or less
	heavy int64 // what its numbers weigh, as [weightOf] has it
}

// fits reports whether v and its numbers are small enough. The library expands a
// number's exponent into digits.
func (g *gauge) fits(v any, depth, path int) bool {
	if g.left -= 1 + path/8; g.left < 0 || depth > maxJSONNesting {
		return false
	}
	g.kept += 40
	switch v := v.(type) {
	case bool:
		g.object(path)
	case json.Number:
		digits, exponent := sizeOfNumber(v)
		g.heavy += weightOf(v)
		return max(digits, exponent) <= maxNumber
	case []any:
		for _, item := range v {
			if !g.fits(item, depth+1, path+8) {
				return false
			}
		}
	case map[string]any:
		g.object(path)
		for name, value := range v {
			if !g.fits(value, depth+1, path+1+len(name)) {
				return false
			}
			switch name {
			case "$ref", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$schema": // resolving one may visit all others
				g.left -= 16
			}
			if id, ok := value.(string); ok && (name == "$id" || name == "id") { // those below it are joined to it
				if g.left -= len(id); g.left < 0 {
					return false
				}
			}
		}
	}
	return true
}

// object counts what is likely a schema.
func (g *gauge) object(path int) {
	g.left -= perObject - 1
	g.kept += 800 + path
}

// sizeOfNumber returns how many digits a number has, more or less, and the amount of its exponent.
func sizeOfNumber(n json.Number) (digits, exponent int) {
	i := strings.IndexAny(string(n), "eE")
	if i < 0 {
		return len(n), 0
	}
	exponent, err := strconv.Atoi(string(n[i+1:]))
	if err != nil || exponent == math.MinInt {
		return i, math.MaxInt
	}
	return i, max(exponent, -exponent)
}

// weightOf returns how many steps it takes to make a number of its digits, beyond those of one
// with a few. The library compares numbers as fractions of integers, and each time anew.
func weightOf(n json.Number) int64 {
	digits, exponent := sizeOfNumber(n)
	return weight(min(digits, maxNumber) + min(exponent, maxNumber))
}

// weight returns the steps for so many digits.
func weight(digits int) int64 { return int64(digits) * int64(digits) / 2500 }

// weightIn returns what the numbers in a value weigh.
func weightIn(v any) (sum int64) {
	switch v := v.(type) {
	case json.Number:
		sum = weightOf(v)
	case []any:
		for _, item := range v {
			sum += weightIn(item)
		}
	case map[string]any:
		for _, value := range v {
			sum += weightIn(value)
		}
	}
	return sum
}

// A meter bounds the number of steps that the library takes to validate, without
// taking them. Some schemas make it exponential. A step takes about 100 ns.
type meter struct {
	left         int64
	schema, args int   // bytes
	heavy        int64 // what the numbers of the schema weigh
}

// visit counts the steps to validate v against s, which is depth levels deep.
func (m *meter) visit(s *jsonschema.Schema, v any, depth int) {
	if s == nil || m.left < 0 {
		return
	}
	m.left -= int64(1 + depth/4)
	if s.RecursiveRef != nil || s.DynamicRef != nil {
		m.left = -1 // its target is not known here
	}
	scalar := int64(1)
	switch v := v.(type) {
	case json.Number:
		scalar = 10 + weightOf(v)
		m.left -= scalar
		m.bound(s, scalar)
	case string:
		if s.MinLength != nil || s.MaxLength != nil {
			m.left -= int64(len(v) / 16)
		}
		m.match(s.Pattern, v)
	case []any:
		scalar = m.compared(s, v)
		m.visitItems(s, v, depth+1)
	case map[string]any:
		scalar = m.compared(s, v)
		m.left -= 2 * int64(len(s.Required)) // each that is missing is told
		m.visitMembers(s, v, depth+1)
	}
	if s.Const != nil {
		m.left -= scalar + m.heavy
	}
	if s.Enum != nil {
		m.left -= scalar*int64(len(s.Enum.Values)) + m.heavy
	}
	for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, t := range list {
			m.visit(t, v, depth+1)
		}
	}
	for _, t := range [...]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		m.visit(t, v, depth+1)
	}
}

// compared returns the steps to compare an array or an object with one of the schema.
func (m *meter) compared(s *jsonschema.Schema, v any) int64 {
	if s.Const == nil && s.Enum == nil {
		return 0
	}
	return int64(1+m.schema/16) + weightIn(v)
}

// bound counts the steps to compare a number, which takes so many itself, with its bounds.
func (m *meter) bound(s *jsonschema.Schema, number int64) {
	for _, bound := range [...]*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
		if bound != nil {
			m.left -= number/2 + weight((bound.Num().BitLen()+bound.Denom().BitLen())/3)
		}
	}
}

func (m *meter) visitItems(s *jsonschema.Schema, items []any, depth int) {
	m.left -= int64(len(items))
	if s.UniqueItems { // values can be made to hash alike; then all pairs are compared
		m.left -= int64(len(items)) * int64(m.args) / 64
	}
	first := s.PrefixItems
	if list, ok := s.Items.([]*jsonschema.Schema); ok { // never both
		first = list
	}
	each, _ := s.Items.(*jsonschema.Schema)
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, item := range items {
		if i < len(first) {
			m.visit(first[i], item, depth)
		} else {
			m.visit(s.Items2020, item, depth)
			m.visit(additional, item, depth)
		}
		m.visit(each, item, depth)
		m.visit(s.Contains, item, depth)
		m.visit(s.UnevaluatedItems, item, depth)
	}
}

func (m *meter) visitMembers(s *jsonschema.Schema, members map[string]any, depth int) {
	m.left -= int64(len(members))
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, value := range members {
		property := s.Properties[name]
		m.visit(property, value, depth)
		for expression, t := range s.PatternProperties {
			m.match(expression, name)
			m.visit(t, value, depth)
		}
		if property == nil {
			m.visit(additional, value, depth)
		}
		m.visit(s.UnevaluatedProperties, value, depth)
		m.visit(s.PropertyNames, name, depth)
	}
	for _, names := range s.DependentRequired {
		m.left -= int64(1 + len(names))
	}
	for _, t := range s.DependentSchemas {
		m.visit(t, members, depth)
	}
	for _, dependency := range s.Dependencies {
		names, _ := dependency.([]string)
		m.left -= int64(1 + len(names))
		t, _ := dependency.(*jsonschema.Schema)
		m.visit(t, members, depth)
	}
}

func (m *meter) match(expression jsonschema.Regexp, s string) {
	if p, ok := expression.(*pattern); ok {
		m.left -= 1 + int64(p.size)*int64(len(s))/16
	}
}
