package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// errNoChange is that a change turned out to be none.
var errNoChange = errors.New("nothing has changed")

// change makes one change to the sources and publishes the catalog that
// follows from it, or nothing if there is an error; [errNoChange] is none.
func (m *Manager) change(f func() error) error {
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return ErrClosed
	}
	if err := f(); err != nil {
		m.mu.Unlock()
		if err == errNoChange {
			return nil
		}
		return err
	}
	prev := m.cur.Load()
	c := m.recipe().newCatalog(prev, m.listings(), m.owners)
	m.cur.Store(c)
	if m.semantic != nil {
		m.semantic.changed(func(run func(context.Context)) { m.starting.Go(func() { run(m.life) }) })
	}
	m.enrichment.changed()
	m.mu.Unlock()

	known := make(map[string]bool, len(prev.problems))
	for _, err := range prev.problems {
		known[err.Error()] = true
	}
	for _, err := range c.problems {
		if text := err.Error(); !known[text] {
			m.opts.Logger.Warn(text)
		}
	}
	m.sync()
	return nil
}

// sync brings all registries in step with what there is now, those of users'
// sessions included.
func (m *Manager) sync() {
	m.mu.Lock()
	attached, users := slices.Clone(m.attached), m.users.list()
	m.mu.Unlock()
	for _, s := range attached {
		s.registrar.Sync()
	}
	for _, u := range users {
		u.forgetSelections()
		u.sync()
	}
}

// recipe returns how the Manager's catalogs are made now. It is called with mu
// held.
func (m *Manager) recipe() *recipe {
	r := &recipe{owner: m.owner, access: m.opts.Access, needs: m.opts.Needs, hints: m.enrichment.hints(), retriever: m.newRetriever}
	if m.system == nil {
		// How a user's tools stand depends on the system's too, and those change
		// without a new catalog of the user's: all of the user's are indexed.
		r.searchable = m.standings
	}
	return r
}

// listings returns what there is to make a catalog of. It is called with mu
// held.
func (m *Manager) listings() []*listing {
	list := make([]*listing, len(m.sources))
	for i, src := range m.sources {
		list[i] = &src.listing
	}
	return list
}

// SetRules puts rules in the place of those there are, for all sessions, or
// none if there is an error, which names the rule. What models were shown
// before stays, until [Session.Compact]; what they may call changes at once.
// They hold for the sessions of users, too.
func (m *Manager) SetRules(rules []Rule) error {
	set, err := newRuleSet(rules)
	if err == nil {
		err = m.change(func() error {
			p := *m.policy.Load()
			p.rules = set
			m.policy.Store(&p)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("mcphybrid: rules: %w", err)
	}
	return nil
}

// SetSkills puts skills in the place of those that the Manager had, in one
// step. The error names each of them that can't be used, and is left out; of
// two of one name the first counts. What a session has shown of its skills
// stays as it was until [Session.Compact]: new ones are appended to it. Users
// see them too.
func (m *Manager) SetSkills(skills []Skill) error {
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: %w", ErrClosed)
	}
	set := m.newSkillSet(skills)
	m.skills.cur.Store(set)
	m.mu.Unlock()
	m.sync()
	return errors.Join(set.problems...)
}

// skillProblems returns what is wrong with the skills: those that were left
// out, and then the tools that they name and no server has. While a server has
// not listed its tools yet, these may be its own.
func (m *Manager) skillProblems() []error {
	v := m.def.view()
	problems := slices.Clone(v.skills.problems)
	m.mu.Lock()
	waiting := slices.ContainsFunc(m.sources, func(src *source) bool {
		return src.server != nil && src.listedAt.IsZero()
	})
	m.mu.Unlock()
	if waiting {
		return problems
	}
	for _, sk := range v.skills.list {
		if _, missing := v.toolsOf(sk); len(missing) > 0 {
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: skill %q names tools that are not there: %s", sk.Name, quoteNames(missing))))
		}
	}
	return problems
}

// Reorder has the tools inline that are used most by now, with [Options.Usage]:
// without a call of it, they are those that were used most when the Manager
// was started. It moves tools in all sessions, so that prompts begin
// differently in new ones. A host calls it seldom, such as once a day. It also
// stores the record, as [Manager.Close] does.
func (m *Manager) Reorder() error {
	if m.uses == nil {
		return nil
	}
	err := m.uses.save(time.Now())
	if err == nil {
		err = m.takeOrder()
	}
	if err != nil {
		return fmt.Errorf("mcphybrid: the record of the tools' use: %w", err)
	}
	return nil
}

// takeOrder makes the order of the most used that of the policy.
func (m *Manager) takeOrder() error {
	order := m.uses.order(time.Now())
	return m.change(func() error {
		p := *m.policy.Load()
		if maps.Equal(p.used, order) {
			return errNoChange
		}
		p.used = order
		m.policy.Store(&p)
		return nil
	})
}

// Accept says that a changed tool is as it should be: it is known by this
// definition from now on, and no longer held back. The tool is given by the names
// of its server and its own; hash is Is of its [ChangedError], so that what is
// accepted is what was looked at.
func (m *Manager) Accept(server, tool, hash string) error {
	err := m.change(func() error {
		i := m.find(server)
		if i < 0 {
			return fmt.Errorf("there is no server %q", server)
		}
		src := m.sources[i]
		j := slices.IndexFunc(src.listed, func(d *definition) bool { return d.name == tool })
		if j < 0 {
			return fmt.Errorf("%w: server %q has no %q", ErrUnknownTool, server, tool)
		}
		d := src.listed[j]
		if d.canonical() != hash {
			return fmt.Errorf("the definition of tool %q of server %q is %s, not %s", tool, server, d.canonical(), hash)
		}
		m.trust.accept(d)
		m.judge(src)
		return nil
	})
	if err != nil {
		return fmt.Errorf("mcphybrid: accept: %w", err)
	}
	m.trust.save()
	return nil
}

// judge sets what of a source's tools may be used. It is called with mu held.
func (m *Manager) judge(src *source) {
	src.defs, src.changed = m.trust.judge(src.name, src.listed)
	for _, change := range src.changed {
		change.Name = m.owners.nameOf(change.def.registered, change.def.server, change.def.name)
	}
}
