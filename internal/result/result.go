// Package result shortens a tool result that is too long for a model, and keeps the whole
// text, within a limit for all sessions, to read on in pages. It never splits a character.
// It cuts at the end of a line if there is one near the cut. It also says of a result what a
// host or a log wants: whether it failed, and its first line.
package result

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// Cut returns r and "" if the texts of r have at most limit bytes, or if r is nil.
// Otherwise it returns a shortened copy and the whole text. The copy keeps the start
// of the whole text, at most two thirds of limit, and its end, at most one third.
//
// The texts of r are its text contents and the texts of its embedded resources. The
// whole text joins them with "\n", which counts too. Cut inserts note(from, to,
// total) where it left out whole[from:to] of total bytes, in the content in which
// the start ends. It drops contents with no text left. It keeps everything else,
// including structured content and contents that are no text.
func Cut(r *mcp.CallToolResult, limit int, note func(from, to, total int) string) (cut *mcp.CallToolResult, whole string) {
	if r == nil {
		return nil, ""
	}
	var texts []string
	for _, c := range r.Content {
		if text, with := textOf(c); with != nil {
			texts = append(texts, text)
		}
	}
	whole = strings.Join(texts, "\n")
	limit = max(limit, 0)
	if len(whole) <= limit {
		return r, ""
	}
	from, to := headEnd(whole, limit-limit/3), tailStart(whole, limit/3)
	message := note(from, to, len(whole))

	result := *r
	result.Content = make([]mcp.Content, 0, len(r.Content))
	start := 0 // offset of c's text in the whole text
	for _, c := range r.Content {
		text, with := textOf(c)
		if with == nil {
			result.Content = append(result.Content, c)
			continue
		}
		end := start + len(text)
		left := whole[start:max(start, min(end, from))]
		if from <= end+len("\n") {
			left += message
			message = ""
		}
		left += whole[min(end, max(start, to)):end]
		if left == text {
			result.Content = append(result.Content, c)
		} else if left != "" {
			result.Content = append(result.Content, with(left))
		}
		start = end + len("\n")
	}
	return &result, whole
}

// textOf returns the text of c and a function that returns c with another text. The
// function is nil if c has no text.
func textOf(c mcp.Content) (text string, with func(text string) mcp.Content) {
	switch c := c.(type) {
	case mcp.TextContent:
		return c.Text, func(text string) mcp.Content { c.Text = text; return c }
	case mcp.EmbeddedResource:
		if res, ok := c.Resource.(mcp.TextResourceContents); ok {
			return res.Text, func(text string) mcp.Content { res.Text = text; c.Resource = res; return c }
		}
	}
	return "", nil
}

// Page returns the part of text at byte from and the offset of the next part, which
// is len(text) after the last part. If from is inside a code point, the part begins
// after it. The part has at most limit bytes, but at least one code point, and ends
// as headEnd says. The parts of all pages together give the text.
func Page(text string, from, limit int) (part string, next int) {
	from = min(max(from, 0), len(text))
	for inside(text, from) {
		from++
	}
	rest := text[from:]
	n := headEnd(rest, limit)
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
	}
	return rest[:n], from + n
}

// headEnd returns the end of the longest start of text within limit bytes. It ends
// after a line if a line ends in the last tenth, otherwise after a character.
func headEnd(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := boundary(text, max(limit, 0), -1)
	least := n - n/10
	if i := strings.LastIndexByte(text[max(0, least-1):n], '\n'); i >= 0 {
		return least + i
	}
	return n
}

// tailStart returns the beginning of the longest end of text within limit bytes,
// which must be fewer than the text has. It begins with a line if a line begins in
// the first tenth, otherwise with a character.
func tailStart(text string, limit int) int {
	n := boundary(text, len(text)-limit, +1)
	if i := strings.IndexByte(text[n-1:n+(len(text)-n)/10], '\n'); i >= 0 {
		n += i
	}
	return n
}

// maxCharacter is the greatest length, in bytes, of a character that is never split.
// The emoji of a family of four with skin tones has 41.
const maxCharacter = 64

// boundary returns the first offset from i on, in steps of +1 or -1, that splits no
// character. If it is too far away, it returns the first that splits no code point.
func boundary(text string, i, step int) int {
	for n := 0; n <= maxCharacter; n++ {
		if at := i + n*step; !splits(text, at) {
			return at
		}
	}
	for inside(text, i) {
		i += step
	}
	return i
}

// splits reports whether offset i is inside a character: inside a code point, or
// between code points that belong together. Characters are the grapheme clusters of
// Unicode, except for conjuncts and decomposed Hangul.
func splits(text string, i int) bool {
	if i <= 0 || i >= len(text) {
		return false
	}
	if inside(text, i) {
		return true
	}
	prev, _ := utf8.DecodeLastRuneInString(text[:i])
	next, _ := utf8.DecodeRuneInString(text[i:])
	switch {
	case unicode.IsControl(prev):
		return prev == '\r' && next == '\n'
	case prev == '\u200d', unicode.In(next, unicode.M, unicode.Join_Control), next == '\u0e33', next == '\u0eb3':
		return true // Unicode classes the vowels \u0e33 and \u0eb3 as letters
	case '\U0001f3fb' <= next && next <= '\U0001f3ff', '\U000e0020' <= next && next <= '\U000e007f':
		return true // skin tones and the letters of flag tags
	}
	// Two regional indicators make a flag.
	const regional = "\xf0\x9f\x87"
	j := i
	for j >= 0 && j > i-maxCharacter && strings.HasPrefix(text[j:], regional) {
		j -= len("🇦")
	}
	return j < i && (i-j)/len("🇦")%2 == 0
}

// inside reports whether offset i is inside the UTF-8 encoding of a code point.
func inside(text string, i int) bool {
	for j := i - 1; j >= max(0, i-3) && i < len(text); j-- {
		if utf8.RuneStart(text[j]) {
			_, n := utf8.DecodeRuneInString(text[j:])
			return j+n > i
		}
	}
	return false
}
