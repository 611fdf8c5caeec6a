package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	openAI    = "OpenAI"
	anthropic = "Anthropic"
	gemini    = "Gemini"
)

var dialects = map[string]Dialect{openAI: OpenAI, anthropic: Anthropic, gemini: Gemini}

// convert converts a schema for a provider. It checks that the provider accepts
// the result and that it is not too large.
func convert(t testing.TB, of, given string) (converted string, losses []string) {
	t.Helper()
	data, losses := Convert(text.Compact(json.RawMessage(given)), dialects[of])
	require.NoError(t, check(of, data), "%s\n%s", given, data)
	require.NoError(t, schemaError(data), "%s\n%s", given, data)
	require.LessOrEqual(t, len(data), 8*(len(given)+256<<10)+1000)
	if of == gemini {
		require.LessOrEqual(t, len(data), largest(text.Compact(json.RawMessage(given))), given)
	}
	require.LessOrEqual(t, len(losses), 100+1)
	for _, loss := range losses {
		require.LessOrEqual(t, len(loss), 1000)
		require.NotContains(t, loss, "\n")
	}
	return string(data), losses
}

// convertTwice is convert, and also checks that a second conversion gives the
// same result and that the result needs no further conversion.
func convertTwice(t testing.TB, of, given string) (converted string, losses []string) {
	t.Helper()
	converted, losses = convert(t, of, given)
	again, same := convert(t, of, given)
	require.Equal(t, converted, again)
	require.Equal(t, losses, same)
	again, more := convert(t, of, converted)
	require.Equal(t, converted, again, given)
	require.Empty(t, more, given)
	return converted, losses
}

var longName = strings.Repeat("x", 65)

