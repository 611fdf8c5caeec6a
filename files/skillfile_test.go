package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder returns a file system with these contents, by path.
func folder(given map[string]string) fstest.MapFS {
	m := make(fstest.MapFS)
	for name, text := range given {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// loadFS is [LoadSkillsFS] with the errors one by one.
func loadFS(fsys fs.FS) ([]mcphybrid.Skill, []error) {
	list, err := LoadSkillsFS(fsys)
	return list, unjoined(err)
}

func unjoined(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

func frontMatter(name, rest string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + "\n" + rest + "---\n\nDo " + name + ".\n"
}

func skillNames(list []mcphybrid.Skill) (names []string) {
	for _, sk := range list {
		names = append(names, sk.Name)
	}
	return names
}

// Each broken file is reported with the line and the reason, and costs only
// itself.
func TestBrokenFiles(t *testing.T) {
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
		{"---\nname: a\n\tb: c\n---\n", "line 3: found a tab character that violates indentation"},
		{"---\nname: a\nother: b: c\n---\n", "line 3: mapping values are not allowed in this context"},
		{"---\nname: *a\ndescription: d\n---\n", "line 2: unknown anchor 'a' referenced"},
		{strings.Repeat("x", 1<<20+1), "it has 1048577 bytes, more than the limit of 1048576"},
	} {
		list, errs := loadFS(folder(map[string]string{
			"a/SKILL.md": frontMatter("before", ""), "b/SKILL.md": test.text, "c/SKILL.md": frontMatter("after", ""),
		}))
		assert.Equal(t, []string{"before", "after"}, skillNames(list))
		require.Len(t, errs, 1, test.want)
		assert.True(t, strings.HasPrefix(errs[0].Error(), "mcphybrid: b/SKILL.md: "+test.want), "%q\n%v", test.want, errs)
		assert.Less(t, len(errs[0].Error()), 5000)
	}
}

// Anchors can't expand a small file into a large one, and other fields are left
// alone.
func TestFields(t *testing.T) {
	for _, test := range []struct{ text, name, description string }{
		{"---\nname: 123\ndescription: true\n---\nb", "123", "true"},
		{"\ufeff---  \r\nname: a\r\ndescription: d\r\n---\r\nb", "a", "d"},
		{"---\nname: &x a\ndescription: *x\nlicense: Apache-2.0\ncompatibility: needs git\nmetadata: {author: me, version: 1}\nallowed-tools: Bash(git:*) Read\nhooks: [{a: b}]\n---\nb", "a", "a"},
		{"---\nname: a\ndescription: |\n  one\n  two\n---\nb", "a", "one\ntwo"},
		{"---\nname: a\ndescription: Use it when: you like\n---\nb", "a", "Use it when: you like"},
		{"---\nx: &a [1,2,3,4,5,6,7,8,9]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nname: a\ndescription: d\n---\nb", "a", "d"},
	} {
		list, errs := loadFS(folder(map[string]string{"dir/SKILL.md": test.text}))
		require.Empty(t, errs, test.text)
		require.Len(t, list, 1)
		assert.Equal(t, test.name, list[0].Name)
		assert.Equal(t, test.description, list[0].Description)
		body, err := list[0].Load(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, "b", body)
	}
}

// LoadSkills looks in these folders, in this order.
func TestFolders(t *testing.T) {
	given := map[string]string{
		"z/SKILL.md": frontMatter("zz", ""), "b/c/d/e/SKILL.md": frontMatter("deep", ""), "b/c/d/e2/f/SKILL.md": frontMatter("too-deep", ""),
		"a/SKILL.md": frontMatter("aa", ""), "a/inner/SKILL.md": frontMatter("inner", ""), "a/references/x.md": "x",
		".hidden/SKILL.md": frontMatter("hidden", ""), "node_modules/m/SKILL.md": frontMatter("module", ""),
		"README.md": "# Skills", "y/SKILL.md": frontMatter("zz", ""),
	}
	list, errs := loadFS(folder(given))
	require.Len(t, errs, 1)
	assert.ErrorContains(t, errs[0], `mcphybrid: z/SKILL.md: the name "zz": there is another skill in y/SKILL.md: `)
	assert.ErrorIs(t, errs[0], mcphybrid.ErrDuplicate)
	assert.Equal(t, []string{"aa", "deep", "zz"}, skillNames(list))

	list, errs = loadFS(folder(map[string]string{"SKILL.md": frontMatter("only", "")}))
	require.Empty(t, errs)
	assert.Equal(t, []string{"only"}, skillNames(list))

	dir := t.TempDir()
	for i := range 2000 + 10 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("d%05d", i)), 0o755))
	}
	list, err := LoadSkills(dir)
	errs = unjoined(err)
	assert.Empty(t, list)
	require.Len(t, errs, 1)
	assert.EqualError(t, errs[0], "mcphybrid: "+filepath.Join(dir, "d01999")+": there are more than 2000 folders; the others are not looked at")

	_, err = LoadSkills(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// Every file is either a usable skill or an error with a line.
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
			breaks := len(regexp.MustCompile("[\n\r\u0085\u2028\u2029]").FindAllIndex(data, -1)) // as YAML sees them
			if !errors.As(err, &at) || at.line < 1 || at.line > breaks+2 {
				t.Fatalf("%v", err)
			}
			return
		}
		sk.Body = "b"
		if err := sk.Validate(); err != nil {
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
