package mcphybrid

import (
	"math"
	"sync"
)

// What counts of a query. With more words it is no query.
const (
	maxQueryTerms = 256
	maxQueryText  = 16 << 10 // bytes
)

// A retrieval is one search of an index, with its scratch space.
type retrieval struct {
	x *Index

	analyzer analyzer
	text     []byte
	terms    []queryTerm
	ways     []way // of all terms

	scores []uint32 // by slot; 0 between retrievals
	best   []uint32 // by slot, for the term at hand; 0 between terms

	closer closerLook
}

// A queryTerm is one distinct term of a query.
type queryTerm struct {
	span       span // in the analyzer
	term       uint32
	known      bool    // term is set, and some document has it
	weight     float64 // compared with other terms
	begin, end int     // its ways
}

// A way is a term of the index by which a term of the query is found: itself,
// or another that may stand for it.
type way struct {
	term   uint32
	factor float64 // of this way to find the query's term
	weight uint32  // of the query's term, of the way and of its idf together, in units
	exact  bool
}

var retrievals = sync.Pool{New: func() any { return new(retrieval) }}

// Search returns the documents that match query, best first; documents of
// equal score are in the order of the list. It returns at most n of them, and
// nil if none matches or n <= 0. If keep is not nil, documents for which it
// returns false are passed over before n is applied.
//
// Of a long query the first 256 distinct terms within 16 KiB count.
func (x *Index) Search(query string, n int, keep func(doc int) bool) []Match {
	return x.AppendSearch(nil, query, n, keep)
}

// AppendSearch is like Search, and appends the documents to dst.
func (x *Index) AppendSearch(dst []Match, query string, n int, keep func(doc int) bool) []Match {
	if n <= 0 || len(x.docs) == 0 {
		return dst
	}
	r := retrievals.Get().(*retrieval)
	r.x = x
	r.parse(query)
	r.score()
	if x.growth.ranker == RankerDefault {
		dst = r.lookCloser(dst, n, keep)
	} else {
		dst = r.top(dst, n, keep)
	}
	clear(r.scores)
	r.x = nil
	retrievals.Put(r)
	return dst
}

// parse divides query into its distinct terms and finds the ways to each.
func (r *retrieval) parse(query string) {
	r.text = append(r.text[:0], query[:min(len(query), maxQueryText)]...)
	r.analyzer.reset()
	r.analyzer.add(r.text)
	r.terms, r.ways = r.terms[:0], r.ways[:0]
	for i := range r.analyzer.terms {
		if len(r.terms) == maxQueryTerms {
			return
		}
		r.addTerm(i)
	}
}

// addTerm adds the term i of the text, unless it is there or is a stop word.
func (r *retrieval) addTerm(i int) {
	x := r.x
	lexicon := x.growth.lexicon
	t := queryTerm{span: r.analyzer.terms[i], weight: 1, begin: len(r.ways)}
	text := r.analyzer.term(i)
	n, ok := x.vocabulary.terms.lookup(text)
	limit := math.Inf(1)
	if ok {
		for _, other := range r.terms {
			if other.known && other.term == n {
				return
			}
		}
		t.term = n
		if lexicon.has(n) {
			switch lexicon.class[n] {
			case stop:
				return
			case generic:
				t.weight = genericWeight
			}
		}
		if idf := x.idf(n); idf > 0 {
			t.known = true
			limit = idf // what stands for a term is not more telling than the term
		}
	}
	switch t.span.form {
	case whole:
		if !t.known {
			return // its parts are there
		}
	case character:
		t.weight *= characterWeight
	}
	if ok {
		r.addWays(n, t.weight, 1, limit)
	}
	if t.span.form == word {
		for _, m := range x.vocabulary.members(family(text)) {
			if d := len(x.vocabulary.text(m.term)) - len(text); d <= familySpread && d >= -familySpread && !(ok && m.term == n) {
				r.addWay(m.term, t.weight, relativeWeight, limit, t.begin)
			}
		}
		if len(r.ways) == t.begin {
			if fix, ok := x.correct(r.analyzer.bytes[t.span.start:t.span.full], text); ok {
				if lexicon.stops(fix) {
					return
				}
				r.addWays(fix, t.weight, slipWeight, limit)
			}
		}
	}
	t.end = len(r.ways)
	r.terms = append(r.terms, t)
}

