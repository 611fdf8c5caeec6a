package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A plainIndex ranks documents as an [Index] should, but with maps and loops over
// all documents and terms: no numbers, postings, groups, pages or scratch space.
type plainIndex struct {
	ranker    Ranker
	threshold float64
	lexicon   *plainLexicon
	docs      []*plainDocument
	df        map[string]int // by term, of at least one document
}

type plainDocument struct {
	counts  map[string]*[fields]int // by term: how often in which field
	named   map[string]bool         // the words of the name
	lengths [fields]int
	first   string // of the name
	does    verbClass
	worth   map[string]uint64 // by term, in units
}

// A plainLexicon is a [Lexicon] over terms.
type plainLexicon struct {
	class  map[string]class // of all its terms
	asks   func(clause []byte) bool
	others map[string]map[string]float64
	stands map[string][]string // what an abbreviation stands for
	verbs  map[string]verbClass

	documents map[*Document]*plainDocument // read with it
}

// A plainTerm is a term of a text.
type plainTerm struct {
	text    string
	full    string // before it was stemmed, but for its last letter, which stemming may change
	written string // before it was stemmed
	form    form
}

func plainTerms(text string) (terms []plainTerm) {
	var a analyzer
	a.add([]byte(text))
	for i, s := range a.terms {
		terms = append(terms, plainTerm{string(a.term(i)), string(a.bytes[s.start:s.full]), string(a.appendWritten(nil, s)), s.form})
	}
	return terms
}

func newPlainLexicon(l *Lexicon) *plainLexicon {
	p := &plainLexicon{map[string]class{}, compile(l).asks, map[string]map[string]float64{}, map[string][]string{}, map[string]verbClass{}, map[*Document]*plainDocument{}}
	classify := func(words []string, class class) (terms []string) {
		for _, w := range words {
			all := plainTerms(w)
			if len(all) == 0 {
				continue
			}
			term := all[len(all)-1].text
			p.class[term] = max(p.class[term], content)
			for _, term := range p.stand(term) {
				p.class[term] = max(p.class[term], class) // a stop word is nothing else
				terms = append(terms, term)
			}
		}
		return terms
	}
	for _, h := range l.Abbreviations {
		to := classify(h.To, content)
		for _, w := range h.From {
			classify([]string{w}, content)
			if all := plainTerms(w); len(all) > 0 && p.stands[all[len(all)-1].text] == nil && to != nil {
				p.stands[all[len(all)-1].text] = to
			}
		}
	}
	for i, words := range [][]string{l.Verbs.Read, l.Verbs.Create, l.Verbs.Update, l.Verbs.Delete, l.Verbs.Change} {
		for _, term := range classify(words, content) {
			if p.verbs[term] == noVerb {
				p.verbs[term] = []verbClass{reads, creates, updates, deletes, changes}[i]
			}
		}
	}
	relate := func(from, to []string, weight float64) {
		for _, f := range classify(from, content) {
			for _, t := range classify(to, content) {
				if f == t {
					continue
				}
				if p.others[f] == nil {
					p.others[f] = map[string]float64{}
				}
				p.others[f][t] = max(p.others[f][t], weight)
			}
		}
	}
	classify(l.Stop, stop)
	classify(l.Faint, faint)
	classify(l.Generic, generic)
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
	return p
}

func newPlainIndex(docs []*Document, ranker Ranker, l *plainLexicon, threshold float64) *plainIndex {
	p := &plainIndex{ranker: ranker, threshold: threshold, lexicon: l, df: map[string]int{}}
	var total [fields]int
	said := map[string]int{}
	for _, d := range docs {
		pd := l.read(d)
		p.docs = append(p.docs, pd)
		for f, length := range pd.lengths {
			total[f] += length
		}
		for term, counts := range pd.counts {
			if slices.Max(counts[:inInstructions]) > 0 {
				p.df[term]++
			} else {
				said[term]++
			}
		}
	}
	for term, n := range said {
		if p.df[term] == 0 {
			p.df[term] = n
		}
	}
	for _, d := range p.docs {
		for term, counts := range d.counts {
			tf, parameters := 0.0, 0.0
			for f, n := range counts {
				if n == 0 {
					continue
				}
				w := fieldWeights[f]
				count := float64(n)
				if w.prose {
					count = math.Sqrt(count)
				}
				add := w.weight * count / (1 - w.b + w.b*plainScale(f, float64(d.lengths[f]))/plainAverage(f, total[f], len(docs)))
				switch f {
				case inParameters, inTexts, inNested:
					parameters += add
				default:
					tf += add
				}
			}
			tf += min(parameters, parametersCap)
			d.worth[term] = uint64(math.Round(65536 * tf * (1.2 + 1) / (tf + 1.2)))
		}
	}
	return p
}

// stand returns what a term stands for.
func (l *plainLexicon) stand(term string) []string {
	if to := l.stands[term]; to != nil {
		return to
	}
	return []string{term}
}

// read counts the terms of d, unless it did before.
func (l *plainLexicon) read(d *Document) *plainDocument {
	if before, ok := l.documents[d]; ok {
		return &plainDocument{counts: before.counts, named: before.named, lengths: before.lengths, first: before.first, does: before.does, worth: map[string]uint64{}}
	}
	p := &plainDocument{counts: map[string]*[fields]int{}, named: map[string]bool{}, worth: map[string]uint64{}}
	verb := noVerb
	count := func(field int, text string) {
		for _, t := range plainTerms(text) {
			for _, term := range l.stand(t.text) {
				if l.class[term] == stop || p.lengths[field] == 65535 {
					continue
				}
				if field == inName && p.first == "" {
					p.first = term
				}
				if field == inName && (t.form != whole || term == p.first) {
					p.named[term] = true
				}
				if field == inName && t.form != whole && verb == noVerb {
					verb = l.verbs[term]
				}
				if p.counts[term] == nil {
					p.counts[term] = new([fields]int)
				}
				if field == inInstructions && p.counts[term][field] > 0 {
					continue
				}
				p.lengths[field]++
				p.counts[term][field]++
			}
		}
	}
	count(inServer, d.Server)
	count(inName, d.Name)
	count(inTitle, d.Title)
	count(inDescription, d.Description)
	count(inHints, d.Hints)
	count(inInstructions, d.Instructions)
	at := func(level, field int) int {
		if level > 1 {
			return inNested
		}
		return field
	}
	schema.Walk(d.InputSchema, func(level int, name []byte) { count(at(level, inParameters), string(name)) }, func(level int, text []byte) { count(at(level, inTexts), string(text)) })
	if p.does = verb; d.ReadOnly && verb == noVerb {
		p.does = reads
	} else if d.ReadOnly && verb != reads {
		p.does = noVerb
	}
	l.documents[d] = p
	return p
}

