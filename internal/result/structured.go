package result

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Servers that send structured content should send a text with the same JSON too. Some send
// only the value of its one member as a text, or a text for each element. A model need not read
// both.

// Structured returns the structured content of r as JSON, or nil if there is none. The error
// is of a value of a host.
func Structured(r *mcp.CallToolResult) (json.RawMessage, error) {
	if r.RawStructuredContent != nil || r.StructuredContent == nil {
		return r.RawStructuredContent, nil
	}
	return json.Marshal(r.StructuredContent)
}

// Texts returns the text from which parts of r can be selected, which is its structured
// content if it has any, and the whole text of r, which has both unless they say the same. Where
// structured content is a member with the text, as some servers wrap it, parts are of the text.
func Texts(r *mcp.CallToolResult) (source, whole string) {
	var texts []string
	for _, c := range r.Content {
		plain, _ := Direct(c)
		if text, with := textOf(plain); with != nil {
			texts = append(texts, text)
		}
	}
	whole = strings.Join(texts, "\n")
	raw, _ := Structured(r)
	if text.IsNull(raw) {
		return whole, whole
	}
	if !Says(texts, raw) {
		return string(raw), strings.Join(append(texts, string(raw)), "\n")
	}
	var members map[string]string
	if json.Unmarshal(raw, &members) == nil && len(members) == 1 {
		return whole, whole
	}
	return string(raw), whole
}

// WithText returns r with one text in place of its texts, where the first of them stands, and
// without structured content.
func WithText(r *mcp.CallToolResult, text string) *mcp.CallToolResult {
	result := withText(r, text, 0, len(r.Content))
	result.StructuredContent, result.RawStructuredContent = nil, nil
	return result
}

// withText returns r with one text in place of its texts from and up to those numbers, or first if
// there are none.
func withText(r *mcp.CallToolResult, text string, from, to int) *mcp.CallToolResult {
	result := *r
	result.Content = make([]mcp.Content, 0, len(r.Content)+1)
	number := 0
	for _, c := range r.Content {
		plain, _ := Direct(c)
		if plain == nil {
			continue
		}
		if _, with := textOf(plain); with != nil {
			if number++; number-1 == from {
				plain = with(text)
			} else if number > from && number <= to {
				continue
			}
		}
		result.Content = append(result.Content, plain)
	}
	if number <= from {
		result.Content = append([]mcp.Content{mcp.NewTextContent(text)}, result.Content...)
	}
	return &result
}

// Says reports whether structured content is, or all that it consists of is, among texts.
func Says(texts []string, structured json.RawMessage) bool {
	said, _, _ := compare(texts, structured)
	return said
}

// compare reports whether texts say all that structured content says, and which of them, from and
// up to those numbers, say only that; from is to if there are none. A text with more values than the
// structured content is not decoded: what that takes in memory has a limit, and what texts
// take has none.
func compare(texts []string, structured json.RawMessage) (all bool, from, to int) {
	most := values(structured)
	if most > maxCompared {
		i := slices.IndexFunc(texts, func(t string) bool { return isSame(t, structured) })
		return i >= 0, max(i, 0), i + 1
	}
	var v any
	if text.IsNull(structured) || json.Unmarshal(structured, &v) != nil {
		return false, 0, 0
	}
	said, forms := make(map[string]bool), make([][2]string, len(texts))
	for i, t := range append(texts[:len(texts):len(texts)], strings.Join(texts, "\n")) {
		var form [2]string
		if len(t) <= len(structured) {
			form[0] = text.JSON(t)
		}
		if i < len(texts) && values(t) <= most {
			form[1] = canonical(t)
		}
		if said[form[0]], said[form[1]] = true, true; i < len(texts) {
			forms[i] = form
		}
	}
	if !says(said, v, maxDepth) {
		return false, 0, 0
	}
	whole := text.JSON(v)
	for i, form := range forms {
		if form[0] == whole || form[1] == whole {
			return true, i, i + 1
		}
	}
	if areParts(forms, v, maxDepth) {
		to = len(texts)
	}
	return true, 0, to
}

// maxCompared is how many values structured content may have that is decoded to be compared with
// texts. Of more, a text says all or nothing.
const maxCompared = 20_000

// isSame reports whether a text is the same JSON, but for spaces.
func isSame(t string, structured json.RawMessage) bool {
	if t == string(structured) { // copies nothing
		return json.Valid(structured)
	}
	return json.Valid([]byte(t)) && bytes.Equal(text.Compact([]byte(t)), text.Compact(structured))
}

// maxDepth is how many levels down texts may say what structured content consists of.
const maxDepth = 3

// values returns how many values JSON has, or more.
func values[T string | json.RawMessage](of T) (n int) {
	n = 1
	for i := range len(of) {
		switch of[i] {
		case ',', '[', '{':
			n++
		}
	}
	return n
}

// canonical returns the JSON of a text as it would be written here, or "".
func canonical(t string) string {
	var v any
	if json.Unmarshal([]byte(t), &v) != nil {
		return ""
	}
	return text.JSON(v)
}

// says reports whether v is, or all that it consists of is, among texts, at most depth
// levels down.
func says(texts map[string]bool, v any, depth int) bool {
	if texts[text.JSON(v)] {
		return true
	}
	elements := parts(v)
	for _, e := range elements {
		if depth == 0 || !says(texts, e, depth-1) {
			return false
		}
	}
	return len(elements) > 0
}

// parts returns the elements of an array, or the value of an object's one member.
func parts(v any) (elements []any) {
	switch v := v.(type) {
	case []any:
		elements = v
	case map[string]any:
		if len(v) == 1 {
			for _, value := range v {
				elements = []any{value}
			}
		}
	}
	return elements
}

// areParts reports whether texts are the parts of v, in order, and nothing else. Each text has
// two forms: itself as a string, and what it is as JSON.
func areParts(texts [][2]string, v any, depth int) bool {
	elements := parts(v)
	is := func(t [2]string, v any) bool { said := text.JSON(v); return said == t[0] || said == t[1] }
	if len(elements) == 1 && depth > 0 && areParts(texts, elements[0], depth-1) {
		return true
	}
	for i, e := range elements {
		if len(elements) != len(texts) || !is(texts[i], e) {
			return false
		}
	}
	return len(elements) > 0
}

// sayOnce returns r so that no model reads twice what structured content and the texts say both.
// It does that only where one of them does not fit, since a client may want either. The
// texts that say nothing else become the structured content, if that is shorter. If then both
// fit, or a client counts on the structured content, both stay, otherwise the texts alone.
func sayOnce(r *mcp.CallToolResult, b Bounds) *mcp.CallToolResult {
	raw, err := Structured(r)
	if err != nil || text.IsNull(raw) {
		return r
	}
	var texts []string
	for _, c := range r.Content {
		plain, _ := Direct(c)
		if t, with := textOf(plain); with != nil {
			texts = append(texts, t)
		}
	}
	fits := func(texts []string) bool { return len(strings.Join(texts, "\n")) <= max(b.Text, 0) && b.holds(raw) }
	if fits(texts) {
		return r
	}
	all, from, to := compare(texts, raw)
	if !all {
		return r
	}
	result := *r
	if compact := text.Compact(raw); len(compact) < len(strings.Join(texts[from:to], "\n")) {
		result = *withText(r, string(compact), from, to)
		texts = slices.Replace(texts, from, to, string(compact))
	}
	if !fits(texts) && !(b.Promised && b.holds(raw)) {
		result.StructuredContent, result.RawStructuredContent = nil, nil
	}
	return &result
}
