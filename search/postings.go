package search

// A head holds the postings of one term.
type head struct {
	postings []uint32 // see post; including removed documents
	last     uint32   // the slot of the last posting
	own      int32    // number of documents with the term, without removed ones; see said
	said     int32    // of those, which own lacks, that have it in their instructions only
}

// df returns the number of documents with the term. What is in instructions counts only if
// the term is nowhere else: a server of many tools must not make a word common by saying it
// once.
func (h *head) df() int32 {
	if h.own > 0 {
		return h.own
	}
	return h.said
}

// A headList has the head of each term, as copy-on-write as a [paged]. Of the lexicon's
// terms, which come first, a small index has few, so the list has no heads for others.
type headList struct {
	below   uint32        // number of the lexicon's terms
	places  paged[uint32] // of these: 1 + the index in lexical, or 0
	lexical paged[head]
	used    uint32      // number of heads in lexical
	own     paged[head] // of the other terms
}

// newHeadList returns a list for as many terms of a lexicon, of which none has a posting.
func newHeadList(below int) headList {
	l := headList{below: uint32(below)}
	for none := new([pageSize]uint32); len(l.places.pages)*pageSize < below; {
		l.places.pages = append(l.places.pages, none)
	}
	return l
}

var noHead head

// at returns the head of a term. The caller must not change it.
func (l *headList) at(term uint32) *head {
	if term >= l.below {
		return l.own.at(term - l.below)
	}
	if place := *l.places.at(term); place > 0 {
		return l.lexical.at(place - 1)
	}
	return &noHead
}

// change returns the head of a term for the caller to change.
func (l *headList) change(term uint32) *head {
	if term >= l.below {
		return l.own.change(term - l.below)
	}
	place := *l.places.at(term)
	if place == 0 {
		l.used++
		place = l.used
		*l.places.change(term) = place
		l.lexical.grow(int(place))
	}
	return l.lexical.change(place - 1)
}

// clone returns a copy of l. Neither may change the pages of the other.
func (l *headList) clone() headList {
	return headList{l.below, l.places.clone(), l.lexical.clone(), l.used, l.own.clone()}
}

// grow adds empty heads until there is one for each of n terms.
func (l *headList) grow(n int) { l.own.grow(n - int(l.below)) }

// A posting is one document in which a term occurs.
type posting struct{ slot, signature uint32 }

// Postings stand in runs, by ascending slot. A run begins with the slot and the
// signature of its first posting. Each further posting is one number: the
// distance of its slot from the one before in the upper bits, and its signature
// in signatureBits. 0 comes before the next run. It begins where either does not
// fit.
const signatureBits = 19

// post appends a posting.
func (h *head) post(p posting) {
	distance := p.slot - h.last
	h.last = p.slot
	switch {
	case len(h.postings) == 0:
		h.postings = append(h.postings, p.slot, p.signature)
	case distance>>(32-signatureBits) > 0 || p.signature>>signatureBits > 0:
		h.reserve(3)
		h.postings = append(h.postings, 0, p.slot, p.signature)
	default:
		h.reserve(1)
		h.postings = append(h.postings, distance<<signatureBits|p.signature)
	}
}

// reserve makes room for n more numbers. append would make twice as much as there is.
func (h *head) reserve(n int) {
	if size := len(h.postings); size+n > cap(h.postings) {
		room := (size + n + size/4 + 1) &^ 1 // memory comes in eight bytes
		h.postings = append(make([]uint32, 0, room), h.postings...)
	}
}

// list returns all postings, by ascending slot.
func (h *head) list() (list []posting) {
	for rest := h.postings; len(rest) > 0; {
		p, end := posting{rest[0], rest[1]}, len(rest)
		list = append(list, p)
		for i, v := range rest[2:] {
			if v == 0 {
				end = 2 + i + 1
				break
			}
			p = posting{p.slot + v>>signatureBits, v & (1<<signatureBits - 1)}
			list = append(list, p)
		}
		rest = rest[end:]
	}
	return list
}
