package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// testdata/converted.golden has what becomes of schemas for each provider.
func TestConvertedGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What becomes of schemas for each provider, and what is lost. Providers with the same result stand together; = is the schema itself.\n\n")
	props := func(shows, properties string) [2]string {
		return [2]string{shows, `{"type":"object","properties":{` + properties + `}}`}
	}
	one := func(shows, property string) [2]string { return props(shows, `"v":`+property) }
	chain := func(n int, body string) string { // definitions that refer to the next
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"d%d":{"type":"object","description":"%s","properties":{"next":{"$ref":"#/$defs/d%d"}}}`, i, body, i+1))
		}
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"},"b":{"$ref":"#/$defs/d1"}},"$defs":{` + strings.Join(all, ",") + fmt.Sprintf(`,"d%d":{"type":"string"}}}`, n)
	}
	nested := func(n int) string {
		return strings.Repeat(`{"properties":{"p":`, n) + `{"type":"string"}` + strings.Repeat("}}", n)
	}
	for _, c := range [][2]string{
		{"an empty one", `{}`},
		{"an object", `{"type":"object"}`},
		{"types at the root", `{"type":["object","null"],"properties":{}}`},
		{"another type at the root", `{"type":"string"}`},
		{"what is not taken at the root", `{"type":"object","enum":[{}],"const":{},"not":{}}`},
		{"alternatives at the root", `{"properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}},"required":["b"]},{"properties":{"b":{"type":"integer"},"d":{}},"required":["b","d"]}]}`},
		{"closed alternatives at the root", `{"oneOf":[{"type":"object","additionalProperties":false,"properties":{"a":{}}},{"additionalProperties":false,"properties":{"a":{}},"required":["a"]},{"type":"null"},true]}`},
		{"alternatives that are all closed", `{"oneOf":[{"additionalProperties":false,"properties":{"a":{}}},{"additionalProperties":false,"properties":{"b":{}}}]}`},
		{"a closed alternative with patterns", `{"oneOf":[{"additionalProperties":false,"patternProperties":{"x":{}}}]}`},
		{"alternatives of the properties that are there", `{"properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"type":"string"},"c":{}}},{"properties":{"a":{"type":"integer"}},"minProperties":1}]}`},
		{"no alternatives", `{"anyOf":[]}`},
		{"alternatives that are no objects", `{"anyOf":[{"type":"string"},3,"x",null,false]}`},
		{"all of several at the root", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"minLength":1},"b":{}},"required":["b","a"],"title":"T"},{"title":"U","additionalProperties":false}],"title":"T"}`},
		{"additionalProperties twice", `{"additionalProperties":true,"allOf":[{"additionalProperties":false}]}`},
		{"additionalProperties twice, closed first", `{"additionalProperties":false,"allOf":[{"additionalProperties":{}}]}`},
		{"all of none", `{"allOf":[]}`},
		{"all of an object that is no list", `{"allOf":{}}`},
		{"properties that are no object, of several", `{"properties":3,"allOf":[{"properties":[]}]}`},
		{"a reference at the root", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}`},
		{"a reference at the root to itself", `{"$ref":"#","type":"object"}`},
		{"references", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"own"},"b":{"$ref":"#/properties/a"},"c":{"$ref":"#"},"d":{"$ref":"#/$defs/none"},"e":{"$ref":"other"},"f":{"$ref":3},"g":{"$ref":"#/$defs/true"},"h":{"$ref":"#x"}},"$defs":{"A":{"type":"string","description":"A"},"true":true,"unused":{}}}`},
		{"references with escapes", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x~1y%20~0"},"b":{"$ref":"#/$defs/%zz"},"c":{"$ref":"#/allOf/0"}},"$defs":{"x/y ~":{"type":"string"}},"allOf":[{"title":"zero"}]}`},
		{"references to each other", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","description":"DA","properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}`},
		{"a dynamic reference", `{"type":"object","properties":{"a":{"$dynamicRef":"#/$defs/A"}},"$defs":{"A":{"$dynamicAnchor":"x","type":"string"}}}`},
		{"a part that is its own document", `{"type":"object","properties":{"a":{"$id":"x","$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}}},"$defs":{"A":{"type":"integer"}}}`},
		{"parts that are their own documents, and one that is not", `{"type":"object","allOf":[{"$id":"x","$ref":"#/$defs/A"},{"$ref":"#/$defs/B"},{"$id":"#y","$ref":"#/$defs/C"}],"$defs":{"A":{"title":"A"},"B":{"description":"B"},"C":{"properties":{"c":{}}}}}`},
		{"an id of draft 4, by another draft", `{"type":"object","properties":{"a":{"id":"x","$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"references of another document", `{"type":"object","properties":{"a":{"$ref":"/$defs/A"},"b":{"$ref":""},"c":{"$ref":"x#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"a document that names itself", `{"$id":"x","$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"references that make it much larger", chain(3, strings.Repeat("x", 900))},
		{"references that make it a little larger", chain(3, strings.Repeat("x", 100))},
		{"definitions of both words", `{"type":"object","properties":{"a":{"$ref":"#/definitions/A"},"b":{"$ref":"#/$defs/B"}},"$defs":{"B":{"type":"string"}},"definitions":{"A":{"type":"string"}}}`},
		{"definitions that nothing refers to", `{"type":"object","$defs":{"A":{"$ref":"#/$defs/B"},"B":{}}}`},
		{"names of parameters", `{"type":"object","properties":{"a.b-c_D9":{},"a b":{},"é":{},"":{},"` + strings.Repeat("n", 64) + `":{},"` + strings.Repeat("m", 65) + `":{},"o":{"properties":{"a b":{}},"required":["a b","z"]}},"required":["a.b-c_D9","a b","z"]}`},
		props("names that look like expressions", `"(?=x)":{"type":"string"},"(":{"dependentSchemas":{"(?!a)":{"type":"object"}}}`),
		{"required of nothing", `{"type":"object","required":["a"]}`},
		{"required, all known", `{"type":"object","properties":{"a":{}},"required":["a"]}`},
		{"required that is no list", `{"type":"object","required":"a"}`},
		one("types", `{"type":["string","text","null"]}`), one("an unknown type", `{"type":"text"}`), one("no types", `{"type":[]}`), one("a type that is a number", `{"type":3}`),
		one("an array without items", `{"type":"array"}`), one("an array among types", `{"type":["array","null"]}`), one("an array with items", `{"type":"array","items":{"type":"string"}}`),
		one("items of draft 7", `{"items":[{"type":"string"},{}],"additionalItems":{"type":"integer"}}`), one("items of none", `{"items":[]}`), one("additionalItems alone", `{"additionalItems":false}`), one("both lists of items", `{"items":[{}],"prefixItems":[{"type":"string"}]}`), one("items that are true", `{"items":true}`), one("items that are false", `{"items":false}`), one("items that are a number", `{"items":3}`),
		one("true", `true`), one("false", `false`), one("a number", `3`), one("null", `null`),
		one("alternatives", `{"anyOf":[{"type":"string"},{"type":"null"}]}`), one("alternatives with anything", `{"anyOf":[{"type":"string"},{}]}`), one("exactly one", `{"oneOf":[{"type":"string"},{"const":3}]}`), one("both", `{"oneOf":[{"type":"string"}],"anyOf":[{"type":"integer"}]}`), one("all of", `{"allOf":[{"type":"string"},{"minLength":1}]}`), one("no alternatives", `{"anyOf":[]}`), one("alternatives that are false", `{"anyOf":[false,{"type":"string"}]}`),
		one("bounds", `{"minimum":1,"maximum":2.50,"multipleOf":0.1}`), one("bounds that are none", `{"minimum":"1","maximum":null,"multipleOf":0,"minLength":-1,"maxLength":1.0,"minItems":"3","maxItems":0}`), one("multiples", `{"multipleOf":-1}`), one("more multiples", `{"multipleOf":1e999}`),
		one("bounds of draft 4", `{"minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}`), one("the other bounds of draft 4", `{"minimum":1,"exclusiveMinimum":false,"maximum":2,"exclusiveMaximum":true}`), one("exclusive bounds", `{"exclusiveMinimum":1,"exclusiveMaximum":2}`), one("exclusive bounds alone of draft 4", `{"exclusiveMinimum":true,"exclusiveMaximum":true}`), one("all bounds", `{"minimum":0,"exclusiveMinimum":1}`),
		one("values", `{"enum":["a",1,null,true,{}]}`), one("no values", `{"enum":[]}`), one("values that are no list", `{"enum":"a"}`), one("no values that Gemini takes", `{"enum":[null]}`), one("one value", `{"const":"a"}`), one("one value and several", `{"const":"a","enum":["a","b"]}`), one("one value that is null", `{"const":null}`),
		one("patterns", `{"pattern":"^a+$"}`), one("a pattern that looks ahead", `{"pattern":"^(?!a)b"}`), one("an escaped parenthesis", `{"pattern":"\\(?=a"}`), one("a broken pattern", `{"pattern":"(a"}`), one("a pattern that is a number", `{"pattern":3}`),
		one("properties by pattern", `{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`), one("properties by pattern that look ahead", `{"patternProperties":{"^(?=x)":{},"y":{}},"additionalProperties":false}`), one("properties by pattern, open", `{"patternProperties":{"^(?=x)":{}},"additionalProperties":true}`), one("properties by pattern that are a list", `{"patternProperties":[],"additionalProperties":false}`),
		one("other properties", `{"additionalProperties":{"type":"string"}}`), one("other properties of the wrong kind", `{"additionalProperties":3}`), one("properties of the wrong kind", `{"properties":[]}`), one("properties that are wrong", `{"properties":{"a":3,"b":null}}`),
		one("texts", `{"title":"T","description":"D","format":"date","$comment":"C","default":1,"examples":[1],"deprecated":true,"readOnly":false}`), one("texts of the wrong kind", `{"title":1,"description":null,"format":[],"$comment":{},"examples":3,"deprecated":"x","uniqueItems":1}`),
		one("a keyword twice", `{"type":"string","title":"a","title":"b","type":"integer"}`), one("unknown keywords", `{"x-mine":1,"nullable":true}`), one("keywords of older drafts", `{"dependencies":{},"$recursiveRef":"#","$vocabulary":{}}`),
		one("what goes together", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"type":"object"}},"propertyNames":{"maxLength":3},"minProperties":1,"maxProperties":2}`), one("what goes together, wrong", `{"dependentRequired":{"a":"b"},"dependentSchemas":[],"propertyNames":3}`), one("what goes together twice", `{"dependentRequired":{"a":["b"],"a":["c"]}}`), one("nothing that goes together", `{"dependentRequired":{"a":[]}}`),
		one("if", `{"if":{"type":"string"},"then":{"minLength":1},"else":false}`), one("contains", `{"contains":{"type":"string"},"minContains":1,"maxContains":2}`), one("unevaluated", `{"unevaluatedProperties":false,"unevaluatedItems":{"type":"string"}}`), one("content", `{"contentEncoding":"base64","contentMediaType":"text/plain","contentSchema":{"type":"object"}}`), one("prefixItems", `{"prefixItems":[{"type":"string"}],"items":false,"uniqueItems":true}`),
		one("names for references", `{"$id":"x","$anchor":"y","$dynamicAnchor":"z","id":"w"}`), one("a draft for a part", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"string"}`), one("a draft for a part of this document", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}`),
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"a":{"const":1,"if":{}},"b":{"$ref":"#/definitions/A","title":"T","description":"D","minLength":1},"c":{"id":"y","$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"}}}`},
		{"draft 6", `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{"a":{"const":1,"if":{},"contains":{}}}}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"if":{"type":"string"},"dependentRequired":{"a":["b"]}},"b":{"$ref":"#/definitions/A","minLength":1,"const":"c"}},"definitions":{"A":{"type":"string"}}}`},
		{"draft 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"a":{"prefixItems":[{}],"dependentRequired":{"a":["b"]}},"b":{"$ref":"#/$defs/A","minLength":1}},"$defs":{"A":{"type":"string"}}}`},
		{"an unknown draft", `{"$schema":"x","type":"object","properties":{"a":{"prefixItems":[{}]}}}`},
		{"two drafts", `{"$schema":"http://json-schema.org/draft-04/schema#","$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"const":1}}}`},
		{"nested as deep as is read", nested(schema.MaxNesting - 1)},
		{"nested one deeper", nested(schema.MaxNesting)},
		{"more losses than are told", `{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"a":3,`, 52), ",") + `,"b":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`3,`, 60), ",") + `]}}}`},
		{"a long place", `{"type":"object","properties":{"` + strings.Repeat("l", 150) + `":{"properties":{"` + strings.Repeat("m", 150) + `":{"properties":{"a/b~c":3}}}}}}`},
	} {
		given := text.Compact(json.RawMessage(c[1]))
		fmt.Fprintf(&b, "== %s\n%s\n", c[0], text.Line(string(given), 1500))
		type result struct{ names, shows string }
		var results []result
		for _, d := range []struct {
			name string
			Dialect
		}{{"OpenAI", OpenAI}, {"Bedrock", Bedrock}, {"Anthropic", Anthropic}, {"Gemini", Gemini}} {
			converted, losses := Convert(given, d.Dialect)
			shows := "   " + text.Line(string(converted), 3000)
			if string(converted) == string(given) {
				shows = "   ="
			}
			if d.name == "OpenAI" && IsStrict(converted) {
				shows += "  strict"
			}
			for i, loss := range losses {
				if i < 6 || i > 97 {
					shows += "\n      " + loss
				}
			}
			if i := len(results) - 1; i >= 0 && results[i].shows == shows {
				results[i].names += ", " + d.name
			} else {
				results = append(results, result{d.name, shows})
			}
		}
		for _, r := range results {
			fmt.Fprintf(&b, "%s\n%s\n", r.names, r.shows)
		}
		b.WriteString("\n")
	}
	golden.Compare(t, "converted.golden", b.String())
}

// testdata/keywords.golden has what becomes of each keyword with values of all kinds, and since which draft.
func TestKeywordsGolden(t *testing.T) {
	values := []string{`null`, `true`, `false`, `-1`, `0`, `1.5`, `2`, `""`, `"a"`, `"string"`, `"#"`, `[]`, `[1]`, `["a"]`, `[{}]`, `["object","a"]`, `{}`, `{"a":{}}`, `{"a":["b"]}`, `{"a":1}`}
	all := append(slices.Sorted(maps.Keys(keywords)), "additionalItems", "default", "id", "propertyOrdering")
	var b strings.Builder
	fmt.Fprintf(&b, "What becomes of each keyword of a property with each of these values, if nothing else is there:\n\n%s\n\n", strings.Join(values, " "))
	b.WriteString("= it stays, ~ it is another, + and something is told of it, . it is left out, ! and that is told. Providers with the same outcome stand together.\n\n")
	given := func(before, keyword, value string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{%s"type":"object","properties":{"v":{%q:%s}}}`, before, keyword, value))
	}
	const place = `{"type":"object","properties":{"v":`
	for _, keyword := range all {
		var rows, names []string
		for _, name := range slices.Sorted(maps.Keys(dialects)) {
			row := ""
			for _, value := range values {
				converted, losses := Convert(given("", keyword, value), dialects[name])
				v := strings.TrimSuffix(strings.TrimPrefix(string(converted), place), "}}")
				switch {
				case v == fmt.Sprintf("{%q:%s}", keyword, value) && losses == nil:
					row += "="
				case v == "{}" && losses == nil:
					row += "."
				case v == "{}":
					row += "!"
				case losses == nil:
					row += "~"
				default:
					row += "+"
				}
			}
			if i := slices.Index(rows, row); i >= 0 {
				names[i] += ", " + name
			} else {
				rows, names = append(rows, row), append(names, name)
			}
		}
		for i, row := range rows {
			fmt.Fprintf(&b, "%-22s %s  %s\n", keyword, row, names[i])
			keyword = ""
		}
	}
	b.WriteString("\nSince which draft a keyword counts, by OpenAI's schemas: alone, and beside a reference.\n\n")
	for _, keyword := range all {
		for _, value := range values {
			if c, _ := Convert(given("", keyword, value), OpenAI); string(c) != string(given("", keyword, value)) {
				continue
			}
			var alone, beside []string
			for _, draft := range []string{"draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12", "draft/next"} {
				before := `"$schema":"https://json-schema.org/` + draft + `/schema",`
				has := func(given json.RawMessage) bool {
					c, _ := Convert(given, OpenAI)
					return strings.Contains(string(c), fmt.Sprintf("%q:%s", keyword, value))
				}
				short := draft[6:]
				if has(given(before, keyword, value)) {
					alone = append(alone, short)
				}
				if has(json.RawMessage(strings.Replace(string(given(before, keyword, value)), `{"v":{`, `{"v":{"$ref":"#/properties/w",`, 1))) {
					beside = append(beside, short)
				}
			}
			fmt.Fprintf(&b, "%-22s %-34s %s\n", keyword, strings.Join(alone, " "), strings.Join(beside, " "))
			break
		}
	}
	golden.Compare(t, "keywords.golden", b.String())
}

