package search

import (
	"math/rand/v2"
	"slices"
	"testing"

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
	for range 200 {
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
