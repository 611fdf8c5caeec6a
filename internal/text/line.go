package text

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text as one line of at most limit characters, so that text from a
// server can't open a heading or hide anything. Each run of white space and control
// characters becomes one space. Line removes invisible characters, including those
// that change the direction of the text. It cuts longer text between characters and
// ends it with an ellipsis.
func Line(text string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if len(text) <= limit && isLine(text) {
		return text
	}
	var b strings.Builder
	n := 0       // characters in b
	fit := 0     // bytes of b before the last character that leaves room for an ellipsis
	gap := false // white space was seen since the last character
	for _, r := range text {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			gap = b.Len() > 0
			continue
		case r >= utf8.RuneSelf && IsInvisible(r):
			continue
		}
		if gap {
			if n < limit {
				fit = b.Len()
			}
			b.WriteByte(' ')
			n++
			gap = false
		}
		// A mark belongs to the character before it.
		if n < limit && (r < utf8.RuneSelf || !unicode.Is(unicode.M, r)) {
			fit = b.Len()
		}
		if n++; n > limit {
			return strings.TrimRight(b.String()[:fit], " ") + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isLine reports whether text is ASCII, and [Line] would leave it as it is.
func isLine(text string) bool {
	before := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return before != ' '
}

// IsInvisible reports whether r prints nothing by itself: format characters (such
// as zero-width and bidirectional ones and tags), variation selectors, blank letters
// and code points that are no characters.
func IsInvisible(r rune) bool {
	switch {
	case r == utf8.RuneError, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u2800', r == '\u3164', r == '\uffa0':
		return true // grapheme joiner, Hangul fillers, braille blank
	}
	return unicode.In(r, unicode.Co, unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point)
}

// Lines returns text with its line breaks, each line as [Line] writes it, without empty
// lines at either end and without more than one between two others.
func Lines(text string) string {
	var b strings.Builder
	gap := false // an empty line was seen since the last other one
	for line := range strings.Lines(text) {
		if line = Line(line, len(line)); line == "" {
			gap = b.Len() > 0
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if gap {
			b.WriteByte('\n')
			gap = false
		}
		b.WriteString(line)
	}
	return b.String()
}

// Cut returns text without what is not UTF-8. If that has more than limit bytes, of which
// there must be at least three, it is cut between characters and ends in an ellipsis.
func Cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= limit {
		return text
	}
	n := limit - len("…")
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Gist returns the first sentence of the first paragraph of text, as [Line] writes it. A
// heading of Markdown is none, unless there is nothing else.
func Gist(text string, limit int) string {
	heading := ""
	var paragraph []string
	for line := range strings.Lines(text) {
		line = Line(line, len(line))
		title := strings.TrimLeft(line, "#")
		isHeading := title != line && (title == "" || title[0] == ' ')
		if isHeading && heading == "" {
			heading = strings.TrimSpace(title)
		}
		if !isHeading && strings.Trim(line, "-=*_ ") != "" { // else it is empty, or a rule
			paragraph = append(paragraph, line)
		} else if paragraph != nil {
			break
		}
	}
	return Line(cmp.Or(sentence(strings.Join(paragraph, " ")), heading), limit)
}

// sentence returns the first sentence of a line. What stands before a letter in lower case
// ends none: "e.g. issues".
func sentence(line string) string {
	for i, r := range line {
		after := line[i+utf8.RuneLen(r):]
		switch r {
		case '。', '！', '？':
			return line[:len(line)-len(after)]
		case '.', '!', '?':
			rest, found := strings.CutPrefix(after, " ")
			if next, _ := utf8.DecodeRuneInString(rest); found && !unicode.IsLower(next) {
				return line[:i+1]
			}
		}
	}
	return line
}
