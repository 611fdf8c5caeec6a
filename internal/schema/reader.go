package schema

import (
	"bytes"
	"encoding/json"
)

// MaxNesting is how deep schemas within schemas are read. It bounds the
// stack that a hostile schema can take; real ones nest less than ten deep.
const MaxNesting = 64

// Walk reads the words of a JSON Schema that say what a tool takes. It
// calls name with the name of each property, at every level, and text with
// each description and each string of an enum or const, in the order of the
// schema. The bytes must not be changed, nor used after the call; they may be
// invalid UTF-8 where schema is.
//
// Keywords count only where a schema stands, so that a property may have the
// name of one. Schemas are read in properties, patternProperties, $defs and
// definitions, items and prefixItems, anyOf, oneOf and allOf,
// additionalProperties, then and else. No $ref is followed: a definition is
// read once, where it stands. Members of the same name are all read.
//
// What has the wrong type is passed over, and so is what stands more than
// MaxNesting deep. Of what is not valid JSON a part is read, at least
// what stands before the mistake. The cost is proportional to len(schema);
// only strings with a backslash allocate.
func Walk(schema []byte, name, text func([]byte)) {
	r := reader{data: schema, name: name, text: text}
	r.schema(MaxNesting)
}

// A reader goes once through a JSON text. It finds values without
// checking them: commas and colons are taken as space.
type reader struct {
	data       []byte
	pos        int // of the next byte; 0 <= pos <= len(data)
	name, text func([]byte)
}

// schema reads a value that is a schema, with at most depth levels.
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
			r.schemas(depth-1, r.name)
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

// schemas reads an object of schemas and calls name, unless it is nil, with
// the name of each.
func (r *reader) schemas(depth int, name func([]byte)) {
	if !r.enter('{') {
		return
	}
	for r.more() {
		if s, ok := r.string(); ok && name != nil {
			name(s)
		}
		r.schema(depth)
	}
}

// textValue reads a value and hands it out if it is a string.
func (r *reader) textValue() {
	if s, ok := r.string(); ok {
		r.text(s)
	}
}

// next goes to the next value or closing bracket and returns its first byte,
// or 0 at the end of the text.
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

// enter goes past open and reports true if the next value is an object or
// array that starts with it. Otherwise it goes past the value.
func (r *reader) enter(open byte) bool {
	if r.next() != open {
		r.skip()
		return false
	}
	r.pos++
	return true
}

// more reports whether the object or array that was entered has something
// more. Otherwise it goes past the closing bracket.
func (r *reader) more() bool {
	switch c := r.next(); c {
	case '}', ']':
		r.pos++
		return false
	default:
		return c != 0
	}
}

// string goes past a value and returns its text if it is a whole string.
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

// quoted goes past the string whose opening quote is next and returns it with
// its quotes, or nil if it has no end.
func (r *reader) quoted() []byte {
	s := r.data[r.pos:]
	for end := 1; ; end++ {
		i := bytes.IndexByte(s[end:], '"')
		if i < 0 {
			r.pos = len(r.data)
			return nil
		}
		end += i
		// A quote after an odd number of backslashes is one of the string's.
		if (end-len(bytes.TrimRight(s[:end], `\`)))%2 == 0 {
			r.pos += end + 1
			return s[:end+1]
		}
	}
}

// skip goes past a value, however deep, without recursion.
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
