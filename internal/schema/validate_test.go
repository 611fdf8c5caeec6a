package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// violations validates and returns each violation as "pointer problem".
func violations(t testing.TB, schema, args string) []string {
	v := NewValidator(json.RawMessage(schema))
	require.NoError(t, v.Err(), schema)
	found, more := v.Validate(json.RawMessage(args))
	require.Zero(t, more)
	var lines []string
	for _, f := range found {
		lines = append(lines, f.Pointer+" "+f.Problem)
	}
	return lines
}

func TestValidateProblems(t *testing.T) {
	tests := []struct{ schema, args, want string }{ // the property x; want has | between problems, "" for none
		{`{"type":"integer"}`, `"5"`, `/x is a string, but must be an integer`},
		{`{"type":"number"}`, `"5"`, `/x is a string, but must be a number`},
		{`{"type":"integer"}`, `5.0`, ``},
		{`{"type":"integer"}`, `5.5`, `/x is a number, but must be an integer`},
		{`{"type":"string"}`, `null`, `/x is null, but must be a string`},
		{`{"type":"string"}`, `[]`, `/x is an array, but must be a string`},
		{`{"type":["null","string"]}`, `{}`, `/x is an object, but must be a string or null`},
		{`{"type":"boolean"}`, `"true"`, `/x is a string, but must be a boolean`},
		{`{"enum":["open","closed"]}`, `"opne"`, `/x is "opne", but must be one of "open", "closed"`},
		{`{"enum":["a"]}`, `["secret"]`, `/x is an array, but must be "a"`},
		{`{"enum":[1,null,true,{"a":1},[2]]}`, `{"a":2}`, `/x is an object, but must be one of 1, null, true, an object, an array`},
		{`{"enum":["a","b","c","d","e","f","g","h","i","j","k","l"]}`, `5`, `/x is 5, but must be one of "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" or 2 others in the schema`},
		{`{"enum":[]}`, `5`, `/x is 5, but no value is allowed here`},
		{`{"enum":["` + strings.Repeat("w", 100) + `"]}`, `"` + strings.Repeat("g", 100) + `"`, `/x is "` + strings.Repeat("g", 39) + `…", but must be "` + strings.Repeat("w", 79) + `…"`},
		{`{"enum":["a\nb"]}`, `"c\n\u202e## d"`, `/x is "c ## d", but must be "a b"`},
		{`{"const":"a"}`, `false`, `/x is false, but must be "a"`},
		{`{"required":["title","b"]}`, `{"b":1}`, `/x is missing the required property "title"`},
		{`{"required":["z","y"]}`, `{}`, `/x is missing the required property "y"|/x is missing the required property "z"`},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"q\n":1,"a":1,"p":"secret"}`, `/x has the property "p", which the schema does not know|/x has the property "q", which the schema does not know`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/x/a is not allowed by the schema`},
		{`{"not":{"type":"string"}}`, `"secret"`, `/x is not allowed by the schema`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `/x/a is not allowed by the schema`},
		{`{"propertyNames":{"pattern":"^a"}}`, `{"b":1}`, `/x has the property "b", whose name the schema does not allow`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/x is missing the property "b", which is required with "a"`},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, `/x is missing the property "b", which is required with "a"`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, `/x is missing the required property "b"`},
		{`{"minProperties":1}`, `{}`, `/x has 0 properties, but must have at least 1`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `/x has 2 properties, but must have at most 1`},
		{`{"minItems":1}`, `[]`, `/x has 0 items, but must have at least 1`},
		{`{"maxItems":1}`, `[1,2]`, `/x has 2 items, but must have at most 1`},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `/x/1 is not allowed by the schema`},
		{`{"items":[{"type":"string"}],"additionalItems":false}`, `[1,2]`, `/x has 1 item too many|/x/0 is a number, but must be a string`},
		{`{"uniqueItems":true}`, `["s","t","s"]`, `/x has equal items at 0 and 2, but no two may be equal`},
		{`{"contains":{"const":1}}`, `[2]`, `/x has no item that fits "contains" in the schema, but must have one`},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, `/x has too few items that fit "contains" in the schema: 1, but must have at least 2`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `/x has too many items that fit "contains" in the schema: 2, but must have at most 1`},
		{`{"minLength":2}`, `"é"`, `/x has 1 character, but must have at least 2`},
		{`{"maxLength":1}`, `"éé"`, `/x has 2 characters, but must have at most 1`},
		{`{"pattern":"^a+$"}`, `"secret"`, `/x does not match the pattern "^a+$"`},
		{`{"minimum":1}`, `0`, `/x is too small: it must be at least 1`},
		{`{"maximum":2.5}`, `3`, `/x is too large: it must be at most 2.5`},
		{`{"exclusiveMinimum":9007199254740991}`, `1`, `/x is too small: it must be more than 9007199254740991`},
		{`{"exclusiveMaximum":1000000}`, `1e6`, `/x is too large: it must be less than 1000000`},
		{`{"multipleOf":0.01}`, `0.015`, `/x is not a multiple of 0.01`},
		{`{"multipleOf":0.01}`, `0.07`, ``},

		// Alternatives.
		{`{"anyOf":[{"type":"string"},{"type":"null"},{"type":"string"}]}`, `5`, `/x is a number, but must be a string or null`},
		{`{"oneOf":[{"const":"a"},{"enum":["b","c"]}]}`, `"d"`, `/x is "d", but must be one of "a", "b", "c"`},
		{`{"anyOf":[{"const":"auto"},{"type":"object"}]}`, `"x"`, `/x is "x", but must be "auto" or an object`},
		{`{"anyOf":[{"type":"string"},{"required":["a","b"]}]}`, `{}`, `/x is missing the required property "a"|/x is missing the required property "b"`},
		{`{"oneOf":[{"required":["a","b"]},{"required":["c"]},{"required":["d"]}]}`, `{}`, `/x is missing the required property "c"`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"string"}},"required":["k","v"]},{"properties":{"k":{"const":"b"}}}]}`, `{"k":"a"}`, `/x is missing the required property "v"`},
		{`{"oneOf":[{},{}]}`, `1`, `/x fits more than one of the alternatives in the schema, but must fit exactly one`},
		{`{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, `[1]`, `/x/0 is a number, but must be a string`},
		{`{"allOf":[{"required":["a"]},{"required":["a","b"]}]}`, `{}`, `/x is missing the required property "a"|/x is missing the required property "b"`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, `/x is missing the required property "b"`},

		// Arguments that pass because servers differ.
		{`{"type":"string","format":"uri"}`, `"no uri"`, ``},
		{`{"type":"string","pattern":"^(?!a)"}`, `"a"`, ``},
		{`{"type":"string","pattern":"(x{1000}){1000}"}`, `"a"`, ``},
		{`{"type":"string","nullable":true}`, `null`, ``},
		{`{"properties":{"const":{"type":"string","nullable":true}}}`, `{"const":null}`, ``},
		{`{"patternProperties":{"const":{"type":"string","nullable":true}}}`, `{"const":null}`, ``},
		{`{"properties":{"const":{"pattern":"^(?!a)"},"n":{"type":"number"}}}`, `{"const":"a","n":"b"}`, `/x/n is a string, but must be a number`},
		{`{"type":"object","required":null,"properties":null}`, `{}`, ``},
		{`{"type":"string","maxLength":1e300}`, `"a"`, ``},
		{`{"type":"string","minLength":18446744073709551615}`, `"a"`, ``},
		{`{"minimum":1,"exclusiveMinimum":true}`, `1`, `/x is too small: it must be more than 1`},
		{`{"const":{"format":"a","pattern":"("}}`, `{"format":"a","pattern":"("}`, ``},
		{`{"enum":[{"format":"a"}]}`, `{"format":"a"}`, ``},
		{`{"properties":{"format":{"type":"string"},"enum":{"type":"string","format":"date"},"pattern":{"type":"string"},"required":{"type":"null"}},"additionalProperties":false}`,
			`{"format":"","enum":"","pattern":"","required":null}`, ``},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) {
			got := violations(t, `{"properties":{"x":`+test.schema+`}}`, `{"x":`+test.args+`}`)
			var want []string
			if test.want != "" {
				want = strings.Split(test.want, "|")
			}
			assert.Equal(t, want, got)
			assert.NotContains(t, strings.Join(got, ""), "secret")
		})
	}
}

func TestValidatePointers(t *testing.T) {
	schema := `{"additionalProperties":{"type":"array","items":{"properties":{"~n":{"type":"string"}}}}}`
	got := violations(t, schema, `{"a/b":[0,{"~n":1},{"~n":"s"}],"":{},"a":1,"c\nd":2,"`+strings.Repeat("e", 100)+`":3}`)
	assert.Equal(t, []string{
		"/ is an object, but must be an array",
		"/a is a number, but must be an array",
		"/a~1b/1/~0n is a number, but must be a string",
		"/c d is a number, but must be an array",
		"/" + strings.Repeat("e", 79) + "… is a number, but must be an array",
	}, got)

	// No name may occur twice. No arguments are an object.
	for _, args := range []string{`{"a":1,"a":"s"}`, `{"a":"s","\u0061":1}`, `{"b":[{"a":{},"c":{"a":1},"a":2}]}`} {
		assert.Equal(t, []string{` has the member "a" more than once`}, violations(t, `{"properties":{"a":{"type":"string"},"b":{"minItems":1}}}`, args))
	}
	plain, broken := `{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"array"}}}`, NewValidator(json.RawMessage(`{"type":7}`))
	require.Error(t, broken.Err())
	for _, args := range []string{`{"c":1,"c":1}`, `{"c":1,"\u0063":1}`, `{"a":{"c":1,"c":2}}`, `{"b":[1,[{"c":1,"c":2}]]}`} {
		assert.Equal(t, []string{` has the member "c" more than once`}, violations(t, plain, args), args)
		found, _ := broken.Validate(json.RawMessage(args))
		assert.Equal(t, []Violation{{Problem: `has the member "c" more than once`}}, found, args)
		assert.Empty(t, violations(t, plain, strings.Replace(args, `"c"`, `"d"`, 1)), args)
	}
	assert.Equal(t, []string{` is an array, but must be an object`}, violations(t, `{"type":"object"}`, `[]`))
}

func TestValidateMore(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"a":{"items":{"type":"string"}}},"required":["b"]}`))
	found, more := v.Validate(json.RawMessage(`{"a":[` + strings.Repeat("1,", 29) + `1]}`))
	require.Len(t, found, 16)
	assert.Equal(t, 15, more)
	assert.Equal(t, Violation{"", `is missing the required property "b"`}, found[0])
	assert.Equal(t, "/a/0", found[1].Pointer)
	assert.Equal(t, "/a/10", found[3].Pointer) // names are compared, not numbers

}

