// Package foreign calls code that this module does not control: handlers and
// functions of the host, servers in this process, writes to a child. Such code may
// panic, take too long or ignore its context. Nobody holds a lock of this module
// while it runs.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Call returns the results of f. It turns a panic in f into an error that begins
// with what, such as "the embedder".
func Call[T any](what string, f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(what, p)
		}
	}()
	return f()
}

// Do calls f. A panic in f becomes an error, as with [Call].
func Do(what string, f func()) error {
	_, err := Call(what, func() (struct{}, error) { f(); return struct{}{}, nil })
	return err
}

// Logged calls f and logs a panic in it.
func Logged(log *slog.Logger, what string, f func()) {
	if err := Do(what, f); err != nil {
		log.Error("mcphybrid: the host's code panicked", "error", err)
	}
}

func panicked(what string, p any) error {
	return text.Bounded(errors.New(text.WithoutAddresses(fmt.Sprintf("%s: panic: %v", what, p))))
}

// errExited is the error of a function that ended its goroutine, as a failed
// assertion of a test does.
var errExited = errors.New("it ended its goroutine")

// Detached returns the results of f, or ctx's error as soon as ctx ends. f may
// ignore ctx: its goroutine then runs until f returns, and the results are dropped.
// A panic in f becomes an error, as with [Call].
func Detached[T any](ctx context.Context, what string, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: fmt.Errorf("%s: %w", what, errExited)}
		defer func() { done <- a }()
		a.value, a.err = Call(what, f)
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Within calls f with a context that ends after d, not counting the time in which
// [Hold] stops it, and waits for f. If the timeout was the reason for an error, the
// error says so.
func Within[T any](ctx context.Context, d time.Duration, f func(context.Context) (T, error)) (T, error) {
	inner, release := newClock(ctx, d)
	defer release()
	result, err := f(inner)
	if err != nil && (inner.Err() != nil || ctx.Err() != nil) {
		var none T
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		return none, fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
	}
	return result, err
}
