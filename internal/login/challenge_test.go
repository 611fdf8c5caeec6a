package login

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only a refusal for want of scopes names what is lacking.
func TestLacking(t *testing.T) {
	for challenge, want := range map[string][]string{
		`Bearer error="insufficient_scope", scope="a b"`:              {"a", "b"},
		`Basic realm="x", Bearer scope="a", error=insufficient_scope`: {"a"},
		`bearer ERROR="INSUFFICIENT_SCOPE",Scope="a"`:                 {"a"},
		`Bearer error="insufficient_scope"`:                           nil,
		`Bearer error="insufficient_scope", scope=""`:                 nil,
		`Bearer error="invalid_token", scope="a"`:                     nil,
		`Bearer scope="a"`: nil,
		// Values may be tokens, and a header may have several challenges.
		`Bearer scope=a, error=insufficient_scope`:                                   {"a"},
		`Bearer error=insufficient_scope,scope=mcp:read`:                             {"mcp:read"},
		`Bearer error = "insufficient_scope" scope = a`:                              {"a"},
		`Negotiate YWJj==, Bearer error="insufficient_scope", scope="a"`:             {"a"},
		`Negotiate, Bearer error="insufficient_scope", scope="a", Basic realm="x"`:   {"a"},
		`Bearer error="invalid_token", Bearer error="insufficient_scope", scope=b`:   {"b"},
		`Bearer resource_metadata=https://x/?a=b, error=insufficient_scope scope=a`:  {"a"},
		`Bearer scope="a \"b", error="insufficient_scope"`:                           nil,
		`Bearer error="insufficient_scope", Other scope="a"`:                         nil,
		`DPoP error="insufficient_scope", scope="a"`:                                 nil,
		`Bearer realm=", scope=a, error=insufficient_scope"`:                         nil,
		`Bearer realm="\" scope=\"a\"", error="insufficient_scope"`:                  nil,
		`scope=a, error=insufficient_scope`:                                          nil,
		`Bearer error="insufficient_scope", scope="a`:                                nil,
		`Bearer error="insufficient_scopes", scope="a"`:                              nil,
		`Bearer scope="a", error="insufficient_scope" ` + strings.Repeat("x", 10000): {"a"},
		strings.Repeat("x", 10000) + ` error="insufficient_scope", scope="a"`:        nil,
	} {
		assert.Equal(t, want, Lacking([]string{"Basic", challenge}), "%.80s", challenge)
	}
}

// The scopes to ask for are those of the first Bearer challenge that has any.
func TestScopesIn(t *testing.T) {
	assert.Equal(t, []string{"a"}, scopesIn([]string{`Basic scope="x"`, `Digest realm="y", Bearer realm="z"`, `Bearer scope=a`, `Bearer scope="b"`}))
	assert.Nil(t, scopesIn([]string{`Bearer scope="", error=x`}))
	assert.Nil(t, scopesIn(slices.Repeat([]string{"Bearer"}, 8+1)))
}

// No header does harm, and what RFC 9110 allows is read as it was written.
func FuzzChallenges(f *testing.F) {
	f.Add(`Negotiate YWJj==, Bearer realm="x", scope=a`, "Bearer", "scope", `a "b\`)
	f.Add(`,,Bearer scope = "a`, "Basic", "realm", "")
	f.Fuzz(func(t *testing.T, header, scheme, name, value string) {
		for _, c := range challengesIn(header) {
			require.NotEmpty(t, c.scheme)
			for _, s := range c.scopes() {
				require.False(t, s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }))
			}
		}
		for _, token := range []string{scheme, name} {
			if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
				return
			}
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		written := fmt.Sprintf(`First, %s %s=%s, x=y, Last abc=, Last %[2]s=z`, scheme, name, quoted)
		params := map[string]string{strings.ToLower(name): value}
		if _, ok := params["x"]; !ok {
			params["x"] = "y"
		}
		all := challengesIn(written)
		require.Len(t, all, 4, written)
		require.Equal(t, []string{"First", scheme, "Last", "Last"}, []string{all[0].scheme, all[1].scheme, all[2].scheme, all[3].scheme}, written)
		require.True(t, maps.Equal(params, all[1].params), written)
	})
}
