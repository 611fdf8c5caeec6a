package mcphybrid

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients write _ for characters that providers refuse, also in what they switch off.
func TestSwitchedOffToolIsNotOffered(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{
		"opencode.json": `{"tools": {"jira_issue_delete": false}, "mcp": {"jira": {"type": "local", "command": ["x"]}}}`,
		".claude.json":  `{"permissions": {"deny": ["mcp__jira__issue_delete"]}, "mcpServers": {"jira": {"command": "x"}}}`,
		"crush.json":    `{"options": {"disabled_tools": ["mcp_jira_issue_delete"]}, "mcp": {"jira": {"command": "x"}}}`,
		"mcp.json":      `{"mcpServers": {"jira": {"command": "x", "tools": {"deny": ["jira/issue*"]}}}}`,
	} {
		path := filepath.Join(t.TempDir(), file)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		cfg, err := LoadConfig(path)
		require.NoError(t, err, file)
		m := NewManager(nil)
		defer m.Close()
		jira := serving("jira", echoTool("issue.delete", ""), echoTool("issue.read", ""))
		jira.Tools = cfg.Servers[0].Tools
		require.NoError(t, m.AddServer(t.Context(), jira))
		for _, tool := range m.InlineTools() {
			assert.NotEqual(t, "issue.delete", tool.OriginalName(), file)
		}
	}
}

// What a host writes that no program can be given fails at Start, before anything is run.
func TestNULBytes(t *testing.T) {
	t.Parallel()
	m := NewManager(&Options{Servers: []ServerConfig{{Name: "s", Command: "\x00hunter2", Args: []string{"hunter2\x00"}, Dir: "hunter2\x00"}}})
	defer m.Close()
	err := m.Start(t.Context())
	assert.EqualError(t, err, `mcphybrid: server "s": the command has a NUL byte, which no program can be given`)
	assert.NotContains(t, fmt.Sprint(err, m.Servers()[0].Err), "hunter2")
	assert.NoError(t, check(m))
}
