package mcphybrid

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTermBytes bounds a term: what is longer, a key or a picture in base64, is
// cut, and nobody searches for it.
const maxTermBytes = 64

// An analyzer divides text into terms. Its buffers are reused, so that it
// allocates nothing once they are large enough. The zero value is ready.
//
//	"createPullRequest"  create pull request createpullrequest
//	"Überweisungen in €" uberweisungen in
//	"查询天气"             查 询 查询 天 询天 气 天气
//
// A term is a run of letters and digits, lower-cased, without accents and, if
// it is ASCII, stemmed. An identifier is split where its case changes or
// digits begin or end, and kept whole besides. Scripts without spaces between
// words give single characters and pairs of neighbours. Single ASCII letters
// are dropped.
type analyzer struct {
	terms []span
	bytes []byte // of all terms

	normal     []byte // the text in NFKC, if it is not ASCII
	normalizer norm.Iter
}

// A span is the place of a term in analyzer.bytes.
type span struct {
	start, end int32
	full       int32 // where the word ended before it was stemmed
	form       form
}

// A form says where in the text a term comes from.
type form uint8

const (
	word      form = iota // a word, or part of an identifier
	whole                 // an identifier of several parts
	character             // of a script without spaces
	pair                  // of such characters
)

func (a *analyzer) term(i int) []byte { return a.bytes[a.terms[i].start:a.terms[i].end] }

func (a *analyzer) reset() { a.terms, a.bytes = a.terms[:0], a.bytes[:0] }

// A kind is what a rune is to a word.
type kind uint8

const (
	separator kind = iota
	lower          // also letters without case, and marks that belong to them
	upper
	digit
	accent // dropped
	dense  // a character of a script without spaces
	joiner // a mark on such a character
)

var asciiKinds = func() (kinds [utf8.RuneSelf]kind) {
	for r := range kinds {
		switch {
		case r >= '0' && r <= '9':
			kinds[r] = digit
		case r >= 'a' && r <= 'z':
			kinds[r] = lower
		case r >= 'A' && r <= 'Z':
			kinds[r] = upper
		}
	}
	return kinds
}()

// kindOf returns the kind of a rune outside ASCII.
func kindOf(r rune) kind {
	switch {
	case r < 0x300: // Latin
	case r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3: // most of Han and Hangul, at once
		return dense
	case r <= 0x36f, r >= 0xfe00 && r <= 0xfe0f: // combining accents, variation selectors
		return accent
	case r == 'ー', unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return dense
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		if unicode.IsMark(r) {
			return joiner
		}
		if unicode.IsLetter(r) {
			return dense
		}
	}
	switch {
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return lower
	case unicode.IsNumber(r):
		return digit
	}
	return separator
}

// next returns the rune at the start of text, its kind and its length.
func next(text []byte) (rune, kind, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(c), asciiKinds[c], 1
	}
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError {
		return r, separator, n
	}
	return r, kindOf(r), n
}

// add appends the terms of text. Invalid UTF-8 separates.
func (a *analyzer) add(text []byte) {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			text = a.normalize(text)
			break
		}
	}
	for len(text) > 0 {
		switch _, k, n := next(text); k {
		case lower, upper, digit:
			if rest, ok := a.plainWord(text); ok {
				text = rest
				continue
			}
			text = a.word(text)
		case dense:
			text = a.denseRun(text)
		default:
			text = text[n:]
		}
	}
}

// normalize returns text in NFKC, with spaces for what is no UTF-8. Unlike
// norm.Form.Append it allocates nothing, if all is UTF-8.
func (a *analyzer) normalize(text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte(" "))
	}
	n := norm.NFKC.QuickSpan(text)
	if n == len(text) {
		return text
	}
	a.normal = append(a.normal[:0], text[:n]...)
	for a.normalizer.Init(norm.NFKC, text[n:]); !a.normalizer.Done(); {
		a.normal = append(a.normal, a.normalizer.Next()...)
	}
	return a.normal
}

