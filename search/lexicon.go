package search

import (
	_ "embed"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

//go:embed lexicon.txt
var lexiconText string

// A Lexicon tells an [Index] which words to ignore and which words are related.
// Words are compared as terms: without case, accents and English endings. If a
// word splits into several terms, the last one counts.
type Lexicon struct {
	// Stop lists function words, such as "the" and "of". They are neither indexed
	// nor searched for.
	Stop []string

	// Faint lists what people say around a request, such as "please" and "want".
	// These words hardly count in a query that has others.
	Faint []string

	// Generic lists words that fit nearly any document, such as "get". They
	// count less in a query.
	Generic []string

	// Synonyms lists groups of words. A query with one word of a group also
	// finds the others, with less weight.
	Synonyms [][]string

	// Hints lead from words in a query to words in documents, in that
	// direction only.
	Hints []Hint

	// Abbreviations are read as the words of To, in documents, in queries and in the
	// other lists, as "repo" is read as "repository". Of several for one word, the first
	// counts.
	Abbreviations []Hint

	// Requests lists verbs that begin a request, such as "find" and "merge", in
	// lower case and just as people write them. In a long message, sentences that
	// begin so count more than others.
	Requests []string

	// Verbs say what documents do and what requests want.
	Verbs Verbs

	// Translations relate the words of From with each other, as Synonyms do,
	// and From with To in both directions, as Hints do.
	Translations []Hint

	// Foreign says what words of other languages mean in a query: To in a
	// document. It serves sentences of a query in which more words of From, unknown
	// to the index, stand than English stop words. A word of four letters or more
	// also stands for longer ones that begin with it, by up to six letters, and for
	// the parts of compounds. In a script without spaces, words are found anywhere.
	// Words whose meanings are all stop words are not searched for.
	Foreign []Hint
}

// Verbs are verbs by what they do. A document does what the first of these verbs in its
// name does, and a sentence of a query wants what the verb that begins it does. Questions
// want to read. To [RankerDefault], a document that does what no request of the query
// wants counts less, and least if it changes something where the query only wants to
// read. A document or a query without such a verb contradicts nothing. Of several lists
// with one verb, the first counts.
type Verbs struct {
	Read, Create, Update, Delete []string

	// Change has verbs that change something otherwise, perhaps in one of the last three
	// ways: they contradict only those of Read.
	Change []string
}

// A Hint says that a query with any word of From also finds documents with any
// word of To.
type Hint struct {
	From, To []string
}

// DefaultLexicon returns a copy of the lexicon that [NewIndex] uses if
// [Options.Lexicon] is nil. The caller may change it.
func DefaultLexicon() *Lexicon {
	l := defaultLexicon()
	l.Foreign = defaultForeign()
	return l
}

// defaultLexicon returns the lexicon without foreign words, which few searches
// need.
func defaultLexicon() *Lexicon {
	l, err := ParseLexicon(lexiconText)
	if err != nil {
		panic(err) // there is a test for it
	}
	return l
}

// ParseLexicon reads a lexicon from text with these sections:
//
//	[stop]          words, separated by spaces
//	[faint]         words, separated by spaces
//	[generic]       words, separated by spaces
//	[requests]      words, separated by spaces
//	[verbs]         lines such as "read = get list", with read, create, update, delete or change
//	[synonyms]      one group per line
//	[abbreviations] lines such as "pr = pull request"
//	[hints]         lines such as "xlsx csv > spreadsheet table"
//	[translations]  lines such as "天气 气象 = weather"
//	[foreign]       lines such as "datei fichier = file"
//
// Lines that begin with # are comments. An error names the line, from 1.
func ParseLexicon(words string) (*Lexicon, error) {
	l := new(Lexicon)
	section := ""
	for i, line := range strings.Split(words, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var err error
		switch {
		case line[0] == '[':
			section = line
			if !slices.Contains([]string{"[stop]", "[faint]", "[generic]", "[requests]", "[verbs]", "[synonyms]", "[abbreviations]", "[hints]", "[translations]", "[foreign]"}, section) {
				err = fmt.Errorf("unknown section %s", section)
			}
		case section == "[stop]":
			l.Stop = append(l.Stop, strings.Fields(line)...)
		case section == "[faint]":
			l.Faint = append(l.Faint, strings.Fields(line)...)
		case section == "[generic]":
			l.Generic = append(l.Generic, strings.Fields(line)...)
		case section == "[requests]":
			l.Requests = append(l.Requests, strings.Fields(line)...)
		case section == "[verbs]":
			err = l.Verbs.parse(line)
		case section == "[synonyms]":
			l.Synonyms = append(l.Synonyms, strings.Fields(line))
		case section == "[abbreviations]":
			l.Abbreviations, err = appendHint(l.Abbreviations, line, "=")
		case section == "[hints]":
			l.Hints, err = appendHint(l.Hints, line, ">")
		case section == "[translations]":
			l.Translations, err = appendHint(l.Translations, line, "=")
		case section == "[foreign]":
			l.Foreign, err = appendHint(l.Foreign, line, "=")
		default:
			err = fmt.Errorf("%q comes before the first section", line)
		}
		if err != nil {
			return nil, text.Bounded(fmt.Errorf("search: lexicon, line %d: %w", i+1, err))
		}
	}
	return l, nil
}

func appendHint(list []Hint, line, sign string) ([]Hint, error) {
	from, to, _ := strings.Cut(line, sign)
	h := Hint{strings.Fields(from), strings.Fields(to)}
	if len(h.From) == 0 || len(h.To) == 0 || strings.Contains(to, sign) {
		return nil, fmt.Errorf("%q must have words, one %q and words", line, sign)
	}
	return append(list, h), nil
}

// Weights of the ways to find a query term, where an exact match weighs 1.
const (
	synonymWeight  = 0.4
	hintWeight     = 0.6
	relativeWeight = 0.6 // see familyPrefix
	slipWeight     = 0.9 // see Index.correct
)

// Weights of query terms, where an ordinary term weighs 1.
const (
	genericWeight   = 0.65
	faintWeight     = 0.2
	joinedWeight    = 0.9 // two words of the query written as one; see retrieval.addJoined
	characterWeight = 0.5 // one character of a script without spaces; it is seldom a word
)

// A compiledLexicon is a Lexicon whose words are terms, numbered from 0.
type compiledLexicon struct {
	terms   []string
	numbers map[string]uint32
	class   []class       // by term
	others  [][]expansion // by term; ascending terms
	stands  [][]uint32    // by term: what an abbreviation stands for, or nil

	verbs []verbClass // by term

	requests map[string]bool

	base    func() *lexiconBase // computed on first use
	foreign func() foreignWords // the same
}

type class uint8

const (
	content class = iota
	generic
	faint
	stop
)

func (c class) weight() float64 {
	switch c {
	case generic:
		return genericWeight
	case faint:
		return faintWeight
	}
	return 1
}

// An expansion is a term that also finds another one.
type expansion struct {
	term   uint32
	weight float64
}

var compileDefault = sync.OnceValue(func() *compiledLexicon {
	c := compile(defaultLexicon())
	c.foreign = foreignTable
	return c
})

func compile(l *Lexicon) *compiledLexicon {
	c := &compiledLexicon{numbers: make(map[string]uint32), requests: make(map[string]bool)}
	classify := func(words []string, class class) {
		for _, n := range c.add(words) {
			c.class[n] = class
		}
	}
	relate := func(from, to []string, weight float64) {
		for _, f := range c.add(from) {
			for _, t := range c.add(to) {
				c.relate(f, t, weight)
			}
		}
	}
	for _, w := range l.Requests {
		c.requests[w] = true
	}
	for _, h := range l.Abbreviations { // first, since the other lists may have them
		to := c.add(h.To)
		for _, w := range h.From {
			if n, ok := c.number(w); ok && c.stands[n] == nil {
				c.stands[n] = to
			}
		}
	}
	classify(l.Generic, generic)
	classify(l.Faint, faint)
	classify(l.Stop, stop)
	for class, words := range l.Verbs.lists() {
		for _, n := range c.add(words) {
			if c.verbs[n] == noVerb {
				c.verbs[n] = verbClass(class)
			}
		}
	}
	for _, group := range l.Synonyms {
		relate(group, group, synonymWeight)
	}
	for _, h := range l.Hints {
		relate(h.From, h.To, hintWeight)
	}
	for _, t := range l.Translations {
		relate(t.From, t.From, synonymWeight)
		relate(t.From, t.To, hintWeight)
		relate(t.To, t.From, hintWeight)
	}
	for _, others := range c.others {
		sort.Slice(others, func(i, j int) bool { return others[i].term < others[j].term })
	}
	foreign := newForeignWords(l.Foreign)
	c.foreign = func() foreignWords { return foreign }
	c.base = sync.OnceValue(func() *lexiconBase { return newLexiconBase(c.terms) })
	return c
}

// number returns the number of a word and numbers a new one. ok is false if the word has
// no term.
func (c *compiledLexicon) number(word string) (n uint32, ok bool) {
	var a analyzer
	a.add([]byte(word))
	if len(a.terms) == 0 {
		return 0, false
	}
	term := string(a.term(len(a.terms) - 1))
	if n, ok = c.numbers[term]; !ok {
		n = uint32(len(c.terms))
		c.numbers[term] = n
		c.terms = append(c.terms, term)
		c.class = append(c.class, content)
		c.others = append(c.others, nil)
		c.stands = append(c.stands, nil)
		c.verbs = append(c.verbs, noVerb)
	}
	return n, true
}

// add returns the numbers of words, those of what it stands for in place of an
// abbreviation. It skips words without a term.
func (c *compiledLexicon) add(words []string) (numbers []uint32) {
	for _, w := range words {
		n, ok := c.number(w)
		switch {
		case !ok:
		case c.stands[n] != nil:
			numbers = append(numbers, c.stands[n]...)
		default:
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (c *compiledLexicon) relate(from, to uint32, weight float64) {
	if from == to {
		return
	}
	for i := range c.others[from] {
		if e := &c.others[from][i]; e.term == to {
			e.weight = max(e.weight, weight)
			return
		}
	}
	c.others[from] = append(c.others[from], expansion{to, weight})
}

// has reports whether the lexicon contains term.
func (c *compiledLexicon) has(term uint32) bool { return term < uint32(len(c.terms)) }

func (c *compiledLexicon) classOf(term uint32) class {
	if c.has(term) {
		return c.class[term]
	}
	return content
}

// standsFor returns the terms that an abbreviation stands for, or nil.
func (c *compiledLexicon) standsFor(term uint32) []uint32 {
	if c.has(term) {
		return c.stands[term]
	}
	return nil
}

func (c *compiledLexicon) stops(term uint32) bool { return c.classOf(term) == stop }

// says reports whether term is a word that people say around a request. A word
// that may be a slip of it most likely is.
func (c *compiledLexicon) says(term uint32) bool { return c.classOf(term) >= faint }
