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
	case goType == "float64":
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
