package mcphybrid

import (
	"iter"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hints"
	"github.com/mcphybrid/mcphybrid/internal/history"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/needs"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/search"
)

// A catalog is one version of the tools that a Manager knows, and their index. All
// readers share it once it is published, and nobody may change it.
type catalog struct {
	owner      *owner                   // nil for a part of several catalogs
	tools      []*BridgeTool            // in registration order
	byName     map[string]int           // index in tools, by registered name
	index      retriever                // of the tools that are deferred for most sessions
	indexed    []int                    // index in tools, by document; ascending
	needs      needs.Graph[*BridgeTool] // the tools that each needs
	needsBelow map[*BridgeTool][]string // for a user: names of the system's tools that each needs
	problems   []error                  // in registration order
	held       map[string]*ChangedError // tools in quarantine, by registered name
	heldOwn    map[[2]string]bool       // the same tools, by server and own name
	gone       history.Left[rules.Tool] // tools that have left, by registered name, of each server
	prefixes   names.Prefixes           // for a user: those of the user's servers
	known      knownHints               // hints, some of them for tools that are not here
	shelf      *resources.Shelf         // what servers offer beside tools

	originals func() map[string][]int // indexes in tools, ascending, by a tool's own name
	print     fingerprint
	ended     bool // the Manager is closed
}

// noTools is the catalog without tools. ended is the catalog of a closed Manager.
var (
	noTools = &catalog{index: search.NewBM25Index(nil, nil), originals: func() map[string][]int { return nil }}
	ended   = &catalog{ended: true, index: noTools.index, originals: noTools.originals}
)

// A standing is what a session may do with a tool.
type standing uint8

const (
	hidden     standing = iota // the session does not know of it
	inline                     // the model gets its definition from the start
	summarized                 // deferred, but listed by name and description
	deferred                   // the model must search for it
)

// searchable reports whether a search may find the tool.
func (st standing) searchable() bool { return st == summarized || st == deferred }

// A retriever ranks documents against queries. It identifies documents by number:
// see [search.BM25Index.Search].
type retriever interface {
	Search(query string, n int, keep func(doc int) bool) []search.Match
	Explain(query string, doc int) search.Explanation
	Len() int

	// HasTerms reports whether query has any term to search for.
	HasTerms(query string) bool
}

// noteGone sets c.gone: the tools that left since prev, and those that left before
// and have not come back.
func (c *catalog) noteGone(prev *catalog) {
	there := func(name string) bool { return c.tool(name) != nil }
	left := make(map[string]history.Departure[rules.Tool])
	now := time.Now()
	for _, t := range prev.tools {
		if !there(t.name) {
			left[t.name] = history.Departure[rules.Tool]{Value: t.def.names(), Group: t.def.Server, Since: now}
		}
	}
	c.gone = prev.gone.With(left, there)
}

// tool returns the tool with that registered name, or nil.
func (c *catalog) tool(name string) *BridgeTool {
	if at, ok := c.byName[name]; ok {
		return c.tools[at]
	}
	return nil
}

// holds reports whether c, a catalog of t's owner, holds t back, under this or another
// name.
func (c *catalog) holds(t *BridgeTool) bool {
	return c.held[t.name] != nil || c.heldOwn[[2]string{t.def.Server, t.def.Own}]
}

// overrides reports whether the tool of that name and server, of a catalog below c, is
// hidden beside c: c has or holds back a tool of its name, or the name belongs to
// another server of c, for good.
func (c *catalog) overrides(name, server string) bool {
	if c.tool(name) != nil || c.held[name] != nil {
		return true
	}
	of := c.prefixes.Server(name)
	return of != "" && of != server
}

// A listing holds the tools at one place in the registration order: those of a
// server, or a group of tools without a connection.
type listing struct {
	name     string
	prefix   string              // see [ServerConfig.Prefix]
	claim    names.Claim         // of the names of its tools
	tools    Access              // see [ServerConfig.Tools]
	needs    map[string][]string // see [ServerConfig.Needs]
	remote   bool                // a server, which may not have listed its tools yet
	listed   []*definition       // the tools that the server listed; nil before its first list
	changed  []*ChangedError     // the tools in listed that have changed
	defs     []*definition       // the usable tools in listed; without a connection, all tools
	offers   []*resources.Offer  // what the server listed beside tools
	entries  []*resources.Entry  // those of offers, some of them held back
	problems []error
	hide     func(error) error // hides the server's secrets in a problem; nil without a connection

	collision *CollisionError // or nil
}

