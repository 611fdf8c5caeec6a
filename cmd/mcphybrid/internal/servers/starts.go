package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid"
)

// Starts tells, a line at a time, how servers start: what is ready or failed and how long it
// took, and what is still waited for. The zero value has told nothing.
type Starts struct {
	told   map[string]bool
	waited time.Time // when it last told what it waits for, or began
	begun  time.Time
}

// patience is how often it tells what it waits for.
const patience = 10 * time.Second

// Lines returns what is new. all is the state of all servers.
func (s *Starts) Lines(all []mcphybrid.ServerStatus, now time.Time) (lines []string) {
	if s.told == nil {
		s.told, s.begun, s.waited = make(map[string]bool), now, now
	}
	var waits []string
	for _, st := range all {
		switch st.State {
		case mcphybrid.StateReady, mcphybrid.StateDown, mcphybrid.StateUnauthorized, mcphybrid.StateDegraded:
			if !s.told[st.Name] {
				s.told[st.Name] = true
				lines = append(lines, startLine(st, now))
			}
		default:
			if !s.told[st.Name] {
				waits = append(waits, st.Name)
			}
		}
	}
	if len(waits) > 0 && now.Sub(s.waited) >= patience {
		s.waited = now
		for _, name := range waits[:min(len(waits), 5)] {
			lines = append(lines, fmt.Sprintf("… still waiting for %s, after %.0fs", name, now.Sub(s.begun).Seconds()))
		}
		if more := len(waits) - 5; more > 0 {
			lines = append(lines, fmt.Sprintf("  and for %d more", more))
		}
	}
	return lines
}

// Follow writes the lines until ctx ends, which is when all servers have started or failed,
// and then what became of them.
func (s *Starts) Follow(ctx context.Context, servers func() []mcphybrid.ServerStatus, write func(line string)) {
	begun := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	tell := func() {
		for _, line := range s.Lines(servers(), time.Now()) {
			write(line)
		}
	}
	for ctx.Err() == nil {
		tell()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	tell()
	write(became(servers(), time.Since(begun)))
}

// became says what became of the servers.
func became(all []mcphybrid.ServerStatus, took time.Duration) string {
	ready, cached, tools := 0, 0, 0
	for _, st := range all {
		tools += st.Tools
		switch {
		case st.State == mcphybrid.StateReady:
			ready++
		case st.Tools > 0 || st.State == mcphybrid.StateCached:
			cached++
		}
	}
	from := ""
	if cached > 0 {
		from = fmt.Sprintf(", %d more are known from the cache", cached)
	}
	return fmt.Sprintf("%d of %d servers are ready after %.2fs%s, with %d tools", ready, len(all), took.Seconds(), from, tools)
}
