package mcphybrid

import (
	"slices"
	"strings"
)

// Servers returns how each server is, in registration order.
func (m *Manager) Servers() []ServerStatus {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	var list []ServerStatus
	for _, src := range sources {
		if src.server != nil {
			list = append(list, src.server.snapshot())
		}
	}
	return list
}

// connecting returns the name of the server, still being connected, that a
// tool of that registered name would be of, or "".
func (m *Manager) connecting(tool string) string {
	for _, st := range m.connectingSources() {
		if strings.HasPrefix(tool, registeredName(st.name, st.server.cfg.Prefix, "")) {
			return st.name
		}
	}
	return ""
}

// connectingServers returns the names of the servers that are still being
// connected, in registration order and each once, but for those of which r
// permits no tool.
func (m *Manager) connectingServers(r rights) (names []string) {
	for _, src := range m.connectingSources() {
		if r.permit(registeredName(src.name, src.server.cfg.Prefix, "any")) && !slices.Contains(names, src.name) {
			names = append(names, src.name)
		}
	}
	return names
}

// connectingSources returns them in registration order, of a user's Manager
// those of its system first.
func (m *Manager) connectingSources() []*source {
	var sources []*source
	if m.user.system != nil {
		sources = m.user.system.connectingSources()
	}
	m.mu.Lock()
	sources = append(sources, m.sources...)
	m.mu.Unlock()
	return slices.DeleteFunc(sources, func(src *source) bool {
		return src.server == nil || src.server.snapshot().State != StateConnecting
	})
}

// status returns how the server of that name is.
func (m *Manager) status(name string) (st ServerStatus, ok bool) {
	m.mu.Lock()
	i := m.find(name)
	var srv *server
	if i >= 0 {
		srv = m.sources[i].server
	}
	m.mu.Unlock()
	if srv == nil {
		return st, false
	}
	return srv.snapshot(), true
}
