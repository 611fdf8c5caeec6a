package servers

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// The first line counts, then come those that start now, then those that failed. Who waits for
// its turn, or is ready, has no line.
func TestStarting(t *testing.T) {
	t.Parallel()
	all := func() []mcphybrid.ServerStatus {
		return []mcphybrid.ServerStatus{
			{Name: "a", State: mcphybrid.StateReady},
			{Name: "b", State: mcphybrid.StateDown, Err: fmt.Errorf("no luck")},
			{Name: "c", State: mcphybrid.StateConfigured},
			{Name: "d", State: mcphybrid.StateConnecting, Since: time.Now()},
		}
	}
	lines := starting(all)()
	assert.Len(t, lines, 3)
	assert.Equal(t, "1 of 4 servers are ready", lines[0])
	assert.Contains(t, lines[1], "… d ")
	assert.Contains(t, lines[2], "✗ b ")
}

func TestStartLine(t *testing.T) {
	now := time.Unix(100, 0)
	var lines []string
	for _, s := range []mcphybrid.ServerStatus{
		{Name: "a", State: mcphybrid.StateConnecting, Since: now.Add(-1500 * time.Millisecond)},
		{Name: "b", State: mcphybrid.StateConnecting, Since: now, Err: fmt.Errorf("it is at work")},
		{Name: "a name that is too long", State: mcphybrid.StateReady, Took: 250 * time.Millisecond, Tools: 7},
		{Name: "c", State: mcphybrid.StateDown, Took: 2 * time.Second, Err: fmt.Errorf("no luck")},
		{Name: "d", State: mcphybrid.StateUnauthorized, Took: 2 * time.Second},
	} {
		lines = append(lines, startLine(s, now))
	}
	assert.Equal(t, []string{
		"… a                      1.50s  connecting",
		"… b                      0.00s  it is at work",
		"✓ a name that is too …   0.25s  ready, 7 tools",
		"✗ c                      2.00s  failed: no luck",
		"✗ d                      2.00s  wants a login: mcphybrid login d",
	}, lines)
}
