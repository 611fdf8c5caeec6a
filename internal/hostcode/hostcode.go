// Package hostcode calls code that this module does not control: handlers and
// functions of the host, servers in this process, writes to a child. Such code may
// panic, take too long or ignore its context. Nobody holds a lock of this module
// while it runs.
package hostcode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Try calls f. It turns a panic in f into an error that begins with what, such as "the
// embedder".
func Try(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(what, p)
		}
	}()
	return f()
}

// Call returns the results of f. A panic in f becomes an error, as with [Try].
func Call[T any](what string, f func() (T, error)) (value T, err error) {
	err = Try(what, func() (err error) {
		value, err = f()
		return err
	})
	return value, err
}

// Do calls f. A panic in f becomes an error, as with [Try].
func Do(what string, f func()) error {
	return Try(what, func() error {
		f()
		return nil
	})
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
// A panic in f becomes an error, as with [Try].
func Detached[T any](ctx context.Context, what string, f func() (T, error)) (value T, err error) {
	result := new(T) // of the goroutine until it has ended
	ended, err := Detach(ctx, what, func() (err error) {
		*result, err = f()
		return err
	})
	if ended {
		value = *result
	}
	return value, err
}

// Detach is [Detached] without a result. It reports whether the goroutine of f has ended.
func Detach(ctx context.Context, what string, f func() error) (ended bool, err error) {
	done := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%s: %w", what, errExited)
		defer func() { done <- err }()
		err = Try(what, f)
	}()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Within calls f with a context that ends after d, not counting the time in which
// [Hold] stops it, and waits for f. If the timeout was the reason for an error, the
// error says so.
func Within[T any](ctx context.Context, d time.Duration, f func(context.Context) (T, error)) (T, error) {
	inner, release := WithClock(ctx, d)
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
