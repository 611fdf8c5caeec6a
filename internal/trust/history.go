package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A history is what is in the store.
type history struct {
	Version int                         `json:"version"`
	Names   []names.Claim               `json:"names,omitempty"`
	Servers map[string]map[string]*tool `json:"servers"`
}

// The versions of a history. One that does not know tool.Late would lose it, so it must
// refuse what has it. In version 1 all that is known counts as a first list.
const (
	oldest  = 1
	version = 2
)

// Load adds what is in the store. After the first success it does nothing. After
// an error nothing has changed. Concurrent callers wait for one of them, so the
// store must not call Load.
func (m *Memory) Load() error {
	if m.store == nil {
		return nil
	}
	m.loading.Lock()
	defer m.loading.Unlock()
	if m.isLoaded() {
		return nil
	}
	_, _, err := m.add(m.store.Load())
	return err
}

// Refresh adds what other processes have stored since, and reports what Save reports.
// After an error nothing has changed.
func (m *Memory) Refresh() (changed bool, err error) {
	if m.store != nil {
		_, changed, err = m.add(m.store.Load())
	}
	return changed, err
}

func (m *Memory) isLoaded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded
}

// add adds what was loaded from the store, unless that failed. It returns the claims there
// and reports whether a tool has been added or replaced.
func (m *Memory) add(data []byte, err error) (stored []names.Claim, changed bool, _ error) {
	doc, err := readDocument(data, err)
	if err != nil {
		return nil, false, fmt.Errorf("loading the known tools: %w", err)
	}
	m.names.Restore(doc.Names)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = true
	for name, tools := range doc.Servers {
		changed = m.merge(name, tools) || changed
	}
	return doc.Names, changed, nil
}

// merge adds what another process knows of a server. It reports whether a tool was added,
// or one of ours replaced.
func (m *Memory) merge(name string, tools map[string]*tool) (replaced bool) {
	s, before := m.servers[name]
	if !before {
		if len(m.servers) >= MaxServers {
			return false
		}
		s = &server{tools: make(map[string]*tool)}
		m.servers[name] = s
	}
	for own, t := range s.tools {
		if !s.met && tools[own] == nil && !t.Accepted && !t.Late { // the first list is the one that was stored first
			s.delay(own)
			m.unsaved, replaced = true, true
		}
	}
	s.met = true
	for own, theirs := range tools {
		ours := s.tools[own]
		if !theirs.Late && m.late(ours, theirs, before) {
			next := *theirs
			next.Late, theirs, m.unsaved = true, &next, true
		}
		if theirs.Late && ours != nil && !ours.Late && !ours.Accepted && ours.isStored(theirs) {
			s.delay(own)
			ours, replaced = s.tools[own], true
		}
		if ours != nil && ours.mine {
			next := ours.after(theirs)
			ours = &next
			s.tools[own] = ours
		}
		if ours != nil && !theirs.before(ours) {
			if next := ours.replacing(theirs); len(next.Former) > len(ours.Former) {
				ours = &next
				s.tools[own] = ours
				m.unsaved = true
			}
			if _, said := s.said[own]; !said && theirs.Changed != ours.Changed && theirs.Since.Equal(ours.Since) && theirs.Hash == ours.hash() {
				s.mark(own, theirs.Changed)
			}
			continue
		}
		delete(s.said, own)
		replaced = replaced || ours == nil || ours.hash() != theirs.Hash
		if ours != nil && ours.Changed {
			s.changed--
		}
		if theirs.Changed {
			s.changed++
		}
		if ours != nil {
			next := theirs.replacing(ours)
			theirs = &next
		}
		s.tools[own] = theirs
	}
	s.fresh = slices.DeleteFunc(s.fresh, func(own string) bool { return s.tools[own].def == nil })
	return replaced
}

// late reports whether a tool that the store has, not yet as a late one, is late all the
// same: one of ours that is late, or one that is not as in the first list that is known here.
// before is whether there is such a list. Only who waits for new tools goes by it: such a one
// has read the store before.
func (m *Memory) late(ours, theirs *tool, before bool) bool {
	switch {
	case theirs.Accepted || ours != nil && ours.Accepted:
		return false
	case ours == nil:
		return before && m.caution == Always
	case ours.isStored(theirs):
		return ours.Late
	}
	return m.caution == Always && theirs.before(ours)
}

