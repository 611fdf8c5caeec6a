package pgstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who asks for a lease a database that says nothing is told so, also without a limit.
func TestLeaseOfSilentDatabase(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		far, line := e.through(t)
		s := share(t, far.pool(t), SharedOptions{Schema: e.schema(t), LeaseTime: time.Second})
		line.hush()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		_, _, err := s.Leases().Lease(ctx, "x")
		require.ErrorIs(t, err, store.ErrUnavailable)
		assert.Less(t, time.Since(began), 15*time.Second)
		line.cut()
	})
}

// What can't be given back is not tried again once the pool is closed.
func TestClosedGivesNothingBack(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := share(t, e.pool(t), SharedOptions{Schema: e.schema(t)})
		c := &claim{s, "x", "me"}
		taken, err := c.Take(t.Context())
		require.NoError(t, err)
		require.True(t, taken)
		s.pool.Close()
		require.NoError(t, c.Free(t.Context()))
		_, err = c.Take(t.Context())
		assert.ErrorContains(t, err, "closed pool")
	})
}

// A lease can be had where transactions are isolated strictly, and then abort each other.
func TestLeaseIsolation(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("it has one connection")
		}
		for _, level := range []string{"serializable", "repeatable%20read"} {
			strict := &engine{connection: e.connection + "&pool_max_conns=8&default_transaction_isolation=" + level, native: true}
			pool, opts := strict.pool(t), SharedOptions{Schema: e.schema(t), LeaseTime: 2 * time.Second}
			var all sync.WaitGroup
			var holders atomic.Int32
			for range 6 {
				s := share(t, pool, opts)
				all.Go(func() {
					for range 10 {
						_, release, err := s.Leases().Lease(t.Context(), "x")
						if !assert.NoError(t, err) {
							return
						}
						assert.EqualValues(t, 1, holders.Add(1))
						holders.Add(-1)
						release()
					}
				})
			}
			all.Wait()
		}
	})
}
