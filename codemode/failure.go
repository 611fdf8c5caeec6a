package codemode

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// A thrownError is what a script threw.
type thrownError struct{ value goja.Value }

func (e *thrownError) Error() string { return "it failed" }

var place = regexp.MustCompile(scriptName + `:(\d+):\d+`)

// failure says in words for the model why a script has ended.
func (r *run) failure(err error) error {
	line, why := "", ""
	var thrown *thrownError
	var exception *goja.Exception
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	_ = r.rt.Try(func() {
		r.rt.ClearInterrupt()
		switch {
		case errors.As(err, &thrown):
			why = r.said(thrown.value)
			if o, ok := thrown.value.(*goja.Object); ok {
				line = lineOf(fmt.Sprint(o.Get("stack")))
			}
		case errors.As(err, &exception):
			why = r.said(exception.Value())
			line = lineOf(exception.String())
		}
	})
	switch {
	case errors.As(err, &interrupted):
		line = lineOf(interrupted.String())
		if cause, ok := interrupted.Value().(error); ok {
			err = cause
		}
		why = err.Error()
	case errors.As(err, &overflow):
		line = lineOf(overflow.String())
		why = fmt.Sprintf("calls of functions may be nested %d deep", maxDepth)
	case thrown == nil && exception == nil:
		why = err.Error()
	}
	if r.ended != nil {
		why = r.ended.Error()
		if r.endedIn > 0 {
			line = strconv.Itoa(r.endedIn)
		}
	}
	if r.ctx.Err() != nil {
		why = "it was cancelled"
		if errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
			why = "its time is up"
		}
	}
	if why == "" {
		why = "it threw something without a message"
	}
	e := "the script ended"
	if line != "" {
		e += " in line " + line
	}
	e += ": " + cut(why) + advice(why)
	if len(r.done) > 0 {
		e += "\nThese calls were made before, and are not undone: " + counted(r.done) + "."
	}
	return errors.New(e)
}

// said returns what was thrown in words: an error by its name and message.
func (r *run) said(v goja.Value) string {
	if o, ok := v.(*goja.Object); ok {
		if message := o.Get("message"); message != nil {
			if name := o.Get("name"); name != nil && name.String() != "Error" {
				return fmt.Sprintf("%v: %v", name, message)
			}
			return message.String()
		}
		return r.text(v)
	}
	return v.String()
}

func lineOf(stack string) string {
	if m := place.FindStringSubmatch(stack); m != nil {
		return m[1]
	}
	return ""
}

// maxError is how many bytes of an error the model reads. That of a tool may have a schema in it.
const maxError = 4 << 10

func cut(s string) string {
	if len(s) > maxError {
		return strings.ToValidUTF8(s[:maxError], "") + "…"
	}
	return s
}

// advice says what to write instead, where the interpreter's words do not.
func advice(why string) string {
	for _, a := range []struct{ in, say string }{
		{"no member 'then'", "a call returns its result at once, and await works too: use try and catch in place of then"},
		{"no member 'catch'", "a call returns its result at once, and await works too: use try and catch"},
		{"require is not defined", "there are no modules, only tools and search"},
		{"fetch is not defined", "there is no network, only tools and search"},
		{"process is not defined", "there is no environment, only tools and search"},
		{"setTimeout is not defined", "there are no timers"},
		{"setInterval is not defined", "there are no timers"},
		{"Unexpected token import", "there are no modules, only tools and search"},
		{"Unexpected token :", "write plain JavaScript, without types"},
	} {
		if strings.Contains(why, a.in) {
			return " (" + a.say + ")"
		}
	}
	return ""
}

// counted lists names in the order in which they first stand, with how often.
func counted(names []string) string {
	times := make(map[string]int)
	var order []string
	for _, n := range names {
		if times[n]++; times[n] == 1 {
			order = append(order, n)
		}
	}
	for i, n := range order {
		if times[n] > 1 {
			order[i] = fmt.Sprintf("%s (%d times)", n, times[n])
		}
	}
	return strings.Join(order, ", ")
}
