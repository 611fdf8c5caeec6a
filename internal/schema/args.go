package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Arguments returns the arguments of a call as a JSON object. It accepts every
// shape in which providers' clients pass them: a string, []byte or
// json.RawMessage with JSON; nil or empty for no arguments; or a value that
// marshals to a JSON object, such as a map[string]any. The error is a sentence that
// begins with "the arguments".
func Arguments(args any) (json.RawMessage, error) {
	var raw json.RawMessage
	switch a := args.(type) {
	case nil:
	case json.RawMessage:
		raw = a
	case []byte:
		raw = a
	case string:
		raw = json.RawMessage(a)
	default:
		var err error // of the host's types, which may have methods
		if raw, err = hostcode.Call("MarshalJSON", func() ([]byte, error) { return json.Marshal(a) }); err != nil {
			return nil, fmt.Errorf("the arguments can't be written as JSON: %w", err)
		}
		if raw[0] == '{' {
			return raw, nil // Marshal returned valid JSON
		}
	}
	raw = bytes.TrimSpace(raw)
	if text.IsNull(raw) {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, errNoObject
	}
	if !json.Valid(raw) {
		var v any
		return nil, notJSON(raw, json.Unmarshal(raw, &v))
	}
	return raw, nil
}

func notJSON(args json.RawMessage, err error) error {
	return fmt.Errorf("the arguments are not valid JSON: %w", text.JSONError(args, err))
}

var errNoObject = errors.New("the arguments are not a JSON object")

// Written returns what tells arguments that [Arguments] refused from others: their
// text or, if they are no text, why they were refused. Such a value may contain
// itself, so it can't be written.
func Written(args any, refused error) []byte {
	switch a := args.(type) {
	case json.RawMessage:
		return a
	case []byte:
		return a
	case string:
		return []byte(a)
	}
	return []byte(refused.Error())
}

// NoNull returns the names of the parameters of an input schema for which null
// certainly means "not given": they are optional and their schema refuses null.
// Models often fill in every optional parameter, and servers then refuse the call.
// In doubt, as with a $ref, NoNull leaves a parameter out.
//
// It reads only schemas that are valid JSON, and none with a keyword twice.
func NoNull(schema json.RawMessage) (names []string) {
	fields, twice := text.Fields(schema, "properties", "required")
	var list []string
	if twice != "" || !text.IsNull(fields[1]) && json.Unmarshal(fields[1], &list) != nil {
		return nil
	}
	required := make(map[string]bool, len(list))
	for _, name := range list {
		required[name] = true
	}
	properties := text.Scan(fields[0])
	if !properties.Open('{') {
		return nil
	}
	for properties.More() {
		name, _ := text.Unquote(properties.Value())
		if property := properties.Value(); !required[name] && refusesNull(property, maxSchemaDepth) {
			names = append(names, name)
		}
	}
	return names
}

// maxSchemaDepth is how many levels of nested alternatives refusesNull reads.
// Each level reads the deeper ones again.
const maxSchemaDepth = 4

// refusesNull reports whether null is certainly invalid against schema. It reads
// at most depth levels of alternatives and returns false in doubt.
func refusesNull(schema json.RawMessage, depth int) bool {
	if depth == 0 {
		return false
	}
	fields, twice := text.Fields(schema, "type", "enum", "const", "anyOf", "oneOf", "nullable")
	kind, enum, constant, anyOf, oneOf, nullable := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
	// nullable is OpenAPI's word for a type that also takes null.
	if twice != "" || !text.IsNull(nullable) && string(nullable) != "false" {
		return false
	}
	for _, list := range []json.RawMessage{enum, anyOf, oneOf} {
		if !text.IsNull(list) && list[0] != '[' {
			return false
		}
	}
	one, _ := text.Unquote(kind)
	var several []string
	if one == "" && len(kind) > 0 && json.Unmarshal(kind, &several) != nil {
		several = nil
	}
	mayTakeNull := func(o json.RawMessage) bool { return !refusesNull(o, depth-1) }
	switch {
	case one != "":
		return isType(one)
	case len(several) > 0:
		return !slices.ContainsFunc(several, func(t string) bool { return !isType(t) })
	case len(text.Elements(enum)) > 0:
		return !slices.ContainsFunc(text.Elements(enum), text.IsNull)
	case len(constant) > 0:
		return !text.IsNull(constant)
	case len(text.Elements(anyOf)) > 0:
		return !slices.ContainsFunc(text.Elements(anyOf), mayTakeNull)
	case len(text.Elements(oneOf)) > 0:
		return !slices.ContainsFunc(text.Elements(oneOf), mayTakeNull)
	}
	return false
}

// DropNulls returns args without members whose value is null and whose name [NoNull]
// returns for the schema. Other members keep their bytes and order.
func DropNulls(args, schema json.RawMessage) json.RawMessage {
	if !bytes.Contains(args, []byte("null")) {
		return args
	}
	return dropNulls(args, NoNull(schema))
}

func dropNulls(args json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 {
		return args
	}
	members, err := text.Members(args)
	if err != nil {
		return args // the server will report the error
	}
	kept := slices.DeleteFunc(slices.Clone(members), func(m text.Member) bool {
		return text.IsNull(m.Value) && slices.Contains(names, m.Name)
	})
	if len(kept) == len(members) {
		return args
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range kept {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m.Written)
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// isType reports whether t is a type of JSON Schema other than "null".
func isType(t string) bool {
	switch t {
	case "string", "number", "integer", "boolean", "object", "array":
		return true
	}
	return false
}
