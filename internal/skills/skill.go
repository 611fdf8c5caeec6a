// Package skills reads skill files in the Agent Skills format
// (https://agentskills.io/specification) and checks them.
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

	maxName = 64
	maxBody = 1 << 20
)

// Check returns an error if a field other than the result of Load breaks the format
// or its limits. [CheckBody] checks that result.
func (sk Skill) Check() error {
	for _, err := range []error{checkName(sk.Name), checkDescription(sk.Description), checkTools(sk.Tools)} {
		if err != nil {
			return err
		}
	}
	if sk.Load == nil {
		return CheckBody(sk.Body)
	}
	return nil
}

func checkName(name string) error {
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

func checkDescription(line string) error {
	if n := utf8.RuneCountInString(line); n > MaxDescription {
		return fmt.Errorf("its description has %d characters, more than the limit of %d", n, MaxDescription)
	}
	if text.Line(line, MaxDescription) == "" {
		return errors.New("it has no description")
	}
	return nil
}

func checkTools(names []string) error {
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
	case len(text) > maxBody:
		return fmt.Errorf("its text has %d bytes, more than the limit of %d", len(text), maxBody)
	}
	return nil
}
