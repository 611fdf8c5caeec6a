package mcphybrid

import (
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
)

// review decides what of a source's list may be used. The caller holds mu, and then calls
// [Manager.stageSource].
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
	others := slices.Concat(src.resources, src.unlisted)
	trusted := make([]*trust.Definition, len(others))
	for i, o := range others {
		trusted[i] = &o.Trusted
	}
	var barred map[int]error
	if len(trusted) > 0 || m.opts.Trust == TrustApprove { // under which later ones are not the first
		barred = m.reviewList(src, resourcesOf(src.name), trusted, func(i int) ChangedError {
			e := others[i].Entry
			return ChangedError{Kind: e.Kind.String(), Tool: e.ID, Name: e.Names.Name, Definition: e.Raw}
		})
	}
	src.entries = resources.Entries(others, barred)
	m.reviewInstructions(src)
}

// reviewInstructions decides whether the instructions of a source may be shown. Nothing is
// remembered of those that are left out: others may share what is known. The caller holds mu.
func (m *Manager) reviewInstructions(src *source) {
	if src.instructions = ""; src.cfg.NoInstructions {
		return
	}
	var listed []*trust.Definition
	if src.rawInstructions != "" {
		listed = append(listed, trustedInstructions(src.rawInstructions))
		src.instructions = src.rawInstructions
	}
	if listed == nil && m.opts.Trust != TrustApprove { // under which later ones are not the first
		return
	}
	held := m.reviewList(src, instructionsOf(src.name), listed, func(int) ChangedError {
		return ChangedError{Kind: kindText, Tool: nameInstructions, Definition: instructionsAsDefinition(src.rawInstructions)}
	})
	if held[0] != nil {
		src.instructions = ""
	}
}

// mayNotCall returns why a tool may not be called by now, or nil: it is held back, or its
// server has listed another definition by now than d. d is what was shown and approved.
func (m *Manager) mayNotCall(src *source, d *definition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range src.changed {
		if e.Quarantined && e.def != nil && e.def.Own == d.Own {
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
		e.Server, e.Quarantined, e.Added, e.Since, e.Was, e.hide = src.name, m.opts.Trust.holds(), v.Finding == trust.Added, v.Since, v.Was, src.hide
		e.By = TrustPolicy(text.Line(v.By, text.MaxName)) // another may have written it
		e.Is = listed[i].Hash()
		if src.changed = append(src.changed, &e); e.Quarantined {
			held[i] = &e
		}
	}
	return held
}

// Accept accepts the changed or new definition of a tool, a resource, a template, a skill or a
// prompt, or the instructions of a server, which are then no longer held back. server and tool are those in its
// [ChangedError]. hash is the Is of that error: if the definition has changed once
// more since, Accept fails. It also fails if there is no such server or tool, and if
// as many tools of the server are remembered as can be: four times
// [config.Limits.MaxTools], and as much beside tools. If TrustStore can't be written, the
// definition is accepted for as long as the Manager lives, and Accept returns why. It
// waits up to 10 seconds for another goroutine that is storing.
func (m *Manager) Accept(server, tool, hash string) error {
	err := m.publishChange(func() error {
		src := m.sourceNamed(server)
		if src == nil {
			return fmt.Errorf("there is no server %q", server)
		}
		if err := m.accept(src, tool, hash); err != nil {
			return err
		}
		m.review(src)
		m.stageSource(src)
		return nil
	})
	if err != nil {
		return prefixed(err, "accept: ")
	}
	m.saveTrust()
	return prefixed(m.trust.Stored(), "accept: ") // another goroutine may have begun before
}

// accept has the trusted definitions take one that src has listed. The caller holds mu.
func (m *Manager) accept(src *source, tool, hash string) error {
	off := m.opts.Trust == TrustOff
	for _, o := range slices.Concat(src.resources, src.unlisted) {
		if o.Entry.ID == tool && o.Trusted.Hash() == hash {
			if !m.trust.Accept(resourcesOf(src.name), &o.Trusted) && !off {
				return fmt.Errorf("%q of server %q exceeds the number remembered for a server: raise Limits.MaxTools", tool, src.name)
			}
			return nil
		}
	}
	if given := trustedInstructions(src.rawInstructions); tool == nameInstructions && src.rawInstructions != "" && given.Hash() == hash {
		if !m.trust.Accept(instructionsOf(src.name), given) && !off {
			return fmt.Errorf("the instructions of server %q exceed the number of servers that are remembered", src.name)
		}
		return nil
	}
	i := slices.IndexFunc(src.listed, func(d *definition) bool { return d.Own == tool })
	if i < 0 {
		return fmt.Errorf("%w: server %q has no tool %q", ErrUnknownTool, src.name, tool)
	}
	d := src.listed[i]
	if is := d.Trusted.Hash(); is != hash {
		return fmt.Errorf("the definition of tool %q of server %q has hash %s, not %s", tool, src.name, is, hash)
	}
	if !m.trust.Accept(src.name, &d.Trusted) && !off {
		return fmt.Errorf("tool %q of server %q exceeds the number of tools remembered for a server: raise Limits.MaxTools", tool, src.name)
	}
	return nil
}

func (m *Manager) reviewAll() error {
	return m.publishChange(func() error {
		for _, src := range m.sources {
			if src.listed != nil || src.resources != nil { // else there is nothing to review
				m.review(src)
				m.stageSource(src)
			}
		}
		return nil
	})
}
