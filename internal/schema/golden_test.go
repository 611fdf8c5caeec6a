package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// testdata/schemas.golden has what is read of schemas, and what is said of values.
func TestSchemasGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString(`What is read of schemas, and what is said of values. Under each schema: its words by level (names end with :),
what Prune leaves, whether it is portable, what null means, an example, what reading it costs; then values, with what they cost
(in steps, of which there may be 100000), whether they are accepted at first sight (=), what is wrong, and what a strict reader says.

`)
	for _, c := range schemaCases() {
		fmt.Fprintf(&b, "== %s\n%s\n", c.shows, text.Line(c.schema, 400))
		raw := json.RawMessage(c.schema)
		var words []string
		Walk(raw, func(level int, s []byte) { words = append(words, fmt.Sprintf("%d %s:", level, s)) },
			func(level int, s []byte) { words = append(words, fmt.Sprintf("%d %s", level, s)) })
		if len(words) > 0 {
			fmt.Fprintf(&b, "   words    %s\n", strings.Join(words[:min(len(words), 30)], ", "))
		}
		if pruned := Prune(raw); string(pruned) != c.schema {
			fmt.Fprintf(&b, "   pruned   %s\n", pruned)
			if named := Named(pruned, raw); string(named) != string(pruned) {
				fmt.Fprintf(&b, "   named    %s\n", named)
			}
		}
		if at, is := Unportable(raw); is {
			fmt.Fprintf(&b, "   unportable at %q\n", at)
		}
		if names := NoNull(raw); names != nil {
			fmt.Fprintf(&b, "   no null  %q\n", names)
		}
		if e, ok := ExampleOf(raw); ok {
			fmt.Fprintf(&b, "   example  %s, not %s\n", e.Right, e.Wrong)
		}
		v := NewValidator(raw)
		compiled, err := v.compiled()
		if err != nil {
			why, _, _ := strings.Cut(err.Error(), " - at") // what follows is in no order
			fmt.Fprintf(&b, "   error    %s\n", why)
		} else {
			fmt.Fprintf(&b, "   keeps %d bytes, numbers weigh %d\n", compiled.size, compiled.heavy)
		}
		allows := Allows(raw)
		for _, value := range c.values {
			args := json.RawMessage(value)
			said, more := v.Validate(args)
			note := ""
			if err == nil {
				doc, _ := decodeJSON(args)
				m := meter{left: maxSteps, schema: v.size, args: len(args), heavy: compiled.heavy}
				m.visit(compiled.Schema, doc, 0)
				note = fmt.Sprint(maxSteps - m.left)
				if m.left < 0 {
					note = "too many"
				}
				if compiled.plain != nil && compiled.plain.accepts(args) {
					note += " ="
				}
			}
			fmt.Fprintf(&b, "   %s  (%s)", text.Line(value, 200), note)
			if len(said) == 0 != allows(args) {
				fmt.Fprintf(&b, "  strictly: %v", allows(args))
			}
			if without := DropNulls(args, raw); string(without) != value {
				fmt.Fprintf(&b, "  without nulls: %s", without)
			}
			b.WriteString("\n")
			for _, s := range said {
				fmt.Fprintf(&b, "      %q %s\n", s.Pointer, s.Problem)
			}
			if more > 0 {
				fmt.Fprintf(&b, "      and %d more\n", more)
			}
		}
		b.WriteString("\n")
	}
	golden.Compare(t, "schemas.golden", b.String())
}

type schemaCase struct {
	shows, schema string
	values        []string
}

