package mcphybrid

import (
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A State is how far a server is.
type State string

const (
	StateConfigured State = "configured" // known, not started
	StateCached     State = "cached"     // not running, its tools known; a call starts it
	StateConnecting State = "connecting" // starting, or listing its tools
	StateReady      State = "ready"      // serving
	StateDegraded   State = "degraded"   // serving, but its tools could not be listed again
	StateDown       State = "down"       // failed to start, or ended
)

// A ServerStatus tells how one server is.
type ServerStatus struct {
	Name  string
	State State
	Since time.Time     // when State was entered
	Took  time.Duration // from the start until it was ready or failed
	Tools int           // in the catalog
	Err   error         // why it is down or degraded, else nil

	// Failures is how many attempts to connect have failed in a row, and Retry
	// when the next one is made: see [Options.Reconnect]. Zero if none is.
	Failures int
	Retry    time.Time
}

// statusOf returns how the server of src is.
func (m *Manager) statusOf(src *source) ServerStatus {
	st := src.server.Status() // before its tools: once it is ready, they are there
	m.mu.Lock()
	tools := len(src.listed)
	m.mu.Unlock()
	return ServerStatus{
		Name: src.name, State: State(st.State), Since: st.Since, Took: st.Took, Tools: tools, Err: st.Err,
		Failures: st.Failures, Retry: st.Retry,
	}
}

// Servers returns how each server is, in registration order.
func (m *Manager) Servers() []ServerStatus {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	var list []ServerStatus
	for _, src := range sources {
		if src.server != nil {
			list = append(list, m.statusOf(src))
		}
	}
	return list
}

// connecting returns the name of the server, still being connected, that a
// tool of that registered name would be of, or "".
func (m *Manager) connecting(tool string) string {
	for _, st := range m.connectingSources() {
		if strings.HasPrefix(tool, registeredName(st.name, st.cfg.Prefix, "")) {
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
		if r.permit(registeredName(src.name, src.cfg.Prefix, "any")) && !slices.Contains(names, src.name) {
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
		return src.server == nil || src.server.Status().State != upstream.Connecting
	})
}

// status returns how the server of that name is.
func (m *Manager) status(name string) (st ServerStatus, ok bool) {
	m.mu.Lock()
	i := m.find(name)
	var src *source
	if i >= 0 {
		src = m.sources[i]
	}
	m.mu.Unlock()
	if src == nil || src.server == nil {
		return st, false
	}
	return m.statusOf(src), true
}
