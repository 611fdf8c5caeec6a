package search

import (
	"hash/maphash"
	"sync/atomic"
)

// A dictionary numbers terms from 0 in the order in which they are added. It
// only grows. One goroutine at a time may add; others may look up terms
// meanwhile through views taken earlier.
type dictionary struct {
	dictionaryView
}

// A dictionaryView is a dictionary as it was when the view was taken. It does
// not see terms added later.
//
// The slots are an open-addressing hash table that the dictionary and later
// views share. An entry never moves within a table. A table that is too small
// is replaced, not changed. A view skips entries newer than itself.
//
// A dictionary may extend a base: another dictionary that no longer grows. The
// base's terms have the first numbers.
type dictionaryView struct {
	base  *dictionaryView // may be nil; a base has no base
	seed  maphash.Seed
	slots []atomic.Uint64 // upper 32 bits: of the hash; lower: 1 + index in terms; 0 if free; len is a power of 2
	terms []string        // without those of base; the first has number below()
}

func newDictionary(base *dictionaryView) *dictionary {
	if base == nil {
		return &dictionary{dictionaryView{seed: maphash.MakeSeed(), slots: make([]atomic.Uint64, 1<<10)}}
	}
	return &dictionary{dictionaryView{base: base, seed: base.seed, slots: make([]atomic.Uint64, 1<<8)}}
}

// below returns the number of terms in base.
func (v *dictionaryView) below() int {
	if v.base == nil {
		return 0
	}
	return len(v.base.terms)
}

func (v *dictionaryView) len() int { return v.below() + len(v.terms) }

// text returns the term of a number.
func (v *dictionaryView) text(n uint32) string {
	if below := v.below(); int(n) >= below {
		return v.terms[int(n)-below]
	}
	return v.base.terms[n]
}

// lookup returns the number of term.
func (v *dictionaryView) lookup(term []byte) (uint32, bool) {
	hash := maphash.Bytes(v.seed, term)
	if v.base != nil {
		if n, ok := v.base.find(hash, term); ok {
			return n, true
		}
	}
	if n, ok := v.find(hash, term); ok {
		return n + uint32(v.below()), true
	}
	return 0, false
}

// find returns the index of term in v.terms.
func (v *dictionaryView) find(hash uint64, term []byte) (uint32, bool) {
	mask := uint64(len(v.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := v.slots[i].Load()
		if slot == 0 {
			return 0, false
		}
		if slot>>32 != hash>>32 {
			continue
		}
		if n := uint32(slot) - 1; int(n) < len(v.terms) && v.terms[n] == string(term) {
			return n, true
		}
	}
}

// add returns the number of term. A new term gets the next number.
func (d *dictionary) add(term []byte) uint32 {
	if n, ok := d.lookup(term); ok {
		return n
	}
	if 2*(len(d.terms)+1) > len(d.slots) {
		old := d.terms
		d.slots = make([]atomic.Uint64, 2*len(d.slots))
		for n, t := range old {
			d.insert(maphash.String(d.seed, t), uint32(n))
		}
	}
	n := uint32(len(d.terms))
	d.terms = append(d.terms, string(term))
	d.insert(maphash.Bytes(d.seed, term), n)
	return n + uint32(d.below())
}

func (d *dictionary) insert(hash uint64, n uint32) {
	mask := uint64(len(d.slots) - 1)
	i := hash & mask
	for d.slots[i].Load() != 0 {
		i = (i + 1) & mask
	}
	d.slots[i].Store(hash>>32<<32 | uint64(n+1))
}
