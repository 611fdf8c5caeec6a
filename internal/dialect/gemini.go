package dialect

import (
	"encoding/json"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Gemini follows the documentation of Google's SDK: JSON Schema for answers (at
// GenerateContentConfig.ResponseJsonSchema) and, in the last line, fields of
// Schema, which the SDK converts it to. For parameters, the SDK only says that they
// are an object. Two documented keywords are left out: references, which Gemini
// refused even without siblings, and oneOf, which Gemini reads as anyOf. References are
// replaced instead, as far as reach goes: of circular ones, Gemini says that it unrolls
// them to a limited degree too.
var Gemini = Dialect{needItems: true, onlyWith: ofGemini}

func ofGemini(keyword string) bool {
	switch keyword {
	case "type", "format", "title", "description", "enum",
		"items", "prefixItems", "minItems", "maxItems", "minimum", "maximum",
		"anyOf", "properties", "additionalProperties", "required", "propertyOrdering",
		"default", "pattern", "minLength", "maxLength", "minProperties", "maxProperties":
		return true
	}
	return false
}

// subset returns the members that Gemini accepts and rewrites others in terms of
// these.
func (c *converter) subset(members []text.Member, p *place) []text.Member {
	values := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		values[m.Name] = m.Value
	}
	var list []text.Member
	for _, m := range members {
		instead, ok := map[string]string{
			"const": "enum", "oneOf": "anyOf", "exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum",
		}[m.Name]
		switch {
		case c.onlyWith(m.Name):
			list = append(list, m)
		case isDefinitions(m): // every reference was replaced
		case !ok || values[instead] != nil:
			c.lose(p.at(m.Name), "not taken, left out")
		case m.Name == "const":
			list = append(list, text.Member{Name: instead, Value: text.JoinElements([]json.RawMessage{m.Value})})
		default:
			c.lose(p.at(m.Name), "not taken, became "+instead)
			list = append(list, text.Member{Name: instead, Value: m.Value})
		}
	}
	return list
}

// enum returns the strings and numbers of an enum; Gemini accepts no other values.
// The list is nil if the enum is malformed. ok is false if no value is left.
func (c *converter) enum(raw json.RawMessage, p *place) (json.RawMessage, bool) {
	var list []json.RawMessage
	all := text.Elements(raw)
	for _, e := range all {
		if e[0] == '"' || text.IsNumber(e) {
			list = append(list, e)
		}
	}
	if len(list) < len(all) {
		c.lose(p, "other values than strings and numbers, left out")
	}
	return text.JoinElements(list), len(list) == len(all) || len(list) > 0
}
