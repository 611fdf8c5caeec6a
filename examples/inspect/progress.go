package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid"
)

// A progress shows on a terminal how servers start: a line for each, which it
// redraws on changes. Without a terminal it shows nothing.
type progress struct {
	end  chan struct{}
	done sync.WaitGroup
}

const redraw = 80 * time.Millisecond

func newProgress(term *os.File, servers func() []mcphybrid.ServerStatus) *progress {
	p := &progress{end: make(chan struct{})}
	if !isTerminal(term) {
		return p
	}
	p.done.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		drawn := 0
		for last := false; ; {
			text, lines := draw(servers(), time.Now())
			up := ""
			if drawn > 0 {
				up = fmt.Sprintf("\x1b[%dA", drawn)
			}
			fmt.Fprint(term, up+text)
			drawn = lines
			if last {
				return
			}
			select {
			case <-tick.C:
			case <-p.end:
				last = true
			}
		}
	})
	return p
}

// stop draws the last state and leaves it on the screen.
func (p *progress) stop() {
	close(p.end)
	p.done.Wait()
}

// draw returns the lines for the servers. Each erases what stood on its line.
func draw(servers []mcphybrid.ServerStatus, now time.Time) (text string, lines int) {
	var b strings.Builder
	for _, s := range servers {
		mark, note, took := "…", string(s.State), now.Sub(s.Since)
		switch s.State {
		case mcphybrid.StateReady:
			mark, note, took = "✓", fmt.Sprintf("ready, %d tools", s.Tools), s.Took
		case mcphybrid.StateDown:
			mark, note, took = "✗", "failed: "+s.Err.Error(), s.Took
		case mcphybrid.StateUnauthorized:
			mark, note, took = "✗", "wants a login: run with -login "+s.Name, s.Took
		}
		// One line of a terminal of ordinary width.
		line := []rune(fmt.Sprintf("%s %-20s %6.2fs  %s", mark, s.Name, took.Seconds(), strings.ReplaceAll(note, "\n", " ")))
		if len(line) > 79 {
			line = append(line[:78], '…')
		}
		b.WriteString("\x1b[2K" + string(line) + "\n")
	}
	return b.String(), len(servers)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
