package search

import (
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A clause is foreign if more of its words are unknown to the catalog and stand
// in the lexicon's foreign words than are English function words. Only such a
// clause is translated, so "die" and "no" mean in English what they always did.

//go:embed foreign.txt
var foreignText string

// foreignTable is what foreign.txt says: the words of ten languages.
var foreignTable = sync.OnceValue(func() foreignWords { return newForeignWords(defaultForeign()) })

// defaultForeign reads foreign.txt, whose first row names the languages. It leaves out
// words that begin like an English one of their row: the ranker finds these as relatives.
func defaultForeign() (rows []Hint) {
	var a analyzer
	for line := range strings.Lines(foreignText) {
		english, others, ok := strings.Cut(line, "|")
		if !ok || line[0] == '#' {
			continue
		}
		row := Hint{To: strings.Fields(english)}
		for _, w := range strings.Fields(others) {
			a.reset()
			if a.add([]byte(w)); len(a.terms) == 0 { // a "-" or a "|"
				continue
			}
			folded := string(a.bytes)
			if !slices.ContainsFunc(row.To, func(e string) bool { return len(folded) >= familyPrefix && strings.HasPrefix(e, folded[:familyPrefix]) }) {
				row.From = append(row.From, folded)
			}
		}
		rows = append(rows, row)
	}
	return rows[1:]
}

const (
	foreignWeight = 0.9 // of what a foreign word means, where an exact match weighs 1

	minForeignStem = 4 // letters of a foreign word that stands for longer words, too
	maxEnding      = 6 // letters by which they are longer, or that stand between the parts of a compound
)

// foreignWords lists words of other languages by their beginnings, the longest
// first.
type foreignWords map[uint32][]foreignWord

// A foreignWord is a word and what it means, as English terms.
type foreignWord struct {
	text     string
	meanings [][]byte
}

// beginning returns the first three bytes of a word, or all of a shorter one. A
// character of a script without spaces has at least three.
func beginning(word []byte) (bytes uint32) {
	for _, c := range word[:min(len(word), 3)] {
		bytes = bytes<<8 | uint32(c)
	}
	return bytes
}

// newForeignWords returns the table of rows. A word in several rows has the
// meanings of all.
func newForeignWords(rows []Hint) foreignWords {
	f := make(foreignWords)
	var a analyzer
	for _, row := range rows {
		var terms [][]byte
		for _, w := range row.To {
			a.reset()
			if a.add([]byte(w)); len(a.terms) > 0 {
				terms = append(terms, slices.Clone(a.term(len(a.terms)-1)))
			}
		}
		if len(terms) == 0 {
			continue
		}
		for _, w := range row.From {
			a.reset()
			if a.add([]byte(w)); len(a.terms) > 0 {
				f.add(string(a.bytes), terms)
			}
		}
	}
	return f
}

// add adds meanings to those of word.
func (f foreignWords) add(word string, meanings [][]byte) {
	key := beginning([]byte(word))
	list := f[key]
	i := 0
	for i < len(list) && (len(list[i].text) > len(word) || len(list[i].text) == len(word) && list[i].text != word) {
		i++
	}
	if i == len(list) || list[i].text != word {
		list = slices.Insert(list, i, foreignWord{text: word})
		f[key] = list
	}
	list[i].meanings = append(slices.Clip(list[i].meanings), meanings...)
}

// meanings returns what word means, or nil if f does not have it.
func (f foreignWords) meanings(word []byte) [][]byte {
	for _, w := range f[beginning(word)] {
		if w.text == string(word) {
			return w.meanings
		}
	}
	return nil
}

// A foreignPart is a part of a word or of a run of characters: bytes[start:end],
// with what it means.
type foreignPart struct {
	start, end int
	meanings   [][]byte
}

// longestIn returns the longest word of f that begins letters, and what it means.
// It is a word of at least minForeignStem letters, unless short ones will do.
func (f foreignWords) longestIn(letters []byte, short bool) (meanings [][]byte, n int) {
	for _, w := range f[beginning(letters)] {
		n := len(w.text)
		if n <= len(letters) && string(letters[:n]) == w.text && (short || utf8.RuneCountInString(w.text) >= minForeignStem) {
			return w.meanings, n
		}
	}
	return nil, 0
}

// appendParts appends the words of f in text. If dense is set, text is a run of
// characters of a script without spaces. Otherwise it is a word, which has none or
// begins with one: a word of f itself, one with an ending, or a compound.
func (f foreignWords) appendParts(dst []foreignPart, text []byte, dense bool) []foreignPart {
	if m := f.meanings(text); m != nil {
		return append(dst, foreignPart{0, len(text), m})
	}
	begin, between := len(dst), 0
	for at := 0; at < len(text); {
		m, n := f.longestIn(text[at:], dense)
		switch {
		case n > 0:
			dst, between = append(dst, foreignPart{at, at + n, m}), 0
		case !dense && (len(dst) == begin || between == maxEnding):
			return dst[:begin]
		default:
			_, n = utf8.DecodeRune(text[at:])
			between++
		}
		at += n
	}
	return dst
}

// foreign reports whether the terms of a clause, from first on, are of another
// language.
func (r *retrieval) foreign(first int) bool {
	a, l := &r.analyzer, r.x.growth.lexicon
	others, english := 0, 0
	for i := first; i < len(a.terms); i++ {
		if a.terms[i].form == whole || r.looked[i] != strange {
			continue
		}
		if a.terms[i].form == word {
			if r.parts = l.foreign().appendParts(r.parts[:0], a.full(i), false); len(r.parts) == 0 {
				continue
			}
		}
		others++
	}
	if others == 0 { // as in nearly every clause
		return false
	}
	for i := first; i < len(a.terms); i++ {
		if a.terms[i].form != whole && l.stops(r.looked[i]) && l.foreign().meanings(a.full(i)) == nil {
			english++
		}
	}
	return others > english
}

// addForeign adds what the terms of a foreign clause mean, from first on, and the
// terms themselves if they mean nothing or the catalog has them.
func (r *retrieval) addForeign(c clause, first int) {
	a, table := &r.analyzer, r.x.growth.lexicon.foreign()
	for i, end, last := first, 0, len(a.terms); i < last; i = end {
		end = i + 1
		dense := a.terms[i].form == character
		if dense {
			end = a.runEnd(i)
		}
		start := a.terms[i].start
		letters := a.bytes[start:max(a.terms[end-1].end, a.terms[i].full)]
		r.parts = r.parts[:0]
		if a.terms[i].form != whole {
			r.parts = table.appendParts(r.parts, letters, dense)
		}
		means := false
		for _, p := range r.parts {
			if !dense || !r.x.inCatalog(r.x.number(letters[p.start:p.end])) {
				from, to := start+int32(p.start), start+int32(p.end)
				s := span{start: from, end: to, full: to, form: word}
				typed := a.terms[i]
				if dense {
					typed = s
				}
				means = r.addMeaning(c, s, typed, p.meanings) || means
			}
		}
		for ; i < end; i++ {
			s := a.terms[i]
			known := r.x.inCatalog(r.looked[i]) && (dense || means)
			if known || !r.translated(int(s.start-start), int(s.end-start)) {
				r.addMember(c, i, 1)
			}
		}
	}
}

// translated reports whether there is a part that overlaps the letters from start
// to end.
func (r *retrieval) translated(start, end int) bool {
	for _, p := range r.parts {
		if p.start < end && start < p.end {
			return true
		}
	}
	return false
}

// addMeaning adds a query term for a foreign word s, which is or is in what was typed, to
// clause c. It returns false if s is a function word.
func (r *retrieval) addMeaning(c clause, s, typed span, meanings [][]byte) bool {
	x, l := r.x, r.x.growth.lexicon
	t := queryTerm{span: s, typed: typed, term: meant, begin: len(r.ways)}
	limit := math.Inf(1)
	for _, m := range meanings {
		n := x.number(m)
		if to := l.standsFor(n); to != nil {
			n, m = to[0], x.vocabulary.text(to[0])
		}
		known := n != strange
		if !known {
			n = meant
		}
		class := l.classOf(n)
		if class == stop {
			continue
		}
		if t.weight == 0 {
			t.term, t.weight = n, class.weight()
		}
		if known {
			if idf := x.idf(n); idf > 0 {
				limit = min(limit, idf)
			}
			r.addWays(n, t.weight, foreignWeight, limit)
		}
		if x.growth.ranker == RankerDefault {
			r.addRelatives(n, known, m, t.weight, limit, t.begin)
		}
	}
	if t.weight == 0 {
		return false
	}
	t.telling = t.weight * min(limit, x.idfOf(1))
	n := slices.Index(r.numbers, t.term)
	switch {
	case n >= 0 && t.term != meant:
		r.ways = r.ways[:t.begin]
		r.addNumber(c, uint8(n))
	case len(r.terms) == maxQueryTerms:
		r.ways, r.over = r.ways[:t.begin], true
	default:
		r.addNumber(c, r.addQueryTerm(t))
	}
	return true
}
