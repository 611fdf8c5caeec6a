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
