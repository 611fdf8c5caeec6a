package mcphybrid

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/scan"
)

// review decides what of a source may be used. The caller holds mu.
func (m *Manager) review(src *source) {
	src.defs, src.changed = src.listed, nil
	listed := make([]*trust.Definition, len(src.listed))
	for i, d := range src.listed {
		listed[i] = &d.Trusted
	}
	held := m.reviewList(src, src.name, listed, func(i int) ChangedError {
		d := src.listed[i]
		return ChangedError{Kind: "tool", Tool: d.Own, Name: d.registered, Definition: d.Raw, def: d}
	})
	if len(held) > 0 {
		src.defs = nil
		for i, d := range src.listed {
			if held[i] == nil {
				src.defs = append(src.defs, d)
			}
		}
	}
	offered := make([]*trust.Definition, len(src.offers))
	for i, o := range src.offers {
		offered[i] = &o.Trusted
	}
	held = nil
	if len(offered) > 0 || m.opts.Trust == TrustApprove { // under which later ones are not the first
		held = m.reviewList(src, offersOf(src.name), offered, func(i int) ChangedError {
			e := src.offers[i].Entry
			return ChangedError{Kind: e.Kind.String(), Tool: e.ID, Name: e.Names.Name, Definition: e.Raw}
		})
	}
	src.entries = resources.Entries(src.offers, held)
	m.reviewInstructions(src)
	m.putSource(src)
}

// reviewInstructions decides whether the instructions of a source may be shown. The caller
// holds mu.
func (m *Manager) reviewInstructions(src *source) {
	var listed []*trust.Definition
	if src.instructed != "" {
		listed = append(listed, trustedInstructions(src.instructed))
	}
	src.instructions = src.instructed
	if listed == nil && m.opts.Trust != TrustApprove { // under which later ones are not the first
		return
	}
	held := m.reviewList(src, instructionsOf(src.name), listed, func(int) ChangedError {
		return ChangedError{Kind: kindText, Tool: nameInstructions, Definition: instructionsAsDefinition(src.instructed)}
	})
	if held[0] != nil {
		src.instructions = ""
	}
}

// heldBack returns why a tool may not be called by now, or nil: it is held back, or its
// server has listed another definition than d, which was shown, checked and approved.
func (m *Manager) heldBack(src *source, d *definition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range src.changed {
		if e.Held && e.def != nil && e.def.Own == d.Own {
			return e
		}
	}
	for _, now := range src.listed {
		if now.Own == d.Own && now != d && now.Trusted.Hash() != d.Trusted.Hash() {
			return ErrChanged
		}
	}
	return nil
}

// reviewList reports which definitions in a list of src have changed. It returns the
// reports of those that are held back, by their place. name is that of the list in the
// trust store.
func (m *Manager) reviewList(src *source, name string, listed []*trust.Definition, describe func(i int) ChangedError) map[int]error {
	if m.opts.Trust == TrustOff {
		return nil
	}
	held := make(map[int]error)
	for i, v := range m.trust.Judge(name, listed) {
		if v.Finding == trust.Known {
			continue
		}
		e := describe(i)
		e.Server, e.Held, e.Added, e.Since, e.Was, e.hide = src.name, m.opts.Trust.holds(), v.Finding == trust.Added, v.Since, v.Was, src.hide
		e.Is = listed[i].Hash()
		if src.changed = append(src.changed, &e); e.Held {
			held[i] = &e
		}
	}
	return held
}

// Accept accepts the changed or new definition of a tool, a resource, a template or a
// prompt, or the instructions of a server, which are then no longer held back. server and tool are those in its
// [ChangedError]. hash is the Is of that error: if the definition has changed once
// more since, Accept fails. It also fails if there is no such server or tool, and if
// as many tools of the server are remembered as can be: four times
// [ServerLimits.MaxTools], and as much beside tools. If TrustStore can't be written, the
// definition is accepted for as long as the Manager lives, and Accept returns why. It
// waits up to 10 seconds for another goroutine that is storing.
func (m *Manager) Accept(server, tool, hash string) error {
	err := m.change(func() error {
		src := m.sourceNamed(server)
		if src == nil {
			return fmt.Errorf("there is no server %q", server)
		}
		for _, o := range src.offers {
			if o.Entry.ID == tool && o.Trusted.Hash() == hash {
				if !m.trust.Accept(offersOf(server), &o.Trusted) && m.opts.Trust != TrustOff {
					return fmt.Errorf("%q of server %q exceeds the number remembered for a server: raise Limits.MaxTools", tool, server)
				}
				m.review(src)
				return nil
			}
		}
		if given := trustedInstructions(src.instructed); tool == nameInstructions && src.instructed != "" && given.Hash() == hash {
			if !m.trust.Accept(instructionsOf(server), given) && m.opts.Trust != TrustOff {
				return fmt.Errorf("the instructions of server %q exceed the number of servers that are remembered", server)
			}
			m.review(src)
			return nil
		}
		j := slices.IndexFunc(src.listed, func(d *definition) bool { return d.Own == tool })
		if j < 0 {
			return fmt.Errorf("%w: server %q has no tool %q", ErrUnknownTool, server, tool)
		}
		d := src.listed[j]
		if is := d.Trusted.Hash(); is != hash {
			return fmt.Errorf("the definition of tool %q of server %q has hash %s, not %s", tool, server, is, hash)
		}
		if !m.trust.Accept(server, &d.Trusted) && m.opts.Trust != TrustOff {
			return fmt.Errorf("tool %q of server %q exceeds the number of tools remembered for a server: raise Limits.MaxTools", tool, server)
		}
		m.review(src)
		return nil
	})
	if err != nil {
		return prefixed(err, "accept: ")
	}
	m.saveTrust()
	return prefixed(m.trust.Stored(), "accept: ") // another goroutine may have begun before
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

func (m *Manager) reviewAll() error {
	return m.change(func() error {
		for _, src := range m.sources {
			if src.listed != nil || src.offers != nil { // else there is nothing to review
				m.review(src)
			}
		}
		return nil
	})
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

// Marks returns the suspicious text in the definitions of the catalog's tools, by
// registered name, and nothing for a tool without any. What is suspicious in a server's
// instructions stands under the server's name, if it has tools. It reads all definitions:
// [scan.Definition] says how long a byte takes. A mark is a reason for a person to look,
// not a proof. The Manager does nothing about it.
func (m *Manager) Marks() map[string][]scan.Mark {
	marks := make(map[string][]scan.Mark)
	c := m.cur.Load()
	owners := make(map[string][]string) // servers by the registered and own names of their tools
	for _, known := range m.catalogs() {
		for _, t := range known.tools {
			owners[t.name] = append(owners[t.name], t.def.Server)
			owners[t.def.Own] = append(owners[t.def.Own], t.def.Server)
		}
	}
	for _, t := range c.tools {
		foreign := func(word string) bool {
			servers := owners[word]
			return len(servers) > 0 && !slices.Contains(servers, t.def.Server)
		}
		if found := scan.Definition(t.def.Raw, foreign); len(found) > 0 {
			marks[t.name] = found
		}
	}
	for _, s := range c.list.servers {
		if s == nil || s.instructions == "" {
			continue
		}
		if found := scan.Definition(instructionsAsDefinition(s.instructions), nil); len(found) > 0 {
			marks[s.server] = append(marks[s.server], found...)
		}
	}
	return marks
}
