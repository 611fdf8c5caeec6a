package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// newRuleSet returns the set that a Manager makes of the rules.
func newRuleSet(list []mcphybrid.Rule) (*rules.Set, error) {
	internal := make([]rules.Rule, len(list))
	for i, r := range list {
		internal[i] = rules.Rule{Name: r.Name, Intent: r.Intent, Priority: r.Priority, Patterns: r.Patterns, Action: rules.Action(r.Action)}
	}
	return rules.NewSet(internal)
}

func TestSpecE5RulesFromFiles(t *testing.T) {
	t.Parallel()
	want := []mcphybrid.Rule{
		{Name: "no deleting", Intent: "*", Priority: 100, Patterns: []string{"*_delete_*", "drop"}, Action: mcphybrid.RuleExclude},
		{Name: "größer", Priority: -3, Patterns: []string{"mcp_s__*"}, Action: mcphybrid.RuleSummarize},
		{Name: "", Intent: "work_?", Patterns: []string{"*_delete_*", "drop"}, Action: mcphybrid.RuleInclude},
	}
	want[2].Name = "third"
	files := map[string]string{
		"rules.yaml": `# comment
rules:
  - name: no deleting
    intent: "*"
    priority: 100
    patterns: &deleting ["*_delete_*", drop]
    action: exclude
  - {name: größer, priority: -3, patterns: [mcp_s__*], action: summarize}
  - name: third
    intent: work_?
    patterns: *deleting
    action: include
`,
		"rules.json": `{"rules": [
	{"name": "no deleting", "intent": "*", "priority": 100, "patterns": ["*_delete_*", "drop"], "action": "exclude"},
	{"name": "gr\u00f6\u00dfer", "priority": -3, "patterns": ["mcp_s__*"], "action": "summarize"},
	{"action": "include", "patterns": ["*_delete_*", "drop"], "intent": "work_?", "name": "third"}
]}`,
	}
	files["nested.yaml"] = `rules:
- {name: no deleting, intent: "*", priority: 100, match: &m {patterns: ["*_delete_*", drop]}, action: {type: exclude}}
- {name: größer, priority: -3, match: {patterns: [mcp_s__*]}, action: summarize}
- {name: third, intent: work_?, match: *m, action: {type: include}}
`
	files["nested.json"] = `{"rules": [
	{"name": "no deleting", "intent": "*", "priority": 100, "match": {"patterns": ["*_delete_*", "drop"]}, "action": {"type": "exclude"}},
	{"name": "größer", "priority": -3, "patterns": ["mcp_s__*"], "action": {"type": "summarize"}},
	{"name": "third", "intent": "work_?", "match": {"patterns": ["*_delete_*", "drop"]}, "action": "include"}
]}`
	files["RULES.YML"] = "\ufeff" + files["rules.yaml"]
	files["bom.JSON"] = "\ufeff" + files["rules.json"]
	for name, text := range files {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		rules, err := LoadRules(path)
		require.NoError(t, err, name)
		assert.Equal(t, want, rules, name)
	}
	for _, name := range []string{"r.yaml", "r.json"} {
		rules, err := ParseRules([]byte(`{"rules": []}`), name)
		assert.NoError(t, err)
		assert.Empty(t, rules)
	}
	_, err := newRuleSet(want)
	assert.NoError(t, err)
}

