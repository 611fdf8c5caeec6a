package search

import (
	"math"
	"slices"
	"sync"
)

// A growth makes a chain of indexes, each derived from the one before. It owns
// the data they share. Only the newest index may be appended to.
type growth struct {
	ranker    Ranker
	lexicon   *compiledLexicon
	threshold float64

	mu         sync.Mutex
	newest     *Index
	terms      *dictionary
	groups     *dictionary
	signatures *dictionary
	space      []uint32 // for postings of new terms
	*scratch            // while next runs
}

// A scratch is what growths use while they make an index, one after the other.
type scratch struct {
	found   []foundTerm // terms of the document being added
	one     [1]uint32   // see read
	at      []uint32    // by term: 1 + its index in found, or 0
	keys    []uint64    // see contentKey
	text    []byte      // of a signature
	content contentReader
	last    [1 << fields]struct { // the last signature, by the set of its fields
		signature signature
		number    uint32
	}
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// borrow takes a scratch until release is called.
func (g *growth) borrow() (release func()) {
	s := scratches.Get().(*scratch)
	s.at = zeros(s.at, g.terms.len())
	g.scratch = s
	return func() {
		g.scratch = nil
		s.forget()
		s.content.rest = nil
		clear(s.last[:])
		scratches.Put(s)
	}
}

// forget forgets the terms found.
func (s *scratch) forget() {
	for _, t := range s.found {
		s.at[t.term] = 0
	}
	s.found = s.found[:0]
}

// A foundTerm counts how often a term occurs in each field of the document
// being added.
type foundTerm struct {
	term  uint32
	tf    [fields]uint16
	named bool // it is a word of the name
}

func newGrowth(ranker Ranker, l *compiledLexicon, threshold float64) *growth {
	g := &growth{ranker: ranker, lexicon: l, threshold: threshold}
	g.clear()
	return g
}

// clear forgets all terms except the lexicon's, which have the first numbers.
func (g *growth) clear() {
	g.terms, g.groups = newDictionary(&g.lexicon.base().terms), newDictionary(nil)
	g.signatures, g.space = newDictionary(nil), nil
}

// index returns the first index of g.
func (g *growth) index(docs []*Document) *Index {
	g.newest = g.empty()
	return g.next(docs)
}

// empty returns an index without documents. It has the lexicon's terms.
func (g *growth) empty() *Index {
	base := g.lexicon.base()
	return &Index{
		growth: g, first: []uint32{0}, heads: base.heads.clone(),
		vocabulary: vocabulary{base: &base.vocabulary, terms: g.terms.dictionaryView, groups: g.groups.dictionaryView},
	}
}

// A lexiconBase is the start of every index with one lexicon. The indexes share
// its vocabulary and its pages.
type lexiconBase struct {
	vocabulary
	heads headList
}

func newLexiconBase(terms []string) *lexiconBase {
	g := &growth{terms: newDictionary(nil), groups: newDictionary(nil)}
	for _, term := range terms {
		g.terms.add([]byte(term))
	}
	b := new(lexiconBase)
	g.group(&b.vocabulary, 0)
	b.heads = newHeadList(len(terms))
	return b
}

// next returns the index of docs that follows the newest.
func (g *growth) next(docs []*Document) *Index {
	defer g.borrow()()
	x := *g.newest
	old := x.docs
	x.docs = slices.Clone(docs)
	x.heads, x.vocabulary.lists = x.heads.clone(), x.vocabulary.lists.clone()
	x.positions = slices.Clone(x.positions)

	begin := 0
	for begin < len(old) && begin < len(docs) && old[begin] == docs[begin] {
		begin++
	}
	end := 0 // counted from the end
	for end < len(old)-begin && end < len(docs)-begin && old[len(old)-1-end] == docs[len(docs)-1-end] {
		end++
	}
	kept := make(map[*Document][]uint32) // slots of the old documents between begin and end
	for i := begin; i < len(old)-end; i++ {
		kept[old[i]] = append(kept[old[i]], x.slots[i])
	}
	slots := make([]uint32, len(docs))
	copy(slots, x.slots[:begin])
	copy(slots[len(docs)-end:], x.slots[len(old)-end:])
	var fresh []*Document
	var places []int // by document in fresh: its index in slots
	for i := begin; i < len(docs)-end; i++ {
		if same := kept[docs[i]]; len(same) > 0 {
			slots[i] = same[0]
			kept[docs[i]] = same[1:]
			continue
		}
		fresh, places = append(fresh, docs[i]), append(places, i)
	}
	n := 0
	eachWordList(fresh, func(words *wordList) {
		slots[places[n]] = g.add(&x, words)
		n++
	})
	for _, left := range kept {
		for _, slot := range left {
			g.remove(&x, slot)
		}
	}
	x.slots = slots
	for i, slot := range slots {
		x.positions[slot] = int32(i)
	}
	if dead := len(x.positions) - len(docs); dead > len(docs)+minDead {
		x = *g.compact(&x)
	}
	g.group(&x.vocabulary, x.vocabulary.len())
	x.logDocs = math.Log(float64(len(docs)) + 1)
	g.weigh(&x)
	g.newest = &x
	return &x
}

// minDead is how many removed documents never trigger compact.
const minDead = 256

// weigh computes the worth of new signatures, or of all if an average changed.
func (g *growth) weigh(x *Index) {
	averages := x.averages
	for f, total := range x.lengths {
		x.averages[f] = average(f, total, len(x.docs))
	}
	x.signatures = g.signatures.dictionaryView
	if n := x.signatures.len(); x.averages != averages {
		x.worth = make([]uint32, 0, n+n/8)
	}
	for i := len(x.worth); i < x.signatures.len(); i++ {
		s := signatureOf(x.signatures.text(uint32(i)))
		x.worth = append(x.worth, s.worthAt(&x.averages))
	}
}

// add appends a document to x and returns its slot. It has no position yet.
func (g *growth) add(x *Index, words *wordList) uint32 {
	g.forget() // the previous document
	var lengths [fields]uint16
	first := uint32(strange) // term of the name
	verb := noVerb
	for _, w := range words.words {
		for _, term := range g.read(words.bytes[w.start:w.end]) {
			if !g.count(w.field, &lengths, term) || w.field != inName {
				continue
			}
			if lengths[inName] == 1 {
				first = term
			}
			if verb == noVerb && w.form != whole {
				verb = g.lexicon.verbOf(term)
			}
			// An identifier that is also indexed whole has no more words for that.
			t := &g.found[g.at[term]-1]
			t.named = t.named || w.form != whole || first == term
		}
	}
	g.keys = g.keys[:0]
	for i := range g.found {
		t := &g.found[i]
		var s signature
		for f, tf := range t.tf {
			if tf > 0 {
				s[f].tf, s[f].length = tf, lengths[f]
			}
		}
		g.keys = append(g.keys, contentKey(t.term, g.number(&s), t.named))
	}
	return g.put(x, first, does(verb, words.readOnly))
}

// number returns the number of a signature and numbers a new one. In one
// document, most terms in the same fields have the same signature, so it looks
// at the last signature with these fields first.
func (g *growth) number(s *signature) uint32 {
	places := 0
	for f := range s {
		if s[f].tf > 0 {
			places |= 1 << f
		}
	}
	last := &g.last[places]
	if last.signature != *s {
		g.text = s.append(g.text[:0])
		last.signature, last.number = *s, g.signatures.add(g.text)
	}
	return last.number
}

// count adds a term in field to the document being added. It skips stop words
// and, in a field of 65,535 terms, all others; then ok is false.
func (g *growth) count(field uint8, lengths *[fields]uint16, term uint32) (ok bool) {
	if lengths[field] == math.MaxUint16 || g.lexicon.stops(term) {
		return false
	}
	for int(term) >= len(g.at) {
		g.at = append(g.at, 0)
	}
	if g.at[term] == 0 {
		g.found = append(g.found, foundTerm{term: term})
		g.at[term] = uint32(len(g.found))
	}
	tf := &g.found[g.at[term]-1].tf[field]
	if field == inInstructions && *tf > 0 {
		return true // a server that repeats a word has it once
	}
	lengths[field]++
	*tf++
	return true
}

// read returns the terms that text is read as: one, unless it is an abbreviation.
func (g *growth) read(text []byte) []uint32 {
	term := g.terms.add(text)
	if terms := g.lexicon.standsFor(term); terms != nil {
		return terms
	}
	g.one[0] = term
	return g.one[:]
}

// put appends the document with the terms in g.keys and returns its slot. begins
// is the term that begins its name, or strange, and does what it does.
func (g *growth) put(x *Index, begins uint32, does verbClass) uint32 {
	slices.Sort(g.keys)
	slot := uint32(len(x.positions))
	x.positions = append(x.positions, -1)
	x.contents = appendContent(x.contents, begins, does, g.keys)
	x.first = append(x.first, uint32(len(x.contents)))
	x.heads.grow(g.terms.len())
	g.tally(x, slot, 1)
	return slot
}

// remove takes the document in slot out of the counts and clears its position.
func (g *growth) remove(x *Index, slot uint32) {
	x.positions[slot] = -1
	g.tally(x, slot, -1)
}

// tally adds the document in slot to the counts and postings if n is 1, or
// subtracts it from the counts if n is -1.
func (g *growth) tally(x *Index, slot uint32, n int) {
	var lengths [fields]uint16
	c := &g.content
	for c.open(x, slot); c.next(); {
		s := signatureOf(g.signatures.text(c.signature))
		for f := range s {
			lengths[f] = max(lengths[f], s[f].length) // each term of a field has the field's length
		}
		for _, term := range c.terms {
			h := x.heads.change(term)
			if s.onlySaid() {
				h.said += int32(n)
			} else {
				h.own += int32(n)
			}
			if n > 0 {
				g.post(h, posting{slot, c.signature})
			}
		}
	}
	for f, length := range lengths {
		x.lengths[f] += uint64(n) * uint64(length) // wraps around to a subtraction
	}
}

// post appends a posting.
func (g *growth) post(h *head, p posting) {
	if h.postings == nil {
		const few = 2 // one posting; most terms never need more
		if len(g.space) < few {
			g.space = make([]uint32, 64*few)
		}
		h.postings, g.space = g.space[:0:few], g.space[few:]
	}
	h.post(p)
}

// compact returns x without the data of removed documents. It does not read the
// other documents again.
func (g *growth) compact(x *Index) *Index {
	terms, signatures := g.terms.dictionaryView, g.signatures.dictionaryView
	g.clear()
	clear(g.last[:])
	y := g.empty()
	y.docs = x.docs
	for i, slot := range x.slots {
		g.keys = g.keys[:0]
		c := &g.content
		begins := uint32(strange)
		for c.open(x, slot); c.next(); {
			signature := g.signatures.add(signatures.text(c.signature))
			for _, old := range c.terms {
				term := g.terms.add(terms.text(old))
				g.keys = append(g.keys, contentKey(term, signature, c.named))
				if old == c.begins {
					begins = term
				}
			}
		}
		y.slots = append(y.slots, g.put(y, begins, c.does))
		y.positions[i] = int32(i)
	}
	return y
}
