package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A policy says how tools stand. It is not changed once it is in use.
type policy struct {
	pins      []string
	rules     *rules.Set
	limit     int            // the largest number of inline tools, pins aside
	allUpTo   int            // up to that many tools are all inline
	maxTokens int            // of the inline tools together, pins aside
	used      map[string]int // by registered name: the place among the most used, from 1

	tokens func(*BridgeTool) int
	count  func(text string) int

	// What the sections may have of tools.
	maxDescription int // characters of a description
	maxListing     int // tokens of the tools' lines
	maxSummary     int // tokens of what there is to search for
}

// A verdict is how a tool stands, and why.
type verdict struct {
	standing standing
	reason   reason
	rule     uint16 // of the policy's, for the reasons that are one
}

// A reason says why a tool stands as it does.
type reason uint8

const (
	reasonDenied     reason = iota // hidden: by an access list
	reasonOverridden               // hidden: a user's own tool has the name
	reasonExcluded                 // hidden: by a rule
	reasonOthers                   // hidden: rules include others
	reasonPin                      // inline
	reasonServer                   // inline: the server says that it is always needed
	reasonUsed                     // inline: it is among the most used
	reasonFits                     // inline: there are few enough, or it is among the first
	reasonUnsearched               // inline: the session has no search
	reasonRule                     // summarized: by a rule
	reasonCount                    // deferred: there are more than MaxInline before it
	reasonTokens                   // deferred: there are too many tokens before it
)

// judge fills in how each tool of s stands, in this order: what the session may
// not use, what rules take away, pins, what rules summarize, and of the rest as
// many as there is room for: first those that their servers want there, then
// the most used, then the first.
func (s *selection) judge() {
	p := s.policy
	seen := s.judgeEach()
	r := room{tools: p.limit, tokens: p.maxTokens}
	if seen <= p.allUpTo {
		r.tools = seen
	}
	searchable := s.rights.mayUse(SearchToolName)
	var waiting []candidate
	wanted := make(map[string]int) // by server: how many tools it may still have there
	for i, c := range s.catalogs {
		for j, t := range c.tools {
			v := &s.verdicts[i][j]
			switch {
			case v.standing == hidden:
				continue
			case v.reason == reasonPin:
				r.take(p.tokens, t)
				continue
			case !searchable:
				v.standing, v.reason = inline, reasonUnsearched
				continue
			case v.standing == summarized:
				continue
			}
			w := candidate{verdict: v, tool: t, used: p.used[t.name]}
			if t.def.always && wanted[t.def.server] < maxAlwaysLoaded {
				wanted[t.def.server]++
				w.always = true
			}
			waiting = append(waiting, w)
		}
	}
	slices.SortStableFunc(waiting, candidate.compare)
	for _, w := range waiting {
		w.verdict.standing, w.verdict.reason = r.admit(p.tokens, w)
	}
	for t, st := range s.each() {
		switch {
		case st == inline:
			s.inline = append(s.inline, t)
		case st.searchable():
			s.deferred++
		}
	}
}

// maxAlwaysLoaded is how many tools of a server come before others because it
// says so.
const maxAlwaysLoaded = 5

// A candidate is a tool for which there may be room.
type candidate struct {
	verdict *verdict
	tool    *BridgeTool
	always  bool // its server wants it inline
	used    int  // place among the most used, from 1; 0 if it is not
}

// compare puts what should rather be inline first.
func (w candidate) compare(other candidate) int {
	order := func(w candidate) int {
		switch {
		case w.always:
			return -1
		case w.used > 0:
			return w.used
		}
		return math.MaxInt
	}
	return cmp.Compare(order(w), order(other))
}

// A room is what is left for inline tools.
type room struct {
	tools  int
	tokens int
	full   bool // of tokens: a tool did not fit
}

func (r *room) take(tokens func(*BridgeTool) int, t *BridgeTool) {
	r.tools--
	if r.tokens < math.MaxInt {
		r.tokens -= tokens(t)
	}
}

// admit takes a tool in if there is room. Behind the first that has too many
// tokens there is none: otherwise more room could mean other tools instead of
// more tools.
func (r *room) admit(tokens func(*BridgeTool) int, w candidate) (standing, reason) {
	switch {
	case r.tools <= 0:
		return deferred, reasonCount
	case r.full || r.tokens < math.MaxInt && tokens(w.tool) > r.tokens:
		r.full = true
		return deferred, reasonTokens
	}
	r.take(tokens, w.tool)
	switch {
	case w.always:
		return inline, reasonServer
	case w.used > 0:
		return inline, reasonUsed
	}
	return inline, reasonFits
}

