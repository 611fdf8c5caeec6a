package lazy

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// errEnded is the error after the life of a value has ended.
var errEnded = errors.New("it has ended")

// A testLazy counts its loads. Each returns its number when the test lets it.
type testLazy struct {
	Value[int32]
	mu      sync.Mutex
	running sync.WaitGroup
	loads   atomic.Int32
	let     chan error
	end     context.CancelFunc
	ctx     context.Context // of the last load
}

func newTestLazy(t *testing.T, keep time.Duration) *testLazy {
	x := &testLazy{let: make(chan error)}
	life, end := context.WithCancel(context.Background())
	x.end = end
	x.Value = Value[int32]{Keep: keep, Life: life, Ended: errEnded, Run: x.running.Go, Mu: &x.mu, Load: func(ctx context.Context) (int32, error) {
		n := x.loads.Add(1)
		x.ctx = ctx
		select {
		case err := <-x.let:
			return n, err
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}}
	t.Cleanup(func() { end(); x.running.Wait() })
	return x
}

func (x *testLazy) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Forget()
}

// TestMain runs the tests. At the end, no goroutine may be left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(mcptest.Patient{M: m}) }

// SPEC B7: however many ask, the value is loaded once. A caller that gives up
// does not end the load for the others.
func TestSpecB7LazyLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, 0)
		var got atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				v, err := x.Get(t.Context())
				assert.NoError(t, err)
				got.Add(v)
			})
		}
		impatient, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			_, err := x.Get(impatient)
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 1, x.loads.Load())
		x.let <- nil
		wg.Wait()
		assert.EqualValues(t, 100, got.Load())
		v, err := x.Get(impatient)
		require.NoError(t, err, "what is there costs no patience")
		assert.EqualValues(t, 1, v)
		time.Sleep(1000 * time.Hour)
		_, err = x.Get(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, x.loads.Load(), "for good")
	})
}

// SPEC B7: all waiting callers get the error, which is not kept.
func TestSpecB7LazyErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, 0)
		failed := errors.New("failed")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				v, err := x.Get(t.Context())
				assert.ErrorIs(t, err, failed)
				assert.Zero(t, v)
			})
		}
		synctest.Wait()
		x.let <- failed
		wg.Wait()
		wg.Go(func() {
			v, err := x.Get(t.Context())
			assert.NoError(t, err)
			assert.EqualValues(t, 2, v)
		})
		x.let <- nil
		wg.Wait()
	})
}

// SPEC B7: with a lifetime, the old value serves while the new one is loaded,
// for one more lifetime at most. A failed refresh changes nothing until then.
func TestSpecB7LazyLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, time.Minute)
		get := func() int32 {
			v, err := x.Get(t.Context())
			require.NoError(t, err)
			return v
		}
		go func() { x.let <- nil }()
		assert.EqualValues(t, 1, get())
		time.Sleep(time.Minute - 1)
		assert.EqualValues(t, 1, get())
		synctest.Wait()
		assert.EqualValues(t, 1, x.loads.Load())

		time.Sleep(time.Nanosecond)
		for range 10 {
			assert.EqualValues(t, 1, get(), "at once")
		}
		x.let <- errors.New("failed")
		synctest.Wait()
		assert.EqualValues(t, 2, x.loads.Load(), "once for all ten")
		assert.EqualValues(t, 1, get(), "and again")
		x.let <- nil
		synctest.Wait()
		assert.EqualValues(t, 3, get())

		time.Sleep(2 * time.Minute)
		go func() { x.let <- nil }()
		assert.EqualValues(t, 4, get(), "it waits")
	})
}

// SPEC B7: if a value is forgotten during its load, the earlier callers get the
// result, and it is not kept.
func TestSpecB7LazyForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, 0)
		results := make(chan int32, 2)
		ask := func() {
			v, err := x.Get(t.Context())
			assert.NoError(t, err)
			results <- v
		}
		go ask()
		synctest.Wait()
		x.drop()
		go ask()
		synctest.Wait()
		assert.EqualValues(t, 2, x.loads.Load())
		x.let <- nil
		x.let <- nil
		assert.EqualValues(t, 3, <-results+<-results)
		go ask()
		assert.EqualValues(t, 2, <-results)

		x.drop()
		go ask()
		x.let <- nil
		assert.EqualValues(t, 3, <-results)
	})
}

// SPEC B7: after the end, nothing is loaded and no value is kept.
func TestSpecB7LazyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, 0)
		settled := make(chan error, 1)
		x.Settle = func(v int32, err error) {
			assert.EqualValues(t, 1, v)
			assert.False(t, x.mu.TryLock(), "it is held")
			settled <- err
		}
		x.Load = func(ctx context.Context) (int32, error) { <-ctx.Done(); return x.loads.Add(1), nil }
		errs := make(chan error, 1)
		go func() { _, err := x.Get(t.Context()); errs <- err }()
		synctest.Wait()
		x.end()
		assert.ErrorIs(t, <-errs, errEnded)
		assert.ErrorIs(t, <-settled, errEnded, "with the value, to clean up")
		_, err := x.Get(t.Context())
		assert.ErrorIs(t, err, errEnded)
		assert.EqualValues(t, 1, x.loads.Load())

		x = newTestLazy(t, 0)
		go func() { _, err := x.Get(t.Context()); errs <- err }()
		synctest.Wait()
		x.end()
		assert.Equal(t, context.Canceled, <-errs, "a load that fails then says why")
	})
}

// Many goroutines ask, forget and fail at once. None gets a value that was
// forgotten before it asked.
func TestLazyRace(t *testing.T) {
	var mu sync.Mutex
	var running, wg sync.WaitGroup
	var newest, forgotten, got atomic.Int64
	life, end := context.WithCancel(context.Background())
	x := &Value[int64]{Life: life, Ended: errEnded, Run: running.Go, Mu: &mu, Load: func(context.Context) (int64, error) {
		n := newest.Load()
		if n%7 == 3 {
			return 0, errors.New("failed")
		}
		return n, nil
	}}
	for range 16 {
		wg.Go(func() {
			for forgotten.Load() < 300 {
				oldest := forgotten.Load()
				if v, err := x.Get(life); err == nil {
					got.Add(1)
					if v < oldest {
						t.Errorf("got %d after %d was forgotten", v, oldest)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for range 300 {
			n := newest.Add(1)
			mu.Lock()
			x.Forget()
			mu.Unlock()
			forgotten.Store(n)
			runtime.Gosched()
		}
	})
	wg.Wait()
	end()
	running.Wait()
	assert.Positive(t, got.Load())
}

// The holder of the mutex sees the value and the load.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestLazy(t, 0)
		begin := func() *Flight[int32] {
			x.mu.Lock()
			defer x.mu.Unlock()
			f, fresh := x.Begin()
			assert.True(t, fresh)
			same, fresh := x.Begin()
			assert.Same(t, f, same)
			assert.False(t, fresh)
			value, flight := x.Peek()
			assert.Zero(t, value)
			assert.Same(t, f, flight)
			return f
		}
		f := begin()
		cause := errors.New("no luck")
		x.let <- cause
		<-f.Done()
		assert.Equal(t, cause, f.Err())
		f = begin()
		x.let <- nil
		<-f.Done()
		assert.NoError(t, f.Err())
		x.mu.Lock()
		defer x.mu.Unlock()
		value, flight := x.Peek()
		assert.EqualValues(t, 2, value)
		assert.Nil(t, flight)
		assert.ErrorIs(t, x.ctx.Err(), context.Canceled, "what the load has begun ends with it")
	})
}
