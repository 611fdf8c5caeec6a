package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
)

// A circuit refuses calls while a server does not answer them, so that not every
// call costs its full timeout. It opens after several calls in a row that had no
// answer within the call timeout, or if the server asks to wait. When the pause is
// over, it lets one call through. Unless the server asked to wait, an
// answer to any call closes it, and so does a new connection.
type circuit struct {
	limit int           // calls in a row without an answer that open it; 0: it does not open
	first time.Duration // the first pause; each further one is twice as long

	mu       sync.Mutex
	answered time.Time // when a call was answered last
	silent   int       // calls since then without an answer
	pauses   int       // since then
	reason   error     // why it is open, or nil
	opened   time.Time // when it opened
	until    time.Time // end of the pause
	probing  bool      // the one call is under way
}

// maxPauses is after how many pauses they get no longer: then they are 8 times as
// long as the first.
const maxPauses = 3

func newCircuit(l config.Limits) circuit {
	return circuit{limit: l.MaxTimeouts, first: min(l.CallTimeout, maxBackoff)}
}

// A passage is a call that a circuit let through.
type passage struct {
	begun time.Time
	probe bool // the one call after a pause
}

// A PausedError says that a call was not sent, because the server did not answer
// earlier calls or asked to wait. It matches [ErrDown].
type PausedError struct {
	Reason error     // without text from the server
	Until  time.Time // when the next call is sent; it may be past
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("%v: %v; a call is tried again at %s", ErrDown, e.Reason, e.Until.UTC().Format(time.RFC3339))
}

// Is reports whether target is [ErrDown].
func (e *PausedError) Is(target error) bool { return target == ErrDown }

// enter asks to make a call. Unless it returns an error, the caller must call
// leave with the result.
func (c *circuit) enter() (passage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.reason == nil {
		return passage{begun: now}, nil
	}
	if c.probing || now.Before(c.until) {
		return passage{}, &PausedError{c.reason, c.until}
	}
	c.probing = true
	return passage{now, true}, nil
}

// leave ends a call of a caller with context ctx.
func (c *circuit) leave(ctx context.Context, p passage, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.probe {
		c.probing = false
	}
	busy := new(busyError)
	asked := c.asksLocked()
	switch {
	case errors.As(err, &busy) && busy.wait > 0:
		if asked && time.Until(c.until) > busy.wait {
			return // it asked to wait longer
		}
		c.closeLocked()
		c.openLocked(busy, busy.wait)
	case asked:
		// The call was sent before the server asked to wait.
	case ctx.Err() != nil || errors.Is(err, ErrDown) || errors.As(err, new(barredError)):
		// The caller gave up, the connection broke or nothing was sent: that does
		// not tell whether the server answers.
	case !errors.Is(err, context.DeadlineExceeded):
		c.closeLocked()
	case !p.begun.Before(c.answered):
		c.silent++
		if c.limit > 0 && c.silent >= c.limit && (p.probe || c.reason == nil) {
			c.openLocked(fmt.Errorf("it has not answered the last %d calls", c.silent), c.first<<min(c.pauses, maxPauses))
		}
	}
}

// asksLocked reports whether the server asked to wait until a moment to come. The
// caller holds mu.
func (c *circuit) asksLocked() bool {
	return waitOf(c.reason) > 0 && time.Now().Before(c.until)
}

// openLocked refuses calls for that long. The caller holds mu.
func (c *circuit) openLocked(reason error, pause time.Duration) {
	now := time.Now()
	if c.reason == nil {
		c.opened = now
	}
	c.pauses++
	c.reason, c.until = reason, now.Add(pause)
}

// close lets all calls through, unless the server asked to wait.
func (c *circuit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asksLocked() {
		c.closeLocked()
	}
}

func (c *circuit) closeLocked() {
	c.answered, c.silent, c.pauses, c.reason = time.Now(), 0, 0, nil
}

// status returns st, or what it is while the circuit is open.
func (c *circuit) status(st Status) Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason != nil && (st.State == Ready || st.State == Degraded) {
		st.State, st.Err, st.Since, st.Retry = Degraded, c.reason, c.opened, c.until
	}
	return st
}