func plainScale(field int, length float64) float64 {
	if fieldWeights[field].prose && length > 80 {
		return length * math.Log(81) / 80
	}
	if fieldWeights[field].prose {
		return math.Log1p(length)
	}
	return length
}

// plainAverage is the average length, rounded to 6 bits.
func plainAverage(field, total, docs int) float64 {
	if total == 0 {
		return 1
	}
	mean, power := plainScale(field, float64(total)/float64(docs)), 1.0
	for mean >= power {
		power *= 2
	}
	for mean < power/2 {
		power /= 2
	}
	return math.Round(mean/power*64) / 64 * power
}

func (p *plainIndex) idf(term string) float64 {
	if n := p.df[term]; n > 0 {
		return p.idfOf(n)
	}
	return 0
}

func (p *plainIndex) idfOf(n int) float64 {
	return math.Log1p((float64(len(p.docs)) - float64(n) + 0.5) / (float64(n) + 0.5))
}

// A plainQuery is one distinct term of a query.
type plainQuery struct {
	ways   map[string]float64 // factor by term of the index
	weight map[string]uint64  // by term of the index, in units
	text   string             // the term itself
	exact  string             // the same, or what it was corrected to

	telling float64 // weight × idf
	faint   bool
	fits    bool // nearly any document
	typed   string
	form    form
	central bool
}

// term returns one term of a query. ok is false if it finds nothing.
func (p *plainIndex) term(t plainTerm, weight float64) (q plainQuery, ok bool) {
	known := p.df[t.text] > 0
	class := p.lexicon.class[t.text]
	if class == stop || t.form == whole && !known {
		return q, false
	}
	base := weight
	weight *= class.weight()
	if t.form == character {
		weight *= characterWeight
	}
	limit := math.Inf(1)
	if known {
		limit = p.idf(t.text)
	}
	q = plainQuery{ways: map[string]float64{}, weight: map[string]uint64{}, text: t.text, exact: t.text, typed: t.written, form: t.form}
	way := func(term string, factor float64) {
		if p.df[term] > 0 {
			q.ways[term] = max(q.ways[term], factor)
		}
	}
	expand := func(term string, factor float64) {
		way(term, factor)
		for other, weight := range p.lexicon.others[term] {
			way(other, factor*weight)
		}
	}
	expand(t.text, 1)
	if t.form == word && p.ranker == RankerDefault {
		var relatives []string
		for other := range p.df {
			if other != t.text && related(t.text, other) {
				relatives = append(relatives, other)
			}
		}
		if len(relatives) <= 64 { // otherwise none are used
			for _, other := range relatives {
				way(other, relativeWeight)
			}
		}
		_, inLexicon := p.lexicon.class[t.text]
		if len(q.ways) == 0 || !known && !inLexicon {
			fix, ok := p.undo(t.full)
			if !ok && len(q.ways) == 0 {
				fix, ok = p.correct(t.full, t.text)
			}
			if ok {
				fix = p.lexicon.stand(fix)[0]
				if p.lexicon.class[fix] == stop {
					return q, false
				}
				weight = base * p.lexicon.class[fix].weight()
				if p.df[fix] > 0 {
					limit = p.idf(fix)
				}
				q.exact = fix
				expand(fix, slipWeight)
			}
		}
	}
	for term, factor := range q.ways {
		w := weight
		if factor < 1 {
			w = min(w, p.lexicon.class[term].weight())
		}
		q.weight[term] = uint64(math.Round(65536 * w * factor * min(p.idf(term), limit)))
	}
	q.telling = weight * min(limit, p.idfOf(1))
	q.faint, q.fits = weight <= faintWeight, weight <= genericWeight
	return q, true
}

