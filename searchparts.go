package mcphybrid

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/meaning"
	"github.com/mcphybrid/mcphybrid/vector"
)

// A want describes a search.
type want struct {
	query     string
	n         int
	perServer int            // limit of tools per server; no limit if zero or negative
	perOwner  map[*owner]int // limit of tools per owner; no limit for a missing owner
	named     []*BridgeTool  // already found by name
	by        SearchSide

	vector func(context.Context) ([]float32, error) // makes the query's vector once; nil without meaning
}

// A searchPart is one index of tools that a session sees.
type searchPart struct {
	*catalog
	verdicts *verdicts
	semantic *semantic                        // searches these tools by meaning, or nil
	may      func(*BridgeTool, standing) bool // reports which tools may be found
	only     []bool                           // which documents, or nil for all
	among    []int                            // the same documents
}

// parts returns the indexes in which at least one tool may be found, of one of these
// servers if there are any. The tools that the catalogs have not indexed have an index of
// their own.
func (v *view) parts(among func(*BridgeTool, standing) bool, servers ...string) (list []searchPart) {
	may := v.seenBy(among)
	left := false
	for i, c := range slices.Backward(v.catalogs) {
		list = append(list, v.partOf(i, c, may))
		for _, j := range c.ensureIndex().unindexed {
			left = left || may(c.tools[j], v.verdicts[i].at(j).standing)
		}
	}
	if left {
		rest := searchPart{catalog: v.unindexed(), verdicts: new(verdicts), may: may}
		for _, t := range rest.tools {
			rest.verdicts.of = append(rest.verdicts.of, verdict{standing: v.standing(t)})
		}
		list = append(list, rest)
	}
	return ofServers(list, servers)
}

// partsWithInline is parts with one index of all tools of each catalog.
func (v *view) partsWithInline(among func(*BridgeTool, standing) bool, servers ...string) (list []searchPart) {
	may := v.seenBy(among)
	for i, c := range slices.Backward(v.catalogs) {
		list = append(list, v.partOf(i, c.withInline(), may))
	}
	return ofServers(list, servers)
}

// partOf returns the part that has the tools of the i-th catalog, which c is, or c with
// another index.
func (v *view) partOf(i int, c *catalog, may func(*BridgeTool, standing) bool) searchPart {
	return searchPart{catalog: c, verdicts: &v.verdicts[i], semantic: v.tenant.of(c.owner).semantic, may: may}
}

// ofServers limits parts to the tools of these servers, if there are any, and drops those in
// which no tool may be found.
func ofServers(parts []searchPart, servers []string) (list []searchPart) {
	for _, p := range parts {
		if len(servers) > 0 {
			p.limit(servers)
		}
		if p.keepsAny() {
			list = append(list, p)
		}
	}
	return list
}

// keepsAny reports whether a tool may be found in p.
func (p *searchPart) keepsAny() bool {
	if p.only != nil {
		return slices.ContainsFunc(p.among, p.keep)
	}
	for doc := range p.indexed() {
		if p.keep(doc) {
			return true
		}
	}
	return false
}

// limit limits p to the tools of these servers.
func (p *searchPart) limit(servers []string) {
	p.only = make([]bool, len(p.indexed()))
	for _, pattern := range servers {
		p.among = append(p.among, p.servers().matching(pattern)...)
	}
	for _, doc := range p.among {
		p.only[doc] = true
	}
}

func (p *searchPart) keep(doc int) bool {
	if p.only != nil && !p.only[doc] {
		return false
	}
	i := p.indexed()[doc]
	return p.may(p.tools[i], p.verdicts.at(i).standing)
}

func (p *searchPart) keepNamed(name string) bool {
	i, ok := p.indexOf(name)
	if !ok {
		return false
	}
	doc, ok := slices.BinarySearch(p.indexed(), i) // a store may have more than is indexed
	return ok && p.keep(doc)
}

func (p *searchPart) document(doc int) *BridgeTool { return p.tools[p.indexed()[doc]] }

