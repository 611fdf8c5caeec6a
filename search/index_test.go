package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomDocument returns a document whose words occur in others too.
func randomDocument(rng *rand.Rand) *Document {
	words := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n + 1) {
			switch rng.IntN(12) {
			case 0:
				b.WriteString([]string{"查询天气", "ภาษาไทย", "カレンダー", "Überweisung", "thời tiết", "HTTPServers", "user_id2"}[rng.IntN(7)])
			default:
				fmt.Fprintf(&b, "word%c", 'a'+rune(rng.ExpFloat64()*5))
			}
			b.WriteString([]string{" ", ", ", "_"}[rng.IntN(3)])
		}
		return b.String()
	}
	return &Document{
		Server: fmt.Sprint("server", string('a'+rune(rng.IntN(5)))), Name: words(3), Title: words(1), Description: words(12), Hints: words(1),
		InputSchema: json.RawMessage(fmt.Sprintf(`{"properties":{%q:{"description":%q,"enum":[%q]},"id":{}}}`, words(2), words(6), words(1))),
	}
}

func randomDocuments(rng *rand.Rand, n int) []*Document {
	docs := make([]*Document, n)
	for i := range docs {
		docs[i] = randomDocument(rng)
	}
	return docs
}

// After any history of changes, an index equals a new one.
func TestIndexAfterAnyHistory(t *testing.T) {
	t.Parallel()
	for seed := range seeds(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		docs := randomDocuments(rng, rng.IntN(40))
		x := NewIndex(docs, nil)
		for step := range 60 {
			docs = slices.Clone(docs)
			switch at := rng.IntN(len(docs) + 1); rng.IntN(7) {
			case 0:
				docs = slices.Insert(docs, at, randomDocuments(rng, 1+rng.IntN(4))...)
			case 1:
				docs = append(docs, randomDocument(rng))
			case 2:
				docs = slices.Delete(docs, at, min(at+1+rng.IntN(3), len(docs)))
			case 3:
				if at < len(docs) {
					docs[at] = randomDocument(rng)
				}
			case 4:
				rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
			case 5:
				if at < len(docs) {
					docs = append(docs, docs[at]) // the same twice
				}
			case 6:
				docs = randomDocuments(rng, rng.IntN(60))
			}
			x = x.With(docs)
			if err := x.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
	}
}

// Older indexes answer as before after a change. With on an index that is not
// the newest gives an independent index.
func TestIndexSnapshots(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(42)
	queries := make([]string, 20)
	for i := range queries {
		queries[i] = w.query()
	}
	answers := func(x *Index) (all [][]Match) {
		for _, q := range queries {
			all = append(all, x.Search(q, 10, nil))
		}
		return all
	}
	type snapshot struct {
		x    *Index
		docs []*Document
		want [][]Match
	}
	var snapshots []snapshot
	docs := w.documents(30)
	x := NewIndex(docs, nil)
	other := 0
	for step := range 80 {
		snapshots = append(snapshots, snapshot{x, slices.Clone(docs), answers(x)})
		docs = w.change(docs)
		given := slices.Clone(docs)
		from := x
		if step%8 == 7 {
			from = snapshots[w.rng.IntN(len(snapshots)-1)].x
			other++
		}
		x = from.With(given)
		if len(given) > 0 {
			given[0] = &Document{Name: "the caller may use its slice again"}
		}
		require.NoError(t, x.Check(), "step %d", step)
		require.Equal(t, answers(NewIndex(docs, nil)), answers(x), "step %d", step)
		require.Equal(t, len(docs), x.Len())
		if from != snapshots[step].x {
			require.NotSame(t, snapshots[step].x.growth, x.growth)
		}
	}
	assert.Equal(t, 10, other)
	for i, s := range snapshots {
		require.NoError(t, (s.x).Check(), "snapshot %d", i)
		require.Equal(t, s.want, answers(s.x), "snapshot %d", i)
		require.Equal(t, s.docs, s.x.docs, "snapshot %d", i)
	}
}

// change returns docs with a random change, which adds few new documents.
func (w *plainWorld) change(docs []*Document) []*Document {
	docs = slices.Clone(docs)
	at := w.rng.IntN(len(docs) + 1)
	switch w.rng.IntN(6) {
	case 0: // add
		return slices.Insert(docs, at, w.documents(1+w.rng.IntN(5))...)
	case 1: // remove
		return slices.Delete(docs, at, min(at+1+w.rng.IntN(5), len(docs)))
	case 2: // replace
		if at < len(docs) {
			docs[at] = w.document()
		}
	case 3: // other order
		w.rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	case 4: // move one to the end
		if at < len(docs) {
			d := docs[at]
			docs = append(slices.Delete(docs, at, at+1), d)
		}
	case 5: // replace all, so that there is something to compact
		return w.documents(50 + w.rng.IntN(100))
	}
	return docs
}

// Searches of all indexes run while With derives new ones.
func TestIndexConcurrent(t *testing.T) {
	const searchers, steps, rounds = 4, 60, 10
	w := newPlainWorld(7)
	w.words = plainWords
	var queries []string
	for range 12 {
		queries = append(queries, w.query())
	}
	type snapshot struct {
		x    *Index
		want [][]Match // by query
	}
	docs := w.documents(60)
	lists := [][]*Document{docs}
	for range steps {
		docs = w.change(docs)
		lists = append(lists, docs)
	}
	snapshots := make([]snapshot, len(lists))
	for i, docs := range lists { // compute the expected answers first
		fresh := NewIndex(docs, nil)
		for _, q := range queries {
			snapshots[i].want = append(snapshots[i].want, fresh.Search(q, 10, nil))
		}
	}

	var published, equal atomic.Int64
	var wg sync.WaitGroup
	snapshots[0].x = NewIndex(lists[0], nil)
	for searcher := range searchers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(searcher), 1))
			for range steps * rounds {
				s := snapshots[rng.Int64N(published.Load()+1)]
				q := rng.IntN(len(queries))
				if slices.Equal(s.want[q], s.x.Search(queries[q], 10, nil)) {
					equal.Add(1)
				}
			}
		})
	}
	for i := range steps {
		snapshots[i+1].x = snapshots[i].x.With(lists[i+1])
		published.Add(1)
	}
	// Concurrent calls of With on one index each give a correct index.
	for range 4 {
		wg.Go(func() {
			for i := range lists[:10] {
				y := snapshots[steps].x.With(lists[i])
				if slices.EqualFunc(queries, snapshots[i].want, func(q string, want []Match) bool { return slices.Equal(y.Search(q, 10, nil), want) }) {
					equal.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, searchers*steps*rounds+4*10, equal.Load())
	for _, s := range snapshots {
		require.NoError(t, (s.x).Check())
	}
}

// checkMatches returns an error if got is not a valid answer of x for at most n
// documents.
func checkMatches(x *Index, got []Match, n int) error {
	if len(got) > n || got != nil && len(got) == 0 {
		return fmt.Errorf("%d documents of at most %d", len(got), n)
	}
	seen := map[int]bool{}
	for i, m := range got {
		switch {
		case m.Doc < 0 || m.Doc >= x.Len():
			return fmt.Errorf("document %d of %d", m.Doc, x.Len())
		case seen[m.Doc]:
			return fmt.Errorf("document %d is there twice", m.Doc)
		case !(m.Score > 0) || m.Score > 1e6:
			return fmt.Errorf("document %d has score %v", m.Doc, m.Score)
		case i > 0 && inOrder(m, got[i-1]) < 0:
			return fmt.Errorf("document %d stands behind %d", m.Doc, got[i-1].Doc)
		}
		seen[m.Doc] = true
	}
	return nil
}

// FuzzIndex reads a program from data: lines that change the documents, each
// with an operation, a place and a text, and lines that search.
func FuzzIndex(f *testing.F) {
	f.Add("n0create issue\nd1list issues\nn2查询天气\ns0issue\nr0x\ns0isuse\nm1x\nc0x\ns0天气", false)
	f.Add("n0authorize authority\nn0author Überweisung\ns3autohr\np0{\"properties\":{\"id\":{\"enum\":[\"x\"]}}}\nx0\nn0\xff\xfe\ns0\xff id", true)
	f.Add(strings.Repeat("n0get file data\n", 30)+strings.Repeat("r0\nn9the tool\n", 20)+"s9get the file tool", false)
	f.Fuzz(func(t *testing.T, program string, lexical bool) {
		opts := &Options{Lexicon: &Lexicon{Stop: []string{"the"}, Generic: []string{"get"}, Synonyms: [][]string{{"issue", "bug"}, {"天气", "weather"}}}}
		if lexical {
			opts.Ranker = RankerLexical
		}
		var docs []*Document
		x := NewIndex(nil, opts)
		lines := strings.Split(program, "\n")
		for _, line := range lines[:min(len(lines), 100)] {
			if len(line) < 2 {
				continue
			}
			operation, place, text := line[0], int(line[1]), line[2:]
			docs = slices.Clone(docs)
			at := place % (len(docs) + 1)
			replace := func(d Document) {
				if at < len(docs) {
					docs[at] = &d
				}
			}
			switch operation {
			case 'n':
				docs = slices.Insert(docs, at, &Document{Name: text, Server: text[:min(len(text), 5)]})
			case 'd':
				replace(Document{Description: text, Name: "get"})
			case 'p':
				replace(Document{InputSchema: json.RawMessage(text), Title: text})
			case 'h':
				replace(Document{Hints: text})
			case 'i':
				replace(Document{Instructions: text})
			case 'r':
				docs = slices.Delete(docs, at, min(at+1, len(docs)))
			case 'm':
				slices.Reverse(docs[at:])
			case 'c':
				docs = append(docs, docs[:at]...)
				docs = docs[:min(len(docs), 200)]
			case 'x':
				x = NewIndex(docs, opts) // so that the next change starts from a new index
			default:
				n := 1 + place%7
				got := x.Search(text, n, nil)
				if err := checkMatches(x, got, n); err != nil {
					t.Fatalf("%q, at query %q: %v", program, text, err)
				}
				if want := NewIndex(x.docs, opts).Search(text, n, nil); !slices.Equal(got, want) {
					t.Fatalf("%q, at query %q:\n got %v\nwant %v", program, text, got, want)
				}
				continue
			}
			x = x.With(docs)
		}
		if err := x.Check(); err != nil {
			t.Fatalf("%q: %v", program, err)
		}
	})
}

// A change to an index of 40,000 documents, and the search that follows.
func BenchmarkIndexChange(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	docs := randomDocuments(rng, 40_000)
	x := NewIndex(docs, nil)
	fresh := randomDocuments(rng, 1000)
	change := func(name string, edit func(docs []*Document, i int) []*Document) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []Match
			for i := 0; b.Loop(); i++ {
				docs = edit(slices.Clone(docs), i)
				x = x.With(docs)
				dst = x.AppendSearch(dst[:0], "worda wordf", 5, nil)
			}
		})
	}
	change("replace", func(docs []*Document, i int) []*Document {
		d := *fresh[i%1000]
		docs[(i*7919)%len(docs)] = &d
		return docs
	})
	change("add", func(docs []*Document, i int) []*Document {
		d := *fresh[i%1000]
		return append(docs, &d)
	})
	change("remove", func(docs []*Document, i int) []*Document {
		at := (i * 7919) % len(docs)
		if len(docs) < 30_000 { // b.Loop may go on for long
			return append(docs, fresh...)
		}
		return slices.Delete(docs, at, at+1)
	})
	b.Run("search only", func(b *testing.B) {
		b.ReportAllocs()
		var dst []Match
		for b.Loop() {
			dst = x.AppendSearch(dst[:0], "worda wordf", 5, nil)
		}
	})
}

