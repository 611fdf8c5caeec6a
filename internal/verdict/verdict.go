// Package verdict says how a tool stands for a session and why: what pins and rules
// say of it, and whether there is room to send it from the start. It knows a tool by
// what matches it, and counts tools by a key.
package verdict

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A Standing is what a session may do with a tool.
type Standing uint8

const (
	Hidden     Standing = iota // the session does not know of it
	Inline                     // the model gets its definition from the start
	Summarized                 // deferred, but listed by name and description
	Deferred                   // the model must search for it
)

// Searchable reports whether a search may find the tool.
func (st Standing) Searchable() bool { return st == Summarized || st == Deferred }

func (st Standing) String() string {
	return [...]string{Hidden: "hidden", Inline: "inline", Summarized: "summarized", Deferred: "deferred"}[st]
}

// A Reason is why a tool has its standing.
type Reason uint8

const (
	Denied     Reason = iota // hidden: an access list does not permit it
	Overridden               // hidden: the name is another tool's
	Excluded                 // hidden: a rule excludes it
	Others                   // hidden: rules include other tools only
	Pin                      // inline: it is pinned
	Server                   // inline: its server wants it always loaded
	Used                     // inline: it is among the most used
	Fits                     // inline: there is room for it
	Unsearched               // inline: the session has no search
	Rule                     // summarized: a rule says so
	Count                    // deferred: the number of inline tools is used up
	Tokens                   // deferred: the tokens of inline tools are used up
	List                     // deferred: a session's list has no room
	Waits                    // deferred, until it is decided who gets room
)

// reasons are the reasons in words, for people. Some have a place for what
// [Reason.Text] is given.
var reasons = [...]string{
	Denied:     "an access list does not permit it",
	Overridden: "its name is that of another tool",
	Excluded:   "rule %q excludes it",
	Others:     "rules include only other tools",
	Pin:        "it is pinned",
	Server:     "its server wants it always loaded",
	Used:       "it ranks %d among the most used",
	Fits:       "there is room",
	Unsearched: "there is no search to find it by",
	Rule:       "rule %q summarizes it",
	Count:      "%d tools before it are inline",
	Tokens:     "the budget of %d tokens for inline tools ends before it",
	List:       "the tool list has no room for it",
}

// Text returns the reason in words. of has what they are about: the name of the rule,
// the rank, or the limit.
func (r Reason) Text(of any) string {
	switch r {
	case Excluded, Rule, Used, Count, Tokens:
		return fmt.Sprintf(reasons[r], of)
	}
	return reasons[r]
}

// A Verdict is the standing of a tool and the reason for it.
type Verdict struct {
	Standing Standing
	Reason   Reason
	Rule     uint16 // index of the rule, if the reason is one
}

// All are the verdicts on a list of tools.
type All struct {
	Of   []Verdict // by index of the tool
	Rest Verdict   // on those that follow
}

// At returns the verdict on the i-th tool.
func (all *All) At(i int) Verdict {
	if i < len(all.Of) {
		return all.Of[i]
	}
	return all.Rest
}

// ByRules returns the verdict of a pin and of the applying rules among those that match
// a tool: hidden, inline as a pin, summarized, or deferred until there is room. If
// included is set, it hides a tool that no rule matches and that is not pinned.
func ByRules(set *rules.Set, matching []uint16, pinned bool, applies []bool, included bool) Verdict {
	v := Verdict{Standing: Deferred}
	if included {
		v = Verdict{Hidden, Others, 0}
	}
	decided := false
	for _, rule := range matching {
		if !applies[rule] {
			continue
		}
		switch action := set.Rules[rule].Action; {
		case action == rules.Exclude:
			return Verdict{Hidden, Excluded, rule}
		case decided:
		case action == rules.Include:
			v, decided = Verdict{Deferred, Count, rule}, true
		case action == rules.Summarize:
			v, decided = Verdict{Summarized, Rule, rule}, true
		}
	}
	if pinned {
		return Verdict{Inline, Pin, 0}
	}
	return v
}
