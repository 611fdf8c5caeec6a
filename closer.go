package mcphybrid

import (
	"cmp"
	"math"
	"slices"
)

// The default ranker looks closer at the best documents of the first pass.
// What each part earns is in ARCHITECTURE.md.
const (
	closerDocs = 20

	// Pseudo-relevance feedback, as in RM3 (Abdul-Jaleel et al., "UMass at
	// TREC 2004"): what the best documents have in common is likely what the
	// query means.
	feedbackDocs   = 3
	feedbackTerms  = 10
	feedbackWeight = 0.1

	// A tool whose whole name is in the query.
	nameWeight = 0.2

	// A document that answers only what others before it answer already makes
	// room, as in maximal marginal relevance (Carbonell and Goldstein, 1998):
	// a task often needs different tools.
	coverWeight = 0.2
)

// A closerLook is the scratch space of it.
type closerLook struct {
	found  []Match
	docs   []closerDoc
	shares []uint32 // by closerDoc, then by term of the query: its part in the score

	marks   []uint16 // by term: its first in reasons + 1, or 0; all 0 between looks
	reasons []reason
	common  []commonTerm
}

// A closerDoc is one of the best documents.
type closerDoc struct {
	doc     int
	score   float64 // of the first pass, with feedback, in units
	value   float64 // the score and what else is for it
	total   uint32  // of its shares
	covered uint32  // of these, what documents before it have too
	taken   bool
}

// A reason is why a term counts: it is a way to find a term of the query, or
// feedback.
type reason struct {
	way
	query int // term of the query, or -1 for feedback
	next  int // in reasons, for the same term; or -1
}

// A commonTerm is one that the best documents have in common.
type commonTerm struct {
	term  uint32
	value float64
}

// lookCloser appends the n best documents.
func (r *retrieval) lookCloser(dst []Match, n int, keep func(doc int) bool) []Match {
	c := &r.closer
	c.found = r.top(c.found[:0], max(n, closerDocs), keep)
	if len(c.found) == 0 {
		return dst
	}
	best := c.found[:min(closerDocs, len(c.found))]
	r.mark(best)
	r.weighCloser(best)
	for _, w := range r.ways {
		c.marks[w.term] = 0
	}
	for _, t := range c.common {
		c.marks[t.term] = 0
	}

	last := math.Inf(1)
	for i := 0; i < n && i < len(c.found); i++ {
		m := c.found[i]
		if i < len(best) {
			m = r.take()
		}
		m.Score = min(m.Score, last)
		last = m.Score
		dst = append(dst, m)
	}
	return dst
}

// mark finds the terms that count in the best documents: those of the query and
// those of the feedback.
func (r *retrieval) mark(best []Match) {
	c, x := &r.closer, r.x
	if n := x.vocabulary.len(); n > len(c.marks) {
		c.marks = make([]uint16, n+n/4)
	}
	c.reasons = c.reasons[:0]
	for q, t := range r.terms {
		for _, w := range r.ways[t.begin:t.end] {
			c.addReason(w.term, reason{query: q, way: w})
		}
	}
	r.findCommon(best)
	for _, t := range c.common {
		weight := feedbackWeight * t.value / c.common[0].value * x.idf(t.term)
		c.addReason(t.term, reason{query: -1, way: way{weight: uint32(math.Round(unit * weight))}})
	}
}

// findCommon sets c.common to the terms that most speak for the first of the
// best documents, of those that at least two of them have and the query has
// not.
func (r *retrieval) findCommon(best []Match) {
	c, x := &r.closer, r.x
	c.common = c.common[:0]
	var lists [feedbackDocs][]occurrence
	for i := range min(feedbackDocs, len(best)) {
		lists[i] = x.occurrencesOf(x.slots[best[i].Doc])
	}
	for {
		term := uint32(math.MaxUint32)
		for _, list := range lists {
			if len(list) > 0 {
				term = min(term, list[0].term)
			}
		}
		if term == math.MaxUint32 {
			break
		}
		docs, value := 0, 0.0
		for i, list := range lists {
			if len(list) > 0 && list[0].term == term {
				docs++
				value += best[i].Score * float64(x.worth[list[0].sig()])
				lists[i] = list[1:]
			}
		}
		if docs > 1 && !r.asks(term) {
			c.common = append(c.common, commonTerm{term, value * x.idf(term)})
		}
	}
	slices.SortFunc(c.common, func(a, b commonTerm) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(x.vocabulary.text(a.term), x.vocabulary.text(b.term)))
	})
	c.common = c.common[:min(feedbackTerms, len(c.common))]
}

// asks reports whether term is one of the query's.
func (r *retrieval) asks(term uint32) bool {
	for at := int(r.closer.marks[term]) - 1; at >= 0; at = r.closer.reasons[at].next {
		if r.closer.reasons[at].exact {
			return true
		}
	}
	return false
}

func (c *closerLook) addReason(term uint32, why reason) {
	why.next = int(c.marks[term]) - 1
	c.reasons = append(c.reasons, why)
	c.marks[term] = uint16(len(c.reasons))
}

// weighCloser fills in c.docs.
func (r *retrieval) weighCloser(best []Match) {
	c, x := &r.closer, r.x
	c.docs = c.docs[:0]
	c.shares = slices.Grow(c.shares[:0], len(best)*len(r.terms))[:len(best)*len(r.terms)]
	clear(c.shares)
	top := 0.0
	for i, m := range best {
		shares := c.shares[i*len(r.terms) : (i+1)*len(r.terms)]
		var feedback, name, matched uint64
		for _, o := range x.occurrencesOf(x.slots[m.Doc]) {
			at := int(c.marks[o.term]) - 1
			inName := o.signature&nameBit != 0
			if at < 0 && !inName {
				continue
			}
			worth := uint64(x.worth[o.sig()])
			factor := 0.0
			for ; at >= 0; at = c.reasons[at].next {
				why := &c.reasons[at]
				s := uint32(uint64(why.weight) * worth / unit)
				if why.query < 0 {
					feedback += uint64(s)
					continue
				}
				shares[why.query] = max(shares[why.query], s)
				factor = max(factor, why.factor)
			}
			if inName {
				idf := x.idf(o.term)
				name += uint64(math.Round(unit * idf))
				matched += uint64(math.Round(unit * idf * factor))
			}
		}
		d := closerDoc{doc: m.Doc}
		for _, s := range shares {
			d.total += s
		}
		d.score = float64(d.total) + float64(feedback)
		if name > 0 {
			d.value = nameWeight * float64(matched) / float64(name)
		}
		top = max(top, d.score)
		c.docs = append(c.docs, d)
	}
	for i := range c.docs {
		c.docs[i].value = c.docs[i].value*top + c.docs[i].score
	}
}

// take returns the best of the documents that are left.
func (r *retrieval) take() Match {
	c := &r.closer
	best, value := -1, 0.0
	for i := range c.docs {
		d := &c.docs[i]
		if d.taken {
			continue
		}
		v := d.value * (1 - coverWeight*float64(d.covered)/float64(d.total))
		if best < 0 || v > value || v == value && d.doc < c.docs[best].doc {
			best, value = i, v
		}
	}
	c.docs[best].taken = true
	n := len(r.terms)
	for q, s := range c.shares[best*n : (best+1)*n] {
		if s == 0 {
			continue
		}
		for i := range c.docs {
			c.docs[i].covered += c.shares[i*n+q]
			c.shares[i*n+q] = 0
		}
	}
	return Match{c.docs[best].doc, value / unit}
}