// related reports whether two words begin with the same five letters and
// differ by at most five in length.
func related(a, b string) bool {
	if len(a) < 5 || len(b) < 5 || a[:5] != b[:5] || len(a)-len(b) > 5 || len(b)-len(a) > 5 {
		return false
	}
	return strings.IndexFunc(a[:5], func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// plainSlip is slipOf by trying all slips.
func plainSlip(word, term string) slip {
	if len(word)-len(term) > 1 || len(term)-len(word) > 1 {
		return 0
	}
	for i := range len(word) - 1 {
		if word[i] != word[i+1] && word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:] == term {
			return swapped
		}
	}
	if word == "" || term == "" || word[0] != term[0] {
		return 0
	}
	for i := range len(word) {
		if word[:i]+word[i+1:] == term {
			return edited
		}
		if len(word) == len(term) && word != term && word[:i]+term[i:i+1]+word[i+1:] == term {
			return edited
		}
	}
	for i := range len(term) {
		if term[:i]+term[i+1:] == word {
			return edited
		}
	}
	return 0
}

// undo tries all slips of two letters.
func (p *plainIndex) undo(word string) (best string, ok bool) {
	if len(word) < 5 || len(word) > 24 || !text.IsLower(word[0]) {
		return "", false
	}
	count := 0
	for i := range len(word) - 1 {
		spelled := word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
		if word[i] == word[i+1] {
			spelled = word[:i] + word[i+1:]
		}
		b := []byte(spelled)
		term := string(b[:stem(b)])
		n := p.df[term]
		if class, inLexicon := p.lexicon.class[term]; class >= faint {
			n = math.MaxInt
		} else if n == 0 && !inLexicon {
			continue
		}
		if !ok || n > count || n == count && term < best {
			best, count, ok = term, n, true
		}
	}
	return best, ok
}

// correct goes through all terms of the index and the lexicon.
func (p *plainIndex) correct(word, stem string) (best string, ok bool) {
	if len(word) < 5 {
		return "", false
	}
	var kind slip
	var count int
	for i, w := range []string{word, stem} {
		if ok || len(w) < 5-1 || len(w) > 24 || !text.IsLower(w[0]) {
			continue
		}
		try := func(term string) {
			if len(term) < 5-1 || len(term) > 24+1 || !text.IsLower(term[0]) {
				return
			}
			k := plainSlip(w, term)
			if k == 0 || i == 1 && len(stem) < len(word)-1 && p.lexicon.class[term] == stop {
				return
			}
			n := p.df[term]
			if p.lexicon.class[term] >= faint {
				n = math.MaxInt
			}
			if !ok || cmp.Or(cmp.Compare(k, kind), cmp.Compare(count, n), strings.Compare(term, best)) < 0 {
				best, kind, count, ok = term, k, n, true
			}
		}
		for term := range p.df {
			try(term)
		}
		for term := range p.lexicon.class {
			try(term)
		}
	}
	return best, ok
}

// share returns what the best way to find a term in d is worth.
func (d *plainDocument) share(q plainQuery) (best uint64) {
	for term, weight := range q.weight {
		best = max(best, weight*d.worth[term]/65536)
	}
	return best
}

// explained compares an explanation with the plain index. It returns how they differ, or "".
func (p *plainIndex) explained(e Explanation, query string, doc int) string {
	m := p.message(query)
	want, got := map[string]float64{}, map[string]float64{} // by word
	var missing []string
	for _, q := range m.terms {
		share := float64(p.docs[doc].share(q)) / unit
		want[q.typed] += share
		if n := len(missing); share == 0 && q.form != whole && (n == 0 || missing[n-1] != q.typed) {
			missing = append(missing, q.typed)
		}
	}
	sum := 0.0
	for _, part := range e.Parts {
		if sum += part.Score; math.Abs(part.Score) < 1e-9 {
			return fmt.Sprintf("a part of nothing: %+v", part)
		}
		if part.Word != "" {
			got[part.Word] += part.Score
		}
	}
	for word := range want {
		if math.Abs(want[word]-got[word]) > 1e-9 {
			return fmt.Sprintf("%q has %v, want %v", word, got[word], want[word])
		}
	}
	least := math.Max(1, math.Ceil(unit*p.threshold*m.telling)) / unit
	if !slices.Equal(missing, e.Missing) || math.Abs(e.Score-sum) > 1e-9 || math.Abs(e.Least-least) > 1e-9 {
		return fmt.Sprintf("%q are missing of %v, least %v, want %q, %v, %v", e.Missing, e.Score, e.Least, missing, sum, least)
	}
	return ""
}

// lookCloser raises the scores of the best of found, and orders them anew.
func (p *plainIndex) lookCloser(found []Match, message *plainMessage) {
	terms := message.terms
	best := found[:min(closerDocs, len(found))]
	feedback := p.feedback(best, message)
	top := 0.0
	for i, m := range best {
		sum := uint64(0)
		for term, weight := range feedback {
			sum += weight * p.docs[m.Doc].worth[term] / 65536
		}
		best[i].Score += float64(sum) / 65536
		top = max(top, best[i].Score)
	}
	for i, m := range best {
		name, matched, lead := uint64(0), uint64(0), 0.0
		for term := range p.docs[m.Doc].named {
			factor := 0.0
			for n, q := range terms {
				if q.ways[term] > factor {
					factor = q.ways[term]
					if term == p.docs[m.Doc].first {
						lead = 0
						if message.leads[n] {
							lead = factor
						}
					}
				}
			}
			name += uint64(math.Round(65536 * p.idf(term)))
			matched += uint64(math.Round(65536 * p.idf(term) * factor))
		}
		if name > 0 {
			best[i].Score += (nameWeight*(float64(matched)/float64(name)) + leadWeight*lead) * top
		}
		best[i].Score += message.verbGain(p.docs[m.Doc].does) * top
	}
	slices.SortFunc(best, func(a, b Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), a.Doc-b.Doc) })
}

// feedback returns the weights of what the first three have in common.
func (p *plainIndex) feedback(best []Match, message *plainMessage) map[string]uint64 {
	docs, values := map[string]int{}, map[string]float64{}
	for _, m := range best[:min(feedbackDocs, len(best))] {
		for term, worth := range p.docs[m.Doc].worth {
			docs[term]++
			values[term] += m.Score * float64(worth)
		}
	}
	var common []string
	for term := range docs {
		asked := slices.ContainsFunc(message.terms, func(q plainQuery) bool { return q.exact == term && q.ways[term] > 0 })
		if docs[term] > 1 && !asked {
			values[term] *= p.idf(term)
			common = append(common, term)
		}
	}
	slices.SortFunc(common, func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), strings.Compare(a, b))
	})
	weights := map[string]uint64{}
	weight := 65536 * feedbackWeight * message.telling / p.idfOf(1)
	for _, term := range common[:min(feedbackTerms, len(common))] {
		weights[term] = uint64(math.Round(weight * values[term] / values[common[0]] * p.idf(term)))
	}
	return weights
}

// sameMatches reports whether two answers are equal except for rounding.
func sameMatches(a, b []Match) bool {
	return slices.EqualFunc(a, b, func(a, b Match) bool { return a.Doc == b.Doc && math.Abs(a.Score-b.Score) <= 1e-9 })
}

// plainWords are words for catalogs and queries: relatives of each other, words
// of the lexicon, identifiers, words of other scripts, and stop words.
var plainWords = strings.Fields(`
	authentic authenticate authentication authorization authorize author authors authority authoring
	config configure configuration configurations configurator confirm contain container containers
	repository branch weather forecast commit message channel invoice customer payment email mail
	xlsx spreadsheet excel translate summary search find get list create update delete file document
	issue issues data database table query queries fetch pull request merge review comment user
	天气 查询 查询天气 创建问题 搜索 カレンダー 予定 일정 회의 ภาษาไทย ที่อยู่ Überweisung Übersetzung naïve straße
	createPullRequest HTTPServer user_id2 getURLsFor utf8 OAuth2Token x1 42 v2 ab
	the of please information log out logout`)

