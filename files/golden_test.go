package files

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// shown writes what was given, what became of it and each line of what is wrong with it.
func shown(b *strings.Builder, given, became string, err error) {
	fmt.Fprintf(b, "%.100q\n", given)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(b, "   ! %s\n", text.Line(strings.TrimSuffix(line, "\n"), 300))
		}
	} else {
		fmt.Fprintf(b, "   %s\n", text.Line(became, 200))
	}
}

// testdata/rules.golden has what is read of documents of rules.
func TestRulesGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Documents of rules: each, then its rules, or what is wrong with it.\n")
	show := func(name, document string) {
		list, err := ParseRules([]byte(document), name)
		became := fmt.Sprintf("%d rules", len(list))
		if len(list) < 5 {
			became = golden.Text(list)
		}
		shown(&b, document, became, err)
	}
	rule := func(members string) string { return "rules: [{name: a, action: include, " + members + "}]" }
	patterns := func(n int) string {
		return rule("patterns: [" + strings.TrimSuffix(strings.Repeat("x,", n), ",") + "]")
	}
	b.WriteString("\nYAML\n\n")
	for _, document := range []string{
		"", "\n\n", "rules", "5", "[]", "{}", "rules: []", "rules: [ ]\n", "Rules: []", "rules: {}", "rules: x", "rules: ~", "rules: [1]\nx: 1", "x: 1", "---\nrules: []\n...", "--- \nrules: []\n---\n", "rules: []\n--- x", "rules: []\n---\n[", "\ufeffrules: []",
		rule("patterns: [x]"), rule("patterns: [x, y], priority: -5, intent: i"), rule("patterns: []"), rule("patterns: x"), rule("match: {patterns: [x]}"), rule("match: {patterns: [x], patterns: [y]}"), rule("match: {patterns: [x]}, match: {patterns: [y]}"), rule("match: {}"), rule("match: []"), rule("patterns: [x], match: {}"), rule("patterns: [x], match: {patterns: []}"), rule("patterns: [], match: {patterns: [x]}"),
		rule("patterns: [x], priority: 1"), rule("patterns: [x], priority: 0x10"), rule("patterns: [x], priority: 1_000"), rule("patterns: [x], priority: 1.5"), rule("patterns: [x], priority: '1'"), rule("patterns: [x], priority: 9223372036854775807"), rule("patterns: [x], priority: -9223372036854775808"), rule("patterns: [x], priority: 9223372036854775808"), rule("patterns: [x], priority: true"), rule("patterns: [x], priority: []"),
		rule("patterns: [x], intent: 5"), rule("patterns: [x], intent: true"), rule("patterns: [x], intent: 1.5"), rule("patterns: [x], intent: 2026-01-02"), rule("patterns: [x], intent: ~"), rule("patterns: [x], intent: !x y"), rule("patterns: [x], intent: {}"), rule("patterns: [x], intent: []"), rule("patterns: [x], intent: <<"), rule("patterns: [x], <<: {intent: i}"),
		"rules: [{name: a, patterns: [x], action: {type: exclude}}]", "rules: [{name: a, patterns: [x], action: {type: exclude, type: include}}]", "rules: [{name: a, patterns: [x], action: {}}]", "rules: [{name: a, patterns: [x], action: drop}]", "rules: [{name: a, patterns: [x], action: []}]", "rules: [{name: a, patterns: [x]}]", "rules: [{patterns: [x], action: include}]", "rules: [{name: a, patterns: [x], action: include}, {name: a, patterns: [x], action: include}]",
		"rules:\n- name: a\n  [b]: 1\n  {c: d}: 2\n  ? [e]\n  : 3", "rules: [{? [b] : c}]", "rules: [{b: &b [1], *b : c}]", "a: &a rules\n*a : []", "rules: [{name: &n a, intent: *n, patterns: &p [x, *n], action: include}, {name: *n, patterns: *p, action: exclude}]",
		"rules: [*a]", "rules: [*]", "rules: [*_x]", "rules: [* x]", "rules: [a", "rules: ]", "rules: {a: }}", "\trules: []", "rules:\n\t- a", "rules: 'a", "rules: \"\\q\"", "rules: \"\\", "%x\n---\nrules: []", "rules: \u0007", "é: é\nrules: [é, \u0001]", "rules: @a", "rules: `a", "a: b: c", "- a\nb", "rules: |\n x\ny", "rules: [\n\n", "rules: {\nx: [\n]\n\n",
		"rules: [{name: " + strings.Repeat("n", maxRuleText) + ", patterns: [x], action: include}]", "rules: [{name: " + strings.Repeat("n", maxRuleText+1) + ", patterns: [x], action: include}]", rule("patterns: [" + strings.Repeat("p", maxRuleText) + "]"), rule("patterns: [x, " + strings.Repeat("p", maxRuleText+1) + "]"),
		patterns(maxRulePatterns), patterns(maxRulePatterns + 1), "rules:" + strings.Repeat(" \n- &a {name: a, action: include, patterns: [x]}", 1) + strings.Repeat("\n- *a", rules.MaxRules-1), "rules:" + strings.Repeat("\n- 1", maxRuleProblems), "rules:" + strings.Repeat("\n- 1", maxRuleProblems+1), "rules:" + strings.Repeat("\n- 1", maxRuleProblems) + "\n- {}",
		"rules: []\n#" + strings.Repeat("x", maxFileBytes-len("rules: []\n#")), "rules: []\n#" + strings.Repeat("x", maxFileBytes-len("rules: []\n#")+1),
	} {
		show("f.yaml", document)
	}
	b.WriteString("\nJSON\n\n")
	for _, document := range []string{
		"", " ", "[]", "5", "null", "{}", `{"rules":[]}`, `{"rules":null}`, `{"rules":[]} x`, `{"rules":[]}{}`, `{"rules":[],"rules":[]}`, `{"Rules":[]}`, "\ufeff{\"rules\":\r\n\t [ ] }", "{\n  \"rules\"  :\n\t[\n\n {\"name\"\n:5} ,\n\n  6]}", `{"é":1,"rules":[1]}`,
		`{"rules":[{"name":"a","patterns":["x"],"action":"include","priority":1}]}`, `{"rules":[{"name":"a","patterns":["x"],"action":"include","priority":1e0}]}`, `{"rules":[{"name":"a","patterns":["x"],"action":"include","priority":1E0}]}`, `{"rules":[{"name":"a","patterns":["x"],"action":"include","priority":99999999999999999999}]}`,
		`{"rules":[{"name":"a","match":{"patterns":["x"]},"action":{"type":"summarize"}}]}`, `{"rules":[{"name":"a","match":{"patterns":[[["x"]],{"a":[]},1]},"action":{"type":["x"]}}]}`, `{"rules":[{"name":"a","match":{"patterns":["x"],"more":[{},1]},"action":"include"},7]}`, `{"rules":[{"name":true,"intent":1,"patterns":[null,"x",1.5],"action":false}]}`,
		`{"rules":[{"name":"a"`, `{"rules":[tru]}`, `{"rules":[1,]}`, "{\"rules\":[\n\"a\x01\"]}",
	} {
		show("f.json", document)
	}
	golden.Compare(t, "rules.golden", b.String())
}

