package schema

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPassed(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{
		"path":{"type":"string"},"count":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},
		"input":{"type":"object"},"either":{"type":["string","integer"]},"on":{"anyOf":[{"type":"boolean"},{"type":"null"}]},"name":{"type":"string"}
	},"additionalProperties":false}`)
	for _, test := range []struct{ passed, want string }{
		{`{"name":"t"}`, `{}`},
		{`{"name":"t","arguments":null}`, `{}`},
		{`{"name":"t","arguments":{"path":"a"}}`, `{"path":"a"}`},
		{`{"name":"t","arguments":"{\"path\":\"a\"}"}`, `{"path":"a"}`},
		{`{"name":"t","Name":"u","Arguments":1}`, `{"Name":"u","Arguments":1}`}, // which the tool may take
		{`{"name":"t","path":"a","count":2}`, `{"path":"a","count":2}`},
		{`{"name":"t","arguments":{},"path":"a"}`, `{"path":"a"}`},
		{`{"name":"t","args":{"path":"a"}}`, `{"path":"a"}`},
		{`{"name":"t","params":"{\"path\":\"a\"}"}`, `{"path":"a"}`},
		{`{"name":"t","input":{"path":"a"}}`, `{"input":{"path":"a"}}`},                   // the tool has a parameter of that name
		{`{"name":"t","args":{"path":"a"},"count":2}`, `{"args":{"path":"a"},"count":2}`}, // the tool refuses it and says why

		{`{"name":"t","arguments":{"count":"2"}}`, `{"count":2}`},
		{`{"name":"t","count":"2","path":"2","either":"2"}`, `{"count":2,"path":"2","either":"2"}`},
		{`{"name":"t","arguments":{"tags":"[\"a\"]","on":"true"}}`, `{"tags":["a"],"on":true}`},
		{`{"name":"t","arguments":{"count":"two"}}`, `{"count":"two"}`},
		{`{"name":"t","arguments":{"on":"null"}}`, `{"on":"null"}`}, // a null may mean that it is missing
		{`{"name":"t","arguments":{"count":" 2 ","on":"true","tags":5}}`, `{"count":" 2 ","on":"true","tags":5}`},
		{`{"name":"t","arguments":{"count":" 2\n"}}`, `{"count":2}`},
		{`{"name":"t","arguments":{"count":"2.5"}}`, `{"count":"2.5"}`},
		{`{"name":"t","arguments":{"count":"2","path":5}}`, `{"count":"2","path":5}`}, // it is wrong either way
		{`{"name":"t","arguments":{"count":"9007199254740993"}}`, `{"count":9007199254740993}`},
		{`{"name":"t","arguments":[1]}`, `[1]`},
		{`{"name":"t","arguments":"no JSON"}`, `no JSON`},
	} {
		p, err := ParsePassed(json.RawMessage(test.passed))
		require.NoError(t, err, test.passed)
		assert.Equal(t, "t", p.Name)
		args, err := p.Arguments(NewValidator(schema))
		require.NoError(t, err, test.passed)
		assert.Equal(t, test.want, string(args), test.passed)
	}

	for passed, problem := range map[string]string{
		`[]`:                      "the arguments are not a JSON object",
		`null`:                    "the arguments are not a JSON object",
		`{"name":"t"} {}`:         "after top-level value",
		`{}`:                      `"name" is missing or empty`,
		`{"name":""}`:             `"name" is missing or empty`,
		`{"name":5}`:              `"name" is a JSON number, want a string`,
		`{"name":"t","name":"u"}`: `"name" is given twice, but must be given once`,
		`{"name":"t"`:             "unexpected end of JSON input",
		`{"arguments":{"a":1}}`:   `"name" is missing or empty`,
	} {
		_, err := ParsePassed(json.RawMessage(passed))
		assert.ErrorContains(t, err, problem, passed)
	}
	p, err := ParsePassed(json.RawMessage(`{"name":"t","arguments":{"path":"a"},"count":2}`))
	require.NoError(t, err)
	_, err = p.Arguments(NewValidator(schema))
	assert.EqualError(t, err, `"count" stands beside "arguments", but all that the tool takes belongs in "arguments"`)
	args, err := Passed{Name: "t", arguments: json.RawMessage(`{"count":"2"}`)}.Arguments(nil)
	require.NoError(t, err)
	assert.Equal(t, `{"count":"2"}`, string(args), "of an unknown tool, nothing is certain")
}

// Where a schema takes the arguments as they are written, they are not taken out of
// another name.
func TestPassedAsWritten(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{"input":{"q":1}}`,
		`{"type":"object","allOf":[{"properties":{"input":{"type":"object"}},"required":["input"]}]}`:                                `{"input":{"q":1}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"input":{"type":"object"}},"additionalProperties":false}}}`: `{"input":{"q":1}}`,
		`{"type":"object","properties":{"q":{"type":"number"}},"required":["q"]}`:                                                    `{"q":1}`,
	} {
		p, err := ParsePassed(json.RawMessage(`{"name":"t","input":{"q":1}}`))
		require.NoError(t, err)
		args, err := p.Arguments(NewValidator(json.RawMessage(schema)))
		require.NoError(t, err)
		assert.Equal(t, want, string(args), schema)
	}
}

func FuzzPassed(f *testing.F) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array"},"args":{"type":"string"}},"required":["n"]}`)
	v := NewValidator(schema)
	for _, seed := range []string{
		`{"name":"t","arguments":{"n":"1"}}`, `{"name":"t","n":"1","l":"[]"}`, `{"name":"t","args":"{\"n\":1}"}`, `{"name":"t","args":"{\"u\":1}"}`, `{"name":"t","arguments":"{","n":1}`, `{"name":"t","arguments":"\ud800","x":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ParsePassed(raw)
		if err != nil {
			return
		}
		require.NotEmpty(t, p.Name)
		args, err := p.Arguments(v)
		if err != nil {
			require.NotEmpty(t, p.rest)
			return
		}
		asWritten, err := p.Arguments(nil)
		require.NoError(t, err)
		if string(args) != string(asWritten) { // then they were wrong, and are right
			before, _ := v.Validate(asWritten)
			after, _ := v.Validate(args)
			require.NotEmpty(t, before)
			if alone := len(p.rest) == 1 && slices.Contains(otherNames, p.rest[0].Name); !alone { // its value is taken, right or wrong
				require.Empty(t, after)
			}
		}
	})
}
