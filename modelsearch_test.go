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
	t.Parallel()
	const standard = 7
	tests := []struct {
		name, args string
		query      string
		n          int
		err        string // in the error; query and n are then unused
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
		{"a string", `"create issue"`, "", 0, "the arguments are not a JSON object"},
		{"an array", `["create issue"]`, "", 0, "the arguments are not a JSON object"},
		{"no JSON", `create issue`, "", 0, "line 1, column 1"},
		{"cut off", `{"query":"x"`, "", 0, "unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			query, n, err := parseSearchArguments(json.RawMessage(test.args), standard, true)
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

// What the model reads beside the tools says what was found, and what to do if nothing was.
func TestMessagesOfSearches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		searchOutcome
		want string
	}{
		{"nothing", searchOutcome{keywords: true}, textNothingFound},
		{"nothing asked", searchOutcome{}, textNothingAsked},
		{"nothing yet", searchOutcome{keywords: true, connecting: []string{"mail", "of\ntwo lines"}}, textNothingFound + " Still connecting, so not searched yet: mail, of two lines."},
		{"instructions only", searchOutcome{keywords: true, instructed: true}, textOnlyInstructions + textInstructions},
		{"instructions, and no keyword", searchOutcome{instructed: true}, textOnlyInstructions + textInstructions},
		{"tools", searchOutcome{found: 1, keywords: true}, textFoundActive + textUntrusted},
		{"tools and instructions", searchOutcome{found: 1, keywords: true, instructed: true}, textFoundActive + textUntrusted + textInstructions},
		{"tools to be called by the bridge", searchOutcome{found: 1, byBridge: true}, textFoundBridge + textUntrusted},
		{"tools without room", searchOutcome{found: 1, without: []string{"a"}}, textFoundBridge + textUntrusted},
		{"some without room", searchOutcome{found: 2, without: []string{"a"}}, "Call a with mcp_tool_call; mcp_tool_describe tells what they take. The other tools are active now: call them by name." + textUntrusted},
		{"hidden by the provider", searchOutcome{found: 2, byProvider: true}, textFoundHidden + textUntrusted},
		{"hidden, some without room", searchOutcome{found: 2, byProvider: true, without: []string{"a"}}, textFoundBridge + textUntrusted},
		{"of a client", searchOutcome{found: 1, client: true}, textFoundClient + textUntrusted},
		{"some only read", searchOutcome{found: 1, client: true, readOnly: true}, textFoundClient + textUntrusted + textFoundReadOnly},
		{"one known", searchOutcome{keywords: true, callable: []string{"a"}}, "You have a already: call it by this name. " + textNothingFound},
		{"some known", searchOutcome{keywords: true, callable: []string{"a", "b"}}, "You have a, b already: call them by these names. " + textNothingFound},
		{"servers to come", searchOutcome{keywords: true, connecting: []string{"x", "y"}}, textNothingFound + " Still connecting, so not searched yet: x, y."},
		{"servers to come, and tools", searchOutcome{found: 1, connecting: []string{"x"}}, textFoundActive + textUntrusted},
	} {
		assert.Equal(t, test.want, test.message(), test.name)
	}
}

// By the bridge, the model has no active tools in its list: a search finds them, and does not say
// that they can be called at once.
func TestBridgeFindsActiveTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 3)}})
	for d, already := range map[Disclosure]string{ByBridge: "", ByActivation: "You have mcp_a__tool_001 already: call it by this name. "} {
		s := m.NewSession(&SessionOptions{Disclosure: d})
		require.True(t, s.ActivateToolIfDeferred("mcp_a__tool_001"))
		r, err := s.Call(t.Context(), SearchToolName, `{"query":"select:tool_001,tool_002"}`)
		require.NoError(t, err)
		var answer searchAnswer
		require.NoError(t, json.Unmarshal([]byte(resultText(t, r)), &answer))
		found, how := []string{}, textFoundActive
		if d == ByBridge {
			found, how = append(found, "mcp_a__tool_001"), textFoundBridge
		}
		var names []string
		for _, f := range answer.Tools {
			names = append(names, f.Name)
		}
		assert.Equal(t, append(found, "mcp_a__tool_002"), names, d)
		assert.Equal(t, already+how+textUntrusted, answer.Message, d)
		s.Close()
	}
}
