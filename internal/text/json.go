package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Member is one name and value of a JSON object.
type Member struct {
	Name    string
	Written []byte // the name as written in the JSON text, with quotes
	Value   json.RawMessage
}

// Members returns the members of a JSON object in their order, including repeated
// names. It is an error if data is anything else.
func Members(data []byte) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var members []Member
	for dec.More() {
		start := dec.InputOffset()
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: name.(string)} // within an object, a name comes first
		m.Written = bytes.TrimLeft(data[start:dec.InputOffset()], ", \t\r\n")
		if err := dec.Decode(&m.Value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("is followed by something")
	}
	return members, nil
}

// ReadElement reads an element of a server's list, which may have so many bytes. It
// returns what [Fields] does. null is an element without members.
func ReadElement(raw json.RawMessage, maxBytes int, names ...string) (values []json.RawMessage, twice string, err error) {
	if len(raw) > maxBytes {
		return nil, "", fmt.Errorf("the definition has %d bytes, more than the limit of %d", len(raw), maxBytes)
	}
	if s := Scan(raw); s.Next() != '{' || !json.Valid(raw) {
		if err := json.Unmarshal(raw, new(struct{})); err != nil {
			return nil, "", JSONError(raw, err)
		}
	}
	values, twice = Fields(raw, names...)
	return values, twice, nil
}

// String returns the string that is the value of a member. It is "" if the value is null
// or not there, and an error if it is anything else.
func String(member string, value json.RawMessage) (s string, err error) {
	if IsNull(value) {
		return "", nil
	}
	s, ok := Unquote(value)
	if ok {
		return s, nil
	}
	err = json.Unmarshal(value, &s)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		kind.Field = member
	}
	return "", JSONError(value, err)
}

// Twice returns the first name that an object in a JSON text, at any level, has more than
// once. It returns "" if there is none, or if the text is malformed before.
func Twice(data []byte) string {
	type level struct {
		names map[string]bool // nil in an array
		value bool            // the value of a member is next
	}
	var in []level
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		last := len(in) - 1
		if name, ok := token.(string); ok && last >= 0 && in[last].names != nil && !in[last].value {
			if in[last].names[name] {
				return name
			}
			in[last].names[name], in[last].value = true, true
			continue
		}
		if last >= 0 {
			in[last].value = false
		}
		switch token {
		case json.Delim('{'):
			in = append(in, level{names: make(map[string]bool)})
		case json.Delim('['):
			in = append(in, level{})
		case json.Delim('}'), json.Delim(']'):
			in = in[:last]
		}
	}
}

// Distinct reports whether certainly no object in a valid JSON text, at any level, has a member more
// than once: what [Twice] says, but much quicker, and false of an object with many members.
func Distinct(data []byte) bool {
	s := Scan(data)
	return s.distinct(0)
}

// distinct moves past a value that is so many levels down.
func (s *Scanner) distinct(level int) bool {
	if level > maxDistinctLevels {
		return false
	}
	switch s.Next() {
	case '{':
		var names [16][]byte
		s.pos++
		for n := 0; s.More(); n++ {
			name, ok := s.Text()
			if !ok || n == len(names) || !utf8.Valid(name) || slices.ContainsFunc(names[:n], func(other []byte) bool { return bytes.Equal(name, other) }) || !s.distinct(level+1) {
				return false
			}
			names[n] = name
		}
	case '[':
		s.pos++
		for s.More() {
			if !s.distinct(level + 1) {
				return false
			}
		}
	default:
		s.Skip()
	}
	return true
}

// maxDistinctLevels bounds the memory of a recursion.
const maxDistinctLevels = 32

// JSONError adds the line and column in data to a syntax error. It rewrites a type
// error in terms of JSON and returns other errors unchanged.
func JSONError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		before := data[:min(max(int(syntax.Offset)-1, 0), len(data))]
		line := bytes.Count(before, []byte("\n")) + 1
		return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n'), err)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%q is a JSON %s, want %s", kind.Field, kind.Value, jsonKind(kind.Type.String()))
	case errors.As(err, &kind):
		return fmt.Errorf("is a JSON %s, want an object", kind.Value)
	}
	return err
}

func jsonKind(goType string) string {
	switch {
	case goType == "bool":
		return "true or false"
	case goType == "[]string":
		return "a list of strings"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a string"
	case goType == "float64" || strings.HasPrefix(goType, "int"):
		return "a number"
	}
	return "an object"
}

// IsNull reports whether raw is empty or null.
func IsNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// Compact returns the JSON value raw without insignificant space and with invalid
// UTF-8 replaced. The members keep their order. If that is raw, it returns raw itself.
func Compact(raw json.RawMessage) json.RawMessage {
	if isCompact(raw) {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // never: raw came out of a decoder
	}
	if !utf8.Valid(b.Bytes()) {
		return bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))
	}
	return b.Bytes()
}

func isCompact(raw json.RawMessage) bool {
	s := Scan(raw)
	for s.pos < len(raw) {
		switch raw[s.pos] {
		case ' ', '\t', '\r', '\n':
			return false
		case '"':
			s.quoted()
		default:
			s.pos++
		}
	}
	return utf8.Valid(raw)
}

// JSON returns v as JSON for a model, without escapes for HTML. v must be a value
// that always marshals.
func JSON(v any) string {
	var b strings.Builder
	encode(&b, v)
	return strings.TrimSuffix(b.String(), "\n")
}

// RawJSON is [JSON] as bytes.
func RawJSON(v any) json.RawMessage {
	var b bytes.Buffer
	encode(&b, v)
	return slices.Clip(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // without spare capacity: others may append
}

func encode(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

// JoinMembers returns the JSON object with these members. A member without Written
// gets its quoted Name.
func JoinMembers(members []Member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		if m.Written == nil {
			m.Written = Quote(m.Name)
		}
		b = append(append(append(b, m.Written...), ':'), m.Value...)
	}
	return append(b, '}')
}

// Quote returns s as a JSON string.
func Quote(s string) json.RawMessage { return RawJSON(s) }

// Elements returns the elements of a JSON array, or nil if raw is not an array.
func Elements(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// JoinElements returns a JSON array, or nil if list is empty.
func JoinElements(list []json.RawMessage) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// Strings returns the distinct strings of a JSON array in their order. It returns
// nil if raw is not an array or has other elements. raw must not be empty.
func Strings(raw json.RawMessage) []string {
	list := []string{}
	seen := make(map[string]bool)
	if raw[0] != '[' {
		return nil
	}
	for _, e := range Elements(raw) {
		s, ok := Unquote(e)
		if !ok {
			return nil
		}
		if !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

// JoinStrings returns a JSON array of strings, or nil if list is nil.
func JoinStrings(list []string) json.RawMessage {
	if list == nil {
		return nil
	}
	quoted := make([]json.RawMessage, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	if len(quoted) == 0 {
		return json.RawMessage("[]")
	}
	return JoinElements(quoted)
}

// Unquote returns the value of a JSON string. It returns false if raw is no string.
func Unquote(raw json.RawMessage) (s string, ok bool) {
	if said, plain := unescaped(raw); plain {
		return string(said), true
	}
	ok = len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

// IsNumber reports whether raw, a JSON value, is a number.
func IsNumber(raw json.RawMessage) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }

// unescaped returns what a JSON string says if it has nothing that must be decoded.
func unescaped(raw json.RawMessage) (said []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	said = raw[1 : len(raw)-1]
	for _, b := range said {
		if b < ' ' || b == '"' || b == '\\' {
			return nil, false
		}
	}
	return said, utf8.Valid(said)
}
