package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/enrich"
)

// Hints are looked up by internal/enrich and published with the catalog (catalog.hints). From there
// the index reads them (ranker.go), and the model in notes on the tools that it has (toolnotes.go).

// RefreshHints looks up the hints of all tools again. It returns when the new
// hints are in the catalog, so that sessions search and show them. Without an
// [Options.Enricher] it does nothing. The Enricher must not call it.
//
// If lookups fail, the error says how many and gives the reason of one. Those tools
// keep their previous hints. If ctx ends first, RefreshHints returns its error, and
// the lookups go on.
func (m *Manager) RefreshHints(ctx context.Context) error {
	return prefixed(m.refreshHints(ctx), "hints: ")
}

func (m *Manager) refreshHints(ctx context.Context) error {
	if m.lookups == nil {
		return nil
	}
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return ErrClosed
	}
	m.lookups.Changed()
	m.mu.Unlock()
	return m.lookups.Refresh(ctx)
}

// newLookups returns what looks up the hints of the tools, or nil without an
// Enricher.
func (m *Manager) newLookups() *enrich.Lookups {
	e := m.opts.Enricher
	if _, none := e.(hints.NopEnricher); none || e == nil {
		return nil
	}
	return &enrich.Lookups{
		Look: func(ctx context.Context, t enrich.Tool) (hints.Hints, bool, error) {
			d := t.(*definition)
			return e.LookupHints(ctx, &BridgeTool{name: d.registered, def: d, owner: m.owner})
		},
		Timeout: m.opts.EnrichTimeout,
		Tools:   m.hintable,
		Publish: func() { _ = m.publishChange(func() error { return nil }) }, // fails only if the Manager is closed
		Log:     m.opts.Logger,
		Life:    m.life, Ended: ErrClosed, Run: m.background.Go,
	}
}

// hintable returns the current tools, of which hints are looked up.
func (m *Manager) hintable() []enrich.Tool {
	tools := m.cur.Load().tools
	list := make([]enrich.Tool, len(tools))
	for i, t := range tools {
		list[i] = t.def
	}
	return list
}
