package clients

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What may switch the server gh or its tool off, in whatever shape, starts nothing.
func TestSwitchesInAnyShape(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"tools": {"deny": ["delete_repo"]}`, `"tools": {"disabled": ["delete_repo"]}`, `"tools": {"delete_repo": "deny"}`, `"tools": {"delete_repo": {"enabled": false}}`, `"tools": ["read"]`,
		`"serverStates": {"gh": false}`, `"serverStatus": {"gh": "disabled"}`, `"serverStatus": "disabled"`, `"serverSettings": {"gh": {"enabled": false}}`, `"mcpServerStatus": {"gh": {"disabled": true}}`,
		`"gh": {"disabled": true}`, `"list": [{"name": "gh", "enabled": false}]`, `"mcpSettings": {"disabledServers": ["gh"]}`, `"mcpSettings": {"enabled": false}`, `"mcp": {"settings": {"disabledServers": ["gh"]}}`,
		`"settings": {"disabledTools": ["delete_repo"]}`, `"toolStates": {"delete_repo": false}`, `"toolsConfig": {"disabled": ["delete_repo"]}`, `"mcpAutoStart": false`, `"selectedServers": ["b"]`,
	} {
		_, err := Parse([]byte(`{"mcpServers": {"gh": {"command": "x"}, "b": {"command": "y"}}, `+member+`}`), Options{Env: environment()})
		assert.Error(t, err, member)
	}
	for _, member := range []string{
		`"deleted": true`, `"archived": true`, `"muted": true`, `"unavailable": true`, `"dormant": true`, `"except": ["delete_repo"]`, `"ban": ["delete_repo"]`, `"restrict": ["delete_repo"]`,
		`"toolPermission": {"delete_repo": "never"}`, `"metadata": {"disabled": true}`, `"description": {"enabled": false}`,
	} {
		s, _ := one(t, Options{}, `"command": "run", `+member)
		assert.ErrorContains(t, s.Err, "may switch something off", member)
	}
}

// Without agents, the clients call no tools.
func TestClientsWithoutAgents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, data string }{
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat.agent.enabled": false}`},
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat": {"mcp": {"enabled": false}}}`},
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat": {"mcp.enabled": false}}`},
		{"zed/settings.json", `{"context_servers": {"gh": {"command": "x"}}, "agent": {"enabled": false}}`},
	} {
		file, err := Parse([]byte(test.data), Options{Path: "/p/" + test.path, Env: environment()})
		require.NoError(t, err, test.data)
		assert.Equal(t, []Server{{Name: "gh", Disabled: true}}, file.Servers, test.data)
	}
}

// Clients in JavaScript write two _ for a character beyond 16 bits.
func TestNamesBeyond16Bits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, data, deny string }{
		{"opencode.json", `{"mcp": {"📁files": {"type": "local", "command": ["x"]}}, "tools": {"__files_delete": false}}`, "delete"},
		{".mcp.json", `{"mcpServers": {"📁files": {"command": "x"}}, "permissions": {"deny": ["mcp____files__delete"]}}`, "delete"},
		{".mcp.json", `{"mcpServers": {"f": {"command": "x"}}, "permissions": {"deny": ["mcp__f____x"]}}`, "?x"},
	} {
		file, err := Parse([]byte(test.data), Options{Path: "/p/" + test.path, Env: environment()})
		require.NoError(t, err, test.data)
		assert.Contains(t, file.Servers[0].Deny, test.deny, test.data)
	}
	assert.Len(t, written("a__b__c__d__e__f__g__h", true), maxWritten)
}

func TestPortOfDeniedAddress(t *testing.T) {
	t.Parallel()
	file, err := Parse([]byte(`{"mcpServers": {"gh": {"url": "https://mcp.x.com/mcp"}}, "deniedMcpServers": [{"serverUrl": "https://mcp.x.com:443/*"}]}`), Options{Env: environment()})
	require.NoError(t, err)
	assert.True(t, file.Servers[0].Disabled)
}
