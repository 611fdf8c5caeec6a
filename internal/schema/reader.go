package schema

import "github.com/mcphybrid/mcphybrid/internal/text"

// MaxNesting is how deep Walk reads schemas within schemas. It bounds the stack
// that a hostile schema can take; real schemas nest less than ten deep.
const MaxNesting = 64

// Walk passes the words of a JSON Schema to two functions, in the order of the
// schema. It calls name with the name of each property, at every level. It calls
// phrase with each description and each string of an enum or const. The functions
// must not change the bytes or keep them after the call. The bytes are invalid
// UTF-8 where schema is.
//
// level counts the properties around a string: 1 for the properties of schema
// itself and their texts, 2 for the properties of these, 0 for the description of
// schema.
//
// A keyword counts only where a schema may stand, so a property may be named like
// a keyword. Walk reads schemas in properties, patternProperties, $defs and
// definitions, items and prefixItems, anyOf, oneOf and allOf,
// additionalProperties, then and else. It does not follow $ref: it reads a
// definition once, in its own place. It reads all members of the same name.
//
// Walk skips values of the wrong type and schemas more than MaxNesting deep. If
// schema is not valid JSON, it reads at least the part before the mistake. The
// cost is proportional to len(schema); only strings with a backslash allocate.
func Walk(schema []byte, name, phrase func(level int, b []byte)) {
	r := reader{Scanner: text.Scan(schema), name: name, phrase: phrase}
	r.schema(MaxNesting)
}

// A reader reads through a schema once.
type reader struct {
	text.Scanner
	level        int // see Walk
	name, phrase func(level int, b []byte)
}

// schema reads a value as a schema and descends at most depth levels.
func (r *reader) schema(depth int) {
	if depth == 0 {
		r.Skip()
		return
	}
	if !r.Open('{') {
		return
	}
	for r.More() {
		keyword, _ := r.Text()
		switch string(keyword) {
		case "description", "const":
			r.textValue()
		case "enum":
			if r.Open('[') {
				for r.More() {
					r.textValue()
				}
			}
		case "properties":
			r.level++
			r.schemas(depth-1, r.name)
			r.level--
		case "patternProperties", "$defs", "definitions":
			r.schemas(depth-1, nil)
		case "items", "prefixItems", "anyOf", "oneOf", "allOf":
			if r.Next() != '[' { // items may be one schema
				r.schema(depth - 1)
				continue
			}
			r.Open('[')
			for r.More() {
				r.schema(depth - 1)
			}
		case "additionalProperties", "then", "else":
			r.schema(depth - 1)
		default:
			r.Skip()
		}
	}
}

// schemas reads an object of schemas. If name is not nil, it calls name with the
// name of each.
func (r *reader) schemas(depth int, name func(int, []byte)) {
	if !r.Open('{') {
		return
	}
	for r.More() {
		if s, ok := r.Text(); ok && name != nil {
			name(r.level, s)
		}
		r.schema(depth)
	}
}

// textValue reads a value and passes it to r.phrase if it is a string.
func (r *reader) textValue() {
	if s, ok := r.Text(); ok {
		r.phrase(r.level, s)
	}
}