// addWays adds term as a way to find the term at hand, and what the lexicon
// has for it.
func (r *retrieval) addWays(term uint32, weight, factor, limit float64) {
	begin := len(r.ways)
	r.addWay(term, weight, factor, limit, begin)
	if begin < len(r.ways) {
		r.ways[begin].exact = true
	}
	if l := r.x.growth.lexicon; l.has(term) {
		for _, e := range l.others[term] {
			r.addWay(e.term, weight, factor*e.weight, limit, begin)
		}
	}
}

// addWay adds a way, unless a better one by the same term is among those from
// begin on. Its idf counts up to limit.
func (r *retrieval) addWay(term uint32, weight, factor, limit float64, begin int) {
	idf := r.x.idf(term)
	if idf == 0 {
		return
	}
	w := way{term: term, factor: factor, weight: uint32(math.Round(unit * weight * factor * min(idf, limit)))}
	for i := begin; i < len(r.ways); i++ {
		if r.ways[i].term == term {
			if factor > r.ways[i].factor {
				r.ways[i] = w
			}
			return
		}
	}
	r.ways = append(r.ways, w)
}

// score gives each document the sum, over the terms of the query, of what the
// best way to find the term there is worth.
func (r *retrieval) score() {
	x := r.x
	r.scores = zeros(r.scores, len(x.positions))
	r.best = zeros(r.best, len(x.positions))
	for _, t := range r.terms {
		ways := r.ways[t.begin:t.end]
		if len(ways) == 1 {
			weight := uint64(ways[0].weight)
			for _, p := range x.heads.at(ways[0].term).postings {
				r.scores[p.slot] += uint32(weight * uint64(x.worth[p.signature]) / unit)
			}
			continue
		}
		for _, w := range ways {
			weight := uint64(w.weight)
			for _, p := range x.heads.at(w.term).postings {
				if s := uint32(weight * uint64(x.worth[p.signature]) / unit); s > r.best[p.slot] {
					r.scores[p.slot] += s - r.best[p.slot]
					r.best[p.slot] = s
				}
			}
		}
		for _, w := range ways {
			for _, p := range x.heads.at(w.term).postings {
				r.best[p.slot] = 0
			}
		}
	}
}

// zeros returns n zeros, in s if it is large enough. All of s is 0.
func zeros(s []uint32, n int) []uint32 {
	if n > cap(s) {
		s = make([]uint32, n+n/4)
	}
	return s[:n]
}

// top appends the n best documents.
func (r *retrieval) top(dst []Match, n int, keep func(doc int) bool) []Match {
	begin := len(dst)
	least := uint32(1) // what a document must have to be among the best
	for slot, score := range r.scores {
		if score < least {
			continue
		}
		doc := int(r.x.positions[slot])
		if doc < 0 || keep != nil && !keep(doc) {
			continue
		}
		m := Match{doc, float64(score) / unit}
		i := len(dst) - begin
		if i == n {
			if !before(m, dst[len(dst)-1]) {
				continue
			}
			i--
		} else {
			dst = append(dst, m)
		}
		found := dst[begin:]
		for ; i > 0 && before(m, found[i-1]); i-- {
			found[i] = found[i-1]
		}
		found[i] = m
		if len(found) == n {
			least = uint32(found[n-1].Score * unit)
		}
	}
	return dst
}

// before reports whether a comes before b in an answer.
func before(a, b Match) bool {
	return a.Score > b.Score || a.Score == b.Score && a.Doc < b.Doc
}