// Indexes with one lexicon share its terms and nothing else.
func TestIndexesShareTheLexicon(t *testing.T) {
	l := compile(DefaultLexicon())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			own := fmt.Sprintf("zebrafish%c", 'a'+g)
			x := newGrowth(RankerDefault, l, DefaultThreshold).index(nil)
			var docs []*Document
			for i := range 40 {
				docs = append(docs, &Document{Name: fmt.Sprint(own, i), Description: "Sends a mail to delete the file of " + own})
				x = x.With(slices.Clone(docs))
			}
			assert.NoError(t, x.Check())
			assert.Len(t, x.Search(own, 99, nil), 40)
			for other := range 8 {
				if other != g {
					_, known := x.vocabulary.terms.lookup(fmt.Appendf(nil, "zebrafish%c", 'a'+other))
					assert.False(t, known)
				}
			}
		})
	}
	wg.Wait()
	base, fresh := l.base(), newLexiconBase(l.terms)
	assert.Equal(t, fresh.terms.bytes, base.terms.bytes)
	assert.Equal(t, fresh.groups.bytes, base.groups.bytes)
	assert.Equal(t, fresh.heads, base.heads)
	assert.Equal(t, fresh.lists, base.lists)
}

// What a server says changes no score of another server's tools by words that they have.
func TestInstructionsChangeNoOther(t *testing.T) {
	t.Parallel()
	docs := make([]*Document, 40)
	for i := range docs {
		docs[i] = &Document{Server: fmt.Sprint("server", i/20), Name: fmt.Sprintf("convert_file_%d", i), Description: "Converts a spreadsheet to another format"}
	}
	said := slices.Clone(docs)
	for i := range 20 {
		with := *docs[i]
		with.Instructions = "Converts spreadsheets: use convert first. Kubernetes."
		said[i] = &with
	}
	for _, ranker := range []Ranker{RankerDefault, RankerLexical} {
		before, after := NewIndex(docs, &Options{Ranker: ranker}), NewIndex(said, &Options{Ranker: ranker})
		others := func(doc int) bool { return doc >= 20 }
		for _, query := range []string{"convert", "convert a spreadsheet", "file 23"} {
			want := before.Search(query, 40, others)
			require.NotEmpty(t, want)
			assert.Equal(t, want, after.Search(query, 40, others), query)
		}
		assert.Len(t, after.Search("kubernetes", 40, nil), 20)
		assert.Empty(t, before.Search("kubernetes", 40, nil))
		repeated := slices.Clone(said)
		for i := range 20 {
			with := *said[i]
			with.Instructions = strings.Repeat(with.Instructions, 16)
			repeated[i] = &with
		}
		often := NewIndex(repeated, &Options{Ranker: ranker})
		assert.Equal(t, after.Search("kubernetes convert", 40, nil), often.Search("kubernetes convert", 40, nil), "a word counts once")
		require.NoError(t, after.Check())
	}
}

