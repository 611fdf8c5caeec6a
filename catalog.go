package mcphybrid

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/search"
)

// A catalog is one version of the tools that a Manager knows, and their index.
// It is shared by all readers once published and must not be changed.
type catalog struct {
	owner      *owner                        // nil for a part of several catalogs
	tools      []*BridgeTool                 // in registration order
	byName     map[string]int                // where in tools, by registered name
	index      retriever                     // of those that are deferred for most sessions
	indexed    []int                         // where in tools, by document; ascending
	needs      map[*BridgeTool][]*BridgeTool // what each was said to need, in this order; not itself, none twice
	needsBelow map[*BridgeTool][]string      // of a user's: the registered names of what else, if the system has it
	problems   []error                       // in registration order
	held       map[string]*ChangedError      // by registered name: tools in quarantine
	gone       map[string]goneTool           // by registered name: tools that were there
	known      knownHints                    // of tools, also of some that are not here

	originals func() map[string][]int // by a tool's own name: where in tools, ascending
	print     fingerprint
	ended     bool // the Manager is closed
}

// noTools is the catalog without tools, and ended that of a closed Manager.
var (
	noTools = &catalog{index: NewBM25Index(nil, nil), originals: func() map[string][]int { return nil }}
	ended   = &catalog{ended: true, index: noTools.index, originals: noTools.originals}
)

// A standing is how a tool stands for a session.
type standing uint8

const (
	hidden     standing = iota // the session does not know of it
	inline                     // its definition is sent from the start
	summarized                 // deferred, and listed by name and one line
	deferred                   // it has to be searched for
)

// searchable reports whether a search may find the tool.
func (st standing) searchable() bool { return st == summarized || st == deferred }

// A retriever ranks documents, which it knows by their number, against
// queries: see [BM25Index.Search].
type retriever interface {
	Search(query string, n int, keep func(doc int) bool) []search.Match
	Explain(query string, doc int) search.Explanation
	Len() int

	// HasTerms reports whether there is anything in query to search for.
	HasTerms(query string) bool
}

// A goneTool is what is known of a tool that has left the catalog.
type goneTool struct {
	server string
	since  time.Time
}

// maxGone bounds them; of more, none is remembered.
const maxGone = 10_000

// noteGone sets c.gone: what has left since prev, and what had left before and
// is not back.
func (c *catalog) noteGone(prev *catalog) {
	there := func(name string) bool { return c.tool(name) != nil }
	var left []*BridgeTool
	for _, t := range prev.tools {
		if !there(t.name) {
			left = append(left, t)
		}
	}
	back := false
	for name := range prev.gone {
		back = back || there(name)
	}
	if len(left) == 0 && !back {
		c.gone = prev.gone
		return
	}
	c.gone = make(map[string]goneTool, len(prev.gone)+len(left))
	for name, g := range prev.gone {
		if !there(name) {
			c.gone[name] = g
		}
	}
	now := time.Now()
	for _, t := range left {
		c.gone[t.name] = goneTool{t.def.server, now}
	}
	if len(c.gone) > maxGone {
		c.gone = nil
	}
}

// tool returns the tool of a registered name, or nil.
func (c *catalog) tool(name string) *BridgeTool {
	if at, ok := c.byName[name]; ok {
		return c.tools[at]
	}
	return nil
}

// A listing is what one place in the registration order has: a server, or tools
// without a connection.
type listing struct {
	name     string
	prefix   string              // see [ServerConfig.Prefix]
	needs    map[string][]string // see [ServerConfig.Needs]
	remote   bool                // a server, which may not have listed its tools yet
	listed   []*definition       // what the server says it has; nil before it has said so
	changed  []*ChangedError     // of these
	defs     []*definition       // of listed, what may be used; all, without a connection
	problems []error
}

// A recipe says how catalogs are made.
type recipe struct {
	owner  *owner
	access Access              // which tools there are
	needs  map[string][]string // see [Options.Needs]
	hints  knownHints

	// searchable reports of each tool whether it is deferred for a session that
	// nothing is denied. If nil, all are indexed.
	searchable func(c *catalog) iter.Seq2[*BridgeTool, standing]
	retriever  func(prev retriever, tools []*BridgeTool, hints func(*BridgeTool) *toolHints) retriever
}

// newCatalog returns the catalog of listings that follows prev. Tools that prev
// has too, under the same name, are the same *BridgeTool.
func (r *recipe) newCatalog(prev *catalog, listings []*listing, owners prefixOwners) *catalog {
	c := &catalog{owner: r.owner, byName: make(map[string]int, len(prev.byName)), known: r.hints}
	for _, src := range listings {
		c.problems = append(c.problems, src.problems...)
		for _, change := range src.changed {
			c.problems = append(c.problems, change)
			if change.Held {
				if c.held == nil {
					c.held = make(map[string]*ChangedError)
				}
				c.held[change.Name] = change
			}
		}
		for _, d := range src.defs {
			c.add(prev, d, owners, r.access)
		}
	}
	c.resolveNeeds(listings, r.needs)
	c.noteGone(prev)
	c.setIndexed(r.searchable)
	c.index = r.retriever(prev.index, c.documents(), c.known.of)
	c.originals = sync.OnceValue(func() map[string][]int {
		byName := make(map[string][]int, len(c.tools))
		for i, t := range c.tools {
			byName[t.def.name] = append(byName[t.def.name], i)
		}
		return byName
	})
	return c
}

// setIndexed decides which tools are indexed: all, or those that are deferred
// for most sessions.
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

// unindexed yields where in c.tools those are that are not indexed.
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

// documents returns the tools that are indexed.
func (c *catalog) documents() []*BridgeTool {
	tools := make([]*BridgeTool, len(c.indexed))
	for doc, i := range c.indexed {
		tools[doc] = c.tools[i]
	}
	return tools
}

// add gives d its name: that under its server's prefix, or one of its own if
// this is another server's or, among long names, is taken.
func (c *catalog) add(prev *catalog, d *definition, owners prefixOwners, access Access) {
	name := owners.nameOf(d.registered, d.server, d.name)
	first := c.tool(d.registered)
	for try := 0; c.tool(name) != nil; try++ {
		name = suffixedName(d.registered, d.server, d.name, try)
	}
	if first != nil {
		c.problems = append(c.problems, &CollisionError{
			Name:  d.registered,
			First: first.def.server, FirstTool: first.def.name,
			Second: d.server, SecondTool: d.name, Renamed: name,
		})
	}
	if !access.permits(name) {
		return
	}
	t := &BridgeTool{name: name, def: d, owner: c.owner}
	if old := prev.tool(name); old != nil && old.def == d {
		t = old
	}
	c.byName[name] = len(c.tools)
	c.tools = append(c.tools, t)
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

// A fingerprint is computed once.
type fingerprint struct {
	once sync.Once
	text string
}
