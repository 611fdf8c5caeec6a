package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/search"
	"golang.org/x/sync/errgroup"
)

// An engine finds tools. A tool is known to it by a number that the caller
// gives, from 0; numbers only grow.
type engine interface {
	// build takes the first tools, with the numbers 0 to len(tools)-1. It is
	// called once, before anything else.
	build(tools []*tool) error

	// change returns what puts t at a number, in the place of the tool that
	// has it if one has, or what removes that tool if t is nil. It is called
	// at once, not at the same time as anything else, and has happened for
	// every search that is begun after it returns.
	change(number int, t *tool) (apply func() error)

	// search appends the numbers of the best k tools, best first, to dst. It
	// may be called concurrently.
	search(dst []search.Match, query string, k int) ([]search.Match, error)

	// outside returns the bytes held outside of Go's heap.
	outside() (int, error)

	close() error
}

// Roles of engines.
const (
	own    = "own"    // measured against all that are not
	peer   = "peer"   // what ours are compared with first
	tuned  = "tuned"  // a peer by experts
	former = "former" // what this project's rankers come from
)

// An entrant is an engine and what is said of it.
type entrant struct {
	name, role string
	colour     string // of plots; dark enough for text on white
	make       func() engine
	about      string // in Markdown
}

// engines are in the order of the tables.
var engines = []entrant{
	{"default", own, "#0b5fa5", func() engine { return newRanked(search.RankerDefault) }, "this project's ranker"},
	{"lexical", own, "#007a5a", func() engine { return newRanked(search.RankerLexical) }, "its first pass alone: no relatives of words, no slips corrected, no closer look"},
	{"classic", former, "#5f5f5f", newClassic, "this project's BM25 by the published formula; each change builds it anew"},
	{"scan", peer, "#8a5a9e", func() engine { return &scan{} }, "the same formula without an index: every query looks into every tool"},
	{"bleve", peer, "#c2410c", func() engine { return &bleveEngine{fields: bleveFields} },
		"[bleve](https://github.com/blevesearch/bleve) 2.5.7, scorch in memory, English analyzer; five fields with boosts: " +
			"name 3, server and description 1, names and descriptions of parameters 0.5 and 0.4"},
	{"fts5", peer, "#8a6d00", func() engine { return &fts5{} },
		"SQLite's [FTS5](https://www.sqlite.org/fts5.html) in memory by [modernc.org/sqlite](https://gitlab.com/cznic/sqlite), " +
			"porter over unicode61; columns weigh name 3, server and description 1, params 0.5; the query's words joined by OR"},
	{"bleve-tuned", tuned, "#e0218a", func() engine { return &bleveEngine{fields: bleveTuned} },
		"bleve with two fields, name 1 and everything 2, the best that we found"},
	{"fts5-tuned", tuned, "#b01030", func() engine { return &fts5{tuned: true} },
		"FTS5 with each word of a query once, no English stop words, and Han characters one by one"},
}

// named returns the names of the engines of the roles, of all if none is given.
func named(roles ...string) []string {
	var names []string
	for _, e := range engines {
		if len(roles) == 0 || slices.Contains(roles, e.role) {
			names = append(names, e.name)
		}
	}
	return names
}

// A tool is what every engine is given. It is held by the caller too, so that
// what an engine keeps of it is not counted as the engine's.
type tool struct {
	ID string
	search.Document
}

// A record is a tool as a line of tools.jsonl.
type record struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // null if there is none
}

// decodeAll decodes lines on all cores, as a host does that connects several
// servers at once.
func decodeAll(lines [][]byte) ([]*tool, error) {
	tools := make([]*tool, len(lines))
	each := (len(lines) + runtime.NumCPU() - 1) / runtime.NumCPU()
	var all errgroup.Group
	for begin := 0; begin < len(lines); begin += each {
		all.Go(func() error {
			for i := begin; i < min(begin+each, len(lines)); i++ {
				var err error
				if tools[i], err = decode(lines[i]); err != nil {
					return fmt.Errorf("tool %d: %w", i, err)
				}
			}
			return nil
		})
	}
	return tools, all.Wait()
}

func decode(line []byte) (*tool, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	t := &tool{r.ID, search.Document{Server: r.Server, Name: r.Name, Description: r.Description}}
	if string(r.InputSchema) != "null" {
		t.InputSchema = r.InputSchema
	}
	return t, nil
}

// text returns what the published design searches: one string of server, name
// and description.
func text(d *search.Document) string {
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
