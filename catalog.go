package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A catalog is one version of the tools that a Manager knows, and their index. All
// readers share it once it is published, and nobody may change it.
type catalog struct {
	owner          *owner                      // of its tools; nil for the small index of a partition, which may have tools of several
	tools          []*BridgeTool               // in registration order
	list           toolList                    // of which these are the tools; without servers in the small index of a partition
	deferredIndex  *deferredIndex              // of those that searchedByDefault returns, or of all
	needs          toolNeeds                   // the tools that each needs
	needsBelow     map[*BridgeTool][]string    // for a user: names of the system's tools that each needs
	problems       []error                     // in registration order; then those of several servers
	quarantined    map[string]*ChangedError    // tools in quarantine, by registered name
	quarantinedOwn map[[2]string]*ChangedError // the same, by server and own name
	removed        removedTools
	prefixes       names.Prefixes   // of its servers
	hints          knownHints       // some of them for tools that are not here
	shelf          *resources.Shelf // what servers offer besides tools

	originals func() map[string][]int        // indexes in tools, ascending, by a tool's own name
	byServer  func() map[string]*serverTools // what there is of a server, by its name
	hashed    struct {
		once sync.Once
		text string
	}
	ended bool // the Manager is closed
}

// A toolPlace says where a tool is: the index of its server, 0 in a part, and its index there.
type toolPlace struct{ server, index int32 }

// noTools is the catalog without tools. ended is the catalog of a closed Manager.
var (
	noTools = &catalog{deferredIndex: &deferredIndex{ranker: emptyIndex}, originals: func() map[string][]int { return nil }, byServer: func() map[string]*serverTools { return nil }}
	ended   = &catalog{ended: true, deferredIndex: noTools.deferredIndex, originals: noTools.originals, byServer: noTools.byServer}
)

// isPart reports whether c has tools and no list of servers.
func (c *catalog) isPart() bool { return len(c.list.tools) == 0 && len(c.tools) > 0 }

// indexOf returns the index in c.tools of the tool with that registered name.
func (c *catalog) indexOf(name string) (i int, ok bool) {
	if c.isPart() {
		i = slices.IndexFunc(c.tools, func(t *BridgeTool) bool { return t.name == name })
		return i, i >= 0
	}
	return c.list.index(c.prefixes.Number(name), name)
}

// find returns the place of the tool with that registered name, and the tool.
func (c *catalog) find(name string) (at toolPlace, t *BridgeTool, ok bool) {
	if c.isPart() {
		i, ok := c.indexOf(name)
		if !ok {
			return at, nil, false
		}
		return toolPlace{index: int32(i)}, c.tools[i], true
	}
	k, ok := c.list.place(c.prefixes.Number(name))
	if !ok {
		return at, nil, false
	}
	j, ok := c.list.servers[k].indexOf[name]
	if !ok {
		return at, nil, false
	}
	return toolPlace{int32(k), int32(j)}, c.list.servers[k].tools[j], true
}

// place returns the place of the i-th tool.
func (c *catalog) place(i int) toolPlace {
	if c.isPart() {
		return toolPlace{index: int32(i)}
	}
	at := c.list.at[c.tools[i].number]
	return toolPlace{at.server - 1, int32(i) - at.first}
}

// placeOf returns the place of t, if c has it. c is a catalog of the tool's owner.
func (c *catalog) placeOf(t *BridgeTool) (at toolPlace, ok bool) {
	k, ok := c.list.place(t.number)
	if !ok {
		return at, false
	}
	j, ok := c.list.servers[k].indexOf[t.name]
	return toolPlace{int32(k), int32(j)}, ok && c.list.servers[k].tools[j] == t
}

// tool returns the tool with that registered name, or nil.
func (c *catalog) tool(name string) *BridgeTool {
	_, t, _ := c.find(name)
	return t
}

// quarantineOf returns why c, a catalog of the tool's owner, holds it back, under this or another
// name, or nil.
func (c *catalog) quarantineOf(t rules.Subject) *ChangedError {
	if e := c.quarantinedOwn[[2]string{t.Server, t.Own}]; e != nil {
		return e
	}
	return c.quarantined[t.Name]
}

func (c *catalog) isQuarantined(t *BridgeTool) bool { return c.quarantineOf(t.def.subject()) != nil }

