package search

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"golang.org/x/text/unicode/norm"
)

// maxTermBytes is the greatest length of a term. Longer ones, such as keys or
// base64 data, are cut; nobody searches for them.
const maxTermBytes = 64

// An analyzer splits text into terms. It reuses its buffers, so it allocates
// nothing once they are large enough. The zero value is ready to use.
//
//	"createPullRequest"  create pull request createpullrequest
//	"Überweisungen in €" uberweisungen in
//	"查询天气"             查 询 查询 天 询天 气 天气
//
// A term is a run of letters and digits in lower case, without accents. ASCII
// terms are stemmed. An identifier is split where its case changes or digits
// begin or end, and is also kept whole. Text in scripts without spaces between
// words becomes single characters and pairs of neighbours. Single ASCII letters
// are dropped.
type analyzer struct {
	terms []span
	bytes []byte // the bytes of all terms

	normal     []byte // the text in NFKC, unless it was so already
	normalizer norm.Iter
}

// A span is a term: bytes[start:end] of its analyzer.
type span struct {
	start, end int32
	full       int32 // the end before stemming
	form       form
	last       byte // bytes[end-1] before stemming, which may change it; 0 if it has not
}

// A form says what kind of term a span is.
type form uint8

const (
	word      form = iota // a word, or part of an identifier
	whole                 // an identifier of several parts
	character             // one character of a script without spaces
	pair                  // two neighbouring characters of such a script
)

func (a *analyzer) term(i int) []byte { return a.bytes[a.terms[i].start:a.terms[i].end] }

// full returns term i before stemming.
func (a *analyzer) full(i int) []byte { return a.bytes[a.terms[i].start:a.terms[i].full] }

// appendWritten appends the word of s before stemming.
func (a *analyzer) appendWritten(to []byte, s span) []byte {
	start := len(to)
	to = append(to, a.bytes[s.start:s.full]...)
	if s.last != 0 {
		to[start+int(s.end-s.start)-1] = s.last
	}
	return to
}

func (a *analyzer) reset() { a.terms, a.bytes = a.terms[:0], a.bytes[:0] }

// add appends the terms of line. Invalid UTF-8 separates terms.
func (a *analyzer) add(line []byte) {
	for _, c := range line {
		if c >= utf8.RuneSelf {
			line = a.normalize(line)
			break
		}
	}
	for len(line) > 0 {
		switch _, k, n := text.Next(line); k {
		case text.Lower, text.Upper, text.Digit:
			if rest, ok := a.plainWord(line); ok {
				line = rest
				continue
			}
			line = a.word(line)
		case text.Dense:
			line = a.denseRun(line)
		default:
			line = line[n:]
		}
	}
}

// normalize returns text in NFKC, with a space in place of invalid UTF-8. Unlike
// norm.Form.Append, it allocates nothing for valid text.
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

// plainWord is a fast path for the most common word: one term of ASCII letters.
// It appends the word at the start of line and returns the rest. If line begins
// with any other word, ok is false.
func (a *analyzer) plainWord(line []byte) (rest []byte, ok bool) {
	n := 1
	for n < len(line) && text.IsLower(line[n]) {
		n++
	}
	if n < len(line) && (line[n] >= utf8.RuneSelf || text.ASCIIKinds[line[n]] != text.Separator) || text.ASCIIKinds[line[0]&0x7f] == text.Digit || line[0] >= utf8.RuneSelf {
		return nil, false
	}
	start := len(a.bytes)
	a.bytes = append(a.bytes, line[:n]...)
	a.bytes[start] |= 'a' - 'A'
	if before := len(a.terms); n > 1 {
		a.end(start, len(a.bytes), word)
		t := &a.terms[before]
		stemmed := stem(a.bytes[t.start:t.end])
		t.end, t.last = t.start+int32(stemmed), line[stemmed-1]|('a'-'A')
	}
	return line[n:], true
}