// isStored reports whether stored, which has no def, is the definition of t.
func (t *tool) isStored(stored *tool) bool { return t.sum() == stored.Sum || t.hash() == stored.Hash }

// delay sets Late of a tool.
func (s *server) delay(own string) {
	next := *s.tools[own]
	next.Late = true
	s.tools[own] = &next
}

// before reports whether t counts and other does not, where two processes know
// different definitions: what a person accepted last, else what was seen first.
func (t *tool) before(other *tool) bool {
	if t.Accepted != other.Accepted {
		return t.Accepted
	}
	if t.Accepted {
		return t.Since.After(other.Since)
	}
	return t.Since.Before(other.Since)
}

// Check returns why a stored document can't be read, or nil.
func Check(document []byte) error {
	_, err := readDocument(document, nil)
	return err
}

func readDocument(data []byte, err error) (history, error) {
	var doc history
	if err != nil || data == nil {
		return doc, err
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return doc, text.JSONError(data, err)
	}
	if doc.Version < oldest || doc.Version > version {
		return doc, fmt.Errorf("the document has version %d, want %d to %d", doc.Version, oldest, version)
	}
	for server, tools := range doc.Servers {
		for name, t := range tools {
			if t == nil || t.Hash == "" {
				return doc, fmt.Errorf("tool %q of server %q has no hash", name, server)
			}
			t.Former = t.Former[:min(len(t.Former), maxFormer)]
			t.Late = t.Late && !t.Accepted
		}
	}
	return doc, nil
}

// Save stores what is known, if that has changed, together with what other
// processes have stored meanwhile. It reports whether they know a tool that is not known
// here, or by another definition that counts instead: then all lists must be judged again.
//
// If the store can't be read, Save writes nothing: it would overwrite the history. If
// another call of Save is under way, that one does the work and this one returns at
// once.
func (m *Memory) Save() (changed bool, err error) {
	if m.store != nil {
		m.saving.Do(func() {
			replaced, failed := m.save()
			changed, err = changed || replaced, failed
		})
	}
	return changed, err
}

func (m *Memory) save() (changed bool, err error) {
	claims := m.names.Claims()
	m.mu.Lock()
	due := m.unsaved || len(claims) != m.claims
	m.mu.Unlock()
	if !due {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeguard.MaxWait)
	defer cancel()
	var doc history
	err = storeguard.Update(ctx, m.store, func(data []byte) (_ []byte, err error) {
		var replaced bool
		if doc, replaced, err = m.merged(data, claims); err != nil {
			return nil, err
		}
		changed = changed || replaced // the store may ask again
		return json.Marshal(doc)
	})
	if err == nil && doc.Servers == nil {
		err = errors.New("the store did not call change")
	}
	if err != nil {
		err = fmt.Errorf("storing the known tools: %w", err)
	}
	m.stored(doc, err)
	return changed, err
}

// merged adds what is in the store, and returns all that is known then, with our claims.
func (m *Memory) merged(data []byte, claims []names.Claim) (doc history, changed bool, err error) {
	stored, changed, err := m.add(data, nil)
	if err != nil {
		return doc, false, err
	}
	doc = history{Version: version, Servers: make(map[string]map[string]*tool), Names: names.Merge(stored, claims)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsaved, m.claims = false, len(claims)
	for name, s := range m.servers {
		doc.Servers[name] = maps.Clone(s.tools)
	}
	return doc, changed, nil
}

// stored notes that doc is in the store, or why it is not.
func (m *Memory) stored(doc history, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed = err; err != nil {
		m.unsaved = true
		return
	}
	for name, tools := range doc.Servers {
		s := m.servers[name]
		s.met = true
		maps.DeleteFunc(s.said, func(own string, changed bool) bool { return !changed && s.tools[own] == tools[own] })
		for own, t := range tools {
			if now := s.tools[own]; t.mine && now.Since.Equal(t.Since) {
				next := *now
				next.mine = false
				s.tools[own] = &next
			}
		}
	}
}

// Stored waits until no call of Save is under way, and returns why the last one failed, if
// it did. It must not be called from the store.
func (m *Memory) Stored() error {
	if !m.saving.Wait(storeguard.MaxWait) {
		return fmt.Errorf("storing the known tools has not ended within %v", storeguard.MaxWait)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}
