package mcphybrid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// skillFiles returns files of these contents, by path.
func skillFiles(files map[string]string) fstest.MapFS {
	m := make(fstest.MapFS)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func frontMatter(name, rest string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + "\n" + rest + "---\n\nDo " + name + ".\n"
}

func namesOfSkills(skills []Skill) (names []string) {
	for _, sk := range skills {
		names = append(names, sk.Name)
	}
	return names
}

// SPEC A15: skills from a folder, as they are published: testdata/skills has
// one with all that the format knows, and some that are broken.
func TestSpecA15SkillsFromAFolder(t *testing.T) {
	skills, err := LoadSkills("testdata/skills")
	dir, _ := filepath.Abs("testdata/skills")
	require.Len(t, skills, 3)
	assert.Equal(t, []string{"release-notes", "colon", "with-crlf"}, namesOfSkills(skills))
	assert.Equal(t, "Writes release notes from merged changes. Use it when a version is about to be published.", skills[0].Description)
	assert.Equal(t, []string{"mcp_github__list_commits", "create_release"}, skills[0].Tools)
	assert.Equal(t, `Use when: the user's text has a "colon"`, skills[1].Description)
	assert.Equal(t, []string{"one", "two"}, skills[2].Tools)
	body, err2 := skills[0].Load(t.Context())
	require.NoError(t, err2)
	assert.True(t, strings.HasPrefix(body, "# Release notes\n"), body)
	assert.True(t, strings.HasSuffix(body, "---\n\nThat was a rule, and no front matter."), body)

	var want []string
	for _, problem := range []string{
		"broken/no-name/SKILL.md: line 1: the front matter has no \"name\"",
		"broken/syntax/SKILL.md: line 4: did not find expected ',' or ']'",
		"broken/twice/SKILL.md: line 5: \"name\" is there twice, first in line 3",
	} {
		want = append(want, "mcphybrid: "+filepath.Join(dir, filepath.FromSlash(problem)))
	}
	assert.EqualError(t, err, strings.Join(want, "\n"))

	m, _ := newTestManager(t, &Options{Skills: skills})
	r, err := m.Call(t.Context(), SkillLoadToolName, `{"name":"release-notes"}`)
	require.NoError(t, err)
	assert.Contains(t, resultText(t, r), "# Release notes\n")
}

// Each broken file is named, with the line and the reason, and costs itself only.
func TestBrokenSkillFiles(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, test := range []struct{ text, want string }{
		{"", "line 1: it does not begin with a line of ---"},
		{"# Just text\n", "line 1: it does not begin with a line of ---"},
		{"---\nname: a\n", "line 1: there is no second line of ---"},
		{"---\nname: a\ndescription: " + long + "\n---\n", "line 1: there is no second line of ---, which ends the front matter, in the first 65536 bytes"},
		{"---\n---\n", "line 2: the front matter is no list of fields"},
		{"---\n- a\n---\n", "line 2: the front matter is no list of fields"},
		{"---\nname: [a]\ndescription: d\n---\n", `line 2: "name": it is no text`},
		{"---\nname: A B\ndescription: d\n---\n", `line 2: "name": its name may have lower-case letters`},
		{"---\nname:\ndescription: d\n---\n", `line 2: "name": it has no name`},
		{"---\nname: a\n---\n", `line 1: the front matter has no "description"`},
		{"---\nname: a\ndescription: null\n---\n", `line 3: "description": it has no description`},
		{"---\nname: a\ndescription: >\n  " + strings.Repeat("é", 1025) + "\n---\n", `line 3: "description": its description has 1025 characters, more than the limit of 1024`},
		{"---\nname: a\ndescription: d\ntools: {a: b}\n---\n", `line 4: "tools": it is no list of names`},
		{"---\nname: a\ndescription: d\ntools: [[a]]\n---\n", `line 4: "tools": it is no list of names`},
		{"---\nname: a\ndescription: d\ntools: " + strings.Repeat("t ", 33) + "\n---\n", `line 4: "tools": it names 33 tools`},
		{"---\nname: a\n\nx: \xff\n---\n", "line 4: it is not UTF-8"},
		{"---\nname: a\nx: \x00\n---\n", "line 3: it has the control character U+0000"},
		{"---\nname: a\n\tb: c\n---\n", "line 2: found a tab character that violates indentation"},
		{"---\nname: a\nother: b: c\n---\n", "line 3: mapping values are not allowed in this context"},
		{"---\nname: *a\ndescription: d\n---\n", "line 2: unknown anchor 'a' referenced"},
		{strings.Repeat("x", 1<<20+1), "it has 1048577 bytes, more than the limit of 1048576"},
	} {
		skills, err := LoadSkillsFS(skillFiles(map[string]string{
			"a/SKILL.md": frontMatter("before", ""), "b/SKILL.md": test.text, "c/SKILL.md": frontMatter("after", ""),
		}))
		assert.Equal(t, []string{"before", "after"}, namesOfSkills(skills))
		require.Error(t, err, test.want)
		assert.True(t, strings.HasPrefix(err.Error(), "mcphybrid: b/SKILL.md: "+test.want), "%q\n%v", test.want, err)
		assert.Less(t, len(err.Error()), 5000)
	}
}

// Anchors can't make much of little, and what is written elsewhere is left alone.
func TestSkillFileFields(t *testing.T) {
	for _, test := range []struct{ text, name, description string }{
		{"---\nname: 123\ndescription: true\n---\nb", "123", "true"},
		{"\ufeff---  \r\nname: a\r\ndescription: d\r\n---\r\nb", "a", "d"},
		{"---\nname: &x a\ndescription: *x\nlicense: Apache-2.0\ncompatibility: needs git\nmetadata: {author: me, version: 1}\nallowed-tools: Bash(git:*) Read\nhooks: [{a: b}]\n---\nb", "a", "a"},
		{"---\nname: a\ndescription: |\n  one\n  two\n---\nb", "a", "one\ntwo"},
		{"---\nname: a\ndescription: Use it when: you like\n---\nb", "a", "Use it when: you like"},
		{"---\nx: &a [1,2,3,4,5,6,7,8,9]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nname: a\ndescription: d\n---\nb", "a", "d"},
	} {
		skills, err := LoadSkillsFS(skillFiles(map[string]string{"dir/SKILL.md": test.text}))
		require.NoError(t, err, test.text)
		require.Len(t, skills, 1)
		assert.Equal(t, test.name, skills[0].Name)
		assert.Equal(t, test.description, skills[0].Description)
		body, err := skills[0].Load(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, "b", body)
	}
}

// Where skills are looked for, and in which order.
func TestSkillFolders(t *testing.T) {
	files := map[string]string{
		"z/SKILL.md": frontMatter("zz", ""), "b/c/d/e/SKILL.md": frontMatter("deep", ""), "b/c/d/e2/f/SKILL.md": frontMatter("too-deep", ""),
		"a/SKILL.md": frontMatter("aa", ""), "a/inner/SKILL.md": frontMatter("inner", ""), "a/references/x.md": "x",
		".hidden/SKILL.md": frontMatter("hidden", ""), "node_modules/m/SKILL.md": frontMatter("module", ""),
		"README.md": "# Skills", "y/SKILL.md": frontMatter("zz", ""),
	}
	skills, err := LoadSkillsFS(skillFiles(files))
	assert.EqualError(t, err, `mcphybrid: z/SKILL.md: the name "zz": there is another skill in y/SKILL.md: the name is taken`)
	assert.ErrorIs(t, err, ErrDuplicate)
	assert.Equal(t, []string{"aa", "deep", "zz"}, namesOfSkills(skills))

	skills, err = LoadSkillsFS(skillFiles(map[string]string{"SKILL.md": frontMatter("only", "")}))
	require.NoError(t, err)
	assert.Equal(t, []string{"only"}, namesOfSkills(skills))

	dir := t.TempDir()
	for i := range maxSkillFolders + 10 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("d%05d", i)), 0o755))
	}
	skills, err = LoadSkills(dir)
	assert.Empty(t, skills)
	assert.EqualError(t, err, "mcphybrid: "+filepath.Join(dir, "d01999")+": there are more than 2000 folders; the others are not looked at")

	_, err = LoadSkills(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// Whatever a file has, it is a skill that can be used, or an error with a line.
func FuzzSkillFile(f *testing.F) {
	f.Add([]byte(frontMatter("a", "tools: [b]\n")))
	f.Add([]byte("---\nname: a\ndescription: Use when: x\n---\nb"))
	f.Add([]byte("---\nname: &x a\ndescription: *x\ntools: *x\n---\n"))
	f.Add([]byte("---\nname: a\ndescription: >-\n  b\n  c\n---\n"))
	f.Add([]byte("---\n? [a]\n: b\n---\n"))
	f.Add([]byte("---\n<<: {name: a}\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sk, err := parseSkill(data)
		if err != nil {
			var at *lineError
			if !errors.As(err, &at) || at.line < 1 || at.line > strings.Count(string(data), "\n")+2 {
				t.Fatalf("%v", err)
			}
			return
		}
		sk.Body = "b"
		if err := sk.check(); err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(sk.Name + sk.Description + strings.Join(sk.Tools, "")) {
			t.Fatal("not UTF-8")
		}
		if _, _, err := splitFrontMatter(data); err != nil {
			t.Fatal(err)
		}
	})
}
