package mcphybrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A dialect is what a provider takes of JSON Schema, draft 2020-12. No
// provider takes a root that is not of type object, or that has anyOf, oneOf
// or allOf: they refuse the whole request for it.
type dialect struct {
	notAtRoot   []string        // more keywords that are refused at the root
	onlyWith    map[string]bool // the keywords that there are, or nil if all; with references replaced
	shortNames  bool            // the parameters are named [A-Za-z0-9_.-]{1,64}
	noLook      bool            // a regular expression can't look ahead or behind
	needItems   bool            // an array must have items
	needObjects bool            // the root must have properties
}

// From the errors of the APIs: "schema must have type 'object' and not have
// 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level", "array schema
// missing items", "object schema missing properties", "regex lookaround is not
// supported"; and "input_schema does not support oneOf, allOf, or anyOf at the
// top level", "It must match JSON Schema draft 2020-12", "Property keys should
// match pattern '^[a-zA-Z0-9_.-]{1,64}$'", which is of the root's alone.
var (
	openAI    = dialect{notAtRoot: []string{"enum", "const", "not"}, noLook: true, needItems: true, needObjects: true}
	anthropic = dialect{shortNames: true}
)

const (
	// maxReplaced bounds the bytes of definitions that stand in for references,
	// since a definition can refer to others more than once, and these to others.
	maxReplaced = 256 << 10

	// maxLosses and maxPlaceLength bound what is told of a hostile schema.
	maxLosses      = 100
	maxPlaceLength = 200
)

// An operand is what the value of a keyword must be.
type operand int

const (
	anything      operand = iota // also of a keyword that is not known
	outdated                     // of an older draft, and not of 2020-12
	aSchema                      // true and false among them
	aSchemaOrBool                // true and false are better kept as they are
	someSchemas                  // a list, not empty
	namedSchemas                 // an object
	aType                        // the name of a type, or several
	aString
	aPattern     // a regular expression
	someStrings  // a list
	namedStrings // an object of lists of strings
	aNumber
	aMultiple // a number above 0
	aCount    // an integer of at least 0
	aBool
	someValues   // a list
	alternatives // a list, not empty
)

var keywords = map[string]operand{
	"items": aSchema, "contains": aSchema, "propertyNames": aSchema, "not": aSchema,
	"if": aSchema, "then": aSchema, "else": aSchema, "contentSchema": aSchema,
	"additionalProperties": aSchemaOrBool, "unevaluatedProperties": aSchemaOrBool, "unevaluatedItems": aSchemaOrBool,
	"anyOf": someSchemas, "oneOf": someSchemas, "allOf": someSchemas, "prefixItems": someSchemas,
	"properties": namedSchemas, "patternProperties": namedSchemas, "dependentSchemas": namedSchemas,
	"$defs": namedSchemas, "definitions": namedSchemas,
	"type": aType, "pattern": aPattern, "required": someStrings, "dependentRequired": namedStrings,
	"title": aString, "description": aString, "format": aString, "$comment": aString, "$id": aString,
	"$ref": aString, "$anchor": aString, "$dynamicRef": aString, "$dynamicAnchor": aString,
	"contentEncoding": aString, "contentMediaType": aString,
	"minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aNumber, "exclusiveMaximum": aNumber, "multipleOf": aMultiple,
	"minLength": aCount, "maxLength": aCount, "minItems": aCount, "maxItems": aCount,
	"minProperties": aCount, "maxProperties": aCount, "minContains": aCount, "maxContains": aCount,
	"uniqueItems": aBool, "deprecated": aBool, "readOnly": aBool, "writeOnly": aBool,
	"enum": alternatives, "examples": someValues,
	"dependencies": outdated, "$recursiveRef": outdated, "$recursiveAnchor": outdated, "$vocabulary": outdated,
}

var schemaTypes = []string{"object", "string", "number", "integer", "boolean", "array", "null"}

// convertSchema returns the schema, a JSON object, as a provider takes it: a
// valid schema of type object that allows what the given one allows as far as
// the losses do not say otherwise. Time and memory are within a constant of
// len(schema) + maxReplaced.
func convertSchema(schema json.RawMessage, d dialect) (json.RawMessage, []string) {
	c := &converter{
		dialect:  d,
		root:     schema,
		children: make(map[string]map[string]json.RawMessage),
		refs:     []string{"#"},
		stumps:   make(map[string]json.RawMessage),
	}
	converted := c.schema(schema, nil, maxSchemaNesting)
	if c.untold > 0 {
		c.losses = append(c.losses, fmt.Sprintf("and %d more", c.untold))
	}
	return converted, c.losses
}

