package search

import (
	"fmt"
	"maps"
	"slices"
)

// canonical is the content of an index without slots and numbers.
type canonical struct {
	terms map[string][]canonicalPosting // by term
	idf   map[string]float64
	worth map[signature]uint32
}

type canonicalPosting struct {
	doc int
	sig signature
}

func (x *Index) canonical() canonical {
	c := canonical{map[string][]canonicalPosting{}, map[string]float64{}, map[signature]uint32{}}
	for n := range x.vocabulary.len() {
		term := string(x.vocabulary.text(uint32(n)))
		var ps []canonicalPosting
		for _, p := range x.heads.at(uint32(n)).list() {
			if doc := x.positions[p.slot]; doc >= 0 {
				s := signatureOf(x.signatures.text(p.signature))
				ps = append(ps, canonicalPosting{int(doc), s})
				c.worth[s] = x.worth[p.signature]
			}
		}
		if len(ps) == 0 {
			continue
		}
		slices.SortFunc(ps, func(a, b canonicalPosting) int { return a.doc - b.doc })
		c.terms[term] = ps
		c.idf[term] = x.idf(uint32(n))
	}
	return c
}

// Check returns an error if x contradicts itself or differs from a new index of
// the same documents. It is for tests and takes as long as [NewIndex].
func (x *Index) Check() error {
	if len(x.slots) != len(x.docs) || len(x.first) != len(x.positions)+1 || len(x.worth) != x.signatures.len() {
		return fmt.Errorf("index of %d documents: %d slots, %d positions, %d first, %d worth of %d", len(x.docs), len(x.slots), len(x.positions), len(x.first), len(x.worth), x.signatures.len())
	}
	for i, slot := range x.slots {
		if x.positions[slot] != int32(i) {
			return fmt.Errorf("document %d is in slot %d, which is at position %d", i, slot, x.positions[slot])
		}
	}
	contents := make(map[uint32][]posting) // by term
	for slot := range x.positions {
		for _, o := range x.occurrencesOf(uint32(slot)) {
			contents[o.term] = append(contents[o.term], posting{uint32(slot), o.signature})
		}
	}
	for n := range x.vocabulary.len() {
		if got, want := x.heads.at(uint32(n)).list(), contents[uint32(n)]; !slices.Equal(got, want) {
			return fmt.Errorf("the postings of %q differ from the contents of %d documents", x.vocabulary.text(uint32(n)), len(want))
		}
	}
	fresh := newGrowth(x.growth.ranker, x.growth.lexicon, x.growth.threshold).index(x.docs)
	if x.lengths != fresh.lengths || x.averages != fresh.averages {
		return fmt.Errorf("lengths %v, averages %v; a new index has %v, %v", x.lengths, x.averages, fresh.lengths, fresh.averages)
	}
	got, want := x.canonical(), fresh.canonical()
	if !maps.Equal(got.idf, want.idf) || !maps.Equal(got.worth, want.worth) || !maps.EqualFunc(got.terms, want.terms, slices.Equal) {
		return fmt.Errorf("the index of %d documents differs from a new one", len(x.docs))
	}
	return nil
}
