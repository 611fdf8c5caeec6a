package mcphybrid

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Restart closes the connection to a server of [Manager.Start] or [Manager.AddServer],
// which ends its process, and connects anew at once. Calls that are under way fail. The
// tools stay, and so does what is active. It returns when the server is ready or has
// failed; then the server is tried again like any other.
func (m *Manager) Restart(ctx context.Context, server string) error {
	src, err := m.begunServer(server)
	if err == nil {
		err = src.server.Restart(ctx)
	}
	return prefixed(err, "restart of server %q: ", server)
}

// Preload connects the servers that have a tool whose registered name matches one
// of the patterns, as in [Access]. Their first calls then need not wait. Use it
// with [Options.Cache] or [config.Limits.IdleTimeout], where a server starts only when
// one of its tools is called.
//
// Preload connects the servers concurrently and returns when each is ready or has
// failed. The error joins one error for each failed server, which names it.
func (m *Manager) Preload(ctx context.Context, patterns ...string) error {
	_ = ctx.Err() // a nil ctx panics here, where the host can recover
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	c := m.cur.Load()
	wanted := make(map[string]bool)
	for _, t := range c.tools {
		if t.def.subject().MatchesAny(patterns) {
			wanted[t.def.Server] = true
		}
	}
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, src := range sources {
		if src.server == nil || !wanted[src.name] {
			continue
		}
		wg.Go(func() {
			errs[i] = prefixed(src.server.Connect(ctx), "server %q: ", src.name)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// begunServer returns the source of a server whose start was begun, whether or not it
// succeeded.
func (m *Manager) begunServer(name string) (*source, error) {
	_, src := m.serverOf(m.owner, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case src == nil:
		return nil, errors.New("there is no such server")
	case !src.begun:
		return nil, errors.New("it was not started")
	}
	return src, nil
}
