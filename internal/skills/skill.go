// Package skills has what a skill is, and the limits of the Agent Skills format
// (https://agentskills.io/specification).
package skills

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Skill is an instruction text for one kind of task.
type Skill struct {
	Name        string
	Description string
	Tools       []string // names of the tools that it needs
	Body        string
	Load        func(ctx context.Context) (string, error) // if not nil, returns the text in place of Body
}

// Limits of a skill.
const (
	MaxDescription = 1024 // characters
	MaxTools       = 32
	MaxBody        = 1 << 20 // bytes

	maxName = 64
)

// Check returns an error if a field other than the result of Load breaks the format
// or its limits. [CheckBody] checks that result.
func (sk Skill) Check() error {
	for _, err := range []error{CheckName(sk.Name), CheckDescription(sk.Description), CheckTools(sk.Tools)} {
		if err != nil {
			return err
		}
	}
	if sk.Load == nil {
		return CheckBody(sk.Body)
	}
	return nil
}

// CheckName returns an error if a skill can't have that name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(name, "-") != name:
		return errors.New("its name may have lower-case letters, digits and, between these, hyphens")
	case len(name) > maxName:
		return fmt.Errorf("its name has %d characters, more than the limit of %d", len(name), maxName)
	}
	return nil
}

// CheckDescription returns an error if line can't describe a skill.
func CheckDescription(line string) error {
	if n := utf8.RuneCountInString(line); n > MaxDescription {
		return fmt.Errorf("its description has %d characters, more than the limit of %d", n, MaxDescription)
	}
	if text.Line(line, MaxDescription) == "" {
		return errors.New("it has no description")
	}
	return nil
}

// CheckTools returns an error if a skill can't need tools of these names.
func CheckTools(names []string) error {
	if len(names) > MaxTools {
		return fmt.Errorf("it names %d tools, more than the limit of %d", len(names), MaxTools)
	}
	return nil
}

// CheckBody returns an error if text can't be the text of a skill.
func CheckBody(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("it has no text")
	case len(text) > MaxBody:
		return fmt.Errorf("its text has %d bytes, more than the limit of %d", len(text), MaxBody)
	}
	return nil
}
