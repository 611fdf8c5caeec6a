package mcphybrid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/hints"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Hints returns the hints known so far of the tool with that registered name, and
// whether there are any. It returns none for a tool that the session may not use.
func (s *Session) Hints(name string) (Hints, bool) {
	v := s.view()
	t, _ := v.lookup(name)
	if known := v.hints(t); known != nil {
		return Hints(known.Hints.Clone()), true
	}
	return Hints{}, false
}

// The bounds of [Session.OverrideBlock].
const (
	maxOverrides    = 8 << 10 // bytes of the lines of all tools
	maxOverride     = 1 << 10 // bytes of the lines of one tool
	maxOverrideText = 200     // characters of a text
)

// OverrideBlock returns a Markdown block headed "## Tool Overrides". It has the
// [Hints] of the inline and active tools that the model was shown and may still
// use, in the order in which they were shown. It is "" if none of them has hints.
//
// The host appends the block to a turn. It is not part of
// [Session.PromptSections], which must not change when a tool is activated or its
// hints become known.
//
// Each text is one line of at most 200 characters. A tool gets its first lines up
// to 1 KiB. The lines of all tools get 8 KiB, about 2,000 tokens: the block keeps
// the tools shown last, and a final line says how many others it omits. Equal
// hints for equal tools give equal bytes.
func (s *Session) OverrideBlock() string {
	s.mu.Lock()
	v := s.viewLocked()
	var list []shown
	if !v.ended {
		list = s.shownLocked(v)
	}
	s.mu.Unlock()

	var entries []string
	seen := make(map[string]bool)
	for _, e := range list {
		ofModel := e.place == asTool || e.place == asDeferred && v.isActive(e.tool.name)
		if !ofModel || seen[e.tool.name] {
			continue
		}
		seen[e.tool.name] = true
		t, _ := v.lookup(e.tool.name)
		if known := v.hints(t); known != nil {
			if lines := s.override(v, known.Hints); lines != "" {
				entries = append(entries, "- "+t.name+"\n"+lines)
			}
		}
	}
	if len(entries) == 0 {
		return ""
	}
	first, size := len(entries), 0
	for first > 0 && size+len(entries[first-1]) <= maxOverrides {
		first--
		size += len(entries[first])
	}
	return textOverrides(entries[first:], first)
}

// override returns the lines of one tool, or "".
func (s *Session) override(v *view, h hints.Hints) string {
	var b strings.Builder
	full := false
	line := func(label, text string) {
		next := fmt.Sprintf("  - %s: %s\n", label, text)
		full = full || text != "" && b.Len()+len(next) > maxOverride
		if text != "" && !full {
			b.WriteString(next)
		}
	}
	for _, words := range h.Preconditions {
		line(labelPrecondition, text.Line(words, maxOverrideText))
	}
	for _, words := range h.AntiPatterns {
		line(labelAntiPattern, text.Line(words, maxOverrideText))
	}
	line(labelOutputShape, text.Line(h.OutputShape, maxOverrideText))
	var names []string
	for _, name := range h.ChainsWith {
		if !s.conceals(v, name) {
			names = append(names, text.Line(name, text.MaxName))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	line(labelChainsWith, text.Line(strings.Join(names, ", "), maxOverrideText))
	return b.String()
}

// conceals reports whether the session must not show name: it belongs to a tool
// that the session does not see, or an access list denies it. Unknown names pass:
// they may be the host's.
func (s *Session) conceals(v *view, name string) bool {
	denied := func(a Access) bool { return rules.MatchAny(a.Deny, name) }
	if t, _ := v.lookup(name); t != nil {
		return false
	}
	_, _, there := v.find(name)
	return there || v.held(name) != nil || denied(s.scope.opts.Access) || slices.ContainsFunc(s.rights, denied)
}

const overrideHeading = "## Tool Overrides\n\n" +
	"Notes on tools that you have. Where a note and a tool's description differ, go by the note.\n"

// The labels of a note.
const (
	labelPrecondition = "Before"
	labelAntiPattern  = "Avoid"
	labelOutputShape  = "Returns"
	labelChainsWith   = "Often followed by"
)

// textOverrides is the block of notes; left is how many tools' notes it omits.
func textOverrides(entries []string, left int) string {
	text := overrideHeading + strings.Join(entries, "")
	if left > 0 {
		text += fmt.Sprintf("\nNotes on %d tools that you have had for longer are left out.\n", left)
	}
	return text
}
