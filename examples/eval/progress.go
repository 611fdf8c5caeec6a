package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A progress shows how far the work is, on one line that it draws again and
// again. Its methods may be called by several goroutines.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	doing string    // what is shown
	drawn time.Time // when it was last drawn
}

const (
	redraw    = 80 * time.Millisecond
	eraseLine = "\r\x1b[K"
)

// show says how much is done of what is to do. The first and the last step of
// each work are drawn, and of those between as many as can be seen.
func (p *progress) show(doing string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.doing == doing && done < total && now.Sub(p.drawn) < redraw {
		return
	}
	p.doing, p.drawn = doing, now
	fmt.Fprintf(p.w, eraseLine+"%s %d of %d", doing, done, total)
}

// end takes away what is shown, if anything is.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doing != "" {
		fmt.Fprint(p.w, eraseLine)
	}
	p.doing = ""
}

// onTerminal returns f if it is a terminal, and otherwise a writer that drops
// all it is given.
func onTerminal(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return io.Discard
	}
	return f
}
