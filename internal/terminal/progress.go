package terminal

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// A Progress shows on a terminal how far some work is: lines that it redraws in their
// place.
type Progress struct {
	end  chan bool // nil if nothing is shown
	done sync.WaitGroup
}

// redraw is how often, so that an eye can follow.
const redraw = 500 * time.Millisecond

// Show begins to show the lines that draw returns. It shows nothing unless f is a
// terminal with a person before it: not in a pipe, and not in CI.
func Show(f *os.File, draw func() []string) *Progress {
	p := new(Progress)
	if !attended(f) {
		return p
	}
	p.end = make(chan bool)
	p.done.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		drawn := 0
		for {
			columns, rows, _ := Size(f)
			screen := frame(draw(), columns, rows)
			fmt.Fprint(f, over(drawn, screen))
			drawn = len(screen)
			select {
			case <-tick.C:
			case keep := <-p.end:
				screen = nil
				if keep {
					screen = frame(draw(), columns, rows)
				}
				fmt.Fprint(f, over(drawn, screen))
				return
			}
		}
	})
	return p
}

// Stop ends the Progress. If keep is set, it leaves the last state on the screen.
func (p *Progress) Stop(keep bool) {
	if p.end != nil {
		p.end <- keep
		p.done.Wait()
	}
}

// IsShown reports whether Show shows something there.
func IsShown(f *os.File) bool { return attended(f) }

// attended reports whether f is a terminal that obeys escape sequences, with a person
// before it.
func attended(f *os.File) bool {
	_, _, ok := Size(f)
	return ok && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
}

// over returns what replaces so many lines above the cursor by those of screen. It erases
// line by line: a terminal may keep for scrolling back what is erased with the whole
// screen.
func over(lines int, screen []string) string {
	var b strings.Builder
	up := func(n int) {
		if n > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", n)
		}
	}
	up(lines)
	for _, line := range screen {
		b.WriteString("\x1b[2K" + line)
	}
	rest := max(lines-len(screen), 0)
	b.WriteString(strings.Repeat("\x1b[2K\n", rest))
	up(rest)
	return b.String()
}

// frame returns the lines as a screen of that size shows them. Where they do not fit,
// the last says how many more there are: what has left the screen can't be redrawn.
func frame(lines []string, columns, rows int) []string {
	most := max(rows-1, 1)
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("and %d more", more+1))
	}
	screen := make([]string, len(lines))
	for i, line := range lines {
		screen[i] = Cut(Clean(line), columns) + "\n"
	}
	return screen
}
