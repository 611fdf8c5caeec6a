package mcphybrid

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/scan"
)

// Problems returns the problems that do not keep the Manager from working. First
// come those of tools, in registration order: unusable definitions, changed
// definitions (see [ChangedError]), name collisions (see [CollisionError]) and
// needs that can't be met. Then come those of skills, in the order of the skills, and
// the patterns in the options and rules that match no tool, unless it may be of a
// server that has not listed its tools yet, and the stores of [UsageOptions] and [LearnOptions]
// that are left alone, since another version has written them. It returns nil if there are none.
func (m *Manager) Problems() []error {
	return slices.Concat(m.cur.Load().problems, m.skillProblems(), m.idlePatterns(), m.alienStores())
}

// alienStores returns an error for each store of what was used that has the document of another
// version.
func (m *Manager) alienStores() (problems []error) {
	if m.usageRecord != nil && m.usageRecord.Alien() != nil {
		problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: the record of use: %w", m.usageRecord.Alien())))
	}
	if m.learnRecord != nil && m.learnRecord.Alien() != nil {
		problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: what was learned: %w", m.learnRecord.Alien())))
	}
	return problems
}

// skillProblems returns an error for each rejected skill, and one for each skill
// that names missing tools. While a server has not listed its tools yet, it omits
// the latter: the tools may be of that server.
func (m *Manager) skillProblems() []error {
	v := m.def.view()
	problems := slices.Clone(v.skills.problems)
	if !m.allListed() {
		return problems
	}
	for _, sk := range v.skills.list {
		if sk.served != nil {
			continue // its model is told
		}
		if _, missing := v.toolsOf(sk); len(missing) > 0 {
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: skill %q names missing tools: %s", sk.Name, text.Names(missing))))
		}
	}
	return problems
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
	idle := append(rules.Access(m.opts.Access).Idle(k, "Options.Access"), k.Idle("Options.Pins", m.opts.Pins, rules.Subject.MatchesAny)...)
	for _, r := range set.Rules {
		matches := rules.Subject.MatchesAny
		if r.Action == rules.Exclude {
			matches = rules.Subject.Forbidden
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

// isForeign reports whether word is the registered or own name of tools of other servers, and of
// no tool of this one.
func isForeign(catalogs []*catalog, word, server string) (found bool) {
	for _, c := range catalogs {
		if t := c.tool(word); t != nil {
			if found = true; t.def.Server == server {
				return false
			}
		}
		for _, i := range c.originals()[word] {
			if found = true; c.tools[i].def.Server == server {
				return false
			}
		}
	}
	return found
}

// Marks returns the suspicious text in the definitions of the catalog's tools, by
// registered name, and nothing for a tool without any. What is suspicious in a server's
// instructions stands under the server's name, if it has tools, and what is in the name and the
// description of a server's skill under the name by which it is loaded. It reads each definition
// once: [scan.Definition] says how long a byte takes. A mark is a reason for a person to look,
// not a proof. The Manager does nothing about it.
func (m *Manager) Marks() map[string][]scan.Mark {
	marks := make(map[string][]scan.Mark)
	c := m.cur.Load()
	known := m.catalogs()
	for _, t := range c.tools {
		if found := t.def.marks(func(word string) bool { return isForeign(known, word, t.def.Server) }); len(found) > 0 {
			marks[t.name] = found
		}
	}
	for _, s := range c.list.servers {
		if s == nil {
			continue
		}
		for _, e := range s.entries {
			if e.Kind != resources.Skill {
				continue
			}
			if found := scan.Definition(skillAsDefinition(e.Raw), nil); len(found) > 0 {
				marks[e.Names.Name] = append(marks[e.Names.Name], found...)
			}
		}
		if s.instructions == "" {
			continue
		}
		if found := scan.Definition(instructionsAsDefinition(s.instructions), nil); len(found) > 0 {
			marks[s.server] = append(marks[s.server], found...)
		}
	}
	return marks
}

// mixedPolicies returns an error for each milder policy than own under which what is held back
// here is known, in the order of their names.
func mixedPolicies(own TrustPolicy, problems []error) (mixed []error) {
	held := make(map[TrustPolicy][]string)
	for _, err := range problems {
		if e, ok := err.(*ChangedError); ok && e.By != "" {
			name := errors.New(e.Server + "/" + text.Line(e.Tool, text.MaxName))
			if e.hide != nil {
				name = e.hide(name)
			}
			held[e.By] = append(held[e.By], name.Error())
		}
	}
	for _, by := range slices.Sorted(maps.Keys(held)) {
		mixed = append(mixed, text.Bounded(fmt.Errorf("mcphybrid: TrustStore has what was first seen under the policy %q and waits here, where it is %q: %s; let all that share the store have one policy",
			by, own, text.Names(held[by]))))
	}
	return mixed
}
