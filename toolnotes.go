package mcphybrid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// OverrideBlock returns a Markdown block headed "## Tool Overrides". It has the
// [hints.Hints] of the inline and active tools that the model was shown and may still
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
	var items []listItem
	if !v.ended {
		items = s.shownLocked(v)
	}
	s.mu.Unlock()

	var list []noted
	seen := make(map[string]bool)
	for _, e := range items {
		ofModel := e.slot == asTool || e.slot == asDeferred && v.isActive(e.tool.name)
		if !ofModel || seen[e.tool.name] {
			continue
		}
		seen[e.tool.name] = true
		t, _ := v.lookup(e.tool.name)
		if known := v.hints(t); known != nil {
			h := known.Hints
			h.ChainsWith = slices.DeleteFunc(slices.Clone(h.ChainsWith), func(name string) bool { return s.mustHide(v, name) })
			list = append(list, noted{t.name, h})
		}
	}
	return overrideBlock(list)
}

// mustHide reports whether the session must not show name: it belongs to a tool
// that the session does not see, or an access list denies it. Unknown names pass:
// they may be the host's.
func (s *Session) mustHide(v *view, name string) bool {
	if t, _ := v.lookup(name); t != nil {
		return false
	}
	there, _ := v.find(name)
	return there != nil || v.quarantined(name) != nil || s.rights.And(rules.Access(s.tenant.opts.Access)).Denies(name)
}

// The bounds of an override block.
const (
	maxBlock    = 8 << 10 // bytes of the lines of all tools
	maxNote     = 1 << 10 // bytes of the lines of one tool
	maxNoteText = 200     // characters of a text
)

// blockHeading stands above an override block.
const blockHeading = "## Tool Overrides\n\n" +
	"Notes on tools that you have. Where a note and a tool's description differ, go by the note.\n"

// The labels of a note.
const (
	labelPrecondition = "Before"
	labelAntiPattern  = "Avoid"
	labelOutputShape  = "Returns"
	labelChainsWith   = "Often followed by"
)

// A noted is a tool with its hints.
type noted struct {
	tool  string
	hints hints.Hints
}

// overrideBlock returns the text in which the model reads the hints of tools, in their order,
// or "" if none has any. Of more than maxBlock, it has the last tools, and says how
// many it leaves out.
func overrideBlock(tools []noted) string {
	var notes []string
	for _, t := range tools {
		if lines := noteLines(t.hints); lines != "" {
			notes = append(notes, "- "+t.tool+"\n"+lines)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	left, size := len(notes), 0
	for left > 0 && size+len(notes[left-1]) <= maxBlock {
		left--
		size += len(notes[left])
	}
	block := blockHeading + strings.Join(notes[left:], "")
	if left > 0 {
		block += fmt.Sprintf("\nNotes on %s that you have had for longer are left out.\n", text.Counted(left, "tool"))
	}
	return block
}

// noteLines returns the first lines of h, up to maxNote bytes.
func noteLines(h hints.Hints) string {
	var b strings.Builder
	full := false
	line := func(label, text string) {
		next := fmt.Sprintf("  - %s: %s\n", label, text)
		full = full || text != "" && b.Len()+len(next) > maxNote
		if text != "" && !full {
			b.WriteString(next)
		}
	}
	for _, words := range h.Preconditions {
		line(labelPrecondition, text.Line(words, maxNoteText))
	}
	for _, words := range h.AntiPatterns {
		line(labelAntiPattern, text.Line(words, maxNoteText))
	}
	line(labelOutputShape, text.Line(h.OutputShape, maxNoteText))
	var names []string
	for _, name := range h.ChainsWith {
		names = append(names, text.Line(name, text.MaxName))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	line(labelChainsWith, text.Line(strings.Join(names, ", "), maxNoteText))
	return b.String()
}
