package schema

import (
	"encoding/json"
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
	left int // values; a deep value counts more, because the library builds its pointer
	kept int // bytes that the values take when they are compiled, more or less
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
		if i := strings.IndexAny(string(v), "eE"); i >= 0 {
			exponent, err := strconv.Atoi(string(v[i+1:]))
			return err == nil && i <= maxNumber && max(exponent, -exponent) <= maxNumber
		}
		return len(v) <= maxNumber
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

// A meter bounds the number of steps that the library takes to validate, without
// taking them. Some schemas make it exponential. A step takes about 100 ns.
type meter struct {
	left         int64
	schema, args int // bytes
}

// visit counts the steps to validate v against s, which is depth levels deep.
func (m *meter) visit(s *jsonschema.Schema, v any, depth int) {
	if s == nil || m.left < 0 {
		return
	}
	m.left -= int64(1 + depth/4 + len(s.Required))
	if s.RecursiveRef != nil || s.DynamicRef != nil {
		m.left = -1 // its target is not known here
	}
	scalar := 1
	switch v := v.(type) {
	case json.Number:
		scalar = 10
		m.left -= 10
	case string:
		if s.MinLength != nil || s.MaxLength != nil {
			m.left -= int64(len(v) / 16)
		}
		m.match(s.Pattern, v)
	case []any:
		scalar = 1 + m.schema/16
		m.visitItems(s, v, depth+1)
	case map[string]any:
		scalar = 1 + m.schema/16
		m.visitMembers(s, v, depth+1)
	}
	if s.Const != nil {
		m.left -= int64(scalar)
	}
	if s.Enum != nil {
		m.left -= int64(scalar) * int64(len(s.Enum.Values))
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

func (m *meter) visitItems(s *jsonschema.Schema, items []any, depth int) {
	m.left -= int64(len(items))
	if s.UniqueItems { // values can be made to hash alike; then all pairs are compared
		m.left -= int64(len(items)) * int64(m.args) / 64
	}
	list, _ := s.Items.([]*jsonschema.Schema)
	first := append(list[:len(list):len(list)], s.PrefixItems...) // never both
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
