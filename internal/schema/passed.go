package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Passed is what a model passes to a tool that calls another one. No provider has
// guided how: the model knows the other tool's schema from a text at most.
type Passed struct {
	Name string

	arguments json.RawMessage // the member of that name; nil if there is none, or it has nothing
	rest      []text.Member   // beside both
}

// otherNames are names that models give the arguments.
var otherNames = []string{"args", "params", "parameters", "input"}

// ParsePassed reads an object with the members "name" and "arguments". It fails if
// there is no name, or if one of them stands there twice.
func ParsePassed(raw json.RawMessage) (p Passed, err error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(raw, &in); err != nil {
		return p, unread(raw, err)
	}
	members, err := text.Members(raw)
	if err != nil { // null
		return p, errNoObject
	}
	seen := make(map[string]bool)
	for _, m := range members {
		switch {
		case m.Name != "name" && m.Name != "arguments":
			p.rest = append(p.rest, m)
		case seen[m.Name]:
			return p, fmt.Errorf("%q is given twice, but must be given once", m.Name)
		}
		seen[m.Name] = true
	}
	named, _ := json.Marshal(map[string]json.RawMessage{"name": in["name"]}) // in no other spelling
	var only struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(named, &only); err != nil {
		return p, text.JSONError(named, err)
	}
	p.Name = only.Name
	if p.Name == "" {
		return p, errors.New(`"name" is missing or empty`)
	}
	p.arguments = unquoted(in["arguments"])
	if inner, err := text.Members(p.arguments); text.IsNull(p.arguments) || err == nil && len(inner) == 0 {
		p.arguments = nil
	}
	return p, nil
}

// Arguments returns the arguments for a tool with the validator of its schema, or nil if
// the tool is not known. Models also write arguments beside the name, under
// another name than "arguments", and numbers, lists and the like as strings. Arguments
// takes these as they are meant where that is certain, and otherwise as they are
// written: arguments alone under such a name if the schema refuses that name, and strings
// if it takes what they contain. It fails if some stand in "arguments" and others beside it.
func (p Passed) Arguments(v *Validator) (json.RawMessage, error) {
	args := p.arguments
	switch {
	case args != nil && len(p.rest) > 0:
		return nil, fmt.Errorf(`%q stands beside "arguments", but all that the tool takes belongs in "arguments"`, text.Line(p.rest[0].Name, text.MaxName))
	case args == nil:
		args = text.JoinMembers(p.rest)
		if len(p.rest) == 1 && slices.Contains(otherNames, p.rest[0].Name) && v != nil && !v.takes(args) {
			args = unquoted(p.rest[0].Value)
		}
	}
	if v != nil {
		args = v.meant(args)
	}
	return args, nil
}

// unquoted returns the text of a string, and another value as it is.
func unquoted(raw json.RawMessage) json.RawMessage {
	if s, ok := text.Unquote(raw); ok {
		return json.RawMessage(s)
	}
	return raw
}

// takes reports whether the schema accepts args.
func (v *Validator) takes(args json.RawMessage) bool {
	violations, _ := v.Validate(args)
	return len(violations) == 0
}

// meant returns args with strings replaced by the JSON that they contain, where the
// schema refuses args as they are, and takes them so.
func (v *Validator) meant(args json.RawMessage) json.RawMessage {
	violations, _ := v.Validate(args)
	members, err := text.Members(args)
	if len(violations) == 0 || err != nil {
		return args
	}
	refused := func(m text.Member) bool {
		at := "/" + pointerEscapes.Replace(text.Line(m.Name, maxQuoted))
		return slices.ContainsFunc(violations, func(v Violation) bool { return v.Pointer == at })
	}
	changed := slices.Clone(members)
	for i, m := range members {
		if inner := bytes.TrimSpace(unquoted(m.Value)); !text.IsNull(inner) && json.Valid(inner) && refused(m) {
			changed[i].Value = inner
		}
	}
	joined := text.JoinMembers(changed)
	if !v.takes(joined) {
		return args
	}
	return joined
}
