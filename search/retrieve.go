package search

import (
	"math"
	"sync"
)

// Limits of a query. Search ignores the rest: see read.
const (
	maxQueryTerms = 255      // distinct terms; fits 8 bits, see score
	maxQueryText  = 16 << 10 // bytes
)

// A retrieval is one search of an index and its scratch space.
type retrieval struct {
	x *Index

	analyzer analyzer
	text     []byte
	looked   []uint32 // by term of the analyzer: its number, or strange; see lookUp
	terms    []queryTerm
	numbers  []uint32 // queryTerm.term of each, close together
	ways     []way    // of all terms
	telling  float64  // greatest weight × idf of a query term
	over     bool     // there was no room for a term
	spelled  []byte   // see Index.undo

	parts []foreignPart // of a word

	clauses []clause
	members []uint8  // of clauses: numbers of terms
	named   []uint32 // see dropNamed

	scores []uint32 // by slot; 0 between searches
	best   []uint32 // by slot, see scoreTerm; 0 between searches
	found  []Match  // of a clause
	ranks  []rank   // see top

	favoured []uint32 // slots that clauses favour
	favour   []uint32 // by slot: how much, in units; 0 between searches

	closer closerLook
}

// A queryTerm is one distinct term of a query.
type queryTerm struct {
	span       span    // in the analyzer
	typed      span    // the word of the query: span, or an abbreviation that stands for it
	term       uint32  // its number, or strange
	weight     float64 // relative to an ordinary term
	telling    float64 // weight × idf
	begin, end int     // its ways are retrieval.ways[begin:end]
	central    bool    // it is in a request or in the last clause
}

// strange stands for a term without a number; see Index.number.
const strange = math.MaxUint32

// meant stands for what a foreign word means, if that has no number. Unlike
// strange, it is never the number of the query's own words.
const meant = strange - 1

// A way is a term of the index that finds a term of the query: the same term or
// a related one.
type way struct {
	term   uint32
	factor float64 // 1 for the same term, less for a related one
	weight uint32  // query term's weight × factor × idf, in units
	exact  bool    // it is the query's term, corrected if need be
	lead   bool    // the query's term begins a clause
}

var retrievals = sync.Pool{New: func() any { return new(retrieval) }}

// Search returns at most n documents that match query, best first. Documents of
// equal score stand in the order of the list. The result is nil if nothing
// matches or n <= 0. If keep is not nil, Search skips documents for which it
// returns false; they don't count toward n.
//
// A document below [Options.Threshold] does not match. Search uses 255 distinct
// terms in 16 KiB of query. Of a longer query, [RankerDefault] leaves out the middle,
// since a message asks at its end or at its beginning. The others leave out the end.
func (x *Index) Search(query string, n int, keep func(doc int) bool) []Match {
	return x.AppendSearch(nil, query, n, keep)
}

// AppendSearch is like [Index.Search] but appends the matches to dst.
func (x *Index) AppendSearch(dst []Match, query string, n int, keep func(doc int) bool) []Match {
	if n <= 0 || len(x.docs) == 0 {
		return dst
	}
	r := retrievals.Get().(*retrieval)
	r.x = x
	r.parse(query)
	r.score(keep)
	if x.growth.ranker == RankerDefault {
		dst = r.lookCloser(dst, n, keep)
	} else {
		dst = r.top(dst, n, keep)
	}
	clear(r.scores)
	r.forgetFavoured()
	r.x = nil
	retrievals.Put(r)
	return dst
}

// HasTerms reports whether query has a term to search for, that is, more than
// stop words and punctuation.
func (x *Index) HasTerms(query string) bool {
	r := retrieval{x: x}
	r.parse(query)
	return len(r.terms) > 0
}

// addClause adds a clause with its terms, unless it has none.
func (r *retrieval) addClause(text []byte) {
	c := clause{begin: len(r.members)}
	first := len(r.looked)
	r.analyzer.add(text)
	r.lookUp()
	end := len(r.looked)
	if r.foreign(first) {
		r.addForeign(c, first)
	} else {
		for i := first; i < end; i++ {
			r.addMember(c, i, 1)
		}
		if r.x.growth.ranker == RankerDefault {
			r.addJoined(c, first, end)
		}
	}
	if c.end = len(r.members); c.end > c.begin {
		c.hollow = r.hollow(c)
		c.asks = !c.hollow && r.x.growth.lexicon.asks(text)
		c.wantsToKnow = wantsToKnow(text)
		r.dropNamed(c)
		r.clauses = append(r.clauses, c)
	}
}

