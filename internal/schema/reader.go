package schema

import (
	"bytes"
	"encoding/json"
)

// MaxNesting is how deep Walk reads schemas within schemas. It bounds the stack
// that a hostile schema can take; real schemas nest less than ten deep.
const MaxNesting = 64

// Walk passes the words of a JSON Schema to two functions, in the order of the
// schema. It calls name with the name of each property, at every level. It calls
// text with each description and each string of an enum or const. The functions
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
func Walk(schema []byte, name, text func(level int, b []byte)) {
	r := reader{data: schema, name: name, text: text}
	r.schema(MaxNesting)
}

// A reader reads through a JSON text once. It does not check the syntax and treats
// commas and colons as space.
type reader struct {
	data       []byte
	pos        int // position of the next byte; 0 <= pos <= len(data)
	level      int // see Walk
	name, text func(level int, b []byte)
}

// schema reads a value as a schema and descends at most depth levels.
func (r *reader) schema(depth int) {
	if depth == 0 || r.next() != '{' {
		r.skip()
		return
	}
	r.pos++
	for r.more() {
		keyword, _ := r.string()
		switch string(keyword) {
		case "description", "const":
			r.textValue()
		case "enum":
			if r.enter('[') {
				for r.more() {
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
			if r.next() != '[' { // items may be one schema
				r.schema(depth - 1)
				continue
			}
			r.pos++
			for r.more() {
				r.schema(depth - 1)
			}
		case "additionalProperties", "then", "else":
			r.schema(depth - 1)
		default:
			r.skip()
		}
	}
}

// schemas reads an object of schemas. If name is not nil, it calls name with the
// name of each.
func (r *reader) schemas(depth int, name func(int, []byte)) {
	if !r.enter('{') {
		return
	}
	for r.more() {
		if s, ok := r.string(); ok && name != nil {
			name(r.level, s)
		}
		r.schema(depth)
	}
}

// textValue reads a value and passes it to r.text if it is a string.
func (r *reader) textValue() {
	if s, ok := r.string(); ok {
		r.text(r.level, s)
	}
}

// next moves to the next value or closing bracket and returns its first byte, or 0
// at the end of the text.
func (r *reader) next() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// enter moves past open and returns true if the next value begins with open.
// Otherwise it moves past the value.
func (r *reader) enter(open byte) bool {
	if r.next() != open {
		r.skip()
		return false
	}
	r.pos++
	return true
}

// more reports whether the current object or array has another element. If not,
// it moves past the closing bracket.
func (r *reader) more() bool {
	switch c := r.next(); c {
	case '}', ']':
		r.pos++
		return false
	default:
		return c != 0
	}
}

// string moves past a value. If it is a complete string, it returns its text.
func (r *reader) string() ([]byte, bool) {
	if r.next() != '"' {
		r.skip()
		return nil, false
	}
	s := r.quoted()
	if s == nil || bytes.IndexByte(s, '\\') < 0 {
		return bytes.Trim(s, `"`), s != nil
	}
	var unquoted string
	err := json.Unmarshal(s, &unquoted)
	return []byte(unquoted), err == nil
}

// quoted moves past the string whose opening quote is next. It returns the string
// with its quotes, or nil if the closing quote is missing.
func (r *reader) quoted() []byte {
	s := r.data[r.pos:]
	for end := 1; ; end++ {
		i := bytes.IndexByte(s[end:], '"')
		if i < 0 {
			r.pos = len(r.data)
			return nil
		}
		end += i
		// A quote after an odd number of backslashes is escaped.
		if (end-len(bytes.TrimRight(s[:end], `\`)))%2 == 0 {
			r.pos += end + 1
			return s[:end+1]
		}
	}
}

// skip moves past a value of any depth, without recursion.
func (r *reader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case 0:
			return
		case '"':
			r.quoted()
		case '{', '[':
			r.pos++
			depth++
		case '}', ']':
			r.pos++
			depth--
		default: // a number, true, false or null
			for r.pos < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:]}"), r.data[r.pos]) < 0 {
				r.pos++
			}
		}
		if depth <= 0 { // below 0 at a bracket where a value is missing
			return
		}
	}
}
