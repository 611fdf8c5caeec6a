package meaning

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// found returns what a search for 50 candidates finds among records with these
// similarities, which have the IDs r0, r1, …
func found(similarities []float64) Found {
	var all []vector.Match
	for i, s := range similarities {
		if s > 0 {
			all = append(all, vector.Match{ID: fmt.Sprint("r", i), Similarity: s})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Similarity > all[j].Similarity })
	all = all[:min(len(all), sample)]
	return Found{Matches: all[:min(len(all), 50)], all: all, top: len(all), of: len(similarities)}
}

// byWords returns matches of these records, from the score 10 down to 5.
func byWords(records ...int) (words []vector.Match) {
	for i, r := range records {
		words = append(words, vector.Match{ID: fmt.Sprint("r", r), Words: 10 - 5*float64(i)/float64(len(records))})
	}
	return words
}

func idsOf(matches []vector.Match) (ids []string) {
	for _, m := range matches {
		ids = append(ids, m.ID)
	}
	return ids
}

func normal(r *rand.Rand, n int, mean, deviation float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = mean + deviation*r.NormFloat64()
	}
	return list
}

// A model that agrees with the words moves up what it finds; its level and its spread
// do not matter.
func TestAgreement(t *testing.T) {
	t.Parallel()
	for _, n := range []int{60, 199, 1000} {
		similarities := normal(rand.New(rand.NewPCG(1, 2)), n, 0.5, 0.05)
		for i, z := range []float64{3, 2, 1} { // what the words find first
			similarities[i] = 0.5 + 0.05*z
		}
		similarities[9], similarities[8] = 0.8, 0.2
		words := byWords(0, 1, 2, 8)
		words[3].Words = 5
		fused, weight := found(similarities).Fuse(words)
		assert.Equal(t, fullWeight, weight)
		assert.Equal(t, []string{"r0", "r1", "r2", "r9", "r8"}, idsOf(fused)[:5], "the words did not find r9")

		for i := range similarities {
			similarities[i] = (similarities[i]-0.5)/2 + 0.7
		}
		other, same := found(similarities).Fuse(words)
		assert.Equal(t, weight, same)
		assert.Equal(t, idsOf(fused), idsOf(other))
	}
}

// Vectors that know nothing of what the words found weigh next to nothing, and a model
// that contradicts the words weighs nothing. Then the words' order stands, and what only
// the model found follows by similarity.
func TestNoAgreement(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	sum := 0.0
	for range 500 {
		_, weight := found(normal(r, 300, 0, 0.1)).Fuse(byWords(0, 1, 2, 3, 4))
		sum += weight
	}
	assert.Less(t, sum/500, 0.15*fullWeight)

	similarities := normal(r, 100, 0.5, 0.05)
	similarities[0], similarities[1], similarities[2] = 0.3, 0.3, 0.3
	fused, weight := found(similarities).Fuse(byWords(2, 1, 0))
	assert.Zero(t, weight)
	assert.Equal(t, []string{"r2", "r1", "r0"}, idsOf(fused)[:3])
	require.Len(t, fused, 53)
	assert.True(t, slices.IsSortedFunc(fused[3:], func(a, b vector.Match) int { return int(math.Copysign(1, b.Similarity-a.Similarity)) }))
}

// Mean and deviation of many records are known from the most similar ones.
func TestScale(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for _, test := range []struct {
		n               int
		mean, deviation float64
	}{{150, 0.5, 0.1}, {400, 0.5, 0.1}, {2000, 0.5, 0.1}, {20_000, 0.7, 0.03}, {400, 0, 0.1}, {300, 0.05, 0.1}} {
		s := found(normal(r, test.n, test.mean, test.deviation)).scale()
		assert.InDelta(t, test.mean, s.mean, test.deviation/2, "%v", test)
		assert.InEpsilon(t, test.deviation, s.deviation, 0.2, "%v", test)
		assert.Less(t, s.rest, 0.1, "%v", test)
	}
	tail := make([]vector.Match, 20) // the upper half of 40 that are distributed just so
	for i := range tail {
		tail[i] = vector.Match{ID: fmt.Sprint(i), Similarity: 0.5 + 0.1*math.Sqrt2*math.Erfinv(1-(float64(i)+0.5)/20)}
	}
	half := Found{all: tail, top: 20, of: 40}.scale()
	assert.InDelta(t, 0.5, half.mean, 1e-9)
	assert.InDelta(t, 0.1, half.deviation, 1e-9)
	assert.InDelta(t, -math.Sqrt(2/math.Pi), half.rest, 1e-9, "the mean of a lower half")
	tail[19].Similarity = -1
	steep := Found{all: tail, top: 20, of: 40}.scale()
	assert.Equal(t, steep.score(-1), steep.rest, "what was not found is not more similar than what was")
	assert.Less(t, steep.rest, -1.0)
	some := Found{all: tail[:19], top: 19, of: 20}.scale() // too few for that: one is not similar at all
	assert.InDelta(t, some.score(0), some.rest, 1e-9)
	same := Found{all: []vector.Match{{ID: "a", Similarity: 0.5}, {ID: "b", Similarity: 0.5}}, of: 2}.scale()
	assert.Zero(t, same.score(0.5))
	few := Found{all: []vector.Match{{ID: "a", Similarity: 1}}, of: 4}.scale() // 1 and three times 0
	assert.InDelta(t, math.Sqrt(3), few.score(1), 1e-9)
	assert.InDelta(t, -1/math.Sqrt(3), few.rest, 1e-9)
}

