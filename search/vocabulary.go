package search

import (
	"bytes"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A vocabulary holds the terms of an index by number. For ASCII words it also
// holds groups of similar terms. A family is the terms that begin with the same
// five letters, such as "config" and "configur". A spelling group is the
// terms with the same first letter and length, candidates for correcting a
// misspelled word.
//
// A vocabulary may extend a base, as its terms do. Its groups have only the
// terms that the base does not have.
type vocabulary struct {
	base   *vocabulary // nil in a base
	terms  dictionaryView
	groups dictionaryView   // names: the letters of a family, or a first letter and a length
	lists  paged[[]similar] // by group
}

func (v *vocabulary) len() int { return v.terms.len() }

// text returns the term of a number.
func (v *vocabulary) text(term uint32) []byte { return v.terms.text(term) }

// A similar is a term in a group.
type similar struct {
	term    uint32
	letters uint32 // the set of its letters, one bit each
}

const (
	familyPrefix = 5  // letters
	familySpread = 5  // greatest difference in length between relatives
	maxRelatives = 64 // with more, none of them are used

	// Only words of this many bytes are corrected. In a shorter word one letter
	// makes another word; a longer one is hardly a word.
	minSpelled = 5
	maxSpelled = 24
)

// family returns the name of a term's family, or nil if it has none.
func family(term []byte) []byte {
	if len(term) < familyPrefix {
		return nil
	}
	for _, c := range term[:familyPrefix] {
		if !text.IsLower(c) {
			return nil
		}
	}
	return term[:familyPrefix]
}

// spelling returns the name of the group of terms with a first letter and a
// length.
func spelling(first byte, length int) [2]byte { return [2]byte{first, byte(length)} }

// group adds the terms from number begin on to their groups.
func (g *growth) group(v *vocabulary, begin int) {
	for n := begin; n < g.terms.len(); n++ {
		term := g.terms.text(uint32(n))
		m := similar{uint32(n), text.Letters(term)}
		if name := family(term); name != nil {
			g.join(v, name, m)
		}
		if len(term) >= minSpelled-1 && len(term) <= maxSpelled+1 && text.IsLower(term[0]) {
			name := spelling(term[0], len(term))
			g.join(v, name[:], m)
		}
	}
	v.groups = g.groups.dictionaryView
	v.terms = g.terms.dictionaryView
}

func (g *growth) join(v *vocabulary, name []byte, m similar) {
	n := g.groups.add(name)
	v.lists.grow(int(n) + 1)
	list := v.lists.change(n)
	*list = append(*list, m)
}

// members returns the members of a group: those of the base and the others.
func (v *vocabulary) members(name []byte) (parts [2][]similar) {
	hash := maphash.Bytes(seed, name)
	for i, v := range [...]*vocabulary{v.base, v} {
		if n, ok := v.groups.find(hash, name); ok {
			parts[i] = *v.lists.at(n)
		}
	}
	return parts
}

// A slip is a kind of typing error. A lower value is more likely.
type slip int

const (
	swapped slip = iota + 1 // two neighbouring letters swapped
	edited                  // one letter removed, inserted or replaced
)

// slipOf returns the one slip that turns term into word, or 0 if there is none.
// Their lengths differ by at most 1. The first letter must be right unless it is
// swapped with the second.
func slipOf(word, term []byte) slip {
	n := min(len(word), len(term))
	i := 0
	for i < n && word[i] == term[i] {
		i++
	}
	switch {
	case len(word) == len(term) && i+1 < n && word[i] == term[i+1] && word[i+1] == term[i] && string(word[i+2:]) == string(term[i+2:]):
		return swapped
	case i == 0:
	case len(word) == len(term) && i < n && string(word[i+1:]) == string(term[i+1:]),
		len(word) > len(term) && string(word[i+1:]) == string(term[i:]),
		len(word) < len(term) && string(word[i:]) == string(term[i+1:]):
		return edited
	}
	return 0
}

// undo returns the known term that word becomes if two neighbouring letters are
// swapped back or one of a pair is left out, before its ending is removed. Of
// several, it prefers stop words and faint ones, then the term in more documents,
// then the first in the order of strings. spelled is a copy of word.
func (x *Index) undo(word, spelled []byte) (term uint32, ok bool) {
	if len(word) < minSpelled || len(word) > maxSpelled || !text.IsLower(word[0]) {
		return 0, false
	}
	var count int32
	for i := range len(word) - 1 {
		spelled = append(spelled[:0], word...)
		if word[i] == word[i+1] {
			spelled = append(spelled[:i], word[i+1:]...)
		} else {
			spelled[i], spelled[i+1] = word[i+1], word[i]
		}
		m := x.number(spelled[:stem(spelled)])
		if m == strange {
			continue
		}
		n := x.heads.at(m).df()
		if x.growth.lexicon.says(m) {
			n = math.MaxInt32
		}
		if !ok || n > count || n == count && bytes.Compare(x.vocabulary.text(m), x.vocabulary.text(term)) < 0 {
			term, count, ok = m, n, true
		}
	}
	return term, ok
}

// correct returns the known term that word most likely misspells. If there is
// none, it returns the one that the word's stem misspells. A stem without an
// ending such as -er is no stop word: "weater" does not mean "what".
func (x *Index) correct(word, stem []byte) (term uint32, ok bool) {
	if len(word) < minSpelled {
		return 0, false
	}
	if term, ok = x.closest(word, true); !ok && string(stem) != string(word) {
		term, ok = x.closest(stem, len(word)-len(stem) <= 1)
	}
	return term, ok
}

// closest returns the known term that is one slip away from w. It prefers swapped
// letters to edited ones, then stop words and faint ones, then the term in more
// documents, then the first in the order of strings. Unless stops is true, it
// leaves out stop words.
func (x *Index) closest(w []byte, stops bool) (term uint32, ok bool) {
	if len(w) < minSpelled-1 || len(w) > maxSpelled || !text.IsLower(w[0]) {
		return 0, false
	}
	var best slip
	var count int32
	set := text.Letters(w)
	for length := len(w) - 1; length <= len(w)+2; length++ {
		name := spelling(w[0], length)
		if length == len(w)+2 {
			name = spelling(w[1], len(w)) // the first two are swapped
		}
		for _, part := range x.vocabulary.members(name[:]) {
			for _, m := range part {
				if bits.OnesCount32(m.letters^set) > 2 || int(m.term) >= x.vocabulary.len() {
					continue
				}
				text := x.vocabulary.text(m.term)
				kind := slipOf(w, text)
				if kind == 0 || ok && kind > best {
					continue
				}
				n := x.heads.at(m.term).df()
				if l := x.growth.lexicon; l.stops(m.term) && !stops {
					continue
				} else if l.says(m.term) {
					n = math.MaxInt32
				} else if n == 0 && !l.has(m.term) {
					continue
				}
				if !ok || kind < best || n > count || n == count && bytes.Compare(text, x.vocabulary.text(term)) < 0 {
					term, best, count, ok = m.term, kind, n, true
				}
			}
		}
	}
	return term, ok
}
