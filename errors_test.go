package mcphybrid

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArgumentsErrorIsBounded(t *testing.T) {
	t.Parallel()
	found := []Violation{{"", `is missing the required property "b"`}, {"/a/0", "is a number, but must be a string"}}
	err := error(&ArgumentsError{Tool: "mcp_a__b", Violations: found, More: 29})
	assert.ErrorIs(t, err, ErrBadArguments)
	assert.EqualError(t, err, `mcphybrid: bad arguments for "mcp_a__b": the arguments object is missing the required property "b"; /a/0 is a number, but must be a string; and 29 more`)
	long := &ArgumentsError{Violations: slices.Repeat([]Violation{{Problem: strings.Repeat("x", 500)}}, 16)}
	assert.LessOrEqual(t, len([]rune(long.Error())), text.MaxError)
}

// An error about arguments reads as a sentence, for the host and for the model.
func TestArgumentsErrorReads(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 1)}})
	for _, test := range []struct {
		args            any
		toHost, toModel string
	}{
		{`{"text": 1`, "the arguments are not valid JSON: line 1, column 10: unexpected end of JSON input", "- the arguments are not valid JSON: line 1, column 10: unexpected end of JSON input"},
		{`[1]`, "the arguments are not a JSON object", "- the arguments are not a JSON object"},
		{func() {}, "the arguments can't be written as JSON: json: unsupported type: func()", "- the arguments can't be written as JSON: json: unsupported type: func()"},
		{`{"text": 1}`, "/text is a number, but must be a string", "- /text is a number, but must be a string"},
	} {
		r, err := m.Call(t.Context(), "mcp_a__tool_000", test.args)
		assert.EqualError(t, err, `mcphybrid: bad arguments for "mcp_a__tool_000": `+test.toHost)
		assert.Contains(t, resultText(t, r), "\n"+test.toModel+"\n")
	}
}

// Every method that returns an error names the library in it. They are called with
// arguments that nobody should pass, and those of a Manager after its Close.
func TestErrorsNameTheLibrary(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{
		Cache: &mcptest.Store{}, TrustStore: &mcptest.Store{}, Usage: &UsageOptions{Store: &mcptest.Store{}}, Learn: &LearnOptions{Store: &mcptest.Store{}},
		Enricher: table{}, Servers: []ServerConfig{inProcess("a", 1)},
	})
	u, err := m.NewUser("u", nil)
	require.NoError(t, err)
	tool := m.InlineTools()[0]
	require.NoError(t, m.Close())
	passed := func(in reflect.Type) reflect.Value {
		switch {
		case in == reflect.TypeFor[context.Context]():
			return reflect.ValueOf(t.Context())
		case in == reflect.TypeFor[json.RawMessage]():
			return reflect.ValueOf(json.RawMessage("{"))
		case in.Kind() == reflect.String:
			return reflect.ValueOf("none").Convert(in)
		case in.Kind() == reflect.Int:
			return reflect.ValueOf(77)
		}
		return reflect.Zero(in)
	}
	var without []string
	for _, of := range []any{m, u, m.NewSession(nil), tool, NewRegistry(), Rule{}} {
		for i := range reflect.TypeOf(of).NumMethod() {
			name, call := reflect.TypeOf(of).Method(i).Name, reflect.ValueOf(of).Method(i)
			outs := call.Type().NumOut()
			if outs == 0 || call.Type().Out(outs-1) != reflect.TypeFor[error]() {
				continue
			}
			var args []reflect.Value
			for in := range call.Type().NumIn() {
				if !call.Type().IsVariadic() || in < call.Type().NumIn()-1 {
					args = append(args, passed(call.Type().In(in)))
				}
			}
			if err, _ := call.Call(args)[outs-1].Interface().(error); err == nil {
				without = append(without, name)
			} else {
				assert.True(t, strings.HasPrefix(err.Error(), "mcphybrid: "), "%T.%s: %v", of, name, err)
			}
		}
	}
	slices.Sort(without)
	assert.Equal(t, []string{"Close", "DropUser", "Preload"}, slices.Compact(without), "the others have something to complain of")
}
