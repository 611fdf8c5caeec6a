package mcphybrid

import (
	"iter"
	"sync"
)

// How the deferred tools of a catalog become an index:
//
//	catalog ─▶ what searchedByDefault yields ─ ranker.go ─▶ documents ─▶ deferredIndex
//	           (partitionset.go)                RankerClassic: a BM25Index
//	                                            all others: a search.Index, which knows fields and related words
//
// A host's search finds inline tools, too. For it there is a second index, of all tools, made when a
// host first searches: derived from the index that was made last, or a BM25Index of its own.

// A deferredIndex is the index of the tools of a catalog that are deferred for
// sessions without restrictions, and for a user's catalog of all its tools. It is made when it is first used.
type deferredIndex struct {
	indexer *deferredIndexer // makes it; nil if it is made

	splitting sync.Once
	docs      []int // index in the tools, by document; ascending
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

func (c *catalog) indexed() []int { return c.split().docs }

func (c *catalog) index() ranker {
	x := c.split()
	x.indexing.Do(func() {
		if x.indexer != nil {
			x.ranker = x.indexer.index(c, c.numberedTools(x.docs))
		}
	})
	return x.ranker
}

// split returns the index of c, which says what it holds and may not be made yet.
func (c *catalog) split() *deferredIndex {
	x := c.deferredIndex
	x.splitting.Do(func() {
		if x.indexer != nil {
			x.docs, x.unindexed = c.splitSearchable(x.indexer.searchable)
		}
	})
	return x
}

// servers returns the documents of each server.
func (c *catalog) servers() *docsByServer {
	x := c.split()
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
		docs := make([]int, len(c.tools))
		for i := range docs {
			docs[i] = i
		}
		x.withInline.catalog = &catalog{owner: c.owner, tools: c.tools, list: c.list, prefixes: c.prefixes, deferredIndex: &deferredIndex{docs: docs, ranker: x.indexer.index(c, c.tools)}}
	})
	return x.withInline.catalog
}

// splitSearchable returns the tools to index, all or those that are deferred for most
// sessions, and the others, by their index in c.tools.
func (c *catalog) splitSearchable(searchable func(*catalog) iter.Seq2[*BridgeTool, bool]) (docs, rest []int) {
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
