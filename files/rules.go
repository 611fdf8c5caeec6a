package files

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

//go:embed rules.example.yaml
var exampleRules []byte

// ExampleRules returns the rules in rules.example.yaml, a file in the folder of
// this package that you can copy and change. Its comments explain each rule.
func ExampleRules() []mcphybrid.Rule {
	list, err := ParseRules(exampleRules, "rules.example.yaml")
	if err != nil {
		panic(err) // there is a test for it
	}
	return list
}

// LoadRules reads a rule file: see [ParseRules] for its format.
func LoadRules(path string) ([]mcphybrid.Rule, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return ParseRules(data, path)
}

// ParseRules reads rules from the content of a file. The file's name says whether
// it is YAML (.yaml, .yml) or JSON (.json); errors quote the name. The YAML is
//
//	rules:
//	  - name: no deleting      # for the fields see mcphybrid.Rule
//	    intent: "*"            # may be left out
//	    priority: 100          # may be left out
//	    patterns: ["*_delete_*", mcp_github__fork]
//	    action: exclude        # or include, or summarize
//
// and the JSON is the same object. The patterns may also stand in an object, as
// match: {patterns: [...]}, and so may the action, as action: {type: exclude}. The
// rules keep the order of the file. A file without rules is "rules: []". YAML may
// use anchors and aliases, but no merge keys.
//
// ParseRules fails on an unknown field, a field given twice, a null, a value of
// the wrong type, a second document, and a rule for which [mcphybrid.Rule.Validate]
// returns an error. It also fails on more than 4 MiB, 10,000 rules or 100,000 patterns,
// and on a name, intent or pattern of more than 1,000 bytes.
//
// It returns either all rules or nil and an error. The error joins one error for
// each of the first 10 problems. Each names the file and, unless the size or the
// encoding is wrong, the line and column, counted from 1. For a rule that is
// where the rule begins.
func ParseRules(data []byte, name string) ([]mcphybrid.Rule, error) {
	root, err := parseRuleTree(data, name)
	if err != nil {
		return nil, text.Bounded(fmt.Errorf("mcphybrid: %s: %w", name, err))
	}
	f := ruleFile{name: name}
	list := f.read(root)
	if f.more > 0 {
		f.problems = append(f.problems, fmt.Errorf("mcphybrid: %s: and %s", name, text.Counted(f.more, "more problem")))
	}
	if f.problems != nil {
		return nil, errors.Join(f.problems...)
	}
	return list, nil
}
