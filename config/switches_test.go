package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beside reads a file with the servers gh and b, and members beside them.
func beside(dialect, members string) (found, error) {
	at := `"mcpServers": {"gh": {"command": "x"}, "b": {"command": "y"}}`
	for _, d := range dialects {
		if d.name == dialect {
			at = strings.Replace(at, "mcpServers", d.at[len(d.at)-1], 1)
		}
	}
	return parseJSON([]byte("{"+at+", "+members+"}"), source{Options: Options{Dialect: dialect}, env: environment()})
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
	file, err = beside("opencode", `"agent": {"enabled": {"mode": "primary"}}`)
	assert.NoError(t, err)
	assert.False(t, file.servers[0].Disabled, "an agent of that name")
	file, err = parse([]byte(`{"mcp": {"excluded": {"type": "local", "command": ["x"]}}}`), source{Options: Options{Dialect: "opencode"}, env: environment()})
	assert.NoError(t, err)
	assert.Equal(t, "x", file.servers[0].Command, "a server of that name")
}

func TestServersInsideTheClient(t *testing.T) {
	t.Parallel()
	for kind, inside := range map[string]bool{`"type": "builtin"`: true, `"TYPE": "builtin"`: true, `"type": "Platform"`: true, `"type": "stdio", "Type": "front\u0065nd"`: true, `"TYPE": "stdio"`: false} {
		file, err := parse([]byte(`{"extensions": {"s": {`+kind+`, "cmd": "x", "enabled": true}}}`), source{Options: Options{Dialect: "goose"}, env: environment()})
		assert.NoError(t, err, kind)
		assert.Equal(t, inside, file.servers[0].Disabled, kind)
	}
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

// A name that switches something off does so in any letter case, and one that switches
// something on only as it is.
func TestCaseOfNames(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"disabledMcpServers": ["GH"]`, `"excludeMCPServers": ["Gh"]`, `"mcp": {"excluded": ["GH"]}`, `"allowMCPServers": ["GH", "b"]`,
	} {
		file, err := beside("mcphybrid", member)
		require.NoError(t, err, member)
		assert.Equal(t, []Server{{Name: "gh", Disabled: true}, {Name: "b", Command: "y"}}, serversIn(file), member)
	}
	for dialect, member := range map[string]string{
		"opencode": `"tools": {"GH_x": false}`, "crush": `"options": {"disabled_tools": ["mcp_GH_x"]}`, "gemini": `"tools": {"exclude": ["GH__x"]}`,
		"mcphybrid": `"disallowedTools": ["GH/x"]`, "amp": `"amp.tools.disable": ["mcp__GH__x"]`,
	} {
		file, err := beside(dialect, member)
		require.NoError(t, err, member)
		assert.True(t, rules.MatchAny(file.servers[0].Tools.Deny, "x"), member)
		assert.False(t, rules.MatchAny(file.servers[1].Tools.Deny, "x"), member)
	}
}

// Codex and Gemini CLI switch their own tools off by a false in "tools".
func TestOwnToolsOfClients(t *testing.T) {
	t.Parallel()
	for dialect, deny := range map[string][]string{"codex": nil, "gemini": nil, "mcphybrid": {"web?search"}} {
		key := "mcpServers"
		if dialect == "codex" {
			key = "mcp_servers"
		}
		o := source{Options: Options{Dialect: dialect}, env: environment()}
		file, err := parseJSON(fmt.Appendf(nil, `{%q: {"s": {"command": "run"}}, "tools": {"web_search": false}}`, key), o)
		require.NoError(t, err)
		assert.Equal(t, deny, file.servers[0].Tools.Deny, dialect)
	}
}

// What clients have besides switches is told of once, and switches nothing off.
func TestUnreadSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ dialect, members, told string }{
		{"claude-code", `"permissions": {"deny": ["mcp__gh"]}`, `"permissions"`},
		{"claude-code", `"deniedMcpServers": [{"serverName": "gh"}], "permissions": {}, "allowedMcpServers": []`, `"permissions", "allowedMcpServers", "deniedMcpServers"`},
		{"opencode", `"permission": "deny"`, `"permission"`},
		{"zed", `"agent": {"tool_permissions": {"default": "deny"}, "profiles": {"p": {}}}`, `"agent.tool_permissions", "agent.profiles"`},
		{"gemini", `"admin": {"mcp": {"config": {"gh": {}}}}`, `"admin.mcp.config"`},
		{"claude-code", `"permissions": null`, ""},
	} {
		file, err := beside(test.dialect, test.members)
		require.NoError(t, err, test.members)
		assert.Equal(t, []Server{{Name: "gh", Command: "x"}, {Name: "b", Command: "y"}}, serversIn(file), test.members)
		if test.told == "" {
			assert.Empty(t, file.notes)
		} else {
			assert.Equal(t, []string{"this client also has " + test.told + `, which is not read: write "disabled" or "disabledTools" into the servers, or let the host decide`}, file.notes)
		}
	}
}

// Keys that we don't know refuse nothing, whatever they say.
func TestUnknownKeysBesideTheServers(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"disabledServers": ["gh"]`, `"enabled": false`, `"blockedTools": ["x"]`, `"policy": {"deny": ["gh/x"]}`, `"files.exclude": {"**/x": true}`,
		`"enabledMcpjsonServers": ["b"]`, `"chat.mcp.serverSampling": {"gh": {"allowedModels": []}}`, `"mcp": {"serverCommand": "x"}`,
	} {
		file, err := beside("mcphybrid", member)
		require.NoError(t, err, member)
		assert.Equal(t, []Server{{Name: "gh", Command: "x"}, {Name: "b", Command: "y"}}, serversIn(file), member)
		assert.Empty(t, file.notes)
	}
}
