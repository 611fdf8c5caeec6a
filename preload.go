package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Preload has the servers connected whose tools match one of the patterns, by
// registered name as in [Access], so that their first calls need not wait: with
// [Options.Cache] or [Options.IdleTimeout], servers run only once they are
// called. It connects them all at once, and returns when each is ready or has
// failed; those that are ready cost nothing. The error joins one for each that
// failed, naming it.
func (m *Manager) Preload(ctx context.Context, patterns ...string) error {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	c := m.cur.Load()
	wanted := make(map[string]bool)
	for _, t := range c.tools {
		if rules.MatchAny(patterns, t.name) {
			wanted[t.def.server] = true
		}
	}
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, src := range sources {
		if src.server == nil || !wanted[src.name] {
			continue
		}
		wg.Go(func() {
			if err := src.server.Connect(ctx); err != nil {
				errs[i] = fmt.Errorf("mcphybrid: server %q: %w", src.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
