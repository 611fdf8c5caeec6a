package mcphybrid

import (
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Which rules apply to an intent, internal/rules knows; byRules in partitionpolicy.go goes by them.

// A Rule includes, excludes or summarizes tools: see [Options.Rules].
type Rule struct {
	// Name appears in [Placement] and in errors.
	Name string `json:"name" yaml:"name"`

	// Intent says for which intents the rule applies: a name or a pattern as in
	// [Access], of at most 1,000 bytes. If empty or "*", it always applies, even
	// without an intent.
	Intent string `json:"intent" yaml:"intent"`

	// Priority decides between rules that match the same tool: the rule with
	// the highest priority says whether the tool is included or summarized, and
	// is named as the reason. Of rules with equal priority the first decides.
	// [RuleExclude] always wins.
	Priority int `json:"priority" yaml:"priority"`

	// Patterns say which tools the rule matches, as in [Access]. Only the
	// wildcards * and ? are valid.
	Patterns []string `json:"patterns" yaml:"patterns"`

	Action RuleAction `json:"action" yaml:"action"`
}

// A RuleAction is what a [Rule] does with the tools that it matches.
type RuleAction string

const (
	// RuleInclude permits tools. If any such rule applies, the session has only
	// the tools that a rule includes or summarizes, and the pins.
	RuleInclude RuleAction = "include"

	// RuleExclude removes tools, even included and pinned ones.
	RuleExclude RuleAction = "exclude"

	// RuleSummarize defers tools, but lists their names and descriptions in the
	// prompt. No other rule need include them.
	RuleSummarize RuleAction = "summarize"
)

// Validate returns the first mistake in r, or nil.
func (r Rule) Validate() error { return prefixed(r.internal().Validate(), "") }

func (r Rule) internal() rules.Rule {
	return rules.Rule{Name: r.Name, Intent: r.Intent, Priority: r.Priority, Patterns: r.Patterns, Action: rules.Action(r.Action)}
}

// newRuleSet returns the set of rules. The error names the first malformed rule,
// by its index, and says what is wrong with it.
func newRuleSet(list []Rule) (*rules.Set, error) {
	internal := make([]rules.Rule, len(list))
	for i, r := range list {
		internal[i] = r.internal()
	}
	return rules.NewSet(internal)
}
