// Package lease waits for the lease of an engine and keeps it.
package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// DefaultTime is how long an engine keeps a lease whose holder it does not hear of.
const DefaultTime = 10 * time.Second

// A Claim is what one holder asks of its engine. Its methods are not called concurrently.
type Claim interface {
	// Take takes the lease for the engine's time, counted from when the engine gets the request
	// or later, and reports whether it did: another may have it.
	Take(ctx context.Context) (taken bool, err error)

	// Renew does the same with a lease that was taken. It reports false if the lease was
	// another's meanwhile.
	Renew(ctx context.Context) (kept bool, err error)

	// Free gives back what was taken, also if it is not known whether it was. It may be called
	// again after an error. It returns nil, too, if the host has closed the connection: nothing can be
	// given back over it any more.
	Free(ctx context.Context) error
}

const (
	leastWait = 10 * time.Millisecond // between attempts to take it
	mostWait  = 250 * time.Millisecond
	freeTime  = time.Second
)

// Hold takes and keeps a lease, as [store.Leases] says. An engine keeps it for d from when it
// gets a request, so for a holder it lasts d from when it asked, by a clock that nobody sets.
// A claim may heed its contexts late: nobody waits for it then.
func Hold(ctx context.Context, c Claim, d time.Duration) (held context.Context, release func(), err error) {
	asked, err := take(ctx, c, d)
	if err != nil {
		return nil, nil, err
	}
	inner, end := context.WithCancelCause(ctx)
	h := &holding{Context: inner, end: end, until: asked.Add(usable(d))}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if !keep(h, c, d, asked) {
			end(store.ErrLeaseLost)
		}
	}()
	stop := h.watch()
	return h, sync.OnceFunc(func() {
		end(nil)
		stop()
		soon(func() {
			<-over
			free(ctx, c, d)
		})
	}), nil
}

// A holding is the context of a lease. Who looks at it when the lease is over sees that, also in
// a process that was stopped, whose timers are late.
type holding struct {
	context.Context
	end context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time
	timer *time.Timer
}

func (h *holding) Done() <-chan struct{} {
	h.look()
	return h.Context.Done()
}

func (h *holding) Err() error {
	h.look()
	return h.Context.Err()
}

// last returns when the lease is over unless it is renewed.
func (h *holding) last() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// look ends the context if the lease is over.
func (h *holding) look() {
	if !time.Now().Before(h.last()) {
		h.end(store.ErrLeaseLost)
	}
}

// watch ends the context when the lease is over.
func (h *holding) watch() (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(time.Until(h.until), h.look)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer.Stop()
	}
}

// renew has the lease last until then.
func (h *holding) renew(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	if h.timer != nil && h.Context.Err() == nil {
		h.timer.Reset(time.Until(until))
	}
}

// free gives a lease back. If its engine is away, it tries again until the lease has expired: when
// the engine is back, who waits for the lease must not wait for that.
func free(ctx context.Context, c Claim, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		once, cancel := context.WithTimeout(ctx, freeTime)
		err := c.Free(once)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return
		}
	}
}

// soon does something, and goes on without it when that takes too long.
func soon(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(freeTime):
	}
}

// usable is how much of a lease a holder uses: the rest is for what it begins just before.
func usable(d time.Duration) time.Duration { return d - d/10 }

// errHeld says that the engine answers, and somebody else has the lease.
var errHeld = errors.New("somebody else has the lease")

// IsHeld reports whether a lease could not be had in time because somebody else has it.
func IsHeld(err error) bool { return errors.Is(err, errHeld) }

// take returns when it asked for the lease that it got.
func take(ctx context.Context, c Claim, d time.Duration) (asked time.Time, err error) {
	held := false
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		asked = time.Now()
		taken, err := try(ctx, c, d)
		switch {
		case err != nil && held && ctx.Err() != nil:
			return asked, fmt.Errorf("%w: %w", errHeld, ctx.Err())
		case err != nil:
			return asked, err
		case taken && time.Since(asked) < usable(d):
			return asked, nil
		case taken: // the answer took too long
			soon(func() { free(ctx, c, d) })
		default:
			held = true
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			if held {
				return asked, fmt.Errorf("%w: %w", errHeld, ctx.Err())
			}
			return asked, ctx.Err()
		}
	}
}

// try asks once for a lease, which is of no use after d. If it fails, it gives back what may be
// taken.
func try(ctx context.Context, c Claim, d time.Duration) (taken bool, err error) {
	ask, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	answered := make(chan struct{})
	var answer struct {
		taken bool
		err   error
	}
	go func() {
		defer close(answered)
		answer.taken, answer.err = c.Take(ask)
	}()
	select {
	case <-answered:
		if answer.err == nil {
			return answer.taken, nil
		}
		err = answer.err
	case <-ask.Done():
		err = ask.Err()
	}
	soon(func() {
		<-answered
		free(ctx, c, d)
	})
	return false, err
}

// keep renews a lease, a quarter of its time after it was last asked for, until held ends. It
// reports false when the lease is lost. What is not answered is asked again while there is time:
// an idle connection may have been lost unnoticed.
func keep(held *holding, c Claim, d time.Duration, asked time.Time) bool {
	next := asked.Add(d / 4)
	for {
		select {
		case <-time.After(time.Until(next)):
		case <-held.Done():
			return true
		}
		asked = time.Now()
		until := held.last()
		if !asked.Before(until) {
			return false
		}
		ask, cancel := context.WithTimeout(held, min(until.Sub(asked), usable(d)/2))
		kept, err := c.Renew(ask)
		cancel()
		switch {
		case held.Err() != nil:
			return true
		case err == nil && !kept:
			return false
		case err == nil:
			held.renew(asked.Add(usable(d)))
			next = asked.Add(d / 4)
		default: // once more, soon
			next = time.Now().Add(d / 20)
		}
		if until := held.last(); next.After(until) {
			next = until
		}
	}
}

// Check returns an error unless an engine can keep leases for that time.
func Check(d time.Duration) error {
	if d < time.Second {
		return fmt.Errorf("LeaseTime is %v, below %v", d, time.Second)
	}
	return nil
}
