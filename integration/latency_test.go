package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	latencyRounds = 5                       // of each kind of phase
	latencyCalls  = 1000                    // in each phase, at least, so that ten are above its p99
	latencyPhase  = 1700 * time.Millisecond // at least, so that some servers start in it
	latencyLimit  = 1.5
)

// A phase is what is done while calls of a server that is well are measured.
type phase struct {
	name    string
	disturb func(ctx context.Context) // until ctx ends
	took    []time.Duration           // of all calls
	p99s    []time.Duration           // of each round
	starts  int                       // of servers
	lasted  time.Duration
}

// What a server that dies again and again costs the calls of another.
//
// On a machine with few processors it costs much, whoever starts it: node takes
// one of them for half a second, and what is called, its caller and the
// garbage collector share the other. So there are three kinds of phases, in
// turn: in one nothing else happens; in one this test starts the server, asks it for
// its tools and kills it, as fast as it can, with nobody connected; and in one
// the Manager does, since it is killed each time that it is ready. The
// difference between the latter two is what the library adds, and is what is asserted. What
// they have in common is the machine's, and only reported: it is about 1 where
// processors are idle and has no upper bound where they are not.
func TestOthersKeepTheirLatency(t *testing.T) {
	const tool, args = "mcp_everything__echo", `{"message": "here"}`
	dying := memory(filepath.Join(t.TempDir(), "memory.jsonl"))
	// An attempt at once, as the test's own are.
	mgr := loadManagerThat(t, writeConfig(t, everything(), dying), mcphybrid.Options{Reconnect: time.Millisecond})
	require.NoError(t, mgr.Start(t.Context()))
	s := mgr.NewSession(nil)

	quiet := &phase{name: "quiet", disturb: func(ctx context.Context) { <-ctx.Done() }}
	control := &phase{name: "control"}
	control.disturb = func(ctx context.Context) {
		for ctx.Err() == nil {
			_, err := listRawStdio(t.Context(), dying)
			assert.NoError(t, err)
			control.starts++
		}
	}
	chaos := &phase{name: "chaos"}
	chaos.disturb = func(ctx context.Context) {
		for ctx.Err() == nil {
			killed := time.Now()
			assert.NoError(t, syscall.Kill(child(t, "server-memory").pid, syscall.SIGKILL))
			assert.Eventually(t, func() bool {
				status := mgr.Servers()[1]
				return status.State == mcphybrid.StateReady && status.Since.After(killed)
			}, chaosPatience, 5*time.Millisecond)
			chaos.starts++
		}
	}

	phases := []*phase{quiet, control, chaos}
	for range latencyCalls { // so that all is warm
		call(t, s, tool, args)
	}
	for range latencyRounds {
		for _, p := range phases {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { p.disturb(ctx) })
			begun := time.Now()
			var took []time.Duration
			for len(took) < latencyCalls || time.Since(begun) < latencyPhase {
				at := time.Now()
				_, err := s.Call(t.Context(), tool, args)
				took = append(took, time.Since(at))
				require.NoError(t, err)
			}
			p.lasted += time.Since(begun)
			cancel()
			wg.Wait()
			p.p99s = append(p.p99s, percentile(took, 99).Round(10*time.Microsecond))
			p.took = append(p.took, took...)
		}
	}
	for _, p := range phases {
		t.Logf("%-7s %6d calls in %v, %d starts: p50 %v, p99 %v, of each round %v", p.name, len(p.took),
			p.lasted.Round(time.Millisecond), p.starts, percentile(p.took, 50), percentile(p.took, 99), p.p99s)
	}
	ratio := func(a, b *phase) float64 { return float64(percentile(a.took, 99)) / float64(percentile(b.took, 99)) }
	t.Logf("p99: chaos is %.2f of control, which is %.2f of quiet; chaos is %.2f of quiet", ratio(chaos, control), ratio(control, quiet), ratio(chaos, quiet))
	assert.Positive(t, control.starts)
	assert.Positive(t, chaos.starts)
	assert.LessOrEqual(t, ratio(chaos, control), latencyLimit, fmt.Sprint(control.p99s, chaos.p99s))
}

// percentile returns the least of values that is not below n percent of them.
func percentile(values []time.Duration, n int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*n/100, len(sorted)-1)]
}