// Check sees whatever is wrong in an index.
func TestCheckSees(t *testing.T) {
	t.Parallel()
	docs := []*Document{{Name: "apple"}, {Name: "berry"}, {Name: "cherry", Description: "apple"}}
	x := NewIndex(docs, nil).With(docs[:2]).With(docs)
	require.NoError(t, x.Check())
	apple := x.number([]byte("appl"))
	for name, test := range map[string]struct {
		harm func(x *Index)
		want string
	}{
		"slots":     {func(x *Index) { x.slots = x.slots[:2] }, "index of 3 documents: 2 slots, 4 positions, 5 first, 2 worth of 2"},
		"first":     {func(x *Index) { x.first = x.first[:4] }, "index of 3 documents: 3 slots, 4 positions, 4 first, 2 worth of 2"},
		"worth":     {func(x *Index) { x.worth = x.worth[:1] }, "index of 3 documents: 3 slots, 4 positions, 5 first, 1 worth of 2"},
		"positions": {func(x *Index) { x.positions = []int32{0, 2, -1, 2} }, "document 1 is in slot 1, which is at position 2"},
		"postings":  {func(x *Index) { x.heads.change(apple).post(posting{9, 0}) }, `the postings of "appl" differ from the contents of 3 documents`},
		"lengths":   {func(x *Index) { x.lengths[inName]++ }, "lengths [0 4 0 1 0 0 0 0 0], averages "},
		"averages":  {func(x *Index) { x.averages[inName]++ }, "a new index has [0 3 0 1 0 0 0 0 0], "},
		"frequency": {func(x *Index) { x.heads.change(apple).own++ }, "the index of 3 documents differs from a new one"},
		"a worth":   {func(x *Index) { x.worth = []uint32{x.worth[0] + 1, x.worth[1]} }, "the index of 3 documents differs from a new one"},
		"order":     {func(x *Index) { x.docs = []*Document{docs[1], docs[0], docs[2]} }, "the index of 3 documents differs from a new one"},
		"documents": {func(x *Index) { x.docs = []*Document{docs[0], {Name: "plum"}, docs[2]} }, "the index of 3 documents differs from a new one"},
	} {
		y := *x
		y.heads = x.heads.clone()
		test.harm(&y)
		assert.ErrorContains(t, y.Check(), test.want, name)
	}
	require.NoError(t, x.Check())
}