// search searches one part.
func (p *searchPart) search(ctx context.Context, w want) (a Answer) {
	if most, ok := w.perOwner[p.tools[0].owner]; ok {
		w.n = min(w.n, most)
	}
	if p.semantic != nil && w.by != ByWords {
		ctx, cancel := context.WithTimeout(ctx, p.semantic.Timeout)
		defer cancel()
		// If few servers have most candidates, a limit per server leaves too
		// few of them. So we ask for more until there are enough.
		for n := p.semantic.Candidates; ; n *= 4 {
			var fused []Hit
			if fused, a = p.searchBoth(ctx, w, p.semantic, n); a.Meaning == 0 && w.by != ByMeaning {
				a.Alpha = 0
				break
			}
			a.Hits = w.best(fused)
			if w.perServer <= 0 || len(a.Hits) == w.n || a.Words < n && a.Meaning < n {
				return a
			}
		}
	}
	// The index knows no servers. So we ask for more until enough are within
	// the limit.
	for ask := w.n + len(w.named); ; ask *= 4 {
		matches := p.index().Search(w.query, ask, p.keep)
		found := make([]Hit, len(matches))
		for i, match := range matches {
			found[i] = Hit{Tool: p.document(match.Doc), Score: match.Score, Words: match.Score}
		}
		a.Words = len(found)
		if a.Hits = w.best(found); len(a.Hits) == w.n || len(matches) < ask {
			return a
		}
	}
}

// searchBoth searches by words and by meaning concurrently. It returns the combined
// hits, best first, and an answer that has no hits yet.
func (p *searchPart) searchBoth(ctx context.Context, w want, se *semantic, candidates int) ([]Hit, Answer) {
	var similar meaning.Found
	answered := make(chan error, 1)
	go func() {
		of := 0
		for doc := range p.indexed() {
			if p.keep(doc) {
				of++
			}
		}
		var err error
		similar, err = se.Search(ctx, w.query, candidates, w.vector, p.keepNamed, of)
		answered <- err
	}()
	var words, fused []vector.Match
	byWords := candidates
	if w.by == ByMeaning {
		byWords = 0
	}
	for _, match := range p.index().Search(w.query, byWords, p.keep) {
		words = append(words, vector.Match{ID: p.document(match.Doc).name, Words: match.Score})
	}
	err := <-answered
	a := Answer{Words: len(words), Meaning: len(similar.Matches), Err: err}
	switch {
	case w.by != ByMeaning && se.ByRank:
		fused = vector.FuseRanks(words, similar.Matches, math.MaxInt)
	case w.by != ByMeaning && se.Alpha != 0:
		a.Alpha = max(se.Alpha, 0)
		fused = vector.Fuse(words, similar.Matches, a.Alpha, math.MaxInt)
	default:
		fused, a.Alpha = similar.Fuse(words)
	}
	found := make([]Hit, len(fused))
	for i, f := range fused {
		found[i] = Hit{Tool: p.tool(f.ID), Score: f.Score, Words: f.Words, Similarity: f.Similarity}
	}
	return found, a
}

// searchAll searches all parts concurrently. Their scores can't be compared: so it
// takes the best hit of each part, then the second best of each, and so on.
func searchAll(ctx context.Context, parts []searchPart, w want) (a Answer) {
	_ = ctx.Err() // a nil ctx panics here, where the host can recover
	answers := make([]Answer, len(parts))
	var others sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		others.Go(func() { answers[i] = parts[i].search(ctx, w) })
	}
	if len(parts) > 0 {
		answers[0] = parts[0].search(ctx, w)
	}
	others.Wait()
	var errs []error
	for rank := 0; rank < w.n; rank++ {
		for _, other := range answers {
			if rank < len(other.Hits) {
				a.Hits = append(a.Hits, other.Hits[rank])
			}
		}
	}
	for _, other := range answers {
		a.Words += other.Words
		a.Meaning += other.Meaning
		a.Alpha = max(a.Alpha, other.Alpha)
		if other.Err != nil && !slices.ContainsFunc(errs, func(err error) bool { return err.Error() == other.Err.Error() }) {
			errs = append(errs, other.Err)
		}
	}
	a.Err = errors.Join(errs...)
	a.Hits = w.best(a.Hits)
	return a
}

// best returns the first n hits of found within the limits per server and per
// owner. It skips the named tools.
func (w want) best(found []Hit) []Hit {
	from := make(map[origin]int)
	of := make(map[*owner]int)
	var best []Hit
	for _, h := range found {
		o := h.Tool.owner
		if len(best) == w.n || w.perServer > 0 && from[h.Tool.origin()] == w.perServer || slices.Contains(w.named, h.Tool) {
			continue
		}
		if most, ok := w.perOwner[o]; ok && of[o] == most {
			continue
		}
		from[h.Tool.origin()]++
		of[o]++
		best = append(best, h)
	}
	return best
}
