package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// closed returns a closed object that requires its one property.
func closed(name, schema string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:%s},"required":[%q],"additionalProperties":false}`, name, schema, name)
}

// number returns n copies of form, each with its number in the place of %d.
func number(n int, form string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(list, ",")
}

func TestIsStrict(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string {
		s := `{"type":"string"}`
		for range levels - 1 {
			s = closed("a", s)
		}
		return s
	}
	flat := func(n int) string {
		return `{"type":"object","properties":{` + number(n, `"p%d":{"type":"null"}`) + `},"required":[` + number(n, `"p%d"`) + `],"additionalProperties":false}`
	}
	withDefs := func(schema, defs string) string {
		return strings.TrimSuffix(closed("a", schema), "}") + `,"$defs":{` + defs + `}}`
	}
	for _, test := range []struct {
		name, schema string
		want         bool
	}{
		{"no properties", `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, true},
		{"no list of what is required", `{"type":"object","properties":{},"additionalProperties":false}`, false},
		{"open", `{"type":"object","properties":{},"required":[]}`, false},
		{"notes", `{"title":"T","description":"D","type":"object","properties":{"a":{"type":"integer","title":"A","description":"B"}},"required":["a"],"additionalProperties":false}`, true},
		{"optional", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`, false},
		{"required twice", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","a"],"additionalProperties":false}`, false},
		{"another required", `{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`, false},
		{"one more required", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`, false},
		{"another member", `{"type":"object","properties":{},"required":[],"additionalProperties":false,"minProperties":0}`, false},
		{"values of any name", `{"type":"object","properties":{},"required":[],"additionalProperties":{"type":"string"}}`, false},
		{"open within", closed("a", `{"type":"object","properties":{},"required":[]}`), false},
		{"optional within", closed("a", closed("b", `{"type":"object","properties":{"c":{"type":"null"}},"required":[],"additionalProperties":false}`)), false},
		{"anything", closed("a", `{}`), false},
		{"several types", closed("a", `{"type":["string","number"]}`), false},
		{"nullable", closed("a", `{"type":["null","boolean"]}`), true},
		{"list", closed("a", `{"type":"array","items":`+closed("b", `{"type":"number"}`)+`}`), true},
		{"list of anything", closed("a", `{"type":"array","items":{}}`), false},
		{"values", closed("a", `{"type":"string","enum":["a","b c"]}`), true},
		{"one value", closed("a", `{"type":"string","const":"a"}`), true},
		{"values that need quotes", closed("a", `{"type":"string","enum":["\""]}`), false},
		{"an empty value", closed("a", `{"type":"string","enum":[""]}`), false},
		{"numbers as values", closed("a", `{"type":"integer","enum":[1]}`), false},
		{"values without a type", closed("a", `{"enum":["a"]}`), false},
		{"a value twice", closed("a", `{"type":"string","enum":["a","a"]}`), false},
		{"a name with a space", closed("a b", `{"type":"string"}`), false},
		{"union", closed("a", `{"anyOf":[`+closed("b", `{"type":"null"}`)+`,{"type":"null"}]}`), true},
		{"union of objects", closed("a", `{"anyOf":[`+closed("b", `{"type":"null"}`)+`,`+closed("b", `{"type":"string"}`)+`]}`), false},
		{"union of unions", closed("a", `{"anyOf":[{"anyOf":[{"type":"null"}]},{"anyOf":[{"type":"string"}]}]}`), false},
		{"union with a union", closed("a", `{"anyOf":[{"anyOf":[{"type":"null"}]},{"type":"string"}]}`), true},
		{"union of references", withDefs(`{"anyOf":[{"$ref":"#/$defs/B"},{"$ref":"#/$defs/B"}]}`, `"B":{"type":"string"}`), false},
		{"union with a reference", withDefs(`{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]}`, `"B":{"type":"string"}`), true},
		{"union of what is not strict", closed("a", `{"anyOf":[{"type":"null"},{}]}`), false},
		{"three types", closed("a", `{"type":["null","string","boolean"]}`), false},
		{"null twice", closed("a", `{"type":["null","null"]}`), false},
		{"union with a type", closed("a", `{"type":"string","anyOf":[{"type":"string"}]}`), false},
		{"oneOf", closed("a", `{"oneOf":[{"type":"string"},{"type":"null"}]}`), false},
		{"reference", withDefs(`{"$ref":"#/$defs/B"}`, `"B":{"type":"string"}`), true},
		{"recursive", withDefs(`{"$ref":"#/$defs/B"}`, `"B":`+closed("next", `{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]}`)), true},
		{"recursive to the root", closed("a", `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`), true},
		{"beside a reference", withDefs(`{"$ref":"#/$defs/B","description":"D"}`, `"B":{"type":"string"}`), false},
		{"a reference to nothing", closed("a", `{"$ref":"#/$defs/B"}`), false},
		{"a definition that is not strict", withDefs(`{"$ref":"#/$defs/B"}`, `"B":{"type":"object"}`), false},
		{"definitions within", closed("a", `{"type":"string","$defs":{}}`), false},
		{"levels", nested(5), true},
		{"too many levels", nested(5 + 1), false},
		{"too many levels by references", withDefs(`{"$ref":"#/$defs/B"}`, `"B":`+nested(5-1)), true},
		{"too many levels by references", withDefs(`{"$ref":"#/$defs/B"}`, `"B":`+nested(5)), false},
		{"too many levels by a reference below", withDefs(closed("b", `{"$ref":"#/$defs/B"}`), `"B":`+nested(5-2)), true},
		{"too many levels by a reference below", withDefs(closed("b", `{"$ref":"#/$defs/B"}`), `"B":`+nested(5-1)), false},
		{"too many properties by references", withDefs(closed("b", `{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]}`), `"B":`+flat(47)), true},
		{"too many properties by references", withDefs(closed("b", `{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]}`), `"B":`+flat(48)), false},
		{"properties", flat(100), true},
		{"too many properties", flat(100 + 1), false},
		{"values", closed("a", `{"type":"string","enum":[`+number(250, `"v%d"`)+`]}`), true},
		{"too many values", closed("a", `{"type":"string","enum":[`+number(250+1, `"v%d"`)+`]}`), false},
		{"too many characters", closed("a", `{"type":"string","const":"`+strings.Repeat("x", maxStrictCharacters)+`"}`), false},
	} {
		require.True(t, json.Valid([]byte(test.schema)), test.schema)
		assert.Equal(t, test.want, IsStrict(json.RawMessage(test.schema)), "%s: %.500s", test.name, test.schema)
	}
	// Keywords that are fine elsewhere, each of which some model refuses in a strict schema.
	for _, keyword := range []string{
		`"default":"a"`, `"pattern":"^a$"`, `"format":"date"`, `"minLength":1`, `"maxLength":9`, `"examples":["a"]`, `"x-order":1`, `"not":{"type":"null"}`, `"allOf":[{"type":"string"}]`, `"nullable":true`,
	} {
		assert.False(t, IsStrict(json.RawMessage(closed("a", `{"type":"string",`+keyword+`}`))), keyword)
	}
	for _, keyword := range []string{`"minimum":1`, `"multipleOf":2`, `"exclusiveMaximum":5`} {
		assert.False(t, IsStrict(json.RawMessage(closed("a", `{"type":"integer",`+keyword+`}`))), keyword)
	}
	for _, keyword := range []string{`"minItems":1`, `"maxItems":5`, `"uniqueItems":true`, `"prefixItems":[{"type":"string"}]`} {
		assert.False(t, IsStrict(json.RawMessage(closed("a", `{"type":"array","items":{"type":"string"},`+keyword+`}`))), keyword)
	}
}

// isStrict reads what servers send. It ends soon, and what a strict schema means is not
// changed by a conversion.
func FuzzIsStrict(f *testing.F) {
	f.Add(closed("a", `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`))
	f.Add(`{"type":"object","properties":{"a":{"type":[]}},"required":["a"],"additionalProperties":false,"$defs":{"B":{"$ref":"#/$defs/B"}}}`)
	for _, c := range conversions {
		f.Add(c.give)
	}
	f.Fuzz(func(t *testing.T, given string) {
		c := text.Compact(json.RawMessage(given))
		if !json.Valid(c) || c[0] != '{' {
			return
		}
		converted, _ := convert(t, openAI, given)
		if IsStrict(json.RawMessage(converted)) {
			again, losses := convert(t, openAI, converted)
			require.Equal(t, converted, again)
			require.Empty(t, losses)
			require.NoError(t, schemaError(json.RawMessage(converted)))
		}
	})
}

func TestIsStrictEnds(t *testing.T) {
	double := `{"type":"object","properties":{"a":{"$ref":"#/$defs/a0"}},"required":["a"],"additionalProperties":false,"$defs":{`
	for i := range 60 {
		double += fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}},"required":["x","y"],"additionalProperties":false},`, i, i+1, i+1)
	}
	double += `"a60":{"type":"string"}}}`
	mcptest.Quick(t, 5*1e9, func() { assert.False(t, IsStrict(json.RawMessage(double))) })
	for name, given := range hostileSchemas() {
		converted, _ := Convert(json.RawMessage(given), OpenAI)
		mcptest.Quick(t, 5*1e9, func() { IsStrict(converted) }, name)
	}
}

// A type beside null counts in either order, and no other two do.
func TestKindOf(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "", `"string"`: "string", `"null"`: "null", `["string", "null"]`: "string", `["null", "string"]`: "string",
		`["null"]`: "", `["string"]`: "", `["string", "number"]`: "", `["string", "null", "number"]`: "", `5`: "", `[5, "null"]`: "",
	} {
		var given json.RawMessage
		if raw != "" {
			given = json.RawMessage(raw)
		}
		assert.Equal(t, want, kindOf(given), "%q", raw)
	}
}
