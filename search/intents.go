package search

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
)

//go:embed intents.txt
var intentsTable string

// An Intent is something that the writer of a message may want. See
// [DetectIntents].
type Intent struct {
	Name string

	// Confidence is above 0 and at most 1. It is not a probability.
	Confidence float64

	// Keywords lists the intent's keywords found in the message, each once, in
	// the order of the message. Joined by spaces, they make a search query.
	Keywords []string
}

// IntentWords lists the keywords of one intent, in any languages. Entries of a
// table with the same intent are merged.
//
// A keyword is one or several words. They are compared as in an [Index]:
// without case, accents and English endings. A keyword of several words matches
// if the message has them in a row; only characters other than letters and
// digits may stand between them. In scripts without spaces between words, the
// characters must follow each other. A keyword without letters and digits never
// matches.
type IntentWords struct {
	Intent   string
	Keywords []string
}

// DefaultIntents returns a copy of the table that [DetectIntents] uses if table
// is nil. The caller may change it. It has about 20 intents, such as search_web,
// read_files, query_database, manage_calendar and deploy, with keywords in
// Chinese, English, French, German, Japanese, Korean, Portuguese, Russian,
// Spanish and Vietnamese.
func DefaultIntents() []IntentWords { return parseIntents(intentsTable) }

// parseIntents reads a table from text. A line "[intent]" begins an entry; the
// lines "language: keyword, keyword" after it list its keywords.
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

// maxIntentBytes is how many bytes of a message DetectIntents reads.
const maxIntentBytes = 64 << 10

// DetectIntents returns the intents whose keywords a message contains, by
// descending confidence and then in the order of the table. It returns nil if
// there are none. If table is nil, it uses [DefaultIntents], compiled once. It
// compiles any other table on each call, at about 1 µs a keyword.
//
// The confidence is 1 − 2^−n, where n is the number of words in the keywords
// found: one gives 0.5, two give 0.75, three 0.88.
//
//   - A keyword that k intents share counts 1/k for each.
//   - In scripts without spaces between words, two characters count as a word.
//   - A keyword counts once, even if the message repeats it.
//   - A keyword inside a longer one found in the same place does not count:
//     "pull request" finds no "request". Keywords that only overlap both count.
//
// DetectIntents reads the first 64 KiB of a message, which may be any bytes.
func DetectIntents(message string, table []IntentWords) []Intent {
	c := defaultIntents()
	if table != nil {
		c = compileIntents(table)
	}
	return c.detect(message[:min(len(message), maxIntentBytes)])
}

var defaultIntents = sync.OnceValue(func() *intentTable { return compileIntents(DefaultIntents()) })

// An intentTable is a compiled table. It numbers terms from 1.
type intentTable struct {
	intents []string // in the order of the table
	numbers map[string]int32
	phrases []keywordPhrase
	byFirst [][]int32 // phrases by the number of their first term
}

// A keywordPhrase stands for all keywords that consist of the same terms.
type keywordPhrase struct {
	steps []keywordStep
	words int
	of    []keywordOwner // by ascending intent
}

type keywordOwner struct {
	intent  int    // index in intentTable.intents
	keyword string // as the table spells it
}

// A keywordStep is a term of a phrase. If joined is set, it must follow the term
// before it directly.
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

// add adds a keyword of an intent. phrases maps the steps of each phrase added
// so far to its number.
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
		if places[i-1].whole != 0 { // use the identifier rather than its parts
			s.term, i = places[i-1].whole, places[i-1].end
		}
		p.steps = append(p.steps, s)
		sign := byte(' ')
		if s.joined {
			sign = '+'
		}
		key = append(binary.LittleEndian.AppendUint32(key, uint32(s.term)), sign)
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

// A wordPlace is one word in a text, or one character of a script without
// spaces. The text "getURL(天气)" has the places
//
//	0  get; the identifier geturl begins here and ends before 2
//	1  url
//	2  天
//	3  气, joined
type wordPlace struct {
	term, whole int32 // numbers; 0 if the table lacks the term
	end         int   // the place after whole
	start       int32 // in the analyzer's bytes
	joined      bool  // nothing stands between it and the place before
	dense       bool  // it is a character of a script without spaces
}

// readPlaces returns the places of the text that a has read. number returns the
// number of a term, or 0.
func readPlaces(a *analyzer, number func(term []byte) int32) []wordPlace {
	places := make([]wordPlace, 0, len(a.terms))
	for i, t := range a.terms {
		switch t.form {
		case word, character:
			places = append(places, wordPlace{term: number(a.term(i)), start: t.start, dense: t.form == character})
		case pair:
			places[len(places)-1].joined = true
		case whole:
			// Its parts stand right before it in the analyzer's bytes.
			first := len(places)
			for first > 0 && places[first-1].start >= t.start-(t.full-t.start) && !places[first-1].dense {
				first--
			}
			if first == len(places) {
				places = append(places, wordPlace{start: t.start})
			}
			// "pullEr" has the term "pull" as a part and as a whole. Keep the part.
			if n := number(a.term(i)); n != places[first].term {
				places[first].whole, places[first].end = n, len(places)
			}
		}
	}
	return places
}

// countWords returns the number of words at places. Two joined characters count
// as one word; so does an identifier.
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

// sharedWord is 1 word as a fixed-point number. Integers give the same sum in
// any order, and 720,720 divides by each number of intents from 1 to 16.
const sharedWord = 720_720

var analyzers = sync.Pool{New: func() any { return new(analyzer) }}

// A sighting is a phrase found at the places [start, end) of a message.
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
	var widest sighting // the earlier sighting that ends last; on a tie, the first
	for _, s := range sightings {
		if s.end <= widest.end && (s.start != widest.start || s.end != widest.end) {
			continue // inside widest
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

// at reports whether p begins at places[start], and returns the place after it.
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
