package weaviatestore

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostileTexts are texts that end strings, or that some parsers can't read.
var hostileTexts = []string{
	`"`, `\`, `\"`, `"""`, `a "b" \c`, `\u0022`, `"}, limit: 9999) {tool_name}} x: Get {McphybridTools(limit: 1`, "line\nline\r\n", "# comment",
	"\x00\a\v\x7f\x1b[0m", "日本語 e\u0301 👍", "\U000e0041", "a\u200bb", "\u2028\u2029", "\xff\xfe", "\ufeff", "$x ${x} {{x}}", "</script>", strings.Repeat(`\`, 9),
}

// No search text ends a string of the query, whatever it holds. The real server
// understands the query and finds tools with these words.
func TestHostileTexts(t *testing.T) {
	s := open(t, newOptions(t))
	for _, text := range hostileTexts {
		evil := vector.Record{ID: "evil " + strings.ToValidUTF8(text, "?"), Sum: "1", Server: strings.ToValidUTF8(text, "?"), Text: text + " wanted", Vector: []float32{1, 0}}
		require.NoError(t, s.Upsert(t.Context(), text, []vector.Record{evil, tool("other", 0, 1)}), "%q", text)
		for _, words := range []string{text + " wanted", "wanted " + text} {
			q := vector.Query{Words: words, Vector: []float32{1, 0}, Servers: []string{evil.Server}, Alpha: 0.5, Limit: 5}
			assert.Equal(t, []string{evil.ID}, search(t, s, text, q), "%q", words)
		}
		search(t, s, text, vector.Query{Words: text, Limit: 5})
		sums, err := s.Sums(t.Context(), text)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{evil.ID: "1", "other": "sum of other"}, sums)
		require.NoError(t, s.Delete(t.Context(), text, []string{evil.ID}))
		assert.Empty(t, search(t, s, text, vector.Query{Words: "wanted", Limit: 5}))
	}
	assert.Empty(t, search(t, s, `"`, vector.Query{Words: " \n", Limit: 5}), "no words")
}

// graphQLString matches one string of the GraphQL specification.
var graphQLString = regexp.MustCompile(`\A"([^"\\\x00-\x1f]|\\u[0-9A-Fa-f]{4}|\\["\\/bfnrt])*"\z`)

// A literal is one string of GraphQL with the same text.
func FuzzLiteral(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := literal(s)
		assert.Regexp(t, graphQLString, quoted)
		var back string
		require.NoError(t, json.Unmarshal([]byte(quoted), &back))
		assert.Equal(t, string([]rune(s)), back)
		assert.Equal(t, "["+quoted+","+quoted+"]", literal([]string{s, s}))
	})
}

func TestQueries(t *testing.T) {
	s, err := New(Options{URL: "http://localhost:8080"})
	require.NoError(t, err)
	sides, err := s.sides("u", &vector.Query{Words: ` say "hi" `, Vector: []float32{3, 4}, Servers: []string{"s"}})
	require.NoError(t, err)
	sides[byWords].limit, sides[bySimilarity].limit = 7, 8
	inS := `where: {path: ["origin_sha256"], operator: ContainsAny, valueText: ["` + hash("s") + `"]}`
	assert.Equal(t, `Get {McphybridTools(tenant: "u", `+inS+`, bm25: {query: "say \"hi\"", properties: ["text"]}, limit: 7) {tool_name origin _additional {id score}}}`, sides[byWords].String())
	assert.Equal(t, `Get {McphybridTools(tenant: "u", `+inS+`, nearVector: {vector: [0.6,0.8]}, limit: 8) {tool_name origin _additional {id distance}}}`, sides[bySimilarity].String())
}

// An answer of any shape is rows or an error, and rows are matches or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"data":{"words":{"C":[{"tool_name":"a","origin":"s","_additional":{"id":"x","score":"0.5"}}]}}}`,
		`{"data":{"words":{"C":[{"_additional":{"id":"","distance":-1e300,"score":"NaN"}}]}}}`,
		`{"data":{"words":null},"errors":[null]}`, `{"errors":[{"message":"no"}]}`, `{"data":{"words":{"C":null}}}`, `{"data":{"words":[1]}}`, `{}`, `null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rows, err := rowsOf([]byte(s), "C", []string{"words"})
		if err != nil {
			assert.Nil(t, rows)
			return
		}
		for _, side := range []string{byWords, bySimilarity} {
			for i := range rows["words"] {
				rows["words"][i].Additional.ID = objectID(rows["words"][i].Tool) // otherwise it is not read
			}
			found, err := matches(rows["words"], side)
			for i := range found {
				assert.NoError(t, err)
				assert.True(t, !math.IsInf(score(found[i]), 0) && (i == 0 || score(found[i-1]) >= score(found[i])), "%+v", found)
			}
		}
	})
}
