package mcphybrid

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The limits of lookups.
const (
	// maxLookups is how many lookups we wait for at once.
	maxLookups = 8

	// maxInside is how many calls of the Enricher may be unfinished, including
	// those that have timed out. If that many hang, we start no other until one
	// returns.
	maxInside = 64

	// publishEvery is how often we publish new hints while lookups go on. Each
	// time takes a new catalog.
	publishEvery = 500 * time.Millisecond

	// lookupsEnd is how long Close waits for lookups whose context has ended.
	lookupsEnd = time.Second

	// maxLookupsLogged is how many failures of a batch we log one by one.
	maxLookupsLogged = 10
)

// An enrichment keeps the hints of the tools that a Manager knows. One goroutine,
// in run, decides everything. Each lookup has two more: one waits for it, and one
// calls the Enricher and may hang.
type enrichment struct {
	m        *Manager
	enricher Enricher
	timeout  time.Duration

	known knownHints // replaced only by run, with Manager.mu held; never changed

	begun     sync.Once
	wake      chan struct{} // holds one if there is a newer catalog
	freed     chan struct{} // holds one if a call of the Enricher has returned
	outcomes  chan lookupResult
	refreshes chan *hintRefresh
	inside    atomic.Int32 // unfinished calls of the Enricher

	// Only run uses the following.
	asked    map[*definition]bool       // all current tools: each was or will be looked up
	waiting  []*BridgeTool              // to look up, in this order; no definition twice
	running  map[*definition]bool       // lookups that we wait for
	repeat   map[*definition]bool       // the part of running to look up once more
	found    map[*definition]*toolHints // not yet published; nil if the tool has lost its hints
	due      <-chan time.Time           // when to publish found, if lookups take that long
	last     time.Time                  // of the last publication
	failures int                        // since last
	stuck    bool                       // too many calls hang, and we have logged it
	pending  []*hintRefresh
}

// A lookupResult is the outcome of one lookup. hints is nil if there are none.
type lookupResult struct {
	tool  *BridgeTool
	hints *Hints
	err   error
}

// A hintRefresh is one call of [Manager.RefreshHints].
type hintRefresh struct {
	left   map[*definition]bool // tools without an outcome so far
	failed int
	least  string        // first name, by the alphabet, among the failed tools
	err    error         // the error of that tool
	done   chan struct{} // closed when left is empty and everything is published
}

// newEnrichment returns nil if m has no enricher.
func newEnrichment(m *Manager) *enrichment {
	if _, nop := m.opts.Enricher.(NopEnricher); nop || m.opts.Enricher == nil {
		return nil
	}
	return &enrichment{
		m: m, enricher: m.opts.Enricher, timeout: m.opts.EnrichTimeout,
		wake: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		outcomes: make(chan lookupResult), refreshes: make(chan *hintRefresh),
		running: make(map[*definition]bool), repeat: make(map[*definition]bool), found: make(map[*definition]*toolHints),
	}
}

// hints returns the known hints. The caller holds Manager.mu.
func (e *enrichment) hints() knownHints {
	if e == nil {
		return nil
	}
	return e.known
}

// changed says that there is a newer catalog. The first call starts run. The caller
// holds Manager.mu.
func (e *enrichment) changed() {
	if e == nil {
		return
	}
	e.begun.Do(func() { e.m.starting.Go(func() { e.run(e.m.life) }) })
	nudge(e.wake)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run looks up hints until ctx ends.
func (e *enrichment) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			for range len(e.running) {
				<-e.outcomes
			}
			return
		case <-e.wake:
			e.enlist()
		case <-e.freed:
		case r := <-e.refreshes:
			e.enlist()
			e.again(r)
		case o := <-e.outcomes:
			e.note(o)
		case <-e.due:
			e.publish()
		}
		e.begin(ctx)
		switch {
		case len(e.found) == 0 && e.failures == 0:
		case e.awaited(), len(e.running) == 0 && time.Since(e.last) >= publishEvery:
			e.publish()
		case e.due == nil:
			e.due = time.After(publishEvery)
		}
		e.finish()
	}
}

// enlist queues the tools that are new and forgets those that have left.
func (e *enrichment) enlist() {
	there := make(map[*definition]bool, len(e.asked))
	for _, t := range e.m.cur.Load().tools {
		if !there[t.def] && !e.asked[t.def] {
			e.waiting = append(e.waiting, t)
		}
		there[t.def] = true
	}
	e.asked = there
	gone := func(d *definition) bool { return !there[d] }
	e.waiting = slices.DeleteFunc(e.waiting, func(t *BridgeTool) bool { return gone(t.def) })
	maps.DeleteFunc(e.repeat, func(d *definition, _ bool) bool { return gone(d) })
	maps.DeleteFunc(e.found, func(d *definition, _ *toolHints) bool { return gone(d) })
	for _, r := range e.pending {
		maps.DeleteFunc(r.left, func(d *definition, _ bool) bool { return gone(d) })
	}
	for d := range e.known {
		if gone(d) {
			e.m.mu.Lock()
			e.known = e.next()
			e.m.mu.Unlock()
			break
		}
	}
}

// again queues all tools for a lookup, except those that are queued already.
func (e *enrichment) again(r *hintRefresh) {
	waiting := make(map[*definition]bool, len(e.waiting))
	for _, t := range e.waiting {
		waiting[t.def] = true
	}
	r.left = maps.Clone(e.asked)
	for _, t := range e.m.cur.Load().tools {
		switch d := t.def; {
		case waiting[d] || !e.asked[d]:
		case e.running[d]:
			e.repeat[d] = true
		default:
			waiting[d] = true
			e.waiting = append(e.waiting, t)
		}
	}
	e.pending = append(e.pending, r)
}

