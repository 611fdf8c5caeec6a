package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a validation costs, keyword by keyword. The root is one step and an object another
// for each of its members.
func TestStepsOfAValidation(t *testing.T) {
	t.Parallel()
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, test := range []struct {
		schema, args string
		want         int
	}{
		{`{}`, `{}`, 1},
		{`{}`, `{"a":1,"b":2}`, 3},
		{`{"required":["a","b","c"]}`, `{}`, 7},
		{`{"properties":{"a":{"required":["a","b","c"]}}}`, `{"a":true}`, 3},
		{`{"properties":{"a":{}}}`, `{"a":true}`, 3},
		{`{"properties":{"a":{}}}`, `{"a":5}`, 13},
		{`{"properties":{"a":{},"b":{}}}`, `{"a":true,"b":true}`, 5},

		{`{"properties":{"a":{"maxLength":1}}}`, `{"a":"` + strings.Repeat("x", 31) + `"}`, 4},
		{`{"properties":{"a":{"minLength":1}}}`, `{"a":"` + strings.Repeat("x", 32) + `"}`, 5},
		{`{"properties":{"a":{}}}`, `{"a":"` + strings.Repeat("x", 320) + `"}`, 3},

		{`{"properties":{"a":{"const":1}}}`, `{"a":true}`, 4},
		{`{"properties":{"a":{"const":1}}}`, `{"a":1}`, 23},
		{`{"properties":{"a":{"minimum":1}}}`, `{"a":5}`, 13 + 5},
		{`{"properties":{"a":{"minimum":1,"maximum":2,"exclusiveMinimum":3,"exclusiveMaximum":4,"multipleOf":5}}}`, `{"a":5}`, 13 + 5*5},
		{`{"properties":{"a":{}}}`, `{"a":9e399}`, 13 + 64}, // 400 digits
		{`{"properties":{"a":{}}}`, `{"a":9E-399}`, 13 + 64},
		{`{"properties":{"a":{}}}`, `{"a":` + strings.Repeat("9", 400) + `}`, 13 + 64},
		{`{"properties":{"a":{}}}`, `{"a":` + strings.Repeat("9", 400) + `e-400}`, 13 + 256},
		{`{"properties":{"a":{"multipleOf":1e-399}}}`, `{"a":9e399}`, 13 + 64 + 37 + 78}, // a numerator of 1 bit, a denominator of 1326
		{`{"properties":{"a":{"const":9e399}}}`, `{"a":1}`, 23 + 64},
		{`{"properties":{"a":{"enum":[1,9e399,9e399]}}}`, `{"a":9e399}`, 13 + 64 + 3*74 + 2*64},
		{`{"properties":{"a":{"const":[9e399]}}}`, `{"a":[9e399,9e399,{"b":9e399}]}`, 3 + 3 + 1 + 10 + 3*64 + 64},
		{`{"properties":{"a":{"enum":[1,2,3]}}}`, `{"a":true}`, 6},
		{`{"properties":{"a":{"enum":[1,2,3]}}}`, `{"a":1}`, 43},
		{`{"properties":{"a":{"enum":[1,2,3]}}}`, `{"a":[]}`, 3 + 3*(1+10)},
		{`{"properties":{"a":{"enum":[1,2,3]}}}`, `{"a":{}}`, 3 + 3*(1+10)},

		{`{"allOf":[{},{}]}`, `{}`, 3},
		{`{"anyOf":[{},{}]}`, `{}`, 3},
		{`{"oneOf":[{},{}]}`, `{}`, 3},
		{`{"not":{}}`, `{}`, 2},
		{`{"if":{},"then":{},"else":{}}`, `{}`, 4},
		{`{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{}`, 2},
		{`{"not":{"not":{"not":{"not":{}}}}}`, `{}`, 5 + 1},

		{`{"properties":{"a":{}}}`, `{"a":[1,2]}`, 5},
		{`{"properties":{"a":{"items":{}}}}`, `{"a":[true,false]}`, 7},
		{`{"properties":{"a":{"prefixItems":[{}],"items":{}}}}`, `{"a":[true,false,true]}`, 9},
		{`{"properties":{"a":{"prefixItems":[{},{}]}}}`, `{"a":[true,false,true]}`, 8},
		{`{` + draft7 + `"properties":{"a":{"items":[{}],"additionalItems":{}}}}`, `{"a":[true,false,true]}`, 9},
		{`{` + draft7 + `"properties":{"a":{"items":{}}}}`, `{"a":[true,false,true]}`, 9},
		{`{"properties":{"a":{"items":{"items":{"items":{"items":{}}}}}}}`, `{"a":[[[[true]]]]}`, 6*2 + 1}, // the fourth level costs more
		{`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/a"}}}}}`, `{"a":{"a":true}}`, 6 * 2},
		{`{"properties":{"a":{"contains":{}}}}`, `{"a":[true,false]}`, 7},
		{`{"properties":{"a":{"unevaluatedItems":{}}}}`, `{"a":[true,false]}`, 7},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2]}`, 5 + 2*640/64},

		{`{"additionalProperties":{}}`, `{"a":true,"b":true}`, 5},
		{`{"properties":{"a":{}},"additionalProperties":{}}`, `{"a":true,"b":true}`, 5},
		{`{"patternProperties":{"^a":{}}}`, `{"a":true}`, 4},
		{`{"unevaluatedProperties":{}}`, `{"a":true}`, 3},
		{`{"propertyNames":{"maxLength":1}}`, `{"` + strings.Repeat("x", 32) + `":true}`, 5},
		{`{"dependentRequired":{"a":["b","c"],"d":[]}}`, `{}`, 1 + 3 + 1},
		{`{"dependentSchemas":{"a":{},"b":{}}}`, `{}`, 3},
		{`{` + draft7 + `"dependencies":{"a":["b","c"],"d":{}}}`, `{}`, 1 + 3 + 2},
	} {
		schema, err := compileSchema(json.RawMessage(test.schema))
		require.NoError(t, err, test.schema)
		doc, err := decodeJSON(json.RawMessage(test.args))
		require.NoError(t, err)
		m := meter{left: 1000, schema: 160, args: 640, heavy: schema.heavy}
		m.visit(schema.Schema, doc, 0)
		assert.EqualValues(t, 1000-test.want, m.left, "%s %s", test.schema, test.args)
	}
}

// Numbers of many digits take as long as they say: so fewer of them are compared.
func TestNumbersOfManyDigits(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"properties":{"a":{"items":{"multipleOf":1.3e-399}}}}`,
		`{"properties":{"a":{"items":{"maximum":1e-399}}}}`,
		`{"properties":{"a":{"items":{"type":"string"}}}}`,
		`{"properties":{"a":{"items":{"const":1}}}}`,
		`{"properties":{"a":{"items":{"enum":[1,2,9e-399]}}}}`,
		`{"properties":{"a":{"items":{"enum":[[9e-399,1]]}}}}`,
	} {
		v := NewValidator(json.RawMessage(schema))
		_, more := v.Validate(json.RawMessage(`{"a":[` + strings.Repeat("9.7e-399,", 100) + `[9e-399,2]]}`))
		assert.NotZero(t, more, schema)
		violations, more := v.Validate(json.RawMessage(`{"a":[` + strings.Repeat("9.7e-399,", 8000) + `[9e-399,2]]}`))
		assert.Zero(t, len(violations)+more, schema)
	}
}

