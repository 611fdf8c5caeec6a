package debug

import (
	"context"

	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxHits is the greatest number of hits shown.
const maxHits = 20

// maxParts is how many parts of a score are shown.
const maxParts = 60

type searchPage struct {
	Asked bool // the request has a query
	Found snapshot.Search
	Hits  []hitRow
	All   bool // nothing is deferred, so that tools are found that a model does not search for
	examples
}

type hitRow struct {
	toolRow
	Hit snapshot.Hit
	scoreParts
}

// scoreParts are the first parts of a score, with their bars.
type scoreParts struct {
	Parts     []search.ScorePart
	MoreParts int
	most      *float64 // the greatest part of all scores on the page
}

// newParts returns the first of all parts, and raises most to the greatest of them.
func newParts(all []search.ScorePart, most *float64) scoreParts {
	p := scoreParts{all[:min(len(all), maxParts)], max(len(all)-maxParts, 0), most}
	for _, part := range p.Parts {
		*most = max(*most, part.Score)
	}
	return p
}

// Width returns the length of a part's bar; the greatest part has 100.
func (p scoreParts) Width(part search.ScorePart) float64 {
	if *p.most == 0 {
		return 0
	}
	return max(0, min(100, 100*part.Score / *p.most))
}

func newSearch(ctx context.Context, snap snapshot.Manager, r request) *searchPage {
	p := new(searchPage)
	p.All = snap.Session().Stats.Deferred == 0
	if r.Query == "" {
		p.examples = searchExamples(snap, r)
		return p
	}
	q := snapshot.Query{Text: r.Query, Limit: maxHits, All: p.All}
	if r.Server != "" {
		q.Servers = []string{r.Server}
	}
	p.Asked, p.Found = true, snap.Search(ctx, q)
	most := new(float64)
	for _, hit := range p.Found.Hits[:min(len(p.Found.Hits), maxHits)] {
		p.Hits = append(p.Hits, hitRow{newRow(hit.Tool), hit, newParts(hit.Explained.Parts, most)})
	}
	return p
}
