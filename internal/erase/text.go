package erase

import "github.com/mcphybrid/mcphybrid/internal/text"

// A Text is a text that is hidden and cleaned when it is shown. The zero value is
// empty. Texts can be compared.
type Text struct {
	text   string
	eraser *Eraser
}

// NewText returns a Text that shows nothing that e hides.
func NewText(text string, e *Eraser) Text { return Text{text, e} }

// Line returns the text as one line of at most limit characters. A longer one ends
// in an ellipsis.
func (t Text) Line(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Line(t.text, limit)
}

// String returns the text as one line of at most 2,000 characters.
func (t Text) String() string { return t.Line(text.MaxError) }

// Lines returns the text with its line breaks and the spaces at the beginning of
// each line. It is cut to about limit characters and to 400 lines.
func (t Text) Lines(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Lines(t.text, limit)
}
