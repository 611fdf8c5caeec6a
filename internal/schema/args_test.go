package schema

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseArguments(t *testing.T) {
	type named map[string]any
	type record struct {
		Query string `json:"query"`
	}
	var nilMap map[string]any
	var nilPointer *record
	tests := []struct {
		name string
		in   any
		want string
		err  string // in the error; want is then unused
	}{
		{"nil", nil, `{}`, ""},
		{"empty string", "", `{}`, ""},
		{"blank string", " \n\t", `{}`, ""},
		{"empty bytes", []byte{}, `{}`, ""},
		{"nil bytes", []byte(nil), `{}`, ""},
		{"nil RawMessage", json.RawMessage(nil), `{}`, ""},
		{"null", "null", `{}`, ""},
		{"null RawMessage", json.RawMessage(` null `), `{}`, ""},
		{"nil map", nilMap, `{}`, ""},
		{"nil pointer", nilPointer, `{}`, ""},
		{"string", `{"a":1}`, `{"a":1}`, ""},
		{"bytes", []byte(`{"a":1}`), `{"a":1}`, ""},
		{"RawMessage", json.RawMessage(`{"a":1}`), `{"a":1}`, ""},
		{"space around", "\n {\"a\": 1} ", `{"a": 1}`, ""},
		{"bytes are kept", `{"b":1.50e+02, "a":9007199254740993,"a":"\u00e9<&>é"}`, `{"b":1.50e+02, "a":9007199254740993,"a":"\u00e9<&>é"}`, ""},
		{"map", map[string]any{"a": 1, "b": nil}, `{"a":1,"b":null}`, ""},
		{"named map", named{"a": []string{"x"}}, `{"a":["x"]}`, ""},
		{"struct", record{"x"}, `{"query":"x"}`, ""},
		{"pointer", &record{"x"}, `{"query":"x"}`, ""},

		{"array", `[1]`, "", "not a JSON object"},
		{"number", `5`, "", "not a JSON object"},
		{"string of JSON", `"{}"`, "", "not a JSON object"},
		{"text", `query=x`, "", "not a JSON object"},
		{"slice", []string{"x"}, "", "not a JSON object"},
		{"int", 5, "", "not a JSON object"},
		{"false", false, "", "not a JSON object"},
		{"cut off", `{"a": 1`, "", "not valid JSON"},
		{"two objects", `{}{}`, "", "line 1, column 3"},
		{"wrong on the second line", "{\n\"a\" 1}", "", "line 2, column 5"},
		{"trailing comma", `{"a":1,}`, "", "not valid JSON"},
		{"single quotes", `{'a':1}`, "", "not valid JSON"},
		{"what can't be marshaled", map[string]any{"f": func() {}}, "", "unsupported type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Arguments(test.in)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, string(got))
		})
	}
}

func TestDropNullsBySchema(t *testing.T) {
	tests := []struct {
		name     string
		property string // the schema of the optional parameter p
		drop     bool
	}{
		{"string", `{"type":"string"}`, true},
		{"integer with a default", `{"type":"integer","default":5}`, true},
		{"object", `{"type":"object","properties":{"x":{"type":"null"}}}`, true},
		{"array", `{"type":"array","items":{"type":["string","null"]}}`, true},
		{"boolean", `{"type":"boolean"}`, true},
		{"number", `{"type":"number"}`, true},
		{"list of types without null", `{"type":["string","integer"]}`, true},
		{"enum without null", `{"enum":["a","b"]}`, true},
		{"const", `{"const":"a"}`, true},
		{"anyOf without null", `{"anyOf":[{"type":"string"},{"enum":[1]}]}`, true},
		{"oneOf without null", `{"oneOf":[{"type":"string"},{"const":false}]}`, true},
		{"anyOf in anyOf", `{"anyOf":[{"anyOf":[{"type":"string"}]},{"type":"integer"}]}`, true},
		{"type beside a description that says null", `{"type":"string","description":"null"}`, true},
		{"nullable false", `{"type":"string","nullable":false}`, true},
		{"the string null", `{"enum":["null"]}`, true},

		{"null", `{"type":"null"}`, false},
		{"list of types with null", `{"type":["string","null"]}`, false},
		{"nullable", `{"type":"string","nullable":true}`, false},
		{"nullable with enum", `{"enum":["a"],"nullable":true}`, false},
		{"enum with null", `{"enum":["a",null]}`, false},
		{"const null", `{"const":null}`, false},
		{"anyOf with null", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, false},
		{"anyOf with const null", `{"anyOf":[{"type":"string"},{"const":null}]}`, false},
		{"anyOf with nullable", `{"anyOf":[{"type":"string","nullable":true}]}`, false},
		{"anyOf with a reference", `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}]}`, false},
		{"anyOf with true", `{"anyOf":[{"type":"string"},true]}`, false},
		{"oneOf with null", `{"oneOf":[{"type":"string"},{"type":"null"}]}`, false},
		{"null deep in anyOf", `{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]}]}`, false},
		{"reference", `{"$ref":"#/$defs/x"}`, false},
		{"allOf", `{"allOf":[{"type":"string"}]}`, false},
		{"no schema", `{}`, false},
		{"only a description", `{"description":"x"}`, false},
		{"true", `true`, false},
		{"false", `false`, false},
		{"not a schema", `"string"`, false},
		{"type of a wrong kind", `{"type":5}`, false},
		{"empty type", `{"type":""}`, false},
		{"empty list of types", `{"type":[]}`, false},
		{"empty enum", `{"enum":[]}`, false},
		{"enum of a wrong kind", `{"type":"string","enum":5}`, false},
		{"the type of draft 3 that takes anything", `{"type":"any"}`, false},
		{"a type that is none", `{"type":["string","mixed"]}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			optional := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"p":` + test.property + `},"required":["q"]}`)
			const args = `{"q":null,"p":null,"other":null}`
			want := args
			if test.drop {
				want = `{"q":null,"other":null}`
			}
			assert.Equal(t, want, string(DropNulls(json.RawMessage(args), optional)))

			required := json.RawMessage(`{"type":"object","properties":{"p":` + test.property + `},"required":["p"]}`)
			assert.Equal(t, args, string(DropNulls(json.RawMessage(args), required)), "required")
		})
	}
}