func TestSpecE5ExampleRules(t *testing.T) {
	t.Parallel()
	s, err := newRuleSet(ExampleRules())
	require.NoError(t, err)
	tests := []struct {
		intent string
		tool   rules.Subject
		want   string // the actions of the rules that apply, by descending priority
	}{
		{"", rules.Subject{Name: "mcp_files__delete_file", Own: "delete_file"}, "exclude"},
		{"", rules.Subject{Name: "mcp_db__user_purge", Own: "user_purge"}, "exclude"},
		{"", rules.Subject{Name: "mcp_db__ResetDatabase", Own: "ResetDatabase"}, "exclude"},
		{"", rules.Subject{Name: "mcp_files__read_file", Own: "read_file"}, ""},
		{"manage_releases", rules.Subject{Name: "mcp_files__read_file", Own: "read_file"}, "include"},
		{"manage_releases", rules.Subject{Name: "mcp_github__create_release", Own: "create_release"}, "include"},
		{"manage_releases", rules.Subject{Name: "mcp_github__delete_repo", Own: "delete_repo"}, "exclude include"},
		{"manage_issues", rules.Subject{Name: "mcp_github__create_release", Own: "create_release"}, ""},
		{"manage_issues", rules.Subject{Name: "mcp_metrics__list", Own: "list"}, "summarize"},
	}
	for _, test := range tests {
		applies := s.Applying(test.intent)
		var got []string
		for _, r := range s.Matches(test.tool) {
			if applies[r] {
				got = append(got, string(s.Rules[r].Action))
			}
		}
		assert.Equal(t, test.want, strings.Join(got, " "), "%q %v", test.intent, test.tool)
	}
}

