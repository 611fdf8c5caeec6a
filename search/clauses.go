package search

import (
	"bytes"
	"math"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A query may be a message that tells a story before it asks, or asks for several
// things. Its words together then fit documents that answer none of it. So the
// default ranker also searches for each clause alone. The best documents of a
// clause gain a part of the best score of all, as large as the clause is a
// request, as its words tell something, and as well as the document covers it. In a long
// message, or if there are several requests, this gain is larger. In a long message the words of all
// but the requests and the last clause count less.
const (
	// In bytes. The weights of messages between these lengths lie between those
	// of short and long ones.
	shortMessage = 300
	longMessage  = 600

	clauseGain      = 0.3 // what the best document of a clause gains in a short message
	severalGain     = 1.7 // the same, if there are several requests
	longClauseGain  = 2.3 // the same, in a long message
	maxClauses      = 64  // that are searched: the last ones, and as many before them that ask
	clauseDocs      = 20  // documents of each clause that gain, at most
	leastShare      = 0.5 // share of the best one's score that they must have
	fullClause      = 2.5 // a clause gains in full if it tells as much as so many of the most telling word; see tells
	againShare      = 0.5 // share that a document gains for a further request that it answers, …
	mostFavour      = 2   // … up to so many times what it gains for one
	placeDiscount   = 0.2 // of several requests, each document gains less than the one before: 1, 1/1.2, 1/1.4, …
	statementWeight = 0.5 // weight of a clause of a long message, where a request has 1
	lastWeight      = 0.9 // weight of its last clause, at least
	besideWeight    = 0.3 // weight of a term of a long message that is in no request nor in the last clause
)

// A clause is a part of a query: a sentence or a line.
type clause struct {
	begin, end int  // its terms are retrieval.members[begin:end]
	asks       bool // it is a request
	hollow     bool // see there

	wantsToKnow bool // see there

	weight float64
	passed bool // it is one too many, see maxClauses
}

// parse divides query into its clauses and distinct terms and finds the ways to
// each.
func (r *retrieval) parse(query string) {
	most := min(len(query), maxQueryText)
	if r.x.growth.ranker != RankerDefault {
		r.read(query[:most], "")
		return
	}
	if r.over = most < len(query); !r.over {
		r.read(query, "")
		most -= most / 3
	}
	for ; r.over; most -= most / 3 {
		r.read(query[:most/2], query[len(query)-most/2:])
	}
	r.weighClauses()
}

// read adds the clauses of begin and of end. The default ranker gives up at the
// first term for which there is no room.
func (r *retrieval) read(begin, end string) {
	if r.text = append(r.text[:0], begin...); end != "" {
		r.text = append(append(r.text, '\n'), end...)
	}
	r.analyzer.reset()
	r.looked, r.terms, r.numbers, r.ways, r.telling, r.over = r.looked[:0], r.terms[:0], r.numbers[:0], r.ways[:0], 0, false
	r.clauses, r.members = r.clauses[:0], r.members[:0]
	for rest := r.text; len(rest) > 0 && !(r.over && r.x.growth.ranker == RankerDefault); {
		end := clauseEnd(rest)
		r.addClause(rest[:end])
		rest = rest[end:]
	}
}

// clauseEnd returns the length of the first clause of text. A clause ends with a
// line, with a mark such as a full stop before a space, or with a comma before
// "then" or "also".
func clauseEnd(text []byte) int {
	for i, c := range text {
		switch c {
		case '\n':
			return i + 1
		case '.', '!', '?', ';', ':':
			if i+1 < len(text) && text[i+1] <= ' ' {
				return i + 1
			}
		case ',':
			for _, next := range [...]string{" then ", " and then ", " also ", " and also "} {
				if bytes.HasPrefix(text[i+1:], []byte(next)) {
					return i + 1
				}
			}
		case 0x82, 0x81, 0x9f: // the last bytes of these marks
			for _, mark := range [...]string{"。", "！", "？"} {
				if bytes.HasSuffix(text[:i+1], []byte(mark)) {
					return i + 1
				}
			}
		}
	}
	return len(text)
}

// leads lists words that may stand before the verb of a request, such as "please"
// and "can you". A verb may follow those that are true directly.
var leads = map[string]bool{
	"please": true, "kindly": true, "also": true, "then": true, "and": true, "or": true, "but": true, "so": true, "now": true, "just": true,
	"next": true, "first": true, "second": true, "third": true, "finally": true, "lastly": true, "ok": true, "okay": true,
	"hi": true, "hello": true, "hey": true, "to": true, "you": true, "me": true, "us": true, "must": true, "should": true, "let's": true, "lets": true,
	"i": false, "we": false, "i'd": false, "we'd": false, "can": false, "could": false, "would": false, "will": false,
	"want": false, "need": false, "have": false, "like": false, "love": false, "help": false, "let": false,
}

// asks reports whether a clause is a request: it begins with one of the lexicon's
// requests, apart from leads, or ends with a question mark.
func (c *compiledLexicon) asks(clause []byte) bool {
	clause = bytes.TrimSpace(clause)
	if bytes.HasSuffix(clause, []byte("?")) || bytes.HasSuffix(clause, []byte("？")) {
		return true
	}
	var buffer [24]byte
	for direct := true; ; {
		var word []byte
		if word, clause = cutWord(clause, buffer[:0]); len(word) == 0 {
			return false
		}
		lead, ok := leads[string(word)]
		if !ok {
			return direct && c.requests[string(word)]
		}
		direct = lead
	}
}

// cutWord appends the first word of line to dst, in lower case, and returns the
// rest of line. It cuts a word that dst has no room for.
func cutWord(line, dst []byte) (word, rest []byte) {
	for i, b := range line {
		switch {
		case b >= 0x80 || text.IsLower(b|0x20) || b == '\'' && len(dst) > 0:
			if text.IsUpper(b) {
				b |= 0x20
			}
			if len(dst) < cap(dst) {
				dst = append(dst, b)
			}
		case len(dst) > 0:
			return dst, line[i:]
		}
	}
	return dst, nil
}

// weighClauses sets the weights of the clauses and lowers those of terms that are
// beside the point.
func (r *retrieval) weighClauses() {
	if len(r.clauses) < 2 {
		return
	}
	long, asking, last := r.long(), 0, r.last()
	for i := len(r.clauses) - 1; i >= 0; i-- {
		c := &r.clauses[i]
		if i < len(r.clauses)-maxClauses {
			c.passed = !c.asks || asking == maxClauses
			if !c.passed {
				asking++
			}
		}
		weight := statementWeight
		switch {
		case c.asks:
			weight = 1
		case i == last:
			weight = lastWeight
		}
		c.weight = 1 - long*(1-weight)
		if weight == statementWeight {
			continue
		}
		for _, m := range r.members[c.begin:c.end] {
			r.terms[m].central = true
		}
	}
	for i := range r.terms {
		t := &r.terms[i]
		if t.central {
			continue
		}
		t.weigh(r.ways[t.begin:t.end], 1-long*(1-besideWeight))
	}
}

// hollow reports whether all words of a clause fit nearly any document, as in "Find the
// tool and return the result". Such a clause is no request of its own.
func (r *retrieval) hollow(c clause) bool {
	for _, m := range r.members[c.begin:c.end] {
		if r.terms[m].weight > genericWeight {
			return false
		}
	}
	return true
}

// last returns the number of the last clause that is not hollow, or 0.
func (r *retrieval) last() int {
	i := len(r.clauses) - 1
	for i > 0 && r.clauses[i].hollow {
		i--
	}
	return i
}

// weigh multiplies the weights of a term and its ways by factor.
func (t *queryTerm) weigh(ways []way, factor float64) {
	t.telling *= factor
	for i := range ways {
		ways[i].weight = uint32(math.Round(float64(ways[i].weight) * factor))
	}
}

// long returns 0 for a short message, 1 for a long one, and what lies between.
func (r *retrieval) long() float64 {
	return min(max(float64(len(r.text)-shortMessage)/(longMessage-shortMessage), 0), 1)
}

// findFavoured searches for each clause and sets r.favoured and r.favour.
func (r *retrieval) findFavoured(keep func(doc int) bool) {
	r.favour = zeros(r.favour, len(r.x.positions))
	several := r.requests() > 1
	most := 0.0
	for i := range r.terms {
		most = max(most, r.terms[i].told())
	}
	for _, c := range r.clauses {
		if c.passed {
			continue
		}
		mass := 0.0
		for _, m := range r.members[c.begin:c.end] {
			r.scoreTerm(int(m))
			mass += r.terms[m].telling
		}
		r.found = r.top(r.found[:0], clauseDocs, keep)
		if len(r.found) > 0 && mass > 0 {
			best := r.found[0].Score
			share := unit * c.weight * r.tells(c, most) * math.Sqrt(min(best/mass, 1)) / best
			for i, m := range r.found {
				if m.Score < leastShare*best {
					break
				}
				if several {
					m.Score /= 1 + placeDiscount*float64(i)
				}
				slot := r.x.slots[m.Doc]
				before, gain := r.favour[slot], uint32(math.Round(share*m.Score))
				if before == 0 {
					r.favoured = append(r.favoured, slot)
				}
				r.favour[slot] = max(before, gain)
				if several && c.asks {
					again := uint32(math.Round(againShare * float64(min(before, gain))))
					r.favour[slot] = min(r.favour[slot]+again, mostFavour*unit)
				}
			}
		}
		clear(r.scores)
		clear(r.best)
	}
}

// tells returns how much a clause tells, from 0 to 1, where the most telling word of the
// query tells most. A clause with such a word tells in full, however short it is, and so
// does one of many words. "Find the right tool for this." tells next to nothing.
func (r *retrieval) tells(c clause, most float64) float64 {
	sum, word := 0.0, 0.0
	for _, m := range r.members[c.begin:c.end] {
		told := r.terms[m].told()
		sum += told
		word = max(word, told/most)
	}
	return max(min(sum/(fullClause*most), 1), word*word*word)
}

// told is telling for a term that can be found, and 0 for any other.
func (t *queryTerm) told() float64 {
	if t.begin == t.end {
		return 0
	}
	return t.telling
}

// raiseFavoured adds to the scores of all terms what the clauses give.
func (r *retrieval) raiseFavoured(keep func(doc int) bool) {
	r.found = r.top(r.found[:0], 1, keep)
	if len(r.found) == 0 {
		return
	}
	share := clauseGain + (longClauseGain-clauseGain)*r.long()
	if r.requests() > 1 {
		share = max(share, severalGain)
	}
	gain := r.found[0].Score * share
	for _, slot := range r.favoured {
		r.scores[slot] += uint32(math.Round(gain * float64(r.favour[slot])))
	}
}

// forgetFavoured leaves r.favour clean.
func (r *retrieval) forgetFavoured() {
	for _, slot := range r.favoured {
		r.favour[slot] = 0
	}
	r.favoured = r.favoured[:0]
}

// dropNamed drops the ways of a clause's terms that lead to another of its terms:
// that one finds the same documents, and better.
func (r *retrieval) dropNamed(c clause) {
	members := r.members[c.begin:c.end]
	r.named = r.named[:0]
	for _, m := range members {
		for _, w := range r.ways[r.terms[m].begin:r.terms[m].end] {
			if w.exact {
				r.named = append(r.named, w.term)
			}
		}
	}
	for _, m := range members {
		t := &r.terms[m]
		for i := t.begin; i < t.end; i++ {
			if w := &r.ways[i]; !w.exact && slices.Contains(r.named, w.term) {
				w.weight = 0
			}
		}
	}
}

// requests counts the clauses that ask.
func (r *retrieval) requests() (n int) {
	for _, c := range r.clauses {
		if c.asks {
			n++
		}
	}
	return n
}
