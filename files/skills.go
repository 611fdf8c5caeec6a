package files

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mcphybrid/mcphybrid"
)

// LoadSkills returns the skills in a folder, in the order of their paths. A skill
// is a folder with a file SKILL.md in the Agent Skills format
// (https://agentskills.io/specification), at most four levels deep. LoadSkills
// does not look for skills inside the folder of a skill, in node_modules, or in
// folders whose names begin with a period.
//
//	---
//	name: code-review
//	description: How we review code. Use it for every pull request.
//	tools: [get_diff, mcp_github__create_review]
//	---
//	Read the whole change before …
//
// The front matter gives the Name, Description and Tools of the [mcphybrid.Skill],
// within its limits. The field tools is our extension of the format: a list of names, or
// one line of them. LoadSkills ignores all other fields. The name need not be that
// of the folder. A file may have 1 MiB, of which 64 KiB front matter. The text
// below the front matter is read from the file when the model loads the skill.
//
// LoadSkills follows symbolic links only within the folder. It looks at no more
// than 2,000 folders. If two skills have the same name, it returns the first. The
// error joins one error for each file that can't be used, with the file, the line
// and the problem. All other skills are returned along with it.
func LoadSkills(dir string) ([]mcphybrid.Skill, error) {
	dir, err := filepath.Abs(dir) // as it is now
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w", err)
	}
	return loadSkills(folderFS(dir), func(file string) string { return filepath.Join(dir, filepath.FromSlash(file)) })
}

// LoadSkillsFS is [LoadSkills] for skills in fsys, for example embedded in the
// program. fsys decides where links lead. It is read again whenever the model
// loads a skill, so it must stay usable.
func LoadSkillsFS(fsys fs.FS) ([]mcphybrid.Skill, error) {
	return loadSkills(fsys, func(file string) string { return file })
}