// misspelled returns word with a slip in it.
func misspelled(rng *rand.Rand, word string) string {
	if len(word) < 3 || word[0] >= 0x80 {
		return word
	}
	i := rng.IntN(len(word) - 1)
	letter := string(rune('a' + rng.IntN(26)))
	switch rng.IntN(4) {
	case 0:
		return word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
	case 1:
		return word[:i+1] + word[i+2:]
	case 2:
		return word[:i+1] + letter + word[i+1:]
	}
	return word[:i+1] + letter + word[i+2:]
}

// A plainWorld makes random catalogs and queries of few words.
type plainWorld struct {
	rng   *rand.Rand
	words []string
}

func newPlainWorld(seed uint64) *plainWorld {
	rng := rand.New(rand.NewPCG(seed, 77))
	w := &plainWorld{rng: rng}
	for range 1 + rng.IntN(30) {
		word := plainWords[rng.IntN(len(plainWords))]
		w.words = append(w.words, word)
		if rng.IntN(6) == 0 {
			w.words = append(w.words, misspelled(rng, word))
		}
		if rng.IntN(8) == 0 { // its relatives
			for _, other := range plainWords {
				if len(word) > 5 && strings.HasPrefix(other, word[:5]) {
					w.words = append(w.words, other)
				}
			}
		}
	}
	return w
}

// text returns up to n words; the first of w.words are more frequent.
func (w *plainWorld) text(n int) string {
	var b strings.Builder
	for range w.rng.IntN(n + 1) {
		i := int(w.rng.ExpFloat64() * float64(len(w.words)) / 3)
		b.WriteString(w.words[i%len(w.words)] + []string{" ", " ", "_", ", "}[w.rng.IntN(4)])
	}
	return b.String()
}

func (w *plainWorld) document() *Document {
	d := &Document{Server: w.text(1), Name: w.text(3), Description: w.text(14), ReadOnly: w.rng.IntN(5) == 0}
	if w.rng.IntN(3) == 0 {
		d.Title, d.Hints = w.text(3), w.text(2)
		d.Instructions = w.text(20)
	}
	if w.rng.IntN(2) == 0 {
		d.InputSchema = json.RawMessage(fmt.Sprintf(`{"properties":{%q:{"description":%q},%q:{"enum":[%q]}}}`, w.text(2), w.text(6), w.text(1), w.text(1)))
	}
	return d
}

func (w *plainWorld) documents(n int) (docs []*Document) {
	for range n {
		d := w.document()
		switch r := w.rng.IntN(12); {
		case r == 0:
			d = new(Document)
		case r == 1 && len(docs) > 0: // the same twice
			d = docs[w.rng.IntN(len(docs))]
		case r < 4 && len(docs) > 0: // an equal one
			same := *docs[w.rng.IntN(len(docs))]
			d = &same
		}
		docs = append(docs, d)
	}
	return docs
}

