package mcphybrid

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
	index    retriever
	needs    map[*BridgeTool][]*BridgeTool // what each was said to need, in this order; not itself, none twice
	problems []error                       // in registration order
	held     map[string]*ChangedError      // by registered name: tools in quarantine
	gone     map[string]goneTool           // by registered name: tools that were there

	originals func() map[string][]int // by a tool's own name: documents, ascending
	openings  sync.Map                // of []shown; see opening
	opened    atomic.Int32            // lists that were made for it
	print     fingerprint
	ended     bool // the Manager is closed
}

// A retriever ranks documents, which it knows by their number, against
// queries: see [BM25Index.Search].
type retriever interface {
	Search(query string, n int, keep func(doc int) bool) []Match
	Explain(query string, doc int) Explanation
	Len() int

	// hasTerms reports whether there is anything in query to search for.
	hasTerms(query string) bool
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
	there := func(name string) bool { return c.byName[name].tool != nil }
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

// An entry is where a tool stands in a catalog.
type entry struct {
	tool   *BridgeTool
	inline bool
}

// A source is one place in the registration order: a server, or tools without
// a connection.
type source struct {
	name     string
	server   *server         // nil for tools without a connection
	begun    bool            // the server was started
	listed   []*definition   // what the server says it has
	changed  []*ChangedError // of these
	defs     []*definition   // of listed, what may be used; all, without a connection
	problems []error
}

// newCatalog returns the catalog of sources that follows prev. Tools that prev
// has too, under the same name, are the same *BridgeTool.
func newCatalog(prev *catalog, sources []*source, owners prefixOwners, opts *Options) *catalog {
	c := &catalog{version: prev.version + 1, byName: make(map[string]entry, len(prev.byName))}
	for _, src := range sources {
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
		before := len(c.tools)
		for _, d := range src.defs {
			c.add(prev, d, owners, opts.Access)
		}
		if len(c.tools) > before {
			c.servers = append(c.servers, src.name)
		}
	}
	limit := opts.MaxInline
	if jit := opts.JustInTime; jit != nil {
		if limit = 0; len(c.tools) <= jit.Threshold {
			limit = len(c.tools)
		}
	}
	if !opts.Access.permits(SearchToolName) {
		limit = len(c.tools) // what can't be searched for must be in sight
	}
	c.inline, c.deferred = partition(c.tools, limit, func(t *BridgeTool) bool {
		return matchAny(opts.Pins, t.name)
	})
	for _, t := range c.inline {
		c.byName[t.name] = entry{t, true}
	}
	for _, t := range c.deferred {
		c.byName[t.name] = entry{t, false}
	}
	c.resolveNeeds(sources, opts.Needs)
	c.noteGone(prev)
	c.index = newRetriever(prev.index, c.deferred, opts)
	c.originals = sync.OnceValue(func() map[string][]int {
		byName := make(map[string][]int, len(c.deferred))
		for i, t := range c.deferred {
			byName[t.def.name] = append(byName[t.def.name], i)
		}
		return byName
	})
	return c
}

// newRetriever returns the retriever of tools that follows prev.
func newRetriever(prev retriever, tools []*BridgeTool, opts *Options) retriever {
	if opts.Ranker == RankerClassic {
		texts := make([]string, len(tools))
		for i, t := range tools {
			texts[i] = strings.Join([]string{t.def.server, t.def.name, t.def.description}, " ")
		}
		return NewBM25Index(texts, opts.BM25)
	}
	docs := make([]*Document, len(tools))
	for i, t := range tools {
		docs[i] = &t.def.document
	}
	if x, ok := prev.(*Index); ok {
		return x.With(docs)
	}
	return NewIndex(docs, &IndexOptions{Ranker: opts.Ranker, Lexicon: opts.Lexicon, Threshold: &opts.SearchThreshold})
}

// add gives d its name: that under its server's prefix, or one of its own if
// this is another server's or, among long names, is taken.
func (c *catalog) add(prev *catalog, d *definition, owners prefixOwners, access Access) {
	name := owners.nameOf(d)
	first, taken := c.byName[d.registered]
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