// testdata/yaml.golden has what YAML of servers is as JSON.
func TestYAMLGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("YAML, and what it is as JSON.\n\n")
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, document := range []string{
		"a", "5", "[]", "{}", "a: ", "a: ~\nb: Null\nc: NULL\nd: null", "[true, True, TRUE, yes, on, false, no, n]", "[1, -1, +1, 01, 0o17, 0x1f, 0b11, 1_000, 1e3, 1.50, -0, .5, 1., .inf, -.INF, .nan, 0x, 1__0, 123456789012345678901234567890]", "[2026-01-02, 2026-01-02T03:04:05Z, 12:30, '5', \"5\", '~']", "[!!str 5, !!int '5', !!int x, !!float 5, !!bool yes, !!bool x, !!null x, !x y, !!binary aGk=]",
		"a: {b: [c, {d: e}], f: {}}\ng: []", "{a, b: c, : d}", "5: a\ntrue: b\n~: c\n2026-01-02: d", "\"a\\n<é\": '<&>'", "a: |\n  b\n  c\n", "a: >-\n  b\n  c\n", "a: &a [1]\nb: [*a, *a]\n", "a: &a\n  b: 1\nc: *a", "<<: {a: 1}", "a: {<<: {b: 1}}", "{[a]: b}", "{{a: b}: c}", "{*a : b}", "a: &a b\n*a : c", "- a\n- - b\n  - c\n-\n- {}\n",
		"{a: 1, a: 2, b: {c: 1, c: 2}}", nested(maxYAMLDepth + 1), nested(maxYAMLDepth + 2), "a: &a [*a]", "a: 1\n---\nb: 1", "a: [", "", "#", "\ufeffa: 1", "a: \xff",
		"[" + strings.Repeat("&a "+strings.Repeat("x", 1<<20)+",*a,*a,*a,1", 1) + "]", "[&a " + strings.Repeat("x", 1<<20) + ",*a,*a,*a,*a,1]", strings.Repeat("#", maxFileBytes), strings.Repeat("#", maxFileBytes+1),
	} {
		data, err := yamlToJSON([]byte(document))
		if err == nil && !json.Valid(data) {
			t.Errorf("no JSON: %s", data)
		}
		shown(&b, document, string(data), err)
	}
	golden.Compare(t, "yaml.golden", b.String())
}

