package mcphybrid

// Each change becomes one catalog, which is stored in tenant.cur. Registries are kept in step here;
// a session takes the catalog at its next look (view.go).

import (
	"errors"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// errNoChange says that a change left everything as it was.
var errNoChange = errors.New("nothing has changed")

// publishChange calls f, which may change the sources, their hints or the policy, and
// publishes the new catalog. If f returns an error, it publishes nothing and returns the error. After errNoChange
// it returns nil. In any case, those who wait for m.changed look again.
func (m *Manager) publishChange(f func() error) error {
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return ErrClosed
	}
	err := f()
	close(m.changed)
	m.changed = make(chan struct{})
	if err != nil {
		m.mu.Unlock()
		if err == errNoChange {
			return nil
		}
		return err
	}
	prev := m.cur.Load()
	c := m.nextCatalog(prev)
	m.cur.Store(c)
	m.embed()
	m.lookups.Changed()
	if m.opts.OnResources != nil && (c.shelf != prev.shelf || !c.hasAppToolsOf(prev)) {
		m.background.Go(m.tellResources)
	}
	known := make(map[string]bool, len(prev.problems))
	for _, err := range prev.problems {
		known[err.Error()] = true
	}
	var fresh []error
	for _, err := range c.problems {
		if !known[err.Error()] {
			fresh = append(fresh, err)
		}
	}
	if fresh != nil && (m.opts.OnEvent != nil || m.recorder.Load() != nil) {
		m.background.Go(func() { m.tellChanges(fresh) })
	}
	m.mu.Unlock()

	for _, err := range fresh {
		m.opts.Logger.Warn(err.Error())
	}
	m.sync()
	return nil
}

// sync updates all registries to the current catalog, including those of users'
// sessions. Users forget the partitions that they made over the catalog before.
func (m *Manager) sync() {
	m.mu.Lock()
	attached, users := slices.Clone(m.attached), m.users.list()
	m.mu.Unlock()
	for _, s := range attached {
		s.syncRegistry()
	}
	for _, u := range users {
		u.forgetPartitions()
		u.sync()
	}
}

// nextCatalog returns the catalog of the sources as they are now. The caller holds mu.
func (m *Manager) nextCatalog(prev *catalog) *catalog {
	m.toolsShared = true
	var unlisted []rules.Subject
	if len(m.opts.Needs) > 0 {
		for _, src := range m.sources {
			if src.server != nil && src.listed == nil {
				unlisted = append(unlisted, rules.Subject{Name: src.claim.Start(), Server: src.name})
			}
		}
	}
	c := newCatalog(prev, m.owner, m.perServer, m.names.Prefixes(), m.lookups.Known(), m.opts.Needs, unlisted, m.deferredIndexer)
	c.problems = append(c.problems, mixedPolicies(m.opts.Trust, c.problems)...)
	return c
}
