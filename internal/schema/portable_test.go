package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Ajv 8.20 with the options of the SDK for TypeScript refuses the same, but for what has a note.
func TestIsPortable(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"id":{"type":"string"},"nullable":{},"enum":{"enum":["a"]}},"required":["id"]}`:   true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`:                                      true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{}}}}`:             true,
		`{"type":"object","properties":{"a":{"type":"string","format":"nonsense","pattern":"^[a-z\\-]+\\.x{1,3}$"}}}`:     true,
		`{"type":"object","additionalProperties":{"type":["string","null"]},"anyOf":[{"nullable":true,"type":"object"}]}`: true,

		`{"type":"object","properties":{"a":{"$ref":"#/definitions/missing"}}}`:                                                          false,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/y.json"}}}`:                                                     false,
		`{"type":"object","properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`:                                        false, // taken, but not by others
		`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?i)abc$"}}}`:                                                   false,
		`{"type":"object","patternProperties":{"(?i)a":{}}}`:                                                                             false, // refused later
		`{"type":"object","properties":{"a":{"type":"str"}}}`:                                                                            false,
		`{"type":"object","required":"a"}`:                                                                                               false,
		`{"type":"object","required":null}`:                                                                                              false,
		`{"type":"object","properties":{"a":true}}`:                                                                                      false, // the SDK refuses it
		`{"type":"object","properties":[]}`:                                                                                              false,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`: false,
		`{"type":"object","properties":{"a":{"items":[{"type":"string"}]}}}`:                                                             false, // taken, but not as 2020-12
		`{"type":"object","properties":{"a":{"id":"x","type":"string"}}}`:                                                                false,
		`{"type":"object","allOf":[{"properties":{"a":{"nullable":true}}}]}`:                                                             false,
		`{"type":"object","properties":{"a":{"enum":[]}}}`:                                                                               false,
		`true`: false, `{"type":"object"`: false, `[]`: false, ``: false,
	} {
		assert.Equal(t, want, IsPortable(json.RawMessage(schema)), schema)
	}
}

// A person is told where the part is.
func TestUnportableIsPlaced(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"$ref":"#/definitions/missing"}}}`:                    "/definitions/missing",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/y.json"}}}`:               "/properties/a/$ref",
		`{"type":"object","properties":{"ok":{},"a/b c":{"type":"string","pattern":"^(?i)abc$"}}}`: "/properties/a~1b c/pattern",
		`{"type":"object","properties":{"a":{"type":"string","pattern":"a\\"}}}`:                   "/properties/a/pattern",
		`{"type":"object","patternProperties":{"(?i)a":{}}}`:                                       "/patternProperties",
		`{"type":"object","properties":{"a":{"type":"str"}}}`:                                      "/properties/a/type",
		`{"type":"object","required":null}`:                                                        "/required",
		`{"type":"object","properties":{"a":true}}`:                                                "/properties/a",
		`{"type":"object","properties":{"a":{"items":[{"type":"string"}]}}}`:                       "/properties/a/items",
		`{"type":"object","properties":{"a":{"id":"x","type":"string"}}}`:                          "/properties/a/id",
		`{"type":"object","allOf":[{},{"properties":{"a":{"nullable":true}}}]}`:                    "/allOf/1/properties/a/nullable",
		`{"type":"object","$defs":{"` + strings.Repeat("x", 500) + `":{"items":{"enum":[]}}}}`:     "/$defs/" + strings.Repeat("x", maxPlace-len("/$defs/")-1) + "…",
		`{"type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`:               "/properties/a/exclusiveMinimum",
		`[]`: "", `{"type":"object"`: "",
	} {
		at, is := Unportable(json.RawMessage(schema))
		assert.True(t, is, schema)
		assert.Equal(t, want, at, schema)
	}
	for range 50 { // the library goes through maps
		at, _ := Unportable(json.RawMessage(`{"type":"object","properties":{"c":{"minLength":-1},"a":{"minLength":-1,"items":7},"b":{"type":1}}}`))
		assert.Equal(t, "/properties/a/items", at)
	}
	_, is := Unportable(json.RawMessage(`{"type":"object"}`))
	assert.False(t, is)
}

func TestIsPortablePattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"": true, "^a$": true, `^\d{4}-\d{2}(?:-\d{2})?$`: true, `[\w.+-]+@[\w-]+`: true, `\bé\b`: true, `a|\/`: true, `[[]`: true, `[a]b{2}[-^]`: true, `\x41`: true, "a{2,}": true,
		`a\-b`: false, `[[:alpha:]]`: false, `\Aa\z`: false, `(?P<n>a)`: false, `(?i)a`: false, `a{`: false, `[\x{41}]`: false, `[a]b{`: false, `[a](?i)b`: false, `a}`: false, `a]`: false, `[]a]`: false, `[^]a]`: false,
		`\pL`: false, `\p{Greek}`: false, `\Qa\E`: false, `a{,2}`: false, `\x{41}`: false, `[`: false, `\`: false, `(?=a)`: false, `\_`: false, `[\b]`: false,
	} {
		_, err := newPatterns().compile(pattern)
		assert.Equal(t, want, err == nil && isPortablePattern(pattern), pattern)
	}
}

// What a server sends takes little time, whatever it is.
func TestIsPortableBounded(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"deep":     strings.Repeat(`{"not":`, 10_000) + "{}" + strings.Repeat("}", 10_000),
		"wide":     `{"type":"object","properties":{` + strings.Repeat(`"a":{},`, 50_000) + `"b":{}}}`,
		"patterns": `{"type":"object","anyOf":[` + strings.Repeat(`{"pattern":"(a{500}){500}"},`, 500) + `{}]}`,
		"classes":  fmt.Sprintf(`{"type":"object","pattern":%q}`, strings.Repeat("[a-z]", 50_000)),
	} {
		begin := time.Now()
		IsPortable(json.RawMessage(schema))
		assert.Less(t, time.Since(begin), 5*time.Second, name)
	}
	assert.False(t, IsPortable(json.RawMessage(strings.Repeat(`{"not":`, 10_000)+"{}"+strings.Repeat("}", 10_000))))
}

func FuzzIsPortable(f *testing.F) {
	for _, seed := range []string{`{"type":"object","properties":{"a":{"pattern":"^[a-z]{1,2}\\d$"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"nullable":true}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if IsPortable(schema) && NewValidator(schema).Err() != nil {
			t.Errorf("%s can be compiled by all others", schema)
		}
	})
}
