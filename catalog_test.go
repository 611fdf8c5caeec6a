package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A name is a catalog's if it has the tool, or has given the name's prefix to another server,
// which keeps it for good.
func TestCatalogOverrides(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddTools("git", echoTool("commit", "Commits")))
	c := m.cur.Load()
	assert.True(t, c.overrides("mcp_git__commit", "git"), "it has the tool")
	assert.False(t, c.overrides("mcp_git__push", "git"), "it has no such tool")
	assert.True(t, c.overrides("mcp_git__push", "another"), "the prefix is that of git")
	assert.False(t, c.overrides("mcp_another__push", "another"))

	require.True(t, m.RemoveServer("git"))
	c = m.cur.Load()
	assert.False(t, c.overrides("mcp_git__commit", "git"))
	assert.True(t, c.overrides("mcp_git__commit", "another"), "the prefix is still that of git")
}
