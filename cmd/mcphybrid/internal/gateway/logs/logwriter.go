// Package logs writes the gateway's log, for which nobody waits.
package logs

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// Options say what is logged and how.
type Options struct {
	format           string
	Calls, Arguments bool
}

// AddFlags adds the flags for the log.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.format, "log-format", "text", "how to log to standard error: text or json")
	flags.BoolVar(&o.Calls, "log-calls", true, "log a line for each call of a client")
	flags.BoolVar(&o.Arguments, "log-arguments", false, "log the arguments of calls too, whatever they are")
}

func (o *Options) logger(w io.Writer) (*slog.Logger, error) {
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(terminal.EscapedJSON(w), nil)), nil
	}
	return nil, fmt.Errorf("-log-format %q: must be text or json", o.format)
}

// Open returns a log whose lines are written to w in the background.
func (o *Options) Open(w io.Writer) (log *slog.Logger, lines *Writer, err error) {
	about, err := o.logger(w)
	if err != nil {
		return nil, nil, err
	}
	lines = newLogWriter(w, about)
	log, err = o.logger(lines)
	return log, lines, err
}

// maxUnwritten is how many lines of the log may wait for who reads them.
const maxUnwritten = 1000

// A Writer writes lines in the background. Some clients never read what a server
// writes to standard error: the gateway must not wait for them. If too many lines wait, it
// drops new ones, and says how many.
type Writer struct {
	w     io.Writer
	about *slog.Logger // writes to w: says what was dropped

	mu      sync.Mutex
	lines   [][]byte
	dropped int
	writing bool
	idle    *sync.Cond // signals that writing is false
}

func newLogWriter(w io.Writer, about *slog.Logger) *Writer {
	l := &Writer{w: w, about: about}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// Write implements [io.Writer]. A handler of log/slog writes a line at a time.
func (l *Writer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= maxUnwritten {
		l.dropped++
		return len(line), nil
	}
	l.lines = append(l.lines, append([]byte(nil), line...))
	if !l.writing {
		l.writing = true
		go l.write()
	}
	return len(line), nil
}

func (l *Writer) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > 0 || l.dropped > 0 {
		if len(l.lines) > 0 {
			line := l.lines[0]
			l.lines = l.lines[1:]
			l.mu.Unlock()
			_, _ = l.w.Write(line)
		} else {
			n := l.dropped
			l.dropped = 0
			l.mu.Unlock()
			l.about.Warn("lines of the log were dropped: nobody read them", "lines", n)
		}
		l.mu.Lock()
	}
	l.writing = false
	l.idle.Broadcast()
}

// Flush waits until all lines are written, but no longer than d.
func (l *Writer) Flush(d time.Duration) {
	late := false
	timer := time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.idle.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing && !late {
		l.idle.Wait()
	}
}
