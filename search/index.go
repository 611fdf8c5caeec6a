package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// A Document is one entry of an [Index]. Any field may be empty. The caller
// must not change a document that is in an index.
type Document struct {
	Server      string
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage // JSON Schema of the arguments
	Hints       string          // more words that find it

	// Instructions are what its server says of all that it has. Their words weigh little.
	Instructions string

	// ReadOnly says that it changes nothing, whatever its name sounds like: see [Verbs].
	ReadOnly bool
}

// A Ranker names a ranking method.
type Ranker string

const (
	// RankerDefault is [RankerLexical] with relatives of words and correction of
	// typing errors. A second pass reranks the best 20 documents.
	RankerDefault Ranker = "default"

	// RankerLexical is BM25F over all fields of a document, including the names
	// and descriptions of its parameters, in one pass.
	RankerLexical Ranker = "lexical"
)

// Options configures an [Index]. The zero value is the default configuration.
type Options struct {
	// Ranker is [RankerDefault] or [RankerLexical]. If empty, it is
	// [RankerDefault].
	Ranker Ranker

	// Lexicon relates words. If nil, it is [DefaultLexicon].
	Lexicon *Lexicon

	// Threshold is the least score of a match, in units of what one occurrence
	// of the query's rarest word scores. With 1, a document needs this word or
	// several others. A negative value turns the threshold off: any shared word
	// is enough.
	//
	// If zero, it is [DefaultThreshold]. It must not be NaN or infinite.
	Threshold float64
}

// DefaultThreshold is the default of [Options.Threshold]. It costs nothing in
// recall on nine public corpora. Among a few hundred documents it drops matches
// that share only one word with a longer query, if a third of the documents have
// this word in their descriptions.
const DefaultThreshold = 0.2

// An Index ranks a list of documents against queries. A document's number is
// its position in the list, from 0. An Index is immutable and safe for
// concurrent use.
type Index struct {
	growth *growth

	docs      []*Document // by position
	slots     []uint32    // by position
	positions []int32     // by slot; -1 for a removed document

	vocabulary vocabulary
	heads      headList // by term
	contents   []uint16 // by slot; see contentReader
	first      []uint32 // by slot: where it begins in contents; len is slots + 1
	signatures dictionaryView

	logDocs  float64         // ln(N+1) for N documents; see idf
	lengths  [fields]uint64  // sum over all documents, in terms
	averages [fields]float64 // see average
	worth    []uint32        // by signature, computed with averages
}

// Inside an index, each document has a slot and each term a number, in the order
// in which they were added. Each term has a list of postings: the documents that
// contain it. Each document has its content: the terms that it contains. A
// signature says how often a term occurs in each field of a document and how
// long these fields are. Few signatures are distinct, so the index numbers them
// and computes once for each how much an occurrence is worth. The documents
// {server "git", name "create_issue"} and {server "git", name "list_issues"}
// give
//
//	terms       0 git, 1 creat, 2 issu, 3 list
//	signatures  0 once of 1 in server, 1 once of 2 in name
//	postings    git {slot 0, signature 0} {1, 0}; creat {0, 1}; issu {0, 1} {1, 1}; …
//	contents    slot 0: signature 1: creat issu, signature 0: git; slot 1: …
//
// Indexes that [Index.With] derives from each other share these lists. New
// entries are appended behind the part that older indexes see; a removed
// document only loses its position. No answer depends on slots and numbers, so
// after any history an index answers like a new one, to the bit.
//
// Postings and contents take most of the memory, so they are packed: see
// head.post and contentReader.

// The fields of a document.
const (
	inServer = iota
	inName
	inTitle
	inDescription
	inParameters // names of parameters
	inTexts      // descriptions and string values of parameters
	inNested     // names, descriptions and values of parameters within parameters
	inHints
	inInstructions
	fields
)

// Document returns document i, from 0 to [Index.Len] - 1. It panics for any
// other i.
func (x *Index) Document(i int) *Document { return x.docs[i] }

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.docs) }

// NewIndex returns an index of docs. If opts is nil, it uses the zero [Options].
// It panics if the ranker is unknown or the threshold is NaN or infinite.
func NewIndex(docs []*Document, opts *Options) *Index {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Ranker == "" {
		o.Ranker = RankerDefault
	}
	if o.Ranker != RankerDefault && o.Ranker != RankerLexical {
		panic(fmt.Sprintf("search: Options.Ranker is %q, must be %q or %q", o.Ranker, RankerDefault, RankerLexical))
	}
	l := compileDefault()
	if o.Lexicon != nil {
		l = compile(o.Lexicon)
	}
	if math.IsNaN(o.Threshold) || math.IsInf(o.Threshold, 0) {
		panic(fmt.Sprintf("search: Options.Threshold is %v, must be finite", o.Threshold))
	}
	threshold := max(cmp.Or(o.Threshold, DefaultThreshold), 0)
	return newGrowth(o.Ranker, l, threshold).index(docs)
}

// New returns an index of docs with the options of x. The two share only the
// compiled lexicon.
func (x *Index) New(docs []*Document) *Index {
	g := x.growth
	return newGrowth(g.ranker, g.lexicon, g.threshold).index(docs)
}

// With returns an index of docs that answers like a new one and leaves x
// unchanged. It reads only documents whose pointers x doesn't have. The cost
// grows with the part of the list between the first and the last change, plus a
// little per document. A second call on the same x is as slow as [NewIndex].
func (x *Index) With(docs []*Document) *Index {
	g := x.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest != x {
		return x.New(docs)
	}
	return g.next(docs)
}

// A Match is one document found by [Index.Search].
type Match struct {
	Doc   int     // the document's number, from 0
	Score float64 // above 0, without an upper bound, comparable within one search
}
