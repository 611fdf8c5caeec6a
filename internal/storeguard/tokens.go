package storeguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/locks"
	"github.com/mcphybrid/mcphybrid/store"
)

// Tokens returns a store that holds to the contract of [store.Tokens] whatever t does, and
// that nobody has to wait for. Errors call t what.
//
//   - change is called at most once, and does not run after Update has returned.
//   - Update returns when ctx ends. It only waits for a change that runs, and then for
//     [saveGrace]. t may go on; until it returns, other Updates of that key wait.
//   - A panic of t is an error, and so is a change that t did not call.
func Tokens(t store.Tokens, what string) store.Tokens {
	return &tokens{of: t, what: what}
}

type tokens struct {
	of    store.Tokens
	what  string
	locks locks.Keys
}

// saveGrace is how long a store may go on saving when the context ends: what it saves
// may be the only refresh token.
const saveGrace = 2 * time.Second

func (t *tokens) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	unlock, err := t.locks.Lock(ctx, key)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", t.what, err)
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
	_, err = hostcode.Detached(inner, t.what, func() (struct{}, error) {
		defer unlock()
		return struct{}{}, t.of.Update(inner, key, c.call)
	})
	switch called, failed := c.close(); {
	case failed != nil:
		return failed
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", t.what, ctx.Err())
	case err == nil && !called:
		return errors.New(t.what + " returned without a call of change")
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
