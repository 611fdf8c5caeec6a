package search

import (
	"cmp"
	"math"
	"slices"
)

// score sets each document's score: the sum of the scores of the query's terms,
// and what the clauses add if there are several.
func (r *retrieval) score(keep func(doc int) bool) {
	r.scores = zeros(r.scores, len(r.x.positions))
	r.best = zeros(r.best, len(r.x.positions))
	several := len(r.clauses) > 1 && r.x.growth.ranker == RankerDefault
	if several {
		r.findFavoured(keep)
	}
	for i := range r.terms {
		r.scoreTerm(i)
	}
	clear(r.best)
	if several {
		r.raiseFavoured(keep)
	}
}

// scoreTerm adds to each document's score that of the best way to find term i in
// it. Until r.best is cleared, i must ascend.
//
// r.best holds the score of the best way so far in its lower 24 bits and the
// number of the term, from 1, above. 24 bits hold (k1 + 1) * idf.
func (r *retrieval) scoreTerm(i int) {
	ways := r.ways[r.terms[i].begin:r.terms[i].end]
	if len(ways) == 1 {
		r.addScores(&ways[0], 0)
		return
	}
	number := uint32(i+1) << 24
	for j := range ways {
		switch w := &ways[j]; {
		case j == 0:
			r.addScores(w, number)
		case w.weight > 0:
			r.raiseScores(w, number)
		}
	}
}

// addScores adds what w finds, and keeps it in r.best unless number is 0.
//
// Among many documents, this loop and the one of raiseScores take most of the
// time of a search. They read postings as head.list does.
func (r *retrieval) addScores(w *way, number uint32) {
	scores, worth, weight := r.scores, r.x.worth, uint64(w.weight)
	best := r.best[:len(scores)]
	list, n := r.x.heads.at(w.term).postings, uint(0)
	for n+1 < uint(len(list)) {
		slot, signature := list[n], list[n+1]
		n += 2
		for {
			s := uint32(weight * uint64(worth[signature]) / unit)
			scores[slot] += s
			if number > 0 {
				best[slot] = number | s
			}
			if n >= uint(len(list)) {
				return
			}
			p := list[n]
			if n++; p == 0 {
				break
			}
			slot += p >> signatureBits
			signature = p & (1<<signatureBits - 1)
		}
	}
}

// raiseScores adds by how much w finds documents better than the ways before it.
func (r *retrieval) raiseScores(w *way, number uint32) {
	scores, worth, weight := r.scores, r.x.worth, uint64(w.weight)
	best := r.best[:len(scores)]
	list, n := r.x.heads.at(w.term).postings, uint(0)
	for n+1 < uint(len(list)) {
		slot, signature := list[n], list[n+1]
		n += 2
		for {
			s := number | uint32(weight*uint64(worth[signature])/unit)
			if before := max(best[slot], number); s > before {
				scores[slot] += s - before
				best[slot] = s
			}
			if n >= uint(len(list)) {
				return
			}
			p := list[n]
			if n++; p == 0 {
				break
			}
			slot += p >> signatureBits
			signature = p & (1<<signatureBits - 1)
		}
	}
}

// zeros returns a slice of n zeros. It reuses s, which is all zeros, if s is
// large enough.
func zeros(s []uint32, n int) []uint32 {
	if n > cap(s) {
		s = make([]uint32, n+n/4)
	}
	return s[:n]
}

// least returns the least score of a match.
func (r *retrieval) least() uint32 {
	return uint32(max(1, min(math.MaxUint32, math.Ceil(unit*r.x.growth.threshold*r.telling))))
}

// top appends the n best documents.
func (r *retrieval) top(dst []Match, n int, keep func(doc int) bool) []Match {
	ranks := r.ranks[:0] // the best so far, the best first; unsorted if n is too great
	least := r.least()   // the least score that enters the result
	for first := below(r.scores, least); first < len(r.scores); first += 8 + below(r.scores[min(first+8, len(r.scores)):], least) {
		for i, score := range r.scores[first:min(first+8, len(r.scores))] {
			if score < least {
				continue
			}
			doc := r.x.positions[first+i]
			if doc < 0 || keep != nil && !keep(int(doc)) {
				continue
			}
			k := rankOf(score, doc)
			if len(ranks) < n || n > maxInserted {
				ranks = append(ranks, k)
			} else if k > ranks[n-1] {
				ranks[n-1] = k
			} else {
				continue
			}
			if n <= maxInserted {
				insertLast(ranks)
				if len(ranks) == n {
					least = ranks[n-1].score()
				}
			}
		}
	}
	if n > maxInserted {
		slices.SortFunc(ranks, func(a, b rank) int { return cmp.Compare(b, a) })
	}
	for _, k := range ranks[:min(n, len(ranks))] {
		dst = append(dst, Match{k.doc(), float64(k.score()) / unit})
	}
	r.ranks = ranks
	return dst
}

// A rank orders documents: the better one is greater. It has the score, and below it the
// number of the document, inverted since the lower one is better.
type rank uint64

func rankOf(score uint32, doc int32) rank { return rank(score)<<32 | rank(^uint32(doc)) }

func (k rank) score() uint32 { return uint32(k >> 32) }
func (k rank) doc() int      { return int(^uint32(k)) }

// below returns how many scores to skip, eight at a time, because they are all
// below least.
func below(scores []uint32, least uint32) (n int) {
	for ; len(scores) >= 8; n += 8 {
		s := (*[8]uint32)(scores)
		if max(max(max(s[0], s[1]), max(s[2], s[3])), max(max(s[4], s[5]), max(s[6], s[7]))) >= least {
			break
		}
		scores = scores[8:]
	}
	return n
}

// maxInserted is the greatest n for which top keeps results sorted while it
// finds them. For a greater n it sorts at the end.
const maxInserted = 64

// insertLast moves the last rank to its place. The others are sorted.
func insertLast(ranks []rank) {
	i := len(ranks) - 1
	k := ranks[i]
	for ; i > 0 && k > ranks[i-1]; i-- {
		ranks[i] = ranks[i-1]
	}
	ranks[i] = k
}

// inOrder compares two matches: higher score first, then lower document number.
func inOrder(a, b Match) int {
	switch { // cmp.Compare is slower because it handles NaN
	case a.Score > b.Score:
		return -1
	case a.Score < b.Score:
		return 1
	}
	return a.Doc - b.Doc
}
