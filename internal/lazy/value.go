// Package lazy has values that are loaded when they are first asked for, once
// for all who wait. It starts no goroutine itself: the owner of a value says
// how one is run, and waits for it.
package lazy

import (
	"context"
	"sync"
	"time"
)

// A Value is loaded when it is first asked for: the connection to a server, the
// text of a skill. However many ask for it at once, it is loaded once; each
// waits no longer than its own context lets it, and none of them ends the load
// for the others. An error is told to those who waited, and not kept: whoever
// asks next has the value loaded again.
//
// A Value shares the mutex of its owner, so that what the owner knows of the
// value changes in one step with it. The exported fields are set before first
// use and not changed.
type Value[T any] struct {
	Load func(ctx context.Context) (T, error) // called without Mu, once at a time unless Forget is called
	Keep time.Duration                        // how long a value serves; for good, if zero

	// Settle, if not nil, is told with Mu held how a load went, before anyone
	// else knows. It has the value also with an error, if there is one to
	// clean up.
	Settle func(value T, err error)

	Life  context.Context // of loads
	Ended error           // of who asks once Life has ended
	Run   func(func())    // starts a goroutine; called with Mu held, and not once Life has ended

	Mu     *sync.Mutex // its owner's; guards what follows
	there  bool
	value  T // the zero value unless there
	since  time.Time
	flight *Flight[T] // the load that is under way, or nil
}

// A Flight is one load.
type Flight[T any] struct {
	ended chan struct{}
	stop  context.CancelCauseFunc
	value T     // valid once it has ended, like err
	err   error // nil if value was loaded
}

// Get returns the value, and waits for it if need be. One that is older than
// Keep is loaded anew: it still serves meanwhile, unless it is twice as old.
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

// Peek returns the value, or the zero value if there is none, and the load that
// is under way, or nil. It is called with Mu held.
func (l *Value[T]) Peek() (T, *Flight[T]) { return l.value, l.flight }

// Begin returns the load that is under way, which it starts if there is none;
// fresh reports whether it did. It is called with Mu held.
func (l *Value[T]) Begin() (f *Flight[T], fresh bool) {
	if l.flight != nil {
		return l.flight, false
	}
	f = &Flight[T]{ended: make(chan struct{})}
	if l.Life.Err() != nil {
		f.err, f.stop = l.Ended, func(error) {}
		close(f.ended)
		return f, false
	}
	ctx, stop := context.WithCancelCause(l.Life)
	f.stop = stop
	l.flight = f
	l.Run(func() {
		defer stop(nil)
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

// Forget has the value loaded anew for whoever asks from now on, whatever is
// under way. It is called with Mu held.
func (l *Value[T]) Forget() {
	var none T
	l.there, l.value, l.flight = false, none, nil
}

// Done returns a channel that is closed when the load has ended.
func (f *Flight[T]) Done() <-chan struct{} { return f.ended }

// Err returns nil if a value was loaded. It is valid once the load has ended.
func (f *Flight[T]) Err() error { return f.err }

// Stop ends the context of the load, for that cause.
func (f *Flight[T]) Stop(cause error) { f.stop(cause) }

// wait returns what was loaded, or the error of ctx if that ends before.
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
