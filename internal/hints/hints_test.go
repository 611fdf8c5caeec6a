package hints

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLength+1)
	many := `["` + strings.Repeat(`a","`, maxTexts) + `b"]`
	for _, c := range []struct{ name, in, want string }{
		{"nothing", ``, `line 1, column 1: unexpected end of JSON input`},
		{"syntax", "{\"preconditions\": [\n  \"a\",, ]}", `line 2, column 7: invalid character ','`},
		{"list", `["a"]`, `is a JSON array, want an object`},
		{"null", `null`, `is not a JSON object`},
		{"unknown member", `{"precondition": []}`, `"precondition" is not a member of hints, want one of ["preconditions" "anti_patterns" "chains_with" "output_shape"]`},
		{"other case", `{"Preconditions": ["a"]}`, `"Preconditions" is not a member of hints`},
		{"twice", `{"output_shape": "a", "output_shape": "b"}`, `"output_shape" is given twice`},
		{"no list", `{"chains_with": "a"}`, `"chains_with" is a JSON string, want a list of strings`},
		{"number in a list", `{"chains_with": ["a", 1]}`, `"chains_with" is a JSON number, want a string`},
		{"no text", `{"output_shape": {}}`, `"output_shape" is a JSON object, want a string`},
		{"too many", `{"anti_patterns": ` + many + `}`, `"anti_patterns" has 17 texts, more than the limit of 16`},
		{"long text", `{"preconditions": ["a", "` + long + `"]}`, `"preconditions": text 1 has 501 bytes, more than the limit of 500`},
		{"long shape", `{"output_shape": "` + long + `"}`, `"output_shape" has 501 bytes, more than the limit of 500`},
		{"too long", strings.Repeat(" ", maxJSON+1), `the document has 262145 bytes, more than the limit of 262144`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	h, err := Parse([]byte(`{"preconditions":["Log\nin"],"anti_patterns":["twice"],"chains_with":["b"],"output_shape":"ids"}`))
	require.NoError(t, err)
	assert.Equal(t, "Log in\nb\nids", h.Words())
	c := h.Clone()
	assert.True(t, h.Equal(c))
	c.AntiPatterns[0] = "thrice"
	assert.False(t, h.Equal(c))
	assert.Equal(t, "twice", h.AntiPatterns[0], "a clone shares nothing")
	c = h.Clone()
	c.OutputShape = ""
	assert.False(t, h.Equal(c))
	empty, err := Parse([]byte(`{"preconditions":[],"output_shape":null}`))
	require.NoError(t, err)
	assert.Equal(t, Hints{}, empty)
}
