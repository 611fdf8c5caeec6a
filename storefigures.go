package mcphybrid

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
)

// A storeMeter counts the calls of one store, and tells of outages and conflicts.
type storeMeter struct {
	name string
	emit func(Event)

	mu      sync.Mutex
	figures snapshot.Store // without Name and Err
	err     error          // of the last call that failed, or nil
}

// storeMeters are those of the stores that a Manager uses or observes.
type storeMeters struct {
	mu   sync.Mutex
	list []*storeMeter
}

// meter returns the meter of that name.
func (m *Manager) meter(name string) *storeMeter {
	m.storeMeters.mu.Lock()
	defer m.storeMeters.mu.Unlock()
	for _, one := range m.storeMeters.list {
		if one.name == name {
			return one
		}
	}
	one := &storeMeter{name: name, emit: m.emit}
	m.storeMeters.list = append(m.storeMeters.list, one)
	return one
}

// observeStores counts the calls of the stores of the Manager's options.
func (m *Manager) observeStores() {
	observe := func(name string, of any) { storeguard.Observe(of, m.meter(name).called) }
	observe("Cache", m.opts.Cache)
	observe("TrustStore", m.opts.TrustStore)
	observe("StateParts", m.opts.StateParts)
	if m.opts.Usage != nil {
		observe("Usage", m.opts.Usage.Store)
	}
	if m.opts.Learn != nil {
		observe("Learn", m.opts.Learn.Store)
	}
}

// called counts a call.
func (s *storeMeter) called(took time.Duration, err error) {
	now, e := time.Now(), Event{Kind: EventStore, Store: s.name}
	s.mu.Lock()
	f := &s.figures
	f.Calls++
	f.Latency += took
	f.Longest = max(f.Longest, took)
	tells := true
	switch {
	case errors.Is(err, store.ErrUnavailable):
		f.Unavailable++
		s.err, e.Err = err, err
		if tells = f.Away.IsZero(); tells {
			f.Away = now
		}
	case errors.Is(err, store.ErrConflict):
		f.Conflicts++
		e.Err = err
	case err == nil || errors.Is(err, store.ErrNotFound):
		if tells = !f.Away.IsZero(); tells {
			e.Took, f.Away, s.err = now.Sub(f.Away), time.Time{}, nil
		}
	default:
		tells = false
		if !errors.Is(err, context.Canceled) {
			f.Failures++
			s.err = err
		}
	}
	s.mu.Unlock()
	if tells {
		s.emit(e)
	}
}

// Stores returns the figures of the stores that were called; none of those of users.
func (s *snapshotOf) Stores() (list []snapshot.Store) {
	meters := &s.m.storeMeters
	meters.mu.Lock()
	defer meters.mu.Unlock()
	for _, one := range meters.list {
		one.mu.Lock()
		f, err := one.figures, one.err
		one.mu.Unlock()
		if f.Calls == 0 {
			continue
		}
		if f.Name = one.name; err != nil {
			f.Err = s.Text(text.Line(err.Error(), text.MaxError))
		}
		list = append(list, f)
	}
	return list
}

// ObserveSessions returns s, and counts its calls: how many there were, how long they took, and how often they
// failed, found the engine away, or conflicted with another process. [Manager.Snapshot] and the pages of
// package debug have the figures, and an [EventStore] tells of an outage, its end, and each conflict.
func (m *Manager) ObserveSessions(s store.Sessions) store.Sessions {
	return observedSessions{s, m.meter("Sessions")}
}

type observedSessions struct {
	of    store.Sessions
	meter *storeMeter
}

func (o observedSessions) Get(ctx context.Context, id string) (state []byte, revision uint64, err error) {
	begun := time.Now()
	state, revision, err = o.of.Get(ctx, id)
	o.meter.called(time.Since(begun), err)
	return state, revision, err
}

func (o observedSessions) Put(ctx context.Context, id string, state []byte, revision uint64) (uint64, error) {
	begun := time.Now()
	next, err := o.of.Put(ctx, id, state, revision)
	o.meter.called(time.Since(begun), err)
	return next, err
}

func (o observedSessions) Delete(ctx context.Context, id string, revision uint64) error {
	begun := time.Now()
	err := o.of.Delete(ctx, id, revision)
	o.meter.called(time.Since(begun), err)
	return err
}

// List is not counted: how long it takes is up to who reads it.
func (o observedSessions) List(ctx context.Context) iter.Seq2[string, error] { return o.of.List(ctx) }

// ObserveLeases is [Manager.ObserveSessions] for leases. How long a call took includes the wait for another
// holder, and a lease that is lost counts as a conflict.
func (m *Manager) ObserveLeases(l store.Leases) store.Leases {
	return observedLeases{l, m.meter("Leases")}
}

type observedLeases struct {
	of    store.Leases
	meter *storeMeter
}

func (o observedLeases) Lease(ctx context.Context, id string) (held context.Context, release func(), err error) {
	begun := time.Now()
	held, release, err = o.of.Lease(ctx, id)
	o.meter.called(time.Since(begun), err)
	if err == nil {
		context.AfterFunc(held, func() {
			if errors.Is(context.Cause(held), store.ErrLeaseLost) {
				o.meter.lost()
			}
		})
	}
	return held, release, err
}

// lost counts a lease that was lost.
func (s *storeMeter) lost() {
	s.mu.Lock()
	s.figures.Conflicts++
	s.mu.Unlock()
	s.emit(Event{Kind: EventStore, Store: s.name, Err: store.ErrLeaseLost})
}
