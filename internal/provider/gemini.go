package provider

import (
	"encoding/json"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Gemini is what Google's SDK documents of JSON Schema for answers (at
// GenerateContentConfig.ResponseJsonSchema) and, in the last line, as fields of
// Schema, to which it is converted; for parameters in JSON Schema it says only
// that they are an object's. Left out are references, which may have nothing
// beside them and were refused even so, and oneOf, which is read as anyOf.
var Gemini = Dialect{needItems: true, onlyWith: map[string]bool{
	"type": true, "format": true, "title": true, "description": true, "enum": true,
	"items": true, "prefixItems": true, "minItems": true, "maxItems": true, "minimum": true, "maximum": true,
	"anyOf": true, "properties": true, "additionalProperties": true, "required": true, "propertyOrdering": true,
	"default": true, "pattern": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true,
}}

// subset returns the members of a schema that Gemini takes, with others put in
// the words that it has.
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
		case c.onlyWith[m.Name]:
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

// enum returns the strings and numbers of an enum, which may have no others,
// nil if it is malformed, and false if there are none.
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
