package codemode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The limits of a signature: it is for finding out how to call a tool, and the server writes it.
const (
	maxDoc       = 200     // characters of a tool's description
	maxComment   = 100     // of a parameter's
	maxSignature = 4 << 10 // bytes of types; what is deeper or longer is "object"
	maxTyped     = 6       // objects and arrays in each other
	maxLiterals  = 20      // values of an enumeration
)

// signature returns how a script calls a tool, in words like those of TypeScript:
//
//	// Reads a file.
//	tools.mcp_files__read({path: string, head?: number}): string
func signature(t *mcphybrid.BridgeTool) string {
	input := &typer{left: maxSignature, comments: true, root: t.InputSchema()}
	args := input.typeOf(t.InputSchema(), 0)
	if args == "{}" {
		args = ""
	}
	result := "string"
	if schema := t.OutputSchema(); schema != nil {
		output := &typer{left: maxSignature / 2, root: schema}
		result = output.typeOf(schema, 0)
	}
	line := fmt.Sprintf("%s(%s): %s", access(t.Name()), args, result)
	if doc := text.Line(t.Description(), maxDoc); doc != "" {
		line = "// " + doc + "\n" + line
	}
	return line
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// access returns how a script names a tool.
func access(name string) string {
	if identifier.MatchString(name) {
		return "tools." + name
	}
	return fmt.Sprintf("tools[%q]", name)
}

// A typer writes types of JSON schemas.
type typer struct {
	left     int // bytes
	comments bool
	root     json.RawMessage
}

// A node is what is read of a JSON schema.
type node struct {
	Type        json.RawMessage   `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Items       json.RawMessage   `json:"items"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AllOf       []json.RawMessage `json:"allOf"`
	Ref         string            `json:"$ref"`
	Description string            `json:"description"`
	Additional  json.RawMessage   `json:"additionalProperties"`
}

func (w *typer) typeOf(schema json.RawMessage, depth int) string {
	var n node
	if depth > maxTyped || w.left <= 0 || json.Unmarshal(schema, &n) != nil {
		return "any"
	}
	of := w.ofNode(n, depth)
	w.left -= len(of)
	return of
}

func (w *typer) ofNode(n node, depth int) string {
	var kinds []string
	var kind string
	if json.Unmarshal(n.Type, &kind) == nil && kind != "" {
		kinds = []string{kind}
	} else {
		_ = json.Unmarshal(n.Type, &kinds)
	}
	switch {
	case n.Ref != "":
		return w.typeOf(w.definition(n.Ref), depth+1)
	case n.Const != nil:
		return literal(n.Const)
	case len(n.Enum) > 0:
		var values []string
		for _, v := range n.Enum[:min(len(n.Enum), maxLiterals)] {
			values = append(values, literal(v))
		}
		if len(n.Enum) > maxLiterals {
			values = append(values, "…")
		}
		return strings.Join(values, " | ")
	case len(n.AnyOf)+len(n.OneOf) > 0:
		return w.union(append(n.AnyOf, n.OneOf...), depth)
	case len(n.AllOf) == 1 && n.Properties == nil:
		return w.typeOf(n.AllOf[0], depth+1)
	case len(kinds) > 1:
		var all []string
		for _, kind := range kinds {
			all = append(all, w.ofKind(kind, n, depth))
		}
		return strings.Join(all, " | ")
	case len(kinds) == 1:
		return w.ofKind(kinds[0], n, depth)
	case n.Properties != nil:
		return w.ofKind("object", n, depth)
	}
	return "any"
}

func (w *typer) union(list []json.RawMessage, depth int) string {
	var all []string
	for _, s := range list[:min(len(list), maxLiterals)] {
		if t := w.typeOf(s, depth+1); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return strings.Join(all, " | ")
}

func (w *typer) ofKind(kind string, n node, depth int) string {
	switch kind {
	case "integer":
		return "number"
	case "string", "number", "boolean", "null":
		return kind
	case "array":
		of := "any"
		if n.Items != nil {
			of = w.typeOf(n.Items, depth+1)
		}
		if isUnion(of) {
			of = "(" + of + ")"
		}
		return of + "[]"
	case "object":
		return w.object(n, depth)
	}
	return "any"
}

// isUnion reports whether a type is one of several, at its top.
func isUnion(of string) bool {
	depth := 0
	for i, c := range of {
		switch c {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case '|':
			if depth == 0 && strings.HasPrefix(of[i:], "| ") {
				return true
			}
		}
	}
	return false
}

// object writes the properties in their order, those that have a description on lines of their own.
func (w *typer) object(n node, depth int) string {
	var parts []string
	commented := false
	for _, m := range members(n.Properties) {
		if w.left <= 0 {
			parts = append(parts, "…")
			break
		}
		optional := "?"
		if slices.Contains(n.Required, m.name) {
			optional = ""
		}
		name := text.Line(m.name, text.MaxName)
		if !identifier.MatchString(name) {
			name = fmt.Sprintf("%q", name)
		}
		part := name + optional + ": " + w.typeOf(m.schema, depth+1) + ","
		var described node
		if w.comments && depth < 2 && json.Unmarshal(m.schema, &described) == nil {
			if doc := text.Line(described.Description, maxComment); doc != "" {
				part += " // " + doc
				commented = true
			}
		}
		w.left -= len(part) - len(m.name)
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		var of node
		if len(n.Additional) > 0 && n.Additional[0] == '{' && json.Unmarshal(n.Additional, &of) == nil {
			return "{[key: string]: " + w.typeOf(n.Additional, depth+1) + "}"
		}
		if depth == 0 {
			return "{}"
		}
		return "object"
	}
	if !commented {
		line := strings.Join(parts, " ")
		return "{" + strings.TrimSuffix(line, ",") + "}"
	}
	indent := strings.Repeat("  ", depth)
	return "{\n" + indent + "  " + strings.Join(parts, "\n"+indent+"  ") + "\n" + indent + "}"
}

// definition returns what a reference within the schema means, or nil.
func (w *typer) definition(ref string) json.RawMessage {
	if ref == "#" {
		return w.root
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := w.root
	for _, key := range strings.Split(path, "/") {
		var in map[string]json.RawMessage
		if json.Unmarshal(at, &in) != nil {
			return nil
		}
		at = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return at
}

// literal writes a value of an enumeration.
func literal(v json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, v) != nil {
		return "any"
	}
	return cmp.Or(text.Line(line.String(), maxComment), "any")
}

type member struct {
	name   string
	schema json.RawMessage
}

// members returns the members of a JSON object in their order, or nil.
func members(object json.RawMessage) (list []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var m member
		if err != nil || d.Decode(&m.schema) != nil {
			return list
		}
		m.name, _ = key.(string)
		list = append(list, m)
	}
	return list
}
