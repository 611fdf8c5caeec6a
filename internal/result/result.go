// Package result cuts the result of a tool that is too long for a model, and
// reads a long text page by page. It splits no character, and no line where
// one ends near the cut.
package result

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// Cut returns r and "" if its texts have at most limit bytes. Otherwise
// it returns a copy with the beginning and the end of the whole text, two
// thirds and one third of limit at most, and the whole text.
//
// The texts of r are those of its text contents and of its embedded resources;
// the whole text is these as lines, that is joined by "\n", which count too.
// What note says of it, that whole[from:to] is left out of total bytes, stands
// where that was, in the content in which the beginning ends. Contents of
// which nothing is left are left out. All else in r is kept as it is, its
// structured content and whatever is no text for one. A nil r is kept too.
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
	start := 0 // of c's text in the whole
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

// textOf returns the text of c and what makes c with another text. The latter
// is nil if c is no text.
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

// Page returns the part of text that begins at byte from, or after the code
// point that from is within, and where the next part begins: len(text) after
// the last. The part has at most limit bytes and ends as headEnd says, but has
// at least one code point, so that page after page gives the text.
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

// headEnd returns where the beginning of text ends that has at most limit
// bytes and ends with a line, if one ends in its last tenth, or a character.
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

// tailStart returns where the end of text begins that has at most limit bytes,
// fewer than text, and begins with a line, if one begins in its first tenth,
// or a character.
func tailStart(text string, limit int) int {
	n := boundary(text, len(text)-limit, +1)
	if i := strings.IndexByte(text[n-1:n+(len(text)-n)/10], '\n'); i >= 0 {
		n += i
	}
	return n
}

// maxCharacter is how many bytes a character may have that is never split. A
// family of four with skin tones has 41.
const maxCharacter = 64

// boundary returns the first place from i on, in steps of +1 or -1, where no
// character is split; if that is too far, where no code point is.
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

// splits reports whether i is within a character: within a code point, or next
// to one that belongs to the other. That is what Unicode calls a grapheme
// cluster, without conjuncts and without Hangul in parts.
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
		return true // \u0e33 and \u0eb3 are vowels that Unicode has as letters
	case '\U0001f3fb' <= next && next <= '\U0001f3ff', '\U000e0020' <= next && next <= '\U000e007f':
		return true // skin tones; the letters of a region's flag
	}
	// Regional indicators are flags two by two.
	const regional = "\xf0\x9f\x87"
	j := i
	for j >= 0 && j > i-maxCharacter && strings.HasPrefix(text[j:], regional) {
		j -= len("🇦")
	}
	return j < i && (i-j)/len("🇦")%2 == 0
}

// inside reports whether i is within the UTF-8 encoding of a code point.
func inside(text string, i int) bool {
	for j := i - 1; j >= max(0, i-3) && i < len(text); j-- {
		if utf8.RuneStart(text[j]) {
			_, n := utf8.DecodeRuneInString(text[j:])
			return j+n > i
		}
	}
	return false
}
