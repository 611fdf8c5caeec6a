package text

import (
	"unicode"
	"unicode/utf8"
)

// A Kind is the role of a rune in a word.
type Kind uint8

// The kinds of runes.
const (
	Separator Kind = iota
	Lower          // also letters without case, and the marks on them
	Upper
	Digit
	Accent // dropped
	Dense  // a character of a script without spaces
	Joiner // a mark on such a character
)

// ASCIIKinds holds the kind of each ASCII character.
var ASCIIKinds = func() (kinds [utf8.RuneSelf]Kind) {
	for r := range kinds {
		switch {
		case r >= '0' && r <= '9':
			kinds[r] = Digit
		case r >= 'a' && r <= 'z':
			kinds[r] = Lower
		case r >= 'A' && r <= 'Z':
			kinds[r] = Upper
		}
	}
	return kinds
}()

// Next returns the first rune of line, its kind and its length in bytes. Invalid UTF-8
// separates words.
func Next(line []byte) (rune, Kind, int) {
	if c := line[0]; c < utf8.RuneSelf {
		return rune(c), ASCIIKinds[c], 1
	}
	r, n := utf8.DecodeRune(line)
	if r == utf8.RuneError {
		return r, Separator, n
	}
	return r, KindOf(r), n
}

// BeginsWord reports whether a capital begins a word of an identifier. It does after
// anything but another capital, and before a small letter: "openIssue", "log2File",
// "HTTPServer".
func BeginsWord(before, after Kind) bool { return before != Upper || after == Lower }

// KindOf returns the kind of a rune outside ASCII.
func KindOf(r rune) Kind {
	switch {
	case r < 0x300: // Latin
	case r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3: // most of Han and Hangul, at once
		return Dense
	case r <= 0x36f, r >= 0xfe00 && r <= 0xfe0f: // combining accents, variation selectors
		return Accent
	case r == 'ー', unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return Dense
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		if unicode.IsMark(r) {
			return Joiner
		}
		if unicode.IsLetter(r) {
			return Dense
		}
	}
	switch {
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return Upper
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return Lower
	case unicode.IsNumber(r):
		return Digit
	}
	return Separator
}

// IsLower reports whether c is an ASCII lower-case letter.
func IsLower(c byte) bool { return 'a' <= c && c <= 'z' }

// IsUpper reports whether c is an ASCII upper-case letter.
func IsUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// Letters returns the set of the letters in a word, one bit each. The sets of a
// word and its misspelling differ in few bits.
func Letters(term []byte) (set uint32) {
	for _, c := range term {
		set |= 1 << (c & 31)
	}
	return set
}
