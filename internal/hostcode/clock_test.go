package hostcode

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
)

// The time for which a call is held does not count, however holds overlap.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := Within(t.Context(), time.Minute, func(ctx context.Context) (int, error) {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			deadline, _ := derived.Deadline()
			assert.Equal(t, begun.Add(time.Minute), deadline)
			time.Sleep(10 * time.Second)
			first := Hold(derived)
			second := Hold(derived)
			_, ok := derived.Deadline()
			assert.False(t, ok)
			time.Sleep(time.Hour)
			first()
			first() // once more has no effect
			time.Sleep(time.Hour)
			assert.NoError(t, derived.Err())
			second()
			<-derived.Done()
			assert.Equal(t, context.DeadlineExceeded, derived.Err(), "a derived context has the reason")
			return 0, derived.Err()
		})
		assert.EqualError(t, err, "no answer within 1m0s: context deadline exceeded")
		assert.Equal(t, 2*time.Hour+time.Minute, time.Since(begun))
		Hold(t.Context())() // there is nothing to hold

		// The caller can still end a call that is held.
		ctx, cancel := context.WithCancel(t.Context())
		_, err = Within(ctx, time.Minute, func(inner context.Context) (int, error) {
			defer Hold(inner)()
			cancel()
			<-inner.Done()
			return 0, inner.Err()
		})
		assert.Equal(t, context.Canceled, err)
	})
}

// What a context carries goes with its call, though the runtime keeps stopped timers among
// those that run.
func TestEndedCallsHoldNothing(t *testing.T) {
	type key struct{}
	carried := make([]weak.Pointer[[1 << 10]byte], 100)
	for i := range carried {
		message := new([1 << 10]byte)
		carried[i] = weak.Make(message)
		_, err := Within(context.WithValue(t.Context(), key{}, message), time.Hour, func(context.Context) (int, error) {
			for range 10 { // other calls, which go on
				other := time.AfterFunc(time.Hour, func() {})
				t.Cleanup(func() { other.Stop() })
			}
			return 0, nil
		})
		assert.NoError(t, err)
	}
	runtime.GC()
	held := 0
	for _, p := range carried {
		if p.Value() != nil {
			held++
		}
	}
	assert.LessOrEqual(t, held, 1, "the last may still be on the stack")
}

// The deadline is that of the clock or of its parent, whichever is sooner, and while the clock
// stands still that of the parent.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			parent, held, want time.Duration // from the beginning; 0 for none
		}{"alone": {0, 0, time.Minute}, "sooner": {30 * time.Second, 30 * time.Second, 30 * time.Second}, "later": {time.Hour, time.Hour, time.Minute}} {
			begun := time.Now()
			ctx := t.Context()
			if test.parent > 0 {
				var end context.CancelFunc
				ctx, end = context.WithDeadline(ctx, begun.Add(test.parent))
				defer end()
			}
			clocked, release := WithClock(ctx, time.Minute)
			deadline := func() time.Duration {
				at, ok := clocked.Deadline()
				if !ok {
					return 0
				}
				return at.Sub(begun)
			}
			assert.Equal(t, test.want, deadline(), name)
			time.Sleep(10 * time.Second)
			resume := Hold(clocked)
			assert.Equal(t, test.held, deadline(), name)
			time.Sleep(5 * time.Second)
			resume()
			if name == "sooner" {
				assert.Equal(t, test.want, deadline(), name)
			} else {
				assert.Equal(t, test.want+5*time.Second, deadline(), name)
			}
			release()
			assert.Equal(t, context.Canceled, clocked.Err(), "released")
			time.Sleep(2 * time.Hour)
			assert.Equal(t, context.Canceled, clocked.Err(), "and for good")
		}
	})
}

// Each time that a clock is held, only what has run counts; what was left runs on.
func TestHeldAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		clocked, release := WithClock(t.Context(), time.Minute)
		defer release()
		for range 5 {
			time.Sleep(10 * time.Second)
			resume := Hold(clocked)
			time.Sleep(time.Hour)
			resume()
		}
		<-clocked.Done()
		assert.Equal(t, 5*time.Hour+time.Minute, time.Since(begun))
		assert.Equal(t, context.DeadlineExceeded, clocked.Err())
		Hold(clocked)()
		assert.Equal(t, context.DeadlineExceeded, clocked.Err(), "what has ended has ended")
	})
}
