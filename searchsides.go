package mcphybrid

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/meaning"
	"github.com/mcphybrid/mcphybrid/vector"
)

// One search of several indexes (searchindexes.go), by words, by meaning, or by both: what each finds becomes
// one list.

// A searchRequest describes a search.
type searchRequest struct {
	query     string
	n         int
	perServer int            // limit of tools per server; no limit if zero or negative
	perOwner  map[*owner]int // limit of tools per owner; no limit for a missing owner
	named     []*BridgeTool  // already found by name
	by        SearchSide
	used      func(name string) float64 // in how many sessions a tool was used; nil if nothing is learned

	vector func(context.Context) ([]float32, error) // makes the query's vector once; nil without meaning
}

// byWords searches one part by words.
func (p *searchPart) byWords(ctx context.Context, w searchRequest) (a Answer) {
	w.n = w.most([]searchPart{*p})
	// The index knows no servers. So we ask for more until enough are within
	// the limit.
	ask := w.n + len(w.named)
	if w.used != nil {
		ask = max(ask, learnedDepth)
	}
	for ; ; ask *= 4 {
		matches := p.index().Search(w.query, ask, p.keep)
		found := make([]Hit, len(matches))
		for i, match := range matches {
			found[i] = Hit{Tool: p.document(match.Doc), Score: match.Score, Words: match.Score}
		}
		a.Words = len(found)
		preferUsed(found, w.used)
		if a.Hits = w.best(found); len(a.Hits) == w.n || len(matches) < ask {
			return a
		}
	}
}

// most returns how many hits the parts can have by the limits per owner.
func (w searchRequest) most(parts []searchPart) (n int) {
	seen := make(map[*owner]bool)
	for _, p := range parts {
		of := p.tools[0].owner
		most, ok := w.perOwner[of]
		if !ok {
			return w.n
		}
		if !seen[of] {
			n = sum(n, most)
		}
		seen[of] = true
	}
	return min(n, w.n)
}

// bySides searches parts that have vectors, of one model, by words and by meaning. All
// hits have one order, by one scale. If no part finds anything by meaning, there is no
// answer, and errs says why, by part.
func bySides(ctx context.Context, parts []searchPart, w searchRequest) (a Answer, errs []error, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, parts[0].semantic.Timeout)
	defer cancel()
	w.n = w.most(parts)
	// If few servers have most candidates, a limit per server leaves too
	// few of them. So we ask for more until there are enough.
	for n := parts[0].semantic.Candidates; ; n *= 4 {
		var fused []Hit
		var more bool
		if fused, a, errs, more = searchBoth(ctx, parts, w, n); a.Meaning == 0 && w.by != ByMeaning {
			return Answer{}, errs, false
		}
		preferUsed(fused, w.used)
		a.Hits, a.Err = w.best(fused), joinOnce(errs)
		if w.perServer <= 0 || len(a.Hits) == w.n || !more {
			return a, nil, true
		}
	}
}

// searchBoth searches parts by words and by meaning concurrently. It returns the combined
// hits, best first, an answer that has no hits yet, the errors by part, and whether a part
// may have more candidates.
func searchBoth(ctx context.Context, parts []searchPart, w searchRequest, candidates int) (found []Hit, a Answer, errs []error, more bool) {
	se := parts[0].semantic
	byWords := candidates
	if w.by == ByMeaning {
		byWords = 0
	}
	tools := 0
	for _, p := range parts {
		tools += p.indexed()
	}
	similar, words := make([]meaning.Found, len(parts)), make([][]vector.Match, len(parts))
	errs = make([]error, len(parts))
	var sides sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		sides.Go(func() {
			of := 0
			for doc := range p.indexed() {
				if p.keep(doc) {
					of++
				}
			}
			similar[i], errs[i] = p.semantic.Search(ctx, w.query, candidates, w.vector, p.keepNamed, of)
		})
	}
	byName := make(map[string]*BridgeTool)
	for i := range parts {
		p := &parts[i]
		worth := worthOfRarest(tools) / worthOfRarest(p.indexed())
		for _, match := range p.index().Search(w.query, byWords, p.keep) {
			words[i] = append(words[i], vector.Match{ID: p.document(match.Doc).name, Words: match.Score * worth})
		}
	}
	sides.Wait()
	for i := range parts {
		more = more || len(words[i]) == candidates || len(similar[i].Matches) == candidates
		a.Words, a.Meaning = a.Words+len(words[i]), a.Meaning+len(similar[i].Matches)
		for _, list := range [][]vector.Match{words[i], similar[i].Matches} {
			for _, m := range list {
				byName[m.ID] = parts[i].tool(m.ID)
			}
		}
	}
	all, both := slices.Concat(words...), meaning.Join(similar...)
	slices.SortStableFunc(all, func(a, b vector.Match) int { return cmp.Compare(b.Words, a.Words) })
	var fused []vector.Match
	switch {
	case w.by != ByMeaning && se.ByRank:
		fused = vector.FuseRanks(all, both.Matches, math.MaxInt)
	case w.by != ByMeaning && se.Alpha != 0:
		a.Alpha = max(se.Alpha, 0)
		fused = vector.Fuse(all, both.Matches, a.Alpha, math.MaxInt)
	default:
		fused, a.Alpha = both.Fuse(all)
	}
	found = make([]Hit, len(fused))
	for i, f := range fused {
		found[i] = Hit{Tool: byName[f.ID], Score: f.Score, Words: f.Words, Similarity: f.Similarity}
	}
	return found, a, errs, more
}

