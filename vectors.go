package mcphybrid

import "context"

// embed has the vectors follow the catalog and what servers list. The caller holds
// mu.
func (m *Manager) embed() {
	if m.semantic != nil {
		m.semantic.Changed(func(run func(context.Context)) { m.background.Go(func() { run(m.life) }) })
	}
}

// ownNames returns the own names of the tools that servers have listed since they
// were connected, by server. A server that the host removed has none.
func (m *Manager) ownNames() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make(map[string][]string)
	for _, name := range m.removedServers {
		list[name] = nil
	}
	for _, src := range m.sources {
		defs := src.listed
		if src.server == nil {
			defs = src.defs
		} else if !src.live {
			delete(list, src.name)
			continue
		}
		names := make([]string, len(defs))
		for i, d := range defs {
			names[i] = d.Own
		}
		list[src.name] = names
	}
	return list
}
