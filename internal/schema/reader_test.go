package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schemaWords returns the names and texts that Walk reports, in order: names
// after a dot, texts as they are, and both with U+FFFD for each byte that is
// not UTF-8.
func schemaWords(schema []byte) (words []string) {
	clean := func(b []byte) string { return string([]rune(string(b))) }
	Walk(schema,
		func(_ int, name []byte) { words = append(words, "."+clean(name)) },
		func(_ int, text []byte) { words = append(words, clean(text)) })
	return words
}

// A jsonMember is a member of a JSON object that decodeOrdered has read.
type jsonMember struct {
	name  string
	value any
}

// decodeOrdered returns the next value of dec: a string, a []any for an array,
// a []jsonMember for an object, or nil for anything else.
func decodeOrdered(t require.TestingT, dec *json.Decoder) any {
	token, err := dec.Token()
	require.NoError(t, err)
	switch token {
	case json.Delim('{'):
		members := []jsonMember{}
		for dec.More() {
			name, err := dec.Token()
			require.NoError(t, err)
			members = append(members, jsonMember{name.(string), decodeOrdered(t, dec)})
		}
		_, err = dec.Token()
		require.NoError(t, err)
		return members
	case json.Delim('['):
		elements := []any{}
		for dec.More() {
			elements = append(elements, decodeOrdered(t, dec))
		}
		_, err = dec.Token()
		require.NoError(t, err)
		return elements
	}
	if s, ok := token.(string); ok {
		return s
	}
	return nil
}

// decodedSchemaWords is schemaWords implemented with encoding/json. The schema
// must be valid JSON.
func decodedSchemaWords(t require.TestingT, schema []byte) (words []string) {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber() // a number may be too large for a float64
	var walk func(schema any, depth int)
	walk = func(schema any, depth int) {
		members, ok := schema.([]jsonMember)
		if !ok || depth > 64 {
			return
		}
		for _, m := range members {
			s, isString := m.value.(string)
			elements, isArray := m.value.([]any)
			named, _ := m.value.([]jsonMember)
			switch m.name {
			case "description", "const":
				if isString {
					words = append(words, s)
				}
			case "enum":
				for _, e := range elements {
					if s, ok := e.(string); ok {
						words = append(words, s)
					}
				}
			case "properties", "patternProperties", "$defs", "definitions":
				for _, n := range named {
					if m.name == "properties" {
						words = append(words, "."+n.name)
					}
					walk(n.value, depth+1)
				}
			case "items", "prefixItems", "anyOf", "oneOf", "allOf":
				for _, e := range elements {
					walk(e, depth+1)
				}
				if !isArray {
					walk(m.value, depth+1)
				}
			case "additionalProperties", "then", "else":
				walk(m.value, depth+1)
			}
		}
	}
	walk(decodeOrdered(t, dec), 1)
	return words
}