// testdata/skillfiles.golden has what is read of skills.
func TestSkillFilesGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Files of skills, and what is read of them.\n\n")
	front := func(lines string) string { return "---\n" + lines + "\n---\nbody" }
	named := func(lines string) string { return front("name: a\ndescription: d\n" + lines) }
	size := func(n int) string { // of the whole file
		return front("name: a\ndescription: d") + strings.Repeat("x", n-len(front("name: a\ndescription: d")))
	}
	long := func(n int) string { // of the front matter with its lines of ---
		return "---\nname: a\ndescription: d\nx: " + strings.Repeat("x", n-len("---\nname: a\ndescription: d\nx: \n---\n")) + "\n---\nbody"
	}
	for _, document := range []string{
		"---", "---\n", "---\n---", "---\n---\n", " ---\nname: a\n---\n", "----\nname: a\n----\n", front(""), front("a"), front("- a"), front("5"), front("{}"), front("{name: a, description: d}"), front("name: a"), front("description: d"), front("Name: a\ndescription: d"), front("name: a\ndescription: d"), "---\nname: a\ndescription: d\n---", "---\nname: a\ndescription: d\n---\n\n \n", "---\nname: a\ndescription: d\n---\n---\nx\n---\n", "\ufeff---\r\nname: a\r\ndescription: d\r\n---\r\nbody\r\n",
		front("description: d\nname: a"), front("name: ' a '\ndescription: \" d\\n \""), front("name: &n a\ndescription: *n"), front("name: &n [a]\ndescription: *n"), front("x: &n [a]\nname: *n\ndescription: d"), front("name: !!str 5\ndescription: 5"), front("name: null\ndescription: d"), front("name: a\ndescription: ~"), front("name: a\ndescription: ''"), front("name: a\ndescription:\n  x: y"), front("name: A\ndescription: d"), front("name: a--b\ndescription: d"), front("name: a-b\ndescription: |\n  one\n\n  two"),
		front("name: " + strings.Repeat("n", 64) + "\ndescription: d"), front("name: " + strings.Repeat("n", 65) + "\ndescription: d"), front("name: a\ndescription: " + strings.Repeat("é", 1024)), front("name: a\ndescription: " + strings.Repeat("é", 1025)),
		named("tools: [x, y z, 5]"), named("tools: x, y z,,5"), named("tools: x"), named("tools: ''"), named("tools:"), named("tools: []"), named("tools: [[x]]"), named("tools: {x: y}"), named("tools: [x, {y: z}]"), named("tools: [x, '']"), named("x: &t [x]\ntools: *t"), named("x: &t x y\ntools: *t"), named("x: &t x\ntools: [*t, y]"), named("x: &t {}\ntools: *t"), named("tools: " + strings.Repeat("t ", 32)), named("tools: " + strings.Repeat("t ", 33)),
		named("name: b"), named("x: 1\nx: 2"), named("\ndescription: e"), named("? [x]\n: y"), named("x: y: z"), named("x: [1"), named("x: *none"), named("\tx: y"), named("x: '"), named("x: \x00"), named("x: \u009b"), named("x: \t"), named("x: \r\ny: z"), named("x: \xffy"), named("x: \ufffd"), named("x: \u202e"), named("<<: {name: b}"),
		front("name: a\ndescription: Use it: always"), front("name: a\ndescription: it's: so"), front("name: a\ndescription: 'it: so"), front("name: a\ndescription: \"it\": so"), front("name: a\ndescription: [x: y: z"), front("name: a\ndescription: {x: y: z"), front("name: a\ndescription: & x: y"), front("name: a\ndescription: * x: y"), front("name: a\ndescription: ! x: y: z"), front("name: a\ndescription: % x: y"), front("name: a\ndescription: @ x: y"), front("name: a\ndescription: ` x: y"), front("name: a\ndescription: # x\nb: c: d"), front("name: a\ndescription: > x: y"), front("name: a\ndescription: | x: y"), front("name: a\ndescription:x: y: z"), front("name: a\n description: x: y"), front("name: a: b\ndescription: x: y"), front("x: |\n description: x: y\nname: a\ndescription: it: so"),
		long(maxFrontMatter + 1), long(maxFrontMatter + 2), size(maxFile), size(maxFile + 1),
	} {
		list, err := LoadSkillsFS(folder(map[string]string{"s/SKILL.md": document}))
		became := ""
		for _, sk := range list {
			body, err := sk.Load(t.Context())
			sk.Load = nil
			became += fmt.Sprintf("%s %q %v", golden.Text(sk), text.Line(body, 20), err)
		}
		shown(&b, document, became, err)
	}
	b.WriteString("\nFolders: the skills found, and what is wrong.\n\n")
	deep := func(n int, files string) map[string]string {
		all := make(map[string]string)
		for i := range n {
			all[fmt.Sprintf("d%04d/%s", i, files)] = "x"
		}
		all["z/SKILL.md"] = frontMatter("last", "")
		return all
	}
	for _, c := range []struct {
		shows string
		files map[string]string
	}{
		{"nothing", nil}, {"one at the root, which hides those below", map[string]string{"SKILL.md": frontMatter("root", ""), "a/SKILL.md": frontMatter("a", "")}}, {"files of other names", map[string]string{"a/skill.md": frontMatter("a", ""), "b/SKILL.MD": frontMatter("b", ""), "SKILL.md.txt": ""}},
		{"four levels", map[string]string{"a/b/c/d/SKILL.md": frontMatter("four", "")}}, {"five levels", map[string]string{"a/b/c/d/e/SKILL.md": frontMatter("five", "")}}, {"folders that are left out", map[string]string{".a/SKILL.md": frontMatter("a", ""), "node_modules/SKILL.md": frontMatter("b", ""), "node_modules2/SKILL.md": frontMatter("c", ""), "a.b/SKILL.md": frontMatter("d", "")}},
		{"two names, three times", map[string]string{"a/SKILL.md": frontMatter("x", ""), "b/SKILL.md": frontMatter("y", ""), "c/SKILL.md": frontMatter("x", ""), "d/SKILL.md": frontMatter("x", ""), "e/SKILL.md": ""}}, {"a folder of that name", map[string]string{"a/SKILL.md/SKILL.md": frontMatter("x", ""), "b/SKILL.md": frontMatter("y", "")}},
		{"a broken one of a name that is there", map[string]string{"a/SKILL.md": frontMatter("x", ""), "b/SKILL.md": "---\nname: x\n---\n"}},
		{"as many folders as are looked at", deep(maxFolders-2, "x")}, {"one more", deep(maxFolders-1, "x")}, {"many more", deep(maxFolders+5, "x")},
	} {
		list, err := LoadSkillsFS(folder(c.files))
		shown(&b, c.shows, fmt.Sprint(skillNames(list)), nil)
		if err != nil {
			fmt.Fprintf(&b, "   ! %s\n", strings.ReplaceAll(err.Error(), "\n", "\n   ! "))
		}
	}
	_, err := LoadSkillsFS(broken{})
	shown(&b, "a file system that fails", "", err)
	list, err := LoadSkillsFS(unlistable{folder(map[string]string{"a/SKILL.md": frontMatter("x", ""), "b/c/SKILL.md": frontMatter("y", "")})})
	shown(&b, "a folder that can't be listed", fmt.Sprint(skillNames(list)), nil)
	fmt.Fprintf(&b, "   ! %v\n", err)
	golden.Compare(t, "skillfiles.golden", b.String())
}

