package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// What OpenAI takes of a strict schema. Its guide to structured outputs had the first
// figures until 2025, and has since allowed 5,000 properties, 10 levels, 1,000 values and
// 120,000 characters; Azure and others that speak its API still have the first. A list of
// more than 250 values has a limit of its own.
const (
	maxStrictProperties = 100
	maxStrictLevels     = 5
	maxStrictValues     = 250
	maxStrictCharacters = 15_000 // of names and values
)

// IsStrict reports whether a converted schema is strict for OpenAI as it stands: each
// object is closed and requires all its properties, and it has only keywords that the
// models follow in strict mode. In doubt, it is not, since OpenAI refuses a whole request
// for one tool. So no schema is that has a format, a pattern, a default or a bound, which
// some models and endpoints refuse.
func IsStrict(schema json.RawMessage) bool {
	s := strictness{definitions: map[string]json.RawMessage{"#": schema}}
	members, _ := text.Members(schema)
	members = slices.DeleteFunc(members, func(m text.Member) bool {
		if !isDefinitions(m) {
			return false
		}
		definitions, _ := text.Members(m.Value)
		for _, d := range definitions {
			s.count(d.Name)
			s.definitions["#/"+m.Name+"/"+d.Name] = d.Value
		}
		return true
	})
	if !s.isObject(members, 1, []string{"#"}) {
		return false
	}
	for ref, definition := range s.definitions { // the order does not matter
		if ref != "#" && !s.allows(definition, 2, []string{ref}) {
			return false
		}
	}
	return !s.unsure && s.properties <= maxStrictProperties && s.values <= maxStrictValues && s.characters <= maxStrictCharacters
}

// A strictness counts what has limits. What is behind a reference counts in each place.
type strictness struct {
	definitions                    map[string]json.RawMessage // by reference
	properties, values, characters int                        // of which too many make a schema not strict
	unsure                         bool
}

// count counts a name or a value. It notes names that may need quoting.
func (s *strictness) count(name string) {
	s.characters += len(name)
	s.unsure = s.unsure || !text.IsSafeName(name)
}

// allows reports whether a schema at that level is strict. within lists the references
// that lead to it.
func (s *strictness) allows(schema json.RawMessage, level int, within []string) bool {
	if s.properties++; schema[0] != '{' || level > maxStrictLevels || s.properties > maxStrictProperties {
		return false
	}
	members, _ := text.Members(schema)
	values := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		values[m.Name] = m.Value
	}
	switch {
	case values["$ref"] != nil: // OpenAI refuses what stands beside it
		ref, _ := text.Unquote(values["$ref"])
		target, ok := s.definitions[ref]
		return ok && len(members) == 1 && (slices.Contains(within, ref) || s.allows(target, level, append(slices.Clip(within), ref)))
	case values["anyOf"] != nil:
		return s.isUnion(values["anyOf"], level, within) && has(members, "anyOf")
	}
	switch kindOf(values["type"]) {
	case "object":
		return s.isObject(members, level, within)
	case "array":
		return values["items"] != nil && has(members, "type", "items") && s.allows(values["items"], level+1, within)
	case "string":
		return s.isString(values) && has(members, "type", "enum", "const")
	case "number", "integer", "boolean", "null":
		return has(members, "type")
	}
	return false
}

// kindOf returns the one type that a type keyword allows beside null, or "".
func kindOf(raw json.RawMessage) string {
	if kind, ok := text.Unquote(raw); ok || raw == nil {
		return kind
	}
	list := text.Strings(raw)
	if i := slices.Index(list, "null"); len(list) == 2 && i >= 0 {
		return list[1-i]
	}
	return ""
}

// has reports whether all members have these names, or only tell what the values are for.
func has(members []text.Member, names ...string) bool {
	return !slices.ContainsFunc(members, func(m text.Member) bool {
		return !slices.Contains(names, m.Name) && m.Name != "description" && m.Name != "title"
	})
}

// isObject reports whether the members are those of a closed object that requires all its
// properties. OpenAI also wants the list of none.
func (s *strictness) isObject(members []text.Member, level int, within []string) bool {
	var properties []text.Member
	var required []string
	listed, closed := false, false
	for _, m := range members {
		switch m.Name {
		case "properties":
			properties, _ = text.Members(m.Value)
		case "required":
			required, listed = text.Strings(m.Value), m.Value[0] == '['
		case "additionalProperties":
			closed = string(m.Value) == "false"
		}
	}
	if !listed || !closed || len(required) != len(properties) || !has(members, "type", "properties", "required", "additionalProperties") {
		return false
	}
	for _, p := range properties {
		if s.count(p.Name); s.unsure || !slices.Contains(required, p.Name) || !s.allows(p.Value, level+1, within) {
			return false
		}
	}
	return true
}

// isUnion reports whether the alternatives are strict. At most one of them may be an object
// or lead to one: OpenAI refused those whose first property has the same name.
func (s *strictness) isUnion(alternatives json.RawMessage, level int, within []string) bool {
	objects := 0
	for _, a := range text.Elements(alternatives) {
		if !s.allows(a, level+1, within) {
			return false
		}
		if bytes.Contains(a, []byte(`"object"`)) || bytes.Contains(a, []byte(`"$ref"`)) || bytes.Contains(a, []byte(`"anyOf"`)) {
			objects++
		}
	}
	return objects <= 1
}

// isString reports whether the values that a string may have are plain.
func (s *strictness) isString(values map[string]json.RawMessage) bool {
	list := text.Elements(values["enum"])
	if values["enum"] != nil && len(list) == 0 {
		return false
	}
	if values["const"] != nil {
		list = append(list, values["const"])
	}
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		s.values++
		s.characters += len(v)
		if seen[string(v)] || len(v) <= len(`""`) || v[0] != '"' || strings.Contains(string(v), `\`) {
			return false
		}
		seen[string(v)] = true
	}
	return true
}
