package mcphybrid

import (
	"context"
	"log/slog"
	"time"
)

// An EventKind says what happened in a session.
type EventKind string

const (
	EventCall     EventKind = "call"     // a tool was called, or the call refused
	EventSearch   EventKind = "search"   // the model searched
	EventActivate EventKind = "activate" // deferred tools became active
	EventEvict    EventKind = "evict"    // active tools were given up by Compact
)

// An Event is something that happened in a session.
type Event struct {
	Kind    EventKind
	Session *Session
	Tools   []string      // registered: the one called, those found, activated or given up
	Server  string        // of the tool called, if it is known
	Query   string        // of a search
	Took    time.Duration // a call or a search
	Err     error         // of a call; nil if the tool answered, be it with an error of its own
}

// tell hands an event to the host, with no lock held.
func (s *Session) tell(e Event) {
	if s.scope.opts.OnEvent != nil {
		e.Session = s
		s.scope.opts.OnEvent(e)
	}
}

// LogEvents returns a function for [Options.OnEvent] that logs each event,
// those with an error as warnings and the others at level.
func LogEvents(log *slog.Logger, level slog.Level) func(Event) {
	return func(e Event) {
		level := level
		attrs := []slog.Attr{slog.Any("tools", e.Tools)}
		if e.Server != "" {
			attrs = append(attrs, slog.String("server", e.Server))
		}
		if e.Kind == EventSearch {
			attrs = append(attrs, slog.String("query", e.Query))
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Err != nil {
			level = slog.LevelWarn
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(context.Background(), level, "mcphybrid: "+string(e.Kind), attrs...)
	}
}