func TestNoNullParameters(t *testing.T) {
	tests := []struct {
		name, schema string
		want         []string
	}{
		{"in the order of the schema", `{"properties":{"z":{"type":"string"},"a":{"type":"string"}}}`, []string{"z", "a"}},
		{"no properties", `{"type":"object"}`, nil},
		{"null properties", `{"properties":null}`, nil},
		{"properties of a wrong kind", `{"properties":[{"type":"string"}]}`, nil},
		{"required of a wrong kind", `{"properties":{"a":{"type":"string"}},"required":true}`, nil},
		{"required with a wrong kind", `{"properties":{"a":{"type":"string"}},"required":["b",5]}`, nil},
		{"null required", `{"properties":{"a":{"type":"string"}},"required":null}`, []string{"a"}},
		{"a required name that is no property", `{"properties":{"a":{"type":"string"}},"required":["b"]}`, []string{"a"}},
		{"an escaped name", `{"properties":{"\u0061":{"type":"string"}}}`, []string{"a"}},
		{"a keyword twice", `{"properties":{"a":{"type":"string"}},"Properties":{"b":{"type":"string"}}}`, nil},
		{"a property's keyword twice", `{"properties":{"a":{"type":"string","type":"null"},"b":{"type":"string"}}}`, []string{"b"}},
		{"not an object", `[]`, nil},
		{"not JSON", `{`, nil},
		{"nothing", ``, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, NoNull(json.RawMessage(test.schema)))
		})
	}
}

// Whatever keywords a parameter has together, NoNull means what its definition does.
func TestNoNullOfAnyKeywords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 23))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var property func(depth int) string
	property = func(depth int) string {
		var members []string
		for _, m := range []string{
			`"type":` + pick(`"string"`, `"null"`, `"text"`, `""`, `["string"]`, `["string","array"]`, `["string","null"]`, `["null"]`, `["text"]`, `[]`, `[1]`, `["object",null]`, `null`, `5`, `{}`),
			`"enum":` + pick(`["a"]`, `["a",null]`, `[null]`, `[]`, `null`, `"a"`, `[1,"null"]`),
			`"const":` + pick(`"a"`, `null`, `0`), `"nullable":` + pick("true", "false", "null", "1"),
		} {
			if r.IntN(3) == 0 {
				members = append(members, m)
			}
		}
		for _, name := range []string{"anyOf", "oneOf"} {
			if depth > 0 && r.IntN(3) == 0 {
				members = append(members, `"`+name+`":`+pick("["+property(depth-1)+"]", "["+property(depth-1)+","+property(depth-1)+"]", "[]", "null", "{}", "[null]"))
			}
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ",") + "}"
	}
	found := 0
	for range 2000 {
		schema := []byte(`{"properties":{"a":` + property(5) + `}}`)
		want := decodedNoNull(schema)
		found += len(want)
		require.Equal(t, want, NoNull(schema), "%s", schema)
	}
	assert.Greater(t, found, 300)
}

// decodedNoNull is [NoNull] by definition, as encoding/json reads a schema.
func decodedNoNull(schema []byte) (names []string) {
	var in struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &in) != nil {
		return nil
	}
	properties, _ := text.Members(in.Properties)
	for _, p := range properties {
		if !slices.Contains(in.Required, p.Name) && decodedRefusesNull(p.Value, 4) {
			names = append(names, p.Name)
		}
	}
	return names
}

