package jq

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxShape is about how many bytes the description of a shape has, and shapeDepth how many
// arrays and objects in each other it describes.
const (
	maxShape   = 400
	shapeDepth = 4
)

// Shape describes the JSON in a text in one line, so that a model can write an expression for it:
//
//	{items: [120 × {id: number, title: string, user: {name: string}}], total: number}
//
// Of an array it has the number of elements and the shape of the first one. It is "" if there is
// no JSON to select from.
func (Selector) Shape(text string) string {
	value, err := decode(text)
	if err != nil {
		return ""
	}
	var out strings.Builder
	describe(&out, value, shapeDepth)
	return out.String()
}

func describe(out *strings.Builder, v any, depth int) {
	switch v := v.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString("boolean")
	case json.Number:
		out.WriteString("number")
	case string:
		out.WriteString("string")
	case []any:
		fmt.Fprintf(out, "[%d", len(v))
		if len(v) > 0 {
			out.WriteString(" × ")
			inside(out, v[0], depth)
		}
		out.WriteByte(']')
	case map[string]any:
		out.WriteByte('{')
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for i, key := range keys {
			if i > 0 {
				out.WriteString(", ")
			}
			if out.Len() > maxShape {
				fmt.Fprintf(out, "%d more", len(keys)-i)
				break
			}
			out.WriteString(nameOf(key) + ": ")
			inside(out, v[key], depth)
		}
		out.WriteByte('}')
	}
}

// inside describes a part, or says that there is one.
func inside(out *strings.Builder, v any, depth int) {
	if depth--; depth > 0 && out.Len() <= maxShape {
		describe(out, v, depth)
		return
	}
	switch v.(type) {
	case []any:
		out.WriteString("[…]")
	case map[string]any:
		out.WriteString("{…}")
	default:
		describe(out, v, depth)
	}
}

// maxKey is how many bytes of a key a shape has.
const maxKey = 60

// nameOf returns a key as an expression has it behind a dot, or in quotes.
func nameOf(key string) string {
	for i, r := range key {
		if r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9' {
			continue
		}
		return fmt.Sprintf("%.62q", cut(key[:min(len(key), maxKey)]))
	}
	if key == "" {
		return `""`
	}
	if len(key) > maxKey {
		return key[:maxKey] + "…"
	}
	return key
}

// maxStarts is how many lines are tried.
const maxStarts = 16

// findJSON returns the JSON of a text: all of it, or what begins with a line and goes on to the
// end, as where a server describes its structured content in words.
func findJSON(text string) (string, bool) {
	if json.Valid([]byte(text)) {
		return text, true
	}
	tried, start := 0, 0
	for line := range strings.Lines(text) {
		if start > 0 && (line[0] == '{' || line[0] == '[') {
			if json.Valid([]byte(text[start:])) {
				return text[start:], true
			}
			if tried++; tried == maxStarts {
				break
			}
		}
		start += len(line)
	}
	return "", false
}
