package text

import (
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
