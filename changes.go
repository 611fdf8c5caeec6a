package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// errNoChange says that a change left everything as it was.
var errNoChange = errors.New("nothing has changed")

// change calls f, which changes the sources, and publishes the new catalog. If f
// returns an error, it publishes nothing and returns the error. After errNoChange
// it returns nil.
func (m *Manager) change(f func() error) error {
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
	if m.opts.OnResources != nil && c.shelf != prev.shelf {
		m.starting.Go(m.tellResources)
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
		m.starting.Go(func() { m.tellChanges(fresh) })
	}
	m.mu.Unlock()

	for _, err := range fresh {
		m.opts.Logger.Warn(err.Error())
	}
	m.sync()
	return nil
}

// tellChanges tells the host of the changed definitions among the problems.
func (m *Manager) tellChanges(problems []error) {
	for _, err := range problems {
		if change := new(ChangedError); errors.As(err, &change) {
			m.tellDetached(m.life, Event{Kind: EventChanged, Server: change.Server, Tools: []string{change.Name}, Err: err})
		}
	}
}

// tellResources calls the host's code. No server waits for it, and Close does not.
func (m *Manager) tellResources() {
	m.resourcesTask.Do(func() {
		if m.life.Err() != nil {
			return
		}
		_, _ = foreign.Detached(m.life, "Options.OnResources", func() (struct{}, error) {
			m.opts.OnResources(m.user.id)
			return struct{}{}, nil
		})
	})
}

// embed has the vectors follow the catalog and what servers list. The caller holds
// mu.
func (m *Manager) embed() {
	if m.semantic != nil {
		m.semantic.Changed(func(run func(context.Context)) { m.starting.Go(func() { run(m.life) }) })
	}
}

// listedNames returns the own names of the tools that servers have listed since they
// were connected, by server. A server that the host removed has none.
func (m *Manager) listedNames() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make(map[string][]string)
	for _, name := range m.removed {
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

// sync updates all registries to the current catalog, including those of users'
// sessions.
func (m *Manager) sync() {
	m.mu.Lock()
	attached, users := slices.Clone(m.attached), m.users.list()
	m.mu.Unlock()
	for _, s := range attached {
		s.registrar.sync()
	}
	for _, u := range users {
		u.forgetPartitions()
		u.sync()
	}
}

// nextCatalog returns the catalog of the sources as they are now. The caller holds mu.
func (m *Manager) nextCatalog(prev *catalog) *catalog {
	m.toolsShared = true
	var unlisted []rules.Tool
	if len(m.opts.Needs) > 0 {
		for _, src := range m.sources {
			if src.server != nil && src.listed == nil {
				unlisted = append(unlisted, rules.Tool{Name: src.claim.Start(), Server: src.name})
			}
		}
	}
	return newCatalog(prev, m.owner, m.tools, m.names.Prefixes(), m.lookups.Known(), m.opts.Needs, unlisted, m.indexes)
}

// SetRules replaces the rules of all sessions, including those of users. If a rule
// is malformed, it changes nothing and returns an error that names the rule. It also
// refuses nil, which is what a host has whose rules could not be read: for no rules,
// pass an empty list. After [Manager.Close] it returns [ErrClosed].
//
// What models may call changes at once. What they were shown stays until
// [Session.Compact].
func (m *Manager) SetRules(rules []Rule) error {
	set, err := newRuleSet(rules)
	if rules == nil {
		err = errors.New("nil is no list of rules: an empty list is one without rules")
	}
	if err == nil {
		err = m.change(func() error {
			p := *m.policy.Load()
			p.rules, p.invalid = set, nil
			m.policy.Store(&p)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("mcphybrid: rules: %w", err)
	}
	m.logIdlePatterns()
	return nil
}

// idlePatterns returns an error for each pattern of the options, or of the rules that
// hold now, that matches no tool.
func (m *Manager) idlePatterns() []error {
	if m.system != nil {
		return m.user.access.Idle(m.known(), "UserOptions.Access")
	}
	set := m.policy.Load().rules
	if rules.Access(m.opts.Access).Empty() && len(m.opts.Pins) == 0 && len(set.Rules) == 0 {
		return nil // which most Managers have, and known takes all tools
	}
	k := m.known()
	idle := append(rules.Access(m.opts.Access).Idle(k, "Options.Access"), k.Idle("Options.Pins", m.opts.Pins, rules.Tool.MatchesAny)...)
	for _, r := range set.Rules {
		matches := rules.Tool.MatchesAny
		if r.Action == rules.Exclude {
			matches = rules.Tool.Forbidden
		}
		idle = append(idle, k.Idle(fmt.Sprintf("rule %q", r.Name), r.Patterns, matches)...)
	}
	return idle
}

func (m *Manager) logIdlePatterns() {
	for _, err := range m.idlePatterns() {
		m.opts.Logger.Warn(err.Error())
	}
}

// SetSkills replaces all skills at once, for all sessions, including those of
// users. It skips a skill that is malformed or has the name of an earlier one. The
// error joins one error for each of these, which names the skill. The other skills
// are in use nevertheless. After [Manager.Close] it returns [ErrClosed].
//
// A session that has shown skills to its model appends the new ones. It removes
// the old ones only at [Session.Compact].
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

// skillProblems returns an error for each rejected skill, and one for each skill
// that names missing tools. While a server has not listed its tools yet, it omits
// the latter: the tools may be of that server.
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
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: skill %q names missing tools: %s", sk.Name, text.Names(missing))))
		}
	}
	return problems
}

// Reorder makes the tools inline that are most used by now. Without Reorder, they
// are those that were most used when the Manager started. It needs
// [Options.Usage] and does nothing without. It also stores the record of use, as
// [Manager.Close] does; if that fails, it returns the error and moves no tool.
//
// Reorder moves tools in all sessions, so that the prompts of new sessions begin
// differently and miss the provider's cache. Call it seldom, for example once a
// day.
func (m *Manager) Reorder() error {
	if m.uses == nil {
		return nil
	}
	err := m.uses.Save(time.Now())
	if err == nil {
		err = m.takeOrder()
	}
	return prefixed(err, "the record of use: ")
}

// takeOrder sets the current order of use in the policy.
func (m *Manager) takeOrder() error {
	order := m.uses.Order(time.Now())
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