// testdata/strict.golden has which schemas are strict for OpenAI.
func TestStrictGolden(t *testing.T) {
	object := func(property string) string {
		return `{"type":"object","properties":{"v":` + property + `},"required":["v"],"additionalProperties":false}`
	}
	members := func(n int) (properties, required string) {
		var p, r []string
		for i := range n {
			p, r = append(p, fmt.Sprintf(`"p%d":{"type":"null"}`, i)), append(r, fmt.Sprintf(`"p%d"`, i))
		}
		return strings.Join(p, ","), strings.Join(r, ",")
	}
	wide := func(n int) string {
		p, r := members(n)
		return `{"type":"object","properties":{` + p + `},"required":[` + r + `],"additionalProperties":false}`
	}
	values := func(n, length int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"%0*d"`, length, i))
		}
		return object(`{"type":"string","enum":[` + strings.Join(all, ",") + `]}`)
	}
	deep := func(n int) string {
		s := `{"type":"string"}`
		for range n {
			s = object(s)
		}
		return s
	}
	var b strings.Builder
	b.WriteString("Which converted schemas are strict for OpenAI.\n\n")
	for _, c := range []string{
		`{}`, `3`, `{"type":"object"}`, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, `{"type":"object","properties":{},"required":[],"additionalProperties":true}`, `{"type":"object","properties":{},"required":[]}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false,"minProperties":1}`, `{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"],"additionalProperties":false}`,
		`{"type":"object","properties":{},"required":[],"additionalProperties":false,"$defs":{"A b":{"type":"string"}}}`,
		object(`{"type":"string"}`), object(`{"type":["string","null"]}`), object(`{"type":["null","integer"]}`), object(`{"type":["string","integer"]}`), object(`{"type":["string","null","integer"]}`), object(`{"type":"number"}`), object(`{"type":"boolean"}`), object(`{"type":"null"}`), object(`{"type":"text"}`), object(`{}`), object(`true`),
		object(`{"type":"string","description":"D","title":"T"}`), object(`{"type":"string","minLength":1}`), object(`{"type":"integer","enum":[1]}`), object(`{"type":"string","enum":["a","b"]}`), object(`{"type":"string","enum":["a","a"]}`), object(`{"type":"string","enum":[]}`), object(`{"type":"string","enum":[""]}`), object(`{"type":"string","enum":["a\"b"]}`), object(`{"type":"string","enum":[1]}`), object(`{"type":"string","enum":[123]}`), object(`{"type":"string","const":12345}`), object(`{"type":"string","const":"a"}`), object(`{"type":"string","enum":["a"],"const":"a"}`), object(`{"type":"string","format":"date"}`),
		object(`{"type":"array","items":{"type":"string"}}`), object(`{"type":"array"}`), object(`{"type":"array","items":{"type":"string"},"minItems":1}`), object(`{"type":"array","items":{}}`),
		object(object(`{"type":"string"}`)), object(`{"type":"object"}`),
		object(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), object(`{"anyOf":[{"type":"string"},{}]}`), object(`{"anyOf":[{"type":"string"}],"type":"string"}`), object(`{"anyOf":[` + object(`{"type":"string"}`) + `,{"type":"null"}]}`), object(`{"anyOf":[` + object(`{"type":"string"}`) + `,` + object(`{"type":"null"}`) + `]}`), object(`{"anyOf":[{"type":"string"},{"type":"null"}],"description":"D"}`),
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"D"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"],"additionalProperties":false}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/A"}}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"},"B":{"type":"object"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false,"$defs":{"A b":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}]}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`,
	} {
		fmt.Fprintf(&b, "%-5v  %s\n", IsStrict(json.RawMessage(c)), c)
	}
	b.WriteString("\nAt the limits:\n")
	for _, c := range []struct{ shows, schema string }{
		{"100 properties", wide(maxStrictProperties)}, {"101 properties", wide(maxStrictProperties + 1)}, {"5 levels", deep(maxStrictLevels - 1)}, {"6 levels", deep(maxStrictLevels)},
		{"250 values", values(maxStrictValues, 4)}, {"251 values", values(maxStrictValues+1, 4)},
		{"15,000 characters", strings.ReplaceAll(values(147, 100), `"v"`, `"vvvvvv"`)}, {"15,001 characters", strings.ReplaceAll(values(147, 100), `"v"`, `"vvvvvvv"`)},
	} {
		fmt.Fprintf(&b, "%-5v  %s\n", IsStrict(json.RawMessage(c.schema)), c.shows)
	}
	golden.Compare(t, "strict.golden", b.String())
}

