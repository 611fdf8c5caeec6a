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