// begin starts as many lookups as the limits permit.
func (e *enrichment) begin(ctx context.Context) {
	for ctx.Err() == nil && len(e.waiting) > 0 && len(e.running) < maxLookups {
		if e.inside.Load() >= maxInside {
			if len(e.running) == 0 && !e.stuck {
				e.stuck = true
				e.m.opts.Logger.Warn("mcphybrid: too many lookups of hints hang: none is started until one returns", "hanging", maxInside, "waiting", len(e.waiting))
			}
			return
		}
		e.stuck = false
		t := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.running[t.def] = true
		e.inside.Add(1)
		go func() { e.outcomes <- e.lookup(ctx, t) }()
	}
}

// lookup asks the enricher and waits for at most the timeout. When life has ended,
// it waits lookupsEnd for an enricher that heeds its context.
func (e *enrichment) lookup(life context.Context, t *BridgeTool) lookupResult {
	ctx, cancel := context.WithTimeout(life, e.timeout)
	defer cancel()
	done := make(chan lookupResult, 1)
	go func() {
		h, err := foreign.Call("the enricher", func() (*Hints, error) {
			h, ok, err := e.enricher.LookupHints(ctx, t)
			if err == nil && ok {
				err = h.validate()
			}
			if err != nil || !ok {
				return nil, err
			}
			return &h, nil
		})
		done <- lookupResult{t, h, text.Bounded(err)}
		e.inside.Add(-1)
		nudge(e.freed)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	if life.Err() != nil {
		select {
		case <-done:
		case <-time.After(lookupsEnd):
		}
	}
	return lookupResult{t, nil, fmt.Errorf("no answer within %v: %w", e.timeout, context.DeadlineExceeded)}
}

// note records the outcome of a lookup.
func (e *enrichment) note(o lookupResult) {
	d := o.tool.def
	again := e.repeat[d]
	delete(e.running, d)
	delete(e.repeat, d)
	switch {
	case !e.asked[d]: // the tool has left
		return
	case again:
		e.waiting = append(e.waiting, o.tool)
	default:
		for _, r := range e.pending {
			if r.left[d] && o.err != nil {
				if r.failed++; r.failed == 1 || o.tool.name < r.least {
					r.least, r.err = o.tool.name, o.err
				}
			}
			delete(r.left, d)
		}
	}
	if o.err != nil {
		if e.failures++; e.failures <= maxLookupsLogged {
			e.m.opts.Logger.Warn("mcphybrid: looking up the hints of a tool failed", "tool", o.tool.name, "error", o.err)
		}
		return
	}
	had, unpublished := e.found[d]
	if !unpublished {
		had = e.known[d]
	}
	switch {
	case had == nil && o.hints == nil, had != nil && o.hints != nil && had.equal(*o.hints):
	case o.hints == nil:
		e.found[d] = nil
	default:
		e.found[d] = newToolHints(d, *o.hints)
	}
}

// next returns the known hints updated with found.
func (e *enrichment) next() knownHints {
	known := make(knownHints, len(e.known)+len(e.found))
	maps.Copy(known, e.known)
	maps.Copy(known, e.found)
	maps.DeleteFunc(known, func(d *definition, h *toolHints) bool { return h == nil || !e.asked[d] })
	return known
}

// publish publishes all of found in one change of the catalog.
func (e *enrichment) publish() {
	if more := e.failures - maxLookupsLogged; more > 0 {
		e.m.opts.Logger.Warn("mcphybrid: looking up the hints of more tools failed", "tools", more)
	}
	e.failures, e.due, e.last = 0, nil, time.Now()
	if len(e.found) == 0 {
		return
	}
	_ = e.m.change(func() error { // fails only if the Manager is closed
		e.known = e.next()
		return nil
	})
	clear(e.found)
}

// awaited reports whether a refresh waits only for found to be published.
func (e *enrichment) awaited() bool {
	return slices.ContainsFunc(e.pending, func(r *hintRefresh) bool { return len(r.left) == 0 })
}

// finish ends the refreshes whose results are all published.
func (e *enrichment) finish() {
	var pending []*hintRefresh
	for _, r := range e.pending {
		if len(r.left) == 0 && len(e.found) == 0 {
			close(r.done)
		} else {
			pending = append(pending, r)
		}
	}
	e.pending = pending
}

// RefreshHints looks up the hints of all tools again. It returns when the new
// hints are in the catalog, so that sessions search and show them. Without an
// [Options.Enricher] it does nothing. The Enricher must not call it.
//
// If lookups fail, the error says how many and gives the reason of one. Those tools
// keep their previous hints. If ctx ends first, RefreshHints returns its error, and
// the lookups go on.
func (m *Manager) RefreshHints(ctx context.Context) error {
	if err := m.refreshHints(ctx); err != nil {
		return fmt.Errorf("mcphybrid: hints: %w", err)
	}
	return nil
}

func (m *Manager) refreshHints(ctx context.Context) error {
	e := m.enrichment
	if e == nil {
		return nil
	}
	m.mu.Lock()
	closed := m.life.Err() != nil
	if !closed {
		e.changed()
	}
	m.mu.Unlock()
	if closed {
		return ErrClosed
	}
	r := &hintRefresh{done: make(chan struct{})}
	select {
	case e.refreshes <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-m.life.Done():
		return ErrClosed
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-m.life.Done():
		return ErrClosed
	}
	if r.failed > 0 {
		return fmt.Errorf("looking up those of %d tools failed: tool %q: %w", r.failed, r.least, r.err)
	}
	return nil
}
