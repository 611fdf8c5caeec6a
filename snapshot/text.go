package snapshot

// A Text is a text for people that a server may have written. Its methods hide the
// secrets of all configurations and drop characters that are invisible or change how
// others look. The text may still hold anything else, such as HTML or lies. Texts can be
// compared. The zero value is empty.
type Text struct {
	text string
	by   Eraser
}

// An Eraser hides secrets in texts and cleans them. Two erasers must be comparable.
type Eraser interface {
	Line(text string, limit int) string  // see [Text.Line]
	Lines(text string, limit int) string // see [Text.Lines]
}

// NewText returns a Text that shows nothing that by hides.
func NewText(text string, by Eraser) Text { return Text{text, by} }

// Line returns the text as one line of at most limit characters. A longer one ends in an
// ellipsis.
func (t Text) Line(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.by.Line(t.text, limit)
}

// String returns the text as one line of at most 2,000 characters.
func (t Text) String() string { return t.Line(2000) }

// Lines returns the text with its line breaks and the spaces at the beginning of each
// line. It is cut to about limit characters and to 400 lines.
func (t Text) Lines(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.by.Lines(t.text, limit)
}
