package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Validator checks arguments against one input schema, which it compiles on
// first use. It is safe for concurrent use.
//
// In doubt, it accepts arguments: the server checks them anyway, but a call
// refused here never gets through.
//
//   - It ignores formats, as the current draft allows, because servers read them
//     differently.
//   - It ignores a pattern that is not a regular expression of Go's, or too large.
//   - It accepts all arguments if the schema can't be compiled or would need more
//     than maxSteps, of which each value of the arguments is one.
//
// It does not convert types: "5" is not a number.
type Validator struct {
	size     int
	compiled func() (*compiledSchema, error)
}

type compiledSchema struct {
	*jsonschema.Schema
	plain *plainSchema // or nil
	size  int          // bytes that it takes beside the text, more or less
	heavy int64        // what its numbers weigh
}

// compiling is held while a schema is compiled. So schemas that are compiled at once
// take no more memory than one.
var compiling sync.Mutex

// NewValidator returns a validator for an input schema. It does not read the
// schema yet.
func NewValidator(schema json.RawMessage) *Validator {
	return newValidator(schema, func(*compiledSchema) {})
}

// newValidator returns a validator that reports the schema when it has compiled it.
func newValidator(schema json.RawMessage, done func(*compiledSchema)) *Validator {
	return &Validator{len(schema), sync.OnceValues(func() (*compiledSchema, error) {
		compiled, err := compileSchema(schema)
		if err == nil {
			done(compiled)
		}
		return compiled, err
	})}
}

// Err returns why the schema can't be compiled, or nil. Such a schema accepts all
// arguments.
func (v *Validator) Err() error {
	_, err := v.compiled()
	return err
}

// Validate returns up to maxViolations mistakes in args, a valid JSON object,
// sorted by place, and the number of further ones. If an object in args repeats a
// member, that is the only one: who reads args may take the first or the last. Equal
// arguments give equal violations.
func (v *Validator) Validate(args json.RawMessage) (violations []Violation, more int) {
	defer func() {
		if recover() != nil { // a panic in the library
			violations, more = nil, 0
		}
	}()
	schema, err := v.compiled()
	if err == nil && schema.plain != nil && schema.plain.accepts(args) && text.Distinct(args) {
		return nil, 0
	}
	if name := text.Twice(args); name != "" {
		return []Violation{{Problem: fmt.Sprintf("has the member %q more than once", text.Line(name, maxQuoted))}}, 0
	}
	if err != nil || text.CountValues(args) > maxSteps { // to decode one takes as long as a step, and text.ValueSize
		return nil, 0
	}
	doc, err := decodeJSON(args)
	if err != nil || !(&gauge{left: math.MaxInt}).fits(doc, 0, 0) {
		return nil, 0
	}
	m := meter{left: maxSteps, schema: v.size, args: len(args), heavy: schema.heavy}
	m.visit(schema.Schema, doc, 0)
	var failed *jsonschema.ValidationError
	if m.left < 0 || !errors.As(schema.Validate(doc), &failed) {
		return nil, 0
	}
	return report(appendDefects(nil, failed))
}

func decodeJSON(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// compileSchema compiles a schema without loading other documents. A reference to
// one is an error, except to the built-in metaschemas. If the schema is invalid in
// the draft that it names, or names an unknown one, compileSchema tries three
// others: the default of MCP, an older one for lists of items, and a still older
// one for booleans as exclusive bounds.
func compileSchema(raw json.RawMessage) (schema *compiledSchema, err error) {
	defer func() {
		if r := recover(); r != nil {
			schema, err = nil, errors.New(text.Line(fmt.Sprintf("the schema breaks the validator: %v", r), text.MaxError))
		}
	}()
	compiling.Lock()
	defer compiling.Unlock()
	tooLarge := func() error {
		return fmt.Errorf("the schema is too large, too deep, or has a number that is too large: it may have %d values, of which an object or a boolean counts %d, an $id its bytes and a deep one more, %d levels, and numbers of %d digits", maxSchemaValues, perObject, maxJSONNesting, maxNumber)
	}
	if text.CountValues(raw) > 3*maxSchemaValues { // a member that is an array counts that often; to decode more takes megabytes
		return nil, tooLarge()
	}
	doc, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	values := gauge{left: maxSchemaValues}
	if !values.fits(doc, 0, 0) {
		return nil, tooLarge()
	}
	each := maxSchemaValues - values.left
	expressions := newPatterns()
	adapt(doc, expressions)
	for _, draft := range []*jsonschema.Draft{nil, jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		if err != nil {
			if values.left -= each; values.left < 0 {
				break // each draft costs as much again
			}
		}
		if object, ok := doc.(map[string]any); ok && draft != nil {
			delete(object, "$schema")
		}
		c := jsonschema.NewCompiler()
		c.UseLoader(nil)
		c.UseRegexpEngine(expressions.compile)
		c.DefaultDraft(cmp.Or(draft, jsonschema.Draft2020))
		const location = "schema://tool/input"
		problem := c.AddResource(location, doc)
		var compiled *jsonschema.Schema
		if problem == nil {
			compiled, problem = c.Compile(location)
		}
		if problem == nil {
			return &compiledSchema{compiled, newPlainSchema(doc), values.kept + expressions.kept(), values.heavy}, nil
		}
		if expressions.fault != nil {
			return nil, expressions.fault
		}
		if err == nil {
			err = errors.New(text.Line(problem.Error(), text.MaxError))
		}
	}
	return nil, err
}

// adapt changes the parts of a schema that the library would misread.
func adapt(v any, expressions *patterns) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			adapt(item, expressions)
		}
	case map[string]any:
		if _, ok := v["format"].(string); ok {
			delete(v, "format")
		}
		if s, ok := v["pattern"].(string); ok && expressions.find(s) == nil {
			delete(v, "pattern")
		}
		for _, keyword := range []string{"properties", "required"} { // Go's nil
			if v[keyword] == nil {
				delete(v, keyword)
			}
		}
		if t, ok := v["type"].(string); ok && t != "null" && v["nullable"] == true { // OpenAPI's word
			v["type"] = []any{t, "null"}
		}
		for _, keyword := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"} {
			n, _ := v[keyword].(json.Number)
			if f, _ := n.Float64(); f > math.MaxInt32 { // the library would cut it
				delete(v, keyword)
			}
		}
		for keyword, value := range v {
			if byName, ok := value.(map[string]any); ok && slices.Contains(schemasByName, keyword) {
				for _, schema := range byName { // whatever its name, such as const
					adapt(schema, expressions)
				}
				continue
			}
			if _, list := value.([]any); keyword != "const" && !(keyword == "enum" && list) {
				adapt(value, expressions)
			}
		}
	}
}