// A recipe says how to make catalogs.
type recipe struct {
	owner    *owner
	access   Access              // the tools to include
	needs    map[string][]string // see [Options.Needs]
	hints    knownHints
	prefixes names.Prefixes // for a user

	// searchable yields each tool with its standing in a session without
	// restrictions. The catalog indexes the searchable ones. If nil, it
	// indexes all tools.
	searchable func(c *catalog) iter.Seq2[*BridgeTool, standing]
	retriever  func(prev retriever, tools []*BridgeTool, known func(*BridgeTool) *hints.Known) retriever
	shelfIndex func([]*search.Document) *search.Index
}

// newCatalog returns the catalog of listings that follows prev. It keeps the
// *BridgeTool of a tool that prev has with the same name and definition.
func (r *recipe) newCatalog(prev *catalog, listings []*listing) *catalog {
	c := &catalog{owner: r.owner, byName: make(map[string]int, len(prev.byName)), known: r.hints, prefixes: r.prefixes, needs: make(needs.Graph[*BridgeTool])}
	var entries []*resources.Entry
	for _, src := range listings {
		entries = append(entries, src.entries...)
		if src.collision != nil {
			c.problems = append(c.problems, src.collision)
		}
		c.problems = append(c.problems, src.problems...)
		for _, change := range src.changed {
			c.problems = append(c.problems, change)
			if change.Held && change.def != nil {
				if c.held == nil {
					c.held, c.heldOwn = make(map[string]*ChangedError), make(map[[2]string]bool)
				}
				c.held[change.Name], c.heldOwn[[2]string{change.Server, change.Tool}] = change, true
			}
		}
		for _, d := range src.defs {
			c.add(prev, d, r.access)
		}
	}
	c.shelf = resources.NewShelf(prev.shelf, entries, r.shelfIndex)
	c.resolveNeeds(listings, r.needs)
	c.noteGone(prev)
	c.setIndexed(r.searchable)
	c.index = r.retriever(prev.index, c.documents(), c.known.of)
	c.originals = sync.OnceValue(func() map[string][]int {
		byName := make(map[string][]int, len(c.tools))
		for i, t := range c.tools {
			byName[t.def.Own] = append(byName[t.def.Own], i)
		}
		return byName
	})
	return c
}

// setIndexed decides which tools to index: all, or those that are deferred for
// most sessions.
func (c *catalog) setIndexed(standings func(*catalog) iter.Seq2[*BridgeTool, standing]) {
	if standings == nil {
		c.indexed = make([]int, len(c.tools))
		for i := range c.indexed {
			c.indexed[i] = i
		}
		return
	}
	i := 0
	for _, st := range standings(c) {
		if st.searchable() {
			c.indexed = append(c.indexed, i)
		}
		i++
	}
}

// unindexed yields the indexes in c.tools of the tools that are not indexed.
func (c *catalog) unindexed() iter.Seq[int] {
	return func(yield func(int) bool) {
		doc := 0
		for i := range c.tools {
			if doc < len(c.indexed) && c.indexed[doc] == i {
				doc++
			} else if !yield(i) {
				return
			}
		}
	}
}

// documents returns the indexed tools, by document.
func (c *catalog) documents() []*BridgeTool {
	tools := make([]*BridgeTool, len(c.indexed))
	for doc, i := range c.indexed {
		tools[doc] = c.tools[i]
	}
	return tools
}

// add adds a tool for d, if access permits it.
func (c *catalog) add(prev *catalog, d *definition, access Access) {
	if !access.permits(d.names()) {
		return
	}
	t := &BridgeTool{name: d.registered, def: d, owner: c.owner}
	if old := prev.tool(t.name); old != nil && old.def == d {
		t = old
	}
	c.byName[t.name] = len(c.tools)
	c.tools = append(c.tools, t)
}

// A fingerprint is computed once, on first use.
type fingerprint struct {
	once sync.Once
	text string
}
