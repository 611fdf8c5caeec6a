package search

import "math"

// A contentReader reads the terms of one document, group by group. The terms of
// a group have the same signature. The words of the name come first. In
// [Index.contents], numbers of two words begin with the lower one, and a document
// is
//
//	the term that begins its name, or strange: two words
//	what it does: see does
//	for each group:
//	  2 × its signature, and 1 more if it is of the name's words: two words
//	  the number of its terms
//	  its first term: two words
//	  for each further term, in ascending order, its distance from the one before
//
// Where one of these does not fit, another group with the same signature begins.
type contentReader struct {
	begins uint32 // the term that begins the name, or strange
	does   verbClass
	rest   []uint16

	// The group that next read.
	signature uint32
	named     bool
	terms     []uint32 // ascending
}

// open begins to read the document in slot.
func (c *contentReader) open(x *Index, slot uint32) {
	c.rest = x.contents[x.first[slot]:x.first[slot+1]]
	c.begins, c.does, c.rest = twoWords(c.rest), verbClass(c.rest[2]), c.rest[3:]
}

// next reads the next group, if there is one.
func (c *contentReader) next() bool {
	if len(c.rest) == 0 {
		return false
	}
	group, n, term := twoWords(c.rest), int(c.rest[2]), twoWords(c.rest[3:])
	c.signature, c.named = group>>1, group&1 == 1
	if cap(c.terms) < n {
		c.terms = make([]uint32, n+n/4)
	}
	c.terms = c.terms[:n]
	terms := c.terms
	terms[0] = term
	for i, distance := range c.rest[5 : 4+n] {
		term += uint32(distance)
		terms[i+1] = term
	}
	c.rest = c.rest[4+n:]
	return true
}

func twoWords(words []uint16) uint32 { return uint32(words[0]) | uint32(words[1])<<16 }

func appendTwoWords(dst []uint16, v uint32) []uint16 { return append(dst, uint16(v), uint16(v>>16)) }

// contentKey returns a number that stands for one term of a document. Sorted
// keys are in the order of the content.
func contentKey(term, signature uint32, named bool) uint64 {
	group := signature
	if !named {
		group |= 1 << 31
	}
	return uint64(group)<<32 | uint64(term)
}

// appendContent appends the content with these sorted keys.
func appendContent(dst []uint16, begins uint32, does verbClass, keys []uint64) []uint16 {
	dst = append(appendTwoWords(dst, begins), uint16(does))
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && n < math.MaxUint16 && keys[n]-keys[n-1] <= math.MaxUint16 {
			n++
		}
		group := uint32(keys[0] >> 32)
		dst = appendTwoWords(dst, group<<1|(group>>31^1))
		dst = append(dst, uint16(n))
		dst = appendTwoWords(dst, uint32(keys[0]))
		for i := 1; i < n; i++ {
			dst = append(dst, uint16(keys[i]-keys[i-1]))
		}
		keys = keys[n:]
	}
	return dst
}

// An occurrence is one term of a document.
type occurrence struct{ term, signature uint32 }

// occurrencesOf returns the terms of the document in slot, in the order of its
// content.
func (x *Index) occurrencesOf(slot uint32) (list []occurrence) {
	var c contentReader
	for c.open(x, slot); c.next(); {
		for _, term := range c.terms {
			list = append(list, occurrence{term, c.signature})
		}
	}
	return list
}
