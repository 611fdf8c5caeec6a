package mcphybrid

import (
	"context"
	"errors"
	"fmt"
)

// AddServer connects one more server, last in registration order, and publishes
// all its tools at once. If it returns an error, it has added nothing, with two
// exceptions. If the error is [ErrAuthorizationRequired], [Manager.Login] connects the
// server. If KeepFailed of the server is set and its start failed, it stays, and is tried
// again as after Start. The error is [ErrDuplicate] if a server has that name already and
// [ErrClosed] after [Manager.Close]. AddServer ignores a disabled server. ctx bounds only the
// start, and five minutes more bound that of a program which is at work: see Start.
func (m *Manager) AddServer(ctx context.Context, cfg ServerConfig) error {
	if cfg.Disabled {
		return nil
	}
	if _, err := m.loadStores(); err != nil {
		return prefixed(err, "")
	}
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: server %q: %w", cfg.Name, ErrClosed)
	}
	if m.sourceNamed(cfg.Name) != nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: server %q: %w", cfg.Name, ErrDuplicate)
	}
	src := m.newSource(cfg)
	m.followStatus(src)
	src.begun = true
	if err := src.claimNames(m.names); err != nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: server %q: %w", cfg.Name, err)
	}
	m.stageSource(src)
	m.background.Add(1)
	m.mu.Unlock()

	defer m.background.Done()
	err := prefixed(src.server.Start(ctx), "server %q: ", src.name)
	if err != nil && !cfg.KeepFailed && !errors.Is(err, ErrAuthorizationRequired) { // its problems may be published, and what it listed if ctx ended first
		_ = m.publishChange(func() error { m.dropSource(src); return nil }) // fails only if the Manager was closed
		src.server.Close()
		return err
	}
	m.saveAndIndex()
	return err
}

// RemoveServer removes the server with that name, or the tools that
// [Manager.AddTools] added under it. All its tools leave the catalog at once, the
// connection is closed, and running calls end with an error. RemoveServer
// reports whether there was such a server. It waits until the connection is closed,
// so code that runs while the server connects or lists its tools must not call it.
func (m *Manager) RemoveServer(name string) bool {
	m.mu.Lock()
	src := m.sourceNamed(name)
	m.mu.Unlock()
	return src != nil && m.remove(src)
}

// maxRemoved is how many removed servers we remember, so that their records leave a
// vector store.
const maxRemoved = 1000

func (m *Manager) remove(src *source) bool {
	if r := m.recorder.Load(); r != nil && src.server != nil {
		r.hide(src.server.Secrets(), m.concerns)
	}
	err := m.publishChange(func() error {
		if !m.dropSource(src) {
			return errors.New("the server was removed")
		}
		m.removedServers = append(m.removedServers[max(len(m.removedServers)+1-maxRemoved, 0):], src.name)
		m.trust.Left(src.name)
		m.trust.Left(resourcesOf(src.name))
		m.trust.Left(instructionsOf(src.name))
		return nil
	})
	if err != nil {
		return false
	}
	m.usageMu.Lock()
	delete(m.serverUsage, src.name)
	m.usageMu.Unlock()
	if src.server != nil {
		src.server.Close()
	}
	return true
}
