package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Convert returns given as a compact JSON object that the provider accepts: a valid
// schema of type object. It allows the same values as given, except for the losses.
// Each loss begins with its place, a JSON pointer into the schema. Time and memory
// are proportional to len(given) + maxReplaced. If the provider takes no references, those
// that would make the result more than a third larger are cut; see reach.
func Convert(given json.RawMessage, d Dialect) (converted json.RawMessage, losses []string) {
	c, converted := d.convert(given, everything)
	if !d.takes("$ref") {
		c, converted = d.bounded(given, c, converted)
	}
	if c.untold > 0 {
		c.losses = append(c.losses, fmt.Sprintf("and %d more", c.untold))
	}
	return converted, c.losses
}

// convert makes one attempt to convert a schema.
func (d Dialect) convert(given json.RawMessage, r reach) (*converter, json.RawMessage) {
	c := &converter{
		Dialect:  d,
		root:     given,
		draft:    draftOf(given),
		children: make(map[string]map[string]json.RawMessage),
		refs:     []string{"#"},
		reach:    r,
		stumps:   make(map[string]json.RawMessage),
		refused:  make(map[string]string),
		reading:  expression.MaxReading,
	}
	return c, c.schema(given, nil, schema.MaxNesting)
}

type converter struct {
	Dialect
	root     json.RawMessage
	draft    int
	children map[string]map[string]json.RawMessage // by JSON pointer: the members of values that references lead through

	refs     []string                   // references that the current schema replaces
	level    int                        // definitions, below the root, that the current schema stands in
	reach    reach                      // its room is what is left
	replaces bool                       // a reference was replaced, or cut
	replaced int                        // bytes of definitions that replaced references
	stumps   map[string]json.RawMessage // by reference: definitions that were cut
	referred bool                       // a reference was kept outside of definitions
	rebased  bool                       // references of the current schema don't begin at the root
	refused  map[string]string          // by regular expression: why it is refused, or ""
	reading  int64                      // how much more may be spent on reading them
	losses   []string
	untold   int // losses beyond maxLosses
}

// A place is a position in the schema; nil is the root.
type place struct {
	in   *place
	name string
}

func (p *place) at(name string) *place { return &place{p, name} }

// String returns the JSON pointer of p, or the last part of a very long one.
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
	return text.Line(strings.Join(names, ""), maxPlaceLength)
}

func (c *converter) lose(p *place, what string) {
	if len(c.losses) == maxLosses {
		c.untold++
		return
	}
	c.losses = append(c.losses, p.String()+": "+what)
}

// schema converts a schema and descends at most depth levels.
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
	before, level, rebased := len(c.refs), c.level, c.rebased
	members := c.read(raw, p)
	if p == nil {
		members = slices.DeleteFunc(members, c.isBase)
	}
	c.rebased = rebased || slices.ContainsFunc(members, c.isBase)
	members, refs := c.flatten(members, p, depth, c.refs)
	c.rebased = c.rebased || slices.ContainsFunc(members, c.isBase) // a part's, whose members are here now
	c.refs = append(c.refs, refs...)
	if p != nil && len(refs) > 0 {
		c.level++
	}
	members = c.opened(slices.DeleteFunc(members, identifies), p)
	if c.onlyWith != nil {
		members = c.subset(members, p)
	}
	var list []text.Member
	for _, m := range members {
		switch at := p.at(m.Name); {
		case p == nil && slices.Contains(c.notAtRoot, m.Name):
			c.lose(at, "not taken at the root, left out")
		case keywords[m.Name] == outdated:
			c.lose(at, "not a keyword of draft 2020-12, left out")
		default:
			referred := c.referred
			value, ok := c.keyword(m, at, depth)
			if p == nil && isDefinitions(m) {
				c.referred = referred // references between definitions don't count
			}
			if ok && value == nil {
				c.lose(at, "malformed, left out")
			} else if ok {
				m.Value = value
				list = append(list, m)
			}
		}
	}
	c.refs, c.level, c.rebased = c.refs[:before], level, rebased
	return text.JoinMembers(c.complete(list, p))
}

// takes reports whether the dialect has a keyword.
func (d *Dialect) takes(keyword string) bool { return d.onlyWith == nil || d.onlyWith(keyword) }

// members returns the members of an object. If a name is repeated, it returns the
// last one.
func (c *converter) members(object json.RawMessage, p *place) []text.Member {
	members, err := text.Members(object)
	if err != nil {
		return nil // never: object is valid JSON and begins with a brace
	}
	list := members[:0]
	index := make(map[string]int, len(members))
	for _, m := range members {
		if i, ok := index[m.Name]; ok {
			c.lose(p.at(m.Name), "there twice, the last is taken")
			list[i].Value = m.Value
			continue
		}
		index[m.Name] = len(list)
		list = append(list, m)
	}
	return list
}

// opened returns the members without additionalProperties if that would exclude
// properties that a dropped patternProperties allows.
func (c *converter) opened(members []text.Member, p *place) []text.Member {
	shut := func(m text.Member) bool { return m.Name == "additionalProperties" && string(m.Value) != "true" }
	lost := func(m text.Member) bool {
		if m.Name != "patternProperties" || m.Value[0] != '{' {
			return false
		}
		patterns, _ := text.Members(m.Value)
		return !c.takes(m.Name) || slices.ContainsFunc(patterns, func(m text.Member) bool { return c.refuses(m.Name) != "" })
	}
	if slices.ContainsFunc(members, shut) && slices.ContainsFunc(members, lost) {
		c.lose(p.at("additionalProperties"), "left out with patternProperties")
		return slices.DeleteFunc(members, shut)
	}
	return members
}

