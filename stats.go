package mcphybrid

import (
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A new figure is declared in snapshot.Stats, has its counter here if it needs one, and is put there by figures.go.

// countCall adds a call to u.
func countCall(u *snapshot.Usage, took time.Duration, failed bool) {
	u.Calls++
	u.Latency += took
	if failed {
		u.Errors++
	}
}

// A sessionUsage counts what happened in a session.
type sessionUsage struct {
	calls         snapshot.Usage
	activations   int
	searches      int
	emptySearches int
	answerTokens  int
}

// Stats returns the session's figures.
func (s *Session) Stats() snapshot.Stats {
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
	countCall(&s.usage.calls, took, failed)
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
		u = new(snapshot.Usage)
		m.serverUsage[t.def.Server] = u
	}
	countCall(u, took, failed)
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
