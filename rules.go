package mcphybrid

import (
	_ "embed"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Access says by name which tools may be used. Each entry is a name or a
// pattern, in which * stands for any run of characters and ? for one. The zero
// value permits every tool.
type Access struct {
	// Allow, if not empty, lists the only tools that may be used.
	Allow []string

	// Deny lists tools that may not be used, allowed or not.
	Deny []string
}

// permits reports whether a allows name and does not deny it.
func (a Access) permits(name string) bool {
	return !rules.MatchAny(a.Deny, name) && (len(a.Allow) == 0 || rules.MatchAny(a.Allow, name))
}

// empty reports whether a permits everything.
func (a Access) empty() bool { return len(a.Allow) == 0 && len(a.Deny) == 0 }

func (a Access) clone() Access {
	return Access{Allow: slices.Clone(a.Allow), Deny: slices.Clone(a.Deny)}
}

// rights are what a session may use: what all of them permit. None permit
// everything.
type rights []Access

func (r rights) permit(name string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return !a.permits(name) })
}

// and returns r, further restricted to a.
func (r rights) and(a Access) rights {
	if a.empty() {
		return r
	}
	return append(slices.Clip(r), a.clone())
}

// mayUse reports whether r does not deny a meta tool. An allow list is about
// the servers' tools: it need not name the meta tools.
func (r rights) mayUse(meta string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return rules.MatchAny(a.Deny, meta) })
}

// A Rule says what becomes of tools: see [Options.Rules].
type Rule struct {
	Name string `json:"name" yaml:"name"`

	// Intent is a pattern of the intents that the rule is for, as in [Access].
	// If it is empty or "*", the rule is for all, and for sessions without one.
	Intent string `json:"intent" yaml:"intent"`

	// Priority is which rule is named as the reason, and whether a tool is
	// included or summarized, if several match it: that of the highest, of
	// equal ones the first.
	Priority int `json:"priority" yaml:"priority"`

	// Patterns say by registered or own name which tools the rule matches, as in
	// [Access]. Other wildcards than * and ? are refused.
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

// Validate returns what is wrong with r, or nil.
func (r Rule) Validate() error { return r.internal().Validate() }

func (r Rule) internal() rules.Rule {
	return rules.Rule{Name: r.Name, Intent: r.Intent, Priority: r.Priority, Patterns: r.Patterns, Action: rules.Action(r.Action)}
}

// newRuleSet returns the set of rules, or an error that names the first that is
// malformed, from 0, and what is wrong with it.
func newRuleSet(list []Rule) (*rules.Set, error) {
	internal := make([]rules.Rule, len(list))
	for i, r := range list {
		internal[i] = r.internal()
	}
	return rules.NewSet(internal)
}

//go:embed rules.example.yaml
var exampleRules []byte

// ExampleRules returns the rules of rules.example.yaml in the folder of this
// package, a file to begin with: its comments explain each of them.
func ExampleRules() []Rule {
	list, err := ParseRules(exampleRules, "rules.example.yaml")
	if err != nil {
		panic(err) // there is a test for it
	}
	return list
}

// LoadRules reads a rule file: see [ParseRules].
func LoadRules(path string) ([]Rule, error) { return publicRules(rules.Load(path)) }

// ParseRules reads rules from what a file of this name holds: YAML if the name
// ends in .yaml or .yml, JSON if in .json. In YAML it is
//
//	rules:
//	  - name: no deleting      # for the fields see Rule
//	    intent: "*"            # may be left out
//	    priority: 100          # may be left out
//	    patterns: ["*_delete_*", mcp_github__fork]
//	    action: exclude        # or include, or summarize
//
// and in JSON the same object. The rules keep the order of the file; none are
// "rules: []". YAML may have anchors and aliases, but no merge keys.
//
// Refused are other fields, a field given twice, a null or another type, a
// second document, a rule in which [Rule.Validate] finds an error, and more than
// 4 MiB, 10,000 rules, 100,000 patterns or 1,000 bytes of a name, an intent or a
// pattern. If anything is refused, there are no rules, and the error joins one
// for each of the first 10 problems. Each names the file and, but for its size
// and encoding, the line and the column, from 1. A rule is where it begins.
func ParseRules(data []byte, name string) ([]Rule, error) {
	return publicRules(rules.Parse(data, name))
}

func publicRules(list []rules.Rule, err error) ([]Rule, error) {
	if err != nil {
		return nil, err
	}
	var public []Rule
	for _, r := range list {
		public = append(public, Rule{Name: r.Name, Intent: r.Intent, Priority: r.Priority, Patterns: r.Patterns, Action: RuleAction(r.Action)})
	}
	return public, nil
}