// sampleSchema has every keyword that Walk knows, and some others.
const sampleSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object", "description": "Book a table", "required": ["city", "when"], "title": "Booking",
	"properties": {
		"city": {"type": "string", "description": "Where, e.g. \"K\u00f6ln\"", "minLength": 1, "examples": ["Bonn"]},
		"when": {"anyOf": [{"type": "string", "format": "date-time"}, {"const": "now"}, {"type": "null"}], "default": "now"},
		"guests": {"type": "array", "maxItems": 1e2, "items": {"type": "object", "properties": {
			"diet": {"enum": ["vegan", "halal", null, 3, ["no"]], "description": "What they eat"}},
			"additionalProperties": {"description": "anything else"}}},
		"place": {"$ref": "#/$defs/place"},
		"pair": {"prefixItems": [{"const": "x"}, true], "not": {"const": "no"}}},
	"patternProperties": {"^x-": {"description": "an extension"}},
	"$defs": {"place": {"oneOf": [{"properties": {"indoors": {"type": "boolean"}}}, {"$ref": "#/$defs/place"}]}},
	"if": {"properties": {"city": {"const": "Rome"}}}, "then": {"required": ["guests"], "allOf": [{"description": "In Rome"}]},
	"else": {"description": "elsewhere"}, "additionalProperties": false}`

func TestWalkSchema(t *testing.T) {
	tests := []struct {
		name   string
		schema string
		want   []string // names follow a dot
	}{
		{"sample", sampleSchema, []string{"Book a table", ".city", `Where, e.g. "Köln"`, ".when", "now", ".guests", ".diet", "vegan", "halal",
			"What they eat", "anything else", ".place", ".pair", "x", "an extension", ".indoors", "In Rome", "elsewhere"}},
		{"no parameters", `{"type":"object"}`, nil},
		{"empty object", `{}`, nil},
		{"space everywhere", " \r\n{ \"properties\"\t:\n{ \"a\" : { \"enum\" : [ \"x\" , \"y\" ] } , \"b\" : true } } \n", []string{".a", "x", "y", ".b"}},

		{"properties named as keywords", `{"properties":{"properties":{"type":"object","properties":{"enum":{"enum":["x"]}}},"description":{"description":"d"},"const":{"type":"string"},"items":{},"$defs":{}}}`,
			[]string{".properties", ".enum", "x", ".description", "d", ".const", ".items", ".$defs"}},
		{"keywords as values", `{"type":"description","description":"properties","enum":["enum","const"]}`, []string{"properties", "enum", "const"}},
		{"a property whose schema is a string", `{"properties":{"description":"not a text","a":"b"}}`, []string{".description", ".a"}},
		{"definitions give no names", `{"definitions":{"a":{"description":"d"}},"$defs":{"properties":{"properties":{"b":{}}}}}`, []string{"d", ".b"}},
		{"a definition is read once", `{"properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"$defs":{"d":{"description":"d"}}}`, []string{".a", ".b", "d"}},
		{"patterns give no names", `{"patternProperties":{"^a":{"properties":{"b":{}}}}}`, []string{".b"}},
		{"ignored keywords", `{"title":"t","default":"t","examples":["t"],"$comment":"t","pattern":"t","format":"t","required":["t"],"$ref":"t","not":{"const":"t"},"if":{"const":"t"},
			"propertyNames":{"enum":["t"]},"default":{"description":"t","properties":{"t":{}}},"const":{"description":"t"}}`, nil},
		{"keywords have their case", `{"Description":"t","PROPERTIES":{"t":{}}}`, nil},

		{"items as a list", `{"items":[{"description":"a"},true,{"const":"b"}],"prefixItems":{"description":"c"}}`, []string{"a", "b", "c"}},
		{"lists within lists", `{"items":[[{"description":"a"}]],"anyOf":[[[]]],"enum":[["a"],[["a"]]],"allOf":[{"description":"b"}]}`, []string{"b"}},
		{"enum with more than strings", `{"enum":[1,"a",null,{"description":"no"},["no"],true,-1.5e+3,"b"]}`, []string{"a", "b"}},
		{"wrong types", `{"properties":["a"],"description":["a"],"enum":"a","const":1,"items":"a","anyOf":"a","$defs":null,"then":[{"const":"a"}],"additionalProperties":[{"const":"a"}]}`, nil},
		{"an enum that is an object", `{"enum":{"description":"a"},"description":{"enum":["a"]}}`, nil},
		{"schemas that are no objects", `{"properties":{"a":true,"b":false,"c":null,"d":1,"e":[{"const":"x"}],"f":"g"}}`, []string{".a", ".b", ".c", ".d", ".e", ".f"}},
		{"repeated names", `{"properties":{"a":{}},"description":"d","properties":{"a":{},"a":{}},"description":"e"}`, []string{".a", "d", ".a", ".a", "e"}},

		{"escaped keywords", `{"d\u0065scription":"d","\u0070roperties":{"\u0061":{}}}`, []string{"d", ".a"}},
		{"escapes", `{"properties":{"a\"b":{},"\\":{},"\\\"":{}},"enum":["\b\f\n\r\t\/","\\\\","","\"","x\\"]}`, []string{`.a"b`, `.\`, `.\"`, "\b\f\n\r\t/", `\\`, "", `"`, `x\`}},
		{"escaped brackets and quotes are passed over", `{"default":["}","\"]}","\\",{"]":"["}],"description":"d"}`, []string{"d"}},
		{"surrogates", `{"enum":["\ud83d\ude80","\ud83d","\ude80\ud83d","\ud83dx","\ud83d\u0041"]}`, []string{"🚀", "\ufffd", "\ufffd\ufffd", "\ufffdx", "\ufffdA"}},
		{"invalid UTF-8", "{\"properties\":{\"\xff\":{}},\"enum\":[\"a\xc3\",\"\xed\xa0\x80\\n\"]}", []string{".\ufffd", "a\ufffd", "\ufffd\ufffd\ufffd\n"}},
		{"other scripts", `{"description":"创建问题 🚀","properties":{"größe":{}}}`, []string{"创建问题 🚀", ".größe"}},

		{"array", `[{"description":"d"}]`, nil},
		{"string", `"description"`, nil},
		{"number", `-1.5e3`, nil},
		{"null", `null`, nil},
		{"true", `true`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(test.schema)))
			assert.Equal(t, test.want, schemaWords([]byte(test.schema)))
			assert.Equal(t, test.want, decodedSchemaWords(t, []byte(test.schema)))
		})
	}
}

func TestWalkSchemaLevels(t *testing.T) {
	var got []string
	add := func(level int, b []byte) { got = append(got, fmt.Sprint(level, string(b))) }
	Walk([]byte(`{"description":"a","properties":{"b":{"description":"c","items":{"anyOf":[{"properties":{"d":{"enum":["e"]}}}]}},"f":{}},
		"$defs":{"x":{"description":"g","properties":{"h":{}}}},"const":"i"}`), add, add)
	assert.Equal(t, []string{"0a", "1b", "1c", "2d", "2e", "1f", "0g", "1h", "0i"}, got)
}

// Words before a mistake are kept. The other results here are not promised.
func TestWalkSchemaInvalidJSON(t *testing.T) {
	tests := []struct {
		schema string
		want   []string
	}{
		{``, nil},
		{` `, nil},
		{`{"description":"a","const":"b`, []string{"a"}},
		{`{"description":"a","const":"b\`, []string{"a"}},
		{`{"description":"a","const":"b\"`, []string{"a"}},
		{`{"description":"a","const":"\x"}`, []string{"a"}},
		{`{"description":"a","const":"\u00"}`, []string{"a"}},
		{`{"description":"a","const":}`, []string{"a"}},
		{`{"description":"a","const"}`, []string{"a"}},
		{`{"description":"a",}`, []string{"a"}},
		{`{"description":"a"]`, []string{"a"}},
		{`{"description":"a"`, []string{"a"}},
		{`{"description":"a"}}}{"const":"b"}`, []string{"a"}},
		{"{\"description\":\"a\"\x00,\"const\":\"b\"}", []string{"a"}},
		{"{\"description\":\"a\",\"default\":[\x00]}", []string{"a"}},
		{`{"description":"a","default":tru`, []string{"a"}},
		{`{1:2,"description":"a"}`, []string{"a"}},
		{`}`, nil},
		{`]`, nil},
		{`:,:,`, nil},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, schemaWords([]byte(test.schema)), "%q", test.schema)
	}
}

// A schema that is cut off anywhere gives some of its first words and no part
// of a word.
func TestWalkSchemaCutOff(t *testing.T) {
	whole := schemaWords([]byte(sampleSchema))
	for n := range len(sampleSchema) {
		words := schemaWords([]byte(sampleSchema[:n]))
		require.LessOrEqual(t, len(words), len(whole))
		for i, word := range words {
			require.Equal(t, whole[i], word, "cut off at %d", n)
		}
	}
}

// Reading ends, whatever byte replaces another.
func TestWalkSchemaDamaged(t *testing.T) {
	for i := range len(sampleSchema) {
		for _, c := range []byte("\"\\{],\x00") {
			damaged := []byte(sampleSchema)
			damaged[i] = c
			words := schemaWords(damaged)
			if json.Valid(damaged) {
				require.Equal(t, decodedSchemaWords(t, damaged), words, "%q at %d", c, i)
			}
		}
	}
}

func TestWalkSchemaNesting(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"properties":{"a":`, levels) + `{"description":"d"}` + strings.Repeat("}}", levels)
	}
	for _, levels := range []int{0, 1, 64 - 1, 64, 64 + 1, 2000} {
		words := schemaWords([]byte(nested(levels)))
		assert.Equal(t, decodedSchemaWords(t, []byte(nested(levels))), words)
		names := min(levels, 64)
		if levels < 64 {
			require.Equal(t, "d", words[names])
			words = words[:names]
		}
		assert.Len(t, words, names, "%d levels", levels)
	}
	// Parts that are too deep are skipped, and what follows them is read.
	deep := `{"items":` + nested(64) + `,"description":"end"}`
	words := schemaWords([]byte(deep))
	require.Len(t, words, 64)
	assert.Equal(t, "end", words[64-1])
}

// A hostile schema takes time in proportion to its length, and little stack. In
// quadratic time, these would run for minutes.
func TestWalkSchemaHostile(t *testing.T) {
	const n = 500_000
	for _, unit := range []string{
		`[`, `{`, `]`, `{"properties":{"a":`, `{"items":`, `{"items":[`, `{"anyOf":[{},`, `{"a":`, `{"enum":[`, `"`, `\`, `\"`, `"\`, `{"description":"`, `,`, `1`, `{"description":"\n",`, "\x00",
	} {
		for _, before := range []string{``, `{"default":`, `{"description":"`} {
			schema := []byte(before + strings.Repeat(unit, n/len(unit)))
			schemaWords(schema)
			schemaWords(append(schema, `"]}`...))
		}
	}
}

// typicalSchema is as long as the average schema of published servers.
const typicalSchema = `{"type":"object","properties":{"owner":{"type":"string","description":"Account that owns the repository"},"repo":{"type":"string","description":"Name of the repository"},` +
	`"state":{"type":"string","enum":["open","closed","all"],"description":"Which issues to list","default":"open"},"labels":{"type":"array","items":{"type":"string"},"description":"Only issues with all of these labels"},` +
	`"page":{"type":"number","minimum":1,"description":"Page of the results, from 1"},"perPage":{"type":"number","minimum":1,"maximum":100,"description":"Results per page"},` +
	`"since":{"type":"string","description":"Only issues changed after this time, as in ISO 8601"}},"required":["owner","repo"],"additionalProperties":false}`

func TestWalkSchemaAllocatesNothing(t *testing.T) {
	schema, words := []byte(typicalSchema), 0
	count := func(int, []byte) { words++ }
	assert.Zero(t, testing.AllocsPerRun(100, func() { Walk(schema, count, count) }))
	assert.NotZero(t, words)
}

func FuzzWalkSchema(f *testing.F) {
	for _, seed := range []string{
		sampleSchema, typicalSchema, `{}`, `true`, `{"properties":{"properties":{"enum":["a"]}}}`, `{"enum":["\ud83d\ude80\\","\ud83d"],"enum":{"a":1}}`, "{\"const\":\"\xff\\n\"}",
		`{"items":[{"const":"a"},[[]]],"items":{"description":"b"}}`, `{"default":["\"]",{"a":"\\"}],"description":"c"}`, `{"$defs":{"a":{"then":{"else":{"additionalProperties":{"const":"d"}}}}}}`,
		`{"a":1e999,"minimum":-0,"description":"e"}`, `{"description":"f`, `{1:2,"a"}]`, strings.Repeat(`{"items":`, 70),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		before := bytes.Clone(schema)
		words := schemaWords(schema)
		require.Equal(t, string(before), string(schema), "the schema was changed")
		if json.Valid(schema) {
			require.Equal(t, decodedSchemaWords(t, schema), words)
		}
	})
}

var schemasToRead = []struct {
	name   string
	schema []byte
}{
	{fmt.Sprintf("typical/bytes=%d", len(typicalSchema)), []byte(typicalSchema)},
	{fmt.Sprintf("escapes/bytes=%d", len(sampleSchema)), []byte(sampleSchema)},
	{"nested/bytes=60k", []byte(strings.Repeat(`{"items":`, 60) + `{"description":"` + strings.Repeat("word ", 12_000) + `"}` + strings.Repeat("}", 60))},
}

func BenchmarkWalkSchema(b *testing.B) {
	total := 0
	count := func(_ int, word []byte) { total += len(word) }
	for _, test := range schemasToRead {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Walk(test.schema, count, count)
			}
		})
	}
}

// BenchmarkDecodeSchema measures what Walk saves.
func BenchmarkDecodeSchema(b *testing.B) {
	for _, test := range schemasToRead {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v map[string]any
				if err := json.Unmarshal(test.schema, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
