package files

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC A15: skills from a folder, in the published format. testdata/skills has
// one that uses everything the format knows, and some broken ones.
func TestSpecA15SkillsFromAFolder(t *testing.T) {
	t.Parallel()
	skills, err := LoadSkills("testdata/skills")
	dir, _ := filepath.Abs("testdata/skills")
	require.Len(t, skills, 3)
	assert.Equal(t, []string{"release-notes", "colon", "with-crlf"}, []string{skills[0].Name, skills[1].Name, skills[2].Name})
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
		"broken/syntax/SKILL.md: line 5: did not find expected ',' or ']'",
		"broken/twice/SKILL.md: line 5: \"name\" is there twice, first in line 3",
	} {
		want = append(want, "mcphybrid: "+filepath.Join(dir, filepath.FromSlash(problem)))
	}
	assert.EqualError(t, err, strings.Join(want, "\n"))

	m := mcphybrid.NewManager(&mcphybrid.Options{Skills: skills})
	defer m.Close()
	r, err := m.Call(t.Context(), mcphybrid.SkillLoadToolName, `{"name":"release-notes"}`)
	require.NoError(t, err)
	assert.Contains(t, mcp.GetTextFromContent(r.Content[0]), "# Release notes\n")
}

func TestLoadSkillsFS(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte("---\nname: a\ndescription: d\n---\nb")}
	skills, err := LoadSkillsFS(fstest.MapFS{"y/SKILL.md": file, "z/SKILL.md": file})
	assert.EqualError(t, err, `mcphybrid: z/SKILL.md: the name "a": there is another skill in y/SKILL.md: the name is taken`)
	assert.ErrorIs(t, err, mcphybrid.ErrDuplicate)
	require.Len(t, skills, 1)
	assert.Equal(t, "a", skills[0].Name)
}
