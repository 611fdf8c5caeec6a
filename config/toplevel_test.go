package config

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
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
		_, err := parse([]byte(`{"mcpServers": {"gh": {"command": "x"}, "b": {"command": "y"}}, `+member+`}`), source{env: environment()})
		assert.Error(t, err, member)
	}
	for _, member := range []string{
		`"deleted": true`, `"archived": true`, `"muted": true`, `"unavailable": true`, `"dormant": true`, `"except": ["delete_repo"]`, `"ban": ["delete_repo"]`, `"restrict": ["delete_repo"]`,
		`"toolPermission": {"delete_repo": "never"}`, `"metadata": {"disabled": true}`, `"description": {"enabled": false}`,
	} {
		s, _ := one(t, source{}, `"command": "run", `+member)
		assert.ErrorContains(t, s.err, "may switch something off", member)
	}
}

// Without agents, the clients call no tools.
func TestClientsWithoutAgents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, data string }{
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat.agent.enabled": false}`},
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat.agent": {"enabled": false}}`},
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat": {"mcp": {"enabled": false}}}`},
		{".vscode/settings.json", `{"mcp": {"servers": {"gh": {"command": "x"}}}, "chat": {"mcp.enabled": false}}`},
		{"zed/settings.json", `{"context_servers": {"gh": {"command": "x"}}, "agent": {"enabled": false}}`},
	} {
		file, err := parse([]byte(test.data), source{path: "/p/" + test.path, env: environment()})
		require.NoError(t, err, test.data)
		assert.Equal(t, []Server{{Name: "gh", Disabled: true}}, serversIn(file), test.data)
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
		file, err := parse([]byte(test.data), source{path: "/p/" + test.path, env: environment()})
		require.NoError(t, err, test.data)
		assert.Contains(t, file.servers[0].Tools.Deny, test.deny, test.data)
	}
	assert.Len(t, written("a__b__c__d__e__f__g__h", true), maxWritten)
}

func TestPortOfDeniedAddress(t *testing.T) {
	t.Parallel()
	file, err := parse([]byte(`{"mcpServers": {"gh": {"url": "https://mcp.x.com/mcp"}}, "deniedMcpServers": [{"serverUrl": "https://mcp.x.com:443/*"}]}`), source{env: environment()})
	require.NoError(t, err)
	assert.True(t, file.servers[0].Disabled)
}

