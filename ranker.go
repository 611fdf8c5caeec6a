package mcphybrid

import (
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/search"
)

// A Ranker names a way to rank deferred tools.
type Ranker string

const (
	// RankerDefault is [RankerLexical] with relatives of words and correction of typing
	// errors. A second pass reranks the best 20 tools.
	RankerDefault Ranker = "default"

	// RankerLexical is BM25F over all that is known of a tool, its parameters
	// included, in one pass: see [search.Index].
	RankerLexical Ranker = "lexical"

	// RankerClassic is BM25 over the server's name, the tool's own name and
	// its description, with the terms and the formula of the published
	// reference design: see [BM25Index].
	RankerClassic Ranker = "classic"
)

var rankers = []Ranker{RankerDefault, RankerLexical, RankerClassic}

// RankingOptions say how deferred tools are ranked, and how many a search finds.
type RankingOptions struct {
	// Ranker names the way. If empty, [RankerDefault].
	Ranker Ranker

	// Lexicon is what [RankerDefault] and [RankerLexical] know of words. If
	// nil, [search.DefaultLexicon].
	Lexicon *search.Lexicon

	// Threshold is what a tool must score in a search, for any ranker except
	// [RankerClassic]: see [search.Options]. It defaults to
	// [search.DefaultThreshold].
	Threshold float64

	// BM25 are the parameters of [RankerClassic]. If nil, the defaults.
	BM25 *BM25Options

	// Results is how many tools a search returns if the model does not ask for
	// a number, Limit how many it returns at most. They default to
	// 5 ([DefaultSearchResults]) and 20 ([DefaultSearchLimit]), or Limit to Results if
	// that is more, and must not be negative.
	Results int
	Limit   int

	// Schemas is how many bytes of input schemas the answer to a model's search may
	// have with [ByBridge]. The best tools whose schemas fit have them, and need not
	// be described before they are called. It defaults to 2,000.
	Schemas int

	// ServerLimit is the largest number of tools of one server in the answer
	// to a search. If zero or negative, there is no such limit: none of a server
	// would be no search.
	ServerLimit int
}

// A ranker ranks documents against queries. It identifies documents by number: see
// [BM25Index.Search].
type ranker interface {
	Search(query string, n int, keep func(doc int) bool) []search.Match
	Explain(query string, doc int) search.Explanation
	Len() int

	// HasTerms reports whether query has any term to search for.
	HasTerms(query string) bool
}

// emptyIndex has no documents.
var emptyIndex = NewBM25Index(nil, nil)

// An indexer makes indexes by what the host has chosen.
type indexer struct {
	classic bool                 // [RankerClassic], of which bm25 are the parameters
	bm25    *BM25Options         // or nil
	empty   func() *search.Index // without documents, made on first use
}

// newIndexer returns an indexer for options whose defaults are set.
func newIndexer(o *RankingOptions) *indexer {
	name := o.Ranker
	if name == RankerClassic { // which ranks tools and skills only
		name = RankerDefault
	}
	return &indexer{o.Ranker == RankerClassic, o.BM25, sync.OnceValue(func() *search.Index {
		return search.NewIndex(nil, &search.Options{Ranker: search.Ranker(name), Lexicon: o.Lexicon, Threshold: o.Threshold})
	})}
}

// index returns an index of n documents. It reuses the work of prev, an index of others.
func (x *indexer) index(prev ranker, n int, plainText func(doc int) string, document func(doc int) *search.Document) ranker {
	if x.classic {
		texts := make([]string, n)
		for doc := range texts {
			texts[doc] = plainText(doc)
		}
		return NewBM25Index(texts, x.bm25)
	}
	docs := make([]*search.Document, n)
	for doc := range docs {
		docs[doc] = document(doc)
	}
	if x, ok := prev.(*search.Index); ok {
		return x.With(docs)
	}
	return x.empty().New(docs)
}

// indexTools returns an index of tools with their hints. It reuses the work of prev.
func (x *indexer) indexTools(prev ranker, tools []*BridgeTool, known func(*BridgeTool) *enrich.Known) ranker {
	return x.index(prev, len(tools),
		func(doc int) string { return tools[doc].plainText(known(tools[doc])) },
		func(doc int) *search.Document { return tools[doc].document(known(tools[doc])) })
}

// indexDocuments returns an index of resources and the like, which no classic ranker ranks.
func (x *indexer) indexDocuments(docs []*search.Document) *search.Index { return x.empty().New(docs) }

// plainText returns the text that stands for t in [RankerClassic], with its hints h or
// without.
func (t *BridgeTool) plainText(h *enrich.Known) string {
	text := strings.Join([]string{t.def.Server, t.def.Own, t.def.Description}, " ")
	if h != nil {
		text += " " + h.Words()
	}
	return text
}

// document returns the document that stands for t in the other rankers, with its hints h or
// without, and with the words of its server's instructions.
func (t *BridgeTool) document(h *enrich.Known) *search.Document {
	if h == nil {
		return t.instructionWords.document(t.def.Document())
	}
	return t.instructionWords.document(&h.Document)
}
