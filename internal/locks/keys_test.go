package locks

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lock is one goroutine's at a time, and each name has its own. Nothing is left of those that
// have no users.
func TestKeys(t *testing.T) {
	t.Parallel()
	var k Keys
	var all sync.WaitGroup
	inside := make([]int, 3) // not atomic: the race detector checks the locks
	for i := range 60 {
		all.Go(func() {
			n := i % len(inside)
			unlock, err := k.Lock(t.Context(), fmt.Sprint(n))
			if assert.NoError(t, err) {
				defer unlock()
				inside[n]++
			}
		})
	}
	all.Wait()
	assert.Equal(t, []int{20, 20, 20}, inside)

	unlock, err := k.Lock(t.Context(), "a")
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = k.Lock(ended, "a")
	assert.Equal(t, context.Canceled, err)
	assert.Len(t, k.keys, 1)
	unlock()
	assert.Empty(t, k.keys)
}
