package mcphybrid

import "fmt"

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
	tools := 0
	for _, c := range v.catalogs {
		tools += len(c.tools)
	}
	list := make([]Placement, 0, tools)
	for i, c := range v.catalogs {
		var p Placement // that of the tool before, before it was active
		var last verdict
		for j, t := range c.tools {
			of := v.verdicts[i].ofTool(j)
			if v.overflow[t] {
				of = verdict{standing: deferred, why: whyListFull}
				if v.fixed {
					of.why = whyListFixed
				}
			}
			if j == 0 || of != last || of.why == whyDenied || of.why == whyUsed { // two reasons are about the tool itself
				p, last = v.partition.placement(t, of), of
				p.Reason += v.because(t, of)
			}
			p.Tool = t
			list = append(list, p)
			if active[t] {
				list[len(list)-1].Standing = "active"
			}
		}
	}
	return list
}

// because names what makes t hidden, after the reason.
func (p *partition) because(t *BridgeTool, v verdict) string {
	switch v.why {
	case whyDenied:
		return p.rights.Because(t.def.subject())
	case whyNotIncluded:
		return p.policy.rules.Includers(p.applies)
	}
	return ""
}

func (p *partition) placement(t *BridgeTool, v verdict) Placement {
	pol := p.policy
	place := Placement{Tool: t, Standing: v.standing.String()}
	var of any
	switch v.why {
	case whyExcluded, whyRule:
		place.Rule = pol.rules.Rules[v.rule].Name
		of = place.Rule
	case whyUsed:
		of = pol.popularity[t.name]
	case whyCount:
		of = pol.maxInline
	case whyTokens:
		of = p.maxInlineTokens
	}
	place.Reason = v.why.text(of)
	return place
}

// whys are the reasons in words, for people. Some have a place for what [placementReason.text] is given.
var whys = [...]string{
	whyDenied:      "an access list does not permit it",
	whyOverridden:  "its name is that of another tool",
	whyExcluded:    "rule %q excludes it",
	whyNotIncluded: "rules include only other tools",
	whyPin:         "it is pinned",
	whyServer:      "its server wants it always loaded",
	whyUsed:        "it ranks %d among the most used",
	whyFits:        "there is room",
	whyNoSearch:    "there is no search to find it by",
	whyRule:        "rule %q summarizes it",
	whyCount:       "%d tools before it are inline",
	whyTokens:      "the budget of %d tokens for inline tools ends before it",
	whyListFull:    "the tool list has no room for it",
	whyListFixed:   "it came after the tool list was fixed",
}

// text returns the reason in words. of has what they are about: the name of the rule, the
// rank, or the limit.
func (w placementReason) text(of any) string {
	if w == whyCount && of == 1 {
		return "1 tool before it is inline"
	}
	switch w {
	case whyExcluded, whyRule, whyUsed, whyCount, whyTokens:
		return fmt.Sprintf(whys[w], of)
	}
	return whys[w]
}
