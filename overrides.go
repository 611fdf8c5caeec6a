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

	var notes []toolNote
	seen := make(map[string]bool)
	for _, e := range list {
		ofModel := e.place == asTool || e.place == asDeferred && v.isActive(e.tool.name)
		if !ofModel || seen[e.tool.name] {
			continue
		}
		seen[e.tool.name] = true
		t, _ := v.lookup(e.tool.name)
		if known := v.hints(t); known != nil {
			h := known.Hints.Clone()
			h.ChainsWith = slices.DeleteFunc(h.ChainsWith, func(name string) bool { return s.mustHide(v, name) })
			notes = append(notes, toolNote{t.name, h})
		}
	}
	return textOverrides(notes)
}

// mustHide reports whether the session must not show name: it belongs to a tool
// that the session does not see, or an access list denies it. Unknown names pass:
// they may be the host's.
func (s *Session) mustHide(v *view, name string) bool {
	if t, _ := v.lookup(name); t != nil {
		return false
	}
	_, _, there := v.find(name)
	return there || v.held(name) != nil || s.rights.And(rules.Access(s.scope.opts.Access)).Denies(name)
}

// The bounds of the block of overrides.
const (
	maxOverrides    = 8 << 10 // bytes of the lines of all tools
	maxOverride     = 1 << 10 // bytes of the lines of one tool
	maxOverrideText = 200     // characters of a text
)

// textOverridesHeading stands above the notes on tools.
const textOverridesHeading = "## Tool Overrides\n\n" +
	"Notes on tools that you have. Where a note and a tool's description differ, go by the note.\n"

// The labels of a note.
const (
	labelPrecondition = "Before"
	labelAntiPattern  = "Avoid"
	labelOutputShape  = "Returns"
	labelChainsWith   = "Often followed by"
)

// A toolNote is a tool with its hints.
type toolNote struct {
	tool string
	hints.Hints
}

// textOverrides returns the text in which the model reads the hints of tools, in their
// order, or "" if none has any. If they exceed [maxOverrides], it has the last tools, and
// says how many it leaves out.
func textOverrides(tools []toolNote) string {
	var notes []string
	for _, t := range tools {
		if lines := t.lines(); lines != "" {
			notes = append(notes, "- "+t.tool+"\n"+lines)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	left, size := len(notes), 0
	for left > 0 && size+len(notes[left-1]) <= maxOverrides {
		left--
		size += len(notes[left])
	}
	block := textOverridesHeading + strings.Join(notes[left:], "")
	if left > 0 {
		block += fmt.Sprintf("\nNotes on %d tools that you have had for longer are left out.\n", left)
	}
	return block
}

// lines returns the first lines of the note, up to [maxOverride] bytes.
func (n toolNote) lines() string {
	var b strings.Builder
	full := false
	line := func(label, note string) {
		next := fmt.Sprintf("  - %s: %s\n", label, note)
		full = full || note != "" && b.Len()+len(next) > maxOverride
		if note != "" && !full {
			b.WriteString(next)
		}
	}
	for _, words := range n.Preconditions {
		line(labelPrecondition, text.Line(words, maxOverrideText))
	}
	for _, words := range n.AntiPatterns {
		line(labelAntiPattern, text.Line(words, maxOverrideText))
	}
	line(labelOutputShape, text.Line(n.OutputShape, maxOverrideText))
	var names []string
	for _, name := range n.ChainsWith {
		names = append(names, text.Line(name, text.MaxName))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	line(labelChainsWith, text.Line(strings.Join(names, ", "), maxOverrideText))
	return b.String()
}
