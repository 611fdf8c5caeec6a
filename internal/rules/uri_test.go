package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The case of a scheme and a host means nothing, in a pattern as in a URI. That of all
// else does.
func TestPatternsOfURIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, uri string
		matches      bool
	}{
		{"Git/repos://Ada/*", "repos://Ada/x", true},
		{"Git/repos://Ada/*", "repos://ada/x", true},
		{"Git/repos://ada/*", "REPOS://ADA/x", true},
		{"*/REPOS://A?a/*", "repos://ada/x", true},
		{"G*t/repos://Ada*", "repos://ada", true},
		{"Git/repos://Ada/X", "repos://ada/x", false},
		{"Git/repos://Ada/X?Y#Z", "repos://ada/X?Y#Z", true},
		{"Git/repos://Ada?Q", "repos://Ada?Q", true},
		{"Git/repos://ada?q", "repos://ada?Q", false},
		{"Git/mailto:*", "MAILTO:Ada", true},
		{"Git/MAILTO:Ada", "mailto:Ada", true},
		{"Git/MAILTO:Ada", "mailto:ada", false},
		{"git/repos://ada/*", "repos://ada/x", false},
		{"Git/Dir/File", "dir/file", false},
		{"Git/dir/*", "Dir/a:b", false},
		{"Git/*Ada*", "repos://Ada/x", true},
		{"Git/*Ada*", "repos://ada/x", true},
		{"Git/*Ada*", "repos://bob/ada", false},
		{"Git/*Ada/x", "REPOS://aDa/x", true},
		{"Git/repos?//Ada/*", "repos://ada/x", true},
		{"Git/repos://Ü*", "repos://ü/x", true},
		{"Git/repos://Ü*", "repos://ä/x", false},
	} {
		about := Subject{Name: "mcp_git__x", Server: "Git", Own: "x", URI: test.uri}
		assert.Equal(t, test.matches, about.Matches(test.pattern), "%s %s", test.pattern, test.uri)
		set, err := NewSet([]Rule{{Name: "r", Patterns: []string{test.pattern}, Action: Include}})
		require.NoError(t, err)
		assert.Equal(t, test.matches, len(set.Matches(about)) == 1, "rule %s %s", test.pattern, test.uri)
	}
	within := Subject{Server: "Git", Own: "x", URI: "repos://ada/x", Within: true}
	assert.True(t, within.Matches("repos://Ada/*"))
	named := Subject{Server: "Git", Own: "repos://ada/x", Name: "mcp_git__x"}
	assert.False(t, named.Matches("Git/repos://Ada/*"), "a name is no URI")
	colon := Subject{Server: "npm:Web", Own: "x", URI: "https://api.example.com/x"}
	for pattern, matches := range map[string]bool{"npm:Web/https://API.example.com/*": true, "npm:web/https://api.example.com/*": false} {
		assert.Equal(t, matches, colon.Matches(pattern), pattern)
		set, err := NewSet([]Rule{{Name: "r", Patterns: []string{pattern}, Action: Include}})
		require.NoError(t, err)
		assert.Equal(t, matches, len(set.Matches(colon)) == 1, pattern)
	}
}

// What is within a tool is meant by its own name and its URI, and by no other.
func TestPatternsOfWhatIsWithin(t *testing.T) {
	t.Parallel()
	within := Subject{Server: "git", Own: "x", URI: "repos://ada/x", Within: true}
	for pattern, want := range map[string]bool{"x": true, "repos://ada/*": true, "REPOS://ada/*": true, "y": false, "repos://bob/*": false} {
		assert.Equal(t, want, within.Matches(pattern), pattern)
	}
}

// The case of a scheme and a host means nothing, and that of a path does, also where there is no host.
func TestCaseless(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]int{
		"": 0, "dir": 0, "Dir/a:b": 0, "?a:b": 0, "#a:b": 0, "a:": 2, "mailto:Ada": 7, "file:///A": 7, "file:/A": 5, "git://Host": 10, "git://Host/A": 10, "git://Host?A": 10, "git://Host#A": 10, "git://": 6, ":a": 1,
	} {
		assert.Equal(t, want, Caseless(uri), uri)
	}
}