// plainWord appends the word at the start of text, if it is one term of ASCII
// letters, as most are, and returns the rest.
func (a *analyzer) plainWord(text []byte) (rest []byte, ok bool) {
	n := 1
	for n < len(text) && isLower(text[n]) {
		n++
	}
	if n < len(text) && (text[n] >= utf8.RuneSelf || asciiKinds[text[n]] != separator) || asciiKinds[text[0]&0x7f] == digit || text[0] >= utf8.RuneSelf {
		return nil, false
	}
	start := len(a.bytes)
	a.bytes = append(a.bytes, text[:n]...)
	a.bytes[start] |= 'a' - 'A'
	if before := len(a.terms); n > 1 {
		a.end(start, len(a.bytes), word)
		t := &a.terms[before]
		t.end = t.start + int32(stem(a.bytes[t.start:t.end]))
	}
	return text[n:], true
}

// word appends the terms of the word at the start of text, and returns the
// rest.
func (a *analyzer) word(text []byte) []byte {
	start := len(a.bytes)
	first := len(a.terms)
	part, last := start, start      // where the part and its last rune begin
	before, earlier := lower, lower // the kinds of the last two runes
	for len(text) > 0 {
		r, k, n := next(text)
		if k == accent {
			text = text[n:]
			continue
		}
		if k != lower && k != upper && k != digit {
			break
		}
		if len(a.bytes) > part {
			switch {
			case (before == digit) != (k == digit), before == lower && k == upper:
				a.end(part, len(a.bytes), word)
				part = len(a.bytes)
			case earlier == upper && before == upper && k == lower && last > part && !plural(r, text[n:]):
				a.end(part, last, word) // HTTP|Server
				part = last
			}
		}
		last = len(a.bytes)
		a.bytes = appendFolded(a.bytes, r, text)
		earlier, before = before, k
		text = text[n:]
	}
	end := len(a.bytes)
	a.end(part, end, word)
	if part > start {
		a.bytes = append(a.bytes, a.bytes[start:end]...)
		a.end(end, len(a.bytes), whole)
	}
	// Only now, as the parts and the whole had the same bytes.
	for i := first; i < len(a.terms); i++ {
		t := &a.terms[i]
		t.end = t.start + int32(stem(a.bytes[t.start:t.end]))
	}
	return text
}

// plural reports whether r, after capitals, is the s of URLs.
func plural(r rune, rest []byte) bool {
	if r != 's' || len(rest) == 0 {
		return r == 's'
	}
	_, k, _ := next(rest)
	return k != lower
}

// denseRun appends the characters of the run at the start of text and the
// pairs of them, and returns the rest.
func (a *analyzer) denseRun(text []byte) []byte {
	before := -1 // where the character before begins
	for len(text) > 0 {
		_, k, n := next(text)
		if k != dense {
			break
		}
		for n < len(text) {
			_, k, m := next(text[n:])
			if k != joiner {
				break
			}
			n += m
		}
		start := len(a.bytes)
		a.bytes = append(a.bytes, text[:n]...)
		a.end(start, len(a.bytes), character)
		if before >= 0 {
			a.end(before, len(a.bytes), pair)
		}
		before = start
		text = text[n:]
	}
	return text
}

// end appends the term in a.bytes[start:end].
func (a *analyzer) end(start, end int, f form) {
	if end-start == 1 && asciiKinds[a.bytes[start]&0x7f] == lower && a.bytes[start] < utf8.RuneSelf {
		return
	}
	if end > start+maxTermBytes {
		for end = start + maxTermBytes; !utf8.RuneStart(a.bytes[end]); {
			end--
		}
	}
	a.terms = append(a.terms, span{int32(start), int32(end), int32(end), f})
}

// folded are the Latin letters that have no decomposition.
var folded = map[rune]string{
	'đ': "d", 'ð': "d", 'ø': "o", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t",
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'þ': "th",
}

// appendFolded appends r, which begins text, lower-cased and without accents.
func appendFolded(dst []byte, r rune, text []byte) []byte {
	if r < utf8.RuneSelf {
		if asciiKinds[r] == upper {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if r < 0x530 || r >= 0x1e00 && r < 0x2000 { // Latin, Greek, Cyrillic
		if base := norm.NFD.Properties(text).Decomposition(); base != nil {
			r, _ = utf8.DecodeRune(base)
		}
		r = unicode.ToLower(r)
		if s, ok := folded[r]; ok {
			return append(dst, s...)
		}
	}
	return utf8.AppendRune(dst, unicode.ToLower(r))
}
