package mcphybrid

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
)

func TestArgumentsErrorIsBounded(t *testing.T) {
	t.Parallel()
	found := []Violation{{"", `is missing the property "b"`}, {"/a/0", "is a number, want string"}}
	err := error(&ArgumentsError{Tool: "mcp_a__b", Violations: found, More: 29})
	assert.ErrorIs(t, err, ErrBadArguments)
	assert.EqualError(t, err, `mcphybrid: bad arguments for "mcp_a__b": the object is missing the property "b"; /a/0 is a number, want string; and 29 more`)
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
		{`{"text": 1}`, "/text is a number, want string", "- /text: is a number, want string"},
	} {
		r, err := m.Call(t.Context(), "mcp_a__tool_000", test.args)
		assert.EqualError(t, err, `mcphybrid: bad arguments for "mcp_a__tool_000": `+test.toHost)
		assert.Contains(t, resultText(t, r), "\n"+test.toModel+"\n")
	}
}
