package search

import (
	"bytes"
	"math"
	"slices"
)

// [RankerDefault] scores the best documents of the first pass a second time.
// EXPERIMENTS.md lists what each part adds to recall.
const (
	closerDocs = 20

	// Pseudo-relevance feedback, as in RM3 (Abdul-Jaleel and others, "UMass at
	// TREC 2004"): terms that the best documents share likely belong to the
	// meaning of the query.
	feedbackDocs   = 3
	feedbackTerms  = 10
	feedbackWeight = 0.1

	// A document whose whole name is in the query gains this share of the best
	// score.
	nameWeight = 0.2

	// So does a document whose name begins with the word that begins a clause of
	// the query, as the verb of a request does.
	leadWeight = 0.05
)

// A closerLook is the scratch space of the second pass.
type closerLook struct {
	found   []Match
	common  []commonTerm
	ways    []uint32 // by term: 1 + the index of its best way in retrieval.ways, or 0; all 0 between searches
	places  []uint32 // by term: 1 + its index in common; all 0 between searches
	content contentReader
}

// A commonTerm is a term that several of the best documents share.
type commonTerm struct {
	term  uint32
	docs  int32   // how many have it
	value float64 // the sum of document score × worth, times idf
}

// lookCloser appends the n best documents. The second pass only raises scores,
// so the documents it looks at stay before the others.
func (r *retrieval) lookCloser(dst []Match, n int, keep func(doc int) bool) []Match {
	c := &r.closer
	c.found = r.top(c.found[:0], max(n, closerDocs), keep)
	best := c.found[:min(closerDocs, len(c.found))]
	r.mark()
	r.addFeedback(best)
	top := bestScore(best)
	r.addNames(best, top)
	r.unmark()
	r.addVerbs(best, top)
	slices.SortFunc(best, inOrder)
	return append(dst, c.found[:min(n, len(c.found))]...)
}

// mark sets c.ways.
func (r *retrieval) mark() {
	c, x := &r.closer, r.x
	if n := x.vocabulary.len(); n > len(c.ways) {
		c.ways, c.places = make([]uint32, n+n/4), make([]uint32, n+n/4)
	}
	for i, w := range r.ways {
		if at := c.ways[w.term]; at == 0 || r.ways[at-1].factor < w.factor {
			c.ways[w.term] = uint32(i + 1)
		}
	}
	for _, c := range r.clauses {
		r.markLead(c)
	}
}

// markLead marks the ways of the term that leads a clause.
func (r *retrieval) markLead(c clause) {
	if t := r.lead(c); t != nil {
		for i := t.begin; i < t.end; i++ {
			r.ways[i].lead = true
		}
	}
}

// lead returns the first term of a clause that is not faint, or nil.
func (r *retrieval) lead(c clause) *queryTerm {
	for _, m := range r.members[c.begin:c.end] {
		if t := &r.terms[m]; t.weight > faintWeight {
			return t
		}
	}
	return nil
}

func (r *retrieval) unmark() {
	for _, w := range r.ways {
		r.closer.ways[w.term] = 0
	}
}

// addFeedback adds to the scores of best what the common terms give. They are
// scored like the query's own.
func (r *retrieval) addFeedback(best []Match) {
	c, x := &r.closer, r.x
	r.findCommon(best)
	// A query of faint words gets faint feedback.
	weight := unit * feedbackWeight * r.telling / x.idfOf(1)
	for _, t := range c.common {
		gain := uint32(math.Round(weight * t.value / c.common[0].value * x.idf(t.term)))
		r.addScores(&way{term: t.term, weight: gain}, 0)
	}
	for i, m := range best {
		best[i].Score = float64(r.scores[x.slots[m.Doc]]) / unit
	}
}

// findCommon sets c.common to the feedbackTerms terms of greatest value in the
// first feedbackDocs of best. A term counts if at least two of these documents
// have it and the query doesn't. Ties end in the order of strings.
func (r *retrieval) findCommon(best []Match) {
	c, x := &r.closer, r.x
	c.common = c.common[:0]
	for _, m := range best[:min(feedbackDocs, len(best))] {
		for c.content.open(x, x.slots[m.Doc]); c.content.next(); {
			value := m.Score * float64(x.worth[c.content.signature])
			for _, term := range c.content.terms {
				at := &c.places[term]
				if *at == 0 {
					c.common = append(c.common, commonTerm{term: term})
					*at = uint32(len(c.common))
				}
				t := &c.common[*at-1]
				t.docs++
				t.value += value
			}
		}
	}
	n := 0 // so many are chosen, and at the front of c.common
	for _, t := range c.common {
		c.places[t.term] = 0
		asked := c.ways[t.term] > 0 && r.ways[c.ways[t.term]-1].exact
		if t.docs == 1 || asked {
			continue
		}
		t.value *= x.idf(t.term)
		i := n
		for i > 0 && x.moreCommon(t, c.common[i-1]) {
			i--
		}
		if i < feedbackTerms {
			n = min(n+1, feedbackTerms)
			copy(c.common[i+1:n], c.common[i:])
			c.common[i] = t
		}
	}
	c.common = c.common[:n]
}

func (x *Index) moreCommon(a, b commonTerm) bool {
	return a.value > b.value || a.value == b.value && bytes.Compare(x.vocabulary.text(a.term), x.vocabulary.text(b.term)) < 0
}

// bestScore returns the greatest score.
func bestScore(list []Match) (top float64) {
	for _, m := range list {
		top = max(top, m.Score)
	}
	return top
}

// addVerbs adds what the verbs give to the scores of best, of which top is the greatest
// before the bonus for names.
func (r *retrieval) addVerbs(best []Match, top float64) {
	wanted := r.wanted()
	if wanted == 0 {
		return
	}
	x, c := r.x, &r.closer
	for i := range best {
		c.content.open(x, x.slots[best[i].Doc])
		best[i].Score += wanted.gain(c.content.does) * top
	}
}

// addNames adds the name bonus to the scores of best, of which top is the greatest.
func (r *retrieval) addNames(best []Match, top float64) {
	for i := range best {
		share, lead := r.nameShare(best[i].Doc)
		best[i].Score += (nameWeight*share + leadWeight*lead) * top
	}
}

// nameShare returns how much of doc's name the query matches, weighted by idf,
// and how well the name's first term matches one that begins a clause. Both are
// from 0 to 1.
func (r *retrieval) nameShare(doc int) (share, lead float64) {
	x, c := r.x, &r.closer
	name, matched := uint64(0), uint64(0)
	for c.content.open(x, x.slots[doc]); c.content.next() && c.content.named; {
		for _, term := range c.content.terms {
			idf := x.idf(term)
			name += uint64(math.Round(unit * idf))
			if at := c.ways[term]; at > 0 {
				w := &r.ways[at-1]
				matched += uint64(math.Round(unit * idf * w.factor))
				if w.lead && term == c.content.begins {
					lead = w.factor
				}
			}
		}
	}
	if name == 0 {
		return 0, 0
	}
	return float64(matched) / float64(name), lead
}