func (w *plainWorld) query() string {
	var words []string
	n := w.rng.IntN(6)
	if w.rng.IntN(50) == 0 {
		n = 40 + w.rng.IntN(60)
	}
	for i := range n {
		if i == 0 && w.rng.IntN(3) == 0 {
			words = append(words, "please create")
		}
		word := w.words[w.rng.IntN(len(w.words))]
		switch w.rng.IntN(10) {
		case 0, 1:
			word = misspelled(w.rng, word)
		case 2:
			word = plainWords[w.rng.IntN(len(plainWords))]
		case 3:
			word = []string{"unknown", "zzz", "flies", "über", "天", "Authors", "q"}[w.rng.IntN(7)]
		case 4:
			if len(words) > 0 {
				word = words[w.rng.IntN(len(words))]
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, []string{" ", "  ", "/", "-", ". ", "\n", "? "}[w.rng.IntN(7)])
}

func (w *plainWorld) size() int {
	return []int{0, 1, 2, 3, w.rng.IntN(12), w.rng.IntN(12), w.rng.IntN(60), 20 + w.rng.IntN(10)}[w.rng.IntN(8)]
}

// lexicon returns a lexicon of the words of w.
func (w *plainWorld) lexicon() *Lexicon {
	some := func() []string { return strings.Fields(w.text(4) + w.words[0]) }
	l := &Lexicon{Stop: []string{"the", "of"}, Faint: []string{"please", "data"}, Generic: []string{"get", "list", "file"}, Requests: []string{"create", "search"}}
	l.Verbs = Verbs{Read: []string{"get", "list", "find"}, Create: []string{"create", w.words[0]}, Delete: []string{"delete"}}
	if w.rng.IntN(3) == 0 {
		l.Stop, l.Generic = some(), append(some(), "get")
	}
	for range w.rng.IntN(4) {
		l.Synonyms = append(l.Synonyms, some())
	}
	for range w.rng.IntN(4) {
		l.Hints = append(l.Hints, Hint{append(some(), plainWords[w.rng.IntN(len(plainWords))]), some()})
	}
	for range w.rng.IntN(3) {
		l.Abbreviations = append(l.Abbreviations, Hint{[]string{plainWords[w.rng.IntN(len(plainWords))]}, some()[:1]})
	}
	for range w.rng.IntN(2) {
		l.Translations = append(l.Translations, Hint{some(), some()})
	}
	return l
}

// options returns random options, and the plain index of docs for them.
func (w *plainWorld) options() (*Options, func(docs []*Document) *plainIndex) {
	opts := &Options{Ranker: []Ranker{RankerLexical, RankerDefault}[w.rng.IntN(2)], Lexicon: w.lexicon()}
	lexicon := newPlainLexicon(opts.Lexicon)
	if w.rng.IntN(4) == 0 {
		opts.Lexicon, lexicon = defaultLexicon(), defaultPlainLexicon()
	}
	threshold := DefaultThreshold
	if w.rng.IntN(4) > 0 {
		threshold = []float64{0, 0, 0, 0.1, 1}[w.rng.IntN(5)]
		opts.Threshold = threshold
		if threshold == 0 {
			opts.Threshold = -1
		}
	}
	return opts, func(docs []*Document) *plainIndex { return newPlainIndex(docs, opts.Ranker, lexicon, threshold) }
}

func defaultPlainLexicon() *plainLexicon {
	l := *oncePlainLexicon()
	l.documents = map[*Document]*plainDocument{}
	return &l
}

var oncePlainLexicon = sync.OnceValue(func() *plainLexicon { return newPlainLexicon(defaultLexicon()) })

// compare searches x and p for some queries. It returns how the answers differ,
// or "", and counts what they were like.
func (w *plainWorld) compare(x *Index, p *plainIndex, searches int, seen map[string]int) string {
	for range searches {
		query := w.query()
		n := []int{1, 3, 5, 20, 21, 100, 1 + w.rng.IntN(30)}[w.rng.IntN(7)]
		var keep func(int) bool
		if w.rng.IntN(4) == 0 {
			salt := w.rng.IntN(4)
			keep = func(doc int) bool { return (doc+salt)%4 > 0 }
		}
		got, want := x.Search(query, n, keep), p.search(query, n, keep)
		if !sameMatches(got, want) || (got == nil) != (want == nil) {
			return fmt.Sprintf("%s ranker, threshold %v, query %q, n %d, keep %v:\n got %v\nwant %v", p.ranker, p.threshold, query, n, keep != nil, got, want)
		}
		for i, m := range want[:min(len(want), closerDocs)] {
			e := x.Explain(query, m.Doc)
			if d := p.explained(e, query, m.Doc); d != "" {
				return fmt.Sprintf("%s ranker, query %q, document %d: %s", p.ranker, query, m.Doc, d)
			}
			if keep == nil && math.Abs(e.Score-m.Score) > 1e-9 {
				return fmt.Sprintf("%s ranker, query %q, document %d explained with %v, has %v: %+v", p.ranker, query, m.Doc, e.Score, m.Score, e.Parts)
			}
			if i == 2 {
				break
			}
		}
		seen["searches"]++
		if len(got) > closerDocs {
			seen["behind the closer look"]++
		}
		for i := 1; i < len(got); i++ {
			if got[i-1].Score == got[i].Score {
				seen["ties"]++
				break
			}
		}
		if len(got) > 0 && len(got) < n {
			seen["not cut"]++
		}
		if slices.Equal(got, want) {
			seen["equal to the bit"]++
		}
	}
	return ""
}

func TestIndexEqualsPlain(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range seeds(1200) {
		w := newPlainWorld(seed)
		docs := w.documents(w.size())
		opts, plain := w.options()
		if d := w.compare(NewIndex(docs, opts), plain(docs), 6, seen); d != "" {
			t.Fatalf("seed %d, %d documents, %s", seed, len(docs), d)
		}
	}
	// The catalogs must be of the kind that this test needs.
	t.Log(seen)
	all := seen["searches"]
	assert.Greater(t, seen["ties"], all/10)
	assert.Greater(t, seen["behind the closer look"], all/200)
	assert.Greater(t, seen["not cut"], all/5)
}

// After any changes, an index gives the same answers as the plain one.
func TestIndexEqualsPlainAfterChanges(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range seeds(20) {
		w := newPlainWorld(10_000 + seed)
		docs := w.documents(w.size())
		opts, plain := w.options()
		x := NewIndex(docs, opts)
		slots := 0
		for step := range 25 {
			docs = w.change(docs)
			x = x.With(docs)
			if len(x.positions) < slots {
				seen["compactions"]++
			}
			slots = len(x.positions)
			if d := w.compare(x, plain(docs), 3, seen); d != "" {
				t.Fatalf("seed %d, step %d, %d documents, %s", seed, step, len(docs), d)
			}
		}
		require.NoError(t, x.Check(), "seed %d", seed)
	}
	t.Log(seen)
	assert.NotZero(t, seen["compactions"])
}

// A word that went with its documents is corrected like one that never was there,
// even if its relatives stayed.
func TestSearchRemovedTerms(t *testing.T) {
	docs := []*Document{{Name: "forecast", Description: "utf8"}}
	gone := &Document{Name: "forecats", Description: "prognoza"}
	for _, query := range []string{"forecats", "utfx\nutfx\nforecats", "prognoza"} {
		opts := &Options{Threshold: -1, Lexicon: &Lexicon{Foreign: []Hint{{[]string{"prognoza"}, []string{"forecast"}}}}}
		fresh, x := NewIndex(docs, opts), NewIndex(append(docs, gone), opts)
		want := fresh.Search(query, 5, nil)
		require.NotEmpty(t, want, query)
		assert.NotEqual(t, want, x.Search(query, 5, nil), query)
		x = x.With(docs)
		assert.Equal(t, want, x.Search(query, 5, nil), query)
		assert.Equal(t, fresh.Explain(query, 0), x.Explain(query, 0), query)
	}
}

// Of relatives that give the same score, Explain names the first in the order of
// strings, in whichever order they came.
func TestExplainTies(t *testing.T) {
	doc := &Document{Description: "authority, authorize"}
	first := &Document{Description: "authorize"}
	for _, x := range []*Index{
		NewIndex([]*Document{doc}, nil),
		NewIndex([]*Document{first}, nil).With([]*Document{doc}),
	} {
		parts := x.Explain("authorx", 0).Parts
		require.NotEmpty(t, parts)
		assert.Equal(t, "authoriti", parts[0].Term)
	}
}

// Of words of the lexicon that give the same score, Explain names the one that came first there.
func TestExplainTiesOfTheLexicon(t *testing.T) {
	l := &Lexicon{Synonyms: [][]string{{"mail", "zletter", "letter"}}}
	for _, words := range []string{"letter zletter", "zletter, letter"} {
		parts := NewIndex([]*Document{{Description: words}}, &Options{Lexicon: l}).Explain("mail", 0).Parts
		require.NotEmpty(t, parts)
		assert.Equal(t, "zlet", parts[0].Term[:4], words)
	}
}

// Whatever an index held before, it answers as a new one does, to the bit. It has
// few documents, short and with slips, so that words go while their relatives stay.
func TestIndexEqualsNewAfterChanges(t *testing.T) {
	t.Parallel()
	for seed := range seeds(300) {
		w := newPlainWorld(20_000 + seed)
		for range w.rng.IntN(12) {
			w.words = append(w.words, misspelled(w.rng, w.words[w.rng.IntN(len(w.words))]))
		}
		w.rng.Shuffle(len(w.words), func(i, j int) { w.words[i], w.words[j] = w.words[j], w.words[i] })
		opts, _ := w.options()
		for range w.rng.IntN(3) {
			opts.Lexicon.Foreign = append(opts.Lexicon.Foreign, Hint{strings.Fields(w.text(4) + "größe"), strings.Fields(w.text(3) + "size")})
		}
		var docs []*Document
		x := NewIndex(docs, opts)
		for step := range 25 {
			docs = slices.Clone(docs)
			if at := w.rng.IntN(5); at < len(docs) {
				docs = slices.Delete(docs, at, min(at+1+w.rng.IntN(2), len(docs)))
			} else {
				docs = append(docs, &Document{Name: w.text(2), Description: w.text(4), Instructions: w.text(3)})
			}
			x = x.With(docs)
			fresh := x.New(docs)
			for range 4 {
				query := w.query()
				require.Equal(t, fresh.HasTerms(query), x.HasTerms(query), "seed %d, step %d, query %q", seed, step, query)
				require.Equal(t, fresh.Search(query, 5, nil), x.Search(query, 5, nil), "seed %d, step %d, query %q", seed, step, query)
				doc := w.rng.IntN(5)
				require.Equal(t, fresh.Explain(query, doc), x.Explain(query, doc), "seed %d, step %d, document %d, query %q", seed, step, doc, query)
			}
		}
	}
}

// If all words of an index belong to one family, each query word could lead to
// all others. Answers must be correct and fast.
func TestSearchManyRelatives(t *testing.T) {
	var words []string
	const letters = "bcfhjkmpqvwx" // none of these is an ending
	for i := range 12 * 12 * 12 * 12 {
		words = append(words, "optio"+string([]byte{letters[i/1728], letters[i/144%12], letters[i/12%12], letters[i%12]}))
	}
	t.Run("equal", func(t *testing.T) {
		docs := []*Document{
			{Name: "all"},
			{Name: "some"},
			{Description: "another"},
		}
		query := strings.Join(words[:250], " ")
		for _, n := range []int{10, 64, 65, 66, 400} {
			docs[0].Description = strings.Join(words[:n], " ")
			docs[1].Description = strings.Join(words[n/4:n/2], " ")
			docs[2].Name = words[7]
			for _, query := range []string{query, words[0], words[500], words[500] + "x"} {
				got := NewIndex(docs, &Options{Lexicon: defaultLexicon()}).Search(query, 5, nil)
				want := newPlainIndex(docs, RankerDefault, defaultPlainLexicon(), DefaultThreshold).search(query, 5, nil)
				assert.True(t, sameMatches(got, want), "%d relatives, query %.20q: got %v, want %v", n, query, got, want)
			}
			// Relatives that are removed do not count.
			more := &Document{Description: strings.Join(words[1000:1400], " ")}
			x := NewIndex(append(slices.Clone(docs), more), nil).With(docs)
			assert.Equal(t, NewIndex(docs, nil).Search(words[500], 5, nil), x.Search(words[500], 5, nil), "%d relatives", n)
		}
	})
	t.Run("soon", func(t *testing.T) {
		x := NewIndex([]*Document{{Name: "all", Description: strings.Join(words, " ")}, {Name: "other"}}, nil)
		mcptest.Quick(t, 2*time.Second, func() { x.Search(strings.Join(words[:10], " "), 5, nil) }) // takes 10 ms
	})
}

func searchDocs(x *Index, query string) (docs []int) {
	for _, m := range x.Search(query, 10, nil) {
		docs = append(docs, m.Doc)
	}
	return docs
}

func TestSearchTable(t *testing.T) {
	docs := []*Document{
		0: {Server: "git", Name: "create_issue", Description: "Creates an issue in a repository."},
		1: {Server: "git", Name: "listIssues", Description: "Lists the issues."},
		2: {Server: "mail", Name: "send_message", Title: "Send mail", Description: "Sends a message to somebody."},
		3: {Server: "office", Name: "open_spreadsheet"},
		4: {Server: "weather", Name: "查询天气", Description: "天气预报"},
		5: {Server: "bank", Name: "Überweisung", Hints: "transfer", InputSchema: json.RawMessage(`{"properties":{"recipient":{"enum":["someone"],"description":"the beneficiary"}}}`)},
		6: {Server: "access", Name: "authorization"},
		7: {},
	}
	tests := []struct {
		name    string
		query   string
		lexical []int
		plus    []int // what the default ranker finds, if that is something else
	}{
		{"a word of two names", "issue", []int{0, 1}, nil},
		{"another form of it", "ISSUES!", []int{0, 1}, nil},
		{"an identifier", "createIssue", []int{0, 1}, nil},
		{"a synonym", "email", []int{2}, nil},
		{"a hint", "xlsx", []int{3}, nil},
		{"Chinese", "天气", []int{4}, nil},
		{"a translation", "forecast", []int{4}, nil},
		{"without the accent", "uberweisung", []int{5}, nil},
		{"hints of the document", "transfer", []int{5}, nil},
		{"a parameter", "recipient", []int{5}, nil},
		{"its description", "beneficiary", []int{5}, nil},
		{"a relative", "authority", nil, []int{6}},
		{"a slip", "atuhorization", nil, []int{6}},
		{"two slips are too many", "atuhroization", nil, nil},
		{"a slip in a stop word", "plaese", nil, nil},
		{"a slip in a short word", "snd", nil, nil},
		{"stop words", "please give me the thing", nil, nil},
		{"nothing", "", nil, nil},
		{"unknown", "quux", nil, nil},
		{"no words", "?! \x00\xff ( )", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.lexical, searchDocs(NewIndex(docs, &Options{Ranker: RankerLexical, Threshold: -1}), test.query), "lexical")
			want := test.lexical
			if test.plus != nil {
				want = test.plus
			}
			assert.Equal(t, want, searchDocs(NewIndex(docs, &Options{Threshold: -1}), test.query), "default")
		})
	}
}

