package jq

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// maxShape is about how many bytes the description of a shape has, and shapeDepth how many
// arrays and objects in each other it describes, if there is room.
const (
	maxShape   = 600
	shapeDepth = 6
)

// Shape describes the JSON in a text in one line, so that a model can write an expression for it:
//
//	{items: [120 × {id: number, title: string, user: {name: string}}], total: number}
//
// Of an array it has the number of elements and the shape of the first one, and of an object
// with many members of one kind the first one, the next name, and how many more there are:
//
//	{versions: {"1.0.0": {license: string}, "1.0.1", 62 more}}
//
// It goes as deep as its length permits. It is "" if there is no JSON to select from.
func (Selector) Shape(text string) string {
	value, err := decode(text)
	if err != nil {
		return ""
	}
	for depth := shapeDepth; ; depth-- {
		var out strings.Builder
		if describe(&out, value, depth); out.Len() <= maxShape || depth == 1 {
			return out.String()
		}
	}
}

// describe describes v, at most depth levels down, and no more soon after [maxShape].
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
		switch {
		case depth == 0:
			out.WriteString("[…]")
		case len(v) == 0:
			out.WriteString("[0]")
		default:
			fmt.Fprintf(out, "[%d × ", len(v))
			describe(out, v[0], depth-1)
			out.WriteByte(']')
		}
	case map[string]any:
		if depth == 0 {
			out.WriteString("{…}")
			return
		}
		members(out, v, depth-1)
	}
}

// members describes an object.
func members(out *strings.Builder, v map[string]any, depth int) {
	keys := slices.Sorted(maps.Keys(v))
	few := len(keys) > maxAlike && areAlike(v)
	out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			out.WriteString(", ")
		}
		if out.Len() > maxShape || few && i == 2 {
			fmt.Fprintf(out, "%d more", len(keys)-i)
			break
		}
		out.WriteString(nameOf(key))
		if few && i == 1 {
			continue
		}
		out.WriteString(": ")
		describe(out, v[key], depth)
	}
	out.WriteByte('}')
}

// maxAlike is how many members an object may have that are all described though they are of one
// kind: more are entries under names that are data.
const maxAlike = 8

// areAlike reports whether all members are of one kind.
func areAlike(v map[string]any) bool {
	kind := ""
	for _, e := range v {
		of := gojq.TypeOf(e)
		if kind != "" && kind != of {
			return false
		}
		kind = of
	}
	return true
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