// testdata/expressions.golden has which regular expressions are left out.
func TestExpressionsGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("Which regular expressions a provider refuses: one that takes no lookaround, then one that takes it.\n\n")
	strict, lax := &Dialect{noLook: true}, &Dialect{}
	for _, s := range []string{
		``, `a`, `(?=a)`, `(?!a)`, `(?<=a)`, `(?<!a)`, `(?:a)`, `(?<n>a)`, `(?P<n>a)`, `\(?=a`, `\\(?=a)`, `[(?=]`, `(`, `)`, `(a))`, `((a)`, `[`, `[a`, `]`, `a]`, `[]`, `[]a]`, `[^]`, `[^]a]`, `[^]]`, `a\`, `[\]`, `[a\`, `\a`, `*`, `+a`, `?`, `a**`, `a*+`, `a*?`, `a+?`, `a??`, `a???`, `a?*`, `a+*`, `a|*`, `(*)`, `(+`, `(?:*)`, `(?=*)`, `^*`, `$*`, `\b*`, `a{2}*`, `a{2}{3}`, `{`, `a{,2}`,
		`[z-a]`, `[a-z]`, `[a-]`, `[-a]`, `[z-[]`, `[[-a]`, `[\w-a]`, `[a-\w]`, `[b-a-z]`, `[a-z-0]`, `[é-a]`, `(?`, `(?i`, `(?i)a`, `a|b`, `|`, `()`, `(|)`, `[a]*`, `[a]**`, `(a)*`, `\**`, `\(*`, `)(`,
	} {
		fmt.Fprintf(&b, "%-12s %s; %s\n", s, cmp.Or(strict.refuses(s, reading()), "taken"), cmp.Or(lax.refuses(s, reading()), "taken"))
	}
	golden.Compare(t, "expressions.golden", b.String())
}