// A term counts once, even if the query repeats it. This includes a term that no
// document has but that finds others.
func TestSearchRepeatedTerms(t *testing.T) {
	docs := []*Document{{Name: "spreadsheet"}, {Name: "other"}, {Name: "authenticate"}, {Name: "天气"}}
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		x := NewIndex(docs, &Options{Ranker: ranker, Threshold: -1})
		for _, word := range []string{"spreadsheet", "xlsx", "autehnticate", "authentic", "天气", "weather"} {
			assert.Equal(t, x.Search(word, 5, nil), x.Search(strings.Repeat(word+" ", 3), 5, nil), "%s ranker, query %q", ranker, word)
		}
		// Repeated terms do not use up the limit on terms.
		assert.Equal(t, x.Search("quux spreadsheet", 5, nil), x.Search(strings.Repeat("quux ", 300)+"spreadsheet", 5, nil), "%s ranker", ranker)
	}
}

func TestSearchBounds(t *testing.T) {
	docs := []*Document{{Name: "create_issue"}, {Name: "issue"}, {Name: "issue"}}
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		x := NewIndex(docs, &Options{Ranker: ranker, Threshold: -1})
		assert.Nil(t, x.Search("issue", 0, nil))
		assert.Nil(t, x.Search("issue", -1, nil))
		assert.Nil(t, x.Search("issue", 5, func(int) bool { return false }))
		assert.Equal(t, []int{1, 2, 0}, searchDocs(x, "issue"))
		best := x.Search("issue", 2, nil)
		assert.Equal(t, x.Search("issue", math.MaxInt, nil)[:2], best)
		before := []Match{{9, 1}}
		assert.Equal(t, append(before, best...), x.AppendSearch(slices.Clip(before), "issue", 2, nil))
		assert.Equal(t, before, x.AppendSearch(before, "quux", 2, nil))
		assert.Nil(t, NewIndex(nil, &Options{Ranker: ranker}).Search("issue", 5, nil))
		assert.Equal(t, 3, x.Len())

		// Search calls keep only for documents that match.
		x.Search("create", 5, func(doc int) bool { assert.Equal(t, 0, doc); return true })
	}
}

