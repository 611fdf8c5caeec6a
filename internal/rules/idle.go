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

	names  string // those of Tools, one tool after the other; "" until Indexed
	ends   []int  // where those of each tool end in names
	others []int  // indexes of tools that have more than these names
}

// Indexed returns k in a form in which Idle tries only the tools that have a piece of the
// pattern in their names.
func (k Known) Indexed() Known {
	k.ends, k.others = make([]int, len(k.Tools)), nil
	var b strings.Builder
	for i, t := range k.Tools {
		for _, name := range [...]string{t.Name, "\n", t.path(), "\n", t.Wanted, "\n"} {
			b.WriteString(name)
		}
		if k.ends[i] = b.Len(); t.URI != "" || t.Forms != nil {
			k.others = append(k.others, i)
		}
	}
	k.names = b.String()
	return k
}

// has reports whether matches is true of a tool, which it can't be unless pattern matches one
// of its names.
func (k Known) has(pattern string, matches func(Subject) bool) bool {
	piece := ""
	for _, p := range strings.FieldsFunc(pattern, isWildcard) {
		if p = p[:min(len(p), maxPiece)]; len(p) > len(piece) {
			piece = p
		}
	}
	if piece == "" || k.names == "" {
		return slices.ContainsFunc(k.Tools, matches)
	}
	for from := 0; ; {
		at := strings.Index(k.names[from:], piece)
		if at < 0 {
			break
		}
		i, _ := slices.BinarySearch(k.ends, from+at+1)
		if matches(k.Tools[i]) {
			return true
		}
		from = k.ends[i]
	}
	return slices.ContainsFunc(k.others, func(i int) bool { return matches(k.Tools[i]) })
}

// maxPiece is how many bytes of a piece are looked for: longer ones are found more slowly.
const maxPiece = 32

// Idle returns an error for each of patterns that matches no tool, in their order. It
// begins with where, which says where the patterns stand. There is none for a pattern
// that may be about a missing server, unless it is no pattern of a [Rule]: then the
// error says why. matches is [Tool.MatchesAny] or [Tool.Forbidden].
func (k Known) Idle(where string, patterns []string, matches func(Subject, []string) bool) (idle []error) {
	for i, p := range patterns {
		about := func(t Subject) bool { return matches(t, patterns[i:i+1]) }
		mayBe := func(t Subject) bool { return t.mayOwn(p) }
		if k.has(p, about) {
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

// ownsAll reports whether pattern matches all tools of the server t.
func (t Subject) ownsAll(pattern string) bool {
	begin := t.Name
	if formOf(pattern) == formPath {
		begin = t.path()
	}
	return strings.HasSuffix(pattern, "*") && Match(pattern, begin)
}
