package cause

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// What people read begins with the cause, and has no noise.
func TestExplain(t *testing.T) {
	t.Parallel()
	ended := func(words string) error { return fmt.Errorf("exit status 1; its last words: %q", words) }
	for _, test := range []struct {
		err  error
		want string
	}{
		{ended("npm error code E404 npm error 404 Not Found - GET https://registry.example/@x%2fserver-calender npm error 404 npm error 404 The requested resource '@x/server-calender@*' could not be found or you do not have permission to access it. npm error 404 npm error 404 Note that you can also install from a npm error 404 tarball, folder, http url, or git url. npm error A complete log of this run can be found in: /home/user/.npm/_logs/2026-11-28T18_43_49_630Z-debug-0.log"),
			`npm: package not found (404): @x/server-calender (exit status 1; its last words: "npm error code E404 Not Found - GET https://registry.example/@x%2fserver-calender The requested resource '@x/server-calender@*' could not be found or you do not have permission to access it. ")`},
		{ended("npm error code EOTHER npm error what npm error A complete log of this run can be found in: /x.log"),
			`npm: it failed (EOTHER) (exit status 1; its last words: "npm error code EOTHER what A complete log of this run can be found in: /x.log")`},
		{errors.New("initialize: transport error: request failed with status 501: <!DOCTYPE HTML>\n<html>\n<p>Error</p>\n</html>\n"),
			"its address answers with status 501 (request failed with status 501)"},
		{fmt.Errorf("initialize: transport error: %w by server %q", ErrToken, "crm"), `the token in its header was refused by server "crm"`},
		{errors.New("initialize: transport error: the connection failed: dial tcp 127.0.0.1:1: connect: connection refused"), "dial tcp 127.0.0.1:1: connect: connection refused"},
		{errors.New("the answer: <html><body>"), "the answer"},
		{errors.New("no answer within 20s"), "no answer within 20s"},
		{ended("Error: no"), `exit status 1; its last words: "Error: no"`},
	} {
		is := Explain(test.err)
		assert.EqualError(t, is, test.want)
		assert.Equal(t, Of(test.err), Of(is), "the cause is the same")
		assert.Equal(t, Of(test.err), Of(fmt.Errorf("mcphybrid: %w", is)), "also within")
		assert.ErrorIs(t, is, test.err)
		assert.Equal(t, is, Explain(is))
	}
	assert.NoError(t, Explain(nil))
}

// Of megabytes that a server wrote, both ends are searched.
func TestExplainLong(t *testing.T) {
	t.Parallel()
	page := "<html>" + strings.Repeat("<p>ü</p>", 1<<17) + "</html>"
	assert.EqualError(t, Explain(errors.New("request failed with status 500: "+page+"; and over the older transport: EOF")),
		"its address answers with status 500 (request failed with status 500; and over the older transport: EOF)")
	for n := range 4 {
		is := Explain(errors.New("initialize: " + strings.Repeat("x", n) + strings.Repeat("ü", maxSaid)))
		assert.LessOrEqual(t, len(is.Error()), maxSaid+len("…"))
		assert.True(t, utf8.ValidString(is.Error()))
	}
	whole := "initialize: " + strings.Repeat("x", maxSaid-len("initialize: "))
	assert.NotContains(t, Explain(errors.New(whole)).Error(), "…")
	assert.Contains(t, Explain(errors.New(whole+"x")).Error(), "…")
}

// An error that is told as it is stays the same value.
func TestExplainLeavesPlainErrors(t *testing.T) {
	t.Parallel()
	err := errors.New("no disk")
	assert.Same(t, err, Explain(err))
	assert.NoError(t, Explain(nil))
}
