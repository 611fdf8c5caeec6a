package hints

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500+1)
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
		{"too many of others", `{"preconditions": ` + many + `}`, `"preconditions" has 17 texts`},
		{"too many to come", `{"chains_with": ` + many + `}`, `"chains_with" has 17 texts`},
		{"long text", `{"preconditions": ["a", "` + long + `"]}`, `"preconditions": text 1 has 501 bytes, more than the limit of 500`},
		{"long shape", `{"output_shape": "` + long + `"}`, `"output_shape" has 501 bytes, more than the limit of 500`},
		{"too long", strings.Repeat(" ", 256<<10+1), `the document has 262145 bytes, more than the limit of 262144`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Hints go to JSON and back, under their published names.
func TestHintsInJSON(t *testing.T) {
	t.Parallel()
	all := Hints{
		Preconditions: []string{"The branch is pushed", "<b>"}, AntiPatterns: []string{"Not for drafts"},
		ChainsWith: []string{"mcp_git__tag"}, OutputShape: "{number, url}",
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	assert.JSONEq(t, `{"preconditions":["The branch is pushed","<b>"],"anti_patterns":["Not for drafts"],"chains_with":["mcp_git__tag"],"output_shape":"{number, url}"}`, string(data))
	got, err := Parse(data)
	require.NoError(t, err)
	assert.Equal(t, all, got)

	data, err = json.Marshal(Hints{})
	require.NoError(t, err)
	assert.Equal(t, `{}`, string(data))
	got, err = Parse([]byte(`{"preconditions":null,"chains_with":[],"output_shape":null}`))
	require.NoError(t, err)
	assert.Equal(t, Hints{}, got)

	h, err := Parse([]byte(`{"output_shape": "a", "shape": "b"}`))
	assert.EqualError(t, err, `mcphybrid: hints: "shape" is not a member of hints, want one of ["preconditions" "anti_patterns" "chains_with" "output_shape"]`)
	assert.Equal(t, Hints{}, h)
}

// As much as may be is not too much.
func TestParseAtTheLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	most := Hints{OutputShape: long}
	for i := range 16 {
		most.Preconditions = append(most.Preconditions, long[i:])
	}
	most.AntiPatterns, most.ChainsWith = most.Preconditions, most.Preconditions
	data, err := json.Marshal(most)
	require.NoError(t, err)
	data = append(data, strings.Repeat(" ", 256<<10-len(data))...)
	got, err := Parse(data)
	require.NoError(t, err)
	assert.Equal(t, most, got)
}

func TestNopEnricherKnowsNothing(t *testing.T) {
	t.Parallel()
	h, ok, err := NopEnricher{}.LookupHints(t.Context(), nil)
	assert.Equal(t, Hints{}, h)
	assert.False(t, ok)
	assert.NoError(t, err)
}
