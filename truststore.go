package mcphybrid

import "time"

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
func (m *Manager) refreshTrust() error { return m.learned(m.trust.Refresh()) }

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
	return m.learned(changed, err)
}

// learned follows a read of the trust store, which returned these.
func (m *Manager) learned(changed bool, err error) error {
	if err != nil {
		return err
	}
	m.saveTrust()
	if !changed {
		return nil
	}
	return m.reviewAll()
}