func TestSpecE5RuleFilesAreRefused(t *testing.T) {
	t.Parallel()
	const valid = "{name: a, patterns: [x], action: include}"
	tests := []struct {
		name string
		file string
		text string
		want []string // in a file f, without its name
	}{
		{"extension", "f.toml", "", []string{"the name must end in .yaml, .yml or .json"}},
		{"no extension", "yaml", "", []string{"the name must end in .yaml, .yml or .json"}},
		{"encoding", "f.yaml", "rules: [\xff]", []string{"is not UTF-8"}},
		{"size", "f.json", strings.Repeat(" ", 4<<20+1), []string{"larger than 4194304 bytes"}},
		{"nothing", "f.yaml", "# only this\n", []string{`line 1, column 1: there is no "rules"`}},
		{"nothing", "f.json", "", []string{"line 1, column 1: unexpected end of JSON input"}},
		{"no rules", "f.yaml", "{}", []string{`line 1, column 1: there is no "rules"`}},
		{"null rules", "f.yaml", "rules:\n", []string{`line 1, column 7: "rules" is null, want a list`}},
		{"another thing", "f.yaml", "- a", []string{"line 1, column 1: the file is a list, want an object"}},
		{"another thing", "f.json", "\n 5", []string{"line 2, column 2: the file is an integer, want an object"}},
		{"two documents", "f.yaml", "rules: []\n---\nrules: []\n", []string{"line 2, column 1: a second document begins"}},
		{"two documents, the second malformed", "f.yaml", "rules: []\n---\n[", []string{"line 3, column 2: did not find expected node content"}},
		{"two documents", "f.json", `{"rules": []} {}`, []string{"line 1, column 15: invalid character '{' after top-level value"}},
		{"syntax", "f.yaml", "rules:\n  - name: x: y\n", []string{"line 2, column 12: mapping values are not allowed in this context"}},
		{"syntax", "f.json", "{\"rules\":\n[,]}", []string{"line 2, column 2: invalid character ',' looking for beginning of value"}},
		{"a character that may not be", "f.yaml", "rules: # é\n- é\x07", []string{"line 2, column 4: control characters are not allowed (value: 7)"}},
		{"a syntax error after é", "f.yaml", "rules:\n- é: é: b", []string{"line 2, column 7: mapping values are not allowed in this context"}},
		{"star without quotes", "f.yaml", "rules:\n- name: a\n  patterns: [*]", []string{"line 3, column 15: did not find expected alphabetic or numeric character: put a pattern that begins with * in quotes"}},
		{"pattern without quotes", "f.yaml", "rules:\n- name: '*_drop'\n  patterns:\n  - *_drop\n  - *_drop # *_drop\n  - *_drop\n", []string{"line 4, column 5: the alias *_drop has no anchor: put a pattern that begins with * in quotes"}},
		{"other field", "f.yaml", "rules: []\nrule: []", []string{`line 2, column 1: there is no field "rule", want rules`}},
		{"other case", "f.json", `{"Rules": []}`, []string{`line 1, column 2: there is no field "Rules", want rules`}},
		{"other field of a rule", "f.yaml", "rules:\n- {name: a, patterns: [x], action: include, unless: b}", []string{`line 2, column 45: there is no field "unless", want name, intent, priority, patterns, match or action`}},
		{"merge key", "f.yaml", "rules:\n- &a " + valid + "\n- <<: *a", []string{`line 3, column 3: there is no field "<<", want name, intent, priority, patterns, match or action`}},
		{"a key that is no text", "f.yaml", "rules: []\n? [a]\n: b", []string{"line 2, column 3: the name of a field is a list, want rules"}},
		{"twice", "f.yaml", "rules: []\nrules: []", []string{`line 2, column 1: "rules" is given twice`}},
		{"twice, the second by an alias", "f.yaml", "&r rules: []\n*r : []", []string{`line 2, column 1: "rules" is given twice`}},
		{"twice", "f.json", `{"rules":[{"name":"ä","name":"ä","patterns":["x"],"action":"include"}]}`, []string{`line 1, column 23: "name" is given twice`}},
		{"twice by an escape", "f.json", "{\"rules\":[],\n\"\\u0072ules\":[]}", []string{`line 2, column 1: "rules" is given twice`}},
		{"types", "f.json", "{\"rules\":[{\"name\":null,\n\"intent\":true,\n\"priority\":1.0,\n\"patterns\":\"x\",\n\"action\":[]},\n5]}", []string{
			`line 1, column 19: "name" is null, want a string`,
			`line 2, column 10: "intent" is true or false, want a string: put it in quotes`,
			`line 3, column 12: "priority" is a number, want an integer`,
			`line 4, column 12: "patterns" is a string, want a list`,
			`line 5, column 10: "action" is a list, want a string`,
			`line 6, column 1: a rule is an integer, want an object`,
		}},
		{"types", "f.yaml", "rules:\n- name: 2026-01-01\n  intent:\n  priority: '1'\n  patterns: [x, 5, {a: b}, !a b, !!str {a: b}]\n  action: {a: b}\n-\n", []string{
			`line 2, column 9: "name" is a date, want a string: put it in quotes`,
			`line 3, column 10: "intent" is null, want a string`,
			`line 4, column 13: "priority" is a string, want an integer`,
			`line 5, column 17: "patterns[1]" is an integer, want a string: put it in quotes`,
			`line 5, column 20: "patterns[2]" is an object, want a string`,
			`line 5, column 28: "patterns[3]" is of the type "!a", want a string: put it in quotes`,
			`line 5, column 34: "patterns[4]" is an object, want a string`,
			`line 6, column 12: there is no field "a", want type`,
			`line 7, column 2: a rule is null, want an object`,
		}},
		{"patterns twice", "f.json", `{"rules":[{"name":"a","patterns":["x"],"match":{"patterns":["y"]},"action":"include"}]}`, []string{`line 1, column 60: the patterns are given twice`}},
		{"other field of a match", "f.yaml", "rules:\n- {name: a, match: {servers: [x]}, action: {type: exclude, by: x}}", []string{`line 2, column 21: there is no field "servers", want patterns`, `line 2, column 60: there is no field "by", want type`}},
		{"no type", "f.yaml", "rules:\n- {name: a, match: {patterns: [x]}, action: {}}", []string{`line 2, column 3: rule "a": the action is missing: it must be "include", "exclude" or "summarize"`}},
		{"deep", "f.json", `{"rules":[{"name":"a","patterns":["x",[[[["y"]]]],{"a":{"b":[]}}],"action":"include"}]}`, []string{
			`line 1, column 39: "patterns[1]" is a list, want a string`,
			`line 1, column 51: "patterns[2]" is an object, want a string`,
		}},
		{"a list within itself", "f.yaml", "rules: &r [*r]", []string{`line 1, column 8: a rule is a list, want an object`}},
		{"patterns within themselves", "f.yaml", "rules:\n- {name: a, patterns: &p [*p], action: include}", []string{`line 2, column 23: "patterns[0]" is a list, want a string`}},
		{"a large integer", "f.json", `{"rules":[{"name":"a","priority":9223372036854775808,"patterns":["x"],"action":"include"}]}`, []string{`line 1, column 34: "priority" is out of range`}},
		{"an integer that is none", "f.yaml", "rules: [{name: a, priority: !!int x, patterns: [x], action: include}]", []string{`line 1, column 29: "priority" is out of range`}},
		{"what Validate finds", "f.yaml", "rules:\n  - " + valid + "\n  - name: b\n    patterns: ['[']\n    action: include\n  - {}", []string{
			`line 3, column 5: rule "b": pattern 0: "[" has a '[', which is no wildcard: * and ? are`,
			`line 6, column 5: rule "": the name is missing`,
		}},
		{"what Validate finds", "f.json", "{\"rules\":[\n\t{\"name\": \"b\", \"patterns\": [\"x\"], \"action\": \"drop\"}]}", []string{
			`line 2, column 2: rule "b": the action is "drop", must be "include", "exclude" or "summarize"`,
		}},
		{"a long text", "f.yaml", "rules: [{name: a, patterns: [" + strings.Repeat("x", 1001) + "], action: include}]", []string{`line 1, column 30: "patterns[0]" has 1001 bytes, more than the limit of 1000`}},
		{"many problems", "f.yaml", "rules:" + strings.Repeat("\n- 1", 1000), []string{
			"line 2, column 3: a rule is an integer, want an object", "line 3, column 3: a rule is an integer, want an object",
			"line 4, column 3: a rule is an integer, want an object", "line 5, column 3: a rule is an integer, want an object",
			"line 6, column 3: a rule is an integer, want an object", "line 7, column 3: a rule is an integer, want an object",
			"line 8, column 3: a rule is an integer, want an object", "line 9, column 3: a rule is an integer, want an object",
			"line 10, column 3: a rule is an integer, want an object", "line 11, column 3: a rule is an integer, want an object",
			"and 990 more problems",
		}},
		{"many rules", "f.yaml", "rules:\n- &a " + valid + strings.Repeat("\n- *a", 10_000), []string{`line 10002, column 3: there are more than 10000 rules`}},
	}
	for _, test := range tests {
		t.Run(test.name+" "+test.file, func(t *testing.T) {
			rules, err := ParseRules([]byte(test.text), test.file)
			for i := range test.want {
				test.want[i] = "mcphybrid: " + test.file + ": " + test.want[i]
			}
			assert.EqualError(t, err, strings.Join(test.want, "\n"))
			assert.Nil(t, rules)
		})
	}

	missing := filepath.Join(t.TempDir(), "f.yaml")
	rules, err := LoadRules(missing)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "mcphybrid: "+missing+": ")
	assert.Nil(t, rules)
	_, err = LoadRules(filepath.Dir(missing))
	assert.Error(t, err)

	long := strings.Repeat("x", 1<<20)
	_, err = ParseRules([]byte("rules: []\n? "+long+"\n: 1"), "f.yaml")
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 10_000, "what the file has is not quoted without end")
}

