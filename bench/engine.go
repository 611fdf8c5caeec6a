package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid"
)

// An engine finds tools. A tool is known to it by a number that the caller
// gives, from 0; numbers only grow.
type engine interface {
	// build takes the first tools, with the numbers 0 to len(tools)-1. It is
	// called once, before anything else.
	build(tools []*tool) error

	// add, replace and remove have happened for every search that is begun
	// after they return. They are not called at the same time as anything
	// else. The number given to add is above all given before.
	add(number int, t *tool) error
	replace(number int, t *tool) error
	remove(number int) error

	// search appends the numbers of the best k tools, best first, to dst. It
	// may be called concurrently.
	search(dst []mcphybrid.Match, query string, k int) ([]mcphybrid.Match, error)

	// outside returns the bytes held outside of Go's heap.
	outside() (int, error)

	close() error
}

// engines are in the order of the tables: ours, the published formula in
// several ways, then engines for full text.
var engines = []struct {
	name string
	make func() engine
}{
	{"default", func() engine { return newRanked(mcphybrid.RankerDefault) }},
	{"lexical", func() engine { return newRanked(mcphybrid.RankerLexical) }},
	{"classic", newClassic},
	{"scan", func() engine { return &scan{} }},
	{"bleve", func() engine { return &bleveEngine{} }},
	{"fts5", func() engine { return &fts5{} }},
}

// newEngine returns the engine of a name in engines.
func newEngine(name string) engine {
	for _, e := range engines {
		if e.name == name {
			return e.make()
		}
	}
	panic("no engine " + name)
}

// ours reports whether the engine is measured against the others.
func ours(name string) bool { return name == "default" || name == "lexical" }

// A tool is what every engine is given. It is held by the caller too, so that
// what an engine keeps of it is not counted as the engine's.
type tool struct {
	ID string
	mcphybrid.Document
}

// A record is a tool as a line of tools.jsonl.
type record struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // null if there is none
}

func decode(line []byte) (*tool, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	t := &tool{r.ID, mcphybrid.Document{Server: r.Server, Name: r.Name, Description: r.Description}}
	if string(r.InputSchema) != "null" {
		t.InputSchema = r.InputSchema
	}
	return t, nil
}

func decodeAll(lines [][]byte) ([]*tool, error) {
	tools := make([]*tool, len(lines))
	for i, line := range lines {
		t, err := decode(line)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		tools[i] = t
	}
	return tools, nil
}

// text returns what the published design searches: one string of server, name
// and description.
func text(d *mcphybrid.Document) string {
	return strings.Join([]string{d.Server, d.Name, d.Description}, " ")
}

// parameters returns the names and the descriptions of all parameters of a
// schema, those inside others included, in the order of their names.
func parameters(schema json.RawMessage) (names, descriptions string) {
	var root any
	if len(schema) == 0 || json.Unmarshal(schema, &root) != nil {
		return "", ""
	}
	var n, d []string
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			properties, _ := node["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				n = append(n, name)
				if property, ok := properties[name].(map[string]any); ok {
					if text, ok := property["description"].(string); ok {
						d = append(d, text)
					}
				}
				walk(properties[name])
			}
			for _, key := range []string{"items", "anyOf", "oneOf", "allOf"} {
				walk(node[key])
			}
		}
	}
	walk(root)
	return strings.Join(n, " "), strings.Join(d, " ")
}

// words returns text with identifiers taken apart: createIssue and
// create_issue become create Issue and create issue. The tokenizers of the
// engines for full text would leave one or both of them whole.
func words(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	var last rune
	for _, r := range text {
		if r == '_' {
			r = ' '
		}
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

func han(r rune) bool { return unicode.Is(unicode.Han, r) }
