package mcphybrid

import (
	"context"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// known returns what can be said of the tools that patterns are about: those of all
// servers, whether or not the options permit them, and the meta tools.
func (m *Manager) known() (k rules.Known) {
	if m.system != nil {
		k = m.system.known()
	} else {
		for kind := range metaKinds {
			k.Tools = append(k.Tools, rules.Subject{Name: kind.name()})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, src := range m.sources {
		defs := src.listed
		if src.server == nil {
			defs = src.defs
		} else if src.isUnlisted() {
			k.Missing = append(k.Missing, rules.Subject{Name: src.claim.Start(), Server: src.name})
		}
		for _, d := range defs {
			k.Tools = append(k.Tools, d.subject())
		}
		for _, o := range src.resources {
			k.Tools = append(k.Tools, o.Entry.Names)
		}
	}
	return k.Indexed()
}

// allListed reports whether all servers have listed their tools.
func (m *Manager) allListed() bool {
	if m.system != nil && !m.system.allListed() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(m.sources, (*source).isUnlisted)
}

// connecting returns what patterns see of the tool with that registered name, if it
// would belong to a server that is still connecting.
func (m *Manager) connecting(tool string) (rules.Subject, bool) {
	for _, src := range m.connectingSources() {
		if own, ok := src.claim.Own(tool); ok {
			return rules.Subject{Name: tool, Server: src.name, Own: own}, true
		}
	}
	return rules.Subject{}, false
}

// unlistedServerOf returns the owner of the server to which the unknown tool with that registered
// name would belong, if it was started and by the catalogs has not listed its tools, or nil; and
// what patterns see of the tool.
func (m *Manager) unlistedServerOf(tool string, by []*catalog) (*owner, rules.Subject) {
	for _, src := range m.begunSources() {
		if own, ok := src.claim.Own(tool); ok && !hasListed(by, m.owner, src.name) {
			return m.owner, rules.Subject{Name: tool, Server: src.name, Own: own}
		}
	}
	if m.system != nil {
		return m.system.unlistedServerOf(tool, by)
	}
	return nil, rules.Subject{}
}

// begunSources returns the servers that were started, in registration order.
func (m *Manager) begunSources() []*source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.sources), func(src *source) bool { return !src.begun })
}

// connectingServers returns the names of the servers that are still connecting, in
// registration order and each once. It omits servers of which r permits no tool.
func (m *Manager) connectingServers(r rules.Rights) (names []string) {
	for _, src := range m.connectingSources() {
		if r.Permit(src.anyTool()) && !slices.Contains(names, src.name) {
			names = append(names, src.name)
		}
	}
	return names
}

// connectingSources returns the sources that are still connecting, or will as soon as their
// start has loaded what it needs, in registration order. A user's Manager returns those of its
// system first.
func (m *Manager) connectingSources() []*source {
	var sources []*source
	if m.system != nil {
		sources = m.system.connectingSources()
	}
	return append(sources, slices.DeleteFunc(m.begunSources(), func(src *source) bool {
		state := src.server.Status().State
		return state != upstream.Connecting && state != upstream.Configured
	})...)
}

// status returns the status of an owner's server with that name.
func (m *Manager) status(of *owner, name string) (st ServerStatus, ok bool) {
	m, src := m.serverOf(of, name)
	if src == nil {
		return st, false
	}
	return m.statusOf(src), true
}

// serverOf returns the source of an owner's server with that name, or nil, and
// the Manager that has it.
func (m *Manager) serverOf(of *owner, name string) (*Manager, *source) {
	if of != m.owner && m.system != nil {
		m = m.system
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if src := m.sourceNamed(name); src != nil && src.server != nil {
		return m, src
	}
	return m, nil
}

func (m *Manager) server(of *owner, name string) (*upstream.Server, rules.Subject) {
	_, src := m.serverOf(of, name)
	if src == nil {
		return nil, rules.Subject{}
	}
	return src.server, src.subjectOf("")
}

func (m *Manager) permits(of *owner, t rules.Subject) bool {
	_, src := m.serverOf(of, t.Server)
	return src == nil || permitsOwn(src.cfg.Tools, t)
}

func (m *Manager) trusted(of *owner, d *definition) bool {
	m, _ = m.serverOf(of, d.Server)
	if m.trust.Knew(d.Server, &d.Trusted) {
		return true
	}
	if err := m.rereadTrust(); err != nil {
		m.opts.Logger.Warn(prefixed(err, "").Error())
	}
	return m.trust.Knew(d.Server, &d.Trusted)
}

func (m *Manager) connectServer(ctx context.Context, of *owner, server string) (there bool, err error) {
	_, src := m.serverOf(of, server)
	if src == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.Limits.CallTimeout)
	defer cancel()
	return true, src.server.Connect(ctx)
}
