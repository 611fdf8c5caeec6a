package mcphybrid

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/erase"
	"github.com/mcphybrid/mcphybrid/internal/history"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An EventKind says what happened in a session, or to a server.
type EventKind string

const (
	EventCall     EventKind = "call"     // the model called a tool, with or without success
	EventSearch   EventKind = "search"   // the model searched
	EventActivate EventKind = "activate" // deferred tools became active
	EventEvict    EventKind = "evict"    // Compact dropped active tools
	EventRead     EventKind = "read"     // a resource was read or a prompt was got, with or without success
	EventFull     EventKind = "full"     // tools stay deferred, because the list has no room: see ListOptions
	EventBegin    EventKind = "begin"    // the first Turn of a conversation chose its Disclosure
	EventWaiting  EventKind = "waiting"  // the model can't get tools until Compact: those of Turn.Waiting that the Turn before had not

	// EventCacheLost means that a request read less from the provider's cache than the
	// request before it had left there: see [Session.CountUsage].
	EventCacheLost EventKind = "cache lost"

	// These have no Session.
	EventServer  EventKind = "server"  // a server entered a State: it was lost, for example, or is ready again
	EventChanged EventKind = "changed" // the definition of a tool or the like has changed: Err is the ChangedError
)

// An Event is something that happened in a session, or to a server.
type Event struct {
	Kind    EventKind
	Session *Session      // nil for what happened to a server
	Tools   []string      // registered names of the tools called, found, activated, dropped, changed, waiting or without room
	Server  string        // server of the called tool or of what was read, or "" if that is unknown; what it happened to
	State   State         // what the server entered
	Query   string        // query of a search; URI of a resource; name of a prompt
	Took    time.Duration // duration of a call, a search, a read or a start
	Err     error         // error of a call or a read; nil if the tool answered, even with an error. Why a server is not ready, or what has changed
	Label   string        // of the session: see SessionOptions
	User    string        // the id of the session's or the server's User, or ""

	Disclosure Disclosure // of an EventBegin
	Why        string     // why that was chosen

	// ToolError is the beginning of what the called tool answered, if that is an
	// error: a line of at most 500 characters, as the server wrote it.
	ToolError string

	// Loss is what a request lost, with [EventCacheLost]; otherwise it is zero.
	Loss CacheLoss
}

// tell passes an event to the host. The caller holds no lock.
func (s *Session) tell(e Event) {
	e.Session, e.Label = s, s.asked.label
	s.scope.tell(e)
}

func (s *scope) tell(e Event) {
	e.User = s.user.id
	if r := s.recorder.Load(); r != nil {
		r.record(e)
	}
	if s.opts.OnEvent != nil {
		s.opts.OnEvent(e)
	}
}

// LogEvents returns a function for [Options.OnEvent] that logs each event: at
// level, or as a warning if it has an error or is an [EventCacheLost] or an
// [EventWaiting]. It does not log what tools answer.
func LogEvents(log *slog.Logger, level slog.Level) func(Event) {
	return func(e Event) {
		level := level
		var attrs []slog.Attr
		if e.Kind != EventServer && e.Kind != EventCacheLost {
			attrs = append(attrs, slog.Any("tools", e.Tools))
		}
		for _, of := range [][2]string{{"server", e.Server}, {"state", string(e.State)}, {"session", e.Label}, {"user", e.User}} {
			if of[1] != "" {
				attrs = append(attrs, slog.String(of[0], of[1]))
			}
		}
		if e.Kind == EventSearch || e.Kind == EventRead {
			attrs = append(attrs, slog.String("query", e.Query))
		}
		if e.Kind == EventBegin {
			attrs = append(attrs, slog.String("disclosure", e.Disclosure.String()), slog.String("why", e.Why))
		}
		if e.Kind == EventCacheLost {
			level = slog.LevelWarn
			attrs = append(attrs, slog.Int("tokens", e.Loss.Tokens), slog.String("cause", string(e.Loss.Cause)))
			if e.Loss.Miss != "" {
				attrs = append(attrs, slog.String("miss", e.Loss.Miss))
			}
		}
		if e.Kind == EventWaiting {
			level = slog.LevelWarn
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Err == nil && e.ToolError != "" {
			e.Err = errors.New("the tool answered with an error")
		}
		if e.Err != nil {
			level = slog.LevelWarn
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(context.Background(), level, "mcphybrid: "+string(e.Kind), attrs...)
	}
}

// A recorder keeps what happens in a system and to its users: see [Manager.Watch].
type recorder struct {
	sessions  history.Living[*Session]
	events    *history.Newest[EventSnapshot] // in sessions
	ofServers *history.Newest[EventSnapshot] // which may come and go often
}

func newRecorder() *recorder {
	return &recorder{events: history.NewNewest[EventSnapshot](maxEvents), ofServers: history.NewNewest[EventSnapshot](maxEvents)}
}

// An EventSnapshot is an [Event] without its Session. Its texts are lines of at most
// 2,000 characters without secrets, and it has at most 20 tools.
type EventSnapshot struct {
	Event
	At     time.Time
	Number int // of the session, which may have ended: see [SessionSnapshot]; negative for none
	More   int // number of further tools
}

// maxEvents is how many events are kept, maxEventTools how many tools of each.
const maxEvents, maxEventTools = 200, 20

// record gives the session of e a number, and keeps e, if it has a kind and no search or
// call tells as much.
func (r *recorder) record(e Event) {
	kept, to := EventSnapshot{Event: e, At: time.Now(), Number: -1, More: max(len(e.Tools)-maxEventTools, 0)}, r.ofServers
	if s := e.Session; s != nil {
		s.mu.Lock()
		if s.number == 0 {
			s.number = r.sessions.Add(weak.Make(s).Value)
		}
		kept.Number, to = max(s.number, 0), r.events
		s.mu.Unlock()
	}
	if e.Kind == EventActivate || e.Kind == "" {
		return
	}
	kept.Session, kept.Tools = nil, slices.Clone(e.Tools[:len(e.Tools)-kept.More])
	kept.hide(text.Line) // so that they take little
	to.Add(kept)
}

// hide hides the secrets of servers that are about to leave, in the events that concern
// them: later, nobody knows the secrets.
func (r *recorder) hide(secrets []string, concerns func(EventSnapshot) bool) {
	eraser := erase.New(slices.Clone(secrets))
	for _, events := range []*history.Newest[EventSnapshot]{r.events, r.ofServers} {
		events.Change(func(e EventSnapshot) EventSnapshot {
			if concerns(e) {
				e.Tools = slices.Clone(e.Tools)
				e.hide(eraser.Line)
			}
			return e
		})
	}
}

// hide replaces the texts of e by what line makes of them.
func (e *EventSnapshot) hide(line func(string, int) string) {
	for _, of := range []*string{&e.Label, &e.User, &e.Server, &e.Query, &e.ToolError, &e.Loss.Miss} {
		*of = strings.Clone(line(*of, text.MaxError))
	}
	for i, name := range e.Tools {
		e.Tools[i] = strings.Clone(line(name, text.MaxName))
	}
	if e.Err != nil {
		e.Err = errors.New(line(strings.TrimPrefix(e.Err.Error(), "mcphybrid: "), text.MaxError))
	}
}
