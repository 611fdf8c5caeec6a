package schema

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A plainSchema recognizes most valid arguments in one pass over their text,
// without decoding, in a tenth of the library's time. Arguments that it does not
// accept may still be valid.
type plainSchema struct {
	properties map[string]int // by name: index of types
	types      []plainType
	required   uint64 // bit set of properties
	closed     bool   // no other properties are allowed
}

// A plainType says which values a property may have: any of kinds and, if enum is
// not nil, only strings in enum. With kinds 0 it accepts nothing.
type plainType struct {
	kinds jsonKinds
	enum  map[string]bool
}

type jsonKinds uint8

const (
	aJSONString jsonKinds = 1 << iota
	aJSONNumber
	aJSONInteger
	aJSONBoolean
	aJSONNull
	aJSONArray
	aJSONObject

	anyJSON jsonKinds = 1<<iota - 1
)

var jsonKindsByName = map[string]jsonKinds{
	"string": aJSONString, "number": aJSONNumber | aJSONInteger, "integer": aJSONInteger, "boolean": aJSONBoolean,
	"null": aJSONNull, "array": aJSONArray, "object": aJSONObject,
}

// notes lists the keywords that do not restrict values.
var notes = []string{"$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}

// IsNote reports whether a keyword does not restrict values.
func IsNote(keyword string) bool { return slices.Contains(notes, keyword) }

// newPlainSchema returns the plainSchema of a decoded schema that compiles. It
// returns nil if the schema has other keywords.
func newPlainSchema(doc any) *plainSchema {
	schema, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	p := &plainSchema{properties: make(map[string]int)}
	var required []any
	for keyword, value := range schema {
		switch keyword {
		case "type":
			ok = value == "object"
		case "properties":
			var properties map[string]any
			properties, ok = value.(map[string]any)
			for name, property := range properties {
				p.add(name, newPlainType(property))
			}
		case "required":
			required, ok = value.([]any)
		case "additionalProperties":
			var open bool
			open, ok = value.(bool)
			p.closed = !open
		default:
			ok = IsNote(keyword)
		}
		if !ok {
			return nil
		}
	}
	for _, name := range required {
		s, _ := name.(string) // it is one, as the schema compiles
		i, ok := p.properties[s]
		if !ok {
			return nil
		}
		p.required |= 1 << i
	}
	if len(p.types) > 64 { // required has 64 bits
		return nil
	}
	return p
}

func (p *plainSchema) add(name string, t plainType) {
	p.properties[name] = len(p.types)
	p.types = append(p.types, t)
}

func newPlainType(doc any) plainType {
	schema, ok := doc.(map[string]any)
	if !ok {
		return plainType{}
	}
	t := plainType{kinds: anyJSON}
	for keyword, value := range schema {
		switch keyword {
		case "type":
			names, list := value.([]any)
			if !list {
				names = []any{value}
			}
			t.kinds = 0
			for _, name := range names {
				s, _ := name.(string)
				t.kinds |= jsonKindsByName[s]
			}
		case "enum":
			values, ok := value.([]any)
			if !ok {
				return plainType{}
			}
			t.enum = make(map[string]bool)
			for _, v := range values {
				if s, ok := v.(string); ok {
					t.enum[s] = true
				}
			}
		default:
			if !IsNote(keyword) {
				return plainType{}
			}
		}
	}
	if t.enum != nil {
		t.kinds &= aJSONString
	}
	return t
}

// accepts reports whether args, a valid JSON object, certainly matches the schema.
func (p *plainSchema) accepts(args []byte) bool {
	r := text.Scan(args)
	if !utf8.Valid(args) || !r.Open('{') {
		return false
	}
	var seen uint64
	for r.More() {
		name, ok := r.Text()
		if !ok {
			return false
		}
		i, ok := p.properties[string(name)]
		switch {
		case ok:
			seen |= 1 << i
			if !p.types[i].accepts(&r) {
				return false
			}
		case p.closed:
			return false
		default:
			r.Skip()
		}
	}
	return seen&p.required == p.required
}

// accepts moves past a value and reports whether it certainly matches the type.
func (t plainType) accepts(r *text.Scanner) bool {
	first := r.Next()
	value := r.Value()
	switch first {
	case '"':
		return t.kinds&aJSONString != 0 && (t.enum == nil || bytes.IndexByte(value, '\\') < 0 && t.enum[string(value[1:len(value)-1])])
	case 't', 'f':
		return t.kinds&aJSONBoolean != 0
	case 'n':
		return t.kinds&aJSONNull != 0
	case '[':
		return t.kinds&aJSONArray != 0
	case '{':
		return t.kinds&aJSONObject != 0
	}
	return t.kinds&aJSONNumber != 0 || t.kinds&aJSONInteger != 0 && !bytes.ContainsAny(value, ".eE")
}
