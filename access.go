package mcphybrid

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Access says by name which tools may be used. Each entry is a name or a
// pattern as in [path.Match]: * stands for any run of characters, ? for one,
// [a-z] for one of a set; a slash is a character like any other. The zero
// value permits every tool.
type Access struct {
	// Allow, if not empty, lists the only tools that may be used.
	Allow []string

	// Deny lists tools that may not be used, allowed or not.
	Deny []string
}

// permits reports whether a allows name and does not deny it.
func (a Access) permits(name string) bool {
	return !matchAny(a.Deny, name) && (len(a.Allow) == 0 || matchAny(a.Allow, name))
}

// empty reports whether a permits everything.
func (a Access) empty() bool { return len(a.Allow) == 0 && len(a.Deny) == 0 }

// validate returns an error that names the first malformed pattern.
func (a Access) validate() error {
	if err := validatePatterns(a.Allow); err != nil {
		return fmt.Errorf("allow: %w", err)
	}
	if err := validatePatterns(a.Deny); err != nil {
		return fmt.Errorf("deny: %w", err)
	}
	return nil
}

func (a Access) clone() Access {
	return Access{Allow: slices.Clone(a.Allow), Deny: slices.Clone(a.Deny)}
}

func validatePatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("malformed pattern %q", p)
		}
	}
	return nil
}

func matchAny(patterns []string, name string) bool {
	name = slashless.Replace(name)
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(slashless.Replace(p), name) // the patterns were validated
		return ok
	})
}

// slashless takes the special meaning from the slash: a deny rule "*" must
// not let a tool named "a/b" pass.
var slashless = strings.NewReplacer("/", "\x00")