// The same keywords mean different things in different drafts.
func TestValidateDrafts(t *testing.T) {
	const prefix = `{"properties":{"x":{"prefixItems":[{"type":"string"}]}},"$schema":` // 2020-12 only
	const tuple = `{"properties":{"x":{"items":[{"type":"string"}]}},"$schema":`        // before 2020-12 only
	tests := []struct {
		schema string
		finds  bool
	}{
		{prefix + `"https://json-schema.org/draft/2020-12/schema"}`, true},
		{prefix + `"http://json-schema.org/draft-07/schema#"}`, false},
		{prefix + `"http://json-schema.org/schema#"}`, true},
		{prefix + `"https://example.com/own"}`, true},
		{prefix + `""}`, true},
		{prefix + `"%zz"}`, true},
		{tuple + `"http://json-schema.org/draft-07/schema#"}`, true},
		{tuple + `"http://json-schema.org/draft-04/schema#"}`, true},
		{tuple + `"https://json-schema.org/draft/2019-09/schema"}`, true},
		{tuple + `"https://json-schema.org/draft/2020-12/schema"}`, true}, // against its draft
		{`{"definitions":{"a":{"type":"string"}},"properties":{"x":{"items":{"$ref":"#/definitions/a"}}}}`, true},
		{`{"$defs":{"a":{"$anchor":"b","type":"string"}},"properties":{"x":{"items":{"$ref":"#b"}}}}`, true},
		{`{"$id":"https://example.com/a","$defs":{"a":{"type":"string"}},"properties":{"x":{"items":{"$ref":"a#/$defs/a"}}}}`, true},
		{`{"properties":{"x":{"items":{"$ref":"http://json-schema.org/draft-07/schema#"}}}}`, true},
		{`{"properties":{"x":{"items":{"$ref":"#"}}},"type":"object"}`, true},
		{`{"properties":{"x":{"items":{"$dynamicRef":"#a"}}},"$defs":{"a":{"$dynamicAnchor":"a","type":"string"}}}`, false}, // not followed
	}
	for _, test := range tests {
		assert.Equal(t, test.finds, len(violations(t, test.schema, `{"x":[1]}`)) > 0, test.schema)
	}
}