func TestIndexThreshold(t *testing.T) {
	var docs []*Document
	for i := range 50 {
		docs = append(docs, &Document{Name: "tool" + string('a'+rune(i%26)) + string('a'+rune(i/26)), Description: "common"})
	}
	docs[0].Description = "common rare"
	found := func(threshold float64, query string) int {
		lexical := NewIndex(docs, &Options{Ranker: RankerLexical, Threshold: threshold}).Search(query, 100, nil)
		closer := NewIndex(docs, &Options{Threshold: threshold}).Search(query, 100, nil)
		assert.Equal(t, len(lexical), len(closer))
		return len(lexical)
	}
	assert.Equal(t, 50, found(-1, "common rare"))
	assert.Equal(t, 1, found(0, "common rare"), "common is too little, beside rare")
	assert.Equal(t, 50, found(0, "common"), "and is enough alone")
	assert.Equal(t, 0, found(100, "common rare"))
	for exponent := range 30 {
		huge := math.Ldexp(100, 10*exponent)
		assert.Equal(t, 0, found(huge, "common rare"), "threshold %v", huge)
	}
	for _, wrong := range []float64{math.NaN(), math.Inf(1)} {
		assert.Panics(t, func() { NewIndex(nil, &Options{Threshold: wrong}) }, "%v", wrong)
	}
	assert.Panics(t, func() { NewIndex(nil, &Options{Ranker: "x"}) })
}

// Documents and queries that a hostile server or model may send.
func TestSearchHostile(t *testing.T) {
	t.Parallel()
	many := func(n int, of string) string { return strings.Repeat(of, n) }
	distinct := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "w%cq%cx%c ", 'a'+rune(i%26), 'a'+rune(i/26%26), 'a'+rune(i/676%26))
		}
		return b.String()
	}
	docs := []*Document{
		{Name: "ordinary", Description: "creates an issue"},
		{Name: "long", Description: many(1<<20/6, "issue ")},
		{Name: "wide", Description: distinct(17_000), Hints: distinct(70_000)},
		{Name: "full", Description: many(70_000, "xy "), Hints: "issue"},
		{Name: "one", Description: many(1<<20, "x"), Title: many(1<<18, "搜"), Hints: many(1<<18, "п")},
		{Name: "deep", InputSchema: json.RawMessage(many(200_000, `{"items":`))},
		{Name: "broken", InputSchema: json.RawMessage(`{"properties":{"issue`)},
		{Name: "bytes", Server: "\xff\xfe", Title: "a\x00b\xc3", Description: "\xed\xa0\x80issue\x80", Hints: "\u0301\u200d\u202e"},
		{Name: "marks", Description: many(1<<16, "\u0e48") + "ก" + many(1<<16, "\u0e48") + "e" + many(1<<16, "\u0301")},
	}
	queries := []string{
		"", " ", "the of please", "issue", "\xff\xfe", "\x00\x01\x02", "a\xc3", "\u0301", many(1<<20, "x"), many(1<<18, "issue "),
		many(1<<18, "搜索"), many(1<<18, "п"), many(1<<18, "ก\u0e48"), many(1<<18, "\u0301"), many(1<<16, "aB1"), distinct(400),
		many(16<<10-1, " ") + "é issue", distinct(300) + "issue", many(1<<16, "isuse "), many(1<<15, "\ufdfa"),
	}
	lexicon := defaultPlainLexicon()
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		x := NewIndex(docs, &Options{Ranker: ranker, Lexicon: defaultLexicon(), Threshold: -1})
		plain := newPlainIndex(docs, ranker, lexicon, 0)
		for i, query := range queries {
			var got []Match
			mcptest.Quick(t, 2*time.Second, func() { got = x.Search(query, 5, nil) }, "query %d", i) // takes 10 ms
			if want := plain.search(query, 5, nil); !sameMatches(got, want) {
				t.Errorf("%s ranker, query %d, %.50q:\n got %v\nwant %v", ranker, i, query, got, want)
			}
		}
		// In a field of 70,000 terms, 65,535 count.
		for _, o := range x.occurrencesOf(x.slots[3]) {
			if string(x.vocabulary.text(o.term)) == "xy" {
				s := signatureOf(x.signatures.text(o.signature))
				assert.EqualValues(t, 65535, s[inDescription].tf)
				assert.EqualValues(t, 65535, s[inDescription].length)
			}
		}
	}
}

