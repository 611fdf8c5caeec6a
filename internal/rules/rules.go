// Package rules decides by name which tools a session gets. It matches name
// patterns and holds rules per intent. It knows tools only by their names.
package rules

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
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
	if len(r.Intent) > MaxIntent {
		return fmt.Errorf("the intent has %d bytes, more than the limit of %d", len(r.Intent), MaxIntent)
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

// MaxIntent is the greatest length, in bytes, of an intent.
const MaxIntent = 1000

// CutIntent returns the beginning of intent, as long as an intent may be. It splits
// no code point.
func CutIntent(intent string) string {
	n := min(len(intent), MaxIntent)
	for n < len(intent) && n > 0 && !utf8.RuneStart(intent[n]) {
		n--
	}
	return intent[:n]
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
	Rules  []Rule // by descending priority
	tables [forms]table
}

// Includers names the rules that include tools, of those that apply.
func (s *Set) Includers(applies []bool) string {
	names := ":"
	for i, r := range s.Rules {
		if applies[i] && r.Action == Include {
			names += fmt.Sprintf(" %q", r.Name)
		}
	}
	return names
}

// A table finds the patterns that match a name.
type table struct {
	exact    map[string][]uint16
	prefixes map[string][]uint16
	lengths  []int // lengths of prefixes, ascending
	globs    []glob
	byBytes  map[three][]int32 // indexes in globs, by bytes that a name must have
	short    []int32           // the other globs
}

// Three bytes in a row.
type three [3]byte

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
	s := new(Set)
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rule %d %q: %w", i, r.Name, err)
		}
		r.Patterns = slices.Clone(r.Patterns)
		s.Rules = append(s.Rules, r)
	}
	sort.SliceStable(s.Rules, func(i, j int) bool { return s.Rules[i].Priority > s.Rules[j].Priority })
	for i, r := range s.Rules {
		for _, p := range r.Patterns {
			form := formOf(p)
			s.tables[form].add(uint16(i), p)
			if form == formPath {
				s.tables[formURI].add(uint16(i), strings.ToLower(p))
			}
		}
	}
	for i := range s.tables {
		tb := &s.tables[i]
		tb.sortGlobs()
		for p := range tb.prefixes {
			tb.lengths = append(tb.lengths, len(p))
		}
		slices.Sort(tb.lengths)
		tb.lengths = slices.Compact(tb.lengths)
	}
	return s, nil
}

func (tb *table) add(rule uint16, pattern string) {
	before, prefix := strings.CutSuffix(pattern, "*")
	switch {
	case !strings.ContainsAny(pattern, "*?"):
		if tb.exact == nil {
			tb.exact = make(map[string][]uint16)
		}
		tb.exact[pattern] = append(tb.exact[pattern], rule)
	case prefix && !strings.ContainsAny(before, "*?"):
		if tb.prefixes == nil {
			tb.prefixes = make(map[string][]uint16)
		}
		tb.prefixes[before] = append(tb.prefixes[before], rule)
	case !strings.Contains(pattern, "?"):
		tb.globs = append(tb.globs, glob{pattern, strings.Split(pattern, "*"), rule})
	default:
		tb.globs = append(tb.globs, glob{pattern, nil, rule})
	}
}

// appendMatches appends the rules of the patterns that match name, some more than once.
func (tb *table) appendMatches(list []uint16, name string) []uint16 {
	list = append(list, tb.exact[name]...)
	for _, n := range tb.lengths {
		if n > len(name) {
			break
		}
		list = append(list, tb.prefixes[name[:n]]...)
	}
	list = tb.appendGlobs(list, tb.short, name)
	if len(tb.byBytes) > 0 {
		for i := range len(name) - len(three{}) + 1 {
			list = tb.appendGlobs(list, tb.byBytes[three([]byte(name[i:i+len(three{})]))], name)
		}
	}
	return list
}

func (tb *table) appendGlobs(list []uint16, among []int32, name string) []uint16 {
	for _, i := range among {
		if tb.globs[i].match(name) {
			list = append(list, tb.globs[i].rule)
		}
	}
	return list
}

// sortGlobs files each glob under three bytes of its pattern, those that fewest others have,
// so that a name is matched with few globs.
func (tb *table) sortGlobs() {
	for i, g := range tb.globs {
		var under three
		most := math.MaxInt
		for _, piece := range strings.FieldsFunc(g.pattern, isWildcard) {
			for at := range len(piece) - len(under) + 1 {
				if t := three([]byte(piece[at : at+len(under)])); len(tb.byBytes[t]) < most {
					under, most = t, len(tb.byBytes[t])
				}
			}
		}
		if most == math.MaxInt {
			tb.short = append(tb.short, int32(i))
			continue
		}
		if tb.byBytes == nil {
			tb.byBytes = make(map[three][]int32)
		}
		tb.byBytes[under] = append(tb.byBytes[under], int32(i))
	}
}

func isWildcard(r rune) bool { return r == '*' || r == '?' }

// empty reports whether tb has no pattern.
func (tb *table) empty() bool { return tb.exact == nil && tb.prefixes == nil && tb.globs == nil }

// Matches returns the indexes in s.Rules of the rules that match t, ascending,
// each once. An [Exclude] rule also matches a tool as [Tool.Forbidden] does.
func (s *Set) Matches(t Subject) (list []uint16) {
	if t.Wanted != "" || t.Forms != nil {
		for i := range s.tables {
			list = s.tables[i].appendMatches(list, t.Wanted)
		}
		for _, form := range t.Forms {
			about := t
			about.URI = form
			list = s.appendURI(list, about)
		}
		list = slices.DeleteFunc(list, func(rule uint16) bool { return s.Rules[rule].Action != Exclude })
	}
	list = s.tables[formName].appendMatches(list, t.Name)
	list = s.tables[formAny].appendMatches(list, t.Name)
	list = s.tables[formAny].appendMatches(list, t.Own)
	if !s.tables[formPath].empty() {
		list = s.tables[formPath].appendMatches(list, t.path())
		if t.URI != "" {
			list = s.appendURI(list, t)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return slices.Compact(list)
}

// appendURI appends the rules that match the URI of t. In lower case, a pattern matches
// at least what it matches as it is.
func (s *Set) appendURI(list []uint16, t Subject) []uint16 {
	for _, rule := range s.tables[formURI].appendMatches(nil, strings.ToLower(t.Server+"/"+t.URI)) {
		if slices.ContainsFunc(s.Rules[rule].Patterns, func(p string) bool {
			return formOf(p) == formPath && t.matchesURI(p, t.Server+"/")
		}) {
			list = append(list, rule)
		}
	}
	return list
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