// keyword converts the value of m, which stands at p. The value is nil if it is
// malformed. ok is false if the keyword has no effect and can be dropped.
func (c *converter) keyword(m text.Member, p *place, depth int) (json.RawMessage, bool) {
	raw := m.Value
	switch keywords[m.Name] {
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
		elements := text.Elements(raw)
		for i, e := range elements {
			elements[i] = c.schema(e, p.at(strconv.Itoa(i)), depth-1)
		}
		if m.Name == "anyOf" && c.onlyWith != nil && slices.ContainsFunc(elements, func(e json.RawMessage) bool { return string(e) == "{}" }) {
			return nil, false
		}
		return text.JoinElements(elements), true
	case namedSchemas:
		if raw[0] == '{' {
			return c.schemas(m.Name, raw, p, depth), true
		}
	case aType:
		return c.types(raw, p), true
	case aPattern:
		if s, ok := text.Unquote(raw); ok && c.refuses(s) != "" {
			c.lose(p, c.refuses(s))
			return nil, false
		}
		return wellFormed(raw, raw[0] == '"'), true
	case aString:
		if raw[0] == '"' {
			c.referred = c.referred || isReference(m)
			return raw, true
		}
	case someStrings:
		return text.JoinStrings(text.Strings(raw)), true
	case namedStrings:
		if raw[0] == '{' {
			var list []text.Member
			for _, m := range c.members(raw, p) {
				if m.Value = text.JoinStrings(text.Strings(m.Value)); m.Value == nil {
					return nil, true
				}
				list = append(list, m)
			}
			return text.JoinMembers(list), true
		}
	case aNumber:
		return wellFormed(raw, text.IsNumber(raw)), true
	case aMultiple:
		f, err := strconv.ParseFloat(string(raw), 64)
		return wellFormed(raw, text.IsNumber(raw) && err == nil && f > 0), true
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
		return text.JoinElements(text.Elements(raw)), true
	case anything:
		return raw, true
	}
	return nil, true
}

// wellFormed returns raw, or nil if raw is not a valid value of the keyword.
func wellFormed(raw json.RawMessage, ok bool) json.RawMessage {
	if ok {
		return raw
	}
	return nil
}

// schemas converts an object of schemas at p.
func (c *converter) schemas(keyword string, raw json.RawMessage, p *place, depth int) json.RawMessage {
	var list []text.Member
	for _, m := range c.members(raw, p) {
		switch {
		case keyword == "properties" && p.in == nil && c.shortNames && !isShortName(m.Name):
			c.lose(p.at(m.Name), "a name that is not taken, left out, so that the tool can't be called with it")
		case keyword == "patternProperties" && c.refuses(m.Name) != "":
			c.lose(p.at(m.Name), c.refuses(m.Name))
		default:
			m.Value = c.schema(m.Value, p.at(m.Name), depth-1)
			list = append(list, m)
		}
	}
	return text.JoinMembers(list)
}

// types converts the value of a type keyword.
func (c *converter) types(raw json.RawMessage, p *place) json.RawMessage {
	if s, ok := text.Unquote(raw); ok && slices.Contains(schemaTypes, s) {
		return raw
	}
	var known []string
	given := text.Strings(raw)
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
	return text.JoinStrings(known)
}

// complete adds the members that the provider requires to a converted schema. It
// removes definitions without references and required properties that the schema
// does not describe.
func (c *converter) complete(list []text.Member, p *place) []text.Member {
	if p == nil && !c.referred {
		list = slices.DeleteFunc(list, isDefinitions)
	}
	find := func(name string) int {
		return slices.IndexFunc(list, func(m text.Member) bool { return m.Name == name })
	}
	typ := find("type")
	switch {
	case p == nil && typ < 0:
		list = slices.Insert(list, 0, text.Member{Name: "type", Value: json.RawMessage(`"object"`)})
	case p == nil:
		if !bytes.Contains(list[typ].Value, []byte(`"object"`)) {
			c.lose(p.at("type"), "is now object")
		}
		list[typ].Value = json.RawMessage(`"object"`)
	case c.needItems && typ >= 0 && bytes.Contains(list[typ].Value, []byte(`"array"`)) && find("items") < 0:
		list = append(list, text.Member{Name: "items", Value: json.RawMessage("{}")})
	}
	if p == nil && c.needObjects && find("properties") < 0 {
		list = append(list, text.Member{Name: "properties", Value: json.RawMessage("{}")})
	}
	if i := find("required"); i >= 0 && (c.onlyWith != nil || c.shortNames && p == nil) {
		known := make(map[string]bool)
		if j := find("properties"); j >= 0 {
			members, _ := text.Members(list[j].Value)
			for _, m := range members {
				known[m.Name] = true
			}
		}
		var kept []string
		for _, name := range text.Strings(list[i].Value) {
			if known[name] || c.onlyWith == nil && isShortName(name) { // of Anthropic's, only those that were left out
				kept = append(kept, name)
			} else {
				c.lose(p.at("required"), fmt.Sprintf("%q is not among the properties, left out", text.Line(name, text.MaxName)))
			}
		}
		if list[i].Value = text.JoinStrings(kept); kept == nil {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}
