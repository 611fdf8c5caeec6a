// Package lazy provides values that are loaded on first use, once for all callers
// that wait. It starts no goroutines itself, but for a [Paced]: the owner of a value
// provides the function that runs one, and waits for it.
package lazy

import (
	"context"
	"sync"
	"time"
)

// A Value is loaded on first use, such as the connection to a server or the text of
// a skill. Concurrent callers share one load. Each waits only as long as its own
// context allows, and none ends the load for the others. Waiting callers get the
// error of a failed load, which is not kept: the next caller starts a new load.
//
// A Value shares the mutex of its owner, so that the value and the owner's state
// change in one step. The exported fields must be set before first use and not
// changed afterwards.
type Value[T any] struct {
	Load func(ctx context.Context) (T, error) // called without Mu; one call at a time, unless Forget is called
	Keep time.Duration                        // how long a value stays fresh; if zero, forever

	// Settle, if not nil, receives the result of each load before any caller does.
	// The caller holds Mu. value may be set together with err and then needs a
	// clean-up.
	Settle func(value T, err error)

	Life  context.Context // parent context of all loads
	Ended error           // error of Get after Life has ended
	Run   func(func())    // starts a goroutine; called with Mu held, never after Life has ended

	Mu     *sync.Mutex // the owner's; guards the fields below
	there  bool
	value  T // the zero value if not loaded
	since  time.Time
	flight *Flight[T] // the load under way, or nil
}

// A Flight is one load.
type Flight[T any] struct {
	ended chan struct{}
	value T     // valid after ended is closed, like err
	err   error // nil after a successful load
}

// Get returns the value and loads it if need be. If the value is older than Keep,
// Get starts a new load; it still returns the old value unless that is twice as old.
func (l *Value[T]) Get(ctx context.Context) (T, error) {
	l.Mu.Lock()
	age := time.Since(l.since)
	if l.there && l.Keep > 0 && age >= 2*l.Keep {
		l.Forget()
	}
	value, there := l.value, l.there
	var f *Flight[T]
	if !there || l.Keep > 0 && age >= l.Keep {
		f, _ = l.Begin()
	}
	l.Mu.Unlock()
	if there {
		return value, nil
	}
	return f.wait(ctx)
}

// Peek returns the value, or the zero value, and the load under way, or nil. The
// caller holds Mu.
func (l *Value[T]) Peek() (T, *Flight[T]) { return l.value, l.flight }

// Begin returns the load under way. If there is none, it starts one and fresh is
// true. The caller holds Mu.
func (l *Value[T]) Begin() (f *Flight[T], fresh bool) {
	if l.flight != nil {
		return l.flight, false
	}
	f = &Flight[T]{ended: make(chan struct{})}
	if l.Life.Err() != nil {
		f.err = l.Ended
		close(f.ended)
		return f, false
	}
	ctx, stop := context.WithCancel(l.Life)
	l.flight = f
	l.Run(func() {
		defer stop()
		value, err := l.Load(ctx)
		l.land(f, value, err)
	})
	return f, true
}

// land ends a load.
func (l *Value[T]) land(f *Flight[T], value T, err error) {
	l.Mu.Lock()
	if err == nil && l.Life.Err() != nil {
		err = l.Ended
	}
	if l.flight == f {
		l.flight = nil
		if err == nil {
			l.there, l.value, l.since = true, value, time.Now()
		}
	}
	if l.Settle != nil {
		l.Settle(value, err)
	}
	l.Mu.Unlock()
	if f.err = err; err == nil {
		f.value = value
	}
	close(f.ended)
}

// Forget drops the value and disregards the load under way. Later callers start a
// new load. The caller holds Mu.
func (l *Value[T]) Forget() {
	var none T
	l.there, l.value, l.flight = false, none, nil
}

// Done returns a channel that is closed when the load has ended.
func (f *Flight[T]) Done() <-chan struct{} { return f.ended }

// Err returns nil if a value was loaded. It is valid once the load has ended.
func (f *Flight[T]) Err() error { return f.err }

// wait returns the result of the load, or the error of ctx if ctx ends first.
func (f *Flight[T]) wait(ctx context.Context) (value T, err error) {
	select {
	case <-f.ended:
		return f.value, f.err
	default:
	}
	select {
	case <-f.ended:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
