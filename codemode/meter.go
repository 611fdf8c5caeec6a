package codemode

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
)

// A meter counts what a script takes and ends the script at its limits.
//
// The interpreter has no limit of memory. So a script is charged for all that it makes, before it
// is made where that may be much, and nothing is given back: what it holds is never more. It
// is charged by the code that instrument adds, and by the functions that builtins puts
// in place of those that take more than their text shows.
type meter struct {
	rt      *goja.Runtime
	options Options

	steps, made, calls int64
	ended              error        // why the script was ended, or nil
	endedIn            int          // the line in which it was
	failed             *goja.Object // the constructor of errors, which a script may replace

	timer *time.Timer // ends the script; stopped during calls
	late  atomic.Bool // it did
	left  time.Duration
	since time.Time
}

// A limitError says which limit a script is at.
type limitError string

func (e limitError) Error() string { return string(e) }

// spend charges steps, each about an expression that is evaluated, and bytes.
func (m *meter) spend(steps, bytes int64) {
	m.steps, m.made = m.steps+steps, m.made+bytes
	switch {
	case m.steps > int64(m.options.Steps) || steps < 0:
		m.end(limitError(fmt.Sprintf("it took more than %d steps: do less in one script, or have a tool filter first", m.options.Steps)))
	case m.late.Load(): // a built-in function that calls others sees no interrupt
		m.end(m.tooLong())
	case m.made > int64(m.options.Memory) || bytes < 0:
		m.end(limitError(fmt.Sprintf("it made more than %d MB of values: work on less at a time, and build long texts with an array and join", m.options.Memory>>20)))
	}
}

func (m *meter) tooLong() error {
	return limitError(fmt.Sprintf("it ran longer than %v, not counting its calls", m.options.Time))
}

// fits ends the script if so many steps more are too many, without charging them.
func (m *meter) fits(steps int64) {
	if m.steps+steps > int64(m.options.Steps) {
		m.spend(steps, 0)
	}
}

// call counts a call of a tool.
func (m *meter) call() {
	if m.calls++; m.calls > int64(m.options.Calls) {
		m.end(limitError(fmt.Sprintf("it made more than %d calls: go on in another script", m.options.Calls)))
	}
}

// end ends the script. The interrupt can't be caught; the exception only leaves the function.
func (m *meter) end(why error) {
	if m.ended == nil {
		m.ended = why
		for _, frame := range m.rt.CaptureCallStack(0, nil) {
			if frame.SrcName() == scriptName {
				m.endedIn = frame.Position().Line
				break
			}
		}
	}
	m.rt.Interrupt(m.ended)
	m.fail("%v", m.ended)
}

// fail throws an error that the script may catch.
func (m *meter) fail(format string, args ...any) {
	o, err := m.rt.New(m.failed, m.rt.ToValue(fmt.Sprintf(format, args...)))
	if err != nil {
		panic(err)
	}
	panic(o)
}

// run starts the clock of the script, and pause stops it.
func (m *meter) run() {
	m.since = time.Now()
	m.timer = time.AfterFunc(max(m.left, 0), func() {
		m.late.Store(true)
		m.rt.Interrupt(m.tooLong())
	})
}

func (m *meter) pause() {
	m.timer.Stop()
	m.left -= time.Since(m.since)
}

// depth charges for an error that may be made here: it holds a place for each call that runs.
func (m *meter) depth() {
	var frames [maxDepth + 8]goja.StackFrame
	m.spend(1, int64(150*len(m.rt.CaptureCallStack(0, frames[:0]))))
}
