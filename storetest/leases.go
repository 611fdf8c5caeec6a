package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A LeasesSubject describes the leases to test. They are kept for a second.
type LeasesSubject struct {
	// Open opens the engine as another process does. RunLeases calls it several times.
	Open func(t *testing.T) store.Leases

	// Cut opens the engine over a connection that can be cut, for good.
	Cut func(t *testing.T) (l store.Leases, cut func())
}

// leaseTime is how long the leases of the tests are kept.
const leaseTime = time.Second

// RunLeases runs all tests, each with ids of its own.
func RunLeases(t *testing.T, s LeasesSubject) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s LeasesSubject, id string)
	}{
		{"OneAtATime", oneAtATime}, {"Kept", leaseKept}, {"Ended", leaseEnded}, {"Cut", leaseCut}, {"CutWhileWaiting", cutWhileWaiting}, {"IDs", leaseIDs},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s, fmt.Sprintf("%s %d", test.name, rand.Uint64())) })
	}
}

// take takes a lease, which must work.
func take(t *testing.T, l store.Leases, id string) (held context.Context, release func()) {
	t.Helper()
	held, release, err := l.Lease(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, held.Err())
	t.Cleanup(release)
	return held, release
}

// refuses asserts that a lease is not to be had for some time.
func refuses(t *testing.T, l store.Leases, id string, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, _, err := l.Lease(ctx, id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, store.ErrUnavailable, "the engine answers")
}

// Of many who want a lease at once, one has it at a time, and each gets it. Other leases are
// free.
func oneAtATime(t *testing.T, s LeasesSubject, id string) {
	var inside, turns atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		l := s.Open(t)
		for range 3 {
			all.Go(func() {
				for range 3 {
					held, release, err := l.Lease(t.Context(), id)
					if !assert.NoError(t, err) {
						return
					}
					assert.EqualValues(t, 1, inside.Add(1))
					turns.Add(1)
					_, other, err := l.Lease(t.Context(), fmt.Sprint(id, turns.Load()))
					if assert.NoError(t, err) {
						other()
					}
					assert.NoError(t, held.Err())
					inside.Add(-1)
					release()
					release()
					assert.ErrorIs(t, context.Cause(held), context.Canceled)
				}
			})
		}
	}
	all.Wait()
	assert.EqualValues(t, 36, turns.Load())
}

// A lease is kept for longer than its time.
func leaseKept(t *testing.T, s LeasesSubject, id string) {
	held, release := take(t, s.Open(t), id)
	other := s.Open(t)
	refuses(t, other, id, 3*leaseTime)
	require.NoError(t, held.Err())
	release()
	take(t, other, id)
}

// A lease ends with the context of its holder, who may release it then.
func leaseEnded(t *testing.T, s LeasesSubject, id string) {
	ctx, cancel := context.WithCancel(t.Context())
	held, release, err := s.Open(t).Lease(ctx, id)
	require.NoError(t, err)
	cancel()
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), context.Canceled)
	release()
	other := s.Open(t)
	_, release = take(t, other, id)
	_, _, err = s.Open(t).Lease(ctx, id)
	require.ErrorIs(t, err, context.Canceled)
	release()
	take(t, other, id)
}

// A holder that can't reach the engine any more has lost its lease before another gets it.
func leaseCut(t *testing.T, s LeasesSubject, id string) {
	far, cut := s.Cut(t)
	held, release := take(t, far, id)
	cut()
	began := time.Now()
	_, _, err := s.Open(t).Lease(t.Context(), id)
	require.NoError(t, err)
	assert.Error(t, held.Err(), "it is another's")
	assert.ErrorIs(t, context.Cause(held), store.ErrLeaseLost)
	assert.Less(t, time.Since(began), 30*leaseTime)
	release()
}

// Who can't reach the engine gets no lease.
func cutWhileWaiting(t *testing.T, s LeasesSubject, id string) {
	take(t, s.Open(t), id)
	far, cut := s.Cut(t)
	cut()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _, err := far.Lease(ctx, id)
	require.ErrorIs(t, err, store.ErrUnavailable)
}

func leaseIDs(t *testing.T, s LeasesSubject, _ string) {
	l := s.Open(t)
	for _, id := range []string{"", "a\x00b", "\xff"} {
		_, _, err := l.Lease(t.Context(), id)
		require.Error(t, err, "%q", id)
	}
	for _, id := range []string{"a/b", "ä ö", "*.>"} {
		_, release := take(t, l, id)
		release()
	}
}
