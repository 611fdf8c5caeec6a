package mcphybrid

import (
	"errors"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/history"
	"github.com/mcphybrid/mcphybrid/internal/redact"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A recorder keeps what happens in a system and to its users: see [Manager.Watch].
type recorder struct {
	sessions  history.Living[*Session]
	events    *history.Newest[snapshot.Event] // in sessions
	ofServers *history.Newest[snapshot.Event] // which may come and go often
}

func newRecorder() *recorder {
	return &recorder{events: history.NewNewest[snapshot.Event](maxEvents), ofServers: history.NewNewest[snapshot.Event](maxEvents)}
}

// maxEvents is how many events are kept, maxEventTools how many tools of each.
const maxEvents, maxEventTools = 200, 20

// record gives the session of e a number, and keeps e, if it has a kind and no search or
// call tells as much.
func (r *recorder) record(e Event) {
	number, to := -1, r.ofServers
	if s := e.Session; s != nil {
		s.mu.Lock()
		if s.number == 0 {
			s.number = r.sessions.Add(weak.Make(s).Value)
		}
		number, to = max(s.number, 0), r.events
		s.mu.Unlock()
	}
	if e.Kind == EventActivate || e.Kind == "" {
		return
	}
	more := max(len(e.Tools)-maxEventTools, 0)
	kept := snapshot.Event{
		Kind: string(e.Kind), At: time.Now(), Number: number, Tools: slices.Clone(e.Tools[:len(e.Tools)-more]), More: more, Server: e.Server, State: string(e.State),
		Query: e.Query, Store: e.Store, Took: e.Took, Label: e.Label, User: e.User, ToolError: e.ToolError, Why: e.Why, Loss: e.Loss,
	}
	if e.Kind == EventBegin {
		kept.Disclosure = e.Disclosure.String()
	}
	if e.Err != nil {
		kept.Err = strings.TrimPrefix(e.Err.Error(), "mcphybrid: ")
	}
	if e.Kind == EventServer && e.State != StateReady || errors.Is(e.Err, ErrServerDown) {
		kept.Cause = causeOf(e.Err)
	}
	hideIn(&kept, text.Line) // so that it takes little
	if e.Kind != EventServer {
		to.Add(kept)
		return
	}
	to.Merge(kept, func(old snapshot.Event) bool {
		return old.Kind == kept.Kind && old.Server == kept.Server && old.User == kept.User
	}, func(old snapshot.Event) (snapshot.Event, bool) { return triedAgain(old, kept) })
}

// triedAgain returns one event for what a server entered last and now, if both say that it is
// away. An attempt itself says nothing new: what comes of it follows.
func triedAgain(old, now snapshot.Event) (both snapshot.Event, ok bool) {
	switch {
	case now.State == string(StateConnecting) && old.State == now.State: // what came of the first was not heard
		return old, true
	case old.State != string(StateDown) && old.State != string(StateUnauthorized):
		return now, false
	case now.State == string(StateConnecting):
		return old, true
	case now.State != old.State || now.Cause != old.Cause:
		return now, false
	}
	now.Times, now.First = max(old.Times, 1)+1, old.First
	if old.Times == 0 {
		now.First = old.At
	}
	return now, true
}

// hide hides the secrets of servers that are about to leave, in the events that concern
// them: later, nobody knows the secrets.
func (r *recorder) hide(secrets []string, concerns func(snapshot.Event) bool) {
	eraser := redact.New(slices.Clone(secrets))
	for _, events := range []*history.Newest[snapshot.Event]{r.events, r.ofServers} {
		events.Change(func(e snapshot.Event) snapshot.Event {
			if concerns(e) {
				e.Tools = slices.Clone(e.Tools)
				hideIn(&e, eraser.Line)
			}
			return e
		})
	}
}

// hideIn replaces the texts of e by what line makes of them.
func hideIn(e *snapshot.Event, line func(string, int) string) {
	for _, of := range []*string{&e.Label, &e.User, &e.Server, &e.Query, &e.Store, &e.Err, &e.ToolError, &e.Loss.Miss, &e.Cause.What} {
		*of = strings.Clone(line(*of, text.MaxError))
	}
	for i, name := range e.Tools {
		e.Tools[i] = strings.Clone(line(name, text.MaxName))
	}
}
