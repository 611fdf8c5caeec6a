package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A schema with arguments that are sent as headers may have so many levels, and so many
// bytes in the paths of all its objects together: mcp-go makes a path for each property.
const (
	maxMirrored = 500
	maxPaths    = 4 << 20
)

// mirror notes a tool with arguments that must be sent as headers too. Clients must
// not use a tool that asks for headers in a wrong way.
func (l *listing) mirror(raw json.RawMessage) error {
	var in struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	if !l.mirrors || !mayMirror(raw) || json.Unmarshal(raw, &in) != nil {
		return nil
	}
	name := text.Line(in.Name, text.MaxName)
	deepest, paths := extent(in.Schema)
	if deepest > maxMirrored {
		return fmt.Errorf("the schema of %q has x-mcp-header annotations and more levels than the limit of %d", name, maxMirrored)
	}
	if paths > maxPaths {
		return fmt.Errorf("the schema of %q has x-mcp-header annotations and longer paths than the limit of %d bytes", name, maxPaths)
	}
	tool := mcp.Tool{Name: in.Name, RawInputSchema: in.Schema}
	if mcp.ValidateParamHeaderAnnotations(&tool) != nil {
		return fmt.Errorf("the x-mcp-header annotations of %q are invalid", name)
	}
	if _, ok := l.mirrored[in.Name]; !ok && len(mcp.ExtractParamHeaderBindings(&tool)) > 0 {
		if l.mirrored == nil {
			l.mirrored = make(map[string]mcp.Tool)
		}
		l.mirrored[in.Name] = tool
	}
	return nil
}

// mayMirror reports whether there may be an x-mcp-header annotation in a definition,
// in whatever case, and escaped or not.
func mayMirror(raw json.RawMessage) bool {
	return bytes.Contains(bytes.ToLower(raw), []byte("x-mcp-header")) || bytes.Contains(raw, []byte(`\u00`))
}

// extent returns how many objects and arrays of a JSON text are at most in each other,
// and how many bytes the names have that lead to each of them, all together.
func extent(raw json.RawMessage) (deepest, paths int) {
	var outer []int // bytes of the names that lead to each open object or array
	path, name := 0, 0
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := d.Token()
		if err != nil {
			return deepest, paths
		}
		switch token := token.(type) {
		case string:
			name = len(token)
			continue
		case json.Delim:
			if token == '{' || token == '[' {
				outer = append(outer, path)
				path += name
				paths += path
				deepest = max(deepest, len(outer))
			} else {
				path, outer = outer[len(outer)-1], outer[:len(outer)-1]
			}
		}
		name = 0
	}
}
