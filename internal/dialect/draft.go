package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// draftOf returns the draft that a schema names: 4, 6, 7, 2019 or 2020, which is MCP's
// default.
func draftOf(given json.RawMessage) int {
	members, _ := text.Members(given)
	draft := 2020
	for _, m := range members { // the last one counts
		if m.Name == "$schema" {
			draft = drafts[schema.DraftName(m.Value)]
		}
	}
	if draft == 0 {
		return 2020
	}
	return draft
}

var drafts = map[string]int{
	"//json-schema.org/draft-04/schema": 4, "//json-schema.org/draft-06/schema": 6, "//json-schema.org/draft-07/schema": 7,
	"//json-schema.org/draft/2019-09/schema": 2019,
}

// since is the draft before which a keyword meant nothing. Those that allow all values in
// each draft are not here.
var since = map[string]int{
	"const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7,
	"dependentSchemas": 2019, "dependentRequired": 2019, "minContains": 2019, "maxContains": 2019,
	"unevaluatedProperties": 2019, "unevaluatedItems": 2019, "prefixItems": 2020, "$dynamicRef": 2020,
}

// read returns the members of the schema raw, rewritten from its draft to 2020-12 so that
// it allows the same values. It drops $schema, what the draft does not know, and up to
// draft 7 what stands beside a reference. It rewrites a list of schemas as items and
// booleans for exclusive bounds, whatever the draft.
func (c *converter) read(raw json.RawMessage, p *place) []text.Member {
	members := c.members(raw, p)
	isString := func(m text.Member) bool { return m.Value[0] == '"' }
	alone := c.draft <= 7 && slices.ContainsFunc(members, func(m text.Member) bool { return m.Name == "$ref" && isString(m) })
	members = slices.DeleteFunc(members, func(m text.Member) bool {
		_, known := keywords[m.Name]
		return since[m.Name] > c.draft || alone && known && m.Name != "$ref" && !isDefinitions(m) && !schema.IsNote(m.Name)
	})
	values := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		values[m.Name] = m.Value
	}
	tuple := bytes.HasPrefix(values["items"], []byte("[")) && values["prefixItems"] == nil
	isTrue := func(name string) bool { return string(values[name]) == "true" }
	var list []text.Member
	for _, m := range members {
		switch {
		case m.Name == "$schema" && p != nil && slices.ContainsFunc(members, c.isBase):
			c.lose(p.at(m.Name), "a draft for a part, left out")
			continue
		case m.Name == "$schema", m.Name == "items" && string(m.Value) == "[]":
			continue
		case m.Name == "items" && tuple:
			m = text.Member{Name: "prefixItems", Value: m.Value}
		case m.Name == "additionalItems" && tuple:
			m = text.Member{Name: "items", Value: m.Value}
		case m.Name == "additionalItems",
			m.Name == "minimum" && isTrue("exclusiveMinimum"),
			m.Name == "maximum" && isTrue("exclusiveMaximum"),
			m.Name == "exclusiveMinimum" && string(m.Value) == "false",
			m.Name == "exclusiveMaximum" && string(m.Value) == "false":
			continue
		case m.Name == "exclusiveMinimum" && isTrue(m.Name) && values["minimum"] != nil:
			m.Value = values["minimum"]
		case m.Name == "exclusiveMaximum" && isTrue(m.Name) && values["maximum"] != nil:
			m.Value = values["maximum"]
		}
		list = append(list, m)
	}
	return list
}

// isReference reports whether m is a reference. Within one document, $dynamicRef leads
// where $ref leads.
func isReference(m text.Member) bool {
	return m.Value[0] == '"' && (m.Name == "$ref" || m.Name == "$dynamicRef")
}

// identifies reports whether m only names a schema for references, which are followed
// before. If it is malformed or there twice, validators refuse the whole schema.
func identifies(m text.Member) bool {
	return m.Value[0] == '"' && (m.Name == "$id" || m.Name == "$anchor" || m.Name == "$dynamicAnchor")
}

// isBase reports whether the references of the schema that has m don't begin at the root
// of the document, if it is not the root itself.
func (c *converter) isBase(m text.Member) bool {
	id, ok := text.Unquote(m.Value)
	return ok && (m.Name == "$id" || m.Name == "id" && c.draft == 4) && !strings.HasPrefix(id, "#")
}
