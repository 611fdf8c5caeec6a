package dialect

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// flatten moves what a schema says through a reference, allOf, anyOf or oneOf into
// the schema's own members, where the provider does not accept these keywords. At
// the root it accepts none of them. Elsewhere it may accept some, but references to
// places that may have moved are followed too.
//
//	{"properties":{"a":A},"anyOf":[{"properties":{"b":B},"required":["b"]},{"properties":{"b":C,"d":D},"required":["b","d"]}]}
//
// becomes {"properties":{"a":A,"b":{"anyOf":[B,C]},"d":D},"required":["b"]}. The
// arguments that an alternative allows stay valid, and others become valid too. An
// allOf keeps its meaning unless a keyword occurs twice.
//
// within lists the references that the schema already replaces. flatten returns the
// further references that it followed.
func (c *converter) flatten(members []text.Member, p *place, depth int, within []string) (flat []text.Member, followed []string) {
	isUnion := func(m text.Member) bool { return p == nil && (m.Name == "anyOf" || m.Name == "oneOf") }
	isAll := func(m text.Member) bool { return m.Name == "allOf" && (p == nil || !c.takes("allOf")) }
	isRef := func(m text.Member) bool { return isReference(m) && (p == nil || !c.keepsRef(m.Value)) }
	if !slices.ContainsFunc(members, func(m text.Member) bool { return isUnion(m) || isAll(m) || isRef(m) }) {
		return members, nil
	}
	// flattened returns the members of an alternative or part without these
	// keywords. References still lead to definitions in their old places.
	flattened := func(raw json.RawMessage, at *place, refs []string) []text.Member {
		switch {
		case raw[0] == 't':
			return nil
		case raw[0] != '{':
			c.lose(at, "not a schema of an object, left out")
			return nil
		case depth == 0:
			c.lose(at, "nested too deep, left out")
			return nil
		}
		within, list, rebased := slices.Concat(within, refs), c.read(raw, at), c.rebased
		c.rebased = rebased || slices.ContainsFunc(list, c.isBase)
		list, more := c.flatten(list, p, depth-1, within)
		c.rebased = rebased
		followed = append(append(followed, refs...), more...)
		return slices.DeleteFunc(list, isDefinitions)
	}
	var flatter merger
	for _, m := range members {
		if !isUnion(m) && !isAll(m) && !isRef(m) {
			flatter.add(c, m, p)
		}
	}
	for _, m := range members {
		at := p.at(m.Name)
		parts := text.Elements(m.Value)
		switch {
		case isRef(m):
			if target, ref := c.follow(m.Value, at, within); target != nil {
				for _, m := range flattened(target, p, []string{ref}) {
					flatter.add(c, m, p)
				}
			}
		case (isAll(m) || isUnion(m)) && len(parts) == 0:
			c.lose(at, "malformed, left out")
		case isAll(m):
			for i, part := range parts {
				for _, m := range flattened(part, at.at(strconv.Itoa(i)), nil) {
					flatter.add(c, m, p)
				}
			}
		case isUnion(m):
			var alternatives []alternative
			for i, part := range parts {
				a := alternative{at: at.at(strconv.Itoa(i))}
				a.members = flattened(part, a.at, nil)
				if !slices.ContainsFunc(a.members, excludesObjects) {
					alternatives = append(alternatives, a)
				}
			}
			flatter.unite(c, alternatives, at)
		}
	}
	return flatter.members(), followed
}

// keepsRef reports whether a reference can stay: the provider accepts it and it
// leads to the root or to a definition, which have not moved.
func (c *converter) keepsRef(value json.RawMessage) bool {
	ref, ok := text.Unquote(value)
	if !ok || !c.takes("$ref") {
		return false
	}
	if _, ok := c.resolve(ref); !ok {
		return false
	}
	parts := strings.Split(ref, "/")
	if strings.ContainsFunc(ref, unicode.IsControl) {
		return false // not even a URI
	}
	return ref == "#" || len(parts) == 3 && (parts[1] == "$defs" || parts[1] == "definitions")
}

// follow returns the target of a reference and its name, or nil if there is none.
// If the reference is circular, out of reach or its target too large, follow returns
// only the target's type and description.
func (c *converter) follow(value json.RawMessage, p *place, within []string) (schema json.RawMessage, ref string) {
	ref, _ = text.Unquote(value)
	schema, ok := c.resolve(ref)
	switch {
	case !ok:
		c.lose(p, "leads nowhere, left out")
		return nil, ""
	case slices.Contains(within, ref):
		c.replaces = true
		c.lose(p, "is recursive, cut here")
	case c.replaced+len(schema) > maxReplaced || !c.reaches(len(schema), p.in == nil):
		c.replaces = true
		c.lose(p, "would make the schema too large, cut here")
	default:
		c.replaces = true
		c.replaced += len(schema)
		return schema, ref
	}
	if c.stumps[ref] == nil {
		children := childrenOf(schema)
		var list []text.Member
		for _, name := range []string{"type", "description"} {
			if children[name] != nil && (name == "type" || !c.reach.bare) {
				list = append(list, text.Member{Name: name, Value: children[name]})
			}
		}
		c.stumps[ref] = text.JoinMembers(list)
	}
	return c.stumps[ref], ref
}

// resolve returns the value that a reference within the schema leads to.
func (c *converter) resolve(ref string) (json.RawMessage, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !ok || err != nil || c.rebased || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	tokens := strings.SplitN(pointer, "/", schema.MaxNesting)[1:]
	if pointer == "" {
		tokens = nil
	}
	value, prefix := c.root, ""
	for _, token := range tokens {
		children, ok := c.children[prefix]
		if !ok {
			children = childrenOf(value)
			c.children[prefix] = children
		}
		if value, ok = children[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]; !ok {
			return nil, false
		}
		prefix += "/" + token
	}
	return value, value[0] == '{' || value[0] == 't' || value[0] == 'f'
}

