package hostcode

import (
	"context"
	"sync"
	"time"
)

// A clock is a context that ends after some time, not counting the time in which
// it is stopped. A deadline of package context can't be moved.
type clock struct {
	context.Context // the parent; for its values

	inner context.Context // ends with the reason as its cause
	end   context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // when the clock last began to run
	since   time.Time     // when it last began to run
	stopped int           // how many hold it stopped
}

type clockKey struct{}

// WithClock returns a context that ends after d, not counting the time in which [Hold] stops
// it. The caller must call release.
func WithClock(ctx context.Context, d time.Duration) (clocked context.Context, release func()) {
	c := &clock{Context: ctx, left: d, since: time.Now()}
	inner, end := context.WithCancelCause(context.Background())
	c.inner, c.end = inner, end
	stop := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	// The runtime keeps a stopped timer for a while, and what its function refers to. So
	// that must not be ctx, whose values may be a whole message.
	c.timer = time.AfterFunc(d, func() { end(context.DeadlineExceeded) })
	return c, func() {
		stop()
		c.timer.Stop()
		end(context.Canceled)
	}
}

// Hold stops the time limit that [Within] set for ctx until resume is called.
// Several holds may overlap. Without a limit, Hold does nothing.
func Hold(ctx context.Context) (resume func()) {
	c, ok := ctx.Value(clockKey{}).(*clock)
	if !ok {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped++; c.stopped == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stopped--; c.stopped == 0 {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	})
}

// Deadline returns when the context ends if nobody stops it from now on.
func (c *clock) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.Context.Deadline()
	if end := c.since.Add(c.left); c.stopped == 0 && (!ok || end.Before(last)) {
		return end, true
	}
	return last, ok
}

func (c *clock) Done() <-chan struct{} { return c.inner.Done() }

// Err returns why the clock ended. Its own causes are all errors of a context.
func (c *clock) Err() error { return context.Cause(c.inner) }

func (c *clock) Value(key any) any {
	if key == (clockKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// AfterFunc lets package context derive contexts without a goroutine for each.
func (c *clock) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.inner, f) }