// overrides reports whether the tool of that name and server, of a catalog below c, is
// hidden beside c: c has or holds back a tool of its name, or the name belongs to
// another server of c, for good.
func (c *catalog) overrides(name, server string) bool {
	if c.tool(name) != nil || c.quarantined[name] != nil {
		return true
	}
	of := c.prefixes.Server(name)
	return of != "" && of != server
}

// newCatalog returns the catalog of an owner that follows prev: the tools of these servers,
// in their order, with hints.
//
// needs are those of [Options.Needs], and unlisted is what can be said of the tools of
// servers that have not listed theirs yet, which needs may be about. indexer makes the
// index, when it is first used.
func newCatalog(prev *catalog, owner *owner, servers []*serverTools, prefixes names.Prefixes, known knownHints, needs map[string][]string, unlisted []rules.Subject, indexer *deferredIndexer) *catalog {
	c := &catalog{owner: owner, hints: known, prefixes: prefixes, needs: make(toolNeeds)}
	c.list = prev.list.next(servers, prefixes.Len())
	c.tools = c.list.tools
	var entries []*resources.Entry
	var skilled []string
	for _, s := range c.list.withMore {
		entries = append(entries, s.entries...)
		if s.skilled {
			skilled = append(skilled, s.server)
		}
		c.problems = append(c.problems, s.problems...)
		for _, change := range s.changed {
			c.problems = append(c.problems, change)
			if change.Quarantined && change.def != nil && change.def.Apps.model {
				if c.quarantined == nil {
					c.quarantined, c.quarantinedOwn = make(map[string]*ChangedError), make(map[[2]string]*ChangedError)
				}
				c.quarantined[change.Name], c.quarantinedOwn[[2]string{change.Server, change.Tool}] = change, change
			}
		}
	}
	c.shelf = resources.NewShelf(prev.shelf, entries, skilled, indexer.indexDocuments)
	c.resolveNeeds(needs, unlisted)
	c.noteRemoved(prev)
	c.deferredIndex = &deferredIndex{indexer: indexer}
	c.byServer = sync.OnceValue(func() map[string]*serverTools {
		byName := make(map[string]*serverTools, len(c.list.servers))
		for _, s := range c.list.servers {
			if s != nil && byName[s.server] == nil {
				byName[s.server] = s
			}
		}
		return byName
	})
	c.originals = sync.OnceValue(func() map[string][]int {
		byName := make(map[string][]int, len(c.tools))
		for i, t := range c.tools {
			byName[t.def.Own] = append(byName[t.def.Own], i)
		}
		return byName
	})
	return c
}

// hasListed reports whether an owner's server has listed its tools, by these catalogs.
func hasListed(catalogs []*catalog, of *owner, server string) bool {
	return slices.ContainsFunc(catalogs, func(c *catalog) bool {
		has := c.byServer()[server]
		return c.owner == of && has != nil && has.lists
	})
}

// byIndex yields the tools of each server that has any, by its index. A catalog that is only a part
// has one list.
func (c *catalog) byIndex() iter.Seq2[int, []*BridgeTool] {
	return func(yield func(int, []*BridgeTool) bool) {
		if c.isPart() {
			yield(0, c.tools)
			return
		}
		for k, s := range c.list.servers {
			if s != nil && len(s.tools) > 0 && !yield(k, s.tools) {
				return
			}
		}
	}
}

// toolsAt returns the tools of the server with that index.
func (c *catalog) toolsAt(k int) []*BridgeTool {
	if c.isPart() {
		return c.tools
	}
	return c.list.servers[k].tools
}

// fingerprint returns a hash of the tools and of which of them are indexed. It makes
// the index if need be.
func (c *catalog) fingerprint() string {
	c.hashed.once.Do(func() {
		h := sha256.New()
		for i, t := range c.tools {
			_, indexed := c.documentOf(i)
			fmt.Fprintf(h, "%s %t %x\n", t.name, !indexed, t.def.Trusted.Sum)
		}
		c.hashed.text = hex.EncodeToString(h.Sum(nil)[:8])
	})
	return c.hashed.text
}

// knownHints are the hints known so far. A map is shared and never changed.
type knownHints map[enrich.Tool]*enrich.Known

// of returns the hints of t, or nil. t may be nil.
func (k knownHints) of(t *BridgeTool) *enrich.Known {
	if t == nil || len(k) == 0 { // most often there are none, and a look costs as much
		return nil
	}
	return k[t.def]
}
