package hints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The bounds of a [Block].
const (
	MaxBlock = 8 << 10 // bytes of the lines of all tools
	MaxNote  = 1 << 10 // bytes of the lines of one tool
	maxText  = 200     // characters of a text
)

// BlockHeading stands above a [Block].
const BlockHeading = "## Tool Overrides\n\n" +
	"Notes on tools that you have. Where a note and a tool's description differ, go by the note.\n"

// The labels of a note.
const (
	labelPrecondition = "Before"
	labelAntiPattern  = "Avoid"
	labelOutputShape  = "Returns"
	labelChainsWith   = "Often followed by"
)

// A Noted is a tool with its hints.
type Noted struct {
	Tool string
	Hints
}

// Block returns the text in which the model reads the hints of tools, in their order,
// or "" if none has any. Of more than [MaxBlock], it has the last tools, and says how
// many it leaves out.
func Block(tools []Noted) string {
	var notes []string
	for _, t := range tools {
		if lines := t.lines(); lines != "" {
			notes = append(notes, "- "+t.Tool+"\n"+lines)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	left, size := len(notes), 0
	for left > 0 && size+len(notes[left-1]) <= MaxBlock {
		left--
		size += len(notes[left])
	}
	block := BlockHeading + strings.Join(notes[left:], "")
	if left > 0 {
		block += fmt.Sprintf("\nNotes on %d tools that you have had for longer are left out.\n", left)
	}
	return block
}

// lines returns the first lines of h, up to [MaxNote] bytes.
func (h Hints) lines() string {
	var b strings.Builder
	full := false
	line := func(label, text string) {
		next := fmt.Sprintf("  - %s: %s\n", label, text)
		full = full || text != "" && b.Len()+len(next) > MaxNote
		if text != "" && !full {
			b.WriteString(next)
		}
	}
	for _, words := range h.Preconditions {
		line(labelPrecondition, text.Line(words, maxText))
	}
	for _, words := range h.AntiPatterns {
		line(labelAntiPattern, text.Line(words, maxText))
	}
	line(labelOutputShape, text.Line(h.OutputShape, maxText))
	var names []string
	for _, name := range h.ChainsWith {
		names = append(names, text.Line(name, text.MaxName))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	line(labelChainsWith, text.Line(strings.Join(names, ", "), maxText))
	return b.String()
}