func decodedRefusesNull(schema []byte, depth int) bool {
	var s struct {
		Type     any               `json:"type"`
		Enum     []json.RawMessage `json:"enum"`
		Const    json.RawMessage   `json:"const"`
		AnyOf    []json.RawMessage `json:"anyOf"`
		OneOf    []json.RawMessage `json:"oneOf"`
		Nullable bool              `json:"nullable"`
	}
	if depth == 0 || json.Unmarshal(schema, &s) != nil || s.Nullable {
		return false
	}
	all := func(list []json.RawMessage) bool {
		return !slices.ContainsFunc(list, func(o json.RawMessage) bool { return !decodedRefusesNull(o, depth-1) })
	}
	types, several := s.Type.([]any)
	one, _ := s.Type.(string)
	for _, t := range types {
		_, isString := t.(string)
		several = several && (isString || t == nil)
	}
	switch {
	case one != "":
		return isType(one)
	case several && len(types) > 0:
		return !slices.ContainsFunc(types, func(t any) bool { return t == nil || !isType(t.(string)) })
	case len(s.Enum) > 0:
		return !slices.ContainsFunc(s.Enum, func(e json.RawMessage) bool { return string(e) == "null" })
	case len(s.Const) > 0:
		return string(s.Const) != "null"
	case len(s.AnyOf) > 0:
		return all(s.AnyOf)
	}
	return len(s.OneOf) > 0 && all(s.OneOf)
}

func TestNoNullOfCatalogs(t *testing.T) {
	t.Parallel()
	found := 0
	for _, list := range mcptest.Catalogs(t) {
		for _, raw := range list {
			var tool struct{ InputSchema json.RawMessage }
			require.NoError(t, json.Unmarshal(raw, &tool))
			names := NoNull(tool.InputSchema)
			require.Equal(t, decodedNoNull(tool.InputSchema), names)
			found += len(names)
		}
	}
	assert.Greater(t, found, 500)
}

// It says the same of all schemas that have no keyword twice, in whatever case.
func FuzzNoNull(f *testing.F) {
	for _, seed := range []string{
		`{"properties":{"a":{"type":"string"},"b":{"Type":["integer",null]},"c":{"enum":[1,"null"],"nullable":false}},"required":["a"]}`,
		`{"properties":{"a":{"anyOf":[{"const":1},{"oneOf":[{"type":"array"},{"type":""}]}],"oneOf":null},"b":{"nullable":5,"type":"string"},"c":null}}`,
		`{"required":null,"Properties":{"a":{"type":[]},"b":{"enum":5,"type":"string"},"c":{"const":null}}} `, `[]`, `"x"`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !json.Valid(schema) || text.Twice(bytes.ToLower(schema)) != "" || bytes.ContainsAny(schema, "\u017f\u212a\\") {
			return // ſ and K are letters of keywords in other cases, and so may escapes be
		}
		require.Equal(t, decodedNoNull(schema), NoNull(schema))
	})
}

