// Package foreign calls code that is not ours: handlers and functions of the
// host, servers in this process, writes to a child. Such code may panic, may
// take too long, and may not heed its context.
package foreign

import (
	"context"
	"fmt"
	"time"
)

// Call returns what f does. A panic in f is an error.
func Call[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// Detached returns what f does, or ctx's error as soon as ctx ends. What f
// returns after that is dropped: f may not heed ctx. f's goroutine then lives
// until f returns. A panic in f is an error.
func Detached[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := Call(f)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Within calls f with a context that ends after d, and says so in the error if
// it was that. It waits for f.
func Within[T any](ctx context.Context, d time.Duration, f func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := f(inner)
	if err != nil && inner.Err() != nil {
		var none T
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		return none, fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
	}
	return result, err
}
