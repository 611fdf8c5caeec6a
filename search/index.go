package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// A Document is what an [Index] knows of a tool. Any part may be empty. It
// must not be changed once it is in an index.
type Document struct {
	Server      string
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage // JSON Schema of the arguments
	Hints       string          // further words to find it by
}

// A Ranker names a way to rank documents.
type Ranker string

const (
	// RankerDefault is [RankerLexical], followed by a closer look at the best.
	RankerDefault Ranker = "default"

	// RankerLexical is BM25F over all fields of a document, its parameters
	// included, in one pass: see [Index].
	RankerLexical Ranker = "lexical"
)

// Options configure an [Index]. The zero value is the default
// configuration.
type Options struct {
	// Ranker is [RankerDefault] or [RankerLexical]. If empty, [RankerDefault].
	Ranker Ranker

	// Lexicon is what is known of words. If nil, [DefaultLexicon].
	Lexicon *Lexicon

	// Threshold is what a document must score to be found, compared with an
	// occurrence of the most telling word of the query: with 0, to share any
	// word is enough; with 1, nearly only documents with this or
	// with several other words are found.
	//
	// If zero, defaults to [DefaultThreshold]. If negative, there is none.
	Threshold float64
}

// DefaultThreshold costs less than 0.1 points of recall on nine public corpora.
// Among some hundreds of tools it leaves out those that share only one word
// with a longer query, if a tenth of the tools have it in their descriptions
// or a third in their names.
const DefaultThreshold = 0.4

// An Index ranks a list of documents against queries. It knows a document by
// its position in the list. It is immutable and may be used concurrently.
type Index struct {
	growth *growth

	docs      []*Document // by position
	slots     []uint32    // by position
	positions []int32     // by slot; -1 if it was removed

	vocabulary  vocabulary
	heads       paged[head]  // by term
	occurrences []occurrence // by slot, ascending terms within
	first       []uint32     // by slot, and one more: where its occurrences begin
	signatures  []signature

	logDocs  float64         // ln(N+1), of N documents; see idf
	lengths  [fields]uint64  // of all documents together, in terms
	averages [fields]float64 // see average
	worth    []uint32        // by signature, at averages
}

// Inside an index, each document has a slot and each term a number, in the order in
// which they came. Of each term there is a list of postings, and of each
// document a list of occurrences, the same facts the other way round. How often
// a term occurs in which fields, and how long these are, is its signature
// there; as few of these are distinct, what an occurrence is worth at the
// average lengths is computed once per signature. Of the documents {server
// "git", name "create_issue"} and {server "git", name "list_issues"} there are
//
//	terms        0 git, 1 creat, 2 issu, 3 list
//	signatures   0 once of 1 in server, 1 once of 2 in name
//	postings     git {slot 0, signature 0} {1, 0}; creat {0, 1}; issu {0, 1} {1, 1}; …
//	occurrences  slot 0: {git, 0} {creat, 1} {issu, 1}; slot 1: …
//
// Indexes that come from each other by [Index.With] share all of this: what is
// new is appended behind what the older ones see, and a document that is
// removed only loses its position. No answer depends on slots and numbers, so
// that after any history it is that of a new index, to the bit.

// The fields of a document.
const (
	inServer = iota
	inName
	inTitle
	inDescription
	inParameters // their names
	inTexts      // the descriptions of parameters, and the strings they may be
	inHints
	fields
)

// A posting is one document in which a term occurs.
type posting struct {
	slot      uint32
	signature uint32
}

// An occurrence is one term of a document.
type occurrence struct {
	term      uint32
	signature uint32 // and nameBit, if the term is in the name
}

const nameBit = 1 << 31

func (o occurrence) sig() uint32 { return o.signature &^ nameBit }

// A signature says, by field, how often a term occurs there and how many terms
// the field has. Where tf is 0, length is too.
type signature [fields]struct{ tf, length uint16 }

// A head is what is known of one term.
type head struct {
	postings []posting // ascending slot; removed documents are still there
	df       int32     // documents with it; if 0, it is as good as unknown
}

func (x *Index) occurrencesOf(slot uint32) []occurrence {
	return x.occurrences[x.first[slot]:x.first[slot+1]]
}

