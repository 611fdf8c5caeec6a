package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/blocks"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/search"
)

// A catalog is one version of the tools that a Manager knows, and their index. All
// readers share it once it is published, and nobody may change it.
type catalog struct {
	owner         *owner                      // nil for a part of several catalogs
	tools         []*BridgeTool               // in registration order
	joined        blockList                   // of which these are the items; empty for a part
	wants         bool                        // a tool is to be always loaded
	deferredIndex *deferredIndex              // of these tools
	dependencies  dependencies                // the tools that each needs
	needsBelow    map[*BridgeTool][]string    // for a user: names of the system's tools that each needs
	problems      []error                     // in registration order
	held          map[string]*ChangedError    // tools in quarantine, by registered name
	heldOwn       map[[2]string]*ChangedError // the same, by server and own name
	removed       removedTools
	prefixes      names.Prefixes   // of its servers
	known         knownHints       // hints, some of them for tools that are not here
	shelf         *resources.Shelf // what servers offer beside tools

	originals func() map[string][]int // indexes in tools, ascending, by a tool's own name
	print     struct {
		once sync.Once
		text string
	}
	ended bool // the Manager is closed
}

// noTools is the catalog without tools. ended is the catalog of a closed Manager.
var (
	noTools = &catalog{deferredIndex: &deferredIndex{of: nothing}, originals: func() map[string][]int { return nil }}
	ended   = &catalog{ended: true, deferredIndex: noTools.deferredIndex, originals: noTools.originals}
)

// A block has what catalogs take from one listing: the tools that are permitted, by
// registered name, and, in its note, all else. It is marked if there is anything else.
// Catalogs share it until the listing changes.
type block = blocks.Block[*BridgeTool, *blockNote]

// about returns what the tools of a block are about.
func about(b *block) string {
	b.Note.once.Do(func() {
		s := search.Subject{Server: b.Items[0].def.Server}
		for _, t := range b.Items {
			s.Add(t.def.Own)
		}
		b.Note.about = s.String()
	})
	return b.Note.about
}

type blockList = blocks.List[*BridgeTool, *blockNote]

// A blockNote is what catalogs know of a listing.
type blockNote struct {
	of *listing // whose name and hide never change; the rest may have by now
	offering
	needs map[string][]string // see [ServerConfig.Needs]; nil before it has listed its tools
	plain bool                // it has nothing but tools
	lists bool                // its tools are known, even if there are none
	tell  bool                // a tool says what it needs
	wants bool                // a tool is to be always loaded

	once  sync.Once
	about string
}

// An offering is what a listing brings to a catalog.
type offering struct {
	defs     []*definition      // the tools in listed that are not held back; without a connection, all tools
	entries  []*resources.Entry // those of offers, some of them held back
	changed  []*ChangedError    // what has changed
	problems []error
}

// place returns the index in c.tools of the tool with that registered name.
func (c *catalog) place(name string) (i int, ok bool) {
	if c.joined.Items == nil {
		i = slices.IndexFunc(c.tools, func(t *BridgeTool) bool { return t.name == name })
		return i, i >= 0
	}
	return c.joined.Place(c.prefixes.Number(name), name)
}

// tool returns the tool with that registered name, or nil.
func (c *catalog) tool(name string) *BridgeTool {
	if i, ok := c.place(name); ok {
		return c.tools[i]
	}
	return nil
}

// holdsBack returns why c, a catalog of t's owner, holds t back, under this or another
// name, or nil.
func (c *catalog) holdsBack(t *BridgeTool) *ChangedError {
	if e := c.heldOwn[[2]string{t.def.Server, t.def.Own}]; e != nil {
		return e
	}
	return c.held[t.name]
}

func (c *catalog) holds(t *BridgeTool) bool { return c.holdsBack(t) != nil }

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

// lists reports whether the tools of a server are known here, even if there are none.
func (c *catalog) lists(server string) bool {
	return slices.ContainsFunc(c.joined.Blocks, func(b *block) bool { return b != nil && b.Note.lists && b.Note.of.name == server })
}

// A listing holds the tools at one place in the registration order: those of a
// server, or a group of tools without a connection.
type listing struct {
	name   string
	prefix string              // see [ServerConfig.Prefix]
	tools  Access              // see [ServerConfig.Tools]
	needs  map[string][]string // see [ServerConfig.Needs]
	remote bool                // a server, which may not have listed its tools yet
	hide   func(error) error   // hides the server's secrets in a problem; nil without a connection

	claim    names.Claim        // of the names of its tools
	number   int                // of the claim's prefix
	listed   []*definition      // the tools that the server listed; nil before its first list
	offers   []*resources.Offer // what it listed beside tools
	offering                    // whoever changes this or the collision calls [Manager.place]

	collision *CollisionError // or nil
}

// A recipe says how to make catalogs.
type recipe struct {
	owner    *owner
	needs    map[string][]string // see [Options.Needs]
	listings iter.Seq[*listing]
	blocks   []*block // of the listings
	hints    knownHints
	prefixes names.Prefixes
	last     *lastIndex // the one that was made last

	// searchable yields each tool, and whether a session without restrictions searches
	// for it. The catalog indexes those. If nil, it indexes all tools.
	searchable func(c *catalog) iter.Seq2[*BridgeTool, bool]
	indexer    *indexer
}

// newCatalog returns the catalog that follows prev.
func (r *recipe) newCatalog(prev *catalog) *catalog {
	c := &catalog{owner: r.owner, known: r.hints, prefixes: r.prefixes, dependencies: make(dependencies)}
	c.joined = prev.joined.Next(r.blocks, r.prefixes.Len())
	c.tools = c.joined.Items
	var entries []*resources.Entry
	for _, b := range c.joined.Marked {
		entries = append(entries, b.Note.entries...)
		c.problems = append(c.problems, b.Note.problems...)
		for _, change := range b.Note.changed {
			c.problems = append(c.problems, change)
			if change.Held && change.def != nil {
				if c.held == nil {
					c.held, c.heldOwn = make(map[string]*ChangedError), make(map[[2]string]*ChangedError)
				}
				c.held[change.Name], c.heldOwn[[2]string{change.Server, change.Tool}] = change, change
			}
		}
		c.wants = c.wants || b.Note.wants
	}
	c.shelf = resources.NewShelf(prev.shelf, entries, r.indexer.ofDocuments)
	c.resolveDependencies(r.listings, r.needs)
	c.noteRemoved(prev)
	c.deferredIndex = &deferredIndex{make: func(x *deferredIndex) {
		x.docs, x.rest = c.toIndex(r.searchable)
		r.last.mu.Lock()
		defer r.last.mu.Unlock()
		x.of = r.indexer.ofTools(r.last.of, c.numberedTools(x.docs), c.known.of)
		r.last.of = x.of
	}}
	c.originals = sync.OnceValue(func() map[string][]int {
		byName := make(map[string][]int, len(c.tools))
		for i, t := range c.tools {
			byName[t.def.Own] = append(byName[t.def.Own], i)
		}
		return byName
	})
	return c
}

// fingerprint returns a hash of the tools and of which of them are indexed. It makes
// the index if need be.
func (c *catalog) fingerprint() string {
	c.print.once.Do(func() {
		h := sha256.New()
		for i, t := range c.tools {
			_, indexed := slices.BinarySearch(c.indexed(), i)
			fmt.Fprintf(h, "%s %t %x\n", t.name, !indexed, t.def.Trusted.Sum)
		}
		c.print.text = hex.EncodeToString(h.Sum(nil)[:8])
	})
	return c.print.text
}