type converter struct {
	dialect
	root     json.RawMessage
	children map[string]map[string]json.RawMessage // of the values that references lead through, by JSON pointer

	refs     []string                   // the references that the schema at hand stands in for
	replaced int                        // bytes of definitions that stand in for references
	stumps   map[string]json.RawMessage // of definitions that were cut, by reference
	referred bool                       // a reference was kept, outside of definitions
	losses   []string
	untold   int // losses beyond maxLosses
}

// A place is where something stands in the schema; nil is the root.
type place struct {
	in   *place
	name string
}

func (p *place) at(name string) *place { return &place{p, name} }

// String returns the JSON pointer of p, or the end of a very long one.
func (p *place) String() string {
	if p == nil {
		return "the root"
	}
	var names []string
	for length := 0; p != nil && length < 2*maxPlaceLength; p = p.in {
		names = append(names, "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(p.name[:min(len(p.name), 2*maxPlaceLength)]))
		length += len(p.name) + 1
	}
	slices.Reverse(names)
	return cleanLine(strings.Join(names, ""), maxPlaceLength)
}

func (c *converter) lose(p *place, what string) {
	if len(c.losses) == maxLosses {
		c.untold++
		return
	}
	c.losses = append(c.losses, p.String()+": "+what)
}

// schema converts a schema that holds schemas at most depth deep.
func (c *converter) schema(raw json.RawMessage, p *place, depth int) json.RawMessage {
	switch {
	case string(raw) == "true":
		return json.RawMessage("{}")
	case string(raw) == "false" && c.takes("not"):
		return json.RawMessage(`{"not":{}}`)
	case string(raw) == "false":
		c.lose(p, "that nothing may stand here can't be said")
		return json.RawMessage("{}")
	case raw[0] != '{':
		c.lose(p, "not a schema, left out")
		return json.RawMessage("{}")
	case depth == 0:
		c.lose(p, "nested too deep, left out")
		return json.RawMessage("{}")
	}
	before := len(c.refs)
	members, refs := c.flatten(c.members(raw, p), p, depth, c.refs)
	c.refs = append(c.refs, refs...)
	members = c.opened(modern(members), p)
	if c.onlyWith != nil {
		members = c.subset(members, p)
	}
	var list []member
	for _, m := range members {
		switch at := p.at(m.name); {
		case p == nil && slices.Contains(c.notAtRoot, m.name):
			c.lose(at, "not taken at the root, left out")
		case keywords[m.name] == outdated:
			c.lose(at, "not a keyword of draft 2020-12, left out")
		default:
			referred := c.referred
			value, ok := c.keyword(m, at, depth)
			if p == nil && isDefinitions(m) {
				c.referred = referred // what only definitions refer to is not needed
			}
			if ok && value == nil {
				c.lose(at, "malformed, left out")
			} else if ok {
				m.value = value
				list = append(list, m)
			}
		}
	}
	c.refs = c.refs[:before]
	return joinMembers(c.complete(list, p))
}

// takes reports whether the dialect has a keyword.
func (c *converter) takes(keyword string) bool { return c.onlyWith == nil || c.onlyWith[keyword] }

// members returns the members of an object, of repeated ones the last.
func (c *converter) members(object json.RawMessage, p *place) []member {
	members, err := objectMembers(object)
	if err != nil {
		return nil // never: object is valid JSON and begins with a brace
	}
	list := members[:0]
	index := make(map[string]int, len(members))
	for _, m := range members {
		if i, ok := index[m.name]; ok {
			c.lose(p.at(m.name), "there twice, the last is taken")
			list[i].value = m.value
			continue
		}
		index[m.name] = len(list)
		list = append(list, m)
	}
	return list
}

// modern returns the members with what older drafts wrote in another way as
// 2020-12 has it: a list of schemas as items, and bounds that a boolean makes
// exclusive. So it is not the draft any more that $schema may name.
func modern(members []member) []member {
	values := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		values[m.name] = m.value
	}
	tuple := len(values["items"]) > 0 && values["items"][0] == '[' && values["prefixItems"] == nil
	isTrue := func(name string) bool { return string(values[name]) == "true" }
	var list []member
	for _, m := range members {
		switch {
		case m.name == "$schema", m.name == "items" && string(m.value) == "[]":
			continue
		case m.name == "items" && tuple:
			m = member{name: "prefixItems", value: m.value}
		case m.name == "additionalItems" && tuple:
			m = member{name: "items", value: m.value}
		case m.name == "additionalItems",
			m.name == "minimum" && isTrue("exclusiveMinimum"),
			m.name == "maximum" && isTrue("exclusiveMaximum"),
			m.name == "exclusiveMinimum" && string(m.value) == "false",
			m.name == "exclusiveMaximum" && string(m.value) == "false":
			continue
		case m.name == "exclusiveMinimum" && isTrue(m.name) && values["minimum"] != nil:
			m.value = values["minimum"]
		case m.name == "exclusiveMaximum" && isTrue(m.name) && values["maximum"] != nil:
			m.value = values["maximum"]
		}
		list = append(list, m)
	}
	return list
}