// lists returns all lists of at most n of docs.
func lists(docs []*Document, n int) (all [][]*Document) {
	all = [][]*Document{nil}
	for begin := 0; n > 0; n-- {
		end := len(all)
		for _, list := range all[begin:end] {
			for _, d := range docs {
				all = append(all, append(slices.Clip(list), d))
			}
		}
		begin = end
	}
	return all
}

// Any list may follow any other one, also if documents stand in them twice.
func TestWithAnyList(t *testing.T) {
	t.Parallel()
	all := lists([]*Document{{Name: "apple", Description: "cherry"}, {Name: "banana"}, nil}, 3)
	require.Len(t, all, 40)
	for _, from := range all {
		for _, to := range all {
			first := NewIndex(from, &Options{Lexicon: new(Lexicon), Threshold: -1})
			before := first.Search("cherry banana", 9, nil)
			x := first.With(to)
			if err := x.Check(); err != nil {
				t.Fatalf("from %v to %v: %v", from, to, err)
			}
			want := x.New(to).Search("cherry banana", 9, nil)
			if got := x.Search("cherry banana", 9, nil); !slices.Equal(got, want) {
				t.Fatalf("from %v to %v: %v, want %v", from, to, got, want)
			}
			if after := first.Search("cherry banana", 9, nil); !slices.Equal(after, before) {
				t.Fatalf("from %v to %v: %v of the first, before %v", from, to, after, before)
			}
		}
	}
}

