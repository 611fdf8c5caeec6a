package schema

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/santhosh-tekuri/jsonschema/v6"
	fault "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A Violation is one mistake that a schema finds in arguments. Both strings are
// single lines of bounded length. They repeat property names of the arguments, but
// values only where the schema lists the allowed ones.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) to the value in the arguments, "" for
	// the arguments themselves. Names in it are cut to 80 characters. If the schema
	// rejects a property name, Pointer leads to the object.
	Pointer string

	// Problem says what is wrong with the value, such as
	//
	//	is missing the required property "title"
	//	is a string, but must be an integer
	//	is "opne", but must be one of "open", "closed"
	Problem string
}

const (
	maxViolations = 16
	maxEchoed     = 40 // characters of a value or name in the arguments
	maxQuoted     = 80 // characters of a value or name in a schema
	maxListed     = 10 // values of an enum
)

// report converts defects to violations, sorted by place and without duplicates.
// It returns at most maxViolations of them and the number of the others.
func report(defects []defect) (violations []Violation, more int) {
	sort.Slice(defects, func(i, j int) bool { return defects[i].compare(&defects[j]) < 0 })
	for i := range defects {
		f := &defects[i]
		if i > 0 && defects[i-1].compare(f) == 0 {
			continue
		}
		if len(violations) == maxViolations {
			more++
			continue
		}
		v := Violation{Problem: f.text()}
		for _, name := range f.at {
			v.Pointer += "/" + pointerEscapes.Replace(text.Line(name, maxQuoted))
		}
		if n := len(violations); n == 0 || violations[n-1] != v { // names are cut
			violations = append(violations, v)
		}
	}
	return violations, more
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// A defect is one violation in the library's terms.
type defect struct {
	at   []string // names and indexes that lead to the value
	kind jsonschema.ErrorKind
	name string // the property that kind is about; for an enum, other allowed types

	problem string // its text, once that was needed
}

// compare orders defects by place, then by text. Those of a kind that may have very many are
// ordered by the name, in which alone their texts differ, so that few are written.
func (f *defect) compare(g *defect) int {
	if c := slices.Compare(f.at, g.at); c != 0 {
		return c
	}
	if a := f.many(); a != 0 && a == g.many() {
		return strings.Compare(f.name, g.name)
	}
	return strings.Compare(f.text(), g.text())
}

// many returns a number for each kind whose texts differ only in the name, else 0.
func (f *defect) many() int {
	switch f.kind.(type) {
	case *fault.Required:
		return 1
	case *fault.AdditionalProperties:
		return 2
	}
	return 0
}

// appendDefects appends the leaves of a tree of errors. For an anyOf or oneOf it
// appends only those of the nearest alternative.
func appendDefects(list []defect, e *jsonschema.ValidationError) []defect {
	var names []string
	switch k := e.ErrorKind.(type) {
	case *fault.Schema, *fault.Group, *fault.AllOf, *fault.Reference:
		for _, cause := range e.Causes {
			list = appendDefects(list, cause)
		}
		return list
	case *fault.AnyOf:
		return append(list, nearestForm(e)...)
	case *fault.OneOf:
		if len(k.Subschemas) == 0 {
			return append(list, nearestForm(e)...)
		}
	case *fault.Required:
		names = k.Missing
	case *fault.Dependency:
		names = k.Missing
	case *fault.DependentRequired:
		names = k.Missing
	case *fault.AdditionalProperties:
		names = k.Properties
	}
	for _, name := range names {
		list = append(list, defect{at: e.InstanceLocation, kind: e.ErrorKind, name: name})
	}
	if names == nil {
		list = append(list, defect{at: e.InstanceLocation, kind: e.ErrorKind})
	}
	return list
}

// nearestForm returns the defects of the alternative with the fewest, or of the
// first such. It ignores alternatives whose type or listed values rule the value
// out. If that rules out all alternatives, it returns one defect that lists what
// they want.
func nearestForm(e *jsonschema.ValidationError) (best []defect) {
	var types fault.Type
	var values fault.Enum
	for _, cause := range e.Causes {
		form := appendDefects(nil, cause)
		if len(form) == 1 && len(form[0].at) == len(e.InstanceLocation) {
			switch k := form[0].kind.(type) {
			case *fault.Type:
				types.Got, types.Want = k.Got, append(types.Want, k.Want...)
				continue
			case *fault.Enum:
				values.Got, values.Want = k.Got, append(values.Want, k.Want...)
				continue
			case *fault.Const:
				values.Got, values.Want = k.Got, append(values.Want, k.Want)
				continue
			}
		}
		if best == nil || len(form) < len(best) {
			best = form
		}
	}
	switch {
	case best != nil:
		return best
	case values.Want != nil:
		return []defect{{at: e.InstanceLocation, kind: &values, name: typeList(types.Want)}}
	}
	return []defect{{at: e.InstanceLocation, kind: &types}}
}

// text returns the [Violation.Problem] of f.
func (f *defect) text() string {
	if f.problem == "" {
		f.problem = f.write()
	}
	return f.problem
}

func (f *defect) write() string {
	switch k := f.kind.(type) {
	case *fault.Type:
		return fmt.Sprintf("is %s, but must be %s", withArticle(k.Got), typeList(k.Want))
	case *fault.Enum:
		return fmt.Sprintf("is %s, but %s", quoted(k.Got, maxEchoed), wanted(k.Want, f.name))
	case *fault.Const:
		return fmt.Sprintf("is %s, but must be %s", quoted(k.Got, maxEchoed), quoted(k.Want, maxQuoted))
	case *fault.Required:
		return fmt.Sprintf("is missing the required property %s", quoted(f.name, maxQuoted))
	case *fault.Dependency:
		return goesWith(f.name, k.Prop)
	case *fault.DependentRequired:
		return goesWith(f.name, k.Prop)
	case *fault.AdditionalProperties:
		return fmt.Sprintf("has the property %s, which the schema does not know", quoted(f.name, maxEchoed))
	case *fault.PropertyNames:
		return fmt.Sprintf("has the property %s, whose name the schema does not allow", quoted(k.Property, maxEchoed))
	case *fault.MinProperties:
		return fmt.Sprintf("has %s, but must have at least %d", counted(k.Got, "property", "properties"), k.Want)
	case *fault.MaxProperties:
		return fmt.Sprintf("has %s, but must have at most %d", counted(k.Got, "property", "properties"), k.Want)
	case *fault.MinItems:
		return fmt.Sprintf("has %s, but must have at least %d", counted(k.Got, "item", "items"), k.Want)
	case *fault.MaxItems:
		return fmt.Sprintf("has %s, but must have at most %d", counted(k.Got, "item", "items"), k.Want)
	case *fault.AdditionalItems:
		return fmt.Sprintf("has %s too many", counted(k.Count, "item", "items"))
	case *fault.UniqueItems:
		return fmt.Sprintf("has equal items at %d and %d, but no two may be equal", k.Duplicates[0], k.Duplicates[1])
	case *fault.Contains:
		return "has no item that fits \"contains\" in the schema, but must have one"
	case *fault.MinContains:
		return fmt.Sprintf("has too few items that fit \"contains\" in the schema: %d, but must have at least %d", len(k.Got), k.Want)
	case *fault.MaxContains:
		return fmt.Sprintf("has too many items that fit \"contains\" in the schema: %d, but must have at most %d", len(k.Got), k.Want)
	case *fault.MinLength:
		return fmt.Sprintf("has %s, but must have at least %d", counted(k.Got, "character", "characters"), k.Want)
	case *fault.MaxLength:
		return fmt.Sprintf("has %s, but must have at most %d", counted(k.Got, "character", "characters"), k.Want)
	case *fault.Pattern:
		return fmt.Sprintf("does not match the pattern %s", quoted(k.Want, maxQuoted))
	case *fault.Minimum:
		return fmt.Sprintf("is too small: it must be at least %s", decimal(k.Want))
	case *fault.Maximum:
		return fmt.Sprintf("is too large: it must be at most %s", decimal(k.Want))
	case *fault.ExclusiveMinimum:
		return fmt.Sprintf("is too small: it must be more than %s", decimal(k.Want))
	case *fault.ExclusiveMaximum:
		return fmt.Sprintf("is too large: it must be less than %s", decimal(k.Want))
	case *fault.MultipleOf:
		return fmt.Sprintf("is not a multiple of %s", decimal(k.Want))
	case *fault.OneOf:
		return "fits more than one of the alternatives in the schema, but must fit exactly one"
	}
	return "is not allowed by the schema" // keywords false and not
}

func goesWith(name, with string) string {
	return fmt.Sprintf("is missing the property %s, which is required with %s", quoted(name, maxQuoted), quoted(with, maxQuoted))
}

// counted returns a number with its word.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// quoted returns a scalar as JSON, cut to limit characters. For an array, an object
// or null it returns a word.
func quoted(v any, limit int) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(text.Line(v, limit))
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case nil:
		return "null"
	}
	return text.Line(fmt.Sprint(v), limit)
}

// wanted says which values of an enum are allowed, and which other types.
func wanted(values []any, types string) string {
	if len(values) == 0 {
		return "no value is allowed here"
	}
	var list []string
	for _, v := range values[:min(len(values), maxListed)] {
		list = append(list, quoted(v, maxQuoted))
	}
	text := strings.Join(list, ", ")
	if len(values) > 1 {
		text = "one of " + text
	}
	if more := len(values) - len(list); more > 0 {
		text += fmt.Sprintf(" or %s in the schema", counted(more, "other", "others"))
	}
	if types != "" {
		text += " or " + types
	}
	return "must be " + text
}

// typeList joins the names of types with " or ", each once, null last.
func typeList(types []string) string {
	var list []string
	for _, t := range types {
		if t = withArticle(t); t != "null" && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	if slices.Contains(types, "null") {
		list = append(list, "null")
	}
	return strings.Join(list, " or ")
}

func withArticle(typeName string) string {
	switch typeName {
	case "null":
		return "null"
	case "array", "object", "integer":
		return "an " + typeName
	}
	return "a " + typeName
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return text.Line(r.Num().String(), maxQuoted)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
