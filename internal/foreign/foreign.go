// Package foreign calls code that this module does not control: handlers and
// functions of the host, servers in this process, writes to a child. Such code may
// panic, take too long or ignore its context.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Call returns the results of f. It turns a panic in f into an error.
func Call[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(text.WithoutAddresses(fmt.Sprintf("panic: %v", p)))
		}
	}()
	return f()
}

// Detached returns the results of f, or ctx's error as soon as ctx ends. f may
// ignore ctx: its goroutine then runs until f returns, and the results are dropped.
// A panic in f becomes an error.
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

// Within calls f with a context that ends after d and waits for f. If the timeout
// was the reason for an error, the error says so.
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
