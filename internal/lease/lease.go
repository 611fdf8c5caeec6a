// Package lease waits for the lease of an engine and keeps it.
package lease

import (
	"context"
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

	// Free gives back what was taken, also if it is not known whether it was.
	Free(ctx context.Context) error
}

const (
	leastWait = 10 * time.Millisecond // between attempts to take it
	mostWait  = 250 * time.Millisecond
	freeTime  = time.Second
)

// Hold takes and keeps a lease, as [store.Leases] says. An engine keeps it for d from when it
// gets a request, so for a holder it lasts d from when it asked, by a clock that nobody sets.
func Hold(ctx context.Context, c Claim, d time.Duration) (held context.Context, release func(), err error) {
	asked, err := take(ctx, c, d)
	if err != nil {
		return nil, nil, err
	}
	held, end := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if !keep(held, c, d, asked) {
			end(store.ErrLeaseLost)
		}
	}()
	return held, sync.OnceFunc(func() {
		end(nil)
		<-over
		free(ctx, c)
	}), nil
}

func free(ctx context.Context, c Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTime)
	defer cancel()
	_ = c.Free(ctx) // else it expires
}

// usable is how much of a lease a holder uses: the rest is for what it begins just before.
func usable(d time.Duration) time.Duration { return d - d/10 }

// take returns when it asked for the lease that it got.
func take(ctx context.Context, c Claim, d time.Duration) (asked time.Time, err error) {
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		asked = time.Now()
		taken, err := c.Take(ctx)
		switch {
		case err != nil:
			free(ctx, c) // it may be taken
			return asked, err
		case taken && time.Since(asked) < usable(d):
			return asked, nil
		case taken: // the answer took too long
			free(ctx, c)
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return asked, ctx.Err()
		}
	}
}

// keep renews a lease, a third of its time after it was last asked for, until held ends. It
// reports false when the lease is lost.
func keep(held context.Context, c Claim, d time.Duration, asked time.Time) bool {
	until, next := asked.Add(usable(d)), asked.Add(d/3)
	for {
		select {
		case <-time.After(time.Until(next)):
		case <-held.Done():
			return true
		}
		asked = time.Now()
		if !asked.Before(until) {
			return false
		}
		ask, cancel := context.WithDeadline(held, until)
		kept, err := c.Renew(ask)
		cancel()
		switch {
		case held.Err() != nil:
			return true
		case err == nil && !kept:
			return false
		case err == nil:
			until, next = asked.Add(usable(d)), asked.Add(d/3)
		default: // once more, soon
			next = time.Now().Add(d / 20)
		}
		if next.After(until) {
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
