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
// The table is an open-addressing hash table that the dictionary and later
// views share. An entry never moves within a table. A table that is too small
// is replaced, not changed. A view skips entries newer than itself.
//
// A dictionary may extend a base: another dictionary that no longer grows. The
// base's terms have the first numbers.
type dictionaryView struct {
	base *dictionaryView // may be nil; a base has no base

	// The length of table is a power of 2. Its entries are 0 if free. Otherwise
	// the bits below the length are 1 + an index in ends, and those above come
	// from the hash.
	table []atomic.Uint32
	ends  []uint32 // where terms end in bytes; without those of base, so the first has number below()
	bytes []byte
}

// seed is the seed of all dictionaries. One hash of a term serves several of them.
var seed = maphash.MakeSeed()

func newDictionary(base *dictionaryView) *dictionary {
	return &dictionary{dictionaryView{base: base, table: make([]atomic.Uint32, 1<<8)}}
}

// below returns the number of terms in base.
func (v *dictionaryView) below() int {
	if v.base == nil {
		return 0
	}
	return len(v.base.ends)
}

func (v *dictionaryView) len() int { return v.below() + len(v.ends) }

// text returns the term of a number. The caller must not change it.
func (v *dictionaryView) text(n uint32) []byte {
	if below := v.below(); int(n) >= below {
		return v.own(n - uint32(below))
	}
	return v.base.own(n)
}

// own returns the term with index i in v.ends.
func (v *dictionaryView) own(i uint32) []byte {
	if i == 0 {
		return v.bytes[:v.ends[0]]
	}
	return v.bytes[v.ends[i-1]:v.ends[i]]
}

// lookup returns the number of term.
func (v *dictionaryView) lookup(term []byte) (uint32, bool) {
	hash := maphash.Bytes(seed, term)
	if v.base != nil {
		if i, ok := v.base.find(hash, term); ok {
			return i, true
		}
	}
	if i, ok := v.find(hash, term); ok {
		return i + uint32(v.below()), true
	}
	return 0, false
}

// find returns the index of term in v.ends.
func (v *dictionaryView) find(hash uint64, term []byte) (uint32, bool) {
	mask := uint32(len(v.table) - 1)
	for at := uint32(hash); ; at++ {
		entry := v.table[at&mask].Load()
		if entry == 0 {
			return 0, false
		}
		if (entry^uint32(hash>>32))&^mask != 0 {
			continue
		}
		if i := entry&mask - 1; int(i) < len(v.ends) && string(v.own(i)) == string(term) {
			return i, true
		}
	}
}

// add returns the number of term. A new term gets the next number.
func (d *dictionary) add(term []byte) uint32 {
	if n, ok := d.lookup(term); ok {
		return n
	}
	i := uint32(len(d.ends))
	d.bytes = append(d.bytes, term...)
	d.ends = append(d.ends, uint32(len(d.bytes)))
	if 3*len(d.table) < 4*len(d.ends) {
		d.table = make([]atomic.Uint32, 2*len(d.table))
		for old := range i {
			d.insert(old)
		}
	}
	d.insert(i)
	return i + uint32(d.below())
}

// insert enters the term with index i into the table.
func (d *dictionary) insert(i uint32) {
	hash := maphash.Bytes(seed, d.own(i))
	mask := uint32(len(d.table) - 1)
	at := uint32(hash)
	for d.table[at&mask].Load() != 0 {
		at++
	}
	d.table[at&mask].Store(uint32(hash>>32)&^mask | i + 1)
}
