package mcphybrid

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcphybrid/mcphybrid/internal/skills"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// LoadSkills returns the skills in a folder, in the order of their paths: of
// each folder in it, four levels deep, that has a file SKILL.md in the Agent
// Skills format (https://agentskills.io/specification). What is in the folder
// of a skill is its own, and no further skill; folders whose names begin with a
// period, and node_modules, are passed over.
//
//	---
//	name: code-review
//	description: How we review code. Use it for every pull request.
//	tools: [get_diff, mcp_github__create_review]
//	---
//	Read the whole change before …
//
// Of the front matter, name, description and tools become those of a [Skill],
// by its limits; tools, which is not of the format, is a list or a line of
// names. All other fields are left to those who know them. The name need not
// be that of the folder. A file has at most 1 MiB, of which 64 KiB are front
// matter. What stands below it is read when the skill is loaded, from the file
// as it is by then.
//
// Symbolic links are followed within the folder only. The error names each file
// that can't be used, the line, and what is wrong; it comes with all the
// other skills. Of two of one name there is the first,
// and of more than 2,000 folders only those are looked at.
func LoadSkills(dir string) ([]Skill, error) { return loadedSkills(skills.Load(dir)) }

// LoadSkillsFS is [LoadSkills] for skills that are elsewhere, such as in the
// program. Where links lead is up to fsys, which is read later too.
func LoadSkillsFS(fsys fs.FS) ([]Skill, error) { return loadedSkills(skills.LoadFS(fsys)) }

func loadedSkills(read []skills.Skill, problems []error) (list []Skill, err error) {
	for _, sk := range read {
		list = append(list, Skill(sk))
	}
	for i, err := range problems {
		if duplicate := new(skills.DuplicateError); errors.As(err, &duplicate) {
			err = fmt.Errorf("%w: %w", err, ErrDuplicate)
		}
		problems[i] = text.Bounded(fmt.Errorf("mcphybrid: %w", err))
	}
	return list, errors.Join(problems...)
}