// lookUp sets r.looked for the terms that the analyzer has added.
func (r *retrieval) lookUp() {
	for i := len(r.looked); i < len(r.analyzer.terms); i++ {
		r.looked = append(r.looked, r.x.number(r.analyzer.term(i)))
	}
}

// number returns the number of a term that a document or the lexicon has, or
// strange. The vocabulary may hold more terms, those of removed documents. A new
// index would not know them.
func (x *Index) number(term []byte) uint32 {
	n, ok := x.vocabulary.terms.lookup(term)
	if !ok || !x.growth.lexicon.has(n) && !x.inCatalog(n) {
		return strange
	}
	return n
}

// inCatalog reports whether a document has the term with this number.
func (x *Index) inCatalog(number uint32) bool {
	return number != strange && x.heads.at(number).df() > 0
}

// addMember adds term i of the text to the last clause, which is c so far, or what it
// stands for.
func (r *retrieval) addMember(c clause, i int, weight float64) {
	typed, to := r.analyzer.terms[i], r.x.growth.lexicon.standsFor(r.looked[i])
	for n := range max(len(to), 1) {
		if to != nil {
			i = r.write(to[n])
		}
		if number, ok := r.addTerm(i, typed, weight); ok {
			r.addNumber(c, number)
		}
	}
}

// write adds a term to those of the text and returns its place.
func (r *retrieval) write(term uint32) (i int) {
	a := &r.analyzer
	start := int32(len(a.bytes))
	a.bytes = append(a.bytes, r.x.vocabulary.text(term)...)
	end := int32(len(a.bytes))
	a.terms, r.looked = append(a.terms, span{start: start, end: end, full: end, form: word}), append(r.looked, term)
	return len(r.looked) - 1
}

// addNumber adds a query term to the last clause, which is c so far. Numbers ascend,
// as scoreTerm wants it.
func (r *retrieval) addNumber(c clause, number uint8) {
	i := len(r.members)
	for i > c.begin && r.members[i-1] > number {
		i--
	}
	if i > c.begin && r.members[i-1] == number {
		return
	}
	r.members = append(r.members, number)
	copy(r.members[i+1:], r.members[i:])
	r.members[i] = number
}

// addJoined adds what neighbouring words among the terms from first to end are when
// they are written as one, as in "log out", if a document has that.
func (r *retrieval) addJoined(c clause, first, end int) {
	a := &r.analyzer
	for i := first; i < end-1; i++ {
		one, two := a.terms[i], a.terms[i+1]
		if one.form != word || two.form != word {
			continue
		}
		start := len(a.bytes)
		a.bytes = a.appendWritten(a.appendWritten(a.bytes, one), two)
		to := start + stem(a.bytes[start:])
		if n := r.x.number(a.bytes[start:to]); r.x.inCatalog(n) {
			a.terms = append(a.terms, span{start: int32(start), end: int32(to), full: int32(to), form: whole})
			r.looked = append(r.looked, n)
			r.addMember(c, len(r.looked)-1, joinedWeight)
		}
	}
}

