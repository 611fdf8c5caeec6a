package config

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tools that Zed denies are not offered. Those of its own are not ours, whatever their
// names.
func TestToolPermissionsOfZed(t *testing.T) {
	t.Parallel()
	const ask = `"agent.tool_permissions.tools": "mcp:gh:x": there are no approvals here, so it has no effect`
	for permissions, want := range map[string]struct {
		off  bool // the tool x of gh
		note string
	}{
		`"default": "allow", "tools": {"mcp:gh:x": {"default": "deny"}}`: {true, ""},
		`"tools": {"MCP:GH:x": {"default": "deny"}}`:                     {true, ""},
		`"tools": {"mcp:gh:x": {"always_deny": [{"pattern": "."}]}}`:     {true, ""},
		`"tools": {"mcp:gh:x": {"default": "allow", "always_deny": []}}`: {false, ""},
		`"tools": {"mcp:gh:x": {"default": "confirm"}}`:                  {false, ask},
		`"tools": {"mcp:other:x": {"default": "confirm"}}`:               {false, ""},
		`"tools": {"gh": {"default": "deny"}, "x": {"default": "deny"}}`: {false, ""},
		`"default": "confirm", "tools": {"mcp:gh:x": {}}`:                {false, ""},
	} {
		file, err := beside("zed", `"agent": {"tool_permissions": {`+permissions+`}}`)
		require.NoError(t, err, permissions)
		assert.Equal(t, want.off, rules.MatchAny(file.servers[0].Tools.Deny, "x"), permissions)
		assert.False(t, rules.MatchAny(file.servers[1].Tools.Deny, "x"), permissions)
		if want.note == "" {
			assert.Empty(t, file.notes, permissions)
		} else {
			assert.Equal(t, []string{want.note}, file.notes, permissions)
		}
	}
	for permissions, want := range map[string]string{
		`{"default": "deny", "tools": {"mcp:gh:x": {"default": "allow"}}}`: `"agent.tool_permissions.default" may switch servers off and is not read here`,
		`{"default": "never"}`:                                  `"agent.tool_permissions.default" may switch servers off and is not read here`,
		`{"tools": {"mcp:gh:x": {"default": "never"}}}`:         `"agent.tool_permissions.tools": "mcp:gh:x": want "allow", "confirm" or "deny" as "default"`,
		`{"tools": {"mcp:gh:x": "deny"}}`:                       `"agent.tool_permissions.tools": "mcp:gh:x": `,
		`{"tools": {}, "tools": {"mcp:gh:x": {}}}`:              `"agent.tool_permissions": "tools" is there twice`,
		`{"tools": {"mcp:gh:x": {}, "mcp:gh:x": {}}}`:           `"agent.tool_permissions.tools": "mcp:gh:x" is there twice`,
		`{"tools": {"mcp:gh:x": {"default": 1, "default": 2}}}`: `"agent.tool_permissions.tools": "mcp:gh:x": "default" is there twice`,
	} {
		_, err := beside("zed", `"agent": {"tool_permissions": `+permissions+`}`)
		assert.ErrorContains(t, err, want, permissions)
	}
}

// Nobody chooses a profile here, and an agent's name is no key of Zed's.
func TestProfilesOfZed(t *testing.T) {
	t.Parallel()
	for profiles, noted := range map[string]bool{
		`{"ask": {"tools": {"terminal": false}}, "q": {"enable_all_context_servers": false, "context_servers": {}}}`: true,
		`{"p": {"context_servers": {"gh": {"tools": {"x": false}}}}}`:                                                true,
		`{"p": {"context_servers": {"other": {"tools": {"x": true}}}, "enable_all_context_servers": true}}`:          false,
		`{"p": {"tools": {"terminal": false}}}`:                                                                      false,
		`["p"]`:                                                                                                      false,
	} {
		file, err := beside("zed", `"agent": {"profiles": `+profiles+`}`)
		require.NoError(t, err, profiles)
		assert.Equal(t, noted, len(file.notes) == 1, "%s: %q", profiles, file.notes)
		assert.Empty(t, file.servers[0].Tools.Deny, profiles)
	}
	file, err := beside("opencode", `"agent": {"enabled": {"mode": "primary"}, "profiles": {"prompt": "x"}, "tool_permissions": {"default": "x", "tools": {"write": false}}}`)
	require.NoError(t, err)
	assert.Equal(t, []Server{{Name: "gh", Command: "x"}, {Name: "b", Command: "y"}}, serversIn(file))
	assert.Empty(t, file.notes)
}
