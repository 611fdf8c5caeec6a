package tokens

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is read of a file of tokens, and why it is refused: in words that tell no token.
func TestFilesOfTokens(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is read of files of tokens, and why they are refused.\n\n")
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"name":"n%d","token":"hunter%d"}`, i, i))
		}
		return `{"tokens":[` + strings.Join(list, ",") + `]}`
	}
	one := func(members string) string { return `{"tokens":[{"name":"a","token":"hunter2"` + members + `}]}` }
	for _, text := range []string{
		"", " \n", "hunter2", " hunter2\n", "hunter 2", "hunter\x7f", "hunter~", "hunter!", "hünter", "hunter2\nhunter3", "\ufeffhunter2", `[`, `["hunter2"]`, `{`, `{"tokens":`, `{"tokens":[}`, "\n\n{\"tokens\":[\n hunter2]}\n", `{"tokens":[]}`, `{}`, `{"tokens":null}`, `{"tokens":{}}`, `{"tokens":"hunter2"}`, `{"tokens":[5]}`, `{"tokens":[null]}`,
		one(""), one("") + " ", one("") + "x", one(`,"operator":true`), one(`,"operator":null`), one(`,"operator":"hunter2"`), one(`,"allow":[]`), one(`,"deny":[]`), one(`,"allow":["a/*"],"deny":["b"]`), one(`,"allow":"hunter2"`), one(`,"hunter2":1`), one(`,"Token":"hunter3"`), one(`,"token":"hunter3"`), one(`,"name":"b"`),
		`{"tokens":[{"name":"a"}]}`, `{"tokens":[{"token":"hunter2"}]}`, `{"tokens":[{"name":"","token":"hunter2"}]}`, `{"tokens":[{"name":"a","token":""}]}`, `{"tokens":[{"name":5,"token":"hunter2"}]}`, `{"tokens":[{"name":"a","token":5}]}`, `{"tokens":[{"name":"a","token":{"hunter2":1}}]}`,
		`{"tokens":[{"name":"a","token":"hunter2"},{"name":"a","token":"hunter3"}]}`, `{"tokens":[{"name":"a","token":"hunter2"},{"name":"b","token":"hunter2"}]}`, `{"tokens":[{"name":"a","token":"hunter2"}],"tokens":[]}`, `{"tokens":[{"name":"a\u202e","token":"hunter2"}]}`, `{"tokens":[{"name":" a","token":"hunter2"}]}`,
	} {
		list, err := parseTokens([]byte(text))
		fmt.Fprintf(&b, "%q\n", text)
		for _, h := range list {
			fmt.Fprintf(&b, "    %q, operator %v, %+v\n", h.Name, h.Operator, h.Access)
		}
		if err != nil {
			fmt.Fprintf(&b, "    refused: %v\n", err)
			assert.NotContains(t, err.Error(), "hunter")
		}
	}
	for _, n := range []int{1000, 1001} {
		list, err := parseTokens([]byte(many(n)))
		fmt.Fprintf(&b, "%d tokens: %d, %v\n", n, len(list), err)
	}
	for _, pattern := range []string{"", " a", "a ", "a", "a[b]", "a]", `a\b`, "/", "a/", "/a", "a/*", "*/", "?/", "/*", "/?", "\u200ba", "a\u200b"} {
		fmt.Fprintf(&b, "the pattern %q: %v\n", pattern, checkPatterns(nil, []string{pattern}))
	}
	golden.Compare(t, "tokens.golden", b.String())
}

// Without tokens nobody needs one, and what has no token is current; a failed reading changes nothing.
func TestWithoutTokens(t *testing.T) {
	t.Setenv(Variable, "")
	none, err := Read("")
	require.NoError(t, err)
	assert.False(t, none.AreNeeded())
	assert.True(t, none.IsCurrent(nil))
	assert.False(t, none.IsCurrent(new(Holder)))
	assert.Nil(t, none.Holder(""))
	_, err = Read(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "-token-file: ")
	path := commandtest.WriteFile(t, "tokens", "hunter2")
	some, err := Read(path)
	require.NoError(t, err)
	assert.True(t, some.AreNeeded())
	assert.False(t, some.IsCurrent(nil), "a request without a token")
	h := some.Holder("hunter2")
	require.NotNil(t, h)
	assert.Error(t, some.Read(filepath.Join(t.TempDir(), "none")))
	assert.True(t, some.IsCurrent(h))
	require.NoError(t, some.Read(path))
	assert.Same(t, h, some.Holder("hunter2"), "who has the same token is the same")

	of, release := With(t.Context(), h)
	assert.Same(t, h, HolderOf(of))
	release()
	assert.ErrorIs(t, of.Err(), context.Canceled)
	of, release = With(t.Context(), nil)
	release()
	assert.NoError(t, of.Err())
	assert.Nil(t, HolderOf(of))
	for header, want := range map[string]string{"": "", "Bearer x": "x", "bearer  x": "x", "Basic x": "", "Bearer": "", "Bearer x y": "x y", "Bearerx": ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		assert.Equal(t, want, Bearer(r), header)
	}
}
