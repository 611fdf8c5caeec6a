package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// Starts tells, a line at a time, how servers start: what is ready or failed and how long it
// took, and what is still waited for. The zero value has told nothing.
type Starts struct {
	told   map[string]bool // whether the server was ready, when it was told last
	waited time.Time       // when it last told what it waits for, or began
	begun  time.Time
}

// patience is how often it tells what it waits for.
const patience = 10 * time.Second

// Lines returns what is new. all is the state of all servers.
func (s *Starts) Lines(all []mcphybrid.ServerStatus, now time.Time) (lines []string) {
	if s.told == nil {
		s.told, s.begun, s.waited = make(map[string]bool), now, now
	}
	var waits []mcphybrid.ServerStatus
	for _, st := range all {
		switch st.State {
		case mcphybrid.StateReady, mcphybrid.StateDown, mcphybrid.StateUnauthorized, mcphybrid.StateDegraded:
			ready := st.State == mcphybrid.StateReady || st.State == mcphybrid.StateDegraded
			if was, told := s.told[st.Name]; !told || was != ready {
				s.told[st.Name] = ready
				lines = append(lines, startLine(st, now))
			}
		default:
			if _, told := s.told[st.Name]; !told {
				waits = append(waits, st)
			}
		}
	}
	if now.Sub(s.waited) >= patience {
		s.waited = now
		for _, st := range waits[:min(len(waits), 5)] {
			line := fmt.Sprintf("… still waiting for %s, after %.0fs", st.Name, now.Sub(s.begun).Seconds())
			if upstream.IsQueued(st.Err) {
				line += ": " + st.Err.Error()
			}
			lines = append(lines, line)
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
	with := fmt.Sprintf("after %.2fs, with %s", took.Seconds(), text.Counted(tools, "tool"))
	if cached > 0 {
		known := "are known from the cache until they connect"
		if cached == 1 {
			known = "is known from the cache until it connects"
		}
		return fmt.Sprintf("%d of %s can be used %s; %s %s", ready+cached, text.Counted(len(all), "server"), with, text.Counted(cached, "server"), known)
	}
	return fmt.Sprintf("%s %s", readyOf(ready, len(all)), with)
}

// readyOf says how many servers of all are ready.
func readyOf(ready, all int) string {
	if all == 1 {
		return fmt.Sprintf("%d of 1 server is ready", ready)
	}
	return fmt.Sprintf("%d of %d servers are ready", ready, all)
}
