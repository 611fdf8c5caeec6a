package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/search"
)

// A scanned document is one that shares a term with the query.
type scanned struct {
	doc   int
	score float64

	// key is equal for documents that the formula can't tell apart: those of
	// the same length with the same count of each term of the query.
	key string
}

// scanAll ranks every document by the published formula, one at a time and without
// an index. In documents and query, spaces separate words.
func scanAll(docs []string, query string, n int, keep func(int) bool, k1, b float64) []scanned {
	count := func(doc, term string) (tf float64) {
		for word := range strings.FieldsSeq(doc) {
			if word == term {
				tf++
			}
		}
		return tf
	}
	words := 0
	for _, doc := range docs {
		words += len(strings.Fields(doc))
	}
	N := float64(len(docs))
	avgdl := float64(words) / N

	var found []scanned
	for i, doc := range docs {
		if keep != nil && !keep(i) {
			continue
		}
		dl := float64(len(strings.Fields(doc)))
		s := scanned{doc: i, key: fmt.Sprint(dl)}
		matches := false
		for term := range strings.FieldsSeq(query) {
			tf := count(doc, term)
			s.key += fmt.Sprint(" ", tf)
			if tf == 0 {
				continue
			}
			matches = true
			df := 0.0
			for _, other := range docs {
				if count(other, term) > 0 {
					df++
				}
			}
			idf := math.Log((N-df+0.5)/(df+0.5) + 1)
			s.score += idf * (tf * (k1 + 1) / (tf + k1*(1-b+b*dl/avgdl)))
		}
		if matches {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b scanned) int {
		if a.key == b.key {
			return 0
		}
		return cmp.Compare(b.score, a.score)
	})
	return found
}

// tolerance is the largest difference between a score and the formula's.
const tolerance = 1e-9

// difference compares got, the answer of an index for at most n documents, with
// the ranking want. It returns "" if they agree, and otherwise how they differ.
//
// The same numbers added in another order may differ in the last bits. So we
// don't compare the order of documents whose scores are within tolerance of
// each other. There is one exception: documents that the formula can't tell
// apart must have exactly equal scores and stand in the order of their numbers.
// We check each pair of documents with a known order, whether both are in got
// or n cut one of them off.
func difference(got []search.Match, want []scanned, n int) string {
	if len(got) != min(n, len(want)) {
		return fmt.Sprintf("%d documents, want %d", len(got), min(n, len(want)))
	}
	place := make(map[int]int)
	for i, m := range got {
		if _, ok := place[m.Doc]; ok {
			return fmt.Sprintf("document %d is there twice", m.Doc)
		}
		place[m.Doc] = i
		if i > 0 && (got[i-1].Score < m.Score || got[i-1].Score == m.Score && got[i-1].Doc > m.Doc) {
			return fmt.Sprintf("documents %d and %d are not in the order of their scores and numbers", got[i-1].Doc, m.Doc)
		}
	}
	known := 0
	for _, w := range want {
		i, ok := place[w.doc]
		if !ok {
			place[w.doc] = len(got) // after all others
			continue
		}
		known++
		if !(math.Abs(got[i].Score-w.score) <= tolerance) {
			return fmt.Sprintf("document %d has score %v, want %v", w.doc, got[i].Score, w.score)
		}
	}
	if known != len(got) {
		return "a document that does not match"
	}
	for _, a := range want {
		for _, b := range want {
			before := a.score > b.score+tolerance || a.key == b.key && a.doc < b.doc
			if before && place[a.doc] >= place[b.doc] && place[b.doc] < len(got) {
				return fmt.Sprintf("document %d must come before %d", a.doc, b.doc)
			}
		}
	}
	return ""
}

func TestSpecA6BM25EqualsScan(t *testing.T) {
	t.Parallel()
	vocabulary := []string{"create", "issue", "list", "github", "file", "搜索", "search", "v2"}
	parameters := []*BM25Options{nil, {1.2, 0.75}, {0, 0.75}, {1.2, 0}, {1.2, 1}, {0, 0}, {0, 1}, {2.5, 0.3}}
	searches, ties, cut := 0, 0, 0
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		words := vocabulary[:1+rnd.IntN(len(vocabulary))]
		docs := make([]string, 1+rnd.IntN(30))
		for i := range docs {
			var doc []string
			for range rnd.IntN(6) {
				doc = append(doc, words[rnd.IntN(len(words))])
			}
			docs[i] = strings.Join(doc, " ")
		}
		opts := parameters[rnd.IntN(len(parameters))]
		k1, b := 1.2, 0.75 // of the specification
		if opts != nil {
			k1, b = opts.K1, opts.B
		}
		x := NewBM25Index(docs, opts)
		require.Equal(t, len(docs), x.Len(), "seed %d", seed)

		for range 8 {
			var terms []string
			for range rnd.IntN(5) {
				terms = append(terms, words[rnd.IntN(len(words))])
			}
			if rnd.IntN(3) == 0 {
				terms = append(terms, "unknown")
			}
			query := strings.Join(terms, " ")
			n := 1 + rnd.IntN(len(docs)+2)
			var keep func(int) bool
			if rnd.IntN(3) > 0 {
				kept := make([]bool, len(docs))
				for i := range kept {
					kept[i] = rnd.IntN(3) > 0
				}
				keep = func(doc int) bool { return kept[doc] }
			}

			got := x.Search(query, n, keep)
			want := scanAll(docs, query, n, keep, k1, b)
			if d := difference(got, want, n); d != "" {
				t.Fatalf("seed %d, query %q, n %d, k1 %v, b %v: %s\n got %v\nwant %v\ndocs %q", seed, query, n, k1, b, d, got, want, docs)
			}
			if len(want) == 0 {
				require.Nil(t, got, "seed %d, query %q", seed, query)
			}

			searches++
			if len(want) > n {
				cut++
			}
			for i := 1; i < len(got); i++ {
				if got[i-1].Score == got[i].Score {
					ties++
				}
			}
		}
	}
	// The catalogs must be of the kind that this test needs.
	assert.Equal(t, 4000, searches)
	assert.Greater(t, ties, 4000)
	assert.Greater(t, cut, 500)
}

