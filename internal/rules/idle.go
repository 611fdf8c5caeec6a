package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Known is what can be said of the tools that patterns are about.
type Known struct {
	Tools []Subject

	// Missing has one Tool for each server whose tools are not known yet. Its
	// Name is how their registered names begin; it has no Own.
	Missing []Subject
}

// Idle returns an error for each of patterns that matches no tool, in their order. It
// begins with where, which says where the patterns stand. There is none for a pattern
// that may be about a missing server, unless it is no pattern of a [Rule]: then the
// error says why. matches is [Tool.MatchesAny] or [Tool.Forbidden].
func (k Known) Idle(where string, patterns []string, matches func(Subject, []string) bool) (idle []error) {
	for i, p := range patterns {
		about := func(t Subject) bool { return matches(t, patterns[i:i+1]) }
		mayBe := func(t Subject) bool { return t.mayOwn(p) }
		if slices.ContainsFunc(k.Tools, about) {
			continue
		}
		if err := validPattern(p); err != nil {
			idle = append(idle, text.Bounded(fmt.Errorf("mcphybrid: %s: %w; it matches no tool", where, err)))
		} else if !slices.ContainsFunc(k.Missing, mayBe) {
			idle = append(idle, text.Bounded(fmt.Errorf("mcphybrid: %s: %q matches no tool", where, p)))
		}
	}
	return idle
}

// mayOwn reports whether pattern may match a tool of the server t.
func (t Subject) mayOwn(pattern string) bool {
	begin := ""
	switch formOf(pattern) {
	case formPath:
		begin = t.path()
	case formName:
		begin = t.Name
	}
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		pattern = pattern[:i]
		return strings.HasPrefix(begin, pattern) || strings.HasPrefix(pattern, begin)
	}
	return strings.HasPrefix(pattern, begin)
}
