package mcphybrid

import (
	"slices"
	"sync"
)

// How the deferred tools of a catalog become an index:
//
//	catalog ─▶ searchedByDefault ─ ranker.go ─▶ documents ─▶ deferredIndex
//	           (partitionset.go)   RankerClassic: a BM25Index
//	                               all others: a search.Index, which knows fields and related words
//
// A host's search finds inline tools, too. For it there is a second index, of all tools, made when a
// host first searches: derived from the index that was made last, or a BM25Index of its own.

// A deferredIndex is the index of the tools of a catalog that are deferred for
// sessions without restrictions, and for a user's catalog of all its tools. It is made when it is first used.
type deferredIndex struct {
	indexer *deferredIndexer // makes it; nil if it is made

	splitting sync.Once
	docs      []int // index in the tools, by document; ascending. Nil if each tool is the document of its index
	unindexed []int // the other indexes in the tools, likewise

	indexing sync.Once
	ranker   ranker

	grouping sync.Once
	servers  *docsByServer

	withInline struct { // see catalog.withInline
		once sync.Once
		*catalog
	}
}

// indexed returns how many tools are indexed.
func (c *catalog) indexed() int { return len(c.tools) - len(c.split().unindexed) }

// toolOf returns the index in c.tools of the tool that a document stands for.
func (c *catalog) toolOf(doc int) int {
	if docs := c.split().docs; docs != nil {
		return docs[doc]
	}
	return doc
}

// documentOf returns the document that stands for the tool with that index in c.tools. It is not ok if
// the tool is not indexed.
func (c *catalog) documentOf(i int) (doc int, ok bool) {
	if docs := c.split().docs; docs != nil {
		return slices.BinarySearch(docs, i)
	}
	return i, true
}

func (c *catalog) index() ranker {
	x := c.split()
	x.indexing.Do(func() {
		if x.indexer != nil {
			x.ranker = x.indexer.index(c, c.documents())
		}
	})
	return x.ranker
}

// split returns the index of c, which says what it holds and may not be made yet.
func (c *catalog) split() *deferredIndex {
	x := c.deferredIndex
	x.splitting.Do(func() {
		if x.indexer != nil && x.indexer.searchedByDefault != nil {
			x.docs, x.unindexed = x.indexer.searchedByDefault(c)
		}
	})
	return x
}

// servers returns the documents of each server.
func (c *catalog) servers() *docsByServer {
	x := c.split()
	x.grouping.Do(func() {
		x.servers = newDocsByServer(c.indexed(), func(doc int) string { return c.tools[c.toolOf(doc)].def.Server })
	})
	return x.servers
}

// A deferredIndexer makes the indexes of one Manager's catalogs, each from the one before.
type deferredIndexer struct {
	*indexer

	// searchedByDefault returns the tools that a session without restrictions searches for, which are
	// indexed, and the others: see deferredIndex. If it is nil, all tools are indexed.
	searchedByDefault func(c *catalog) (docs, unindexed []int)

	mu   sync.Mutex
	last ranker // the index that was made last
}

// index makes an index of tools of c.
func (d *deferredIndexer) index(c *catalog, tools []*BridgeTool) ranker {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = d.indexTools(d.last, tools, c.hints.of)
	return d.last
}

// withInline returns c with an index of all its tools, so that the scores of inline and
// deferred ones can be compared. The index of the deferred tools stays as it is.
func (c *catalog) withInline() *catalog {
	x := c.split()
	if len(x.unindexed) == 0 {
		return c
	}
	x.withInline.once.Do(func() {
		x.withInline.catalog = &catalog{owner: c.owner, tools: c.tools, list: c.list, prefixes: c.prefixes, deferredIndex: &deferredIndex{ranker: x.indexer.index(c, c.tools)}}
	})
	return x.withInline.catalog
}

// documents returns the indexed tools, by document.
func (c *catalog) documents() []*BridgeTool {
	docs := c.split().docs
	if docs == nil {
		return c.tools
	}
	tools := make([]*BridgeTool, len(docs))
	for doc, i := range docs {
		tools[doc] = c.tools[i]
	}
	return tools
}
