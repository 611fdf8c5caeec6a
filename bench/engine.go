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

// An engine finds tools. The caller gives each tool a number, from 0 and
// ascending.
type engine interface {
	// build takes the first tools, with the numbers 0 to len(tools)-1. It is
	// called once, before anything else.
	build(tools []*tool) error

	// change returns a function that puts t at a number, in place of the tool
	// that has it, or removes that tool if t is nil. The function is called at
	// once and not concurrently with anything else. Its change must be visible
	// to every search that begins after it returns.
	change(number int, t *tool) (apply func() error)

	// search appends the numbers of the best k tools, best first, to dst. It
	// may be called concurrently.
	search(dst []search.Match, query string, k int) ([]search.Match, error)

	// outside returns the bytes that the engine holds outside of Go's heap.
	outside() (int, error)

	close() error
}

// The roles of engines.
const (
	own    = "own"    // ours, compared with all that are not
	peer   = "peer"   // peers that ours are compared with first
	tuned  = "tuned"  // a peer, tuned by us
	former = "former" // the origin of this project's rankers
)

// An entrant is an engine with its description.
type entrant struct {
	name, role string
	colour     string // for plots; dark enough for text on white
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

// named returns the names of the engines with these roles, or of all if none is
// given.
func named(roles ...string) []string {
	var names []string
	for _, e := range engines {
		if len(roles) == 0 || slices.Contains(roles, e.role) {
			names = append(names, e.name)
		}
	}
	return names
}

// A tool is what every engine gets. The caller holds it too, so what an engine
// keeps of it does not count as the engine's.
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

// decodeAll decodes lines on all cores, like a host that connects several
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

// text returns the text that the published design searches: server, name and
// description as one string.
func text(d *search.Document) string {
	return strings.Join([]string{d.Server, d.Name, d.Description}, " ")
}

// parameters returns the names and descriptions of all parameters of a schema,
// including nested ones, sorted by name.
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

// words returns text with its identifiers split: createIssue and create_issue
// become create Issue and create issue. The tokenizers of the full-text engines
// would leave at least one of them whole.
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
