package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An Example shows how to leave out optional parameters: the arguments with
// placeholders for them, which is wrong, and without.
type Example struct{ Wrong, Right string }

// The limits on the parameters of an example and on the length of their names.
const (
	maxRequiredShown = 3
	maxOptionalShown = 4
	maxParameterName = 40
)

// ExampleOf returns an example for a schema of arguments if it has both required
// and optional parameters, all with plain names.
func ExampleOf(schema json.RawMessage) (e Example, ok bool) {
	var in struct {
		Properties json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &in) != nil {
		return e, false
	}
	properties, err := text.Members(in.Properties)
	if err != nil {
		return e, false
	}
	var required, optional []string
	for _, p := range properties {
		switch needed := slices.Contains(in.Required, p.Name); {
		case !text.IsSafeName(p.Name) || len(p.Name) > maxParameterName:
			return e, false
		case needed:
			required = append(required, `"`+p.Name+`": `+exampleValue(p.Value, true))
		case len(optional) < maxOptionalShown:
			optional = append(optional, `"`+p.Name+`": `+exampleValue(p.Value, false))
		}
	}
	if len(optional) == 0 || len(required) == 0 || len(required) > maxRequiredShown {
		return e, false
	}
	e.Right = "{" + strings.Join(required, ", ") + "}"
	e.Wrong = "{" + strings.Join(append(required, optional...), ", ") + "}"
	return e, true
}

// exampleValue returns a value for a parameter of that schema: a placeholder if
// the parameter is given, and an empty value if it should be left out.
func exampleValue(schema json.RawMessage, given bool) string {
	var is struct{ Type string }
	_ = json.Unmarshal(schema, &is) // on an error the type is unknown
	values := map[string][2]string{
		"string": {`""`, `"…"`}, "integer": {"0", "1"}, "number": {"0", "1"}, "boolean": {"false", "true"},
		"array": {"[]", "[…]"}, "object": {"{}", "{…}"},
	}
	pair, ok := values[is.Type]
	switch {
	case !ok && given:
		return `"…"`
	case !ok:
		return "null"
	case given:
		return pair[1]
	}
	return pair[0]
}