// Nested aliases of 10^9 elements cost only what their text costs.
func TestSpecE5AliasesDoNotBlowUp(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol]\n")
	for i := range 9 {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	rules, err := ParseRules([]byte(laughs.String()+"rules: *a9"), "f.yaml")
	assert.ErrorContains(t, err, `line 1, column 1: there is no field "a0", want rules`)
	assert.Nil(t, rules)

	many := "rules:\n- {name: a, action: include, patterns: &p [" + strings.Repeat("x,", 20_000) + "]}" +
		strings.Repeat("\n- {name: a, action: include, patterns: *p}", 9_999)
	allocated := testing.AllocsPerRun(1, func() { rules, err = ParseRules([]byte(many), "f.yaml") })
	assert.ErrorContains(t, err, "there are more than 100000 patterns")
	assert.Less(t, allocated, 3e6)
	assert.Nil(t, rules)
}

// Written rules can be read again, whatever they hold. (Line feeds are an
// exception: for some, yaml.Marshal writes what no YAML parser reads.)
func TestSpecE5RulesSurviveTheirFile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "*", "a_*", "yes", "null", "~", "1", "0x1F", "1e3", "2026-01-01", "- a", "# b", "a: b", "&a", "*a", "!a", "%a", "@a", "`a", "'", `"`, `\\`,
		"{}", "<<", "=", " a ", "a\tb", "ä 天气 😀", "\u0001", "\u0085", "\u2028", "\ufeff", "</b>&", "true", "[a-z]", "---", "...", "\r"}
	text := func() string {
		s := words[random.IntN(len(words))]
		if random.IntN(2) == 0 {
			s += words[random.IntN(len(words))]
		}
		return s
	}
	for seed := range 2000 {
		rules := make([]mcphybrid.Rule, 0, 5)
		for range random.IntN(5) {
			r := mcphybrid.Rule{Name: text(), Intent: text(), Action: []mcphybrid.RuleAction{mcphybrid.RuleInclude, mcphybrid.RuleExclude, mcphybrid.RuleSummarize}[random.IntN(3)]}
			r.Priority = []int{0, 1, -7, math.MaxInt, math.MinInt}[random.IntN(5)]
			for range 1 + random.IntN(3) {
				r.Patterns = append(r.Patterns, text())
			}
			if r.Validate() == nil {
				rules = append(rules, r)
			}
		}
		file := map[string][]mcphybrid.Rule{"rules": rules}
		asJSON, err := json.Marshal(file)
		require.NoError(t, err)
		asYAML, err := yaml.Marshal(file)
		require.NoError(t, err)
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, asJSON, "", "  "))
		for _, f := range []struct{ name, text string }{
			{"a.json", string(asJSON)}, {"b.json", indented.String()}, {"c.yaml", string(asYAML)},
		} {
			got, err := ParseRules([]byte(f.text), f.name)
			require.NoError(t, err, "seed %d\n%s", seed, f.text)
			require.Equal(t, len(rules), len(got))
			for i := range got {
				require.Equal(t, rules[i], got[i], "seed %d\n%s", seed, f.text)
			}
		}
	}
}

