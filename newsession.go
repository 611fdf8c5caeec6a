package mcphybrid

import "slices"

// How a conversation begins and ends for the Manager. restore.go has one that goes on, and the
// package store keeps its states.

// NewSession returns a session without active tools. opts may be nil. Close a
// session that has a registry when the conversation is over; other sessions need
// no Close. After [Manager.Close] the session is empty.
func (m *Manager) NewSession(opts *SessionOptions) *Session {
	return m.tenant.newSession(nil, nil, "", opts)
}

// began keeps the registry of s, if it has one, up to date from now on.
func (m *Manager) began(s *Session) {
	if s.registrar != nil {
		m.attach(s)
	}
	if r := m.recorder.Load(); r != nil && m.def != nil { // else s will be the default session
		r.record(Event{Session: s})
	}
}

// attach keeps the registry of s up to date until the session or the Manager ends.
func (m *Manager) attach(s *Session) {
	m.mu.Lock()
	closed := m.life.Err() != nil
	if !closed {
		m.attached = append(m.attached, s)
	}
	m.mu.Unlock()
	if !closed {
		s.registrar.open(s.ActivateToolIfDeferred)
	}
	if !closed && m.life.Err() != nil { // Close ran in the meantime
		s.registrar.close()
	}
}

// closed releases the registry of s, if it has one.
func (m *Manager) closed(s *Session) {
	if s.registrar == nil {
		return
	}
	m.mu.Lock()
	m.attached = slices.DeleteFunc(m.attached, func(other *Session) bool { return other == s })
	m.mu.Unlock()
	s.registrar.close()
}
