package mcphybrid

import (
	"math"
	"time"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// addUsage adds a request to m.
func addUsage(m *snapshot.Measured, u provider.Usage) {
	for _, of := range []struct {
		sum *int
		n   int
	}{{&m.Requests, 1}, {&m.Input, u.Input}, {&m.Cached, u.Cached}, {&m.Written, u.Written}, {&m.Output, u.Output}} {
		*of.sum = plus(*of.sum, of.n)
	}
}

// plus returns a + b, or the greatest int if that is too much. b is not negative.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// A ledger has the figures of a session's requests. It belongs to the session, whose mu
// guards it, and does not grow with the number of requests.
type ledger struct {
	sums   snapshot.Measured
	saved  int             // see [snapshot.Stats.EstimatedSaved]
	losses []snapshot.Loss // the last ones, newest first; at most maxLosses; replaced, never changed

	// Of the request counted last:
	left      int       // tokens that it left in the cache
	automatic bool      // left is all of its input
	at        time.Time // when it was counted
	head      head
	compacted bool // Compact was called since then
}

// double returns a copy of l that stays as it is. The caller holds the session's mu.
func (l *ledger) double() *ledger {
	if l == nil {
		return nil
	}
	d := *l
	return &d
}

// figures returns the sums, and the estimate of what was saved.
func (l *ledger) figures() (snapshot.Measured, int) {
	if l == nil {
		return snapshot.Measured{}, 0
	}
	return l.sums, l.saved
}

// CountUsage tells the session what a response took. Call it once for each response, in
// order, as soon as you have it: before the calls that the response asks for, and
// before Compact. The adapters do so by themselves. [snapshot.Stats.Measured] has the sums. If the request lost the provider's
// cache, there is an [EventCacheLost], which tells why as far as the session knows.
//
// Figures that are negative, or greater than what they are a part of, count as the
// nearest that is possible. A restored session begins with no figures, so its first
// request loses nothing. A closed session counts nothing.
func (s *Session) CountUsage(u provider.Usage) {
	u = u.Bounded()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	if s.ledger == nil {
		s.ledger = new(ledger)
	}
	loss, lost := s.ledger.count(u, s.headLocked(), time.Now())
	s.mu.Unlock()

	tokens := s.Stats().Tokens // which may call the host's counter
	s.mu.Lock()
	if saved := tokens.All - tokens.Sent(); saved > 0 {
		s.ledger.saved = plus(s.ledger.saved, saved)
	} else {
		s.ledger.saved += saved
	}
	s.mu.Unlock()
	if lost {
		s.emit(Event{Kind: EventCacheLost, Loss: loss})
	}
}

// count adds a request whose head is given, and returns what of the cache it lost.
func (l *ledger) count(u provider.Usage, h head, now time.Time) (loss snapshot.Loss, lost bool) {
	addUsage(&l.sums, u)
	if l.automatic && l.sums.Cached == 0 {
		l.left = 0 // it caches nothing
	}
	missed := min(l.left, u.Input) - u.Cached
	if lost = missed > lossTolerance; lost {
		loss = snapshot.Loss{At: now, Tokens: missed, Cause: l.cause(u.Miss, h, now), Miss: u.Miss}
		l.sums.Losses, l.sums.Lost = plus(l.sums.Losses, 1), plus(l.sums.Lost, missed)
		l.losses = append([]snapshot.Loss{loss}, l.losses[:min(len(l.losses), maxLosses-1)]...)
	}
	l.left = u.Cached + u.Written
	if u.Automatic {
		l.left = u.Input
	} else if u.Left > 0 {
		l.left = u.Left
	}
	l.automatic, l.at, l.head, l.compacted = u.Automatic, now, h, false
	return loss, lost
}
