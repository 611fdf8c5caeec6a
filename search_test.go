package mcphybrid

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseSearchArguments(t *testing.T) {
	const standard = 7
	tests := []struct {
		name, args string
		query      string
		n          int
		err        string // in the error; then query and n are not used
	}{
		{"query", `{"query":"create issue"}`, "create issue", standard, ""},
		{"query and number", `{"query":"create issue","max_results":5}`, "create issue", 5, ""},
		{"the query is not changed", `{"query":"  Ünï\ncode 创建 "}`, "  Ünï\ncode 创建 ", standard, ""},
		{"other members", `{"query":"x","limit":3,"server":["a"]}`, "x", standard, ""},
		{"null number", `{"query":"x","max_results":null}`, "x", standard, ""},
		{"zero", `{"query":"x","max_results":0}`, "x", 0, ""},
		{"whole number with a point", `{"query":"x","max_results":5.0}`, "x", 5, ""},
		{"with an exponent", `{"query":"x","max_results":1e1}`, "x", 10, ""},
		{"rounded down", `{"query":"x","max_results":5.7}`, "x", 5, ""},
		{"less than one", `{"query":"x","max_results":0.9}`, "x", 0, ""},
		{"negative", `{"query":"x","max_results":-3}`, "x", -3, ""},
		{"huge", `{"query":"x","max_results":1e300}`, "x", math.MaxInt32, ""},
		{"hugely negative", `{"query":"x","max_results":-1e300}`, "x", math.MinInt32, ""},
		{"the longest query", `{"query":"` + strings.Repeat("x", 4096) + `"}`, strings.Repeat("x", 4096), standard, ""},

		{"no arguments", ``, "", 0, `"query" is missing or empty`},
		{"empty object", `{}`, "", 0, `"query" is missing or empty`},
		{"null for arguments", `null`, "", 0, `"query" is missing or empty`},
		{"empty query", `{"query":""}`, "", 0, `"query" is missing or empty`},
		{"blank query", `{"query":" \n\t\u00a0\u3000"}`, "", 0, `"query" is missing or empty`},
		{"null query", `{"query":null}`, "", 0, `"query" is missing or empty`},
		{"numeric query", `{"query":5}`, "", 0, `"query" is a JSON number, want a string`},
		{"list for a query", `{"query":["create","issue"]}`, "", 0, `"query" is a JSON array, want a string`},
		{"string for a number", `{"query":"x","max_results":"5"}`, "", 0, `"max_results" is a JSON string, want a number`},
		{"bool for a number", `{"query":"x","max_results":true}`, "", 0, `"max_results" is a JSON bool, want a number`},
		{"list for a number", `{"query":"x","max_results":[5]}`, "", 0, `"max_results" is a JSON array, want a number`},
		{"a number beyond all", `{"query":"x","max_results":1e999}`, "", 0, `"max_results" is `},
		{"one byte too long", `{"query":"` + strings.Repeat("x", 4097) + `"}`, "", 0, `"query" has 4097 bytes, more than the limit of 4096`},
		{"a megabyte", `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, "", 0, `"query" has 1048576 bytes, more than the limit of 4096`},
		{"a string", `"create issue"`, "", 0, "is a JSON string, want an object"},
		{"an array", `["create issue"]`, "", 0, "is a JSON array, want an object"},
		{"no JSON", `create issue`, "", 0, "line 1, column 1"},
		{"cut off", `{"query":"x"`, "", 0, "unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			query, n, err := parseSearchArguments(json.RawMessage(test.args), standard)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				// The model reads it.
				assert.Less(t, len(err.Error()), 200)
				assert.Empty(t, query)
				assert.Zero(t, n)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.query, query)
			assert.Equal(t, test.n, n)
		})
	}
}

func FuzzSearchArguments(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"query":"create issue"}`, `{"query":"x","max_results":5.7}`, `{"query":"x","max_results":-1e300}`, `{"query":"x","max_results":"5"}`,
		`{"query":" "}`, `{"query":["a"]}`, `{"max_results":5}`, "{\"query\":\"\xff\"}", `{"query":"\ud800"}`,
	} {
		f.Add([]byte(seed), 5)
	}
	f.Fuzz(func(t *testing.T, args []byte, standard int) {
		query, n, err := parseSearchArguments(args, standard)
		if err != nil {
			require.Empty(t, query)
			require.Zero(t, n)
			return
		}
		require.NotEmpty(t, strings.TrimSpace(query))
		require.LessOrEqual(t, len(query), maxQueryBytes)

		var in map[string]any
		require.NoError(t, json.Unmarshal(args, &in))
		if n != standard {
			require.LessOrEqual(t, n, math.MaxInt32)
			require.GreaterOrEqual(t, n, math.MinInt32)
			asked := false
			for key, value := range in {
				number, ok := value.(float64)
				asked = asked || ok && strings.EqualFold(key, "max_results") && (math.Abs(number-float64(n)) < 1 || math.Abs(number) > math.MaxInt32)
			}
			require.True(t, asked, "%d results, asked for by %s", n, args)
		}
	})
}
