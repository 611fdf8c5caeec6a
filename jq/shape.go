package jq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
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
	text, err := check(text)
	if err != nil {
		return ""
	}
	value := bytes.TrimSpace([]byte(text))
	for depth := shapeDepth; ; depth-- {
		var out strings.Builder
		if describe(&out, value, depth); out.Len() <= maxShape || depth == 1 {
			return out.String()
		}
	}
}

// kindOf returns the kind of a JSON value that has no spaces before it.
func kindOf(value []byte) string {
	switch value[0] {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return "number"
}

// describe describes a value, at most depth levels down, and no more soon after [maxShape]. It
// decodes nothing: what that takes is many times the text.
func describe(out *strings.Builder, value []byte, depth int) {
	s := text.Scan(value)
	switch kind := kindOf(value); {
	case kind == "array" && depth == 0:
		out.WriteString("[…]")
	case kind == "array":
		var first []byte
		n := 0
		for s.Open('['); s.More(); n++ {
			if e := s.Value(); n == 0 {
				first = e
			}
		}
		if n == 0 {
			out.WriteString("[0]")
			return
		}
		fmt.Fprintf(out, "[%d × ", n)
		describe(out, first, depth-1)
		out.WriteByte(']')
	case kind == "object" && depth == 0:
		out.WriteString("{…}")
	case kind == "object":
		all := make(map[string][]byte)
		for s.Open('{'); s.More(); {
			var key string
			_ = json.Unmarshal(s.Value(), &key)
			all[key] = s.Value()
		}
		members(out, all, depth-1)
	default:
		out.WriteString(kind)
	}
}

// members describes an object.
func members(out *strings.Builder, v map[string][]byte, depth int) {
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
func areAlike(v map[string][]byte) bool {
	kind := ""
	for _, e := range v {
		of := kindOf(e)
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
		return strconv.Quote(text.Cut(key, maxKey))
	}
	if key == "" {
		return `""`
	}
	return text.Cut(key, maxKey)
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