// judgeEach judges each tool by itself, and returns how many are seen.
func (s *selection) judgeEach() (seen int) {
	p := s.policy
	applies := p.rules.Applying(s.intent)
	included := p.rules.Including(applies)
	s.verdicts = make([][]verdict, len(s.catalogs))
	for i, c := range s.catalogs {
		s.verdicts[i] = make([]verdict, len(c.tools))
		for j, t := range c.tools {
			v := &s.verdicts[i][j]
			switch {
			case !s.rights.permit(t.name):
				v.reason = reasonDenied
			case s.overridden(i, t.name):
				v.reason = reasonOverridden
			default:
				*v = p.judge(t, applies, included)
			}
			if v.standing != hidden {
				seen++
			}
		}
	}
	return seen
}

// judge says how the pins and the rules that apply have t stand: hidden, inline
// as a pin, summarized, or deferred until there is room. With included, there
// are no others than what rules match, and pins.
func (p *policy) judge(t *BridgeTool, applies []bool, included bool) verdict {
	m := p.matchesOf(t)
	v := verdict{standing: deferred}
	if included {
		v = verdict{hidden, reasonOthers, 0}
	}
	decided := false
	for _, rule := range m.rules {
		if !applies[rule] {
			continue
		}
		switch action := p.rules.Rules[rule].Action; {
		case action == rules.Exclude:
			return verdict{hidden, reasonExcluded, rule}
		case decided:
		case action == rules.Include:
			v, decided = verdict{deferred, reasonCount, rule}, true
		case action == rules.Summarize:
			v, decided = verdict{summarized, reasonRule, rule}, true
		}
	}
	if m.pinned {
		return verdict{inline, reasonPin, 0}
	}
	return v
}

// matchesOf returns what matches t. It finds it once for each tool.
func (p *policy) matchesOf(t *BridgeTool) *matched {
	if m := t.matched.Load(); m != nil && m.policy == any(p) {
		return m
	}
	m := &matched{p, nil, rules.MatchAny(p.pins, t.name)}
	if p.rules != nil && len(p.rules.Rules) > 0 {
		m.rules = p.rules.Matches(t.name, t.def.name)
	}
	t.matched.Store(m)
	return m
}

// overridden reports whether a later catalog than the i-th has a tool of that
// name, be it held back.
func (s *selection) overridden(i int, name string) bool {
	for _, c := range s.catalogs[i+1:] {
		if c.tool(name) != nil || c.held[name] != nil {
			return true
		}
	}
	return false
}

// A Placement tells how a tool stands in a session, and why.
type Placement struct {
	Tool *BridgeTool

	// Standing is "inline", "summarized", "deferred", or "hidden": the session
	// may neither find nor call it. A summarized or deferred tool that is
	// active is "active".
	Standing string

	// Rule is the name of the rule that decided it, or "".
	Rule string

	// Reason says in a few words why, for people.
	Reason string
}

// String returns p as a line without its end.
func (p Placement) String() string {
	return fmt.Sprintf("%s %s: %s", p.Standing, p.Tool.name, p.Reason)
}

// Placements returns how each tool of the catalog stands in the session, in
// registration order. It is for the host: a session may not use what is hidden.
func (s *Session) Placements() []Placement {
	v := s.view()
	active := v.activeSet()
	var list []Placement
	for i, c := range v.catalogs {
		for j, t := range c.tools {
			p := v.policy.placement(t, v.verdicts[i][j])
			if active[t] {
				p.Standing = "active"
			}
			list = append(list, p)
		}
	}
	return list
}

var standings = map[standing]string{hidden: "hidden", inline: "inline", summarized: "summarized", deferred: "deferred"}

func (p *policy) placement(t *BridgeTool, v verdict) Placement {
	place := Placement{Tool: t, Standing: standings[v.standing]}
	if v.reason == reasonExcluded || v.reason == reasonRule {
		place.Rule = p.rules.Rules[v.rule].Name
	}
	switch v.reason {
	case reasonDenied:
		place.Reason = "an access list does not permit it"
	case reasonOverridden:
		place.Reason = "the user has a tool of this name"
	case reasonExcluded:
		place.Reason = fmt.Sprintf("rule %q excludes it", place.Rule)
	case reasonOthers:
		place.Reason = "rules include others"
	case reasonPin:
		place.Reason = "it is pinned"
	case reasonServer:
		place.Reason = "its server wants it loaded always"
	case reasonUsed:
		place.Reason = fmt.Sprintf("it is the %d. of the most used", p.used[t.name])
	case reasonFits:
		place.Reason = "there is room"
	case reasonUnsearched:
		place.Reason = "there is no search to find it by"
	case reasonRule:
		place.Reason = fmt.Sprintf("rule %q summarizes it", place.Rule)
	case reasonCount:
		place.Reason = fmt.Sprintf("%d tools before it are inline", p.limit)
	case reasonTokens:
		place.Reason = fmt.Sprintf("the inline tools may have %d tokens, and it or one before it has too many", p.maxTokens)
	}
	return place
}