func childrenOf(value json.RawMessage) map[string]json.RawMessage {
	children := make(map[string]json.RawMessage)
	if value[0] == '{' {
		members, _ := text.Members(value)
		for _, m := range members {
			children[m.Name] = m.Value
		}
	}
	for i, e := range text.Elements(value) {
		children[strconv.Itoa(i)] = e
	}
	return children
}

// An alternative is one of the schemas of a union.
type alternative struct {
	at      *place
	members []text.Member
}

// excludesObjects reports whether m is a type keyword that excludes objects.
func excludesObjects(m text.Member) bool {
	return m.Name == "type" && !bytes.Contains(m.Value, []byte(`"object"`))
}

func isDefinitions(m text.Member) bool { return schema.HasDefinitions(m.Name) }

func hasPatterns(m text.Member) bool { return m.Name == "patternProperties" }

// A merger merges schemas that must all hold into one.
type merger struct {
	keywords   ordered[text.Member] // properties and required have their places here, and their values below
	properties propertySet
	required   ordered[bool]
}

// A propertySet lists the schemas of each property without repetitions.
type propertySet struct {
	schemas ordered[[]json.RawMessage]
	said    map[string]bool
}

// An ordered is a map that remembers the order of its keys.
type ordered[V any] struct {
	keys   []string
	values map[string]V
}

func (o *ordered[V]) set(key string, v V) {
	if o.values == nil {
		o.values = make(map[string]V)
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

func (s *propertySet) has(name string, schema json.RawMessage) bool {
	return s.said[name+"\x00"+string(schema)]
}

func (s *propertySet) add(name string, schema json.RawMessage) {
	if s.has(name, schema) {
		return
	}
	if s.said == nil {
		s.said = make(map[string]bool)
	}
	s.said[name+"\x00"+string(schema)] = true
	s.schemas.set(name, append(s.schemas.values[name], schema))
}

// members returns the properties. Several schemas of one property are joined by a
// keyword, allOf or anyOf.
func (s *propertySet) members(keyword string) []text.Member {
	list := make([]text.Member, len(s.schemas.keys))
	for i, name := range s.schemas.keys {
		schemas := s.schemas.values[name]
		list[i] = text.Member{Name: name, Value: schemas[0]}
		if len(schemas) > 1 {
			list[i].Value = text.JoinMembers([]text.Member{{Name: keyword, Value: text.JoinElements(schemas)}})
		}
	}
	return list
}

// add adds a keyword unless the schema has it already.
func (g *merger) add(c *converter, m text.Member, p *place) {
	old, ok := g.keywords.values[m.Name]
	if !ok {
		g.keywords.set(m.Name, m)
	}
	switch {
	case m.Name == "properties" && m.Value[0] == '{':
		for _, property := range c.members(m.Value, p.at(m.Name)) {
			g.properties.add(property.Name, property.Value)
		}
	case m.Name == "required":
		for _, name := range text.Strings(m.Value) {
			g.required.set(name, true)
		}
	case !ok || bytes.Equal(old.Value, m.Value):
	case m.Name == "additionalProperties" && string(m.Value) == "false":
		g.keywords.set(m.Name, m)
	default:
		c.lose(p.at(m.Name), "there twice, the outer is taken")
	}
}

// unite adds the properties of the alternatives of a union at p. It skips properties
// that the schema describes outside of the union.
func (g *merger) unite(c *converter, alternatives []alternative, p *place) {
	c.lose(p, "not taken at the root; its alternatives became one list of properties")
	var properties propertySet
	var required ordered[int] // in how many alternatives each is required
	closed := 0
	for _, a := range alternatives {
		for _, m := range a.members {
			switch {
			case m.Name == "properties" && m.Value[0] == '{':
				for _, property := range c.members(m.Value, a.at.at(m.Name)) {
					if g.properties.schemas.values[property.Name] == nil {
						properties.add(property.Name, property.Value)
					} else if !g.properties.has(property.Name, property.Value) {
						c.lose(a.at.at(m.Name).at(property.Name), "described outside of the union too, left out")
					}
				}
			case m.Name == "required":
				for _, name := range text.Strings(m.Value) {
					required.set(name, required.values[name]+1)
				}
			case m.Name == "additionalProperties" && string(m.Value) == "false" && !slices.ContainsFunc(a.members, hasPatterns):
				closed++
			case m.Name != "type":
				c.lose(a.at.at(m.Name), "left out")
			}
		}
	}
	g.add(c, text.Member{Name: "properties", Value: text.JoinMembers(properties.members("anyOf"))}, nil)
	names := []string{}
	for _, name := range required.keys {
		if required.values[name] == len(alternatives) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		g.add(c, text.Member{Name: "required", Value: text.JoinStrings(names)}, nil)
	}
	if len(alternatives) > 0 && closed == len(alternatives) {
		g.add(c, text.Member{Name: "additionalProperties", Value: json.RawMessage("false")}, nil)
	}
}

// members returns the schema's members.
func (g *merger) members() []text.Member {
	list := make([]text.Member, len(g.keywords.keys))
	for i, keyword := range g.keywords.keys {
		list[i] = g.keywords.values[keyword]
		switch keyword {
		case "properties":
			list[i].Value = text.JoinMembers(g.properties.members("allOf"))
		case "required":
			list[i].Value = text.JoinStrings(append([]string{}, g.required.keys...))
		}
	}
	return list
}
