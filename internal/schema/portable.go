package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// IsPortable reports whether whoever compiles a schema can be expected to take it. Clients compile the
// output schemas of a list of tools; one that fails costs them the list, with the tools of all
// servers. So it must be valid in drafts 7 and 2020-12, whatever it names, refer to
// nothing outside, and have patterns that JavaScript reads as Go does. What Ajv refuses besides
// is listed in [refusedAt].
func IsPortable(schema json.RawMessage) bool {
	_, is := Unportable(schema)
	return !is
}

// Unportable reports whether a schema is not portable, and returns where: the JSON pointer of
// a part for which it is not, or "" if that is the whole or can't be told.
func Unportable(schema json.RawMessage) (at string, is bool) {
	defer func() {
		if recover() != nil { // a panic in the library
			at, is = "", true
		}
	}()
	compiling.Lock()
	defer compiling.Unlock()
	decoded, err := decodeJSON(schema)
	doc, ok := decoded.(map[string]any)
	if err != nil || !ok || !(&gauge{left: maxSchemaValues / 2}).fits(doc, 0, 0) {
		return "", true
	}
	expressions := newPatterns()
	engine := func(expression string) (jsonschema.Regexp, error) {
		compiled, err := expressions.compile(expression) // which has a limit
		if err == nil && !isPortablePattern(expression) {
			err = errBroken
		}
		return compiled, err
	}
	if at, is := refusedAt("", doc, engine); is {
		return at, true
	}
	if properties, ok := doc["properties"].(map[string]any); ok { // the SDK for TypeScript wants objects
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, ok := properties[name].(map[string]any); !ok {
				return below("/properties", name), true
			}
		}
	}
	delete(doc, "$schema")
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		c := jsonschema.NewCompiler()
		c.UseLoader(nil)
		c.UseRegexpEngine(engine)
		c.DefaultDraft(draft)
		const location = "schema://tool/output"
		if err := c.AddResource(location, doc); err != nil {
			return placeOf(err), true
		}
		if _, err := c.Compile(location); err != nil {
			return placeOf(err), true
		}
	}
	return "", false
}

// placeOf returns the JSON pointer to what a schema can't be compiled for, or "" if the error
// does not tell. Of a reference to a part that is not there, it is where that would be.
func placeOf(err error) (at string) {
	invalid, missing := new(jsonschema.SchemaValidationError), new(jsonschema.JSONPointerNotFoundError)
	whole := new(jsonschema.ValidationError)
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &whole):
		for _, name := range firstPlace(whole) {
			at = below(at, name)
		}
	case errors.As(err, &missing):
		_, fragment, _ := strings.Cut(missing.URL, "#")
		at, _ = url.PathUnescape(fragment)
	}
	return text.Line(at, maxPlace)
}

// firstPlace returns the first place at which there is a mistake. The library has them in the order
// of a map.
func firstPlace(e *jsonschema.ValidationError) (first []string) {
	if len(e.Causes) == 0 {
		return e.InstanceLocation
	}
	for i, cause := range e.Causes {
		if place := firstPlace(cause); i == 0 || slices.Compare(place, first) < 0 {
			first = place
		}
	}
	return first
}

// below returns the JSON pointer of a member, or an element, of the value at another one.
func below(at, name string) string {
	return text.Line(at+"/"+pointerEscapes.Replace(name), maxPlace)
}

// maxPlace is how many bytes a JSON pointer has that is told.
const maxPlace = 200

// Where schemas stand in a schema.
var (
	schemasByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	schemasAlone  = []string{"items", "prefixItems", "additionalItems", "additionalProperties", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "contains", "propertyNames"}
)

// refusedAt reports whether Ajv 8 refuses a valid schema, or one within it, and returns where. at is
// the schema's own place. Ajv refuses the word id of draft 4, nullable without a type, an enum
// without values, and a reference to another document. A pattern is refused if engine fails.
func refusedAt(at string, schema any, engine jsonschema.RegexpEngine) (place string, is bool) {
	switch s := schema.(type) {
	case []any:
		for i, one := range s {
			if place, is := refusedAt(below(at, strconv.Itoa(i)), one, engine); is {
				return place, true
			}
		}
	case map[string]any:
		ref, refers := s["$ref"].(string)
		values, isEnum := s["enum"].([]any)
		_, isNullable := s["nullable"]
		_, hasID := s["id"]
		pattern, isPattern := s["pattern"].(string)
		byPattern, _ := s["patternProperties"].(map[string]any)
		takes := func(pattern string) bool { _, err := engine(pattern); return err == nil }
		switch {
		case hasID:
			return below(at, "id"), true
		case isNullable && s["type"] == nil:
			return below(at, "nullable"), true
		case isEnum && len(values) == 0:
			return below(at, "enum"), true
		case refers && !strings.HasPrefix(ref, "#"):
			return below(at, "$ref"), true
		case isPattern && !takes(pattern):
			return below(at, "pattern"), true
		case slices.ContainsFunc(slices.Sorted(maps.Keys(byPattern)), func(p string) bool { return !takes(p) }):
			return below(at, "patternProperties"), true
		}
		for _, keyword := range schemasByName {
			within, _ := s[keyword].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(within)) {
				if place, is := refusedAt(below(below(at, keyword), name), within[name], engine); is {
					return place, true
				}
			}
		}
		for _, keyword := range schemasAlone {
			if place, is := refusedAt(below(at, keyword), s[keyword], engine); is {
				return place, true
			}
		}
	}
	return "", false
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