// Everything except the nulls keeps its bytes. Only space between members may
// go.
func TestDropNullsKeepsAllElse(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{"first", `{"p":null,"a":1,"b":2}`, `{"a":1,"b":2}`},
		{"middle", `{"a":1,"p":null,"b":2}`, `{"a":1,"b":2}`},
		{"last", `{"a":1,"b":2,"p":null}`, `{"a":1,"b":2}`},
		{"only", `{"p":null}`, `{}`},
		{"two of them", `{"p":null,"a":1,"r":null}`, `{"a":1}`},
		{"an escaped name is the same name", `{"\u0070":null,"a":1}`, `{"a":1}`},
		{"other nulls stay", `{"p":null,"other":null}`, `{"other":null}`},
		{"nulls within stay", `{"p":null,"a":{"p":null},"b":[null,{"p":null}]}`, `{"a":{"p":null},"b":[null,{"p":null}]}`},
		{"big integers and digits", `{"a":9007199254740993,"p":null,"b":18446744073709551616,"c":1.10,"d":1e400,"e":-0}`, `{"a":9007199254740993,"b":18446744073709551616,"c":1.10,"d":1e400,"e":-0}`},
		{"order of members", `{"z":1,"p":null,"a":2,"m":3}`, `{"z":1,"a":2,"m":3}`},
		{"repeated members", `{"a":1,"p":null,"a":2}`, `{"a":1,"a":2}`},
		{"escapes in values", `{"a":"\u00e9\ud83d\ude00\/\n<&>\u2028","p":null}`, `{"a":"\u00e9\ud83d\ude00\/\n<&>\u2028"}`},
		{"half a surrogate in a value", `{"a":"\ud800","p":null}`, `{"a":"\ud800"}`},
		{"space within a value", `{"a":[1, 2 ,  3],"p":null}`, `{"a":[1, 2 ,  3]}`},
		{"escapes in names", `{"\u00e9\/":1,"p":null}`, `{"\u00e9\/":1}`},
		{"characters of HTML in names", `{"a<b>&c":1,"p":null}`, `{"a<b>&c":1}`},
		{"half a surrogate in a name", `{"\ud800":1,"p":null}`, `{"\ud800":1}`},
		{"invalid UTF-8 in a name", "{\"a\xff\":1,\"p\":null}", "{\"a\xff\":1}"},
		{"the word in a string", `{"a":"null","p":null}`, `{"a":"null"}`},

		{"no null", `{ "p" : 1 }`, `{ "p" : 1 }`},
		{"null elsewhere: all space stays", `{ "a" : null }`, `{ "a" : null }`},
		{"another case is another name", `{"P":null}`, `{"P":null}`},
		{"the word null", `{"p":"null"}`, `{"p":"null"}`},
		{"a list with null", `{"p":[null]}`, `{"p":[null]}`},

		// Arguments that are no JSON object are left for the server to refuse.
		{"nothing", ``, ``},
		{"null itself", `null`, `null`},
		{"an array", `[null]`, `[null]`},
		{"cut off", `{"p":null`, `{"p":null`},
		{"cut off behind another member", `{"p":null,"a":1`, `{"p":null,"a":1`},
		{"trailing comma", `{"p":null,}`, `{"p":null,}`},
		{"trailing text", `{"p":null} x`, `{"p":null} x`},
		{"wrong closing", `{"p":null]`, `{"p":null]`},
		{"no name", `{null}`, `{null}`},
		{"a number for a name", `{1:null}`, `{1:null}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := json.RawMessage(test.in)
			assert.Equal(t, test.want, string(dropNulls(in, []string{"p", "r"})))
			assert.Equal(t, test.in, string(in), "the input was changed")
			assert.Equal(t, test.in, string(dropNulls(in, nil)), "without names")
		})
	}
}

// Only null means "not given". Hosts that dropped "USD" or 0 as a placeholder
// changed what the model asked for.
func TestDropNullsDropsNoOtherValue(t *testing.T) {
	for _, value := range []string{`"USD"`, `"none"`, `"null"`, `"N/A"`, `"undefined"`, `""`, `" "`, `0`, `0.0`, `-1`, `false`, `[]`, `{}`, `[null]`, `{"a":null}`} {
		in := `{"p":` + value + `,"q":null}`
		assert.Equal(t, in, string(dropNulls(json.RawMessage(in), []string{"p"})))
		assert.Equal(t, `{"p":`+value+`}`, string(dropNulls(json.RawMessage(in), []string{"p", "q"})))
	}
}

func FuzzDropNulls(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"p":null}`, `{"p":null,"a":9007199254740993}`, `{"a":{"p":null},"p":null,"p":1,"a":[null]}`, "{\"p\" :\n null , \"\\u0070\":null}",
		`{"p":"null","r":null}`, `{"p":null`, `null`, `[null]`, `{"A":1e400,"p":null,"r":0}`,
	} {
		f.Add([]byte(seed), "p", "r")
	}
	f.Fuzz(func(t *testing.T, in []byte, first, second string) {
		names := []string{first, second}
		before := bytes.Clone(in)
		got := dropNulls(in, names)
		require.Equal(t, string(before), string(in), "the input was changed")
		if !json.Valid(in) || !strings.HasPrefix(strings.TrimLeft(string(in), " \t\r\n"), "{") {
			require.Equal(t, string(in), string(got))
			return
		}
		require.True(t, json.Valid(got), "%s", got)

		var want [][2]string
		for _, m := range memberTexts(in) {
			var name string
			require.NoError(t, json.Unmarshal([]byte(m[0]), &name))
			if m[1] != "null" || !slices.Contains(names, name) {
				want = append(want, m)
			}
		}
		require.Equal(t, want, memberTexts(got), "%s\nbecame %s", in, got)
		require.Equal(t, string(got), string(dropNulls(got, names)), "not idempotent")
	})
}

// memberTexts returns the names and values of a valid JSON object as they are
// written. It does not parse JSON: names and values are what stands between the
// colons and commas outside of strings and brackets.
func memberTexts(object []byte) (members [][2]string) {
	text := strings.Trim(string(object), " \t\r\n")
	text = text[1 : len(text)-1]
	var m [2]string
	start, depth, part := 0, 0, 0
	end := func(i int) {
		m[part] = strings.Trim(text[start:i], " \t\r\n")
		start = i + 1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 0:
			end(i)
			part = 1
		case c == ',' && depth == 0:
			end(i)
			part = 0
			members = append(members, m)
		}
	}
	if part == 1 {
		end(len(text))
		members = append(members, m)
	}
	return members
}