// Switches in settings about something else hold if they are about servers, or name one.
func TestSwitchesOneLevelDown(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"features": {"mcp": {"enabled": false}}`, `"security": {"deny": ["mcp__gh__x"]}`, `"security": {"excludePatterns": ["gh/*"]}`, `"security": {"lists": [{"excluded": {"names": ["gh"]}}]}`,
		`"removedTools": ["gh_x"]`, `"mute": ["gh"]`, `"options": {"disabled_tools": [], "hidden": ["gh"]}`,
	} {
		_, err := beside("mcphybrid", member)
		assert.ErrorContains(t, err, "is not known here and may switch servers or tools off", member)
	}
	for dialect, member := range map[string]string{
		"opencode":  `"server": {"port": 4096, "mdns": true}`,
		"codex":     `"tool_suggest": {"disabled_tools": [{"type": "plugin", "id": "gh"}]}`,
		"cursor":    `"mcp.discovery.enabled": false, "chat.mcp.discovery.enabled": {"claude-desktop": false}`,
		"mcphybrid": `"editor": {"deny": ["x"], "mcp": {"other": {"disabled": true}}}, "mutex": ["gh"]`,
	} {
		file, err := beside(dialect, member)
		assert.NoError(t, err, member)
		assert.Equal(t, []Server{{Name: "gh", Command: "x"}, {Name: "b", Command: "y"}}, serversIn(file), member)
	}
}

// Many switches in each other take no longer than one: to look for names below each of
// these would take the time that a test has.
func TestSwitchesInSwitches(t *testing.T) {
	t.Parallel()
	const depth = 9000
	deep := strings.Repeat(`{"hidden": `, depth) + "[" + strings.Repeat(`"a", `, 200_000) + `"a"]` + strings.Repeat("}", depth)
	_, err := beside("mcphybrid", `"x": `+deep)
	assert.NoError(t, err)
}

// What only plugins may bring along is no server of the file.
func TestPluginsOnly(t *testing.T) {
	t.Parallel()
	for value, off := range map[string]bool{`true`: true, `["skills", "mcp"]`: true, `{"mcp": true}`: true, `["skills"]`: false, `[]`: false, `false`: false, `null`: false} {
		file, err := beside("claude-code", `"strictPluginOnlyCustomization": `+value)
		assert.NoError(t, err, value)
		assert.Equal(t, off, file.servers[0].Disabled, value)
	}
}

// A switch of all servers leaves them on only by the values that say so, however the place
// is written.
func TestSwitchesOfAllServers(t *testing.T) {
	t.Parallel()
	for member, on := range map[string]bool{
		`"disable_ai": false`: true, `"disable_ai": "no"`: false, `"disable_ai": null`: true,
		`"chat.mcp.enabled": true`: true, `"chat.mcp.enabled": "never"`: false, `"chat.mcp.access": "all"`: true, `"chat.mcp.access": []`: false,
		`"admin": {"mcp": {"enabled": []}}`: false, `"admin": {"mcp.enabled": false}`: false, `"admin": {"mcp.enabled": true}`: true,
	} {
		file, err := beside("mcphybrid", member)
		assert.NoError(t, err, member)
		assert.Equal(t, !on, file.servers[0].Disabled, member)
	}
	for _, member := range []string{
		`"admin.mcp.enabled": true, "admin": {"mcp": {"enabled": false}}`, `"admin": {"mcp.enabled": true, "mcp": {"enabled": false}}`,
	} {
		_, err := beside("mcphybrid", member)
		assert.EqualError(t, err, `"admin.mcp.enabled" is there twice`, member)
	}
	file, err := beside("mcphybrid", `"mcp.excluded": ["gh"]`)
	assert.NoError(t, err)
	assert.True(t, file.servers[0].Disabled && !file.servers[1].Disabled)
}

// Zed has settings for one release or one platform in objects.
func TestSwitchesOfReleasesAndPlatforms(t *testing.T) {
	t.Parallel()
	for member, off := range map[string]bool{
		`"stable": {"disable_ai": true}`: true, `"linux": {"disable_ai": true}`: true, `"stable": {"agent": {"enabled": false}}`: true,
		`"stable": {"disable_ai": false, "agent": {"enabled": true}}`: false, `"windows": "x"`: false,
	} {
		file, err := beside("zed", member)
		require.NoError(t, err, member)
		assert.Equal(t, off, file.servers[0].Disabled, member)
	}
}

// A parenthesis may be in a server's name, too.
func TestParenthesesInNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, data string }{
		{"zed/settings.json", `{"context_servers": {"GitHub (work)": {"command": "x"}}, "agent": {"tool_permissions": {"tools": {"mcp:GitHub (work):delete_repo": {"default": "deny"}}}}}`},
		{".cursor/mcp.json", `{"mcpServers": {"GitHub (work)": {"command": "x"}}, "permissions": {"deny": ["Mcp(GitHub (work):delete_repo)"]}}`},
		{".mcp.json", `{"mcpServers": {"GitHub (work)": {"command": "x"}}, "disallowedTools": ["GitHub (work)/delete_repo"]}`},
	} {
		file, err := parse([]byte(test.data), source{path: "/p/" + test.path, env: environment()})
		require.NoError(t, err, test.data)
		assert.True(t, rules.MatchAny(file.servers[0].Tools.Deny, "delete_repo"), test.data)
		assert.False(t, rules.MatchAny(file.servers[0].Tools.Deny, "read"), test.data)
	}
}
