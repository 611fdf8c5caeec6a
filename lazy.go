package mcphybrid

import (
	"context"
	"sync"
	"time"
)

// A lazy is a value that is loaded when it is first asked for: the connection
// to a server, the text of a skill. However many ask for it at once, it is
// loaded once; each waits no longer than its own context lets it, and none of
// them ends the load for the others. An error is told to those who waited, and
// not kept: whoever asks next has the value loaded again.
//
// A lazy shares the mutex of its owner, so that what the owner knows of the
// value changes in one step with it.
type lazy[T any] struct {
	load func(ctx context.Context) (T, error) // called without mu, once at a time unless forget is called
	keep time.Duration                        // how long a value serves; for good, if zero

	// settle, if not nil, is told with mu held how a load went, before anyone
	// else knows. It has the value also with an error, if there is one to
	// clean up.
	settle func(value T, err error)

	life context.Context // of loads
	run  func(func())    // starts a goroutine; called with mu held, and not once life has ended

	mu     *sync.Mutex // its owner's; guards what follows
	there  bool
	value  T // the zero value unless there
	since  time.Time
	flight *flight[T] // the load that is under way, or nil
}

// A flight is one load.
type flight[T any] struct {
	ended chan struct{}
	stop  context.CancelCauseFunc
	value T     // valid once it has ended, like err
	err   error // nil if value was loaded
}

// get returns the value, and waits for it if need be. One that is older than
// keep is loaded anew: it still serves meanwhile, unless it is twice as old.
func (l *lazy[T]) get(ctx context.Context) (T, error) {
	l.mu.Lock()
	age := time.Since(l.since)
	if l.there && l.keep > 0 && age >= 2*l.keep {
		l.forget()
	}
	value, there := l.value, l.there
	var f *flight[T]
	if !there || l.keep > 0 && age >= l.keep {
		f, _ = l.begin()
	}
	l.mu.Unlock()
	if there {
		return value, nil
	}
	return f.wait(ctx)
}

// begin returns the load that is under way, which it starts if there is none;
// fresh reports whether it did. It is called with mu held.
func (l *lazy[T]) begin() (f *flight[T], fresh bool) {
	if l.flight != nil {
		return l.flight, false
	}
	f = &flight[T]{ended: make(chan struct{})}
	if l.life.Err() != nil {
		f.err, f.stop = ErrClosed, func(error) {}
		close(f.ended)
		return f, false
	}
	ctx, stop := context.WithCancelCause(l.life)
	f.stop = stop
	l.flight = f
	l.run(func() {
		defer stop(nil)
		value, err := l.load(ctx)
		l.land(f, value, err)
	})
	return f, true
}

// land ends a load.
func (l *lazy[T]) land(f *flight[T], value T, err error) {
	l.mu.Lock()
	if err == nil && l.life.Err() != nil {
		err = ErrClosed
	}
	if l.flight == f {
		l.flight = nil
		if err == nil {
			l.there, l.value, l.since = true, value, time.Now()
		}
	}
	if l.settle != nil {
		l.settle(value, err)
	}
	l.mu.Unlock()
	if f.err = err; err == nil {
		f.value = value
	}
	close(f.ended)
}

// forget has the value loaded anew for whoever asks from now on, whatever is
// under way. It is called with mu held.
func (l *lazy[T]) forget() {
	var none T
	l.there, l.value, l.flight = false, none, nil
}

// wait returns what was loaded, or the error of ctx if that ends before.
func (f *flight[T]) wait(ctx context.Context) (value T, err error) {
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