// opened returns the members without additionalProperties if that would shut
// out what patternProperties let in that the provider does not take.
func (c *converter) opened(members []member, p *place) []member {
	shut := func(m member) bool { return m.name == "additionalProperties" && string(m.value) != "true" }
	lost := func(m member) bool {
		if m.name != "patternProperties" || m.value[0] != '{' || c.takes(m.name) && !c.noLook {
			return false
		}
		patterns, _ := objectMembers(m.value)
		return !c.takes(m.name) || slices.ContainsFunc(patterns, func(m member) bool { return looksAround(m.name) })
	}
	if slices.ContainsFunc(members, shut) && slices.ContainsFunc(members, lost) {
		c.lose(p.at("additionalProperties"), "left out with patternProperties")
		return slices.DeleteFunc(members, shut)
	}
	return members
}

// keyword converts the value of m, which stands at p. It returns nil if it is
// malformed, and false if m says nothing and is to be left out.
func (c *converter) keyword(m member, p *place, depth int) (json.RawMessage, bool) {
	raw := m.value
	switch keywords[m.name] {
	case aSchema:
		if raw[0] == '{' || raw[0] == 't' || raw[0] == 'f' {
			return c.schema(raw, p, depth-1), true
		}
	case aSchemaOrBool:
		if raw[0] == 't' || raw[0] == 'f' {
			return raw, true
		}
		if raw[0] == '{' {
			return c.schema(raw, p, depth-1), true
		}
	case someSchemas:
		elements := elements(raw)
		for i, e := range elements {
			elements[i] = c.schema(e, p.at(strconv.Itoa(i)), depth-1)
		}
		if m.name == "anyOf" && c.onlyWith != nil && slices.ContainsFunc(elements, func(e json.RawMessage) bool { return string(e) == "{}" }) {
			return nil, false
		}
		return joinElements(elements), true
	case namedSchemas:
		if raw[0] == '{' {
			return c.schemas(m.name, raw, p, depth), true
		}
	case aType:
		return c.types(raw, p), true
	case aPattern:
		if s, ok := unquote(raw); ok && c.noLook && looksAround(s) {
			c.lose(p, "a regular expression that looks ahead or behind, left out")
			return nil, false
		}
		return wellFormed(raw, raw[0] == '"'), true
	case aString:
		if raw[0] == '"' {
			c.referred = c.referred || m.name == "$ref" || m.name == "$dynamicRef"
			return raw, true
		}
	case someStrings:
		return joinStrings(stringsOf(raw)), true
	case namedStrings:
		if raw[0] == '{' {
			var list []member
			for _, m := range c.members(raw, p) {
				if m.value = joinStrings(stringsOf(m.value)); m.value == nil {
					return nil, true
				}
				list = append(list, m)
			}
			return joinMembers(list), true
		}
	case aNumber:
		return wellFormed(raw, isNumber(raw)), true
	case aMultiple:
		f, err := strconv.ParseFloat(string(raw), 64)
		return wellFormed(raw, isNumber(raw) && err == nil && f > 0), true
	case aCount:
		return wellFormed(raw, len(bytes.Trim(raw, "0123456789")) == 0), true
	case aBool:
		return wellFormed(raw, raw[0] == 't' || raw[0] == 'f'), true
	case someValues:
		return wellFormed(raw, raw[0] == '['), true
	case alternatives:
		if c.onlyWith != nil {
			return c.enum(raw, p)
		}
		return joinElements(elements(raw)), true
	case anything:
		return raw, true
	}
	return nil, true
}

