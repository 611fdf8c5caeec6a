package mcphybrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A member is one name and value of a JSON object.
type member struct {
	name    string
	written []byte // the name as it stands in the JSON text
	value   json.RawMessage
}

// objectMembers returns the members of a JSON object in their order,
// repeated names included.
func objectMembers(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var members []member
	for dec.More() {
		start := dec.InputOffset()
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // within an object, a name comes first
		m.written = bytes.TrimLeft(data[start:dec.InputOffset()], ", \t\r\n")
		if err := dec.Decode(&m.value); err != nil {
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

// describeJSONError adds to err where in data it is.
func describeJSONError(data []byte, err error) error {
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
	case strings.HasPrefix(goType, "[]"):
		return "a list of strings"
	case goType == "string":
		return "a string"
	case goType == "float64" || strings.HasPrefix(goType, "int"):
		return "a number"
	}
	return "an object"
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// compact returns the JSON value raw without insignificant space, as valid
// UTF-8, with its members in their order.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // never: raw came out of a decoder
	}
	if !utf8.Valid(b.Bytes()) {
		return bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))
	}
	return b.Bytes()
}

// jsonText returns v, which marshals in any case, for a model: not escaped for
// a browser.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// joinMembers returns the JSON object of members, under their names as they
// were written.
func joinMembers(members []member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		if m.written == nil {
			m.written = quote(m.name)
		}
		b = append(append(append(b, m.written...), ':'), m.value...)
	}
	return append(b, '}')
}

func quote(s string) json.RawMessage { return json.RawMessage(jsonText(s)) }

// elements returns the elements of a JSON array, or nil if it is none.
func elements(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// joinElements returns a JSON array, or nil if it would be empty.
func joinElements(list []json.RawMessage) json.RawMessage {
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

// stringsOf returns the strings of a JSON array without repetition, or nil if
// it is none or has something else.
func stringsOf(raw json.RawMessage) []string {
	list := []string{}
	seen := make(map[string]bool)
	if raw[0] != '[' {
		return nil
	}
	for _, e := range elements(raw) {
		s, ok := unquote(e)
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

func joinStrings(list []string) json.RawMessage {
	if list == nil {
		return nil
	}
	quoted := make([]json.RawMessage, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	if len(quoted) == 0 {
		return json.RawMessage("[]")
	}
	return joinElements(quoted)
}

func unquote(raw json.RawMessage) (s string, ok bool) {
	ok = raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }
