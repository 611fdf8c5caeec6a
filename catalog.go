package mcphybrid

import (
	"fmt"
	"strings"
)

// A catalog is one version of everything known: which tools there are, which
// of them are inline and which deferred, and the index of the deferred ones.
// It is shared by all readers once published and must not be changed.
type catalog struct {
	version  uint64
	servers  []string      // with tools, in registration order
	tools    []*BridgeTool // in registration order
	inline   []*BridgeTool // in registration order
	deferred []*BridgeTool // in registration order; element i is document i of index
	byName   map[string]entry
	index    *BM25Index
	problems []error // in registration order
}

// An entry is where a tool stands in a catalog.
type entry struct {
	tool   *BridgeTool
	inline bool
}

// A source is one place in the registration order: a server, or tools without
// a connection.
type source struct {
	name     string
	server   *server // nil for tools without a connection
	begun    bool    // the server was started
	defs     []*definition
	problems []error
}

// newCatalog returns the catalog of sources that follows prev. Tools that prev
// has too, under the same name, are the same *BridgeTool.
func newCatalog(prev *catalog, sources []*source, opts *Options) *catalog {
	c := &catalog{version: prev.version + 1, byName: make(map[string]entry)}
	for _, src := range sources {
		c.problems = append(c.problems, src.problems...)
		before := len(c.tools)
		for _, d := range src.defs {
			c.add(prev, d, opts.Access)
		}
		if len(c.tools) > before {
			c.servers = append(c.servers, src.name)
		}
	}
	limit := opts.MaxInline
	if !opts.Access.permits(SearchToolName) {
		limit = len(c.tools) // what can't be searched for must be in sight
	}
	c.inline, c.deferred = partition(c.tools, limit, func(t *BridgeTool) bool {
		return matchAny(opts.Pins, t.name)
	})
	for _, t := range c.inline {
		c.byName[t.name] = entry{t, true}
	}
	docs := make([]string, len(c.deferred))
	for i, t := range c.deferred {
		c.byName[t.name] = entry{t, false}
		docs[i] = document(t.def)
	}
	c.index = NewBM25Index(docs, opts.BM25)
	return c
}

// add gives d its name. The tool that comes first in registration order has
// its name as it is; a later one of the same name gets one of its own.
func (c *catalog) add(prev *catalog, d *definition, access Access) {
	name := d.registered
	first, taken := c.byName[name]
	for try := 0; c.byName[name].tool != nil; try++ {
		name = suffixedName(d.registered, d.server, d.name, try)
	}
	if taken {
		c.problems = append(c.problems, &CollisionError{
			Name:  d.registered,
			First: first.tool.def.server, FirstTool: first.tool.def.name,
			Second: d.server, SecondTool: d.name, Renamed: name,
		})
	}
	if !access.permits(name) {
		return
	}
	t := &BridgeTool{name: name, def: d}
	if old, ok := prev.byName[name]; ok && old.tool.def == d {
		t = old.tool
	}
	c.tools = append(c.tools, t)
	c.byName[name] = entry{tool: t}
}

// document returns the text by which a tool is found.
func document(d *definition) string {
	return strings.Join([]string{d.server, d.name, d.description}, " ")
}

// A CollisionError reports two tools that would have the same registered name.
// Both are kept: the first in registration order has the name, the second is
// renamed.
type CollisionError struct {
	Name               string // what both would be called
	First, FirstTool   string // server and tool that keep the name
	Second, SecondTool string
	Renamed            string // the second tool's name
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("mcphybrid: tool %q of server %q and tool %q of server %q are both named %q; the second is now %q",
		e.FirstTool, e.First, e.SecondTool, e.Second, e.Name, e.Renamed)
}
