package mcphybrid

import (
	"time"
)

// Stats holds the figures of a session: what it sees, what that costs in tokens,
// and what happened in it so far.
type Stats struct {
	Servers  int // servers that have tools in the session
	Tools    int // the sum of Inline, Deferred and Active
	Inline   int
	Deferred int // without the active ones
	Active   int
	Crowded  int // deferred only because the list has no room: see [ListOptions]
	Tokens   TokenStats

	Usage         Usage
	Activations   int
	Searches      int // searches by the model
	EmptySearches int // searches by the model that found nothing

	// Measured is what the provider counted, and EstimatedSaved an estimate of how
	// much more [MeasuredTokens.Input] would be without deferring: the sum, over the
	// same requests, of TokenStats.All less Sent, at the call of [Session.CountUsage].
	// It is negative if deferring has cost more than it saved, which may be so with few
	// tools.
	Measured       MeasuredTokens
	EstimatedSaved int
}

// TokenStats are token counts by [Options.Tokens]. Those of tools follow the
// current catalog. The model may have been shown more.
type TokenStats struct {
	All      int // definitions of all tools: the cost of a request without deferring
	Inline   int // definitions of the inline tools
	Meta     int // definitions of the meta tools that the session offers
	Active   int // definitions of the active tools
	Sections int // prompt sections
	Searches int // answers so far of the meta tools that search and describe
}

// Sent returns the cost of a request: all tokens except those of deferred tools.
func (t TokenStats) Sent() int { return t.Inline + t.Meta + t.Active + t.Sections + t.Searches }

// Usage counts calls of tools.
type Usage struct {
	Calls   int
	Errors  int           // calls that were rejected, failed, or got an error from the tool
	Latency time.Duration // total of all calls
}

func (u *Usage) count(took time.Duration, failed bool) {
	u.Calls++
	u.Latency += took
	if failed {
		u.Errors++
	}
}

// A sessionUsage counts what happened in a session.
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
	u, l := s.usage, s.ledger.double()
	s.mu.Unlock()
	return newWeigher(s.scope).weigh(s, v, list, u, l)
}

// A weigher computes figures of sessions. It counts only once what several of
// them share.
type weigher struct {
	scope      *scope
	partitions map[*partition]Stats // without active tools
	sections   map[*listItem]weight // by the first item
}

// A weight is the cost of the sections of that many items.
type weight struct{ items, tokens int }

func newWeigher(s *scope) *weigher {
	return &weigher{scope: s, partitions: make(map[*partition]Stats), sections: make(map[*listItem]weight)}
}

// stats returns the figures of a session that no other goroutine uses.
func (w *weigher) stats(s *Session) Stats {
	v := s.view()
	return w.weigh(s, v, s.shownLocked(v), s.usage, s.ledger)
}

// weigh returns the figures of s, given its view, the list that its model was
// shown, its usage and its ledger.
func (w *weigher) weigh(s *Session, v *view, list []listItem, u sessionUsage, l *ledger) Stats {
	st, ok := w.partitions[v.partition]
	if !ok {
		st = w.weighTools(v.partition)
		w.partitions[v.partition] = st
	}
	st.Crowded = len(v.overflow)
	st.Inline -= st.Crowded
	st.Deferred += st.Crowded
	for t := range v.overflow {
		st.Tokens.Inline -= w.scope.toolTokens(t)
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
	st.Measured, st.EstimatedSaved = l.figures()
	return st
}

func (w *weigher) weighTools(sel *partition) (st Stats) {
	servers := make(map[origin]bool)
	for t, p := range sel.each() {
		if p == hidden {
			continue
		}
		servers[t.origin()] = true
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

func (w *weigher) weighSections(s *Session, list []listItem) int {
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

// count records a call of t, which is nil if the tool is unknown.
func (s *Session) count(t *BridgeTool, took time.Duration, failed bool) {
	s.mu.Lock()
	s.usage.calls.count(took, failed)
	s.mu.Unlock()
	if t == nil {
		return
	}
	m := s.scope.of(t.owner)
	if m.uses != nil && !failed {
		m.uses.Note(t.name, time.Now())
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	u := m.usage[t.def.Server]
	if u == nil {
		if m.cur.Load().tool(t.name) == nil {
			return // its server was removed meanwhile
		}
		u = new(Usage)
		m.usage[t.def.Server] = u
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

// A State is the state of a server.
type State string

const (
	StateConfigured State = "configured" // known, not started yet
	StateCached     State = "cached"     // not running, but its tools are known; a call starts it
	StateConnecting State = "connecting" // starting, or listing its tools for the first time
	StateReady      State = "ready"      // serving
	StateDegraded   State = "degraded"   // serving, but listing its tools again failed or it left calls without an answer
	StateDown       State = "down"       // failed to start, or ended

	// StateUnauthorized means that the server refuses requests until the user
	// logs in: see [Manager.Login]. Its tools stay.
	StateUnauthorized State = "unauthorized"
)

// A ServerStatus is the status of one server.
type ServerStatus struct {
	Name  string
	State State
	Since time.Time     // when the server entered State
	Took  time.Duration // how long its last start took until it was ready or failed
	Tools int           // number of its tools

	Resources, Templates, Prompts int // numbers of these

	Err error // why it is down, degraded or unauthorized, else nil

	// Failures is how many attempts to connect have failed in a row. Retry is
	// when the next attempt is due, or zero if there will be none: see
	// [ServerLimits.Reconnect]. While calls are refused, Retry is when the next
	// one is sent: see [ServerLimits.MaxTimeouts].
	Failures int
	Retry    time.Time
}
