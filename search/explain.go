package search

import "slices"

// An Explanation tells how a document came by its score.
type Explanation struct {
	Score float64 // the sum of the parts
	Parts []ScorePart
}

// A ScorePart is what one thing gave to a score.
type ScorePart struct {
	// Field is where Term was found: "server", "name", "title", "description",
	// "parameters", "parameter texts" or "hints"; "text" in a [BM25Index]. Or
	// it is "feedback", for terms that the best documents have in common, or
	// "whole name", for a name that is in the query.
	Field string

	Query string  // the term of the query, after stemming; "" if Field is not a field
	Term  string  // the term of the document: Query, or what stands for it
	Score float64 // comparable with others of the same search
}

var fieldNames = [fields]string{"server", "name", "title", "description", "parameters", "parameter texts", "hints"}

// Explain tells what the score of a document for query consists of: the terms
// in the order of the query, the fields of each in the order above. A document
// that is not found has what it has of them all the same; that of a document
// number that does not exist is empty.
//
// Filters are not known here: the best documents are those of the whole index.
func (x *Index) Explain(query string, doc int) Explanation {
	var e Explanation
	if doc < 0 || doc >= len(x.docs) {
		return e
	}
	r := &retrieval{x: x}
	r.parse(query)
	r.score()
	occurrences := x.occurrencesOf(x.slots[doc])
	for _, t := range r.terms {
		var best *way
		var score uint32
		var sig *signature
		for i := range r.ways[t.begin:t.end] {
			w := &r.ways[t.begin+i]
			for _, o := range occurrences {
				if o.term != w.term {
					continue
				}
				if s := uint32(uint64(w.weight) * uint64(x.worth[o.sig()]) / unit); s > score {
					best, score, sig = w, s, &x.signatures[o.sig()]
				}
			}
		}
		if best == nil {
			continue
		}
		// The terms of a field are saturated together: each field has its share.
		total := sig.frequency(&x.averages)
		for f := range sig {
			if sig[f].tf > 0 {
				var only signature
				only[f] = sig[f]
				e.add(ScorePart{
					Field: fieldNames[f],
					Query: string(r.analyzer.bytes[t.span.start:t.span.end]),
					Term:  x.vocabulary.text(best.term),
					Score: float64(score) / unit * only.frequency(&x.averages) / total,
				})
			}
		}
	}
	if x.growth.ranker != RankerDefault {
		return e
	}
	best := r.top(nil, closerDocs, nil)
	i := slices.IndexFunc(best, func(m Match) bool { return m.Doc == doc })
	if i < 0 {
		return e
	}
	r.mark(best)
	e.add(ScorePart{Field: "feedback", Score: r.feedback(doc)})
	r.raise(best)
	e.add(ScorePart{Field: "whole name", Score: best[i].Score - e.Score})
	return e
}

func (e *Explanation) add(p ScorePart) {
	if p.Score != 0 {
		e.Parts = append(e.Parts, p)
		e.Score += p.Score
	}
}
