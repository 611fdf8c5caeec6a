package mcphybrid

import (
	"context"
	"log/slog"
	"time"
)

// Stats counts what a session sees, what it costs, and what was done in it.
type Stats struct {
	Servers  int // that have tools
	Tools    int // inline, deferred and active
	Inline   int
	Deferred int // not active
	Active   int
	Tokens   TokenStats

	Usage         Usage
	Activations   int
	Searches      int // by the model
	EmptySearches int // of them, those that found nothing
}

// TokenStats are tokens by [Options.Tokens]. Those of tools are of the catalog
// as it is now, which may be less than what the model was shown.
type TokenStats struct {
	All      int // the definitions of all tools: what a request costs without deferring
	Inline   int // those of the inline tools
	Meta     int // those of the meta tools that are offered
	Active   int // those of the active tools
	Sections int // the prompt sections
	Searches int // the answers to searches and of descriptions, so far
}

// Sent returns what a request costs: all but what is deferred.
func (t TokenStats) Sent() int { return t.Inline + t.Meta + t.Active + t.Sections + t.Searches }

// Usage counts calls of tools.
type Usage struct {
	Calls   int
	Errors  int           // refused, failed, or answered by the tool with an error
	Latency time.Duration // of all together
}

func (u *Usage) count(took time.Duration, failed bool) {
	u.Calls++
	u.Latency += took
	if failed {
		u.Errors++
	}
}

// A sessionUsage is what was done in a session.
type sessionUsage struct {
	calls         Usage
	activations   int
	searches      int
	emptySearches int
	answerTokens  int
}

// Stats returns the session's figures.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	v := s.viewLocked()
	list := s.shownLocked(v)
	u := s.usage
	s.mu.Unlock()
	return newWeigher(s.scope).weigh(s, v, list, u)
}

// A weigher counts once what sessions have in common.
type weigher struct {
	scope      *scope
	selections map[*selection]Stats // of sessions without active tools
	sections   map[*shown]weight    // by the first of what was shown
}

// A weight is what the sections of items, which begin with the same, cost.
type weight struct{ items, tokens int }

func newWeigher(s *scope) *weigher {
	return &weigher{scope: s, selections: make(map[*selection]Stats), sections: make(map[*shown]weight)}
}

// stats returns the figures of a session that nobody else has.
func (w *weigher) stats(s *Session) Stats {
	v := s.view()
	return w.weigh(s, v, s.shownLocked(v), s.usage)
}

// weigh returns the figures of s as v sees it, that was shown list and used as
// u tells.
func (w *weigher) weigh(s *Session, v view, list []shown, u sessionUsage) Stats {
	st, ok := w.selections[v.selection]
	if !ok {
		st = w.weighTools(v.selection)
		w.selections[v.selection] = st
	}
	for _, t := range v.active {
		st.Active++
		st.Deferred--
		st.Tokens.Active += w.scope.toolTokens(t)
	}
	for _, t := range s.metaTools(v) {
		st.Tokens.Meta += w.scope.tokens(definitionText(t))
	}
	st.Tokens.Sections = w.weighSections(s, list)
	st.Usage, st.Activations, st.Searches, st.EmptySearches = u.calls, u.activations, u.searches, u.emptySearches
	st.Tokens.Searches = u.answerTokens
	return st
}

func (w *weigher) weighTools(sel *selection) (st Stats) {
	type server struct {
		of   *owner
		name string
	}
	servers := make(map[server]bool)
	for t, p := range sel.each() {
		if p == hidden {
			continue
		}
		servers[server{t.owner, t.def.server}] = true
		tokens := w.scope.toolTokens(t)
		st.Tools++
		st.Tokens.All += tokens
		if p == inline {
			st.Inline++
			st.Tokens.Inline += tokens
		} else {
			st.Deferred++
		}
	}
	st.Servers = len(servers)
	return st
}

func (w *weigher) weighSections(s *Session, list []shown) int {
	if len(list) == 0 {
		return w.scope.tokens(s.sections(list, true, true))
	}
	known := w.sections[&list[0]]
	if known.items != len(list) {
		known = weight{len(list), w.scope.tokens(s.sections(list, true, true))}
		w.sections[&list[0]] = known
	}
	return known.tokens
}

// count notes a call of t, nil if it is unknown.
func (s *Session) count(t *BridgeTool, took time.Duration, failed bool) {
	s.mu.Lock()
	s.usage.calls.count(took, failed)
	s.mu.Unlock()
	if t == nil {
		return
	}
	m := s.scope.of(t.owner)
	if m.uses != nil && !failed {
		m.uses.note(t.name, time.Now())
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	u := m.usage[t.def.server]
	if u == nil {
		u = new(Usage)
		m.usage[t.def.server] = u
	}
	u.count(took, failed)
}

// countAnswer counts the tokens of a meta tool's answer.
func (s *Session) countAnswer(text string) {
	n := s.scope.tokens(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.answerTokens += n
}

func (s *Session) countSearch(found int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.searches++
	if found == 0 {
		s.usage.emptySearches++
	}
}

// A State is how far a server is.
type State string

const (
	StateConfigured State = "configured" // known, not started
	StateCached     State = "cached"     // not running, its tools known; a call starts it
	StateConnecting State = "connecting" // starting, or listing its tools
	StateReady      State = "ready"      // serving
	StateDegraded   State = "degraded"   // serving, but its tools could not be listed again
	StateDown       State = "down"       // failed to start, or ended
)

// A ServerStatus tells how one server is.
type ServerStatus struct {
	Name  string
	State State
	Since time.Time     // when State was entered
	Took  time.Duration // from the start until it was ready or failed
	Tools int           // in the catalog
	Err   error         // why it is down or degraded, else nil

	// Failures is how many attempts to connect have failed in a row, and Retry
	// when the next one is made: see [Options.Reconnect]. Zero if none is.
	Failures int
	Retry    time.Time
}

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