// word appends the terms of the word at the start of line and returns the rest.
func (a *analyzer) word(line []byte) []byte {
	start := len(a.bytes)
	first := len(a.terms)
	part, last := start, start                // where the part and its last rune begin
	before, earlier := text.Lower, text.Lower // the kinds of the last two runes
	for len(line) > 0 {
		r, k, n := text.Next(line)
		if k == text.Accent {
			line = line[n:]
			continue
		}
		if k != text.Lower && k != text.Upper && k != text.Digit {
			break
		}
		if len(a.bytes) > part {
			// text.BeginsWord can't see that in "URLs" no word begins before the s,
			// nor look past accents; else this is the same rule. Digits are words.
			switch {
			case (before == text.Digit) != (k == text.Digit), before == text.Lower && k == text.Upper:
				a.end(part, len(a.bytes), word)
				part = len(a.bytes)
			case earlier == text.Upper && before == text.Upper && k == text.Lower && !plural(r, line[n:]):
				a.end(part, last, word) // HTTP|Server
				part = last
			}
		}
		last = len(a.bytes)
		a.bytes = appendFolded(a.bytes, r, line)
		earlier, before = before, k
		line = line[n:]
	}
	end := len(a.bytes)
	a.end(part, end, word)
	if part > start {
		a.bytes = append(a.bytes, a.bytes[start:end]...)
		a.end(end, len(a.bytes), whole)
	}
	// Stem only now, because the whole is made of the unstemmed parts.
	for i := first; i < len(a.terms); i++ {
		t := &a.terms[i]
		var before [maxTermBytes]byte
		copy(before[:], a.bytes[t.start:t.end])
		n := stem(a.bytes[t.start:t.end])
		t.end, t.last = t.start+int32(n), before[n-1]
	}
	return line
}

// plural reports whether r, which follows capitals, is a plural s as in "URLs".
func plural(r rune, rest []byte) bool {
	if r != 's' || len(rest) == 0 {
		return r == 's'
	}
	_, k, _ := text.Next(rest)
	return k != text.Lower
}

// denseRun appends the characters of the run at the start of line and their
// pairs, and returns the rest.
func (a *analyzer) denseRun(line []byte) []byte {
	before := -1 // start of the previous character
	for len(line) > 0 {
		_, k, n := text.Next(line)
		if k != text.Dense {
			break
		}
		for n < len(line) {
			_, k, m := text.Next(line[n:])
			if k != text.Joiner {
				break
			}
			n += m
		}
		start := len(a.bytes)
		a.bytes = append(a.bytes, line[:n]...)
		a.end(start, len(a.bytes), character)
		if before >= 0 {
			a.end(before, len(a.bytes), pair)
		}
		before = start
		line = line[n:]
	}
	return line
}

// runEnd returns the number behind the last term of the run of characters whose
// first term is i.
func (a *analyzer) runEnd(i int) int {
	for i++; i+1 < len(a.terms) && a.terms[i].form == character && a.terms[i+1].form == pair; i += 2 {
	}
	return i
}

// end appends the term a.bytes[start:end], cut to maxTermBytes. It drops a
// single ASCII letter.
func (a *analyzer) end(start, end int, f form) {
	if end-start == 1 && text.ASCIIKinds[a.bytes[start]&0x7f] == text.Lower && a.bytes[start] < utf8.RuneSelf {
		return
	}
	if end > start+maxTermBytes {
		for end = start + maxTermBytes; !utf8.RuneStart(a.bytes[end]); {
			end--
		}
	}
	a.terms = append(a.terms, span{start: int32(start), end: int32(end), full: int32(end), form: f})
}

// folded maps Latin letters that have no Unicode decomposition to ASCII.
var folded = map[rune]string{
	'đ': "d", 'ð': "d", 'ø': "o", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t",
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'þ': "th",
}

// appendFolded appends r, the first rune of line, in lower case and without
// accents.
func appendFolded(dst []byte, r rune, line []byte) []byte {
	if r < utf8.RuneSelf {
		if text.ASCIIKinds[r] == text.Upper {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if r < 0x530 || r >= 0x1e00 && r < 0x2000 { // Latin, Greek, Cyrillic
		if base := norm.NFD.Properties(line).Decomposition(); base != nil {
			r, _ = utf8.DecodeRune(base)
		}
		r = unicode.ToLower(r)
		if s, ok := folded[r]; ok {
			return append(dst, s...)
		}
	}
	return utf8.AppendRune(dst, unicode.ToLower(r))
}