// wellFormed returns raw, or nil if it is not well formed.
func wellFormed(raw json.RawMessage, ok bool) json.RawMessage {
	if ok {
		return raw
	}
	return nil
}

// schemas converts the object of schemas at p.
func (c *converter) schemas(keyword string, raw json.RawMessage, p *place, depth int) json.RawMessage {
	var list []member
	for _, m := range c.members(raw, p) {
		switch {
		case keyword == "properties" && p.in == nil && c.shortNames && !isShortName(m.name):
			c.lose(p.at(m.name), "a name that is not taken, left out, so that the tool can't be called with it")
		case keyword == "patternProperties" && c.noLook && looksAround(m.name):
			c.lose(p.at(m.name), "a regular expression that looks ahead or behind, left out")
		default:
			m.value = c.schema(m.value, p.at(m.name), depth-1)
			list = append(list, m)
		}
	}
	return joinMembers(list)
}

// types converts the value of a type keyword.
func (c *converter) types(raw json.RawMessage, p *place) json.RawMessage {
	if s, ok := unquote(raw); ok && slices.Contains(schemaTypes, s) {
		return raw
	}
	var known []string
	given := stringsOf(raw)
	for _, s := range given {
		if slices.Contains(schemaTypes, s) {
			known = append(known, s)
		}
	}
	if len(known) == 0 {
		return nil
	}
	if len(known) < len(given) {
		c.lose(p, "types that there are not, left out")
	}
	return joinStrings(known)
}

// complete returns the converted members of a schema with what the provider
// needs to be there, and without definitions that nothing refers to any more
// and required properties that it does not know.
func (c *converter) complete(list []member, p *place) []member {
	if p == nil && !c.referred {
		list = slices.DeleteFunc(list, isDefinitions)
	}
	find := func(name string) int {
		return slices.IndexFunc(list, func(m member) bool { return m.name == name })
	}
	typ := find("type")
	switch {
	case p == nil && typ < 0:
		list = slices.Insert(list, 0, member{name: "type", value: json.RawMessage(`"object"`)})
	case p == nil:
		if !bytes.Contains(list[typ].value, []byte(`"object"`)) {
			c.lose(p.at("type"), "is now object")
		}
		list[typ].value = json.RawMessage(`"object"`)
	case c.needItems && typ >= 0 && bytes.Contains(list[typ].value, []byte(`"array"`)) && find("items") < 0:
		list = append(list, member{name: "items", value: json.RawMessage("{}")})
	}
	if p == nil && c.needObjects && find("properties") < 0 {
		list = append(list, member{name: "properties", value: json.RawMessage("{}")})
	}
	if i := find("required"); i >= 0 && (c.onlyWith != nil || c.shortNames && p == nil) {
		known := make(map[string]bool)
		if j := find("properties"); j >= 0 {
			members, _ := objectMembers(list[j].value)
			for _, m := range members {
				known[m.name] = true
			}
		}
		var kept []string
		for _, name := range stringsOf(list[i].value) {
			if known[name] || c.onlyWith == nil && isShortName(name) { // of Anthropic's, only those that were left out
				kept = append(kept, name)
			} else {
				c.lose(p.at("required"), fmt.Sprintf("%q is not among the properties, left out", cleanLine(name, maxNameLength)))
			}
		}
		if list[i].value = joinStrings(kept); kept == nil {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

func isShortName(name string) bool {
	return isSafeName(strings.ReplaceAll(name, ".", "_"))
}

// looksAround reports whether a regular expression has a lookahead or a
// lookbehind.
func looksAround(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '(':
			rest := pattern[i+1:]
			for _, look := range []string{"?=", "?!", "?<=", "?<!"} {
				if strings.HasPrefix(rest, look) {
					return true
				}
			}
		}
	}
	return false
}
