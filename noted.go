package mcphybrid

import (
	"fmt"
	"time"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/history"
)

// Watch makes the Manager record the history that [Manager.Snapshot] shows, until
// Close. It records each session that begins from now on, and those with a
// registry that began before; it does not keep sessions alive. It also takes a
// bounded number of samples of the tools' tokens, in one goroutine. A second call
// does nothing.
func (m *Manager) Watch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noted.Load() != nil {
		return
	}
	n := &noted{m: m, samples: history.NewSeries[Sample](maxSamples, sampleEvery)}
	for _, s := range m.attached {
		if s != m.def {
			n.note(s)
		}
	}
	m.noted.Store(n)
	if m.life.Err() == nil {
		m.starting.Go(n.run)
	}
}

// noted is the history that Watch records.
type noted struct {
	m        *Manager
	sessions history.Living[*Session]
	samples  *history.Series[Sample]
}

// note adds s to the sessions, which does not keep it alive.
func (n *noted) note(s *Session) { n.sessions.Add(weak.Make(s).Value) }

// A liveSession is an open session.
type liveSession struct {
	*Session
	number int       // 0 for the default session
	began  time.Time // zero for the default session
}

// newest returns the noted sessions that are open, newest first.
func (m *Manager) newest() (list []liveSession) {
	n := m.noted.Load()
	if n == nil {
		return nil
	}
	for _, was := range n.sessions.Newest() {
		s := was.Value
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			list = append(list, liveSession{s, was.Number, was.Began})
		}
	}
	return list
}

// numbered returns the session with that number, or an error if there is none.
func (m *Manager) numbered(number int) (liveSession, error) {
	if number == 0 {
		return liveSession{Session: m.def}, nil
	}
	for _, s := range m.newest() {
		if s.number == number {
			return s, nil
		}
	}
	return liveSession{}, fmt.Errorf("there is no session %d: it has not begun, was closed, or is no longer in use", number)
}

// A SessionSnapshot describes a session.
type SessionSnapshot struct {
	Number     int       // from 1, in the order in which sessions began; 0 for the default session
	Began      time.Time // zero for the default session
	Intent     SafeText
	Turn       int
	Disclosure Disclosure
	Stats      Stats
}

// Session describes the session of the Snapshot.
func (s *Snapshot) Session() SessionSnapshot {
	return s.sessionSnapshot(s.session, newWeigher(s.m.scope))
}

// Sessions describes sessions by their place in a list: the default session at 0,
// then the open ones that [Manager.Watch] has recorded, newest first. It returns
// those at the places from <= i < to, and the length of the whole list.
func (s *Snapshot) Sessions(from, to int) (list []SessionSnapshot, total int) {
	all := append([]liveSession{{Session: s.m.def}}, s.m.newest()...)
	to = max(min(to, len(all)), 0)
	w := newWeigher(s.m.scope)
	for _, live := range all[max(min(from, to), 0):to] {
		live.Session = live.double()
		list = append(list, s.sessionSnapshot(live, w))
	}
	return list, len(all)
}

// sessionSnapshot describes a copy of a session.
func (s *Snapshot) sessionSnapshot(of liveSession, w *weigher) SessionSnapshot {
	return SessionSnapshot{of.number, of.began, s.Text(of.intent), of.turn, of.disclosure, w.stats(of.Session)}
}

const (
	// maxSamples is enough for a plot as wide as a screen.
	maxSamples = 240

	// sampleEvery is the time between the first samples.
	sampleEvery = time.Second

	// maxSampled is how many of the newest sessions a sample averages.
	maxSampled = 64
)

// A Sample is the tokens of tools in one request, as in [TokenStats]. It is the
// mean over the newest sessions, or the figures of the default session if there is
// no other.
type Sample struct {
	At       time.Time
	Sessions int // number of sessions averaged, at most 64
	All      int // see [TokenStats]
	Sent     int // see [TokenStats.Sent]
}

// Samples returns the measurements of [Manager.Watch], oldest first. There are at
// most 240, and they reach back to the call of Watch.
func (s *Snapshot) Samples() []Sample {
	if n := s.m.noted.Load(); n != nil {
		return n.samples.All()
	}
	return nil
}

// run takes samples until the Manager is closed.
func (n *noted) run() {
	for {
		next := time.NewTimer(n.samples.Add(n.sample()))
		select {
		case <-next.C:
		case <-n.m.life.Done():
			next.Stop()
			return
		}
	}
}

// sample measures the newest sessions.
func (n *noted) sample() (s Sample) {
	newest := n.m.newest()
	if len(newest) == 0 {
		newest = []liveSession{{Session: n.m.def}}
	}
	s.At = time.Now()
	w := newWeigher(n.m.scope)
	for _, session := range newest[:min(len(newest), maxSampled)] {
		tokens := w.stats(session.double()).Tokens
		s.All += tokens.All
		s.Sent += tokens.Sent()
		s.Sessions++
	}
	s.All /= s.Sessions
	s.Sent /= s.Sessions
	return s
}
