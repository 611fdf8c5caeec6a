package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each server is told when it is ready or has failed, again when that changes, and those that are waited for
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
			late := mcphybrid.ServerStatus{Name: "late", State: mcphybrid.StateDown, Took: time.Second, Err: errors.New("not yet")}
			if time.Since(begun) >= 5*time.Second {
				late = mcphybrid.ServerStatus{Name: "late", State: mcphybrid.StateReady, Took: time.Second, Tools: 1}
			}
			return []mcphybrid.ServerStatus{
				late,
				{Name: "quick", State: mcphybrid.StateReady, Took: time.Second, Tools: 2},
				{Name: "gone", State: mcphybrid.StateDown, Took: time.Second, Err: errors.New("no luck")},
				slow,
			}
		}, func(line string) { lines = append(lines, line) })
		assert.Equal(t, []string{
			"✗ late                   1.00s  failed: not yet",
			"✓ quick                  1.00s  ready, 2 tools",
			"✗ gone                   1.00s  failed: no luck",
			"✓ late                   1.00s  ready, 1 tool",
			"… still waiting for slow, after 10s",
			"… still waiting for slow, after 20s",
			"✓ slow                  20.50s  ready, 3 tools",
			"3 of 4 servers are ready after 21.00s, with 6 tools",
		}, lines)
	})
}

// A server that has not begun to start, since others do, says so.
func TestStartsTellWhoIsQueued(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a POSIX shell")
	}
	npx := filepath.Join(t.TempDir(), "npx") // of one package, one starts at a time
	require.NoError(t, os.WriteFile(npx, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{
		{Name: "first", Command: npx, Args: []string{"mcp-x"}}, {Name: "second", Command: npx, Args: []string{"mcp-x"}},
	}})
	defer mgr.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = mgr.Start(ctx) }()
	mcptest.Soon(t, func() bool { return upstream.IsQueued(mgr.Servers()[1].Err) })
	s, begun := new(Starts), time.Now()
	s.Lines(mgr.Servers(), begun)
	assert.Equal(t, []string{
		"… still waiting for first, after 10s",
		"… still waiting for second, after 10s: it waits for its turn: servers start a few at a time, and those of one package one at a time",
	}, s.Lines(mgr.Servers(), begun.Add(10*time.Second)))
}

// Of many servers that are waited for, five are named.
func TestManyWaits(t *testing.T) {
	t.Parallel()
	begun := time.Unix(100, 0)
	for n, want := range map[int]string{4: "", 5: "", 6: "  and for 1 more", 12: "  and for 7 more"} {
		var list []mcphybrid.ServerStatus
		for range n {
			list = append(list, mcphybrid.ServerStatus{Name: fmt.Sprint("s", len(list)), State: mcphybrid.StateConnecting})
		}
		s := new(Starts)
		s.Lines(list, begun)
		lines := s.Lines(list, begun.Add(10*time.Second))
		if want != "" {
			assert.Equal(t, want, lines[len(lines)-1])
			lines = lines[:len(lines)-1]
		}
		assert.Len(t, lines, min(n, 5))
	}
}

// Servers whose tools are known from the cache are no less there than those that are ready.
func TestWhatBecameOfTheServers(t *testing.T) {
	t.Parallel()
	ready := mcphybrid.ServerStatus{State: mcphybrid.StateReady, Tools: 2}
	rests := mcphybrid.ServerStatus{State: mcphybrid.StateCached, Tools: 3}
	refreshes := mcphybrid.ServerStatus{State: mcphybrid.StateConnecting, Tools: 4}
	begins := mcphybrid.ServerStatus{State: mcphybrid.StateConnecting}
	assert.Equal(t, "3 of 4 servers can be used after 0.09s, with 9 tools; 2 servers are known from the cache until they connect",
		became([]mcphybrid.ServerStatus{ready, rests, refreshes, begins}, 90*time.Millisecond))
	ready.Tools, rests.Tools = 1, 0
	assert.Equal(t, "1 of 1 server is ready after 0.09s, with 1 tool", became([]mcphybrid.ServerStatus{ready}, 90*time.Millisecond))
	assert.Equal(t, "1 of 1 server can be used after 0.09s, with 0 tools; 1 server is known from the cache until it connects", became([]mcphybrid.ServerStatus{rests}, 90*time.Millisecond))
	ready.Tools = 2
	assert.Equal(t, "1 of 2 servers are ready after 0.09s, with 2 tools", became([]mcphybrid.ServerStatus{ready, begins}, 90*time.Millisecond))
}
