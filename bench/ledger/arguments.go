package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// arguments returns arguments that a schema most likely accepts: all required members, or the
// first of the others. Whether it does is for a call to find out.
func arguments(schema json.RawMessage) (json.RawMessage, error) {
	e := example{}
	if err := json.Unmarshal(schema, &e.root); err != nil {
		return nil, err
	}
	args, _ := e.of(e.root, 0).(map[string]any)
	properties, _ := e.root["properties"].(map[string]any)
	if len(args) == 0 && len(properties) > 0 {
		name := slices.Sorted(maps.Keys(properties))[0]
		args = map[string]any{name: e.of(properties[name], 1)}
	}
	if args == nil {
		args = map[string]any{}
	}
	return json.Marshal(args)
}

// An example is made of one schema, which has the definitions.
type example struct{ root map[string]any }

// maxDepth ends schemas that contain themselves.
const maxDepth = 8

func (e example) of(at any, depth int) any {
	s, ok := at.(map[string]any)
	if !ok || depth > maxDepth {
		return "some text"
	}
	if ref, ok := s["$ref"].(string); ok {
		return e.of(e.at(ref), depth+1)
	}
	if value, ok := s["const"]; ok {
		return value
	}
	if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	if s["properties"] == nil {
		for _, word := range []string{"anyOf", "oneOf", "allOf"} {
			if branches, ok := s[word].([]any); ok && len(branches) > 0 {
				return e.of(branches[0], depth+1)
			}
		}
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch kind {
	case "string":
		switch s["format"] {
		case "uri":
			return "https://example.com/page"
		case "date-time":
			return "2026-11-23T10:00:00Z"
		case "uuid":
			return "00000000-0000-4000-8000-000000000001"
		}
		return "some text"
	case "integer", "number":
		if least, ok := s["minimum"].(float64); ok {
			return least
		}
		return 1
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		n := 1
		if least, ok := s["minItems"].(float64); ok {
			n = int(least)
		}
		items := make([]any, n)
		for i := range items {
			items[i] = e.of(s["items"], depth+1)
		}
		return items
	}
	object := make(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			object[name] = e.of(properties[name], depth+1)
		}
	}
	return object
}

// at returns what a reference within the schema points to.
func (e example) at(ref string) any {
	var to any = e.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		members, _ := to.(map[string]any)
		to = members[name]
	}
	return to
}
