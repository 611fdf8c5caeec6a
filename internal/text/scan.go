package text

import (
	"bytes"
	"encoding/json"
)

// A Scanner reads through a JSON text once, without decoding it. It does not check the
// syntax and treats commas and colons as space.
type Scanner struct {
	data []byte
	pos  int // position of the next byte; 0 <= pos <= len(data)
}

// Scan returns a Scanner that is before the first value of data.
func Scan(data []byte) Scanner { return Scanner{data: data} }

// Next moves to the next value or closing bracket and returns its first byte, or 0
// at the end of the text.
func (s *Scanner) Next() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// Open moves past the bracket and returns true if the next value begins with it.
// Otherwise it moves past the value.
func (s *Scanner) Open(bracket byte) bool {
	if s.Next() != bracket {
		s.Skip()
		return false
	}
	s.pos++
	return true
}

// More reports whether the current object or array has another element. If not,
// it moves past the closing bracket.
func (s *Scanner) More() bool {
	switch c := s.Next(); c {
	case '}', ']':
		s.pos++
		return false
	default:
		return c != 0
	}
}

// Value moves past a value and returns it as it is written. It is part of the text.
func (s *Scanner) Value() json.RawMessage {
	s.Next()
	begin := s.pos
	s.Skip()
	return s.data[begin:s.pos:s.pos]
}

// Text moves past a value. If it is a complete string, Text returns what it says, which is
// part of the text and invalid UTF-8 where that is, unless there is a backslash.
func (s *Scanner) Text() ([]byte, bool) {
	if s.Next() != '"' {
		s.Skip()
		return nil, false
	}
	quoted := s.quoted()
	if quoted == nil || bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`), quoted != nil
	}
	var said string
	err := json.Unmarshal(quoted, &said)
	return []byte(said), err == nil
}

// quoted moves past the string whose opening quote is next. It returns the string
// with its quotes, or nil if the closing quote is missing.
func (s *Scanner) quoted() []byte {
	rest := s.data[s.pos:]
	for end := 1; ; end++ {
		i := bytes.IndexByte(rest[end:], '"')
		if i < 0 {
			s.pos = len(s.data)
			return nil
		}
		end += i
		// A quote after an odd number of backslashes is escaped.
		if (end-len(bytes.TrimRight(rest[:end], `\`)))%2 == 0 {
			s.pos += end + 1
			return rest[:end+1]
		}
	}
}

// Skip moves past a value of any depth, without recursion.
func (s *Scanner) Skip() {
	for depth := 0; ; {
		switch s.Next() {
		case 0:
			return
		case '"':
			s.quoted()
		case '{', '[':
			s.pos++
			depth++
		case '}', ']':
			s.pos++
			depth--
		default: // a number, true, false or null
			for s.pos < len(s.data) && bytes.IndexByte([]byte(" \t\r\n,:]}"), s.data[s.pos]) < 0 {
				s.pos++
			}
		}
		if depth <= 0 { // below 0 at a bracket where a value is missing
			return
		}
	}
}

// Fields returns the values of these members of a JSON object, as they are written, in the
// order of names. Names match in whatever case, as in [json.Unmarshal]. The value of a
// member that is not there is nil; of several, the last one counts. twice is the first
// of the names that the object has more than once, or "": there, others read what is
// spelled alike. object must be valid JSON. If it is no object, it has no members.
func Fields(object []byte, names ...string) (values []json.RawMessage, twice string) {
	values = make([]json.RawMessage, len(names))
	first := len(names) // of those that are there twice
	s := Scan(object)
	if !s.Open('{') {
		return values, ""
	}
	for s.More() {
		name, _ := s.Text()
		value := s.Value()
		for i, known := range names {
			if string(name) == known || bytes.EqualFold(name, []byte(known)) {
				if values[i] != nil {
					first = min(first, i)
				}
				values[i] = value
				break
			}
		}
	}
	if first < len(names) {
		twice = names[first]
	}
	return values, twice
}
