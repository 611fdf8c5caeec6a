package mcphybrid

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A parameterExample tells by a real tool how optional parameters are left out.
type parameterExample struct{ wrong, right string }

// How many parameters an example has, and how long their names may be.
const (
	maxRequiredShown = 3
	maxOptionalShown = 4
	maxParameterName = 40
)

// exampleOf returns an example of t, if it has parameters that must and others
// that need not be given, all plainly named.
func exampleOf(t *BridgeTool) (e parameterExample, ok bool) {
	var schema struct {
		Properties json.RawMessage
		Required   []string
	}
	if json.Unmarshal(t.def.input, &schema) != nil {
		return e, false
	}
	properties, err := text.Members(schema.Properties)
	if err != nil {
		return e, false
	}
	var required, optional []string
	for _, p := range properties {
		switch needed := slices.Contains(schema.Required, p.Name); {
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
	e.right = "{" + strings.Join(required, ", ") + "}"
	e.wrong = "{" + strings.Join(append(required, optional...), ", ") + "}"
	return e, true
}

// exampleValue returns a value for a parameter of that schema: one that stands
// for any or, for what should have been left out, an empty one.
func exampleValue(schema json.RawMessage, given bool) string {
	var is struct{ Type string }
	_ = json.Unmarshal(schema, &is) // else it is none of these
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
