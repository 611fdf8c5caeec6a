package mcphybrid

import (
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/history"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// Watch makes the Manager record the history that [Manager.Snapshot] shows, until
// Close: the newest 200 events in sessions of the system and all its users, apart from
// activations, and the newest 200 of servers, and the sessions, from now on or, of those
// that have begun, from their next event. It does not keep sessions alive. It also takes
// a bounded number of samples of the tools' tokens, in one goroutine. A second call does
// nothing.
func (m *Manager) Watch() {
	m.recorder.CompareAndSwap(nil, newRecorder())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.samples.Load() == nil && m.life.Err() == nil {
		samples := history.NewSeries[snapshot.Sample](maxSamples, sampleEvery)
		m.samples.Store(samples)
		m.background.Go(func() { samples.Run(m.life.Done(), m.sample) })
	}
}

// concerns reports whether an event is one of the Manager: of any user, or of the user whose
// Manager m is.
func (m *Manager) concerns(e snapshot.Event) bool { return m.system == nil || e.User == m.user.id }

// A liveSession is an open session.
type liveSession struct {
	*Session
	number int       // 0 for the default session
	began  time.Time // zero for the default session
}

// newest returns the noted sessions that are open, newest first: those of all users, or
// those of the user whose Manager m is.
func (m *Manager) newest() (list []liveSession) {
	r := m.recorder.Load()
	if r == nil {
		return nil
	}
	for _, was := range r.sessions.Newest() {
		s := was.Value
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if !closed && (m.system == nil || s.tenant == m.tenant) {
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

const (
	// maxSamples is enough for a plot as wide as a screen.
	maxSamples = 240

	// sampleEvery is the time between the first samples.
	sampleEvery = time.Second

	// maxSampled is how many of the newest sessions a sample averages.
	maxSampled = 64
)

// sample measures the newest sessions.
func (m *Manager) sample() (s snapshot.Sample) {
	newest := m.newest()
	if len(newest) == 0 {
		newest = []liveSession{{Session: m.def}}
	}
	s.At = time.Now()
	w := newStatsCounter(m.tenant)
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
