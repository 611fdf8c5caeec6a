package mcphybrid

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Rule says what becomes of tools: see [Options.Rules].
type Rule struct {
	Name string `json:"name" yaml:"name"`

	// Intent is a pattern of intents that the rule is for, as in [path.Match].
	// If it is empty or "*", the rule is for all, and for sessions without one.
	Intent string `json:"intent" yaml:"intent"`

	// Priority is which rule is named as the reason, and whether a tool is
	// included or summarized, if several match it: that of the highest, of
	// equal ones the first.
	Priority int `json:"priority" yaml:"priority"`

	// Patterns say by registered or own name which tools the rule matches: as
	// in [path.Match], and one that ends in * also those that begin with what
	// stands before it.
	Patterns []string `json:"patterns" yaml:"patterns"`

	Action RuleAction `json:"action" yaml:"action"`
}

// A RuleAction is what a [Rule] does with the tools that it matches.
type RuleAction string

const (
	// RuleInclude permits tools. Once one such rule is for the intent, there are
	// no others than those that it and its like match, and pins.
	RuleInclude RuleAction = "include"

	// RuleExclude takes tools away, be they included or pinned.
	RuleExclude RuleAction = "exclude"

	// RuleSummarize defers tools, but lists them by name and description. A tool
	// that it matches need not be included.
	RuleSummarize RuleAction = "summarize"
)

// maxRules bounds a rule set: a verdict has two bytes for its rule.
const maxRules = 10_000

// Validate returns what is wrong with r, or nil.
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
	case RuleInclude, RuleExclude, RuleSummarize:
		return nil
	case "":
		return fmt.Errorf("the action is missing: it must be %q, %q or %q", RuleInclude, RuleExclude, RuleSummarize)
	}
	return fmt.Errorf("the action is %q, must be %q, %q or %q", r.Action, RuleInclude, RuleExclude, RuleSummarize)
}

func validPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%q is malformed", pattern)
	}
	return nil
}

// A ruleSet is rules, ready to be matched. It is not changed.
type ruleSet struct {
	rules    []Rule // by descending priority
	exact    map[string][]uint16
	prefixes map[string][]uint16
	lengths  []int // of prefixes, ascending
	globs    []ruleGlob
}

// A ruleGlob is a pattern that is neither a name nor the beginning of one.
type ruleGlob struct {
	pattern string
	pieces  []string // what stands between stars, if there is nothing else; or nil
	rule    uint16
}

// newRuleSet returns the set of rules, or an error that names the first that is
// malformed, from 0, and what is wrong with it.
func newRuleSet(rules []Rule) (*ruleSet, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("there are %d rules, more than the limit of %d", len(rules), maxRules)
	}
	s := &ruleSet{exact: make(map[string][]uint16), prefixes: make(map[string][]uint16)}
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rule %d %q: %w", i, r.Name, err)
		}
		r.Patterns = slices.Clone(r.Patterns)
		s.rules = append(s.rules, r)
	}
	slices.SortStableFunc(s.rules, func(a, b Rule) int { return cmp.Compare(b.Priority, a.Priority) })
	for i, r := range s.rules {
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

func (s *ruleSet) add(rule uint16, pattern string) {
	before, prefix := strings.CutSuffix(pattern, "*")
	if prefix {
		s.prefixes[before] = append(s.prefixes[before], rule)
	}
	switch {
	case !strings.ContainsAny(pattern, `*?[\`):
		s.exact[pattern] = append(s.exact[pattern], rule)
	case prefix && !strings.ContainsAny(before, `*?[\`):
		// The beginning is all there is to it.
	case !strings.ContainsAny(pattern, `?[\`):
		s.globs = append(s.globs, ruleGlob{pattern, strings.Split(pattern, "*"), rule})
	default:
		s.globs = append(s.globs, ruleGlob{pattern, nil, rule})
	}
}

// matches returns the rules that match a tool of these names, ascending.
func (s *ruleSet) matches(names ...string) (list []uint16) {
	for _, name := range names {
		list = append(list, s.exact[name]...)
		for _, n := range s.lengths {
			if n > len(name) {
				break
			}
			list = append(list, s.prefixes[name[:n]]...)
		}
		slash := strings.IndexByte(name, '/') >= 0
		for i := range s.globs {
			if s.globs[i].match(name, slash) {
				list = append(list, s.globs[i].rule)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (g *ruleGlob) match(name string, slash bool) bool {
	if g.pieces == nil || slash {
		ok, _ := path.Match(g.pattern, name)
		return ok
	}
	// Without a slash a star stands for anything: what is between them has to
	// follow in order.
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

// applying returns of each rule whether it is for an intent.
func (s *ruleSet) applying(intent string) []bool {
	applies := make([]bool, len(s.rules))
	for i, r := range s.rules {
		applies[i] = r.Intent == "" || r.Intent == "*"
		if !applies[i] && intent != "" {
			applies[i], _ = path.Match(r.Intent, intent)
		}
	}
	return applies
}

// including reports whether one of the rules that apply includes tools.
func (s *ruleSet) including(applies []bool) bool {
	for i, r := range s.rules {
		if applies[i] && r.Action == RuleInclude {
			return true
		}
	}
	return false
}
