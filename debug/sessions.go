package debug

import (
	"math"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxLinked is how many of the newest sessions the events link to.
const maxLinked = 2000

// maxActive is the greatest number of active tools on a session's page.
const maxActive = 300

// A sessionRow is one session in a list.
type sessionRow struct {
	snapshot.Session
	Mean time.Duration // mean duration of its calls
}

// About returns what is known of the session for people: its label, user and intent, or
// "".
func (r sessionRow) About() string {
	var about []string
	for _, part := range []struct{ before, text string }{{"", r.Label.String()}, {"user ", r.User.Line(maxName)}, {"intent ", r.Intent.Line(maxName)}} {
		if part.text != "" {
			about = append(about, part.before+part.text)
		}
	}
	return strings.Join(about, ", ")
}

// Saved returns the tokens of tools left out of a request.
func (r sessionRow) Saved() int { return max(r.Stats.Tokens.All-r.Stats.Tokens.Sent(), 0) }

// Share returns how much of the input was read from the provider's cache, in percent.
func (r sessionRow) Share() int {
	m := r.Stats.Measured
	return int(math.Round(100 * float64(m.Cached) / float64(max(m.Input, 1))))
}

// Estimated says what deferring has saved, or cost.
func (r sessionRow) Estimated() string {
	if saved := r.Stats.EstimatedSaved; saved < 0 {
		return "it cost " + count(-saved)
	}
	return count(r.Stats.EstimatedSaved)
}

// lossText says what a request lost of the provider's cache and why.
func lossText(l snapshot.Loss) string {
	return count(l.Tokens) + " tokens: " + l.Why()
}

// How says how the model reaches deferred tools, and why so.
func (r sessionRow) How() string {
	switch {
	case r.Why != "":
		return "by " + r.Disclosure + ": " + r.Why
	case r.Disclosure == mcphybrid.Automatic.String():
		return "by activation"
	}
	return "by " + r.Disclosure
}

func newSessionRow(s snapshot.Session) sessionRow { return sessionRow{s, mean(s.Stats.Usage)} }

func sessionRows(snap snapshot.Manager, page int) (rows []sessionRow, pages pager) {
	_, total := snap.Sessions(0, 0)
	pages = newPager(total, page)
	list, _ := snap.Sessions(pages.first(), pages.To)
	for _, s := range list {
		rows = append(rows, newSessionRow(s))
	}
	return rows, pages
}

type sessionPage struct {
	sessionRow
	Lost  []lossRow
	Tools []activeRow
}

// A lossRow is a loss of the provider's cache.
type lossRow struct {
	At   time.Time
	Text string
}

// An activeRow is an active tool.
type activeRow struct {
	toolRow
	Used int // turn of the last use
}

func newSession(snap snapshot.Manager) *sessionPage {
	p := &sessionPage{sessionRow: newSessionRow(snap.Session())}
	for _, l := range p.Losses {
		p.Lost = append(p.Lost, lossRow{l.At, lossText(l)})
	}
	tools := snap.ActiveTools()
	for _, t := range tools[:min(len(tools), maxActive)] {
		p.Tools = append(p.Tools, activeRow{newRow(t), t.Used})
	}
	return p
}