var conversions = []struct {
	name       string
	of         string
	give, want string
	losses     []string
}{
	{"as it is", anthropic, `{"type":"object","properties":{"z":{"x-y":1.10,"type":"string"},"a":true}}`, `{"type":"object","properties":{"z":{"x-y":1.10,"type":"string"},"a":{}}}`, nil},
	{"no type", anthropic, `{"properties":{}}`, `{"type":"object","properties":{}}`, nil},
	{"nullable root", anthropic, `{"title":"T","type":["null","object"]}`, `{"title":"T","type":"object"}`, nil},
	{"another type", anthropic, `{"type":"string"}`, `{"type":"object"}`, []string{"/type: is now object"}},
	{"no properties", openAI, `{"type":"object"}`, `{"type":"object","properties":{}}`, nil},
	{"no items", openAI, `{"type":"object","properties":{"a":{"type":["array","null"]}}}`, `{"type":"object","properties":{"a":{"type":["array","null"],"items":{}}}}`, nil},
	{"no items, Gemini", gemini, `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, nil},
	{"items are not needed", anthropic, `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array"}}}`, nil},
	{"enum at the root", openAI, `{"type":"object","properties":{},"not":{"required":["a"]},"enum":[{}],"const":{}}`, `{"type":"object","properties":{}}`,
		[]string{"/not: not taken at the root, left out", "/enum: not taken at the root, left out", "/const: not taken at the root, left out"}},
	{"not at the root", anthropic, `{"type":"object","not":{"required":["a"]}}`, `{"type":"object","not":{"required":["a"]}}`, nil},
	{"allOf at the root", anthropic, `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"],"if":{},"$defs":{}},{"if":{"type":"null"}}],"required":["b"]}`,
		`{"type":"object","required":["b","a"],"properties":{"a":{"type":"string"}},"if":{}}`, []string{"/if: there twice, the outer is taken"}},
	{"allOf within", anthropic, `{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}}}`, `{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}}}`, nil},
	{"unions keep what all require", openAI, `{"oneOf":[{"required":["a","b"],"properties":{"a":{"type":"string"}}},{"required":["b"],"minProperties":1}],"properties":{"b":{"type":"string"}}}`,
		`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["b"]}`,
		[]string{"/oneOf: not taken at the root; its alternatives became one list of properties", "/oneOf/1/minProperties: left out"}},
	{"unions within unions", anthropic, `{"anyOf":[{"anyOf":[{"required":["a"]},{"required":["a","b"]}]},{"allOf":[{"required":["c"]},{"required":["a"]}]}]}`,
		`{"type":"object","properties":{},"required":["a"]}`,
		[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf: not taken at the root; its alternatives became one list of properties"}},
	{"a property in two places", anthropic, `{"properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":{"type":"string"}}}]}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`,
		[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf/0/properties/a: described outside of the union too, left out"}},
	{"a reference at the root", openAI, `{"$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
	{"the same part twice is not recursive", gemini, `{"oneOf":[{"allOf":[{"$ref":"#/$defs/B"}]},{"allOf":[{"$ref":"#/$defs/B"}]}],"$defs":{"B":{"properties":{"b":{"type":"string"}},"required":["b"]}}}`,
		`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}`, []string{"/oneOf: not taken at the root; its alternatives became one list of properties"}},
	{"references that can stay", anthropic, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","title":"T"},"r":{"$ref":"#"}},"$defs":{"A":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","title":"T"},"r":{"$ref":"#"}},"$defs":{"A":{"type":"string"}}}`, nil},
	{"references that may have moved", openAI, `{"type":"object","properties":{"a":{"$ref":"#/properties/b~1c","title":"T"},"b/c":{"type":"string","title":"U"}}}`,
		`{"type":"object","properties":{"a":{"title":"T","type":"string"},"b/c":{"type":"string","title":"U"}}}`, []string{"/properties/a/title: there twice, the outer is taken"}},
	{"references for Gemini", gemini, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A%20B"}},"$defs":{"A B":{"type":"integer","default":1}}}`, `{"type":"object","properties":{"a":{"type":"integer","default":1}}}`, nil},
	{"recursion to the root", gemini, `{"type":"object","description":"D","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","description":"D","properties":{"a":{"type":"object","description":"D"}}}`,
		[]string{"/properties/a/$ref: is recursive, cut here"}},
	{"recursion without an end", openAI, `{"$ref":"#/$defs/A","$defs":{"A":{"allOf":[{"$ref":"#/$defs/B"}]},"B":{"$ref":"#/$defs/A","title":"B"}}}`, `{"type":"object","title":"B","properties":{}}`, []string{"/$ref: is recursive, cut here"}},
	{"recursion at the root", anthropic, `{"$ref":"#"}`, `{"type":"object"}`, []string{"/$ref: is recursive, cut here"}},
	{"a name that is too longName", anthropic, `{"type":"object","properties":{"` + longName + `":{},"` + longName[1:] + `":{}},"required":["` + longName + `"]}`, `{"type":"object","properties":{"` + longName[1:] + `":{}}}`,
		[]string{"/properties/" + longName + ": a name that is not taken, left out, so that the tool can't be called with it", `/required: "` + longName[:63] + `…" is not among the properties, left out`}},
	{"names for others", openAI, `{"type":"object","properties":{"$top":{}}}`, `{"type":"object","properties":{"$top":{}}}`, nil},
	{"keywords that Gemini lacks", gemini, `{"type":"object","properties":{"a":{"const":"x","uniqueItems":true,"oneOf":[{"type":"string"}]},"b":{"exclusiveMaximum":1,"maximum":2}},"$comment":"C"}`,
		`{"type":"object","properties":{"a":{"enum":["x"],"anyOf":[{"type":"string"}]},"b":{"maximum":2}}}`,
		[]string{"/$comment: not taken, left out", "/properties/a/uniqueItems: not taken, left out", "/properties/a/oneOf: not taken, became anyOf", "/properties/b/exclusiveMaximum: not taken, left out"}},
	{"an alternative of anything", gemini, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},true]}}}`, `{"type":"object","properties":{"a":{}}}`, nil},
	{"allOf for Gemini", gemini, `{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":1}],"title":"T"}}}`, `{"type":"object","properties":{"a":{"title":"T","type":"string","minLength":1}}}`, nil},
	{"enum for Gemini", gemini, `{"type":"object","properties":{"a":{"enum":[true,false]},"b":{"enum":["x",1,null]},"c":{"enum":[]}}}`, `{"type":"object","properties":{"a":{},"b":{"enum":["x",1]},"c":{}}}`,
		[]string{"/properties/a/enum: other values than strings and numbers, left out", "/properties/b/enum: other values than strings and numbers, left out", "/properties/c/enum: malformed, left out"}},
	{"required for Gemini", gemini, `{"type":"object","required":["a","b"],"properties":{"b":{}}}`, `{"type":"object","required":["b"],"properties":{"b":{}}}`, []string{`/required: "a" is not among the properties, left out`}},
	{"patterns that are lost", gemini, `{"type":"object","patternProperties":{"^a":{}},"additionalProperties":false}`, `{"type":"object"}`,
		[]string{"/additionalProperties: left out with patternProperties", "/patternProperties: not taken, left out"}},
	{"a pattern that is lost", openAI, `{"type":"object","properties":{},"patternProperties":{"^(?!b)":{},"^a":{}},"additionalProperties":{"type":"string"}}`, `{"type":"object","properties":{},"patternProperties":{"^a":{}}}`,
		[]string{"/additionalProperties: left out with patternProperties", "/patternProperties/^(?!b): a regular expression that looks ahead or behind, left out"}},
	{"patterns that are taken", anthropic, `{"type":"object","patternProperties":{"^(?!b)":{}},"additionalProperties":false}`, `{"type":"object","patternProperties":{"^(?!b)":{}},"additionalProperties":false}`, nil},
	{"alternatives that are closed", anthropic, `{"anyOf":[{"additionalProperties":false},{"additionalProperties":false,"patternProperties":{"^a":{}}}]}`, `{"type":"object","properties":{}}`,
		[]string{"/anyOf: not taken at the root; its alternatives became one list of properties", "/anyOf/1/additionalProperties: left out", "/anyOf/1/patternProperties: left out"}},
	{"hidden characters in a place", gemini, `{"type":"object","properties":{"a\u202e\n/~b":{"minContains":1}}}`, `{"type":"object","properties":{"a\u202e\n/~b":{}}}`, []string{"/properties/a ~1~0b/minContains: not taken, left out"}},
	{"what names schemas is not needed", openAI, `{"$id":"%%%","type":"object","properties":{"$id":{"$anchor":"a b"},"b":{"$anchor":"c","$dynamicAnchor":"c"},"c":{"$id":"x"},"d":{"$id":"x"}},"$defs":{}}`,
		`{"type":"object","properties":{"$id":{},"b":{},"c":{},"d":{}}}`, nil},
	{"references that lead nowhere", openAI, `{"type":"object","properties":{"a":{"$dynamicRef":"#nope","maxLength":1},"b":{"$ref":"#/$defs/B"},"c":{"$dynamicRef":"#/properties/d"},"d":{"minLength":1}}}`,
		`{"type":"object","properties":{"a":{"maxLength":1},"b":{},"c":{"minLength":1},"d":{"minLength":1}}}`,
		[]string{"/properties/a/$dynamicRef: leads nowhere, left out", "/properties/b/$ref: leads nowhere, left out"}},
	{"a dynamic reference to a definition", anthropic, `{"type":"object","properties":{"a":{"$dynamicRef":"#/$defs/A"}},"$defs":{"A":{"minLength":1}}}`,
		`{"type":"object","properties":{"a":{"$dynamicRef":"#/$defs/A"}},"$defs":{"A":{"minLength":1}}}`, nil},
	{"references from another base", anthropic, `{"$id":"http://x/","type":"object","$defs":{"A":{"maxLength":1}},"properties":{"p":{"$id":"q","properties":{"r":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}},"s":{"$ref":"#/$defs/A"}}}`,
		`{"type":"object","$defs":{"A":{"maxLength":1}},"properties":{"p":{"properties":{"r":{}},"$defs":{"A":{}}},"s":{"$ref":"#/$defs/A"}}}`,
		[]string{"/properties/p/properties/r/$ref: leads nowhere, left out"}},
	{"references from another base, merged", gemini, `{"type":"object","$defs":{"A":{"maxLength":1}},"properties":{"p":{"allOf":[{"$id":"q","properties":{"r":{"$ref":"#/$defs/A"}}}]},"s":{"$ref":"#/$defs/A"}}}`,
		`{"type":"object","properties":{"p":{"properties":{"r":{}}},"s":{"maxLength":1}}}`, []string{"/properties/p/properties/r/$ref: leads nowhere, left out"}},
	{"a base of draft 4", anthropic, `{"$schema":"http://json-schema.org/draft-04/schema","type":"object","definitions":{"A":{}},"properties":{"p":{"id":"q","items":{"$ref":"#/definitions/A"}}}}`,
		`{"type":"object","properties":{"p":{"id":"q","items":{}}}}`, []string{"/properties/p/items/$ref: leads nowhere, left out"}},
	{"a draft for a part", anthropic, `{"type":"object","properties":{"p":{"$id":"q","$schema":"http://json-schema.org/draft-04/schema#","const":1}}}`, `{"type":"object","properties":{"p":{"const":1}}}`,
		[]string{"/properties/p/$schema: a draft for a part, left out"}},
	{"expressions that are none", gemini, `{"type":"object","properties":{"a":{"pattern":"("},"b":{"pattern":"^b$"}}}`, `{"type":"object","properties":{"a":{},"b":{"pattern":"^b$"}}}`,
		[]string{"/properties/a/pattern: not a regular expression, left out"}},
	{"names that are no expressions", anthropic, `{"type":"object","patternProperties":{"[":{},"^a":{}},"additionalProperties":false}`, `{"type":"object","patternProperties":{"^a":{}}}`,
		[]string{"/additionalProperties: left out with patternProperties", "/patternProperties/[: not a regular expression, left out"}},
	{"beside a reference of draft 7", anthropic, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"$ref":"#/definitions/A","maxLength":1,"title":"T","x-y":1}},"definitions":{"A":{"type":"string"}}}`,
		`{"type":"object","properties":{"p":{"$ref":"#/definitions/A","title":"T","x-y":1}},"definitions":{"A":{"type":"string"}}}`, nil},
	{"beside a reference of 2019-09", anthropic, `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"p":{"$ref":"#/$defs/A","maxLength":1}},"$defs":{"A":{"type":"string"}}}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/A","maxLength":1}},"$defs":{"A":{"type":"string"}}}`, nil},
	{"booleans as bounds", openAI, `{"type":"object","properties":{"a":{"minimum":1,"maximum":2,"exclusiveMinimum":true,"exclusiveMaximum":true},"b":{"minimum":1,"maximum":2,"exclusiveMinimum":false,"exclusiveMaximum":false},"c":{"exclusiveMinimum":true},"d":{"exclusiveMaximum":true}}}`,
		`{"type":"object","properties":{"a":{"exclusiveMinimum":1,"exclusiveMaximum":2},"b":{"minimum":1,"maximum":2},"c":{},"d":{}}}`,
		[]string{"/properties/c/exclusiveMinimum: malformed, left out", "/properties/d/exclusiveMaximum: malformed, left out"}},
	{"beside a part with another base", gemini, `{"type":"object","$defs":{"A":{"maxLength":1}},"properties":{"p":{"allOf":[{"$id":"q","minLength":1},{"$ref":"#/$defs/A"}]}}}`,
		`{"type":"object","properties":{"p":{"minLength":1,"maxLength":1}}}`, nil},
	{"a reference with a control character", openAI, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A\u0001"}},"$defs":{"A\u0001":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
	{"keywords that draft 4 does not know", openAI, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"p":{"const":1,"propertyNames":false,"if":{},"prefixItems":[{}],"$dynamicRef":"#x","minimum":1,"exclusiveMinimum":true}}}`,
		`{"type":"object","properties":{"p":{"exclusiveMinimum":1}}}`, nil},
}

func TestConvert(t *testing.T) {
	for _, test := range conversions {
		t.Run(test.name, func(t *testing.T) {
			got, losses := convertTwice(t, test.of, test.give)
			assert.Equal(t, test.want, got)
			assert.ElementsMatch(t, test.losses, losses)
		})
	}
}

// No value of a wrong type reaches a provider, and each is reported.
func TestConvertMalformed(t *testing.T) {
	wrong := map[operand][]string{
		aSchema: {`1`, `"x"`, `null`}, aSchemaOrBool: {`1`, `[]`, `null`}, someSchemas: {`{}`, `[]`, `null`, `true`},
		namedSchemas: {`[]`, `true`}, aType: {`1`, `"any"`, `[]`, `["any"]`, `[1]`, `{}`}, aString: {`1`, `[]`, `null`}, aPattern: {`1`, `{}`},
		someStrings: {`true`, `"a"`, `[1]`, `{}`}, namedStrings: {`[]`, `{"a":1}`}, aNumber: {`"1"`, `true`, `null`}, aMultiple: {`0`, `-1`, `"1"`, `1e-999`},
		aCount: {`-1`, `1.5`, `"1"`, `true`}, aBool: {`0`, `"true"`}, someValues: {`{}`, `1`}, alternatives: {`[]`, `{}`, `"a"`}, outdated: {`1`},
	}
	for keyword, form := range keywords {
		for _, value := range wrong[form] {
			if keyword == "items" && value[0] == '[' || strings.HasPrefix(keyword, "exclusive") && value == "true" {
				continue
			}
			schema := fmt.Sprintf(`{"type":"object","properties":{"p":{%q:%s}}}`, keyword, value)
			for of := range dialects {
				converted, losses := convertTwice(t, of, schema)
				assert.Contains(t, converted, `"p":{}`, "%s %s", of, schema)
				switch {
				case of != gemini:
					assert.Len(t, losses, 1, "%s %s", of, schema)
				case keyword != "$defs" && keyword != "definitions": // references in it are replaced
					assert.NotEmpty(t, losses, "%s %s", of, schema)
				}
			}
		}
		if form != anything {
			assert.NotEmpty(t, wrong[form], keyword)
		}
	}
}

// Parts that are nested too deep are cut, whatever they are nested in.
func TestConvertNesting(t *testing.T) {
	for _, open := range []string{`{"items":`, `{"additionalProperties":`, `{"anyOf":[`, `{"properties":{"a":`, `{"not":`} {
		end := strings.NewReplacer(`{`, `}`, `[`, `]`).Replace(strings.Join(regexp.MustCompile(`[\[{]`).FindAllString(open, -1), ""))
		end = string([]byte(end)[len(end)-1:]) + end[:len(end)-1]
		nest := func(n int) string {
			return `{"type":"object","properties":{"p":` + strings.Repeat(open, n) + `{"title":"T"}` + strings.Repeat(end, n) + `}}`
		}
		for n, want := range map[int]int{schema.MaxNesting - 2: 0, schema.MaxNesting - 1: 1, 4000: 1} {
			_, losses := convert(t, anthropic, nest(n))
			require.Len(t, losses, want, "%s %d", open, n)
			if want > 0 {
				assert.Regexp(t, "^/.*: nested too deep, left out$", losses[0])
			}
		}
	}
}

// hostileSchemas are as large as a definition may be by default and made to
// take long.
func hostileSchemas() map[string]string {
	const size = 256<<10 - 100
	fill := func(open, part, end string) string {
		n := (size - len(open) - len(end)) / len(part)
		return open + strings.Repeat(part, n-1) + strings.TrimSuffix(part, ",") + end
	}
	number := func(open, part, end string) string {
		b := strings.Builder{}
		for i := 0; b.Len() < size-len(open)-len(end)-len(part)-20; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(part, "%", fmt.Sprint(i)))
		}
		return open + b.String() + end
	}
	double := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 60 {
		double += fmt.Sprintf(`"a%d":{"properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}}},`, i, i+1, i+1, i+1)
	}
	double += `"a60":{"type":"string"}}}`
	return map[string]string{
		"deep":             strings.Repeat(`{"properties":{"a":`, 4900) + `{}` + strings.Repeat(`}}`, 4900),
		"deep allOf":       strings.Repeat(`{"allOf":[`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"deep anyOf":       strings.Repeat(`{"anyOf":[{},`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"deep default":     `{"default":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`,
		"doubling":         double,
		"many parts":       number(`{"allOf":[`, `{"properties":{"a%":{}}}`, `]}`),
		"same property":    number(`{"allOf":[`, `{"properties":{"a":{"maxLength":%}}}`, `]}`),
		"many choices":     number(`{"anyOf":[`, `{"properties":{"a":{"maxLength":%}},"required":["r%"]}`, `]}`),
		"many keywords":    number(`{"allOf":[{`, `"k%":%`, `}]}`),
		"the same name":    fill(`{"properties":{`, `"a":{},`, `}}`),
		"many references":  number(`{"properties":{`, `"p%":{"$ref":"#/properties/p%"}`, `}}`),
		"large reference":  fill(`{"properties":{"b":{"default":"`, `xxxxxxxxxx`, `"},"c":{"allOf":[`+strings.Repeat(`{"$ref":"#/properties/b"},`, 2000)+`{}]}}}`),
		"recursive":        fill(`{"properties":{"b":{"$ref":"#/properties/c"},"c":{"$ref":"#/properties/b","allOf":[`, `{"$ref":"#/properties/b"},`, `]}}}`),
		"references to #":  fill(`{"allOf":[`, `{"$ref":"#"},`, `]}`),
		"a long name":      number(`{"properties":{"`+strings.Repeat("n", 100_000)+`":{"properties":{`, `"p%":{"dependencies":1}`, `}}}}`),
		"a long reference": fill(`{"properties":{"a":{"$ref":"#`, `/properties`, `"}}}`),
		"a long pattern":   fill(`{"properties":{"a":{"pattern":"`, `(?:\\(`, `"}}}`),
	}
}

func TestConvertHostile(t *testing.T) {
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(schema)))
			for of := range dialects {
				if mcptest.Race() && of != openAI { // 20 times as slow, and nothing runs at once
					continue
				}
				mcptest.Quick(t, 10*time.Second, func() { convert(t, of, schema) }, of) // 0.2 s without the race detector
			}
		})
	}
}

// Whatever the schema is, each provider gets one that it accepts.
func FuzzConvert(f *testing.F) {
	for _, c := range conversions {
		f.Add(c.give)
	}
	f.Add(`{"properties":{"\ud800":{"$ref":"#/properties/\ufffd"}},"x":"` + "\xff" + `"}`)
	f.Add(`{"$ref":"#/allOf/0","allOf":[{"properties":{"a":{"$ref":"#/allOf/0"}}}]}`)
	f.Fuzz(func(t *testing.T, given string) {
		if c := text.Compact(json.RawMessage(given)); json.Valid(c) && c[0] == '{' {
			for of := range dialects {
				convertTwice(t, of, given)
			}
		}
	})
}

// Like FuzzConvert, but with schemas made of keywords, so that more of them
// have a meaning.
func TestConvertRandom(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(keywords))
	for seed := range mcptest.Long[uint64](500, 100) {
		r := rand.New(rand.NewPCG(seed, 0))
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		var schema, value func(depth int) string
		schema = func(depth int) string {
			if depth <= 0 {
				return "{}"
			}
			var members []string
			for range r.IntN(5) {
				name := pick(pick(names...), pick("type", "properties", "$ref", "anyOf", "oneOf", "allOf", "$defs", "required", "enum", "const", "additionalProperties"))
				v := value(depth)
				switch keywords[name] {
				case aSchema, aSchemaOrBool:
					v = pick(schema(depth-1), "false", v)
				case someSchemas:
					v = "[" + schema(depth-1) + "," + schema(depth-1) + "]"
				case namedSchemas:
					v = fmt.Sprintf(`{"a":%s,%q:%s}`, schema(depth-1), pick("b", "a", "$c", "(?=d)"), schema(depth-1))
				case aString:
					v = pick(`"#/$defs/a"`, `"#/$defs/b"`, `"#"`, `"#/properties/a"`, `"#/allOf/0"`, `"#/anyOf/1"`, `"x"`, v)
				case aType:
					v = pick(`"object"`, `"array"`, `["object","null"]`, `"string"`, v)
				case someStrings:
					v = pick(`["a"]`, `["a","$c","b"]`, v)
				}
				members = append(members, fmt.Sprintf("%q:%s", name, v))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		value = func(depth int) string {
			if depth <= 0 {
				return pick("1", "true", `"a"`, "null", "{}")
			}
			return pick("-1.50", "true", "false", `"(?!x)"`, "[]", `["a",1,null]`, "["+schema(depth-1)+"]", schema(depth-1))
		}
		given := schema(5)
		for of := range dialects {
			convertTwice(t, of, given)
		}
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
}

// Each provider accepts the conversions of what real servers send, and most
// accept it unchanged.
func TestConvertCatalogs(t *testing.T) {
	schemas, losses := 0, make(map[string]int)
	for _, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			var tool struct{ InputSchema json.RawMessage }
			require.NoError(t, json.Unmarshal(raw, &tool))
			schemas++
			for of := range dialects {
				_, lost := convertTwice(t, of, string(tool.InputSchema))
				losses[of] += len(lost)
			}
		}
	}
	t.Logf("%d schemas, losses %v", schemas, losses)
	assert.Greater(t, schemas, 400)
	assert.Equal(t, 0, losses[openAI])
	assert.Equal(t, 0, losses[anthropic])
	assert.Less(t, losses[gemini], schemas/10)
}

var shortName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// check returns the first rule of the provider that a converted schema breaks.
func check(of string, converted json.RawMessage) error {
	if string(text.Compact(converted)) != string(converted) {
		return fmt.Errorf("not compact, or not UTF-8")
	}
	var schema map[string]any
	if err := json.Unmarshal(converted, &schema); err != nil {
		return err
	}
	if schema["type"] != "object" {
		return fmt.Errorf("not of type object")
	}
	no := []string{"anyOf", "oneOf", "allOf"}
	if of == openAI {
		no = append(no, "enum", "const", "not")
		if schema["properties"] == nil {
			return fmt.Errorf("no properties")
		}
	}
	for _, keyword := range no {
		if schema[keyword] != nil {
			return fmt.Errorf("%s at the root", keyword)
		}
	}
	if properties, _ := schema["properties"].(map[string]any); of == anthropic {
		for name := range properties {
			if !shortName.MatchString(name) {
				return fmt.Errorf("the property %q", name)
			}
		}
	}
	return checkWithin(of, schema, schema, "")
}

// checkWithin returns the first rule that a schema or a part of it breaks.
func checkWithin(of string, root, schema map[string]any, at string) error {
	isGemini := of == gemini
	for keyword, value := range schema {
		at := at + "/" + keyword
		bad := fmt.Errorf("%.300s: %.100v", at, value)
		var within []any
		ok := true
		switch keyword {
		case "items", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema":
			within = []any{value}
		case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
			if _, isBool := value.(bool); !isBool {
				within = []any{value}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			within, ok = value.([]any)
			ok = ok && len(within) > 0
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			var named map[string]any
			named, ok = value.(map[string]any)
			for name, s := range named {
				within = append(within, s)
				if keyword == "patternProperties" && of != anthropic && strings.Contains(name, "(?=") && !strings.Contains(name, `\`) {
					return bad
				}
			}
		case "type":
			list, isList := value.([]any)
			if !isList {
				list = []any{value}
			}
			ok = len(list) > 0
			for i, s := range list {
				name, _ := s.(string)
				ok = ok && slices.Contains(schemaTypes, name) && !slices.Contains(list[:i], s)
			}
		case "enum":
			list, isList := value.([]any)
			ok = isList && len(list) > 0
			for _, v := range list {
				_, isString := v.(string)
				_, isNumber := v.(float64)
				ok = ok && (!isGemini || isString || isNumber)
			}
		case "required":
			var list []any
			list, ok = value.([]any)
			properties, _ := schema["properties"].(map[string]any)
			for i, v := range list {
				name, isString := v.(string)
				ok = ok && isString && !slices.Contains(list[:i], v) && (!isGemini || properties[name] != nil)
			}
		case "pattern", "title", "description", "format", "$schema", "$comment", "$id":
			_, ok = value.(string)
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			_, ok = value.(float64)
		case "multipleOf":
			n, isNumber := value.(float64)
			ok = isNumber && n > 0
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
			n, isNumber := value.(float64)
			ok = isNumber && n >= 0
		case "$ref":
			var ref string
			ref, ok = value.(string)
			parts := strings.Split(ref, "/")
			ok = ok && !isGemini && (ref == "#" || len(parts) == 3 && root[parts[1]] != nil)
		}
		if !ok || isGemini && !Gemini.onlyWith(keyword) {
			return bad
		}
		for _, s := range within {
			inner, ok := s.(map[string]any)
			if !ok {
				return bad
			}
			if err := checkWithin(of, root, inner, at); err != nil {
				return err
			}
		}
	}
	isArray := schema["type"] == "array"
	if list, ok := schema["type"].([]any); ok {
		isArray = slices.Contains(list, any("array"))
	}
	if isArray && of != anthropic && schema["items"] == nil {
		return fmt.Errorf("%.300s: no items", at)
	}
	if pattern, _ := schema["pattern"].(string); of == openAI && strings.HasPrefix(pattern, "^(?!") {
		return fmt.Errorf("%.300s: lookaround", at)
	}
	return nil
}

func TestLooksAround(t *testing.T) {
	for pattern, want := range map[string]bool{
		"(?=x)y": true, "(?!x)y": true, "(?<=x)y": true, "(?<!x)y": true, "a(b(?<!c))": true,
		"(?:x)y": false, "(?<name>x)": false, `\(?!x`: false, "(x)": false, "(": false, "": false,
	} {
		assert.Equal(t, want, looksAround(pattern), pattern)
	}
}

// An alternative that allows everything is one, but for a provider that must know what a
// value is.
func TestAlternativesThatAllowAll(t *testing.T) {
	t.Parallel()
	const given = `{"type":"object","properties":{"a":{"anyOf":[{},{"type":"string"}]}}}`
	for name, d := range map[string]Dialect{"OpenAI": OpenAI, "Anthropic": Anthropic, "Bedrock": Bedrock} {
		converted, losses := Convert(json.RawMessage(given), d)
		assert.JSONEq(t, given, string(converted), name)
		assert.Empty(t, losses, name)
	}
	converted, _ := Convert(json.RawMessage(given), Gemini)
	assert.NotContains(t, string(converted), "anyOf")
}

// Each provider's own wants are met, and no others. Bedrock's models want what all others do.
func TestWantsOfProviders(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{`
	for given, takes := range map[string][]string{
		object + `"a":{"type":"string","pattern":"x(?=y)"}}}`: {anthropic},
		object + `"a":{"type":"array"}}}`:                     {anthropic},
		`{"type":"object"}`:                                   {anthropic},
		object + `},"enum":[{}]}`:                             {anthropic},
		object + `},"const":{}}`:                              {anthropic},
		object + `},"not":{"required":["a"]}}`:                {anthropic},
		object + `"$top":{}}}`:                                {openAI},
		object + `"` + longName + `":{}}}`:                    {openAI},
		object + `"` + longName[1:] + `":{}}}`:                {openAI, anthropic, "Bedrock"},
		object + `},"oneOf":[{},{"required":["a"]}]}`:         nil,
	} {
		for name, d := range map[string]Dialect{openAI: OpenAI, anthropic: Anthropic, "Bedrock": Bedrock} {
			converted, _ := Convert(json.RawMessage(given), d)
			assert.Equal(t, slices.Contains(takes, name), string(converted) == given, "%s for %s: %s", given, name, converted)
		}
	}
}

// A schema in the place of a boolean stays, as a boolean does.
func TestSchemasOrBooleans(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`{"type":"string"}`, "true", "false"} {
		for _, keyword := range []string{"additionalProperties", "unevaluatedProperties", "unevaluatedItems"} {
			c := &converter{Dialect: OpenAI}
			got, ok := c.keyword(text.Member{Name: keyword, Value: json.RawMessage(value)}, nil, 10)
			assert.True(t, ok, "%s: %s", keyword, value)
			assert.Equal(t, value[0] == '{', got[0] == '{', "%s: %s", keyword, got)
		}
	}
}
