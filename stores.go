package mcphybrid

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cache"
)

// Stores outlive a run, and other processes may share them. Here are what was trusted, what sessions
// learned, and the cached catalog with the owners of prefixes. settings.go has the order of use,
// save.go the states of sessions, and internal/login the tokens.

// loadStores restores what was trusted and the names that were given before this run, once. It
// returns the cached catalog, or nil.
func (m *Manager) loadStores() (*cache.Found, error) {
	if err := m.trust.Load(); err != nil {
		if m.opts.Trust.holds() {
			return nil, err
		}
		m.opts.Logger.Warn("mcphybrid: " + err.Error())
	}
	var failed error
	m.cacheOnce.Do(func() {
		cached, err := m.cache.Read()
		if failed = err; err == nil {
			m.names.Restore(cached.Names)
			m.cached.Store(&cached)
		}
	})
	m.logStored(failed)
	return m.cached.Load(), nil
}

// Refresh reads [Options.TrustStore] and [Options.Cache] again, after another process that
// shares them has saved. What could not be stored before is stored, the lists in the
// background, and so is what was learned: see [LearnOptions]. Without these stores, Refresh
// does nothing.
//
// What a person has accepted by another Manager is then no longer held back here. A server
// that is neither connected here nor being connected gets the lists that it has in the
// cache, if they are newer. One that is connected is asked to list again if it has others
// there, less and less often if that happens all the time.
//
// If one store can't be read, nothing of it has changed, and the other is read all the
// same. The error joins those of both. After [Manager.Close] it is [ErrClosed].
func (m *Manager) Refresh() error {
	if m.life.Err() != nil {
		return prefixed(ErrClosed, "")
	}
	return prefixed(errors.Join(m.refreshTrust(), m.refreshCache(), m.saveLearned()), "")
}

// saveTrust stores the known tools and names, or logs why not. If another process has
// accepted a definition meanwhile, or seen one before us, it reviews all tools again.
func (m *Manager) saveTrust() {
	changed, err := m.trust.Save()
	m.logStored(err)
	if changed {
		_ = m.reviewAll() // fails only if the Manager was closed
	}
}

// refreshTrust reads [Options.TrustStore] again and stores what could not be stored before.
// After an error nothing has changed.
func (m *Manager) refreshTrust() error { return m.trustRead(m.trust.Refresh()) }

// rereadEvery is how long rereadTrust does not read again.
const rereadEvery = time.Second

// rereadTrust is refreshTrust for what states ask for: who sends many of them must not make
// us read the store as often. It waits for a read that is under way, so that what this one
// finds counts for all that ask meanwhile. Within rereadEvery after that it does nothing.
func (m *Manager) rereadTrust() error {
	m.rereading.Lock()
	if time.Since(m.reread) < rereadEvery {
		m.rereading.Unlock()
		return nil
	}
	changed, err := m.trust.Refresh()
	m.reread = time.Now()
	m.rereading.Unlock() // what follows calls the host, which may restore a session
	return m.trustRead(changed, err)
}

// trustRead follows a read of the trust store, which returned these.
func (m *Manager) trustRead(changed bool, err error) error {
	if err != nil {
		return err
	}
	m.saveTrust()
	if !changed {
		return nil
	}
	return m.reviewAll()
}

// logStored logs err, if there is one, of a store that the Manager works without, and the
// stored prefixes that can't be used, because they were given to other servers.
func (m *Manager) logStored(err error) {
	if err != nil {
		m.opts.Logger.Warn("mcphybrid: " + err.Error())
	}
	for _, c := range m.names.Refused() {
		m.opts.Logger.Warn("mcphybrid: a stored prefix is not used", "prefix", c.Prefix, "server", c.Server)
	}
}

// saveLearned adds to its store what the sessions learned since the last time.
func (m *Manager) saveLearned() error {
	if m.learnRecord == nil {
		return nil
	}
	if err := errors.Join(m.learnRecord.Load(), m.learnRecord.Save(time.Now())); err != nil {
		return fmt.Errorf("what was learned: %w", err)
	}
	return nil
}
