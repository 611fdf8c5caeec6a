package mcphybrid

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

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
		err = m.publishChange(func() error {
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

// Reorder makes the tools inline that are most used by now. Without Reorder, they
// are those that were most used when the Manager started. It needs
// [Options.Usage] and does nothing without. It also stores the record of use, as
// [Manager.Close] does; if that fails, it returns the error and moves no tool.
//
// Reorder moves tools in all sessions, so that the prompts of new sessions begin
// differently and miss the provider's cache. Call it seldom, for example once a
// day.
func (m *Manager) Reorder() error {
	if m.usageRecord == nil {
		return nil
	}
	err := m.usageRecord.Save(time.Now())
	if err == nil {
		err = m.takeOrder()
	}
	return prefixed(err, "the record of use: ")
}

// takeOrder sets the current order of use in the policy.
func (m *Manager) takeOrder() error {
	order := m.usageRecord.Order(time.Now())
	return m.publishChange(func() error {
		p := *m.policy.Load()
		if maps.Equal(p.popularity, order) {
			return errNoChange
		}
		p.popularity = order
		m.policy.Store(&p)
		return nil
	})
}
