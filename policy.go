package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A policy decides the standing of tools: which are inline, summarized, deferred
// or hidden. It is not changed once it is in use.
type policy struct {
	pins      []string
	rules     *rules.Set
	limit     int            // the largest number of inline tools, without pins
	allUpTo   int            // up to this many tools are all inline
	maxTokens int            // of all inline tools together, without pins
	used      map[string]int // rank among the most used, from 1, by registered name

	tokens     func(*BridgeTool) int
	lineTokens func(*BridgeTool, lineForm) int

	// The limits of the sections.
	maxDescription int // characters of a description
	maxListing     int // tokens of the tools' lines
	maxSummary     int // tokens of the text on what search can find
}

// A verdict is the standing of a tool and the reason for it.
type verdict struct {
	standing standing
	reason   reason
	rule     uint16 // index of the policy's rule, if the reason is a rule
}

// A reason is why a tool has its standing.
type reason uint8

const (
	reasonDenied     reason = iota // hidden: an access list does not permit it
	reasonOverridden               // hidden: a user's own tool has the name
	reasonExcluded                 // hidden: a rule excludes it
	reasonOthers                   // hidden: rules include other tools only
	reasonPin                      // inline: it is pinned
	reasonServer                   // inline: its server wants it always loaded
	reasonUsed                     // inline: it is among the most used
	reasonFits                     // inline: there is room for it
	reasonUnsearched               // inline: the session has no search
	reasonRule                     // summarized: a rule says so
	reasonCount                    // deferred: the number of inline tools is used up
	reasonTokens                   // deferred: the tokens of inline tools are used up
)

// judge sets the standing of each tool of s. It takes these steps in order: hide
// what the session may not use and what rules exclude, make pins inline, apply
// the rules that summarize. Then it fills the room for inline tools: first with
// tools that their servers want always loaded, then with the most used, then in
// registration order.
func (s *selection) judge() {
	p := s.policy
	seen := s.judgeEach()
	r := room{tools: p.limit - s.taken.tools, tokens: p.maxTokens}
	if p.maxTokens < math.MaxInt {
		r.tokens -= s.taken.tokens
	}
	if seen+s.taken.tools <= p.allUpTo {
		r.tools = seen
	}
	searchable := s.rights.mayUse(SearchToolName)
	var waiting []candidate
	wanted := make(map[string]int) // by server: how many always-loaded tools it has so far
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

// maxAlwaysLoaded is how many tools a server can move before others by
// [AlwaysLoadKey].
const maxAlwaysLoaded = 5

// A candidate is a tool that becomes inline if there is room.
type candidate struct {
	verdict *verdict
	tool    *BridgeTool
	always  bool // its server wants it inline
	used    int  // rank among the most used, from 1; 0 if it was never used
}

// compare sorts the candidates by who gets room first.
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

// A room is how many inline tools and tokens are still free.
type room struct {
	tools  int
	tokens int
	full   bool // a tool had too many tokens
}

func (r *room) take(tokens func(*BridgeTool) int, t *BridgeTool) {
	r.tools--
	if r.tokens < math.MaxInt {
		r.tokens -= tokens(t)
	}
}

// admit makes a tool inline if there is room. After the first tool with too many
// tokens it admits no other. Otherwise a larger budget could replace tools
// instead of adding some.
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

// judgeEach judges each tool on its own and returns how many the session sees.
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
			case !s.rights.permit(t.def.names()):
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

// judge returns the verdict of the pins and the applying rules on t: hidden, inline
// as a pin, summarized, or deferred until there is room. If included is set, it
// hides tools that no rule matches and that are not pinned.
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

// matchesOf returns the rules and pins that match t. It caches them in t.
func (p *policy) matchesOf(t *BridgeTool) *matched {
	if m := t.matched.Load(); m != nil && m.policy == any(p) {
		return m
	}
	names := t.def.names()
	m := &matched{p, nil, names.MatchesAny(p.pins)}
	if p.rules != nil && len(p.rules.Rules) > 0 {
		m.rules = p.rules.Matches(names)
	}
	t.matched.Store(m)
	return m
}

// overridden reports whether a catalog after the i-th has a tool with that name,
// even if the tool is held back.
func (s *selection) overridden(i int, name string) bool {
	for _, c := range s.catalogs[i+1:] {
		if c.tool(name) != nil || c.held[name] != nil {
			return true
		}
	}
	return false
}

// A Placement is the standing of a tool in a session and the reason for it.
type Placement struct {
	Tool *BridgeTool

	// Standing is one of
	//
	//	inline      the model sees the tool from the start
	//	summarized  the prompt lists its name and description; search finds it
	//	deferred    search finds it
	//	active      it was summarized or deferred and has been activated
	//	hidden      the session can neither find nor call it
	Standing string

	// Rule is the name of the rule that decided, or "" if none did.
	Rule string

	// Reason says in a few words, for people, why.
	Reason string
}

// String returns p as one line, without a line break.
func (p Placement) String() string {
	return fmt.Sprintf("%s %s: %s", p.Standing, p.Tool.name, p.Reason)
}

// Placements returns the standing of each tool of the catalog in the session, in
// registration order. It includes hidden tools, so it is for the host only.
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
		place.Reason = "rules include only other tools"
	case reasonPin:
		place.Reason = "it is pinned"
	case reasonServer:
		place.Reason = "its server wants it always loaded"
	case reasonUsed:
		place.Reason = fmt.Sprintf("it ranks %d among the most used", p.used[t.name])
	case reasonFits:
		place.Reason = "there is room"
	case reasonUnsearched:
		place.Reason = "there is no search to find it by"
	case reasonRule:
		place.Reason = fmt.Sprintf("rule %q summarizes it", place.Rule)
	case reasonCount:
		place.Reason = fmt.Sprintf("%d tools before it are inline", p.limit)
	case reasonTokens:
		place.Reason = fmt.Sprintf("the budget of %d tokens for inline tools ends before it", p.maxTokens)
	}
	return place
}