// A schema that can't be compiled refuses nothing and reads nothing else.
func TestValidateUncompilable(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	t.Chdir(filepath.Dir(file))
	deep := func(n int) string {
		return strings.Repeat(`{"items":`, n) + `{"type":"string"}` + strings.Repeat(`}`, n)
	}
	require.NoError(t, NewValidator(json.RawMessage(deep(128))).Err()) // twice as deep takes 38 MB

	tests := []struct{ schema, want string }{
		{`{"$ref":"` + server.URL + `"}`, "no URLLoader"},
		{`{"$ref":"file://` + file + `"}`, "no URLLoader"},
		{`{"$ref":"schema.json"}`, "no URLLoader"},
		{`{"$id":"file://` + filepath.Dir(file) + `/","$ref":"schema.json"}`, "no URLLoader"},
		{`{"$ref":"#/$defs/none"}`, "not found"},
		{`{"$ref":"#none"}`, "not found"},
		{`{"type":"str"}`, "type"},
		{`{"multipleOf":0}`, "multipleOf"},
		{`{"patternProperties":{"(?!a)":{}}}`, "expression"},
		{`{"maximum":1e1000000}`, "too large"},
		{`{"maximum":1e99999999999999999999}`, "too large"},
		{`{"const":[1` + strings.Repeat("0", 400) + `]}`, "too large"},
		{deep(256), "too deep"},
		{deep(20_000), "too deep"},
		{`{"enum":[1` + strings.Repeat(",1", 1<<13) + `]}`, "too large"},
		{`{"properties":{"` + strings.Repeat("k", 200_000) + `":{"enum":[` + strings.Repeat("1,", 1000) + `2]}}}`, "too large"},
		{`[]`, ""}, {`"s"`, ""}, {`null`, ""}, {`5`, ""}, {``, "EOF"}, {`{`, "EOF"},
	}
	for _, test := range tests {
		v := NewValidator(json.RawMessage(test.schema))
		if test.want != "" || v.Err() != nil {
			require.Error(t, v.Err(), "%.80s", test.schema)
			assert.Contains(t, v.Err().Error(), test.want, "%.80s", test.schema)
			assert.NotContains(t, v.Err().Error(), "\n")
			assert.LessOrEqual(t, len([]rune(v.Err().Error())), text.MaxError)
		}
		found, more := v.Validate(json.RawMessage(`{"a":1}`))
		assert.Empty(t, found, "%.80s", test.schema)
		assert.Zero(t, more)
	}
	assert.Zero(t, requests.Load())
}

