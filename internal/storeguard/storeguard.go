// Package storeguard calls the stores of a host, which may panic or hang. A panic is an error, and a
// caller does not wait for long: a call that takes longer is left behind. No lock of this module
// is held while a store runs.
package storeguard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

const (
	// MaxWait is how long a save may wait for those of other processes.
	MaxWait = 10 * time.Second

	// MaxCall is how long a call of a document may take: a little longer than a save.
	MaxCall = MaxWait + time.Second
)

// calls are the calls of one store. They turn its panics into errors that begin with what.
//
// If wait is not 0, a call that takes longer fails and is left behind. Until it has returned,
// all others fail at once: what hangs is called no more, and nothing old is saved over what is
// newer.
type calls struct {
	what string
	wait time.Duration
	tell func(took time.Duration, err error) // after each call, or nil
	left atomic.Int32                        // those that were left behind and have not returned
}

// A call is one of [calls].
type call struct {
	mu       sync.Mutex
	left     bool // behind
	returned bool
}

// do calls f within c.wait.
func (c *calls) do(f func(*call) error) error {
	if c.tell == nil {
		return c.doUnobserved(f)
	}
	begun := time.Now()
	err := c.doUnobserved(f)
	c.tell(time.Since(begun), err)
	return err
}

func (c *calls) doUnobserved(f func(*call) error) error {
	one := new(call)
	if c.wait == 0 {
		return hostcode.Try(c.what, func() error { return f(one) })
	}
	if c.left.Load() > 0 {
		return fmt.Errorf("%s: a call before has not returned", c.what)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.wait)
	defer cancel()
	ended, err := hostcode.Detach(ctx, c.what, func() error {
		defer func() {
			one.mu.Lock()
			defer one.mu.Unlock()
			if one.returned = true; one.left {
				c.left.Add(-1)
			}
		}()
		return f(one)
	})
	if ended {
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.left = true; !one.returned {
		c.left.Add(1)
	}
	return fmt.Errorf("%s: no answer within %v", c.what, c.wait)
}

// get is [calls.do] for a method that returns data.
func (c *calls) get(f func() ([]byte, error)) ([]byte, error) {
	got := new([]byte)
	err := c.do(func(*call) (err error) {
		*got, err = f()
		return err
	})
	if err != nil {
		return nil, err // the call may not have returned
	}
	return *got, nil
}