// worthOfRarest returns the idf of a word that one of n tools has: see [BM25Index.Search].
// Scores of an index are about in proportion to it, so that a match in few tools has a
// small one.
func worthOfRarest(n int) float64 { return math.Log(float64(n+1) / 1.5) }

// searchAll searches all parts concurrently. Those with vectors have one answer together: the
// hits of a user and of the system are on one scale. The scores of the others can't be
// compared: so it takes the best hit of each, then the second best of each, and so on.
func searchAll(ctx context.Context, parts []searchPart, w searchRequest) (a Answer) {
	_ = ctx.Err() // a nil ctx panics here, where the host can recover
	with := 0     // so many have vectors, and come first
	if w.by != ByWords {
		if with = slices.IndexFunc(parts, func(p searchPart) bool { return p.semantic == nil }); with < 0 {
			with = len(parts)
		}
	}
	answers := make([]Answer, len(parts))
	var others sync.WaitGroup
	for i := max(with, 1); i < len(parts); i++ {
		others.Go(func() { answers[i] = parts[i].byWords(ctx, w) })
	}
	switch {
	case with > 0:
		both, errs, ok := bySides(ctx, parts[:with], w)
		if answers[0] = both; ok {
			break
		}
		for i, err := range errs {
			answers[i] = parts[i].byWords(ctx, w)
			answers[i].Err = err
		}
	case len(parts) > 0:
		answers[0] = parts[0].byWords(ctx, w)
	}
	others.Wait()
	var errs []error
	hits := 0
	for _, other := range answers {
		hits += len(other.Hits)
		a.Words += other.Words
		a.Meaning += other.Meaning
		a.Alpha = max(a.Alpha, other.Alpha)
		errs = append(errs, other.Err)
	}
	a.Err = joinOnce(errs)
	inTurns := make([]Hit, 0, hits)
	for rank := 0; rank < w.n; rank++ {
		for _, other := range answers {
			if rank < len(other.Hits) {
				inTurns = append(inTurns, other.Hits[rank])
			}
		}
	}
	a.Hits = w.best(inTurns)
	return a
}

// joinOnce joins errors, each text once.
func joinOnce(errs []error) error {
	var list []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(list, func(other error) bool { return other.Error() == err.Error() }) {
			list = append(list, err)
		}
	}
	return errors.Join(list...)
}

// best returns the first n hits of found within the limits per server and per
// owner. It skips the named tools.
func (w searchRequest) best(found []Hit) []Hit {
	from := make(map[origin]int)
	of := make(map[*owner]int)
	best := make([]Hit, 0, min(len(found), w.n))
	for _, h := range found {
		o := h.Tool.owner
		if len(best) == w.n || w.perServer > 0 && from[h.Tool.origin()] == w.perServer || slices.Contains(w.named, h.Tool) {
			continue
		}
		if most, ok := w.perOwner[o]; ok && of[o] == most {
			continue
		}
		if w.perServer > 0 {
			from[h.Tool.origin()]++
		}
		of[o]++
		best = append(best, h)
	}
	return best
}
