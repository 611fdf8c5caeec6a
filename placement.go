package mcphybrid

import "fmt"

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
