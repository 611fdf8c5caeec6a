package hints

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The limits of [Lookups].
const (
	// MaxLookups is how many lookups we wait for at once.
	MaxLookups = 8

	// MaxInside is how many calls of Look may be unfinished, including those that
	// have timed out. If that many hang, we start no other until one returns.
	MaxInside = 64

	// PublishEvery is how often we publish new hints while lookups go on. Each
	// time takes a new catalog.
	PublishEvery = 500 * time.Millisecond

	// LookupsEnd is how long lookups whose context has ended are waited for when
	// Life has ended.
	LookupsEnd = time.Second

	// MaxLogged is how many failures of a batch we log one by one.
	MaxLogged = 10
)

// Lookups keep the hints of tools that come and go. A tool is identified by a K, and V
// is what the owner keeps for its hints. One goroutine decides everything. Each lookup
// has two more: one waits for it, and one calls Look and may hang.
//
// The exported fields must be set before first use and not changed afterwards. nil
// are the Lookups of an owner without hints.
type Lookups[K comparable, V any] struct {
	Look    func(ctx context.Context, tool K) (*V, error) // calls the host's code; nil if there are no hints
	Timeout time.Duration                                 // of Look
	Equal   func(a, b *V) bool                            // reports whether both say the same
	Name    func(tool K) string                           // for logs and errors
	Tools   func() iter.Seq[K]                            // the current tools, none twice
	Publish func()                                        // called when Known has new hints
	Log     *slog.Logger

	Life  context.Context // ends all lookups
	Ended error           // error of Refresh after Life has ended
	Run   func(func())    // starts a goroutine

	known atomic.Pointer[map[K]*V] // stored only by run; a map is never changed

	begun     sync.Once
	wake      chan struct{} // holds one if there are newer tools
	freed     chan struct{} // holds one if a call of Look has returned
	outcomes  chan outcome[K, V]
	refreshes chan *refresh[K]
	inside    atomic.Int32 // unfinished calls of Look

	// Only run uses the following.
	asked    map[K]bool       // all current tools: each was or will be looked up
	waiting  []K              // to look up, in this order; none twice
	running  map[K]bool       // lookups that we wait for
	repeat   map[K]bool       // the part of running to look up once more
	found    map[K]*V         // not yet published; nil if the tool has lost its hints
	due      <-chan time.Time // when to publish found, if lookups take that long
	last     time.Time        // of the last publication
	failures int              // since last
	stuck    bool             // too many calls hang, and we have logged it
	pending  []*refresh[K]
}

// An outcome is that of one lookup. value is nil if there are no hints.
type outcome[K comparable, V any] struct {
	tool  K
	value *V
	err   error
}

// A refresh is one call of Refresh.
type refresh[K comparable] struct {
	left   map[K]bool // tools without an outcome so far
	failed int
	least  string        // first name, by the alphabet, among the failed tools
	err    error         // the error of that tool
	done   chan struct{} // closed when left is empty and everything is published
}

// Known returns the hints known so far. The map is shared and never changed.
func (l *Lookups[K, V]) Known() map[K]*V {
	if l == nil || l.known.Load() == nil {
		return nil
	}
	return *l.known.Load()
}