// repeat joins f(0) … f(n−1) with commas.
func repeat(n int, f func(i int) string) string {
	var list []string
	for i := range n {
		list = append(list, f(i))
	}
	return strings.Join(list, ",")
}

// Arguments with more values than there may be steps are not decoded, even where the schema
// does not look at each. A member that stands there twice is found all the same.
func TestHugeArguments(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"a":{"type":"string"}}}`))
	args := func(values int, more string) json.RawMessage {
		return json.RawMessage(`{"a":[[` + strings.Repeat("1,", values-4) + `1]]` + more + `}`)
	}
	found, _ := v.Validate(args(100_000, ""))
	assert.Len(t, found, 1)
	found, _ = v.Validate(args(100_001, ""))
	assert.Empty(t, found)
	found, _ = v.Validate(args(100_001, `,"a":1`))
	assert.Len(t, found, 1)
}

// No schema and no arguments make validation slow.
func TestValidateBounded(t *testing.T) {
	numbers := func(n int, number string) string { return strings.Repeat(number+",", n) + "1" }
	items := func(schema string) string { return `{"properties":{"a":{"items":` + schema + `}}}` }
	tests := []struct{ name, schema, args string }{
		{"reference to itself", `{"$ref":"#"}`, `{}`},
		{"references in a circle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, `{}`},
		{"doubling", `{"$ref":"#/$defs/0","$defs":{"60":false,` + repeat(60, func(i int) string {
			return fmt.Sprintf(`"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]}`, i, i+1)
		}) + `}}`, `{}`},
		{"doubling with each level", `{"properties":{"a":{"not":{"$ref":"#/$defs/b"}}},"$defs":{"b":{"items":{"$ref":"#/$defs/b"},"contains":{"$ref":"#/$defs/b"},"type":"array"}}}`,
			`{"a":` + strings.Repeat("[", 100) + "1" + strings.Repeat("]", 100) + `}`},
		{"doubling by names", `{"patternProperties":{"a":{"$ref":"#"},".":{"$ref":"#"}},"type":"object"}`,
			strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)},
		{"doubling by anchors", `{"$dynamicAnchor":"meta","allOf":[{"$ref":"https://json-schema.org/draft/2020-12/schema"},{"$ref":"https://json-schema.org/draft/2020-12/schema"}]}`,
			strings.Repeat(`{"items":`, 100) + "1" + strings.Repeat("}", 100)},
		{"deep schema", strings.Repeat(`{"items":`, 250) + "{}" + strings.Repeat("}", 250), `{}`},
		{"deep arguments", `{"additionalProperties":{"$ref":"#"}}`, strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)},
		{"many properties", `{"properties":{` + repeat(2500, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`, `{"p1":1}`},
		{"references to strange places", `{"x":{` + repeat(3500, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"allOf":[` +
			repeat(240, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/p%d"}`, i) }) + `]}`, `{}`},
		{"invalid in a strange place", `{"x":{` + repeat(3500, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `,"q":{"type":1}},"allOf":[` +
			repeat(230, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/p%d"}`, i) }) + `,{"$ref":"#/x/q"}]}`, `{}`},
		{"many identifiers", `{"allOf":[` + repeat(2600, func(i int) string { return fmt.Sprintf(`{"$id":"schema://a/%d"}`, i) }) + `]}`, `{}`},
		{"large expressions", `{"properties":{` + repeat(2000, func(i int) string {
			return fmt.Sprintf(`"p%d":{"pattern":"%s"}`, i, strings.Repeat(fmt.Sprintf("x{%d}", 500+i%500), 10))
		}) + `}}`, `{}`},
		{"huge expression", `{"properties":{"a":{"pattern":"` + strings.Repeat("(x{1000})", 20_000) + `"}}}`, `{"a":"x"}`},
		{"slow expression", items(`{"pattern":"^(x{0,900}y)+$"}`), `{"a":[` + repeat(1000, func(int) string { return `"` + strings.Repeat("x", 1500) + `"` }) + `]}`},
		{"slow expression for names", `{"patternProperties":{"^(x{0,900}y)+$":{}},"minProperties":9999}`, `{` + repeat(1000, func(i int) string { return fmt.Sprintf(`"%s%d":1`, strings.Repeat("x", 1500), i) }) + `}`},
		{"large numbers", items(`{"type":"integer"}`), `{"a":[` + numbers(1000, "1e1000000") + `]}`},
		{"small numbers", items(`{"multipleOf":3}`), `{"a":[` + numbers(1000, "1e-1000000") + `]}`},
		{"long numbers", items(`{"type":"integer"}`), `{"a":[` + strings.Repeat("1", 1<<20) + `]}`},
		{"numbers at the limit", items(`{"type":"integer","multipleOf":1e-400,"maximum":1e400}`), `{"a":[` + numbers(4000, "123456789e400") + `]}`},
		{"equal items", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[0,` + repeat(20_000, func(i int) string { return fmt.Sprint(i) }) + `]}`},
		{"items of equal hash", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[` + repeat(2000, func(i int) string {
			return strings.ReplaceAll(fmt.Sprintf(`["%011b"]`, i), "0", `","`) // lists that the library writes in the same way
		}) + `]}`},
		{"long enum", items(`{"enum":[` + repeat(8000, func(i int) string { return fmt.Sprint(i) }) + `]}`), `{"a":[` + numbers(500, "-1") + `]}`},
		{"enum of objects", items(`{"enum":[` + repeat(100, func(i int) string {
			return fmt.Sprintf(`{%s,"z":%d}`, repeat(70, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }), i)
		}) + `]}`),
			`{"a":[` + repeat(200, func(int) string {
				return `{` + repeat(70, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `,"z":-1}`
			}) + `]}`},
		{"many required", items(`{"required":[` + repeat(8000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}`), `{"a":[` + strings.Repeat("{},", 10_000) + `1]}`},
		{"many violations", items(`{"type":"string"}`), `{"a":[` + strings.Repeat("true,", 45_000) + `true]}`},
		{"many alternatives", items(`{"anyOf":[` + repeat(1000, func(i int) string { return fmt.Sprintf(`{"required":["%d"]}`, i) }) + `]}`), `{"a":[` + strings.Repeat("{},", 1000) + `1]}`},
		{"many unknown properties", `{"additionalProperties":false}`, `{` + repeat(40_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		{"long string", `{"properties":{"a":{"maxLength":1,"minLength":1}}}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			v := NewValidator(json.RawMessage(test.schema))
			err := v.Err()
			compiled := time.Now()
			found, more := v.Validate(json.RawMessage(test.args))
			t.Logf("compile %v (%.60v), validate %v: %d violations", compiled.Sub(start), err, time.Since(compiled), len(found)+more)
			assert.Less(t, time.Since(start), 5*time.Second) // a tenth of that or less on an idle machine
			switch test.name {
			case "slow expression", "slow expression for names", "equal items", "long enum", "enum of objects", "many required", "many alternatives":
				assert.Empty(t, found, "takes too many steps to be checked")
			}
			if testing.Short() {
				return
			}
			again, moreAgain := v.Validate(json.RawMessage(test.args))
			assert.Equal(t, found, again)
			assert.Equal(t, more, moreAgain)
		})
	}
}

func TestPatterns(t *testing.T) {
	p := patterns{seen: make(map[string]*pattern), text: 100, left: expression.Size{Instructions: 3000, Runes: 10}}
	first := p.find("x{1000}")
	require.NotNil(t, first)
	assert.Greater(t, first.size, 1000)
	assert.Nil(t, p.find("(?=x)"))
	assert.NotNil(t, p.find("y{1000}"))
	assert.Nil(t, p.find("z{1000}"), "too large with those before")
	assert.Same(t, first, p.find("x{1000}"))
	assert.Nil(t, p.find("a"))
}

func TestValidateConcurrently(t *testing.T) {
	v := NewValidator(json.RawMessage(issueSchema))
	var wg sync.WaitGroup
	var found atomic.Int32
	for range 16 {
		wg.Go(func() {
			for range 20 {
				bad, _ := v.Validate(json.RawMessage(`{"owner":1,"repo":"r","title":"t"}`))
				found.Add(int32(len(bad)))
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 320, found.Load())
}

// A validator whose library panics lets arguments pass.
func TestValidatePanics(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`))
	schema, err := v.compiled()
	require.NoError(t, err)
	schema.Properties["a"].Pattern = panics{}
	found, more := v.Validate(json.RawMessage(`{"a":"s"}`))
	assert.Empty(t, found)
	assert.Zero(t, more)
}

type panics struct{}

func (panics) MatchString(string) bool { panic(errors.New("hostile")) }
func (panics) String() string          { return "" }

const issueSchema = `{"type":"object","properties":{
	"owner":{"type":"string","description":"Repository owner"},
	"repo":{"type":"string","description":"Repository name"},
	"title":{"type":"string","description":"Issue title","minLength":1},
	"state":{"type":"string","enum":["open","closed"]},
	"labels":{"type":"array","items":{"type":"string"}},
	"milestone":{"type":"integer","minimum":1}},
	"required":["owner","repo","title"],"additionalProperties":false}`

const issueArguments = `{"owner":"octo","repo":"hello","title":"It does not start","state":"open","labels":["bug","help wanted"],"milestone":3}`

func BenchmarkValidate(b *testing.B) {
	for _, bench := range []struct{ name, args string }{
		{"valid", issueArguments},
		{"invalid", `{"owner":"octo","repo":5,"state":"opne","labels":["bug"],"milestone":0}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			v := NewValidator(json.RawMessage(issueSchema))
			require.NoError(b, v.Err())
			b.ReportAllocs()
			for b.Loop() {
				v.Validate(json.RawMessage(bench.args))
			}
		})
	}
	b.Run("decode only", func(b *testing.B) {
		for b.Loop() {
			_, _ = decodeJSON(json.RawMessage(issueArguments))
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, NewValidator(json.RawMessage(issueSchema)).Err())
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(issueSchema), []byte(issueArguments))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`), []byte(`{"a":1e99}`))
	f.Add([]byte(`{"properties":{"a":{"multipleOf":0.1,"maximum":1e400,"pattern":"(?=a)"}},"patternProperties":{"^a":{"uniqueItems":true}}}`), []byte(`{"a":[1,1.0]}`))
	f.Add([]byte(`{"oneOf":[{"required":["a"]},{"not":{}}],"if":{},"then":{"dependentRequired":{"a":["b"]}}}`), []byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		if !json.Valid(args) {
			args = []byte(`{"a":[1,"b",null,{"c":1e9}]}`)
		}
		start := time.Now()
		v := NewValidator(schema)
		found, more := v.Validate(args)
		require.Less(t, time.Since(start), time.Second)
		require.LessOrEqual(t, len(found), 16)
		again, moreAgain := NewValidator(schema).Validate(args)
		require.Equal(t, found, again)
		require.Equal(t, more, moreAgain)
		for _, f := range found {
			require.Equal(t, text.Line(f.Pointer+" "+f.Problem, 1<<20), strings.TrimLeft(f.Pointer+" "+f.Problem, " "))
		}
		for _, all := range []string{`{}`, `true`} {
			found, more := NewValidator(json.RawMessage(all)).Validate(args)
			require.Empty(t, found)
			require.Zero(t, more)
		}
	})
}

type object = map[string]any

// example returns a value that a schema accepts, with all properties or only
// the required ones. It covers what the real catalogs use.
func example(schema any, full bool) any {
	s, _ := schema.(object)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if forms, ok := s[keyword].([]any); ok {
			return example(forms[0], full)
		}
	}
	if values, ok := s["enum"].([]any); ok {
		return values[0]
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok {
		kind = kinds[0].(string)
	}
	number := func(keyword string) (float64, bool) { n, ok := s[keyword].(float64); return n, ok }
	switch kind {
	case "string":
		if s["pattern"] != nil {
			for _, text := range []string{"a", "example.com", "123e4567-e89b-12d3-a456-426614174000"} {
				if len(newMust(s, text)) == 0 {
					return text
				}
			}
		}
		n, _ := number("minLength")
		return strings.Repeat("a", max(1, int(n)))
	case "number", "integer":
		if n, ok := number("minimum"); ok {
			return n
		}
		if n, ok := number("exclusiveMinimum"); ok {
			return n + 1
		}
		if n, ok := number("maximum"); ok {
			return n
		}
		return 1
	case "boolean":
		return true
	case "array":
		n, _ := number("minItems")
		list := []any{}
		for range max(int(n), 1) {
			list = append(list, example(s["items"], full))
		}
		return list
	case "object":
		properties, _ := s["properties"].(object)
		required, _ := s["required"].([]any)
		value := object{}
		for name, p := range properties {
			if full || slices.Contains(required, any(name)) {
				value[name] = example(p, full)
			}
		}
		return value
	case "null":
		return nil
	}
	return "anything"
}

func marshal(v any) json.RawMessage { data, _ := json.Marshal(v); return data }

func newMust(schema, value any) []Violation {
	found, _ := NewValidator(marshal(schema)).Validate(marshal(value))
	return found
}

// Real tools accept arguments made for them. They refuse broken ones and name
// the place.
func TestValidateRealTools(t *testing.T) {
	tools, uncompiled, broken := 0, 0, 0
	for file, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			var tool struct {
				Name        string
				InputSchema json.RawMessage
			}
			require.NoError(t, json.Unmarshal(raw, &tool))
			tools++
			v := NewValidator(tool.InputSchema)
			if v.Err() != nil {
				uncompiled++
				t.Logf("%s, %s: %v", file, tool.Name, v.Err())
				continue
			}
			var schema object
			require.NoError(t, json.Unmarshal(tool.InputSchema, &schema))
			properties, _ := schema["properties"].(object)
			required, _ := schema["required"].([]any)
			expect := func(args any, pointer, problem string) {
				t.Helper()
				broken++
				found, _ := v.Validate(marshal(args))
				assert.True(t, slices.ContainsFunc(found, func(f Violation) bool {
					return f.Pointer == pointer && strings.Contains(f.Problem, problem)
				}), "%s, %s: %s gives %v, want %s %s", file, tool.Name, marshal(args), found, pointer, problem)
			}
			for _, full := range []bool{false, true} {
				args := example(schema, full).(object)
				found, _ := v.Validate(marshal(args))
				require.Empty(t, found, "%s, %s: %s", file, tool.Name, marshal(args))
				for name, p := range properties {
					p := p.(object)
					old, given := args[name]
					if given && slices.Contains(required, any(name)) {
						delete(args, name)
						expect(args, "", fmt.Sprintf("is missing the required property %q", name))
					}
					if _, ok := p["type"].(string); ok {
						args[name] = object{"k": 1}
						if p["type"] == "object" {
							args[name] = "s"
						}
						expect(args, "/"+name, ", but must be "+withArticle(p["type"].(string)))
					}
					if _, ok := p["enum"]; ok {
						args[name] = "no such value"
						if p["type"] == "string" || p["type"] == nil {
							expect(args, "/"+name, `is "no such value", but must be `)
						}
					}
					if p["type"] == "array" {
						if items, ok := p["items"].(object); ok && items["type"] == "string" {
							args[name] = []any{example(items, false), 5}
							expect(args, "/"+name+"/1", "is a number, but must be a string")
						}
					}
					delete(args, name)
					if given {
						args[name] = old
					}
				}
				if schema["additionalProperties"] == false {
					args["no_such_name"] = 1
					expect(args, "", `has the property "no_such_name", which the schema does not know`)
				}
			}
		}
	}
	t.Logf("%d tools, %d of them with a schema that does not compile; %d broken arguments found", tools, uncompiled, broken)
	assert.Zero(t, uncompiled)
}

// plain accepts one thing that the library refuses: a name that is not UTF-8.
func TestPlainInvalidUTF8(t *testing.T) {
	schema := "{\"type\":\"object\",\"properties\":{\"\ufffd\":{\"type\":\"string\"}}}"
	c, err := compileSchema(json.RawMessage(schema))
	require.NoError(t, err)
	args := []byte("{\"\xff\":1}")
	require.True(t, json.Valid(args))
	doc, err := decodeJSON(args)
	require.NoError(t, err)
	require.Error(t, c.Validate(doc))
	assert.False(t, c.plain.accepts(args))
}
