package debug

import (
	"context"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
)

// maxHits is the greatest number of hits shown.
const maxHits = 20

// maxParts is how many parts of a score are shown.
const maxParts = 60

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
	Hit   mcphybrid.HitSnapshot
	Parts []search.ScorePart // the first
	More  int                // further parts
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
		all := hit.Explained.Parts
		row := hitRow{newRow(hit.Tool), hit, all[:min(len(all), maxParts)], max(len(all)-maxParts, 0)}
		for _, part := range row.Parts {
			p.most = max(p.most, part.Score)
		}
		p.Hits = append(p.Hits, row)
	}
	return p
}