// Only the first 255 distinct terms count.
func TestSearchManyTerms(t *testing.T) {
	var words []string
	for i := range 300 {
		words = append(words, string([]byte{'k' + byte(i%10), 'q', 'a' + byte(i/10%10), 'x', 'a' + byte(i/100)}))
	}
	var docs []*Document
	for _, w := range words {
		docs = append(docs, &Document{Name: w})
	}
	x := NewIndex(docs, &Options{Ranker: RankerLexical, Threshold: -1})
	got := x.Search(strings.Join(words, " "), 1000, nil)
	require.Len(t, got, 255)
	for i, m := range got {
		assert.Equal(t, i, m.Doc)
	}
	assert.Empty(t, x.Search(strings.Repeat(" ", 16<<10)+words[0], 5, nil), "too far behind")
}

// seeds returns n. With the race detector, and without MCPHYBRID_LONG, it
// returns less.
func seeds(n uint64) uint64 {
	if mcptest.Race() {
		return n/10 + 1
	}
	return mcptest.Long(n, n/3+1)
}

// Searches do not allocate once the scratch space is there.
func TestSearchAllocs(t *testing.T) {
	if mcptest.Race() {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties pools
	w := newPlainWorld(3)
	w.words = plainWords
	docs := w.documents(300)
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		x := NewIndex(docs, &Options{Ranker: ranker, Threshold: -1})
		keep := func(doc int) bool { return doc%3 > 0 }
		dst := make([]Match, 0, 64)
		for _, query := range []string{"create issue", "查询天气 autehnticate Überweisung", "xlsx configuration", strings.Join(plainWords, " ")} {
			for _, n := range []int{5, 40} {
				dst = x.AppendSearch(dst[:0], query, n, keep)
				assert.NotEmpty(t, dst, "query %q", query)
				got := testing.AllocsPerRun(20, func() { dst = x.AppendSearch(dst[:0], query, n, keep) })
				assert.Zero(t, got, "%s ranker, query %q, n %d", ranker, query, n)
			}
		}
	}
}

// Every search leaves the scratch space clean for the next one.
func TestSearchLeavesNothing(t *testing.T) {
	w := newPlainWorld(5)
	var indexes []*Index
	for _, n := range []int{3, 200, 30} {
		indexes = append(indexes, NewIndex(w.documents(n), &Options{Threshold: -1}))
	}
	for range 300 {
		indexes[w.rng.IntN(3)].Search(w.query(), 5, nil)
		r := retrievals.Get().(*retrieval)
		require.True(t, allZero(r.scores[:cap(r.scores)]) && allZero(r.best[:cap(r.best)]) && allZero(r.closer.ways) && allZero(r.closer.places))
		require.Nil(t, r.x, "it would hold an old index")
		retrievals.Put(r)
	}
}

func allZero[T comparable](s []T) bool {
	var zero T
	return !slices.ContainsFunc(s, func(v T) bool { return v != zero })
}

func TestPlainLexicon(t *testing.T) {
	comparePlainLexicon(t, DefaultLexicon())
	comparePlainLexicon(t, &Lexicon{ // the greater weight counts, in any order
		Synonyms:     [][]string{{"alpha", "beta"}, {"gamma", "delta"}},
		Hints:        []Hint{{[]string{"alpha", "epsilon"}, []string{"beta", "zeta"}}},
		Translations: []Hint{{[]string{"epsilon", "zeta"}, []string{"gamma"}}},
	})
	for seed := range uint64(100) {
		comparePlainLexicon(t, newPlainWorld(seed).lexicon())
	}
}

func comparePlainLexicon(t *testing.T, l *Lexicon) {
	c, p := compile(l), newPlainLexicon(l)
	require.Len(t, p.class, len(c.terms))
	for n, term := range c.terms {
		others := map[string]float64{}
		for i, e := range c.others[n] {
			others[c.terms[e.term]] = e.weight
			assert.True(t, i == 0 || c.others[n][i-1].term < e.term, "others of %q are not ascending", term)
		}
		assert.Equal(t, p.class[term], c.class[n], "class of %q", term)
		assert.True(t, maps.Equal(p.others[term], others), "others of %q: %v, want %v", term, others, p.others[term])
	}
}

// Of several ways from one word to a term, the best counts. Each word has its own.
func TestBestWayToATerm(t *testing.T) {
	x := NewIndex([]*Document{{Name: "lamp"}, {Name: "chamber"}, {Name: "other"}}, nil)
	var terms []uint32 // that documents have
	for term := range uint32(x.vocabulary.len()) {
		if x.idf(term) > 0 {
			terms = append(terms, term)
		}
	}
	require.GreaterOrEqual(t, len(terms), 2)
	r := &retrieval{x: x}
	for _, step := range []struct {
		term   int
		factor float64
		begin  int
		want   []float64
	}{
		{0, 0.5, 0, []float64{0.5}},
		{1, 0.5, 0, []float64{0.5, 0.5}},
		{1, 0.4, 0, []float64{0.5, 0.5}},
		{1, 0.8, 0, []float64{0.5, 0.8}},
		{1, 0.6, 2, []float64{0.5, 0.8, 0.6}},
		{0, 0.3, 2, []float64{0.5, 0.8, 0.6, 0.3}},
		{1, 1, 2, []float64{0.5, 0.8, 1, 0.3}},
	} {
		r.addWay(terms[step.term], 1, step.factor, 10, step.begin)
		var factors []float64
		for _, w := range r.ways {
			factors = append(factors, w.factor)
		}
		assert.Equal(t, step.want, factors, "%+v", step)
	}
	assert.Greater(t, r.ways[2].weight, r.ways[1].weight)
}
