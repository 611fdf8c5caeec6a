package mcphybrid

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAccessClone(t *testing.T) {
	t.Parallel()
	a := Access{Allow: []string{"read"}, Deny: []string{"write"}}
	c := a.Clone()
	a.Allow[0], a.Deny[0] = "changed", "changed"
	assert.Equal(t, Access{Allow: []string{"read"}, Deny: []string{"write"}}, c)
}

// A host that changes its slices later does not change rights.
func TestAccessOfASessionIsCopied(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 2)}})
	deny := []string{"mcp_a__tool_000"}
	s := m.NewSession(&SessionOptions{Access: Access{Deny: deny}})
	deny[0] = "nothing"
	m.NewSession(nil)
	_, err := s.Call(t.Context(), "mcp_a__tool_000", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
}

// If two servers want the same prefix, an access list that names one by its registered
// names leaves out the other.
func TestAccessAfterACollision(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Access: Access{Allow: []string{"mcp_my_server_????????__a"}}, Servers: []ServerConfig{
		serving("my-server", echoTool("a", "first")), serving("my_server", echoTool("a", "renamed")),
	}})
	require.Len(t, m.InlineTools(), 1)
	assert.Equal(t, "renamed", m.InlineTools()[0].Description())
}

// What rules refuse, access lists report, even before a server has listed its tools.
func TestAccessOfWhatIsNoPattern(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Access: Access{Deny: []string{"[dw]*", `issue\*`, "a[1]", "later"}}, Servers: []ServerConfig{{Name: "late", Command: "/nowhere"}}})
	defer m.Close()
	cfg := serving("jira", echoTool("a[1]", ""), echoTool("delete", ""))
	cfg.Tools = Access{Deny: []string{"[x]", "a[?]"}}
	require.NoError(t, m.AddServer(t.Context(), cfg))
	var texts []string
	for _, err := range m.Problems() {
		texts = append(texts, err.Error())
	}
	assert.Subset(t, texts, []string{
		`mcphybrid: server "jira": tools.Deny: "[x]" has a '[', which is no wildcard: * and ? are; it matches no tool`,
		`mcphybrid: Options.Access.Deny: "[dw]*" has a '[', which is no wildcard: * and ? are; it matches no tool`,
		`mcphybrid: Options.Access.Deny: "issue\\*" has a '\\', which is no wildcard: * and ? are; it matches no tool`,
	})
	assert.NotContains(t, strings.Join(texts, "\n"), `"a[?]"`, "it matches a tool")
	s := m.NewSession(&SessionOptions{Access: Access{Allow: []string{"[a-z]*"}}})
	defer s.Close()
	assert.ErrorContains(t, errors.Join(s.Problems()...), `Access.Allow: "[a-z]*" has a '['`)
}

// The lists of one server take entries in all forms, and each entry is about the own
// name too: other clients' lists have nothing else.
func TestToolsOfAServerInAllForms(t *testing.T) {
	t.Parallel()
	offered := func(tools Access) (names []string) {
		cfg := serving("jira", echoTool("issue.delete", ""), echoTool("other/issue", ""), echoTool("mcp_x", ""), echoTool("keep", ""))
		cfg.Tools = tools
		m := NewManager(nil)
		defer m.Close()
		require.NoError(t, m.AddServer(t.Context(), cfg))
		for _, tool := range m.InlineTools() {
			names = append(names, tool.OriginalName())
		}
		assert.Empty(t, m.Problems(), "%v", tools)
		return names
	}
	for entry, name := range map[string]string{
		"issue.delete": "issue.delete", "issue?delete": "issue.delete", "jira/issue*": "issue.delete", "mcp_jira__issue_delete_*": "issue.delete",
		"mcp_jira__issue_delete_f618ca80": "issue.delete", "*_issue_delete_f618ca80": "issue.delete", "jira/other/issue": "other/issue",
		"other/issue": "other/issue", "other/*": "other/issue", "mcp_x": "mcp_x", "mcp_?": "mcp_x",
	} {
		assert.Equal(t, []string{name}, offered(Access{Allow: []string{entry}}), entry)
		left := offered(Access{Deny: []string{entry}})
		assert.Len(t, left, 3, entry)
		assert.NotContains(t, left, name, entry)
	}
}

// Without patterns there is nothing to look for among the tools.
func TestProblemsWithoutPatterns(t *testing.T) {
	allocs := func(tools int) float64 {
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", tools)}})
		s := m.NewSession(nil)
		least := math.Inf(1)
		for range 5 { // others may be at work meanwhile
			least = min(least, testing.AllocsPerRun(10, func() {
				assert.Empty(t, m.Problems())
				assert.Empty(t, s.Problems())
			}))
		}
		return least
	}
	assert.Equal(t, allocs(1), allocs(1000))
}
