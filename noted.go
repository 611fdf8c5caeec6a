package mcphybrid

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"weak"
)

// Watch has the Manager note, until Close, what [Manager.Snapshot] shows of the
// past: the sessions that begin from now on, without keeping them, and the
// tokens of tools, in a bounded number of samples, for which one goroutine runs.
// Sessions that have a registry are noted even if they began before. Without
// Watch, none of it costs anything. A second call does nothing.
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

// noted is what a Manager that is watched keeps of the past.
type noted struct {
	m *Manager

	mu       sync.Mutex
	last     int // number of the last session
	sessions []notedSession
	prune    int // when there are this many, those that are gone are dropped
	samples  []Sample
	every    time.Duration // between samples
}

// A notedSession is one that may be gone. Sessions are numbered from 1 in the
// order in which they began.
type notedSession struct {
	number  int
	began   time.Time
	session weak.Pointer[Session]
}

const minPrune = 64

// note adds s to the sessions. It stays there for as long as the host has it.
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
		n.prune = max(2*len(kept), minPrune) // so that each is looked at a few times at most
	}
	n.last++
	n.sessions = append(n.sessions, notedSession{n.last, time.Now(), weak.Make(s)})
}

// A liveSession is one that is there and open.
type liveSession struct {
	*Session
	number int       // 0 for the Manager's own
	began  time.Time // zero for the Manager's own
}

// newest returns the noted sessions that are open, the newest first.
func (m *Manager) newest() (list []liveSession) {
	n := m.noted.Load()
	if n == nil {
		return nil
	}
	n.mu.Lock()
	sessions := slices.Clip(n.sessions) // what is in it doesn't change
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

// numbered returns the session of that number. It is an error if it is not
// there.
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

// A SessionSnapshot tells how a session is.
type SessionSnapshot struct {
	Number     int       // from 1, in the order in which they began; 0 for the Manager's own
	Began      time.Time // zero for the Manager's own
	Intent     SafeText
	Turn       int
	Disclosure Disclosure
	Stats      Stats
}

// Session returns how the session is.
func (s *Snapshot) Session() SessionSnapshot {
	return s.sessionSnapshot(s.session, newWeigher(s.m.scope))
}

// Sessions returns how the sessions from one place to before another are: the
// Manager's own at 0, then those that [Manager.Watch] has noted and that are
// open, the newest first. It also returns how many there are in all.
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

// sessionSnapshot tells how a copy of a session is.
func (s *Snapshot) sessionSnapshot(of liveSession, w *weigher) SessionSnapshot {
	return SessionSnapshot{of.number, of.began, s.Text(of.intent), of.turn, of.disclosure, w.stats(of.Session)}
}

const (
	// maxSamples is enough for a plot as wide as a screen.
	maxSamples = 240

	// sampleEvery is the time between the first samples. Whenever there are
	// maxSamples, every second one is dropped, and the time is doubled: so they
	// reach back to the first.
	sampleEvery = time.Second

	// maxSampled is of how many sessions, the newest, a sample is the mean.
	maxSampled = 64
)

// A Sample has the tokens of tools in one request, as [TokenStats] has them: the
// mean of the newest sessions, or what the Manager's own has if there is no other.
type Sample struct {
	At       time.Time
	Sessions int // of which it is the mean, at most 64
	All      int // without deferring
	Sent     int // inline, meta and active tools, sections, and answers to searches
}

// Samples returns what [Manager.Watch] has measured, the oldest first: at most 240
// samples, which reach back to when it began.
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
		s, ok := n.sample()
		n.mu.Lock()
		if ok {
			n.add(s)
		}
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

// sample measures the newest sessions. It reports whether it could.
func (n *noted) sample() (s Sample, ok bool) {
	defer func() {
		if p := recover(); p != nil { // of the host's TokenCounter
			ok = false
			n.m.opts.Logger.Error("mcphybrid: the tokens could not be counted", "panic", p)
		}
	}()
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
	return s, true
}