func TestSpecA6BM25WorkedExample(t *testing.T) {
	t.Parallel()
	docs := []string{"create issue", "list issue issue"}

	// "issue": N 2, df 2, idf ln(0.5/2.5 + 1) = 0.182321556793955, average
	// length 2.5.
	//   doc 0: 1*2.2 / (1 + 1.2*(0.25 + 0.75*2/2.5)) = 1.089108910891089
	//   doc 1: 2*2.2 / (2 + 1.2*(0.25 + 0.75*3/2.5)) = 1.301775147928994
	got := NewBM25Index(docs, nil).Search("Issue!", 10, nil)
	require.Len(t, got, 2)
	assert.Equal(t, 1, got[0].Doc)
	assert.InDelta(t, 0.237341671566389, got[0].Score, 1e-12)
	assert.Equal(t, 0, got[1].Doc)
	assert.InDelta(t, 0.198568032151832, got[1].Score, 1e-12)

	// A term counts once for each time that it occurs in the query.
	twice := NewBM25Index(docs, nil).Search("issue issue", 10, nil)
	require.Len(t, twice, 2)
	assert.InDelta(t, 2*0.237341671566389, twice[0].Score, 1e-12)

	// With k1 0, only presence counts, so the documents tie.
	flat := NewBM25Index(docs, &BM25Options{}).Search("issue", 10, nil)
	require.Len(t, flat, 2)
	assert.Equal(t, []int{0, 1}, []int{flat[0].Doc, flat[1].Doc})
	assert.InDelta(t, 0.182321556793955, flat[0].Score, 1e-12)
	assert.Equal(t, flat[0].Score, flat[1].Score)
}

func TestSpecA6BM25Defaults(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 1.2, DefaultK1)
	assert.Equal(t, 0.75, DefaultB)
	docs := []string{"create issue", "list issue issue"}
	assert.Equal(t, NewBM25Index(docs, &BM25Options{K1: 1.2, B: 0.75}).Search("list issue", 2, nil), NewBM25Index(docs, nil).Search("list issue", 2, nil))
}

func TestBM25Ties(t *testing.T) {
	t.Parallel()
	docs := make([]string, 100)
	for i := range docs {
		docs[i] = "the same tool"
	}
	x := NewBM25Index(docs, nil)
	got := x.Search("tool", 10, func(doc int) bool { return doc%2 == 1 })
	var order []int
	for _, m := range got {
		order = append(order, m.Doc)
	}
	assert.Equal(t, []int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19}, order)
}

func TestBM25Edges(t *testing.T) {
	t.Parallel()
	docs := []string{"", "create issue", "--", "issue"}
	x := NewBM25Index(docs, nil)
	tests := []struct {
		name  string
		x     *BM25Index
		query string
		n     int
		keep  func(int) bool
		want  []int
	}{
		{"no documents", NewBM25Index(nil, nil), "issue", 5, nil, nil},
		{"only empty documents", NewBM25Index([]string{"", "-"}, nil), "issue", 5, nil, nil},
		{"empty documents never match", x, "issue create", 5, nil, []int{1, 3}},
		{"one document", NewBM25Index([]string{"issue"}, nil), "issue", 5, nil, []int{0}},
		{"a term of every document still scores", NewBM25Index([]string{"issue", "issue"}, nil), "issue", 5, nil, []int{0, 1}},
		{"empty query", x, "", 5, nil, nil},
		{"query without terms", x, "? a !", 5, nil, nil},
		{"unknown term", x, "unknown", 5, nil, nil},
		{"n 0", x, "issue", 0, nil, nil},
		{"n negative", x, "issue", -1, nil, nil},
		{"n larger than the matches", x, "issue", math.MaxInt, nil, []int{3, 1}},
		{"n 1 is the best", x, "issue", 1, nil, []int{3}},
		{"keep is applied before n", x, "issue", 1, func(doc int) bool { return doc != 3 }, []int{1}},
		{"keep nothing", x, "issue", 5, func(int) bool { return false }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.x.Search(test.query, test.n, test.keep)
			if test.want == nil {
				require.Nil(t, got)
				return
			}
			var order []int
			for _, m := range got {
				order = append(order, m.Doc)
				assert.Greater(t, m.Score, 0.0)
			}
			assert.Equal(t, test.want, order)
		})
	}
	assert.Zero(t, NewBM25Index(nil, nil).Len())
	assert.Equal(t, 4, x.Len())
}

