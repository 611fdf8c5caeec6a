package search

// A head holds the postings of one term.
type head struct {
	postings []uint32 // see post; including removed documents
	last     uint32   // the slot of the last posting
	df       int32    // number of documents with the term, without removed ones
}

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
	if n := len(h.postings); n+3 > cap(h.postings) && n > 0 { // append would double it
		h.postings = append(make([]uint32, 0, n+n/4+3), h.postings...)
	}
	switch {
	case len(h.postings) == 0:
		h.postings = append(h.postings, p.slot, p.signature)
	case distance>>(32-signatureBits) > 0 || p.signature>>signatureBits > 0:
		h.postings = append(h.postings, 0, p.slot, p.signature)
	default:
		h.postings = append(h.postings, distance<<signatureBits|p.signature)
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