// So do those of the schema.
func TestConstantsOfManyDigits(t *testing.T) {
	t.Parallel()
	v := NewValidator(json.RawMessage(`{"properties":{"a":{"items":{"enum":[1` + strings.Repeat(",9e-399", 99) + `]}}}}`))
	violations, more := v.Validate(json.RawMessage(`{"a":[2,3,4]}`))
	assert.Len(t, violations, 3)
	assert.Zero(t, more)
	violations, _ = v.Validate(json.RawMessage(`{"a":[2` + strings.Repeat(",3", 30) + `]}`))
	assert.Empty(t, violations)
}

// A reference whose target depends on the path to it can't be followed, so such a schema takes
// any arguments; and where the steps are used up, nothing more is visited.
func TestStepsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
	} {
		compiled, err := compileSchema(json.RawMessage(schema))
		require.NoError(t, err)
		doc, err := decodeJSON(json.RawMessage(`{"a":{}}`))
		require.NoError(t, err)
		m := meter{left: 1000}
		m.visit(compiled.Schema, doc, 0)
		assert.Negative(t, m.left, schema)
	}
	compiled, err := compileSchema(json.RawMessage(`{"allOf":[{},{},{},{},{},{},{},{}]}`))
	require.NoError(t, err)
	m := meter{left: 3}
	m.visit(compiled.Schema, map[string]any{}, 0)
	assert.EqualValues(t, -1, m.left)
}