// addTerm adds term i of the text, which stands for what was typed, unless it was added
// before, and returns its number. ok is false if it is a stop word, one too
// many, or two words joined that no document has.
func (r *retrieval) addTerm(i int, typed span, weight float64) (number uint8, ok bool) {
	x := r.x
	lexicon := x.growth.lexicon
	n := r.looked[i]
	class := lexicon.classOf(n)
	if class == stop {
		return 0, false
	}
	indexed := n != strange
	text := r.analyzer.term(i)
	for j := len(r.numbers) - 1; j >= 0; j-- {
		if r.numbers[j] == n && (indexed || string(r.analyzer.bytes[r.terms[j].span.start:r.terms[j].span.end]) == string(text)) {
			return uint8(j), true
		}
	}
	t := queryTerm{span: r.analyzer.terms[i], typed: typed, term: n, begin: len(r.ways)}
	limit := math.Inf(1) // a related term must not weigh more than the term itself
	known := x.inCatalog(n)
	if known {
		limit = x.idf(n)
	}
	if t.span.form == whole && !known {
		return 0, false // the parts of a whole are terms already
	}
	if len(r.terms) == maxQueryTerms {
		r.over = true
		return 0, false
	}
	t.weight = weight * class.weight()
	if t.span.form == character {
		t.weight *= characterWeight
	}
	if indexed {
		r.addWays(n, t.weight, 1, limit)
	}
	if t.span.form == word && x.growth.ranker == RankerDefault {
		fix, ok := uint32(0), false
		if !indexed {
			fix, ok = r.undo(t)
		}
		if !ok {
			r.addRelatives(n, indexed, text, t.weight, limit, t.begin)
			if len(r.ways) == t.begin {
				fix, ok = r.correct(t, text, indexed)
			}
		}
		if ok { // from here on, use the corrected word
			if to := lexicon.standsFor(fix); to != nil {
				fix = to[0]
			}
			if class = lexicon.classOf(fix); class == stop {
				return 0, false
			}
			t.weight = weight * class.weight()
			if idf := x.idf(fix); idf > 0 {
				limit = idf
			}
			r.addWays(fix, t.weight, slipWeight, limit)
			r.addRelatives(n, indexed, text, t.weight, limit, t.begin)
		}
	}
	// A word in no document weighs as much as a word in one document.
	t.telling = t.weight * min(limit, x.idfOf(1))
	return r.addQueryTerm(t), true
}

// addQueryTerm adds t, whose ways are the last ones. There must be room for it.
func (r *retrieval) addQueryTerm(t queryTerm) (number uint8) {
	t.end = len(r.ways)
	r.telling = max(r.telling, t.telling)
	r.terms, r.numbers = append(r.terms, t), append(r.numbers, t.term)
	return uint8(len(r.terms) - 1)
}

// undo returns the term that the word of t most likely is a slip of, if that is
// sure enough even for a word with relatives.
func (r *retrieval) undo(t queryTerm) (term uint32, ok bool) {
	word := r.analyzer.bytes[t.span.start:t.span.full]
	r.spelled = append(r.spelled[:0], word...)
	return r.x.undo(word, r.spelled)
}

// correct returns the term that the word of t most likely misspells. For a word
// that is not indexed, undo has found nothing.
func (r *retrieval) correct(t queryTerm, stemmed []byte, indexed bool) (term uint32, ok bool) {
	if indexed {
		term, ok = r.undo(t)
	}
	if !ok {
		term, ok = r.x.correct(r.analyzer.bytes[t.span.start:t.span.full], stemmed)
	}
	return term, ok
}

// addWays adds term and the terms that the lexicon relates to it as ways.
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

// addRelatives adds the relatives of text as ways. If known is set, text is
// term. It adds none if there are more than maxRelatives.
func (r *retrieval) addRelatives(term uint32, known bool, text []byte, weight, limit float64, begin int) {
	parts := r.x.vocabulary.members(family(text))
	relative := func(m similar) bool {
		if int(m.term) >= r.x.vocabulary.len() || known && m.term == term || r.x.heads.at(m.term).df() == 0 {
			return false
		}
		d := len(r.x.vocabulary.text(m.term)) - len(text)
		return d <= familySpread && d >= -familySpread
	}
	n := 0
	for _, part := range parts {
		for _, m := range part {
			if relative(m) {
				if n++; n > maxRelatives {
					return
				}
			}
		}
	}
	for _, part := range parts {
		for _, m := range part {
			if relative(m) {
				r.addWay(m.term, weight, relativeWeight, limit, begin)
			}
		}
	}
}

// addWay adds a way, unless the ways from begin on have a better one with the
// same term. Its idf counts at most limit.
func (r *retrieval) addWay(term uint32, weight, factor, limit float64, begin int) {
	idf := r.x.idf(term)
	if idf == 0 {
		return
	}
	if factor < 1 { // a related generic word is generic, too
		weight = min(weight, r.x.growth.lexicon.classOf(term).weight())
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
