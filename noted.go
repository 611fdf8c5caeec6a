package mcphybrid

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"weak"
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
	n := &noted{m: m, prune: minPrune, every: sampleEvery}
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
	m *Manager

	mu       sync.Mutex
	last     int // number of the last session
	sessions []notedSession
	prune    int // with this many sessions, we drop the collected ones
	samples  []Sample
	every    time.Duration // between samples
}

// A notedSession refers to a session that may have been garbage collected.
// Sessions are numbered from 1 in the order in which they began.
type notedSession struct {
	number  int
	began   time.Time
	session weak.Pointer[Session]
}

const minPrune = 64

// note adds s to the sessions. The entry is valid for as long as the host keeps s.
func (n *noted) note(s *Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.sessions) >= n.prune {
		kept := make([]notedSession, 0, len(n.sessions))
		for _, was := range n.sessions {
			if was.session.Value() != nil {
				kept = append(kept, was)
			}
		}
		n.sessions = kept
		n.prune = max(2*len(kept), minPrune) // doubling keeps the cost per session constant
	}
	n.last++
	n.sessions = append(n.sessions, notedSession{n.last, time.Now(), weak.Make(s)})
}

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
	n.mu.Lock()
	sessions := slices.Clip(n.sessions) // its elements don't change
	n.mu.Unlock()
	for _, was := range slices.Backward(sessions) {
		s := was.session.Value()
		if s == nil {
			continue
		}
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			list = append(list, liveSession{s, was.number, was.began})
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

	// sampleEvery is the time between the first samples. With maxSamples
	// samples, we drop every second one and double the time. So the samples
	// always reach back to the first.
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
	n := s.m.noted.Load()
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.samples)
}

func (n *noted) add(s Sample) {
	if len(n.samples) == maxSamples {
		for i := range maxSamples / 2 {
			n.samples[i] = n.samples[2*i]
		}
		n.samples = n.samples[:maxSamples/2]
		n.every *= 2
	}
	n.samples = append(n.samples, s)
}

// run takes samples until the Manager is closed.
func (n *noted) run() {
	for {
		s := n.sample()
		n.mu.Lock()
		n.add(s)
		every := n.every
		n.mu.Unlock()
		next := time.NewTimer(every)
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
