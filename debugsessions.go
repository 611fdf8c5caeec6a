package mcphybrid

import (
	"context"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

type searchPage struct {
	Asked bool
	Took  time.Duration
	Words int // tools that were found by words
	Means int // and by meaning
	Err   string
	Hits  []hitRow

	most float64 // of the parts of all scores
}

// Width returns how much of 100 a part is of the largest one of all.
func (p *searchPage) Width(part search.ScorePart) float64 {
	return max(0, min(100, 100*part.Score/p.most))
}

type hitRow struct {
	toolRow
	Score, Words, Similarity float64
	NeededBy                 string
	Parts                    []search.ScorePart // what words gave, the text fit to be shown
	More                     int                // parts that are left out
}

// search searches as the model of the session would, of which nothing is told.
func (d *debugger) search(ctx context.Context, e *eraser, s liveSession, a asked) *searchPage {
	p := new(searchPage)
	if a.Query == "" {
		return p
	}
	query := a.Query[:min(len(a.Query), maxQueryBytes)]
	begun := time.Now()
	opts := SearchOptions{Limit: debugHits}
	if a.Server != "" {
		opts.Servers = []string{a.Server}
	}
	answer := s.Find(ctx, query, opts)
	p.Asked, p.Took, p.Words, p.Means = true, time.Since(begun), answer.Words, answer.Meaning
	if answer.Err != nil {
		p.Err = e.line(answer.Err.Error(), text.MaxError)
	}
	for _, hit := range answer.Hits[:min(len(answer.Hits), debugHits)] {
		t := hit.Tool
		h := hitRow{
			toolRow: toolRow{tool: t, name: t.name, Server: t.def.server, Tokens: d.m.toolTokens(t)},
			Score:   hit.Score, Words: hit.Words, Similarity: hit.Similarity,
		}
		h.write(e, nil)
		if hit.NeededBy != nil {
			h.NeededBy, _ = e.name(hit.NeededBy.name, hit.NeededBy.def)
		}
		for i, part := range s.Explain(query, t.name).Parts {
			if i >= debugParts {
				h.More++
				continue
			}
			part.Term, part.Query = e.term(part.Term, part.Query), e.line(part.Query, maxNameLength)
			h.Parts = append(h.Parts, part)
			p.most = max(p.most, part.Score)
		}
		p.Hits = append(p.Hits, h)
	}
	return p
}

// A sessionRow is one session in a list.
type sessionRow struct {
	Number     int
	Began      time.Time // zero for the Manager's own
	Intent     string
	Disclosure Disclosure
	Turn       int
	Active     int
	Usage      Usage
	Mean       time.Duration
	All, Sent  int // tokens of tools, in all and in a request
	Searches   int
	Empty      int // searches that found nothing
}

// Saved returns the tokens of tools that are not in a request.
func (r sessionRow) Saved() int { return max(r.All-r.Sent, 0) }

// How returns how the model comes to the deferred tools.
func (r sessionRow) How() string {
	return [disclosures]string{ByActivation: "by activation", ByBridge: "by the bridge", ByProvider: "by the provider"}[r.Disclosure]
}

// sessionRows returns the Manager's own session and then the others, the newest
// first.
func (d *debugger) sessionRows(page int) (rows []sessionRow, pages pager) {
	list, pages := rowsOf(append([]liveSession{{Session: d.m.session}}, d.newest()...), page)
	w := newWeigher(d.m)
	for _, s := range list {
		rows = append(rows, s.row(w))
	}
	return rows, pages
}

func (s liveSession) row(w *weigher) sessionRow {
	now := s.double()
	r := sessionRow{
		Number: s.number, Began: s.began, Intent: text.Line(now.intent, maxNameLength), Disclosure: now.disclosure, Turn: now.turn,
		Active: len(now.view().active), Usage: now.usage.calls, Mean: mean(now.usage.calls),
		Searches: now.usage.searches, Empty: now.usage.emptySearches,
	}
	r.All, r.Sent = w.weigh(s.Session)
	return r
}

type sessionPage struct {
	sessionRow
	Stats Stats
	Tools []activeRow
}

// An activeRow is an active tool.
type activeRow struct {
	toolRow
	Used int // turn of the last use
}

func (d *debugger) session(e *eraser, s liveSession) *sessionPage {
	p := &sessionPage{sessionRow: s.row(newWeigher(d.m)), Stats: s.Stats()}
	for _, t := range s.ActiveTools() {
		row := activeRow{toolRow{tool: t, name: t.name, Server: t.def.server, Tokens: d.m.toolTokens(t)}, s.used[t.name]}
		if len(p.Tools) < 3*debugRows {
			row.write(e, nil)
			p.Tools = append(p.Tools, row)
		}
	}
	return p
}
