package debug

import (
	"context"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
)

// maxHits is the greatest number of hits shown.
const maxHits = 20

type searchPage struct {
	Asked bool // the request has a query
	Found mcphybrid.SearchSnapshot
	Hits  []hitRow

	most float64 // the greatest part of all scores
}

// Width returns the length of a part's bar; the greatest part has 100.
func (p *searchPage) Width(part search.ScorePart) float64 {
	return max(0, min(100, 100*part.Score/p.most))
}

type hitRow struct {
	toolRow
	Hit mcphybrid.HitSnapshot
}

func newSearch(ctx context.Context, snap *mcphybrid.Snapshot, r request) *searchPage {
	p := new(searchPage)
	if r.Query == "" {
		return p
	}
	opts := mcphybrid.SearchOptions{Limit: maxHits}
	if r.Server != "" {
		opts.Servers = []string{r.Server}
	}
	p.Asked, p.Found = true, snap.Search(ctx, r.Query, opts)
	for _, hit := range p.Found.Hits[:min(len(p.Found.Hits), maxHits)] {
		for _, part := range hit.Parts {
			p.most = max(p.most, part.Score)
		}
		p.Hits = append(p.Hits, hitRow{newRow(hit.Tool), hit})
	}
	return p
}
