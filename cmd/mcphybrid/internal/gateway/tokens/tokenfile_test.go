package tokens

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseTokens(t *testing.T) {
	t.Parallel()
	list, err := parseTokens([]byte(" one-token\n"))
	require.NoError(t, err)
	assert.Len(t, list, 1)
	assert.True(t, list[0].Operator)
	list, err = parseTokens([]byte(commandtest.SeveralTokens))
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Equal(t, mcphybrid.Access{Allow: []string{"kitchen/a_*"}}, list[0].Access)
	assert.False(t, list[1].Operator)
	many := strings.Repeat(`{"name":"a","token":"hunter2"},`, 1000+1)
	for text, want := range map[string]string{
		"":                      "empty",
		"hunter2\nhunter3":      "several are in a JSON object",
		"hunter2é":              "printable ASCII",
		`{"tokens": [`:          "not a whole JSON",
		`{"tokens": "hunter2"}`: `"tokens" is a JSON string, want a list`,
		`{"tokens": []}`:        "0 tokens",
		`{"tokens": [` + strings.TrimSuffix(many, ",") + `]}`:                                "1001 tokens",
		`{"tokens": [{"name": "a", "token": "hunter2"}]} hunter3`:                            "more after",
		`{"tokens": [{"token": "hunter2"}]}`:                                                 "token 1 needs a name",
		`{"tokens": [{"name": "a\u001b[1m", "token": "hunter2"}]}`:                           "token 1 needs a name",
		`{"tokens": [{"name": "a"}]}`:                                                        `token of "a": the token is missing`,
		`{"tokens": [{"name": "a", "token": "hunter2 "}]}`:                                   `token of "a"`,
		`{"tokens": [{"name": "a", "token": "hunter2", "denny": ["x"]}]}`:                    "known are name, token, allow, deny",
		`{"tokens": [{"name": "a", "token": "hunter2", "hunter2": 1}]}`:                      "known are name, token, allow, deny",
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["x[yz]"]}]}`:                 "matches nothing",
		`{"tokens": [{"name": "a", "token": "hunter2", "allow": []}]}`:                       `"allow" is empty`,
		`{"tokens": [{"name": "a", "token": "hunter2"}, {"name": "a", "token": "hunter3"}]}`: `several tokens have the name "a"`,
		`{"tokens": [{"name": "a", "token": "hunter2"}, {"name": "b", "token": "hunter2"}]}`: `"a" and "b" have the same token`,
		`{"tokens": [{"name": "a", "token": 5551234}]}`:                                      `token 1: "token" is a JSON number, want a string`,
		`{"tokens": [{"name": "a", "token": "hunter2", "allow": null}]}`:                     `"allow" is null`,
		`{"tokens": [{"name": "a", "token": "hunter2", "Deny": null}]}`:                      `"deny" is null`,
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["x"], "deny": ["y"]}]}`:      `token 1: it has "deny" more than once`,
		`{"tokens": [{"name": "a", "token": "hunter2", "allow": ["x"], "Allow": ["*"]}]}`:    `token 1: it has "allow" more than once`,
		`{"tokens": [{"name": "a", "token": "hunter2", "to\u212aen": "hunter3"}]}`:           `token 1: it has "token" more than once`,
		`{"tokens": [{"name": "a", "token": "hunter2"}], "Tokens": []}`:                      `it has "tokens" more than once`,
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["github/"]}]}`:               `the pattern "github/" matches nothing`,
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["/x"]}]}`:                    `the pattern "/x" matches nothing`,
		`["hunter2"]`:               "must be one token alone, or a JSON object",
		`"hunter2"`:                 "must be one token alone, or a JSON object",
		"\ufeff{\"tokens\": []}":    "printable ASCII",
		`{"tokens": null}`:          `"tokens" is null`,
		`{"tokens": [null]}`:        "token 1 needs a name",
		`{"tokens": [["hunter2"]]}`: "token 1: it is a JSON array, want an object",
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": [" x/*"]}]}`:      `the pattern " x/*" begins or ends with a space`,
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["x/*\t"]}]}`:     "begins or ends with a space",
		`{"tokens": [{"name": "a", "token": "hunter2", "deny": ["\ufeffx/*"]}]}`: `the pattern "?x/*" begins with an invisible character`,
		`{"tokens": [{"name": "a", "token": "hunter2", "operator": "hunter2"}]}`: `"operator" is a JSON string, want true or false`,
	} {
		_, err := parseTokens([]byte(text))
		if assert.ErrorContains(t, err, want, "%.60s", text) {
			assert.NotContains(t, err.Error(), "hunter", "%.60s", text)
			assert.NotContains(t, err.Error(), "555123", "%.60s", text)
		}
	}
}

// A token file that becomes good without other content, as by a new owner, is used.
func TestTokensOfANewOwner(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	file := commandtest.WriteFile(t, "secret", "one")
	list, err := Read(file)
	require.NoError(t, err)
	f := files.Follow(func() error { return list.Read(file) }, file)
	commandtest.ReplaceFile(t, file, "two")
	require.NoError(t, os.Chmod(file, 0o640))
	f.Check(slog.New(slog.DiscardHandler))
	assert.NotNil(t, list.Holder("one"), "ours, and a group may read it")
	require.NoError(t, os.Chown(file, 1, -1))
	f.Check(slog.New(slog.DiscardHandler))
	assert.Nil(t, list.Holder("one"))
	assert.NotNil(t, list.Holder("two"))
}

func FuzzParseTokens(f *testing.F) {
	f.Add([]byte(commandtest.SeveralTokens))
	f.Add([]byte("token"))
	f.Add([]byte(`{"tokens":[{"name":"a","token":"b","allow":["*"]},{"Name":"c","TOKEN":"d"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseTokens(data)
		if err != nil {
			if len(list) > 0 {
				t.Error("there are tokens in spite of an error")
			}
			return
		}
		if len(list) == 0 || len(list) > 1000 {
			t.Errorf("%d tokens", len(list))
		}
		table := new(Tokens)
		table.holders.Store(&list)
		if table.Holder("") != nil {
			t.Error("the empty token is known")
		}
	})
}
