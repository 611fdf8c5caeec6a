// Package frontmatter splits a SKILL.md in the Agent Skills format
// (https://agentskills.io/specification) into its front matter and its text, and compares the
// front matter with what a list says of it.
package frontmatter

import (
	"bytes"
	"errors"
)

// What may be wrong with a file.
var (
	ErrNone = errors.New("it does not begin with a line of ---, which begins the front matter")
	ErrOpen = errors.New("there is no second line of ---, which ends the front matter")
)

// Split returns what stands between the first line, which is ---, and the next such line,
// and what stands below that. The error is [ErrNone] or [ErrOpen].
func Split(data []byte) (front, body []byte, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	if string(bytes.TrimRight(line, " \t\r")) != "---" {
		return nil, nil, ErrNone
	}
	for next := rest; len(next) > 0; {
		begin := next
		line, next, _ = bytes.Cut(next, []byte("\n"))
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			return rest[:len(rest)-len(begin)], next, nil
		}
	}
	return nil, nil, ErrOpen
}
