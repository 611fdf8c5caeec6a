package pgstore

import (
	"context"
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