func TestBM25ParameterOutOfRange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		opts BM25Options
		want string // "" if the options are valid
	}{
		{"zero", BM25Options{}, ""},
		{"b 1", BM25Options{K1: 3, B: 1}, ""},
		{"k1 negative", BM25Options{K1: -0.1, B: 0.75}, "BM25Options.K1 is -0.1"},
		{"k1 NaN", BM25Options{K1: math.NaN(), B: 0.75}, "BM25Options.K1 is NaN"},
		{"k1 infinite", BM25Options{K1: math.Inf(1), B: 0.75}, "BM25Options.K1 is +Inf"},
		{"b negative", BM25Options{K1: 1.2, B: -0.1}, "BM25Options.B is -0.1"},
		{"b above 1", BM25Options{K1: 1.2, B: 1.1}, "BM25Options.B is 1.1"},
		{"b NaN", BM25Options{K1: 1.2, B: math.NaN()}, "BM25Options.B is NaN"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer func() {
				r := recover()
				if test.want == "" {
					assert.Nil(t, r)
					return
				}
				assert.Contains(t, fmt.Sprint(r), test.want)
			}()
			NewBM25Index([]string{"create issue"}, &test.opts)
		})
	}
}

// The index reads its options once. Changing them later changes no index.
func TestBM25OptionsAreCopied(t *testing.T) {
	t.Parallel()
	opts := &BM25Options{K1: 1.2, B: 0.75}
	x := NewBM25Index([]string{"create issue", "issue"}, opts)
	want := x.Search("issue", 2, nil)
	*opts = BM25Options{}
	assert.Equal(t, want, x.Search("issue", 2, nil))
}

func TestBM25ConcurrentSearch(t *testing.T) {
	t.Parallel()
	docs := benchmarkDocs(200)
	x := NewBM25Index(docs, nil)
	queries := benchmarkQueries(20)
	want := make([][]search.Match, len(queries))
	for i, q := range queries {
		want[i] = NewBM25Index(docs, nil).Search(q, 10, nil)
		require.NotEmpty(t, want[i], "query %q", q)
	}

	const goroutines, rounds = 32, 10
	var equal atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				for i, q := range queries {
					if slices.Equal(want[i], x.Search(q, 10, nil)) {
						equal.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, goroutines*rounds*len(queries), equal.Load())
}

// benchmarkDocs returns n documents like those of tools: a server's name, a
// tool's name and a sentence. Some words are in many of them, most words in
// few.
func benchmarkDocs(n int) []string {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	docs := make([]string, n)
	for i := range docs {
		var b strings.Builder
		fmt.Fprintf(&b, "server%d %s_%s", i/20, benchmarkWord(rnd), benchmarkWord(rnd))
		for range 8 + rnd.IntN(20) {
			b.WriteString(" " + benchmarkWord(rnd))
		}
		docs[i] = b.String()
	}
	return docs
}

func benchmarkQueries(n int) []string {
	rnd := rand.New(rand.NewPCG(2, uint64(n)))
	queries := make([]string, n)
	for i := range queries {
		queries[i] = strings.Join([]string{benchmarkWord(rnd), benchmarkWord(rnd), benchmarkWord(rnd)}, " ")
	}
	return queries
}

func benchmarkWord(rnd *rand.Rand) string {
	return fmt.Sprintf("word%d", int(math.Pow(1000, rnd.Float64())))
}

func BenchmarkBM25Search(b *testing.B) {
	queries := benchmarkQueries(64)
	for _, n := range []int{40, 400, 4000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			x := NewBM25Index(benchmarkDocs(n), nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.Search(queries[i%len(queries)], 5, nil)
			}
		})
	}
}

func BenchmarkNewBM25Index(b *testing.B) {
	for _, n := range []int{40, 400, 4000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			docs := benchmarkDocs(n)
			b.ReportAllocs()
			for b.Loop() {
				NewBM25Index(docs, nil)
			}
		})
	}
}

// One term is enough to search for. A single byte is none.
func TestBM25HasTerms(t *testing.T) {
	t.Parallel()
	x := NewBM25Index([]string{"create issue"}, nil)
	for query, want := range map[string]bool{"issue": true, "list issues": true, "none": true, "a": false, "a b": false, "a bc": true, "!": false, "": false, "的": true} {
		assert.Equal(t, want, x.HasTerms(query), query)
	}
}
