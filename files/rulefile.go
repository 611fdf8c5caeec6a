package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"go.yaml.in/yaml/v4"
)

// Bounds of a rule file, besides rules.MaxRules. The size of the file does not bound
// the number of patterns, because a YAML alias can repeat a list.
const (
	maxFileBytes    = 4 << 20
	maxRulePatterns = 100_000         // of all rules
	maxRuleText     = rules.MaxIntent // bytes of a name, an intent or a pattern
	maxRuleProblems = 10              // listed in an error
)

// readFile returns at most one byte more than a file may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is already named
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return data, nil
}

// A ruleFile turns a document into rules and collects its problems.
type ruleFile struct {
	name     string
	patterns int // number of patterns so far
	problems []error
	more     int // number of further problems
}

func (f *ruleFile) problem(n *yaml.Node, format string, args ...any) {
	if len(f.problems) == maxRuleProblems {
		f.more++
		return
	}
	args = append([]any{f.name, n.Line, n.Column}, args...)
	f.problems = append(f.problems, text.Bounded(fmt.Errorf("mcphybrid: %s: line %d, column %d: "+format, args...)))
}

func (f *ruleFile) read(root *yaml.Node) []mcphybrid.Rule {
	list, given := []mcphybrid.Rule{}, false
	f.object(root, "the file", "rules", func(field string, v *yaml.Node) bool {
		if field != "rules" {
			return false
		}
		given = true
		for i, e := range f.list(field, v) {
			if i == rules.MaxRules {
				f.problem(e, "there are more than %d rules", rules.MaxRules)
				break
			}
			r := f.rule(e)
			list = append(list, mcphybrid.Rule{Name: r.Name, Intent: r.Intent, Priority: r.Priority, Patterns: r.Patterns, Action: mcphybrid.RuleAction(r.Action)})
		}
		return true
	})
	if !given && f.problems == nil {
		f.problem(root, `there is no "rules"`)
	}
	return list
}

func (f *ruleFile) rule(n *yaml.Node) (r rules.Rule) {
	problems := len(f.problems) + f.more
	f.object(n, "a rule", "name, intent, priority, patterns, match or action", func(field string, v *yaml.Node) bool {
		switch field {
		case "name":
			r.Name = f.text(field, v)
		case "intent":
			r.Intent = f.text(field, v)
		case "priority":
			r.Priority = f.integer(field, v)
		case "patterns":
			f.addPatterns(&r, v)
		case "match":
			f.object(v, `"match"`, "patterns", func(field string, v *yaml.Node) bool {
				if field != "patterns" {
					return false
				}
				f.addPatterns(&r, v)
				return true
			})
		case "action":
			if resolved(v).Kind != yaml.MappingNode {
				r.Action = rules.Action(f.text(field, v))
				break
			}
			f.object(v, `"action"`, "type", func(field string, v *yaml.Node) bool {
				if field != "type" {
					return false
				}
				r.Action = rules.Action(f.text(field, v))
				return true
			})
		default:
			return false
		}
		return true
	})
	if len(f.problems)+f.more > problems {
		return r // Validate would report refused fields again as missing
	}
	if err := r.Validate(); err != nil {
		f.problem(n, "rule %q: %w", r.Name, err)
	}
	return r
}

func (f *ruleFile) addPatterns(r *rules.Rule, list *yaml.Node) {
	if r.Patterns != nil {
		f.problem(list, "the patterns are given twice")
	}
	for i, e := range f.list("patterns", list) {
		if f.patterns++; f.patterns > maxRulePatterns {
			f.problem(e, "there are more than %d patterns", maxRulePatterns)
			break
		}
		r.Patterns = append(r.Patterns, f.text(fmt.Sprintf("patterns[%d]", i), e))
	}
}

// object calls set with each field of an object and its value. It reports the
// fields that set does not know. known lists the known fields for the message.
func (f *ruleFile) object(n *yaml.Node, what, known string, set func(field string, v *yaml.Node) bool) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		f.problem(n, "%s is %s, want an object", what, kindOfNode(n))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := resolved(n.Content[i])
		switch {
		case k.Kind != yaml.ScalarNode:
			f.problem(k, "the name of a field is %s, want %s", kindOfNode(k), known)
		case seen[k.Value]:
			f.problem(n.Content[i], "%q is given twice", k.Value)
		case !set(k.Value, n.Content[i+1]):
			f.problem(n.Content[i], "there is no field %q, want %s", k.Value, known)
		}
		seen[k.Value] = true
	}
}

func (f *ruleFile) list(field string, n *yaml.Node) []*yaml.Node {
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		f.problem(n, "%q is %s, want a list", field, kindOfNode(n))
		return nil
	}
	return n.Content
}

func (f *ruleFile) text(field string, n *yaml.Node) string {
	n = resolved(n)
	switch kind := kindOfNode(n); {
	case kind == "a string" && len(n.Value) > maxRuleText:
		f.problem(n, "%q has %d bytes, more than the limit of %d", field, len(n.Value), maxRuleText)
	case kind == "a string":
		return n.Value
	case n.Kind == yaml.ScalarNode && kind != "null":
		f.problem(n, "%q is %s, want a string: put it in quotes", field, kind)
	default:
		f.problem(n, "%q is %s, want a string", field, kind)
	}
	return ""
}

func (f *ruleFile) integer(field string, n *yaml.Node) (i int) {
	n = resolved(n)
	if kind := kindOfNode(n); kind != "an integer" {
		f.problem(n, "%q is %s, want an integer", field, kind)
	} else if n.Decode(&i) != nil {
		f.problem(n, "%q is out of range", field)
	}
	return i
}

// resolved returns n, or the node that it is an alias of. An alias can contain
// itself, but the reader stops at the fixed depth of a rule file.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func kindOfNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!merge":
		return "a string"
	case "!!int":
		return "an integer"
	case "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "null"
	case "!!timestamp":
		return "a date"
	default:
		return fmt.Sprintf("of the type %q", tag)
	}
}