// Changed says that there are newer tools. The first call starts the lookups. Life
// must not have ended.
func (l *Lookups[K, V]) Changed() {
	if l == nil {
		return
	}
	l.begun.Do(func() {
		l.wake, l.freed = make(chan struct{}, 1), make(chan struct{}, 1)
		l.outcomes, l.refreshes = make(chan outcome[K, V]), make(chan *refresh[K])
		l.running, l.repeat, l.found = make(map[K]bool), make(map[K]bool), make(map[K]*V)
		l.Run(l.run)
	})
	nudge(l.wake)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Refresh looks up the hints of all current tools again, after a call of Changed. It
// returns when they are published. The error is that of ctx, or says how many lookups
// failed and why one did.
func (l *Lookups[K, V]) Refresh(ctx context.Context) error {
	r := &refresh[K]{done: make(chan struct{})}
	select {
	case l.refreshes <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Life.Done():
		return l.Ended
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Life.Done():
		return l.Ended
	}
	if r.failed > 0 {
		return fmt.Errorf("looking up those of %d tools failed: tool %q: %w", r.failed, r.least, r.err)
	}
	return nil
}

// run looks up hints until Life ends.
func (l *Lookups[K, V]) run() {
	for {
		select {
		case <-l.Life.Done():
			for range len(l.running) {
				<-l.outcomes
			}
			return
		case <-l.wake:
			l.enlist()
		case <-l.freed:
		case r := <-l.refreshes:
			l.enlist()
			l.again(r)
		case o := <-l.outcomes:
			l.note(o)
		case <-l.due:
			l.publish()
		}
		l.begin()
		switch {
		case len(l.found) == 0 && l.failures == 0:
		case l.awaited(), len(l.running) == 0 && time.Since(l.last) >= PublishEvery:
			l.publish()
		case l.due == nil:
			l.due = time.After(PublishEvery)
		}
		l.finish()
	}
}

// enlist queues the tools that are new and forgets those that have left.
func (l *Lookups[K, V]) enlist() {
	there := make(map[K]bool, len(l.asked))
	for t := range l.Tools() {
		if !l.asked[t] {
			l.waiting = append(l.waiting, t)
		}
		there[t] = true
	}
	l.asked = there
	gone := func(t K) bool { return !there[t] }
	l.waiting = slices.DeleteFunc(l.waiting, gone)
	maps.DeleteFunc(l.repeat, func(t K, _ bool) bool { return gone(t) })
	maps.DeleteFunc(l.found, func(t K, _ *V) bool { return gone(t) })
	for _, r := range l.pending {
		maps.DeleteFunc(r.left, func(t K, _ bool) bool { return gone(t) })
	}
	for t := range l.Known() {
		if gone(t) {
			l.renew()
			break
		}
	}
}

// again queues all tools for a lookup, except those that are queued already.
func (l *Lookups[K, V]) again(r *refresh[K]) {
	waiting := make(map[K]bool, len(l.waiting))
	for _, t := range l.waiting {
		waiting[t] = true
	}
	r.left = maps.Clone(l.asked)
	for t := range l.Tools() {
		switch {
		case waiting[t] || !l.asked[t]:
		case l.running[t]:
			l.repeat[t] = true
		default:
			waiting[t] = true
			l.waiting = append(l.waiting, t)
		}
	}
	l.pending = append(l.pending, r)
}

// begin starts as many lookups as the limits permit.
func (l *Lookups[K, V]) begin() {
	for l.Life.Err() == nil && len(l.waiting) > 0 && len(l.running) < MaxLookups {
		if l.inside.Load() >= MaxInside {
			if len(l.running) == 0 && !l.stuck {
				l.stuck = true
				l.Log.Warn("mcphybrid: too many lookups of hints hang: none is started until one returns", "hanging", MaxInside, "waiting", len(l.waiting))
			}
			return
		}
		l.stuck = false
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running[t] = true
		l.inside.Add(1)
		go func() { l.outcomes <- l.lookup(t) }()
	}
}

// lookup asks for the hints of t and waits for at most the timeout. When Life has
// ended, it waits LookupsEnd for a host that heeds its context.
func (l *Lookups[K, V]) lookup(t K) outcome[K, V] {
	ctx, cancel := context.WithTimeout(l.Life, l.Timeout)
	defer cancel()
	done := make(chan outcome[K, V], 1)
	go func() {
		value, err := foreign.Call("the enricher", func() (*V, error) { return l.Look(ctx, t) })
		done <- outcome[K, V]{t, value, text.Bounded(err)}
		l.inside.Add(-1)
		nudge(l.freed)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	if l.Life.Err() != nil {
		select {
		case <-done:
		case <-time.After(LookupsEnd):
		}
	}
	return outcome[K, V]{t, nil, fmt.Errorf("no answer within %v: %w", l.Timeout, context.DeadlineExceeded)}
}

// note records the outcome of a lookup.
func (l *Lookups[K, V]) note(o outcome[K, V]) {
	again := l.repeat[o.tool]
	delete(l.running, o.tool)
	delete(l.repeat, o.tool)
	switch {
	case !l.asked[o.tool]: // the tool has left
		return
	case again:
		l.waiting = append(l.waiting, o.tool)
	default:
		l.told(o)
	}
	if o.err != nil {
		if l.failures++; l.failures <= MaxLogged {
			l.Log.Warn("mcphybrid: looking up the hints of a tool failed", "tool", l.Name(o.tool), "error", o.err)
		}
		return
	}
	had, unpublished := l.found[o.tool]
	if !unpublished {
		had = l.Known()[o.tool]
	}
	if none := had == nil || o.value == nil; none && had != o.value || !none && !l.Equal(had, o.value) {
		l.found[o.tool] = o.value
	}
}

// told notes the outcome for those who wait for all.
func (l *Lookups[K, V]) told(o outcome[K, V]) {
	for _, r := range l.pending {
		if r.left[o.tool] && o.err != nil {
			name := l.Name(o.tool)
			if r.failed++; r.failed == 1 || name < r.least {
				r.least, r.err = name, o.err
			}
		}
		delete(r.left, o.tool)
	}
}

// renew updates the known hints with found.
func (l *Lookups[K, V]) renew() {
	old := l.Known()
	known := make(map[K]*V, len(old)+len(l.found))
	maps.Copy(known, old)
	maps.Copy(known, l.found)
	maps.DeleteFunc(known, func(t K, value *V) bool { return value == nil || !l.asked[t] })
	l.known.Store(&known)
}

// publish publishes all of found at once.
func (l *Lookups[K, V]) publish() {
	if more := l.failures - MaxLogged; more > 0 {
		l.Log.Warn("mcphybrid: looking up the hints of more tools failed", "tools", more)
	}
	l.failures, l.due, l.last = 0, nil, time.Now()
	if len(l.found) == 0 {
		return
	}
	l.renew()
	l.Publish()
	clear(l.found)
}

// awaited reports whether a refresh waits only for found to be published.
func (l *Lookups[K, V]) awaited() bool {
	return slices.ContainsFunc(l.pending, func(r *refresh[K]) bool { return len(r.left) == 0 })
}

// finish ends the refreshes whose results are all published.
func (l *Lookups[K, V]) finish() {
	l.pending = slices.DeleteFunc(l.pending, func(r *refresh[K]) bool {
		done := len(r.left) == 0 && len(l.found) == 0
		if done {
			close(r.done)
		}
		return done
	})
}
