// Package rules decides by name which tools a session gets. It matches name
// patterns, holds rules per intent and reads rule files. It knows tools only by
// their names.
package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Rule applies an action to the tools whose names match one of its patterns,
// in sessions whose intent matches Intent.
type Rule struct {
	Name     string
	Intent   string // a pattern; "" and "*" match every session
	Priority int
	Patterns []string // at least one; see [Match]
	Action   Action
}

// An Action says how a rule treats the tools that it matches.
type Action string

// The actions of a rule.
const (
	Include   Action = "include"
	Exclude   Action = "exclude"
	Summarize Action = "summarize"
)

// MaxRules is the greatest number of rules in a [Set], which numbers them with 16
// bits.
const MaxRules = 10_000

// Validate returns an error if r lacks a name, a pattern or a known action, or
// has a malformed pattern.
func (r Rule) Validate() error {
	if r.Name == "" {
		return fmt.Errorf("the name is missing")
	}
	if err := validPattern(r.Intent); err != nil {
		return fmt.Errorf("the intent: %w", err)
	}
	if len(r.Patterns) == 0 {
		return fmt.Errorf("there are no patterns")
	}
	for i, p := range r.Patterns {
		if p == "" {
			return fmt.Errorf("pattern %d is empty", i)
		}
		if err := validPattern(p); err != nil {
			return fmt.Errorf("pattern %d: %w", i, err)
		}
	}
	switch r.Action {
	case Include, Exclude, Summarize:
		return nil
	case "":
		return fmt.Errorf("the action is missing: it must be %q, %q or %q", Include, Exclude, Summarize)
	}
	return fmt.Errorf("the action is %q, must be %q, %q or %q", r.Action, Include, Exclude, Summarize)
}

// validPattern returns an error if pattern has a character that looks like a
// wildcard other than * and ?. Such a pattern would silently match nothing.
func validPattern(pattern string) error {
	if i := strings.IndexAny(pattern, `[]\\`); i >= 0 {
		return fmt.Errorf("%q has a %q, which is no wildcard: * and ? are", pattern, pattern[i])
	}
	return nil
}

// A Set is an immutable, compiled list of rules.
type Set struct {
	Rules    []Rule // by descending priority
	exact    map[string][]uint16
	prefixes map[string][]uint16
	lengths  []int // lengths of prefixes, ascending
	globs    []glob
}

// A glob is a pattern that is neither a plain name nor a prefix followed by *.
type glob struct {
	pattern string
	pieces  []string // the texts between stars; nil if there is a ?
	rule    uint16
}

// NewSet compiles rules. It sorts them by descending priority and keeps the order
// of equal ones. An error names the first malformed rule by its index, from 0.
func NewSet(rules []Rule) (*Set, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("there are %d rules, more than the limit of %d", len(rules), MaxRules)
	}
	s := &Set{exact: make(map[string][]uint16), prefixes: make(map[string][]uint16)}
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rule %d %q: %w", i, r.Name, err)
		}
		r.Patterns = slices.Clone(r.Patterns)
		s.Rules = append(s.Rules, r)
	}
	slices.SortStableFunc(s.Rules, func(a, b Rule) int { return cmp.Compare(b.Priority, a.Priority) })
	for i, r := range s.Rules {
		for _, p := range r.Patterns {
			s.add(uint16(i), p)
		}
	}
	for p := range s.prefixes {
		s.lengths = append(s.lengths, len(p))
	}
	slices.Sort(s.lengths)
	s.lengths = slices.Compact(s.lengths)
	return s, nil
}

func (s *Set) add(rule uint16, pattern string) {
	before, prefix := strings.CutSuffix(pattern, "*")
	switch {
	case !strings.ContainsAny(pattern, "*?"):
		s.exact[pattern] = append(s.exact[pattern], rule)
	case prefix && !strings.ContainsAny(before, "*?"):
		s.prefixes[before] = append(s.prefixes[before], rule)
	case !strings.Contains(pattern, "?"):
		s.globs = append(s.globs, glob{pattern, strings.Split(pattern, "*"), rule})
	default:
		s.globs = append(s.globs, glob{pattern, nil, rule})
	}
}

// Matches returns the indexes in s.Rules of the rules that match one of names,
// ascending, each once.
func (s *Set) Matches(names ...string) (list []uint16) {
	for _, name := range names {
		list = append(list, s.exact[name]...)
		for _, n := range s.lengths {
			if n > len(name) {
				break
			}
			list = append(list, s.prefixes[name[:n]]...)
		}
		for i := range s.globs {
			if s.globs[i].match(name) {
				list = append(list, s.globs[i].rule)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (g *glob) match(name string) bool {
	if g.pieces == nil {
		return Match(g.pattern, name)
	}
	// The pieces between the stars must follow in order.
	first, last := g.pieces[0], g.pieces[len(g.pieces)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, piece := range g.pieces[1 : len(g.pieces)-1] {
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name = name[i+len(piece):]
	}
	return true
}

// Applying returns for each rule in s.Rules whether it applies to intent.
func (s *Set) Applying(intent string) []bool {
	applies := make([]bool, len(s.Rules))
	for i, r := range s.Rules {
		applies[i] = r.Intent == "" || r.Intent == "*"
		if !applies[i] && intent != "" {
			applies[i] = Match(r.Intent, intent)
		}
	}
	return applies
}

// Including reports whether one of the rules that apply is an [Include] rule.
// applies is a result of [Set.Applying].
func (s *Set) Including(applies []bool) bool {
	for i, r := range s.Rules {
		if applies[i] && r.Action == Include {
			return true
		}
	}
	return false
}