// What was found in several scopes is as what one scope would have found. Where one scope's
// least known record is above another's, the mean and the deviation come from what lies above that.
func TestJoin(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for _, sizes := range [][]int{{5, 3}, {400, 2}, {3, 400}, {1000, 1000}, {2000, 100, 0}, {300, 30, 7}} {
		all := normal(r, 0, 0, 0)
		var parts []Found
		for _, n := range sizes {
			part := normal(r, n, 0.5, 0.1)
			of := found(part)
			for i := range of.all { // Matches are the same
				of.all[i].ID = fmt.Sprint(len(all), of.all[i].ID)
			}
			parts, all = append(parts, of), append(all, part...)
		}
		whole, joined := found(all), Join(parts...)
		assert.Equal(t, len(all), joined.of)
		require.LessOrEqual(t, joined.top, len(joined.all))
		for i := range whole.all {
			require.Equal(t, whole.all[i].Similarity, joined.all[i].Similarity, "%v %d", sizes, i)
		}
		assert.GreaterOrEqual(t, joined.top, len(whole.all))
		want, got := whole.scale(), joined.scale()
		assert.InDelta(t, want.mean, got.mean, 0.03, "%v", sizes)
		assert.InDelta(t, want.deviation, got.deviation, 0.02, "%v", sizes)
		assert.True(t, slices.IsSortedFunc(joined.Matches, func(a, b vector.Match) int { return cmp.Compare(b.Similarity, a.Similarity) }))
	}
	one := found(normal(r, 400, 0.5, 0.1))
	assert.Equal(t, one, Join(one))

	// What is as similar as the least known record is among those that are surely the best.
	part := func(of int, similarities ...float64) Found {
		f := Found{top: len(similarities), of: of}
		for _, s := range similarities {
			f.all = append(f.all, vector.Match{ID: fmt.Sprint(of, s), Similarity: s})
		}
		return f
	}
	for _, test := range []struct {
		parts []Found
		top   int
	}{
		{[]Found{part(9, 0.9, 0.7, 0.5), part(8, 0.8, 0.7, 0.6, 0.5, 0.4)}, 7},
		{[]Found{part(3, 0.9, 0.7, 0.5), part(8, 0.8, 0.7, 0.6)}, 5}, // the first has no others
		{[]Found{part(3, 0.9, 0.7, 0.5), part(2, 0.8, 0.7)}, 5},
		{[]Found{part(3), part(4, 0.8, 0.7)}, 2},
		{nil, 0},
	} {
		assert.Equal(t, test.top, Join(test.parts...).top, "%v", test.parts)
	}
}

// If one side finds nothing, the other's scores stand.
func TestOneSide(t *testing.T) {
	t.Parallel()
	fused, weight := Found{}.Fuse(byWords(1, 2))
	assert.Zero(t, weight)
	assert.Equal(t, []vector.Match{{ID: "r1", Score: 1, Words: 1}, {ID: "r2", Score: 0.75, Words: 0.75}}, fused)
	fused, weight = found([]float64{0.2, 0.4}).Fuse(nil)
	assert.Equal(t, 1.0, weight)
	assert.Equal(t, []vector.Match{{ID: "r1", Score: 0.4, Similarity: 0.4}, {ID: "r0", Score: 0.2, Similarity: 0.2}}, fused)
	fused, weight = Found{}.Fuse(nil)
	assert.Empty(t, fused)
	assert.Equal(t, 1.0, weight)
}

// Whatever is found, each record is there once, by descending score, and the parts of
// its score are real.
func TestFuseAnything(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		similarities := normal(r, r.IntN(300), r.Float64()-0.2, []float64{0, 1e-9, 0.1}[r.IntN(3)])
		f := found(similarities)
		f.of = max(0, f.of+r.IntN(20)-10)
		f.least = 0.4
		var records []int
		for i := range r.IntN(60) {
			records = append(records, 3*i)
		}
		fused, weight := f.Fuse(byWords(records...))
		require.True(t, weight >= 0 && weight <= 1)
		seen := make(map[string]bool)
		for i, m := range fused {
			require.False(t, seen[m.ID])
			seen[m.ID] = true
			require.True(t, i == 0 || m.Score <= fused[i-1].Score)
			require.False(t, math.IsNaN(m.Score) || math.IsInf(m.Score, 0))
			require.True(t, m.Words >= 0 && m.Words <= 1)
		}
	}
}
