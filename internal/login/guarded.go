package login

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
)

// Guarded returns a store that holds to the contract of [Store] whatever s does, and
// that nobody has to wait for. Errors call s what. If s is nil, it is a new [Memory].
//
//   - change is called at most once, and does not run after Update has returned.
//   - Update returns when ctx ends. It only waits for a change that runs, and then for
//     [saveGrace]. s may go on; until it returns, other Updates of that key wait.
//   - A panic of s is an error, and so is a change that s did not call.
func Guarded(s Store, what string) Store {
	if s == nil {
		s = new(Memory)
	}
	return &guarded{of: s, what: what}
}

type guarded struct {
	of    Store
	what  string
	turns turns // of the keys
}

// saveGrace is how long a store may go on saving when the context ends: what it saves
// may be the only refresh token.
const saveGrace = 2 * time.Second

func (g *guarded) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	end, err := g.turns.take(ctx, key)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", g.what, err)
	}
	c := newOnce(change)
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if called, failed := c.close(); called && failed == nil {
			select {
			case <-time.After(saveGrace):
			case <-inner.Done():
			}
		}
		cancel()
	})()
	_, err = foreign.Detached(inner, g.what, func() (struct{}, error) {
		defer end()
		return struct{}{}, g.of.Update(inner, key, c.call)
	})
	switch called, failed := c.close(); {
	case failed != nil:
		return failed
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", g.what, ctx.Err())
	case err == nil && !called:
		return errors.New(g.what + " returned without a call of change")
	}
	return err
}

// A once calls a change at most once.
type once struct {
	change func([]byte) ([]byte, error)
	turn   chan struct{} // has room for the one who uses the rest

	closed bool
	called bool
	err    error // of change
}

func newOnce(change func([]byte) ([]byte, error)) *once {
	return &once{change: change, turn: make(chan struct{}, 1)}
}

var (
	errCalledLate = errors.New("change was called twice, or after its context ended")
	errPanicked   = errors.New("change panicked")
)

func (c *once) call(document []byte) (changed []byte, err error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.closed {
		return nil, errCalledLate
	}
	c.closed, c.called, c.err = true, true, errPanicked
	changed, c.err = c.change(document)
	return changed, c.err
}

// close waits for the change if it was called. It is not called any more.
func (c *once) close() (called bool, failed error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	return c.called, c.err
}
