package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text from a server as at most limit characters of one
// line, so that it can't open a heading of its own or hide anything: runs of
// white space and control characters become one space, and characters that
// are not seen, among them those that change the direction of the text, are
// left out. A longer text ends in an ellipsis, and never within a character.
func Line(text string, limit int) string {
	if limit <= 0 {
		return ""
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
		case IsInvisible(r):
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
		if !unicode.Is(unicode.M, r) && n < limit {
			fit = b.Len()
		}
		if n++; n > limit {
			return strings.TrimRight(b.String()[:fit], " ") + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}

// IsInvisible reports whether r prints nothing by itself: format characters,
// such as zero-width and bidirectional ones and tags, variation selectors,
// blank letters, and what is no character at all.
func IsInvisible(r rune) bool {
	switch {
	case r == utf8.RuneError, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u2800', r == '\u3164', r == '\uffa0':
		return true // grapheme joiner, Hangul fillers, braille blank
	}
	return unicode.In(r, unicode.Co, unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point)
}
