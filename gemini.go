package mcphybrid

import "encoding/json"

// gemini is what Google's SDK documents of JSON Schema for answers (at
// GenerateContentConfig.ResponseJsonSchema) and, in the last line, as fields of
// Schema, to which it is converted; for parameters in JSON Schema it says only
// that they are an object's. Left out are references, which may have nothing
// beside them and were refused even so, and oneOf, which is read as anyOf.
var gemini = dialect{needItems: true, onlyWith: map[string]bool{
	"type": true, "format": true, "title": true, "description": true, "enum": true,
	"items": true, "prefixItems": true, "minItems": true, "maxItems": true, "minimum": true, "maximum": true,
	"anyOf": true, "properties": true, "additionalProperties": true, "required": true, "propertyOrdering": true,
	"default": true, "pattern": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true,
}}

// subset returns the members of a schema that Gemini takes, with others put in
// the words that it has.
func (c *converter) subset(members []member, p *place) []member {
	values := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		values[m.name] = m.value
	}
	var list []member
	for _, m := range members {
		instead, ok := map[string]string{
			"const": "enum", "oneOf": "anyOf", "exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum",
		}[m.name]
		switch {
		case c.onlyWith[m.name]:
			list = append(list, m)
		case isDefinitions(m): // every reference was replaced
		case !ok || values[instead] != nil:
			c.lose(p.at(m.name), "not taken, left out")
		case m.name == "const":
			list = append(list, member{name: instead, value: joinElements([]json.RawMessage{m.value})})
		default:
			c.lose(p.at(m.name), "not taken, became "+instead)
			list = append(list, member{name: instead, value: m.value})
		}
	}
	return list
}

// enum returns the strings and numbers of an enum, which may have no others,
// nil if it is malformed, and false if there are none.
func (c *converter) enum(raw json.RawMessage, p *place) (json.RawMessage, bool) {
	var list []json.RawMessage
	all := elements(raw)
	for _, e := range all {
		if e[0] == '"' || isNumber(e) {
			list = append(list, e)
		}
	}
	if len(list) < len(all) {
		c.lose(p, "other values than strings and numbers, left out")
	}
	return joinElements(list), len(list) == len(all) || len(list) > 0
}
