package mcphybrid

// BM25 as it is published: the plain formula, over plain texts that tokenize.go splits. A session does not rank
// by it unless the host chooses RankerClassic: the default is the index of package search (search/bm25f.go,
// search/score.go), the same formula over the fields of a tool, and tests measure that one by this one.
// ranker.go chooses, and deferredindex.go makes the index of the deferred tools with what it chose.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mcphybrid/mcphybrid/search"
)

// The default parameters of BM25. They are those of the published reference and of
// Lucene, see
// https://lucene.apache.org/core/10_0_0/core/org/apache/lucene/search/similarities/BM25Similarity.html.
const (
	DefaultK1 = 1.2
	DefaultB  = 0.75
)

// BM25Options are the parameters of a [BM25Index]. Zero is a meaningful value for
// both: pass a nil *BM25Options to get the defaults.
type BM25Options struct {
	// K1 sets how soon further occurrences of a term in a document stop adding
	// to its score. With 0, only the first counts. It must be finite and not
	// negative.
	K1 float64

	// B sets how strongly long documents are penalized: from 0, not at all, to
	// 1, in full proportion to their length.
	B float64
}

// A BM25Index ranks a fixed list of documents against queries by BM25. It
// identifies documents by their number in that list, from 0. It is immutable and
// may be used concurrently.
//
// For the documents {create issue} {list issue issue} it holds
//
//	postings["create"] = {doc 0, tf 1}
//	postings["issue"]  = {doc 0, tf 1} {doc 1, tf 2}
type BM25Index struct {
	k1       float64
	norm     []float64                // by document; k1*(1 - b + b*length/average length)
	postings map[string][]bm25Posting // by term; ascending doc, never empty
}

type bm25Posting struct {
	doc int32 // 0 <= doc < len(norm)
	tf  int32 // occurrences of the term in doc, >= 1
}

// NewBM25Index returns an index of docs. If opts is nil, it uses [DefaultK1] and
// [DefaultB]. It panics if a parameter is out of range.
func NewBM25Index(docs []string, opts *BM25Options) *BM25Index {
	p := BM25Options{K1: DefaultK1, B: DefaultB}
	if opts != nil {
		p = *opts
	}
	p.validate()
	x := &BM25Index{
		k1:       p.K1,
		norm:     make([]float64, len(docs)),
		postings: make(map[string][]bm25Posting),
	}
	total := 0
	for i, text := range docs {
		terms := Tokenize(text)
		total += len(terms)
		x.norm[i] = float64(len(terms))
		for _, term := range terms {
			ps := x.postings[term]
			if n := len(ps); n > 0 && ps[n-1].doc == int32(i) {
				ps[n-1].tf++
				continue
			}
			x.postings[term] = append(ps, bm25Posting{doc: int32(i), tf: 1})
		}
	}
	// Without a single term the average is 0, but then no document matches
	// either and no norm is read.
	average := float64(total) / float64(max(len(docs), 1))
	for i, length := range x.norm {
		x.norm[i] = p.K1 * (1 - p.B + p.B*length/average)
	}
	return x
}

// validate panics if a parameter is out of range.
func (p BM25Options) validate() {
	if !(p.K1 >= 0) || math.IsInf(p.K1, 0) {
		panic(fmt.Sprintf("mcphybrid: BM25Options.K1 is %v, must be 0 or more", p.K1))
	}
	if !(p.B >= 0 && p.B <= 1) {
		panic(fmt.Sprintf("mcphybrid: BM25Options.B is %v, must be within [0, 1]", p.B))
	}
}

// score returns how much the posting p adds to a score, if df documents have the
// term.
func (x *BM25Index) score(p bm25Posting, df int) float64 {
	idf := math.Log((float64(len(x.norm)-df)+0.5)/(float64(df)+0.5) + 1)
	tf := float64(p.tf)
	return idf * tf * (x.k1 + 1) / (tf + x.norm[p.doc])
}

// Explain returns the parts of a document's score for query, term by term in the
// order of the query. Their Field is always "text".
func (x *BM25Index) Explain(query string, doc int) search.Explanation {
	var e search.Explanation
	for _, term := range Tokenize(query) {
		ps := x.postings[term]
		for _, p := range ps {
			if int(p.doc) == doc {
				score := x.score(p, len(ps))
				e.Parts = append(e.Parts, search.ScorePart{Field: "text", Word: term, Query: term, Term: term, Score: score})
				e.Score += score
			}
		}
	}
	return e
}

// HasTerms reports whether query has any term to search for.
func (x *BM25Index) HasTerms(query string) bool { return len(Tokenize(query)) > 0 }

// Len returns the number of documents.
func (x *BM25Index) Len() int { return len(x.norm) }

// Search returns the documents that share a term with query, best first. Documents
// of equal score are in the order of their numbers. If keep is not nil, Search
// skips the documents for which it returns false. It returns at most n matches,
// and nil if none matches or n <= 0.
//
// The score of a document is the sum, over all terms of query including
// repetitions, of
//
//	idf * tf*(k1+1) / (tf + k1*(1 - b + b*dl/avgdl))
//	idf = ln((N - df + 0.5)/(df + 0.5) + 1)
//
// Search takes time in proportion to the number of documents and to the postings
// of the query's terms.
func (x *BM25Index) Search(query string, n int, keep func(doc int) bool) []search.Match {
	if n <= 0 {
		return nil
	}
	scores := make([]float64, len(x.norm))
	for _, term := range Tokenize(query) {
		ps := x.postings[term]
		for _, p := range ps {
			scores[p.doc] += x.score(p, len(ps))
		}
	}
	var matches []search.Match
	for doc, score := range scores {
		if score > 0 && (keep == nil || keep(doc)) {
			matches = append(matches, search.Match{Doc: doc, Score: score})
		}
	}
	slices.SortFunc(matches, func(a, b search.Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc)) })
	return matches[:min(n, len(matches))]
}
