package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func plainOf(t *testing.T, schema string) *plainSchema {
	c, err := compileSchema(json.RawMessage(schema))
	require.NoError(t, err)
	return c.plain
}

func TestPlainSchema(t *testing.T) {
	p := plainOf(t, `{"type":"object","title":"T","properties":{
		"s":{"type":"string","description":"d"},"e":{"enum":["a","b",1]},"n":{"type":["number","null"]},
		"i":{"type":"integer","default":1},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"x":{},
		"long":{"type":"string","minLength":3},"const":{"const":1},"true":true
	},"required":["s"],"additionalProperties":false}`)
	require.NotNil(t, p)
	for args, want := range map[string]bool{
		`{"s":"x"}`:                   true,
		`{}`:                          false,
		`{"e":"a"}`:                   false,
		`{"s":1}`:                     false,
		`{"s":"x","e":"a"}`:           true,
		`{"s":"x","e":"c"}`:           false,
		`{"s":"x","e":1}`:             false, // valid, according to the library
		`{"s":"x","e":"\u0061"}`:      false, // likewise
		`{"s":"x","n":1.5e3}`:         true,
		`{"s":"x","n":null}`:          true,
		`{"s":"x","n":"1"}`:           false,
		`{"s":"x","i":-7}`:            true,
		`{"s":"x","i":1.0}`:           false,
		`{"s":"x","b":true}`:          true,
		`{"s":"x","b":null}`:          false,
		`{"s":"x","l":[1,{"a":[]}]}`:  true,
		`{"s":"x","l":{}}`:            false,
		`{"s":"x","o":{"s":1}}`:       true,
		`{"s":"x","x":[null]}`:        true,
		`{"s":"x","long":"xyz"}`:      false,
		`{"s":"x","const":1}`:         false,
		`{"s":"x","true":1}`:          false,
		`{"s":"x","unknown":1}`:       false,
		` { "s" : "x" , "s" : "y" } `: true, // either way; that it repeats a member is seen elsewhere
		` { "s" : "x" , "i" : 1 } `:   true,
		`{"s":"x","s":2}`:             false,
		`{"\u0073":"\"}","b":false}`:  true,
	} {
		assert.Equal(t, want, p.accepts([]byte(args)), args)
	}
	assert.True(t, plainOf(t, `{"type":"object"}`).accepts([]byte(`{"any":1}`)))
	for _, schema := range []string{
		`{"type":"object","minProperties":1}`, `{"type":["object","null"]}`, `{"type":"object","required":["a"]}`, `true`,
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","patternProperties":{"a":true}}`,
		`{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]}`,
	} {
		assert.Nil(t, plainOf(t, schema), schema)
	}
}

// A name that can't be read is left to the library, and sixty-four properties are known, no more.
func TestPlainSchemaAtItsLimits(t *testing.T) {
	t.Parallel()
	open := plainOf(t, `{"type":"object"}`)
	assert.False(t, open.accepts([]byte("{\"a\xff\":1}")))
	assert.False(t, open.accepts([]byte(`{"\x":1}`)))
	assert.False(t, open.accepts([]byte(`[]`)))
	of := func(n int) *plainSchema {
		properties, required := make([]string, n), make([]string, n)
		for i := range n {
			properties[i], required[i] = fmt.Sprintf(`"p%d":{"type":"integer"}`, i), fmt.Sprintf(`"p%d"`, i)
		}
		return plainOf(t, `{"type":"object","properties":{`+strings.Join(properties, ",")+`},"required":[`+strings.Join(required, ",")+`]}`)
	}
	assert.Nil(t, of(65))
	full := of(64)
	require.NotNil(t, full)
	args := func(without int) []byte {
		var members []string
		for i := range 64 {
			if i != without {
				members = append(members, fmt.Sprintf(`"p%d":%d`, i, i))
			}
		}
		return []byte("{" + strings.Join(members, ",") + "}")
	}
	assert.True(t, full.accepts(args(-1)))
	for i := range 64 {
		assert.False(t, full.accepts(args(i)), i)
	}
}

// The library accepts everything that the plain check accepts.
func FuzzPlainSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"enum":["x","y"],"type":"string"},"c":{"type":"integer"}},"required":["a"],"additionalProperties":false}`), []byte(`{"a":"1","b":"x","c":5}`))
	f.Add([]byte(`{"properties":{"a":{"type":"number","description":"d"},"b":{"items":{}},"c":{"type":"boolean"}}}`), []byte(`{"a":1e5,"d":[],"c":true}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		c, err := compileSchema(schema)
		if err != nil || c.plain == nil || !json.Valid(args) || !c.plain.accepts(args) {
			return
		}
		doc, err := decodeJSON(args)
		require.NoError(t, err)
		if (&gauge{left: 1 << 20}).fits(doc, 0, 0) {
			require.NoError(t, c.Validate(doc))
		}
	})
}
