package search

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Postings are read as they were appended, however far apart, and a copy of a head
// sees only its own. The loops of a search find the same in them.
func TestPostings(t *testing.T) {
	t.Parallel()
	const slots, signatures = 1 << 18, 1<<signatureBits + 1000
	rng := rand.New(rand.NewPCG(1, 1))
	worth := make([]uint32, signatures)
	for i := range worth {
		worth[i] = rng.Uint32N(2 * unit)
	}
	runs := 0
	for range mcptest.Long(200, 60) {
		var h head
		var all []posting
		var copies []head
		spread := uint32(1) << rng.IntN(17)
		for slot := rng.Uint32N(spread); slot < slots && len(all) < 2000; slot += 1 + rng.Uint32N(spread) {
			p := posting{slot, rng.Uint32N(1 << (1 + rng.IntN(signatureBits)))}
			if rng.IntN(50) == 0 {
				p.signature = signatures - 1 - rng.Uint32N(2000) // below and above the limit
			}
			h.post(p)
			all = append(all, p)
			if rng.IntN(100) == 0 {
				copies = append(copies, h)
			}
		}
		if len(all) == 0 {
			continue
		}
		require.Equal(t, all, h.list())
		for _, c := range copies {
			part := c.list()
			require.Equal(t, all[:len(part)], part)
		}
		runs += len(h.postings) - len(all)

		var other head // the same documents or those behind them
		for i, p := range all {
			if p.slot++; rng.IntN(2) == 0 && (i+1 == len(all) || all[i+1].slot > p.slot) {
				if rng.IntN(2) == 0 {
					p = posting{p.slot - 1, rng.Uint32N(signatures)}
				}
				other.post(p)
			}
		}
		if other.postings == nil {
			continue
		}
		x := &Index{worth: worth}
		x.heads.grow(2)
		*x.heads.change(0), *x.heads.change(1) = h, other
		r := &retrieval{x: x, scores: make([]uint32, slots+1), best: make([]uint32, slots+1)}
		r.ways = []way{{term: 0, weight: 3 * unit}, {term: 0, weight: 2 * unit}, {term: 1, weight: unit}}
		r.terms = []queryTerm{{begin: 0, end: 1}, {begin: 1, end: 3}, {}}
		r.scoreTerm(0)
		r.scoreTerm(1)
		want := make([]uint32, slots+1)
		for _, p := range all {
			want[p.slot] = 5 * worth[p.signature]
		}
		for _, p := range other.list() {
			twice := want[p.slot] / 5 * 2
			want[p.slot] += max(twice, worth[p.signature]) - twice
		}
		require.True(t, slices.Equal(want, r.scores))
	}
	assert.Greater(t, runs, 1000, "many postings begin a run")
}

// A list of heads has those of all terms, and a copy keeps what it had.
func TestHeadList(t *testing.T) {
	t.Parallel()
	const below, terms = 3*pageSize + 5, 10 * pageSize
	type version struct {
		list headList
		want map[uint32]int32 // df by term; 0 for the others
	}
	rng := rand.New(rand.NewPCG(1, 1))
	first := newHeadList(below)
	versions := []version{{first, map[uint32]int32{}}}
	for len(versions) < 50 {
		last := versions[len(versions)-1]
		next := version{last.list.clone(), maps.Clone(last.want)}
		next.list.grow(terms)
		for range rng.IntN(20) {
			term := rng.Uint32N(terms)
			next.list.change(term).own++
			next.want[term]++
		}
		versions = append(versions, next)
	}
	for _, v := range versions[1:] {
		for term := range uint32(terms) {
			require.Equal(t, v.want[term], v.list.at(term).own)
		}
	}
	for term := range uint32(below) {
		require.Zero(t, *versions[0].list.at(term))
	}
	require.Zero(t, noHead)
}

// An index of few documents takes memory for what they say, and little for the lexicon.
func TestFewDocumentsTakeLittle(t *testing.T) {
	if mcptest.Race() {
		t.Skip("the race detector takes memory")
	}
	heap := func() int {
		for range 3 { // a sync.Pool keeps its values over one collection
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	base := NewIndex(nil, nil)
	var words []string
	for n := range base.vocabulary.len() {
		words = append(words, string(base.vocabulary.text(uint32(n))))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	indexes := make([]*Index, 50)
	before := heap()
	for i := range indexes {
		docs := make([]*Document, 40)
		for j := range docs {
			docs[j] = &Document{Name: words[rng.IntN(len(words))], Description: strings.Repeat(words[rng.IntN(len(words))]+" ", 2) + "of this kind"}
		}
		indexes[i] = NewIndex(docs, nil)
	}
	each := (heap() - before) / len(indexes)
	t.Logf("%d KB for each index", each>>10)
	assert.Less(t, each, 48<<10)
	runtime.KeepAlive(indexes)
}

// below skips eight scores at a time, all of them too low, and no more.
func TestBelow(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		scores := make([]uint32, rng.IntN(40))
		for i := range scores {
			scores[i] = rng.Uint32N(100)
		}
		least := 80 + rng.Uint32N(22)
		n := below(scores, least)
		require.Zero(t, n%8)
		for _, s := range scores[:n] {
			require.Less(t, s, least)
		}
		if rest := scores[n:]; len(rest) >= 8 {
			require.GreaterOrEqual(t, slices.Max(rest[:8]), least)
		}
	}
}