// A schema may have so many values, levels, and digits in a number, and no more.
func TestSizeOfASchema(t *testing.T) {
	t.Parallel()
	fits := func(left int, raw string) bool {
		doc, err := decodeJSON(json.RawMessage(raw))
		require.NoError(t, err)
		return (&gauge{left: left}).fits(doc, 0, 0)
	}
	for raw, want := range map[string]int{
		`1`: 1, `"x"`: 1, `null`: 1, `true`: perObject, `{}`: perObject, `[]`: 1, `[1,2,3]`: 1 + 3*2, `[[1]]`: 1 + 2 + 3,
		`{"a":1}`:           perObject + 1,
		`{"1234567":1}`:     perObject + 2, // a path of 8 bytes
		`{"a":{}}`:          2 * perObject,
		`{"$ref":1}`:        perObject + 1 + 16,
		`{"$id":1}`:         perObject + 1 + 16,
		`{"id":1}`:          perObject + 1 + 16,
		`{"$anchor":1}`:     perObject + 2 + 16,
		`{"$schema":1}`:     perObject + 2 + 16,
		`{"$dynamicRef":1}`: perObject + 2 + 16,
	} {
		doc, err := decodeJSON(json.RawMessage(raw))
		require.NoError(t, err)
		g := &gauge{left: 100}
		assert.True(t, g.fits(doc, 0, 0), raw)
		assert.Equal(t, want, 100-g.left, raw)
	}
	assert.True(t, fits(3, `[1]`))
	assert.False(t, fits(2, `[1]`))
	assert.False(t, fits(perObject, `{"a":1}`))
	nested := func(levels int) string { return strings.Repeat("[", levels+1) + strings.Repeat("]", levels+1) }
	assert.True(t, fits(1<<20, nested(maxJSONNesting)))
	assert.False(t, fits(1<<20, nested(maxJSONNesting+1)))
	nines := strings.Repeat("9", maxNumber)
	for number, want := range map[string]bool{
		nines: true, nines + "9": false,
		nines + "e1": true, nines + "9e1": false,
		"1e-9223372036854775808": false, "1e9223372036854775808": false,
		"1e400": true, "1e401": false, "1e-400": true, "1E-401": false, "1e99999999999999999999": false,
	} {
		assert.Equal(t, want, fits(10, number), number)
	}
}

// What has far too many values is not decoded to find out.
func TestLargeSchemasAreNotDecoded(t *testing.T) {
	large := json.RawMessage(`{"examples":[` + strings.Repeat(`{"":{}},`, 30_000) + `0]}`)
	assert.Less(t, testing.AllocsPerRun(1, func() {
		_, err := compileSchema(large)
		assert.ErrorContains(t, err, "the schema is too large")
	}), 100.0)
	most := json.RawMessage(`{"x":{` + strings.TrimSuffix(strings.Repeat(`"":[],`, 4000), ",") + `}}`)
	_, err := compileSchema(most)
	assert.NoError(t, err)
}
