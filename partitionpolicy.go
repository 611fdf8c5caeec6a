package mcphybrid

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A policy is what pins, rules and budgets say of the standing of tools: inline, summarized, deferred
// or hidden. partition.go decides by it. It is not changed once it is in use. Whether a tool may be
// called is asked in call.go (toolToCall) and, of a held-back one, in review.go (mayNotCall).
type policy struct {
	pins                   []string
	rules                  *rules.Set
	invalid                error          // of the rules in the options, in the place of which rules excludes all; or nil
	maxInline              int            // the largest number of inline tools; pins count, and may exceed it
	allInlineUpTo          int            // up to this many tools are all inline
	maxTokens              int            // of all inline tools together, if there are not more than allInlineUpTo; pins count, and may exceed it
	maxTokensWhenDeferring int            // the same if there are more, so that some are deferred
	list                   listLimits     // of a session's list
	popularity             map[string]int // rank among the most used, from 1, by registered name

	tokens     func(*BridgeTool) int
	lineTokens func(*BridgeTool, lineForm) int

	// The limits of the sections.
	listInline bool // inline tools have lines
	maxListing int  // tokens of the tools' lines
}

// matchesOf returns the rules and pins that match t. It caches them in t.
func (p *policy) matchesOf(t *BridgeTool) *matched {
	if m := t.matched.Load(); m != nil && m.policy == any(p) {
		return m
	}
	m := p.match(t.def.subject())
	t.matched.Store(m)
	return m
}

func (p *policy) match(names rules.Subject) *matched {
	m := &matched{p, nil, names.MatchesAny(p.pins)}
	if len(p.rules.Rules) > 0 {
		m.rules = p.rules.Matches(names)
	}
	return m
}

// newPolicy returns the policy for opts. tokens and lineTokens are called with locks
// held.
func newPolicy(opts *Options, tokens func(*BridgeTool) int, lineTokens func(*BridgeTool, lineForm) int) *policy {
	set, err := newRuleSet(opts.Rules)
	if err != nil { // the rules may be there to keep a tool from models: so they get none
		set, _ = rules.NewSet([]rules.Rule{{Name: "malformed rules", Patterns: []string{"*"}, Action: rules.Exclude}})
		err = fmt.Errorf("mcphybrid: Options.Rules: %w", err)
	}
	p := &policy{
		pins: opts.Pins, rules: set, invalid: err, tokens: tokens,
		maxInline: opts.Inline.Max, allInlineUpTo: opts.Inline.Max, maxTokens: opts.Inline.MaxTokens, maxTokensWhenDeferring: opts.Inline.deferring,
		lineTokens: lineTokens, listInline: opts.Prompt.ListInline, maxListing: opts.Prompt.MaxListingTokens,
		list: listLimits{items: opts.List.Max, tokens: opts.List.MaxTokens, itemsEach: opts.List.ServerMax, tokensEach: opts.List.ServerTokens},
	}
	if jit := opts.JustInTime; jit != nil {
		p.maxInline, p.allInlineUpTo = 0, jit.Threshold
	}
	return p
}

// byRules returns the verdict of the pins and of the applying rules on what m matches:
// hidden, inline as a pin, summarized, or deferred until there is room. If included is set,
// it hides a tool that no rule matches and that is not pinned.
func (p *policy) byRules(m *matched, applies []bool, included bool) verdict {
	v := verdict{standing: deferred}
	if included {
		v = verdict{hidden, whyNotIncluded, 0}
	}
	decided := false
	for _, rule := range m.rules {
		if !applies[rule] {
			continue
		}
		switch action := p.rules.Rules[rule].Action; {
		case action == rules.Exclude:
			return verdict{hidden, whyExcluded, rule}
		case decided:
		case action == rules.Include:
			v, decided = verdict{deferred, whyUndecided, rule}, true
		case action == rules.Summarize:
			v, decided = verdict{summarized, whyRule, rule}, true
		}
	}
	if m.pinned {
		return verdict{inline, whyPin, 0}
	}
	return v
}
