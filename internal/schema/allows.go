package schema

import (
	"encoding/json"
	"errors"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Allows returns a function that reports whether a schema, of draft 2020-12, certainly allows
// a value. Where a [Validator] accepts in doubt, it does not: it heeds formats, and allows
// nothing if it can't read the schema with all its patterns.
func Allows(schema json.RawMessage) func(value json.RawMessage) bool {
	never := func(json.RawMessage) bool { return false }
	compiled, err := compileExactly(schema)
	if err != nil {
		return never
	}
	return func(value json.RawMessage) (allowed bool) {
		defer func() { _ = recover() }() // a panic in the library
		doc, err := decodeJSON(value)
		if err != nil || text.Twice(value) != "" || !(&gauge{left: maxSchemaValues}).fits(doc, 0, 0) {
			return false
		}
		m := meter{left: maxSteps, schema: len(schema), args: len(value)}
		m.visit(compiled, doc, 0)
		return m.left >= 0 && compiled.Validate(doc) == nil
	}
}

var errBroken = errors.New("the schema is too large, or breaks the validator")

// compileExactly compiles a schema as it is, without loading other documents.
func compileExactly(schema json.RawMessage) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errBroken
		}
	}()
	compiling.Lock()
	defer compiling.Unlock()
	doc, err := decodeJSON(schema)
	if err != nil {
		return nil, err
	}
	if !(&gauge{left: maxSchemaValues}).fits(doc, 0, 0) {
		return nil, errBroken
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nil)
	c.AssertFormat()
	c.UseRegexpEngine(newPatterns().compile)
	c.DefaultDraft(jsonschema.Draft2020)
	const location = "schema://tool/input"
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}
