package mcphybrid

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// providerName is what model providers take as a tool's name.
var providerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func TestSpecA3RegisteredName(t *testing.T) {
	// The eight characters at the end of an unsafe name are the first of the
	// SHA-256 of server, NUL, tool. They are pinned: conversations that were
	// stored by a host hold them.
	tests := []struct {
		name, server, prefix, tool string
		want                       string
	}{
		{"prefix from the server's name", "github", "", "create_issue", "mcp_github__create_issue"},
		{"- becomes _ in a derived prefix", "my-other-server", "", "run", "mcp_my_other_server__run"},
		{"- stays in the tool's name", "my-server", "", "run-it", "mcp_my_server__run-it"},
		{"a server that is named mcp_ is no given prefix", "mcp_x", "", "run", "mcp_mcp_x__run"},
		{"given prefix gets mcp_", "my-server", "ops", "run", "mcp_ops__run"},
		{"given prefix that has mcp_", "my-server", "mcp_ops", "run", "mcp_ops__run"},
		{"given prefix that only begins like it", "s", "mcpops", "run", "mcp_mcpops__run"},
		{"given prefix keeps its -", "s", "my-ops", "run", "mcp_my-ops__run"},
		{"case is kept", "GitHub", "", "createIssue", "mcp_GitHub__createIssue"},
		{"64 characters are kept", "s", "", strings.Repeat("x", 57), "mcp_s__" + strings.Repeat("x", 57)},

		{"65 characters are cut", "s", "", strings.Repeat("x", 58), "mcp_s__" + strings.Repeat("x", 48) + "_4160b76e"},
		{"long name", "s", "", strings.Repeat("x", 80), "mcp_s__" + strings.Repeat("x", 48) + "_cbf4205d"},
		{"slash", "my-server", "", "a/b", "mcp_my_server__a_b_44a208c8"},
		{"space in the tool's name", "github", "", "create issue", "mcp_github__create_issue_32639782"},
		{"Han: an underscore for each character", "文件", "", "搜索", "mcp_" + "__" + "__" + "__" + "_ff27b5d5"},
		{"no server", "", "", "tool", "mcp___tool"},
		{"the hash is of the server, not the prefix", "github", "x", "create issue", "mcp_x__create_issue_32639782"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := registeredName(test.server, test.prefix, test.tool)
			assert.Equal(t, test.want, got)
			assert.Regexp(t, providerName, got)
		})
	}
}

func TestSpecA3UnsafeCharacters(t *testing.T) {
	for _, tool := range []string{"a b", "a.b", "a:b", "a/b", "a\nb", "a\x00b", "a\"b", "a\u00e9b", "a\u0430b", "a文b", "a🚀b", "a\xffb", "a\u200bb", "a\u202eb"} {
		got := registeredName("server", "", tool)
		assert.Regexp(t, `^mcp_server__a_b_[0-9a-f]{8}$`, got, "tool %q", tool)
	}
	for _, prefix := range []string{"o p", "o/p", "o文p", "o\np"} {
		got := registeredName("server", prefix, "run")
		assert.Regexp(t, `^mcp_o_p__run_[0-9a-f]{8}$`, got, "prefix %q", prefix)
	}
}

// Each of a thousand lengths is safe, and two tools that differ only behind
// the cut have different names.
func TestSpecA3LongNames(t *testing.T) {
	for n := range 1000 {
		long := strings.Repeat("x", n)
		a, b := registeredName("server", "", long+"a"), registeredName("server", "", long+"b")
		require.Regexp(t, providerName, a)
		require.NotEqual(t, a, b)
		require.Regexp(t, providerName, registeredName(long, "", "tool"))
		require.Regexp(t, providerName, registeredName("server", long, "tool"))
	}
}

func TestSpecA3DistinctNames(t *testing.T) {
	t.Parallel()
	const pairs = 100_000
	owners := make(map[string]string, pairs)
	for i := range pairs {
		// 250 tools of each of 400 servers; every fourth tool has a name that is
		// too long and differs from its neighbours only behind the cut.
		server, tool := fmt.Sprintf("server %d", i/250), fmt.Sprintf("get/item.%d", i%250)
		if i%4 == 0 {
			tool = strings.Repeat("long_", 12) + fmt.Sprint(i%250)
		}
		name := registeredName(server, "", tool)
		owner := server + "\x00" + tool
		if other, ok := owners[name]; ok {
			require.FailNow(t, "not distinct", "%q is the name of %q and of %q", name, other, owner)
		}
		owners[name] = owner
	}
	assert.Len(t, owners, pairs)
}

func TestSpecA3SuffixedNameOtherTries(t *testing.T) {
	seen := make(map[string]bool)
	for try := range 1000 {
		name := suffixedName("mcp_a_b__run", "a-b", "run", try)
		require.Regexp(t, `^mcp_a_b__run_[0-9a-f]{8}$`, name)
		require.False(t, seen[name], "try %d: %s", try, name)
		seen[name] = true
		require.Equal(t, name, suffixedName("mcp_a_b__run", "a-b", "run", try), "try %d", try)
	}
	assert.Len(t, seen, 1000)

	assert.Equal(t, "mcp_github__create_issue_32639782", suffixedName("mcp_github__create issue", "github", "create issue", 0))
	assert.Equal(t, "mcp_github__create_issue_e40d22f0", suffixedName("mcp_github__create issue", "github", "create issue", 1))
}

func FuzzRegisteredName(f *testing.F) {
	f.Add("github", "", "create_issue")
	f.Add("my-server", "ops", "a/b")
	f.Add("文件", "mcp_文", "搜索")
	f.Add("", "", "")
	f.Add("s", "mcp_", strings.Repeat("x", 100))
	f.Add("a\xff", "\x00", "\n")
	f.Fuzz(func(t *testing.T, server, prefix, tool string) {
		name := registeredName(server, prefix, tool)
		require.Regexp(t, providerName, name)
		require.True(t, strings.HasPrefix(name, "mcp_"), name)
		require.Equal(t, name, registeredName(server, prefix, tool))
		for try := range 3 {
			other := suffixedName(name, server, tool, try)
			require.Regexp(t, providerName, other)
			require.True(t, strings.HasPrefix(other, "mcp_"), other)
		}
		require.NotEqual(t, suffixedName(name, server, tool, 0), suffixedName(name, server, tool, 1))
	})
}
