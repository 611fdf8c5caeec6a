package search

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
)

//go:embed intents.txt
var intentsText string

// An Intent is what a message seems to be about, by its words: see
// [DetectIntents].
type Intent struct {
	Name string

	// Confidence is above 0 and at most 1. It is no probability.
	Confidence float64

	// Keywords are those of the table that the message has, each once, in the
	// order of the message. Joined by spaces they are a query for tools.
	Keywords []string
}

// IntentWords are keywords that speak for an intent, in any languages. A table
// with several for one intent has it once, with all their keywords.
//
// A keyword is one or several words. They are compared as an [Index] does:
// without case, accents and English endings. One of several words is in a
// message that has all of them in a row, whatever stands between them that is
// no letter or digit. In scripts without spaces between words, what has to
// follow are the characters. A keyword without letters and digits is never found.
type IntentWords struct {
	Intent   string
	Keywords []string
}

// DefaultIntents returns the table that is used if none is given, for a host
// that wants to change it: some 20 things that people do by MCP servers, such as
// search_web, read_files, query_database, manage_calendar and deploy, in Chinese,
// English, French, German, Japanese, Korean, Portuguese, Russian, Spanish and
// Vietnamese.
func DefaultIntents() []IntentWords { return parseIntents(intentsText) }

// parseIntents reads a table from text: lines of an intent in brackets, and of
// a language, a colon, and keywords with commas between them.
func parseIntents(text string) (table []IntentWords) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			table = append(table, IntentWords{Intent: strings.Trim(line, "[]")})
		default:
			last := &table[len(table)-1]
			_, keywords, _ := strings.Cut(line, ":")
			for k := range strings.SplitSeq(keywords, ",") {
				last.Keywords = append(last.Keywords, strings.TrimSpace(k))
			}
		}
	}
	return table
}

// maxIntentBytes bounds how much of a message is read.
const maxIntentBytes = 64 << 10

// DetectIntents returns the intents of the table that a message has keywords
// of, by descending confidence, those of equal confidence in the order of the
// table, and nil if there are none. If table is nil, it is [DefaultIntents],
// which is made ready once; another one is with each call, at about 1 µs a keyword.
//
// The confidence is 1 − 2^−n, where n is the number of words in the keywords
// found: one gives 0.5, two give 0.75, three 0.88. A keyword that k intents have
// counts 1/k for each. Two characters count as a word in scripts without spaces.
// A keyword counts once, however often it is in the message and however it is
// spelled in the table, and not where it is a part of a longer one that is
// found: of "pull request", "request" says nothing. Those that overlap count both. So what else a message has
// changes nothing, unless it stands between the words of a keyword, and the same
// message and table always give the same.
//
// Of a message the first 64 KiB are read. It may be any bytes.
func DetectIntents(message string, table []IntentWords) []Intent {
	c := defaultIntents()
	if table != nil {
		c = compileIntents(table)
	}
	return c.detect(message[:min(len(message), maxIntentBytes)])
}

var defaultIntents = sync.OnceValue(func() *intentTable { return compileIntents(DefaultIntents()) })

// An intentTable is a table over terms, which it numbers from 1.
type intentTable struct {
	intents []string // in the order of the table
	numbers map[string]int32
	phrases []keywordPhrase
	byFirst [][]int32 // phrases by the number of their first term
}

// A keywordPhrase is keywords that are the same terms.
type keywordPhrase struct {
	steps []keywordStep
	words int
	of    []keywordOwner // ascending intent
}

type keywordOwner struct {
	intent  int    // in intentTable.intents
	keyword string // as it is spelled there
}

// A keywordStep is a term of a phrase. If joined, there may be nothing between it and
// the one before.
type keywordStep struct {
	term   int32
	joined bool
}

func compileIntents(table []IntentWords) *intentTable {
	c := &intentTable{numbers: make(map[string]int32), byFirst: make([][]int32, 1)}
	intents := make(map[string]int)
	phrases := make(map[string]int32)
	var a analyzer
	for _, entry := range table {
		intent, ok := intents[entry.Intent]
		if !ok {
			intent = len(c.intents)
			intents[entry.Intent] = intent
			c.intents = append(c.intents, entry.Intent)
		}
		for _, keyword := range entry.Keywords {
			c.add(&a, phrases, intent, keyword)
		}
	}
	return c
}

