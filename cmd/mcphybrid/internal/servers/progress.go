package servers

import (
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// starting draws how servers start: a line for each.
func starting(servers func() []mcphybrid.ServerStatus) func() []string {
	return func() (lines []string) {
		for _, s := range servers() {
			lines = append(lines, startLine(s, time.Now()))
		}
		return lines
	}
}

func startLine(s mcphybrid.ServerStatus, now time.Time) string {
	mark, note, took := "…", string(s.State), now.Sub(s.Since)
	switch s.State {
	case mcphybrid.StateConnecting:
		if s.Failures == 0 && s.Err != nil { // why it takes long
			note += ": " + cause.Of(s.Err).What
		}
	case mcphybrid.StateReady:
		mark, note, took = "✓", fmt.Sprintf("ready, %d tools", s.Tools), s.Took
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
