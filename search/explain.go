package search

import (
	"bytes"
	"slices"
)

// An Explanation breaks the score of a document into its parts.
type Explanation struct {
	Score float64 // the sum of the parts
	Parts []ScorePart

	// Least is the score below which no document matches the query: see
	// [Options.Threshold].
	Least float64

	// Missing are the words of the query that find nothing in the document, in the
	// order of the query, in lower case and without accents. Stop words are not among
	// them. An abbreviation is, if the document lacks a word of what it stands for.
	Missing []string
}

// A ScorePart is the share of a score that one term in one field adds, or that
// one bonus adds.
type ScorePart struct {
	// Field is the field that has Term: "server", "name", "title",
	// "description", "parameters", "parameter texts", "nested parameters",
	// "hints" or "instructions". An index whose documents are plain texts says "text". Four values
	// name a bonus: "clause", for a document that is among the best for one
	// sentence of the query, "feedback", for terms that the best documents share,
	// "whole name", for a document whose name is in the query, and "verb", for one
	// that does what the query wants: see [Verbs].
	Field string

	Word  string  // the word of the query, written as in Explanation.Missing; "" for a bonus
	Query string  // the stemmed term of that word; "" for a bonus
	Term  string  // the term of the document: Query or a related term; "" for a bonus
	Score float64 // comparable within one search
}

var fieldNames = [fields]string{"server", "name", "title", "description", "parameters", "parameter texts", "nested parameters", "hints", "instructions"}

// Explain returns the parts of the score of document number doc for query. The
// parts stand in the order of the query's terms, then in the order of fields
// that [ScorePart] lists; bonuses come last. A document below the threshold is
// explained too. A number outside 0 to [Index.Len] - 1 gives an empty
// Explanation.
//
// Explain applies no filter, so it computes bonuses from the best documents of
// the whole index.
func (x *Index) Explain(query string, doc int) Explanation {
	var e Explanation
	if doc < 0 || doc >= len(x.docs) {
		return e
	}
	r := &retrieval{x: x}
	r.parse(query)
	r.score(nil)
	e.Least = float64(r.least()) / unit
	occurrences := x.occurrencesOf(x.slots[doc])
	for _, t := range r.terms {
		var best *way
		var score uint32
		var sig signature
		for i := range r.ways[t.begin:t.end] {
			w := &r.ways[t.begin+i]
			for _, o := range occurrences {
				if o.term != w.term {
					continue
				}
				s := uint32(uint64(w.weight) * uint64(x.worth[o.signature]) / unit)
				if s > score || s == score && s > 0 && x.goesBefore(w, best) {
					best, score, sig = w, s, signatureOf(x.signatures.text(o.signature))
				}
			}
		}
		if best == nil {
			if t.span.form != whole {
				e.lacks(string(r.analyzer.appendWritten(nil, t.typed)))
			}
			continue
		}
		// The occurrences in all fields are saturated together: each field has its share.
		for f, share := range sig.shares(&x.averages) {
			if share > 0 {
				e.add(ScorePart{
					Field: fieldNames[f],
					Word:  string(r.analyzer.appendWritten(nil, t.typed)),
					Query: string(r.analyzer.bytes[t.span.start:t.span.end]),
					Term:  string(x.vocabulary.text(best.term)),
					Score: float64(score) / unit * share,
				})
			}
		}
	}
	if x.growth.ranker != RankerDefault {
		return e
	}
	if slot := x.slots[doc]; len(r.favoured) > 0 && r.favour[slot] > 0 {
		e.add(ScorePart{Field: "clause", Score: float64(r.scores[slot])/unit - e.Score})
	}
	best := r.top(nil, closerDocs, nil)
	i := slices.IndexFunc(best, func(m Match) bool { return m.Doc == doc })
	if i < 0 {
		return e
	}
	before := best[i].Score
	gained := func(field string) {
		e.add(ScorePart{Field: field, Score: best[i].Score - before})
		before = best[i].Score
	}
	r.mark()
	r.addFeedback(best)
	gained("feedback")
	top := bestScore(best)
	r.addNames(best, top)
	gained("whole name")
	r.addVerbs(best, top)
	gained("verb")
	return e
}

// goesBefore reports whether an explanation names a rather than b, an earlier way
// of the same score. Relatives that the lexicon lacks come in an order that
// depends on what the index held before, so they go by the order of strings.
func (x *Index) goesBefore(a, b *way) bool {
	l := x.growth.lexicon
	return a.factor == b.factor && !l.has(a.term) && !l.has(b.term) && bytes.Compare(x.vocabulary.text(a.term), x.vocabulary.text(b.term)) < 0
}

func (e *Explanation) lacks(word string) {
	if n := len(e.Missing); n == 0 || e.Missing[n-1] != word { // what it stands for has several words
		e.Missing = append(e.Missing, word)
	}
}

func (e *Explanation) add(p ScorePart) {
	if p.Score != 0 {
		e.Parts = append(e.Parts, p)
		e.Score += p.Score
	}
}