func schemaCases() []schemaCase {
	props := func(shows, properties string, values ...string) schemaCase {
		return schemaCase{shows, `{"type":"object","properties":{` + properties + `}}`, values}
	}
	one := func(shows, property string, values ...string) schemaCase {
		for i, v := range values {
			values[i] = `{"v":` + v + `}`
		}
		return props(shows, `"v":`+property, values...)
	}
	enum := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return `{"enum":[` + strings.Join(all, ",") + `]}`
	}
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%02d":true`, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"":`, n) + "1" + strings.Repeat("}", n) }
	return []schemaCase{
		{"nothing", ``, []string{`{}`}},
		{"not JSON", `{"type":`, []string{`{}`}},
		{"a list", `[]`, []string{`{}`}},
		{"null", `null`, []string{`{}`}},
		{"true", `true`, []string{`{}`}},
		{"false", `false`, []string{`{}`}},
		{"an empty one", `{}`, []string{`{}`, `{"a":1,"a":2}`, `{"b":{"a":1,"a":2}}`, `[1,[],{}]`, ``, `{"\ud800":1}`}},
		{"every type", `{"type":"object","description":"D","properties":{"s":{"type":"string","description":"S"},"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},"u":{"type":"null"},"a":{"type":"array"},"o":{"type":"object"}},"required":["s","i"],"additionalProperties":false}`, []string{
			`{"s":"x","i":1}`, `{"s":"","n":1.5,"i":-3,"b":true,"u":null,"a":[],"o":{}}`, `{"s":"x","i":1.0}`, `{"s":"x","i":1.5}`, `{"s":"x","i":1e2}`, `{"s":"x","i":1,"z":3}`, `{}`, `{"s":null,"n":null,"i":null,"b":null,"u":1,"a":null,"o":null}`,
			`{"s":1,"n":"1","i":"1","b":"true","u":false,"a":{},"o":[]}`, `{"s":"x","i":1,"n":null,"b":false}`, `{"s":"x","s":"y","i":1}`, `{"s":"\u00e9","i":1}`, `{"\u0073":"x","i":1}`}},
		{"types in several orders", `{"properties":{"a":{"type":["string","null"]},"b":{"type":["null","integer","string"]},"c":{"type":[]},"d":{"type":["object","array"]}}}`, []string{`{"a":null,"b":null}`, `{"a":1,"b":true,"d":"x"}`, `{"d":null}`}},
		{"an unknown type", `{"properties":{"a":{"type":"text"}}}`, []string{`{"a":1}`}},
		one("a list of values", `{"enum":["open","closed"]}`, `"open"`, `"opne"`, `1`, `null`, `[]`, `{}`, `"op\u0065n"`),
		one("a list of values of several types", `{"enum":["a",1,null,true,[1],{"b":2}]}`, `"a"`, `1`, `1.0`, `null`, `true`, `[1]`, `{"b":2}`, `[2]`, `"c"`),
		one("a list of values and a type", `{"type":"string","enum":["a",1]}`, `"a"`, `1`),
		one("one value", `{"const":"a"}`, `"a"`, `"b"`, `null`),
		one("null as the one value", `{"const":null}`, `null`, `1`),
		one("no value at all", `{"enum":[]}`, `1`),
		one("a list of one", `{"enum":["a"]}`, `"b"`),
		one("as many values as are shown", enum(maxListed), `"x"`),
		one("one value more", enum(maxListed+1), `"x"`),
		one("two more", enum(maxListed+2), `"x"`),
		one("long values", `{"enum":["`+strings.Repeat("e", 80)+`","`+strings.Repeat("f", 81)+`"]}`, `"`+strings.Repeat("x", 40)+`"`, `"`+strings.Repeat("y", 41)+`"`),
		one("lengths", `{"type":"string","minLength":2,"maxLength":3}`, `"é"`, `"ab"`, `"abc"`, `"abcd"`, `""`, `"`+strings.Repeat("x", 32)+`"`),
		one("a length of one", `{"minLength":1,"maxLength":1}`, `""`, `"a"`, `"ab"`),
		one("a length beyond all", `{"maxLength":2147483647,"minLength":0}`, `"a"`),
		one("a length that the library would cut", `{"minLength":4294967297,"minItems":4294967297}`, `"a"`, `[]`),
		one("numbers", `{"minimum":1,"maximum":10}`, `0`, `1`, `10`, `10.5`, `"x"`),
		one("numbers without their ends", `{"exclusiveMinimum":1,"exclusiveMaximum":2.5}`, `1`, `1.5`, `2.5`),
		one("the same in draft 4", `{"minimum":1,"exclusiveMinimum":true,"maximum":3}`, `1`, `2`, `3`, `4`),
		one("multiples", `{"multipleOf":0.5}`, `1.5`, `1.3`),
		one("long numbers", `{"minimum":1e399,"maximum":`+strings.Repeat("9", 400)+`}`, `1`, `1e400`, `1e401`, `-1e400`, `1e-400`, `1e99999999999999999999`, strings.Repeat("1", 400), strings.Repeat("1", 401)),
		one("a bound with a digit too many", `{"maximum":`+strings.Repeat("9", 401)+`}`, `1`),
		one("a bound with too large an exponent", `{"maximum":1e401}`, `1`),
		one("numbers in lists of values", `{"enum":[`+strings.Repeat("7", 300)+`,[1e300,{"a":1e300}]]}`, strings.Repeat("7", 300), `[1e300,{"a":1e300}]`, `1e200`),
		one("a number as the one value", `{"const":1e300}`, `1e300`, `2`),
		one("a pattern", `{"type":"string","pattern":"^a+[bc]$"}`, `"aab"`, `"x"`, `1`, `"`+strings.Repeat("a", 100)+`b"`),
		one("a pattern of JavaScript's only", `{"pattern":"(?=a)"}`, `"b"`),
		one("a pattern of Go's only", `{"pattern":"(?i)a"}`, `"A"`, `"b"`),
		one("patterns that are too long together", `{"allOf":[{"pattern":"`+strings.Repeat("a", 4096)+`"},{"pattern":"`+strings.Repeat("b", 4097)+`"}]}`, `"x"`),
		one("patterns that are just not", `{"allOf":[{"pattern":"`+strings.Repeat("a", 4096)+`"},{"pattern":"`+strings.Repeat("b", 4096)+`"}]}`, `"x"`),
		one("a format", `{"type":"string","format":"date"}`, `"x"`, `"2020-01-01"`),
		one("items", `{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}`, `[]`, `[1]`, `["a","b"]`, `[1,2,3]`),
		one("one item", `{"minItems":2,"maxItems":1}`, `[1]`, `[1,2]`),
		one("items at their places", `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `["a",1]`, `[1,"a"]`),
		one("items at their places and no more", `{"prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, `["a",1,2]`),
		one("the same in draft 7", `{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`, `["a",1]`, `[1,"a"]`),
		one("no more in draft 7", `{"items":[{"type":"string"},{}],"additionalItems":false}`, `["a"]`, `["a",1,2]`, `["a",1,2,3]`),
		one("unlike items", `{"uniqueItems":true}`, `[1,2,3]`, `[1,2,1]`, `[[1],{"a":1},{"a":1}]`),
		one("an item among them", `{"contains":{"type":"string"}}`, `["a",1]`, `[1]`),
		one("so many among them", `{"contains":{"type":"string"},"minContains":2,"maxContains":3}`, `["a"]`, `["a","b"]`, `["a","b","c","d"]`),
		one("items that nothing else reads", `{"prefixItems":[{}],"unevaluatedItems":false}`, `[1]`, `[1,2]`),
		one("properties", `{"minProperties":1,"maxProperties":2}`, `{}`, `{"a":1}`, `{"a":1,"b":2,"c":3}`),
		one("one property", `{"minProperties":2,"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":1}`),
		one("other properties", `{"properties":{"a":{}},"additionalProperties":{"type":"string","description":"others"}}`, `{"a":1,"b":"x"}`, `{"b":1}`),
		one("properties by their patterns", `{"patternProperties":{"^x_":{"type":"string","description":"by pattern"}},"additionalProperties":false}`, `{"x_a":"s"}`, `{"x_a":1,"y":1}`),
		one("names of properties", `{"propertyNames":{"maxLength":2}}`, `{"ab":1}`, `{"abc":1}`, `{"`+strings.Repeat("n", 50)+`":1}`),
		one("properties that go together", `{"dependentRequired":{"a":["b","c"]},"dependentSchemas":{"d":{"required":["e"]}}}`, `{"a":1}`, `{"d":1}`, `{"a":1,"b":1,"c":1}`),
		one("the same in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"d":{"required":["e"]}}}`, `{"a":1}`, `{"d":1}`),
		{"dependencies of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"d":{"required":["e"]}}}`, []string{`{"a":1}`, `{"d":1}`, `{"a":1,"b":2}`}},
		one("properties that nothing else reads", `{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1}`, `{"b":1}`),
		one("alternatives", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `"a"`, `1`, `[]`, `null`),
		one("alternatives with null", `{"anyOf":[{"type":"null"},{"enum":["a"]},{"const":"b"}]}`, `"a"`, `null`, `"c"`, `1`),
		one("exactly one of alternatives", `{"oneOf":[{"type":"number"},{"type":"integer"},{"type":"string"}]}`, `1.5`, `1`, `"a"`, `[]`),
		one("the nearest alternative", `{"anyOf":[{"type":"object","required":["a","b"]},{"type":"object","required":["c"]},{"type":"object","required":["d"]}]}`, `{}`, `{"a":1}`, `1`),
		one("an alternative whose property has a type", `{"anyOf":[{"properties":{"k":{"type":"string"}}},{"type":"array"}]}`, `{"k":1}`),
		one("all of several", `{"allOf":[{"minimum":1},{"maximum":0}]}`, `0.5`),
		one("not", `{"not":{"type":"string"}}`, `"a"`, `1`),
		one("if", `{"if":{"type":"string"},"then":{"minLength":2,"description":"then"},"else":{"minimum":2,"description":"else"}}`, `"a"`, `1`, `"ab"`),
		one("OpenAPI's null", `{"type":"string","nullable":true}`, `null`, `1`),
		one("OpenAPI's null, not", `{"type":"string","nullable":false}`, `null`),
		one("OpenAPI's null of no type", `{"nullable":true}`, `null`),
		one("Go's nil", `{"type":"object","properties":null,"required":null}`, `{}`),
		{"missing properties", `{"required":["a","b\"","` + strings.Repeat("r", 90) + `"]}`, []string{`{}`, `{"a":1}`}},
		{"required of the wrong kind", `{"properties":{"a":{"type":"string"}},"required":"a"}`, []string{`{"a":null}`}},
		{"required that has a number", `{"properties":{"a":{"type":"string"}},"required":[1]}`, []string{`{"a":null}`}},
		{"a keyword twice", `{"properties":{"a":{"type":"string","type":"null"},"b":{"type":"string"}}}`, []string{`{"a":null,"b":null}`}},
		{"properties twice", `{"properties":{},"properties":{"a":{"type":"string"}}}`, []string{`{"a":null}`}},
		props("null where it can't be", `"a":{"type":"string"},"b":{"type":["string","null"]},"c":{"enum":["x",null]},"d":{"enum":["x"]},"e":{"const":1},"f":{"const":null},"g":{"anyOf":[{"type":"string"},{"type":"null"}]},"h":{"anyOf":[{"type":"string"},{"enum":[1]}]},"i":{"oneOf":[{"type":"string"}]},"j":{"oneOf":[{}]},"k":{},"l":true,"m":{"type":"other"},"n":{"type":["string","integer"]},"o":{"enum":3},"p":{"anyOf":{}},"q":{"type":3},"r":{"$ref":"#"},"s\u0041":{"type":"string"}`,
			`{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null,"g":null,"h":null,"i":null,"j":null,"k":null,"l":null,"m":null,"n":null,"sA":null,"z":null}`, `{"a":null}`, `{"k":1, "a" : null ,"b":null}`, `{"a":1}`),
		one("alternatives as deep as they are read", `{"anyOf":[{"anyOf":[{"anyOf":[{"type":"string"}]}]}]}`, `null`),
		one("alternatives one deeper", `{"anyOf":[{"anyOf":[{"anyOf":[{"anyOf":[{"type":"string"}]}]}]}]}`, `null`),
		{"an example of each type", `{"properties":{"r":{"type":"string"},"s":{"type":"integer"},"t":{},"o":{"type":"string"},"p":{"type":"boolean"},"q":{"type":"array"},"u":{"type":"object"},"w":{"type":"number"}},"required":["r","s","t"]}`, nil},
		{"an example with the other values", `{"properties":{"a":{"type":"array"},"b":{"type":"object"},"c":{"type":"boolean"},"d":{"type":"number"},"e":{}},"required":["a","b","c"]}`, nil},
		{"no example of four that are required", `{"properties":{"a":{},"b":{},"c":{},"d":{},"e":{}},"required":["a","b","c","d"]}`, nil},
		{"no example without optional ones", `{"properties":{"a":{}},"required":["a"]}`, nil},
		{"no example without required ones", `{"properties":{"a":{}}}`, nil},
		{"no example with a name that is not plain", `{"properties":{"a":{},"b c":{}},"required":["a"]}`, nil},
		{"an example with a long name", `{"properties":{"a":{},"` + strings.Repeat("b", 40) + `":{}},"required":["a"]}`, nil},
		{"no example with a longer one", `{"properties":{"a":{},"` + strings.Repeat("b", 41) + `":{}},"required":["a"]}`, nil},
		{"as many properties as are read at first sight", `{"properties":` + members(64) + `,"required":["p63"]}`, []string{`{"p63":1}`, `{"p00":1}`, `{"p63":1,"p63":2}`}},
		{"one property more", `{"properties":` + members(65) + `,"required":["p64"]}`, []string{`{"p64":1}`, `{}`}},
		{"more mistakes than are told", `{"additionalProperties":{"type":"string"}}`, []string{
			`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"r":1}`}},
		{"places with slashes and tildes", `{"additionalProperties":{"additionalProperties":{"items":{"type":"string"}}}}`, []string{`{"a/b":{"c~d":["x",1]}}`, `{"` + strings.Repeat("l", 90) + `":{"` + strings.Repeat("m", 80) + `":[1]}}`}},
		{"mistakes of equal text", `{"allOf":[{"required":["a"]},{"required":["a","b"]}],"anyOf":[{"required":["a"]}]}`, []string{`{}`}},
		{"references", `{"$defs":{"a":{"type":"string","description":"A"},"b":{"$ref":"#/$defs/a"},"c":{"type":"null"}},"properties":{"v":{"$ref":"#/$defs/b"}}}`, []string{`{"v":"x"}`, `{"v":1}`}},
		{"definitions that nothing refers to", `{"$defs":{"a":{}},"definitions":{"b":{"$ref":"#/$defs/a"}},"type":"object"}`, []string{`{}`}},
		{"definitions of the other word", `{"definitions":{"a/b~":{"type":"string"},"c":{}},"properties":{"v":{"$ref":"#/definitions/a~1b~0"}}}`, []string{`{"v":1}`}},
		{"a reference to all definitions", `{"$defs":{"a":{},"b":{}},"$ref":"#/$defs"}`, nil},
		{"a reference to the root", `{"$defs":{"a":{}},"properties":{"v":{"$ref":"#"}}}`, []string{`{"v":{"v":1}}`, `{"v":{}}`}},
		{"a reference to an anchor", `{"$defs":{"a":{"$anchor":"x"},"b":{}},"$ref":"#x"}`, nil},
		{"a reference with a percent sign", `{"$defs":{"a b":{},"b":{}},"$ref":"#/$defs/a%20b"}`, nil},
		{"a reference that can't be read", `{"$defs":{"a":{},"b":{}},"$ref":"#/%zz"}`, nil},
		{"a reference to another document", `{"$defs":{"a":{}},"properties":{"v":{"$ref":"other.json"}}}`, []string{`{}`}},
		{"a reference that leads nowhere", `{"properties":{"v":{"$ref":"#/$defs/a%20b"}}}`, []string{`{"v":1}`}},
		{"a reference within another place", `{"$defs":{"a":{}},"properties":{"v":{"type":"string"},"w":{"$ref":"#/properties/v"}}}`, []string{`{"w":1}`}},
		{"a dynamic reference", `{"$defs":{"a":{"$dynamicAnchor":"x"}},"properties":{"v":{"$dynamicRef":"#x"}}}`, []string{`{"v":1}`}},
		{"an $id", `{"$id":"https://x.test/s","$defs":{"a":{}}}`, []string{`{}`}},
		{"definitions that are no object", `{"$defs":[],"definitions":3,"type":"object"}`, nil},
		{"definitions twice", `{"$defs":{"a":{}},"$defs":{"b":{}}}`, nil},
		{"the draft that counts anyway", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`, []string{`{}`}},
		{"draft 7 without what it alone has", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{}}}`, []string{`{}`}},
		{"draft 7 with a list of items", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}`, nil},
		{"draft 7 with something beside a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#","type":"string"}}}`, nil},
		{"draft 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object"}`, nil},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, []string{`{}`}},
		{"an unknown draft", `{"$schema":"https://x.test/mine","type":"object","required":["a"]}`, []string{`{}`}},
		{"a property named like a keyword", `{"properties":{"properties":{"description":"in"},"enum":{"enum":["e",1,"f"]},"description":{"const":"c"}},"description":"out","title":"T"}`, nil},
		{"words at all places", `{"items":[{"description":"i0"},{"description":"i1"}],"prefixItems":[{"description":"p"}],"anyOf":[{"description":"any"}],"oneOf":[{"description":"one"}],"allOf":[{"description":"all"}],"additionalProperties":{"description":"add"},"then":{"description":"th"},"else":{"description":"el"},"if":{"description":"no"},"not":{"description":"no"},"$defs":{"d":{"description":"def"}},"definitions":{"d":{"description":"defn"}},"patternProperties":{"p":{"description":"pat"}}}`, nil},
		{"a description that is no text", `{"description":3}`, nil},
		{"values that are no list", `{"enum":"x","description":"after"}`, nil},
		{"properties that are no object", `{"properties":[],"description":"after"}`, nil},
		{"items that are no schema", `{"items":3,"description":"after"}`, nil},
		{"alternatives that are no list", `{"anyOf":{"description":"no list"},"description":"after"}`, nil},
		{"words with escapes", `{"description":"a\u0041\n","properties":{"\u0062":{}}}`, nil},
		{"words before a mistake", `{"description":"read","properties":{"a":{"description":"too"},x`, nil},
		{"words as deep as they are read", strings.Repeat(`{"items":`, MaxNesting-1) + `{"description":"deep"}` + strings.Repeat("}", MaxNesting-1), nil},
		{"words one deeper", strings.Repeat(`{"items":`, MaxNesting) + `{"description":"deep"}` + strings.Repeat("}", MaxNesting), nil},
		{"properties one deeper", strings.Repeat(`{"properties":{"p":`, MaxNesting) + `{"description":"deep"}` + strings.Repeat("}}", MaxNesting), nil},
		{"what Ajv refuses: id", `{"properties":{"a":{"items":{"id":"x"}}}}`, nil},
		{"what Ajv refuses: nullable", `{"allOf":[{},{"nullable":true}]}`, nil},
		{"what Ajv refuses: no values", `{"properties":{"a/b":{"enum":[]}}}`, nil},
		{"what Ajv refuses: a pattern", `{"patternProperties":{"[[:alpha:]]":{}}}`, nil},
		{"properties that are true", `{"properties":{"b":{},"a":true}}`, nil},
		{"types that are wrong", `{"properties":{"a":{"type":"text"}}}`, nil},
		{"a schema in both drafts but one", `{"items":[{}]}`, nil},
		{"nesting as deep as may be", `{"minProperties":2,"default":` + objects(maxJSONNesting-1) + `}`, []string{`{"a":` + deep(maxJSONNesting) + `}`}},
		{"nesting one deeper", `{"default":` + objects(maxJSONNesting) + `}`, nil},
		{"values one deeper", `{"minProperties":2}`, []string{`{"a":` + deep(maxJSONNesting+1) + `}`}},
		{"as many values as may be", `{"default":[` + strings.Repeat("1,", 2726) + `1]}`, []string{`{}`}},
		{"one value too many", `{"default":[` + strings.Repeat("1,", 2727) + `1]}`, []string{`{}`}},
		{"far too many values", `{"default":[` + strings.Repeat("1,", 25000) + `1]}`, []string{`{}`}},
		{"too many booleans", `{"default":[` + strings.Repeat("true,", 1100) + `true]}`, []string{`{}`}},
		{"exponential alternatives", `{"$defs":{"a":{"anyOf":[{"items":{"$ref":"#/$defs/a"}},{"items":{"$ref":"#/$defs/a"}}]}},"properties":{"v":{"$ref":"#/$defs/a"}}}`, []string{`{"v":` + deep(4) + `}`, `{"v":` + deep(30) + `}`}},
	}
}

// testdata/patterns.golden has what patterns cost, and which are portable.
func TestPatternsGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What patterns cost, in bytes to read, instructions and ends of ranges, and which mean the same to Go and to JavaScript.\n\n")
	for _, expression := range []string{
		``, `a`, `abc`, `a|b`, `a|b|c`, `(a)`, `(?:a)`, `(?P<n>a)`, `(?i)a`, `(?s).`, `.`, `a*`, `a+`, `a?`, `a{3}`, `a{3,}`, `a{2,4}`, `a{,4}`, `a{0}`, `a{0,1}`, `(a{10}){10}`, `(abc){5}`, `()*`, `(){5}`,
		`[a]`, `[abc]`, `[a-z0-9]`, `[^a]`, `[^]]`, `[]a]`, `[\]a]`, `[a-]`, `[\-a]`, `\-`, `[\w-]`, `[[:alpha:]]`, `[a[:digit:]]`, `[[]`, `]`, `}`, `{`, `a{`, `a{x}`, `a{1`, `\{1\}`,
		`\d\D\w\W\s\S`, `\n\t\r\f\v`, `\$\^\.\*\+\?\(\)\[\]\{\}\|\/\\`, `\b\B`, `[\b]`, `\A`, `\z`, `\x41`, `\x{41}`, `\x4`, `\pL`, `\p{Greek}\PN`, `\Qa\E`, `\a`, `\1`,
		`(?i)[à-ü]`, `(?i)[a-z]`, `(?si)[a-\x{ff}]`, `(?i)[\x{e0}-\x{fc}]-`, `^$`, `(?:a|(?:b|c)+)?d`, `a{1000}`, `(a{1000}){10}`, `(\pL{10}){10}`, `(?=a)`, `(`, `[z-a]`, `é`, `[é-ü]{2}`,
	} {
		p := newPatterns()
		begun, text := p.left, p.text
		found := p.find(expression)
		fmt.Fprintf(&b, "%-24s", expression)
		switch {
		case p.fault != nil:
			fmt.Fprintf(&b, " %v\n", p.fault)
			continue
		case found == nil:
			_, err := p.compile(expression)
			fmt.Fprintf(&b, " %v (%d to read)\n", err, text-p.text)
			continue
		}
		fmt.Fprintf(&b, " %d to read, %d, %d", text-p.text, begun.Instructions-p.left.Instructions, begun.Runes-p.left.Runes)
		if isPortablePattern(expression) {
			b.WriteString(", portable")
		}
		fmt.Fprintf(&b, ", keeps %d\n", p.kept())
	}
	golden.Compare(t, "patterns.golden", b.String())
}

// testdata/arguments.golden has what is read of arguments that are passed in any way.
func TestArgumentsGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What is taken for the arguments of a call, and of a call that a model passes on to another tool.\n\n")
	for _, args := range []any{
		nil, "", " ", "null", " null ", "{}", " {\"a\": 1}\n", "[]", "3", `"x"`, "{", "{\"a\":\n}", `{"a":1} x`, "nul", json.RawMessage(nil), json.RawMessage(`{"a":1}`), []byte(`{"a":1}`), []byte(nil),
		map[string]any{"b": 1, "a": []int{}}, map[string]any(nil), struct{ A int }{1}, []int{1}, 3, true, make(chan int), (*int)(nil), failing{}, failing{panics: true},
	} {
		got, err := Arguments(args)
		shown := golden.Text(args)
		if raw, ok := args.([]byte); ok {
			shown = fmt.Sprintf("bytes %q", raw)
		}
		if err != nil {
			fmt.Fprintf(&b, "%-24s error %v; %s\n", shown, err, Written(args, err))
			continue
		}
		fmt.Fprintf(&b, "%-24s %s\n", shown, got)
	}
	v := NewValidator(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array"},"s":{"type":"string"},"a/b":{"type":"boolean"}},"additionalProperties":false}`))
	open := NewValidator(json.RawMessage(`{"properties":{"args":{}}}`))
	b.WriteString("\nPassed on: what is read, then the arguments for a tool that takes n, list, s and a/b, for one that takes anything, and for one that is not known.\n\n")
	for _, raw := range []string{
		``, `null`, `[]`, `3`, `{`, `{}`, `{"name":""}`, `{"name":3}`, `{"name":null}`, `{"Name":"t"}`, `{"name":"t","name":"u"}`, `{"name":"t","arguments":{},"arguments":{}}`, `{"name":"t"}`, `{"name":"t","Name":"u"}`,
		`{"name":"t","arguments":null}`, `{"name":"t","arguments":{}}`, `{"name":"t","arguments":"{}"}`, `{"name":"t","arguments":""}`, `{"name":"t","arguments":{"n":1}}`, `{"name":"t","arguments":"{\"n\":1}"}`, `{"name":"t","arguments":3}`, `{"name":"t","arguments":[1]}`,
		`{"name":"t","n":1}`, `{"name":"t","args":{"n":1}}`, `{"name":"t","input":"{\"n\":1}"}`, `{"name":"t","params":{"n":1},"n":2}`, `{"name":"t","arguments":{},"n":1}`, `{"name":"t","arguments":{"n":1},"s":"x"}`, `{"name":"t","arguments":{"n":1},"` + strings.Repeat("k", 300) + `":1}`,
		`{"name":"t","arguments":{"n":"1","list":"[1]","s":"2","a/b":" true "}}`, `{"name":"t","arguments":{"n":"x"}}`, `{"name":"t","arguments":{"n":"1","z":1}}`, `{"name":"t","arguments":{"n":"null"}}`, `{"name":"t","arguments":{"n":""}}`, `{"name":"t","other":{"n":1}}`,
	} {
		p, err := ParsePassed(json.RawMessage(raw))
		fmt.Fprintf(&b, "%s\n", text.Line(raw, 100))
		if err != nil {
			fmt.Fprintf(&b, "   error %v\n", err)
			continue
		}
		for _, v := range []*Validator{v, open, nil} {
			if args, err := p.Arguments(v); err != nil {
				fmt.Fprintf(&b, "   error %v\n", err)
			} else {
				fmt.Fprintf(&b, "   %s %s\n", p.Name, args)
			}
		}
	}
	b.WriteString("\nMembers of a tool of our own that must have one.\n\n")
	for _, raw := range []string{``, `null`, `[]`, `{`, `{}`, `{"query":""}`, `{"query":3}`, `{"query":"x"}`, `{"limit":"x","query":"x"}`} {
		var in struct {
			Query string `json:"query"`
			Limit int    `json:"limit"`
		}
		err := Members(json.RawMessage(raw), &in, "query", func() bool { return in.Query == "" })
		fmt.Fprintf(&b, "%-24s %s %v\n", raw, golden.Text(in), err)
	}
	golden.Compare(t, "arguments.golden", b.String())
}

// failing is a value of a host that can't be written.
type failing struct{ panics bool }

func (f failing) MarshalJSON() ([]byte, error) {
	if f.panics {
		panic("at writing")
	}
	return nil, fmt.Errorf("can't")
}