// A document that an index has is not read again, wherever it goes, also if it is there
// twice. So nobody sees what the caller changes in it, which he must not.
func TestWithReadsNoneAgain(t *testing.T) {
	t.Parallel()
	docs := []*Document{{Name: "apple"}, {Name: "banana"}, {Name: "cherry"}, {Name: "damson"}}
	x := NewIndex(docs, nil)
	for _, d := range docs {
		d.Name = "elderberry"
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3}, {1, 1, 3}} {
		var now []*Document
		for _, i := range order {
			now = append(now, docs[i])
		}
		x = x.With(now)
		read := 0 // such as were read again
		for i := 1; i < len(order); i++ {
			if order[i] == order[i-1] {
				read++
			}
		}
		assert.Len(t, x.Search("elderberry", 9, nil), read, "%v", order)
		for i, name := range []string{"apple", "banana", "cherry", "damson"} {
			want := 0
			if slices.Contains(order, i) {
				want = 1
			}
			assert.Len(t, x.Search(name, 9, nil), want, "%v: %s", order, name)
		}
	}
}

// The newest index of a line grows, and an older one is made anew, so that it stays as it is.
func TestWithGrowsTheNewest(t *testing.T) {
	t.Parallel()
	first := NewIndex([]*Document{{Name: "a"}}, nil)
	second := first.With([]*Document{{Name: "a"}, {Name: "b"}})
	assert.Same(t, first.growth, second.growth)
	third := second.With([]*Document{{Name: "c"}})
	assert.Same(t, first.growth, third.growth)
	assert.NotSame(t, first.growth, first.With([]*Document{{Name: "c"}}).growth)
	assert.Same(t, first.growth, third.With(nil).growth)
}
