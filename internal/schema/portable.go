package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// IsPortable reports whether whoever compiles a schema can be expected to take it. Clients compile the
// output schemas of a list of tools; one that fails costs them the list, with the tools of all
// servers. So it must be valid in drafts 7 and 2020-12, whatever it names, refer to
// nothing outside, and have patterns that JavaScript reads as Go does. What Ajv refuses besides
// is listed in [isRefused].
func IsPortable(schema json.RawMessage) (is bool) {
	defer func() {
		if recover() != nil { // a panic in the library
			is = false
		}
	}()
	compiling.Lock()
	defer compiling.Unlock()
	decoded, err := decodeJSON(schema)
	doc, ok := decoded.(map[string]any)
	if err != nil || !ok || !(&gauge{left: maxSchemaValues / 2}).fits(doc, 0, 0) || isRefused(doc) {
		return false
	}
	if properties, ok := doc["properties"].(map[string]any); ok { // the SDK for TypeScript wants objects
		for _, p := range properties {
			if _, ok := p.(map[string]any); !ok {
				return false
			}
		}
	}
	delete(doc, "$schema")
	expressions := newPatterns()
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		c := jsonschema.NewCompiler()
		c.UseLoader(nil)
		c.UseRegexpEngine(func(expression string) (jsonschema.Regexp, error) {
			compiled, err := expressions.compile(expression) // which has a limit
			if err == nil && !isPortablePattern(expression) {
				err = errBroken
			}
			return compiled, err
		})
		c.DefaultDraft(draft)
		const location = "schema://tool/output"
		if c.AddResource(location, doc) != nil {
			return false
		}
		if _, err := c.Compile(location); err != nil {
			return false
		}
	}
	return true
}

// Where schemas stand in a schema.
var (
	schemasByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	schemasAlone  = []string{"items", "prefixItems", "additionalItems", "additionalProperties", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "contains", "propertyNames"}
)

// isRefused reports whether Ajv 8 refuses a valid schema, or one within it: for the word id of draft
// 4, for nullable without a type, and for an enum without values. Neither takes it a reference to
// another document.
func isRefused(schema any) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, isRefused)
	case map[string]any:
		ref, refers := s["$ref"].(string)
		values, isEnum := s["enum"].([]any)
		_, isNullable := s["nullable"]
		_, hasID := s["id"]
		if hasID || isNullable && s["type"] == nil || isEnum && len(values) == 0 || refers && !strings.HasPrefix(ref, "#") {
			return true
		}
		for _, keyword := range schemasByName {
			within, _ := s[keyword].(map[string]any)
			for _, one := range within {
				if isRefused(one) {
					return true
				}
			}
		}
		return slices.ContainsFunc(schemasAlone, func(keyword string) bool { return isRefused(s[keyword]) })
	}
	return false
}

// isPortablePattern reports whether a regular expression of Go's is one in JavaScript with the flag u,
// and most likely the same.
func isPortablePattern(expression string) bool {
	inClass := false
	for rest := expression; rest != ""; {
		switch c := rest[0]; {
		case c == '\\':
			n := escape(rest, inClass)
			if n == 0 {
				return false
			}
			rest = rest[n:]
			continue
		case inClass && strings.HasPrefix(rest, "[:"):
			return false
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
			if first := strings.TrimPrefix(rest[1:], "^"); strings.HasPrefix(first, "]") {
				return false
			}
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return false
		case c == ']', c == '}':
			return false
		case c == '{':
			n := strings.IndexByte(rest, '}')
			if n < 0 || !isRepetition(rest[1:n]) {
				return false
			}
			rest = rest[n:]
		}
		rest = rest[1:]
	}
	return true
}

// escape returns how long the escape at the start of an expression is, or 0 if it is not portable.
func escape(expression string, inClass bool) int {
	switch c := expression[1]; {
	case strings.IndexByte(`dDwWsStnrfv^$\.*+?()[]{}|/`, c) >= 0, inClass && c == '-', !inClass && strings.IndexByte("bB", c) >= 0:
		return 2
	case c == 'x' && len(expression) >= 4 && expression[2] != '{': // Go has parsed it
		return 4
	}
	return 0
}

// isRepetition reports whether what stands in braces is one: n, n, or n,m.
func isRepetition(s string) bool {
	least, most, _ := strings.Cut(s, ",")
	isDigits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return least != "" && isDigits(least) && isDigits(most)
}