func fuzzRules(f *testing.F, name string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ParseRules(data, name)
		if err != nil {
			if rules != nil || !strings.HasPrefix(err.Error(), "mcphybrid: "+name+": ") {
				t.Fatalf("%q: %d rules and %v", data, len(rules), err)
			}
			return
		}
		if _, err := newRuleSet(rules); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		again, err := json.Marshal(map[string][]mcphybrid.Rule{"rules": append([]mcphybrid.Rule{}, rules...)})
		require.NoError(t, err)
		got, err := ParseRules(again, "again.json")
		require.NoError(t, err, "%s", again)
		require.Equal(t, rules, got, "%s", again)
	})
}

func FuzzParseRulesYAML(f *testing.F) {
	f.Add(exampleRules)
	f.Add([]byte("rules: [{name: a, patterns: &p [x], action: include}, {<<: *p}]"))
	f.Add([]byte("rules:\n- name: |\n    a\n  ? patterns\n  : [*a]\n---\n..."))
	f.Add([]byte("%YAML 1.2\n---\n&r rules: &r [*r]\n*r : !!str [a]"))
	fuzzRules(f, "f.yaml")
}

func FuzzParseRulesJSON(f *testing.F) {
	f.Add([]byte(`{"rules": [{"name": "a", "priority": 1, "patterns": ["x*"], "action": "include"}]}`))
	f.Add([]byte(`{"rules": [{"name": "\ud800", "priority": -0, "patterns": [[[[[1]]]], {"a": {}}], "action": null}], "x": 1e9}`))
	fuzzRules(f, "f.json")
}
