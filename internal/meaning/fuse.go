package meaning

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/mcphybrid/mcphybrid/vector"
)

// Similarities of different models can't be compared: with one, any two texts have 0.7,
// with another 0.1. So a similarity counts by its standard score: by how many standard
// deviations it lies above the mean of all records that could be found.
//
// What a model is worth shows where both sides agree. Most of what the words find first
// is right, so a good model has these records above the mean. Random vectors have them
// anywhere, and so weigh next to nothing.
//
// README.md has the measurements behind these figures.
const (
	fullWeight  = 0.35 // of meaning, where both sides agree
	fullScore   = 4.0  // the standard score that counts as much as the best match by words
	mostScore   = 6.0  // a greater one counts no more than this
	first       = 3    // how many matches by words tell whether both sides agree
	agreedScore = 1.0  // their mean standard score where both sides agree

	// sample is how many of the most similar records a search asks for, at least, to
	// estimate the mean and the deviation of all. If it finds fewer than fewSamples, the
	// others count as not similar at all.
	sample     = 200
	fewSamples = 20
)

// Found are the records that are most similar to a query.
type Found struct {
	Matches []vector.Match // best first

	all   []vector.Match // Matches, and further ones to estimate from; best first
	top   int            // so many of all are the most similar records of those that could be found
	of    int            // how many records could be found
	least float64        // least similarity of a match
}

// Join returns what searches for one query found in several scopes with vectors of one model, as if
// these were one scope. Equal similarities are in the order of list.
func Join(list ...Found) Found {
	if len(list) == 1 {
		return list[0]
	}
	var f Found
	least := math.Inf(-1) // of all records that could be found, none is missing above it
	for _, of := range list {
		f.Matches, f.all, f.of, f.least = append(f.Matches, of.Matches...), append(f.all, of.all...), f.of+of.of, max(f.least, of.least)
		if n := of.top; n > 0 && n < of.of {
			least = max(least, of.all[n-1].Similarity)
		}
	}
	for _, all := range [][]vector.Match{f.Matches, f.all} {
		slices.SortStableFunc(all, func(a, b vector.Match) int { return cmp.Compare(b.Similarity, a.Similarity) })
	}
	f.top = sort.Search(len(f.all), func(i int) bool { return f.all[i].Similarity < least })
	return f
}

// Fuse merges matches by words, best first, with f. It returns the merged matches, best
// first, and the weight of meaning in their scores, which are
//
//	(1-weight)*Words + weight*z/4
//
// where Words is divided by the greatest, and z is the standard score of the similarity,
// from 0 to 6. Equal scores are in the order of the similarities, then of the IDs. If
// the words found nothing, the weight is 1 and a score is the similarity.
func (f Found) Fuse(words []vector.Match) (fused []vector.Match, weight float64) {
	switch {
	case len(words) == 0:
		return vector.Fuse(nil, f.Matches, 1, math.MaxInt), 1
	case len(f.Matches) == 0:
		return vector.Fuse(words, nil, 0, math.MaxInt), 0
	}
	s := f.scale()
	known := make(map[string]float64, len(f.all))
	for _, m := range f.all {
		known[m.ID] = m.Similarity
	}
	score := func(id string) float64 {
		if similarity, ok := known[id]; ok {
			return s.score(similarity)
		}
		return s.rest
	}
	agreement := 0.0
	tell := words[:min(first, len(words))]
	for _, m := range tell {
		agreement += score(m.ID) / agreedScore / float64(len(tell))
	}
	agreement = within(agreement, 1)
	weight = fullWeight * agreement * agreement // squared, as chance makes small ones

	similar := append([]vector.Match(nil), f.Matches...)
	matches := make(map[string]bool, len(similar))
	for _, m := range similar {
		matches[m.ID] = true
	}
	for _, m := range words {
		if !matches[m.ID] {
			similar = append(similar, vector.Match{ID: m.ID})
		}
	}
	for i := range similar {
		similar[i].Similarity = within(score(similar[i].ID), mostScore) / fullScore
	}
	fused = vector.Fuse(words, similar, weight, math.MaxInt)
	for i := range fused {
		m := &fused[i]
		if m.Similarity = known[m.ID]; m.Similarity < f.least {
			m.Similarity = 0
		}
	}
	sort.SliceStable(fused, func(i, j int) bool {
		a, b := &fused[i], &fused[j]
		return a.Score > b.Score || a.Score == b.Score && a.Similarity > b.Similarity
	})
	return fused, weight
}

// within returns x, but at least 0 and at most most.
func within(x, most float64) float64 { return min(max(x, 0), most) }

// A scale turns similarities into standard scores.
type scale struct {
	mean, deviation float64
	rest            float64 // standard score of the records that are not known, on average
}

func (s scale) score(similarity float64) float64 {
	if s.deviation <= 0 {
		return 0 // all are equally similar
	}
	return (similarity - s.mean) / s.deviation
}

// scale estimates the scale of all records that could be found from those that are
// known, which are the most similar ones.
func (f Found) scale() (s scale) {
	n, of := len(f.all), max(f.of, len(f.all))
	if n < of && f.top >= fewSamples {
		return fit(f.all[:f.top], float64(of))
	}
	for _, m := range f.all {
		s.mean += m.Similarity / float64(of)
	}
	variance := s.mean * s.mean * float64(of-n) / float64(of)
	for _, m := range f.all {
		variance += (m.Similarity - s.mean) * (m.Similarity - s.mean) / float64(of)
	}
	s.deviation = math.Sqrt(variance)
	s.rest = s.score(0)
	return s
}

// fit takes the similarities for normally distributed: of so many, those of known
// are the upper tail. The line through their quantiles has the mean and the deviation.
// The first fifth is left out, as the records that the query means are there.
func fit(known []vector.Match, of float64) scale {
	n := len(known)
	var sumX, sumY, sumXX, sumXY, count float64
	for i, m := range known[n/5:] {
		x := quantile((float64(n/5+i) + 0.5) / of)
		sumX, sumY, sumXX, sumXY, count = sumX+x, sumY+m.Similarity, sumXX+x*x, sumXY+x*m.Similarity, count+1
	}
	var s scale
	s.deviation = (count*sumXY - sumX*sumY) / (count*sumXX - sumX*sumX)
	s.mean = (sumY - s.deviation*sumX) / count

	// The others are the lower part of the distribution, with this mean.
	share := float64(n) / of
	x := quantile(share)
	s.rest = min(s.score(known[n-1].Similarity), -math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)/(1-share))
	return s
}

// quantile returns the standard score that a share of a normal distribution lies above.
func quantile(share float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*share) }
