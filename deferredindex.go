package mcphybrid

import (
	"iter"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// How the deferred tools of a catalog become an index:
//
//	catalog ─▶ what searchedByDefault yields ─ ranker.go ─▶ documents ─▶ deferredIndex
//	           (partitionset.go)                RankerClassic: a BM25Index
//	                                            all others: a search.Index, which knows fields and related words
//
// A host's search finds inline tools, too. For it there is a second index, of all tools, made when a
// host first searches: derived from the index that was made last, or a BM25Index of its own.

// A deferredIndex is the index of the tools of a catalog that are deferred for most
// sessions, and for a user's catalog of all its tools. It is made when it is first used.
type deferredIndex struct {
	once      sync.Once
	maker     *deferredIndexer // makes it; nil if it is made
	of        ranker
	docs      []int // index in the tools, by document; ascending
	unindexed []int // the other indexes in the tools, likewise

	grouping sync.Once
	servers  *docsByServer

	withInline struct { // see catalog.withInline
		once sync.Once
		*catalog
	}
}

func (c *catalog) indexed() []int { return c.ensureIndex().docs }

func (c *catalog) index() ranker { return c.ensureIndex().of }

func (c *catalog) ensureIndex() *deferredIndex {
	x := c.deferredIndex
	x.once.Do(func() {
		if x.maker != nil {
			x.maker.fill(x, c)
		}
	})
	return x
}

// servers returns the documents of each server.
func (c *catalog) servers() *docsByServer {
	x := c.ensureIndex()
	x.grouping.Do(func() {
		x.servers = newDocsByServer(len(x.docs), func(doc int) string { return c.tools[x.docs[doc]].def.Server })
	})
	return x.servers
}

// A deferredIndexer makes the indexes of one Manager's catalogs, each from the one before.
type deferredIndexer struct {
	*indexer

	// searchable yields each tool, and whether a session without restrictions searches
	// for it. Those are indexed. If nil, all tools are.
	searchable func(c *catalog) iter.Seq2[*BridgeTool, bool]

	mu   sync.Mutex
	last ranker // the index that was made last
}

// fill makes the index of c.
func (made *deferredIndexer) fill(x *deferredIndex, c *catalog) {
	x.docs, x.unindexed = c.toIndex(made.searchable)
	made.mu.Lock()
	defer made.mu.Unlock()
	x.of = made.ofTools(made.last, c.numberedTools(x.docs), c.known.of)
	made.last = x.of
}

// withInline returns c with an index of all its tools, so that the scores of inline and
// deferred ones can be compared. The index of the deferred tools stays as it is.
func (c *catalog) withInline() *catalog {
	x := c.ensureIndex()
	if len(x.unindexed) == 0 {
		return c
	}
	x.withInline.once.Do(func() {
		docs := make([]int, len(c.tools))
		for i := range docs {
			docs[i] = i
		}
		x.withInline.catalog = &catalog{owner: c.owner, tools: c.tools, list: c.list, prefixes: c.prefixes, deferredIndex: &deferredIndex{docs: docs, of: x.maker.ofAll(c)}}
	})
	return x.withInline.catalog
}

// ofAll returns an index of all tools of c.
func (made *deferredIndexer) ofAll(c *catalog) ranker {
	made.mu.Lock()
	defer made.mu.Unlock()
	made.last = made.ofTools(made.last, c.tools, c.known.of)
	return made.last
}

// toIndex returns the tools to index, all or those that are deferred for most
// sessions, and the others, by their index in c.tools.
func (c *catalog) toIndex(searchable func(*catalog) iter.Seq2[*BridgeTool, bool]) (docs, rest []int) {
	docs = make([]int, 0, len(c.tools))
	if searchable == nil {
		for i := range c.tools {
			docs = append(docs, i)
		}
		return docs, nil
	}
	i := 0
	for _, is := range searchable(c) {
		if is {
			docs = append(docs, i)
		} else {
			rest = append(rest, i)
		}
		i++
	}
	return docs, rest
}

// documents returns the indexed tools, by document.
func (c *catalog) documents() []*BridgeTool { return c.numberedTools(c.indexed()) }

func (c *catalog) numberedTools(docs []int) []*BridgeTool {
	tools := make([]*BridgeTool, len(docs))
	for doc, i := range docs {
		tools[doc] = c.tools[i]
	}
	return tools
}

// These are how many patterns of servers are kept with the documents that they match, and
// how many times all documents these may be.
const (
	maxMatchedPatterns = 64
	maxMatchedTimes    = 4
)

// A docsByServer has the documents of each server: they are numbered from 0. It never
// changes.
type docsByServer struct {
	names []string // of the servers, in the order of their first documents
	of    map[string][]int

	mu      sync.Mutex
	matched map[string][]int // documents by pattern, so that a repeated search asks no server
	cached  int              // documents in matched
	most    int              // of these
}

// newDocsByServer returns n documents, each of the server of that name.
func newDocsByServer(n int, server func(doc int) string) *docsByServer {
	g := &docsByServer{of: make(map[string][]int), matched: make(map[string][]int), most: maxMatchedTimes * n}
	for i := range n {
		name := server(i)
		if g.of[name] == nil {
			g.names = append(g.names, name)
		}
		g.of[name] = append(g.of[name], i)
	}
	return g
}

// matching returns the documents of the servers that match pattern, server by server, each in
// ascending order. The caller must not change the list.
func (g *docsByServer) matching(pattern string) []int {
	if !strings.ContainsAny(pattern, "*?") {
		return g.of[pattern]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	list, known := g.matched[pattern]
	if known {
		return list
	}
	for _, name := range g.names {
		if rules.Match(pattern, name) {
			list = append(list, g.of[name]...)
		}
	}
	if len(g.matched) >= maxMatchedPatterns || g.cached+len(list) > g.most {
		clear(g.matched)
		g.cached = 0
	}
	g.matched[pattern], g.cached = list, g.cached+len(list)
	return list
}
