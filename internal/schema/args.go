package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Arguments returns the arguments of a call as a JSON object. It accepts every
// shape in which providers' clients pass them: a string, []byte or
// json.RawMessage with JSON; nil or empty for no arguments; or a value that
// marshals to a JSON object, such as a map[string]any.
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
		if raw, err = foreign.Call("the arguments", func() ([]byte, error) { return json.Marshal(a) }); err != nil {
			return nil, err
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
		return nil, errors.New("the arguments are not a JSON object")
	}
	if !json.Valid(raw) {
		var v any
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", text.JSONError(raw, json.Unmarshal(raw, &v)))
	}
	return raw, nil
}

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
func NoNull(schema json.RawMessage) []string {
	var in struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &in) != nil || text.IsNull(in.Properties) {
		return nil
	}
	properties, err := text.Members(in.Properties)
	if err != nil {
		return nil
	}
	required := make(map[string]bool, len(in.Required))
	for _, name := range in.Required {
		required[name] = true
	}
	var names []string
	for _, p := range properties {
		if !required[p.Name] && refusesNull(p.Value, maxSchemaDepth) {
			names = append(names, p.Name)
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
	var s struct {
		Type  json.RawMessage   `json:"type"`
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
		// OpenAPI's word for a type that also takes null.
		Nullable bool `json:"nullable"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Nullable {
		return false
	}
	var one string
	var several []string
	switch {
	case json.Unmarshal(s.Type, &one) == nil && one != "":
		return isType(one)
	case json.Unmarshal(s.Type, &several) == nil && len(several) > 0:
		return !slices.ContainsFunc(several, func(t string) bool { return !isType(t) })
	case len(s.Enum) > 0:
		return !slices.ContainsFunc(s.Enum, text.IsNull)
	case len(s.Const) > 0:
		return !text.IsNull(s.Const)
	case len(s.AnyOf) > 0:
		return !slices.ContainsFunc(s.AnyOf, func(o json.RawMessage) bool { return !refusesNull(o, depth-1) })
	case len(s.OneOf) > 0:
		return !slices.ContainsFunc(s.OneOf, func(o json.RawMessage) bool { return !refusesNull(o, depth-1) })
	}
	return false
}

// DropNulls returns args without members of the given names whose value is null.
// Other members keep their bytes and order.
func DropNulls(args json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 || !bytes.Contains(args, []byte("null")) {
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