// No file stays open, whatever is wrong with it.
func TestFilesAreClosed(t *testing.T) {
	t.Parallel()
	c := &counting{MapFS: folder(map[string]string{"a/SKILL.md": frontMatter("a", ""), "b/SKILL.md": "", "c/SKILL.md": frontMatter("a", "")})}
	list, err := LoadSkillsFS(c)
	require.Error(t, err)
	_, err = list[0].Load(t.Context())
	require.NoError(t, err)
	assert.Positive(t, c.opened)
	assert.Equal(t, c.opened, c.closed)
}

// counting counts the files that are opened and closed.
type counting struct {
	fstest.MapFS
	opened, closed int
}

func (c *counting) Open(name string) (fs.File, error) {
	f, err := c.MapFS.Open(name)
	if err != nil || !strings.HasSuffix(name, fileName) {
		return f, err
	}
	c.opened++
	return closing{f, c}, nil
}

type closing struct {
	fs.File
	of *counting
}

func (c closing) Close() error { c.of.closed++; return c.File.Close() }

// broken is a file system that can't be read.
type broken struct{}

func (broken) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

// unlistable has a folder b that can't be listed.
type unlistable struct{ fstest.MapFS }

func (u unlistable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "b" {
		return nil, fs.ErrPermission
	}
	return u.MapFS.ReadDir(name)
}
