package mcphybrid

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients write _ for characters that providers refuse, also in what they switch off.
// Permissions say what the model may do, and switch nothing off: a note tells of them.
func TestSwitchedOffToolIsNotOffered(t *testing.T) {
	t.Parallel()
	const permissions = ".claude/.claude.json"
	for file, text := range map[string]string{
		"opencode.json":         `{"tools": {"jira_issue_delete": false}, "mcp": {"jira": {"type": "local", "command": ["x"]}}}`,
		permissions:             `{"permissions": {"deny": ["mcp__jira__issue_delete"]}, "mcpServers": {"jira": {"command": "x"}}}`,
		".claude.json":          `{"disallowedTools": ["mcp__jira__issue_delete"], "mcpServers": {"jira": {"command": "x"}}}`,
		".gemini/settings.json": `{"tools": {"exclude": ["mcp_jira_issue_delete"]}, "mcpServers": {"jira": {"command": "x"}}}`,
		"amp/settings.json":     `{"amp.tools.disable": ["mcp__jira__issue_delete"], "amp.mcpServers": {"jira": {"command": "x"}}}`,
		"own.json":              `{"mcpServers": {"jira": {"command": "x", "disabledTools": ["issue.delete"]}}}`,
		"crush.json":            `{"options": {"disabled_tools": ["mcp_jira_issue_delete"]}, "mcp": {"jira": {"command": "x"}}}`,
		"mcp.json":              `{"mcpServers": {"jira": {"command": "x", "tools": {"deny": ["jira/issue*"]}}}}`,
	} {
		path := filepath.Join(t.TempDir(), file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		cfg, err := LoadConfig(path)
		require.NoError(t, err, file)
		m := NewManager(nil)
		defer m.Close()
		jira := serving("jira", echoTool("issue.delete", ""), echoTool("issue.read", ""))
		jira.Tools = cfg.Servers[0].Tools
		require.NoError(t, m.AddServer(t.Context(), jira))
		offered := slices.ContainsFunc(m.InlineTools(), func(tool *BridgeTool) bool { return tool.OriginalName() == "issue.delete" })
		assert.Equal(t, file == permissions, offered, file)
		assert.Equal(t, file == permissions, strings.Contains(fmt.Sprint(cfg.Notes), `"permissions", which is not read`), file)
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
