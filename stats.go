package mcphybrid

import (
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A new figure is declared here, with its counter if it has one, put into a Stats by figures.go, and
// copied for pages by statsFor in snapshot.go.

// Stats holds the figures of a session: what it sees, what that costs in tokens,
// and what happened in it so far.
type Stats struct {
	Servers  int // servers that have tools in the session
	Tools    int // the sum of Inline, Deferred and Active
	Inline   int
	Deferred int // without the active ones
	Active   int
	Crowded  int // deferred only because the list has no room, or was fixed before they came: see [ListOptions]
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
func (t TokenStats) Sent() int { return snapshot.Tokens(t).Sent() }

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
	return newStatsCounter(s.tenant).weigh(s, v, list, u, l)
}

// count records a call of t, which is nil if the tool is unknown.
func (s *Session) count(t *BridgeTool, took time.Duration, failed bool) {
	s.mu.Lock()
	s.usage.calls.count(took, failed)
	s.mu.Unlock()
	if t == nil {
		return
	}
	if !failed {
		s.learn(t)
	}
	m := s.tenant.of(t.owner)
	if m.usageRecord != nil && !failed {
		m.usageRecord.Note(t.name, time.Now())
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	u := m.serverUsage[t.def.Server]
	if u == nil {
		if m.cur.Load().tool(t.name) == nil {
			return // its server was removed meanwhile
		}
		u = new(Usage)
		m.serverUsage[t.def.Server] = u
	}
	u.count(took, failed)
}

// countAnswer counts the tokens of a meta tool's answer.
func (s *Session) countAnswer(text string) {
	n := s.tenant.tokens(text)
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