// add adds a keyword. Phrases are the numbers of those so far by their steps.
func (c *intentTable) add(a *analyzer, phrases map[string]int32, intent int, keyword string) {
	a.reset()
	a.add([]byte(keyword))
	places := readPlaces(a, func(term []byte) int32 {
		n, ok := c.numbers[string(term)]
		if !ok {
			n = int32(len(c.byFirst))
			c.numbers[string(term)] = n
			c.byFirst = append(c.byFirst, nil)
		}
		return n
	})
	p := keywordPhrase{words: countWords(places)}
	var key []byte
	for i := 0; i < len(places); {
		s := keywordStep{places[i].term, places[i].joined}
		i++
		if places[i-1].whole != 0 { // of an identifier, rather than its parts
			s.term, i = places[i-1].whole, places[i-1].end
		}
		p.steps = append(p.steps, s)
		key = append(key, byte(s.term), byte(s.term>>8), byte(s.term>>16), byte(s.term>>24), ' ')
		if s.joined {
			key[len(key)-1] = '+'
		}
	}
	if len(p.steps) == 0 {
		return
	}
	n, ok := phrases[string(key)]
	if !ok {
		n = int32(len(c.phrases))
		phrases[string(key)] = n
		c.phrases = append(c.phrases, p)
		first := p.steps[0].term
		c.byFirst[first] = append(c.byFirst[first], n)
	}
	of := &c.phrases[n].of
	i, ok := slices.BinarySearchFunc(*of, intent, func(o keywordOwner, intent int) int { return cmp.Compare(o.intent, intent) })
	if !ok {
		*of = slices.Insert(*of, i, keywordOwner{intent, keyword})
	}
}

// A wordPlace is where a text has a word, or a character of a script without
// spaces. The text "getURL(天气)" has the places
//
//	0  get, where also the identifier geturl begins, which ends before 2
//	1  url
//	2  天
//	3  气, joined
type wordPlace struct {
	term, whole int32 // numbers, 0 for those that are not in the table
	end         int   // where whole ends
	start       int32 // in the analyzer's bytes
	joined      bool  // to the place before
	dense       bool
}

// readPlaces returns the places of what a has read, with the numbers of terms.
func readPlaces(a *analyzer, number func(term []byte) int32) []wordPlace {
	places := make([]wordPlace, 0, len(a.terms))
	for i, t := range a.terms {
		switch t.form {
		case word, character:
			places = append(places, wordPlace{term: number(a.term(i)), start: t.start, dense: t.form == character})
		case pair:
			places[len(places)-1].joined = true
		case whole:
			// Its parts have the bytes before its own, less those that are dropped.
			first := len(places)
			for first > 0 && places[first-1].start >= t.start-(t.full-t.start) && !places[first-1].dense {
				first--
			}
			if first == len(places) {
				places = append(places, wordPlace{start: t.start})
			}
			// Of "pullEr" both are "pull": then it is its parts only.
			if n := number(a.term(i)); n != places[first].term {
				places[first].whole, places[first].end = n, len(places)
			}
		}
	}
	return places
}

// countWords returns the number of words at places, two joined characters being
// one, and an identifier too.
func countWords(places []wordPlace) (n int) {
	for i := 0; i < len(places); {
		first := i
		i++
		switch {
		case places[first].whole != 0:
			i = places[first].end
			n++
		case places[first].dense:
			for i < len(places) && places[i].joined {
				i++
			}
			n += max((i-first)/2, 1)
		default:
			n++
		}
	}
	return n
}

// sharedWord is a word as an integer that 2 to 16 intents can share, as a sum of
// integers is the same in any order.
const sharedWord = 720_720

var analyzers = sync.Pool{New: func() any { return new(analyzer) }}

// A sighting is a phrase at places [start, end) of a message.
type sighting struct {
	start, end int
	phrase     int32
}

func (c *intentTable) detect(message string) []Intent {
	a := analyzers.Get().(*analyzer)
	a.reset()
	a.add([]byte(message))
	places := readPlaces(a, func(term []byte) int32 { return c.numbers[string(term)] })
	analyzers.Put(a)
	sightings := make([]sighting, 0, 64)
	for start, p := range places {
		for _, first := range [2]int32{p.term, p.whole} {
			for _, n := range c.byFirst[first] {
				if end, ok := c.phrases[n].at(places, start); ok {
					sightings = append(sightings, sighting{start, end, n})
				}
			}
		}
	}
	slices.SortFunc(sightings, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.phrase, b.phrase))
	})

	found := make([]Intent, len(c.intents))
	words := make([]int, len(c.intents)) // in units of 1/sharedWord
	seen := make([]bool, len(c.phrases))
	var widest sighting // of those before, the one that ends last, and of these the first
	for _, s := range sightings {
		if s.end <= widest.end && (s.start != widest.start || s.end != widest.end) {
			continue // a part of it
		}
		widest = s
		if seen[s.phrase] {
			continue
		}
		seen[s.phrase] = true
		p := &c.phrases[s.phrase]
		for _, o := range p.of {
			found[o.intent].Keywords = append(found[o.intent].Keywords, o.keyword)
			words[o.intent] += p.words * sharedWord / len(p.of)
		}
	}

	var list []Intent
	for i, f := range found {
		if f.Keywords != nil {
			f.Name, f.Confidence = c.intents[i], 1-math.Exp2(-float64(words[i])/sharedWord)
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b Intent) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return list
}

// at returns where p ends, if it begins at places[start].
func (p *keywordPhrase) at(places []wordPlace, start int) (end int, ok bool) {
	end = start
	for i, s := range p.steps {
		switch {
		case end == len(places), i > 0 && s.joined && !places[end].joined:
			return 0, false
		case places[end].term == s.term:
			end++
		case places[end].whole == s.term:
			end = places[end].end
		default:
			return 0, false
		}
	}
	return end, true
}
