package servers

import (
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// starting draws how servers start: how many are ready, a line for each that starts now, and
// one for each that failed.
func starting(servers func() []mcphybrid.ServerStatus) func() []string {
	return func() (lines []string) {
		ready, all, now := 0, servers(), time.Now()
		var failed []string
		for _, s := range all {
			switch s.State {
			case mcphybrid.StateReady, mcphybrid.StateDegraded, mcphybrid.StateCached:
				ready++
			case mcphybrid.StateDown, mcphybrid.StateUnauthorized:
				failed = append(failed, startLine(s, now))
			case mcphybrid.StateConnecting:
				if !upstream.IsQueued(s.Err) {
					lines = append(lines, startLine(s, now))
				}
			}
		}
		count := readyOf(ready, len(all))
		return append(append([]string{count}, lines...), failed...)
	}
}

func startLine(s mcphybrid.ServerStatus, now time.Time) string {
	mark, note, took := "…", string(s.State), now.Sub(s.Since)
	switch s.State {
	case mcphybrid.StateConnecting:
		if s.Failures == 0 && s.Err != nil { // why it takes long
			note = cause.Of(s.Err).What
		}
	case mcphybrid.StateReady:
		mark, note, took = "✓", "ready, "+text.Counted(s.Tools, "tool"), s.Took
	case mcphybrid.StateDown:
		mark, note, took = "✗", "failed: "+cause.Of(s.Err).What, s.Took
	case mcphybrid.StateUnauthorized:
		mark, note, took = "✗", "wants a login: mcphybrid login "+s.Name, s.Took
		if why := cause.Of(s.Err); why.Kind == cause.Token {
			note = "failed: " + why.What
		}
	}
	return fmt.Sprintf("%s %s %6.2fs  %s", mark, terminal.Pad(terminal.Cut(terminal.Clean(s.Name), LongName), LongName), took.Seconds(), note)
}