// Document returns the document of a number, from 0 to [Index.Len] - 1.
func (x *Index) Document(i int) *Document { return x.docs[i] }

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.docs) }

// NewIndex returns an index of docs.
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
		panic(fmt.Sprintf("search: Options.Threshold is %v", o.Threshold))
	}
	threshold := max(cmp.Or(o.Threshold, DefaultThreshold), 0)
	return newGrowth(o.Ranker, l, threshold).index(docs)
}

// New returns an index of docs with the options of x. It shares the compiled
// lexicon with x and nothing else.
func (x *Index) New(docs []*Document) *Index {
	g := x.growth
	return newGrowth(g.ranker, g.lexicon, g.threshold).index(docs)
}

// With returns an index of docs that equals a new one. Documents that x has
// too, by their pointers, are not read again: what is changed between their
// common beginning and their common end decides the cost, besides a small part
// per document. x stays as it is. If With was called on x before, it is as
// slow as [NewIndex].
func (x *Index) With(docs []*Document) *Index {
	g := x.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.newest != x {
		return x.New(docs)
	}
	return g.next(docs)
}

// saturation is BM25's k1, of Lucene and of the published reference.
const saturation = 1.2

// The weights of the fields. A long field counts less, to the degree b; of
// those that are prose, by the logarithm of its length, as otherwise the few
// long-winded tools of a large catalogue decide what average means.
var fieldWeights = [fields]struct {
	weight, b float64
	prose     bool
}{
	inServer:      {1, 0.75, false},
	inName:        {3, 0.75, false},
	inTitle:       {1, 0.75, false},
	inDescription: {1, 0.75, true},
	inParameters:  {0.6, 0.75, true},
	inTexts:       {0.5, 0.75, true},
	inHints:       {1, 0.75, true},
}

// unit is 1 as a fixed-point number. Scores are integers, as a sum of
// those is the same in any order.
const unit = 1 << 16

// worthAt returns what an occurrence adds to a score, before the weight of its
// term: BM25's saturated term frequency, of all fields together, as in BM25F
// (Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted
// fields", 2004). It is below (k1 + 1) * unit.
func (s *signature) worthAt(averages *[fields]float64) uint32 {
	tf := s.frequency(averages)
	return uint32(math.Round(unit * tf * (saturation + 1) / (tf + saturation)))
}

// frequency returns the term frequency of all fields together.
func (s *signature) frequency(averages *[fields]float64) float64 {
	tf := 0.0
	for f := range s {
		if s[f].tf > 0 {
			w := &fieldWeights[f]
			tf += w.weight * float64(s[f].tf) / (1 - w.b + w.b*scale(w.prose, float64(s[f].length))/averages[f])
		}
	}
	return tf
}

func scale(prose bool, length float64) float64 {
	if prose {
		return math.Log1p(length)
	}
	return length
}

// average returns the average length of a field on its scale. It is rounded to
// 6 bits, less than 1 %, so that it changes with one document in some
// hundreds and not with each.
func average(field int, total uint64, docs int) float64 {
	if total == 0 {
		return 1 // no document has it, so none is measured by it
	}
	mantissa, exponent := math.Frexp(scale(fieldWeights[field].prose, float64(total)/float64(docs)))
	return math.Ldexp(math.Round(mantissa*64)/64, exponent)
}

// idf returns the inverse document frequency of a term, 0 if no document has
// it.
func (x *Index) idf(term uint32) float64 { return x.idfOf(x.heads.at(term).df) }

// idfOf returns that of a term that df documents have:
// ln(1 + (N-df+1/2)/(df+1/2)) = ln(N+1) - ln(df+1/2).
func (x *Index) idfOf(df int32) float64 {
	switch {
	case df == 0:
		return 0
	case int(df) < len(logs):
		return x.logDocs - logs[df]
	}
	return x.logDocs - math.Log(float64(df)+0.5)
}

// logs are ln(df+1/2), for nearly all terms there are.
var logs = func() (logs [1024]float64) {
	for df := range logs {
		logs[df] = math.Log(float64(df) + 0.5)
	}
	return logs
}()

// A Match is one document found by [BM25Index.Search].
type Match struct {
	Doc   int     // the document's number, from 0
	Score float64 // above 0, without an upper bound, comparable within one Search
}
