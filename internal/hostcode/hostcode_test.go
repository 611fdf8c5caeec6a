package hostcode

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCall(t *testing.T) {
	failed := errors.New("failed")
	value, err := Call("x", func() (int, error) { return 7, failed })
	assert.Equal(t, 7, value)
	assert.Equal(t, failed, err)
	value, err = Call("the test", func() (int, error) { panic("oops") })
	assert.Zero(t, value)
	assert.EqualError(t, err, "the test: panic: oops")
	assert.NoError(t, Do("x", func() {}))
	assert.EqualError(t, Do("x", func() { panic(failed) }), "x: panic: failed")
	assert.Less(t, len(Do("x", func() { panic(strings.Repeat("long ", 1<<20)) }).Error()), 8000)
}

// Code that ignores its context is left behind, and its result is dropped.
func TestDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value, err := Detached(t.Context(), "x", func() (int, error) { return 7, nil })
		assert.Equal(t, 7, value)
		assert.NoError(t, err)
		value, err = Detached(t.Context(), "x", func() (int, error) { return 7, errors.ErrUnsupported })
		assert.Equal(t, 7, value)
		assert.Equal(t, errors.ErrUnsupported, err)
		_, err = Detached(t.Context(), "x", func() (int, error) { panic("oops") })
		assert.EqualError(t, err, "x: panic: oops")
		_, err = Detached(t.Context(), "x", func() (int, error) { runtime.Goexit(); return 7, nil })
		assert.EqualError(t, err, "x: it ended its goroutine")

		ctx, cancel := context.WithCancel(t.Context())
		let := make(chan struct{})
		go func() { synctest.Wait(); cancel() }()
		value, err = Detached(ctx, "x", func() (int, error) { <-let; return 7, nil })
		assert.Zero(t, value)
		assert.ErrorIs(t, err, context.Canceled)
		close(let)
		late := make(chan struct{})
		defer close(late)
		ended, err := Detach(ctx, "x", func() error { <-late; return nil })
		assert.False(t, ended)
		assert.Equal(t, context.Canceled, err)
		ended, err = Detach(t.Context(), "x", func() error { return errors.ErrUnsupported })
		assert.True(t, ended)
		assert.Equal(t, errors.ErrUnsupported, err)
	})
}

// The error says what ended the call: the deadline or the caller.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context) (int, error) { <-ctx.Done(); return 7, ctx.Err() }
		begun := time.Now()
		value, err := Within(t.Context(), time.Minute, wait)
		assert.Zero(t, value)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "no answer within 1m0s: context deadline exceeded")
		assert.Equal(t, time.Minute, time.Since(begun))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Within(ctx, time.Minute, wait)
		assert.Equal(t, context.Canceled, err)

		for name, test := range map[string]struct {
			takes time.Duration
			err   error
			value int
			want  error
		}{
			"in time":                   {time.Second, nil, 7, nil},
			"an error in time":          {time.Second, errors.ErrUnsupported, 7, errors.ErrUnsupported},
			"late, and done":            {time.Hour, nil, 7, nil},
			"late, with another error":  {time.Hour, errors.ErrUnsupported, 0, context.DeadlineExceeded},
			"an error after the caller": {90 * time.Minute, errors.ErrUnsupported, 0, context.Canceled},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			limit := 30 * time.Minute
			if test.want == context.Canceled {
				limit = 2 * time.Hour
				time.AfterFunc(time.Hour, cancel)
			}
			value, err = Within(ctx, limit, func(context.Context) (int, error) { time.Sleep(test.takes); return 7, test.err })
			cancel()
			assert.Equal(t, test.value, value, name)
			assert.ErrorIs(t, err, test.want, name)
		}
	})
}
