package servers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// Each server is told once, when it is ready or has failed, and those that are waited for
// every ten seconds.
func TestStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		all, ended := context.WithTimeout(t.Context(), 21*time.Second)
		defer ended()
		var lines []string
		new(Starts).Follow(all, func() []mcphybrid.ServerStatus {
			slow := mcphybrid.ServerStatus{Name: "slow", State: mcphybrid.StateConnecting, Since: begun}
			if time.Since(begun) >= 20500*time.Millisecond {
				slow = mcphybrid.ServerStatus{Name: "slow", State: mcphybrid.StateReady, Took: 20500 * time.Millisecond, Tools: 3}
			}
			return []mcphybrid.ServerStatus{
				{Name: "quick", State: mcphybrid.StateReady, Took: time.Second, Tools: 2},
				{Name: "gone", State: mcphybrid.StateDown, Took: time.Second, Err: errors.New("no luck")},
				slow,
			}
		}, func(line string) { lines = append(lines, line) })
		assert.Equal(t, []string{
			"✓ quick                  1.00s  ready, 2 tools",
			"✗ gone                   1.00s  failed: no luck",
			"… still waiting for slow, after 10s",
			"… still waiting for slow, after 20s",
			"✓ slow                  20.50s  ready, 3 tools",
			"2 of 3 servers are ready after 21.00s, with 5 tools",
		}, lines)
	})
}

// Servers whose tools are known from the cache are no less there than those that are ready.
func TestWhatBecameOfTheServers(t *testing.T) {
	t.Parallel()
	ready := mcphybrid.ServerStatus{State: mcphybrid.StateReady, Tools: 2}
	rests := mcphybrid.ServerStatus{State: mcphybrid.StateCached, Tools: 3}
	refreshes := mcphybrid.ServerStatus{State: mcphybrid.StateConnecting, Tools: 4}
	begins := mcphybrid.ServerStatus{State: mcphybrid.StateConnecting}
	assert.Equal(t, "1 of 4 servers are ready after 0.09s, 2 more are known from the cache, with 9 tools",
		became([]mcphybrid.ServerStatus{ready, rests, refreshes, begins}, 90*time.Millisecond))
	assert.Equal(t, "1 of 2 servers are ready after 0.09s, with 2 tools", became([]mcphybrid.ServerStatus{ready, begins}, 90*time.Millisecond))
}
