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

// Tools that "permissions" denies are not offered, in whatever form clients write them.
func TestPermissions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect, permissions string
		off, on              string // tools of gh; b has them all
		note                 string
	}{
		{"claude-code", `{"deny": ["mcp__gh__*"]}`, "x", "", ""},
		{"claude-code", `{"deny": ["mcp__GH__x"]}`, "x", "y", ""},
		{"claude-code", `{"deny": ["MCP__gh"]}`, "x", "", ""},
		{"claude-code", `{"Deny": ["mcp__gh__x(a:*)"]}`, "x", "y", ""},
		{"claude-code", `{"deny": [" mcp__gh__x "]}`, "x", "y", ""},
		{"claude-code", `{"deny": ["gh/x", "gh:y"]}`, "x", "z", ""},
		{"claude-code", `{"deny": ["gh"]}`, "x", "", ""},
		{"claude-code", `{"deny": ["Bash(rm *)", "Read(./.env)", "WebFetch"]}`, "", "WebFetch", ""},
		{"claude-code", `{"deny": null, "allow": ["Bash"], "ask": ["Bash(git push:*)"], "defaultMode": "acceptEdits", "additionalDirectories": ["/off"], "disableBypassPermissionsMode": "disable"}`, "", "x", ""},
		{"claude-code", `{"ask": ["mcp__gh__x"]}`, "", "x", `"permissions.ask": there are no approvals here`},
		{"claude-code", `{"allow": ["mcp__gh__x"]}`, "", "x", `"permissions.allow": there are no approvals here`},
		{"claude-code", `{"colour": "red"}`, "", "x", `"permissions.colour" is not known here and has no effect`},
		{"cursor", `{"deny": ["Mcp(gh:x)", "Shell(rm)"]}`, "x", "y", ""},
		{"cursor", `{"deny": ["Mcp(gh, x)"]}`, "x", "y", ""},
		{"claude-code", `{"deny": ["Mcp(gh)"]}`, "x", "", ""},
		{"opencode", `{"deny": ["Mcp(gh:*)"]}`, "x", "", ""},
		{"opencode", `[{"action": "gh_x", "effect": "Deny"}]`, "x", "y", ""},
		{"opencode", `[{"action": "gh_x", "resource": "**", "effect": "deny"}]`, "x", "y", ""},
		{"opencode", `[{"action": "gh_x", "effect": "ask"}]`, "", "x", `"permissions": "gh_x": there are no approvals here`},
		{"opencode", `[{"action": "edit", "effect": "ask"}]`, "", "x", ""},
		{"crush", `{"allowed_tools": ["view", "edit"]}`, "", "x", ""},
		{"crush", `{"allowed_tools": ["mcp_gh_x"]}`, "", "x", `"permissions.allowed_tools": there are no approvals here`},
		{"codex", `{"workspace": {"network": {"enabled": false}}}`, "", "x", ""},
	} {
		file, err := beside(test.dialect, `"permissions": `+test.permissions)
		require.NoError(t, err, test.permissions)
		deny := file.servers[0].Tools.Deny
		assert.True(t, test.off == "" || rules.MatchAny(deny, test.off), "%s: %q", test.permissions, deny)
		assert.False(t, test.on != "" && rules.MatchAny(deny, test.on), "%s: %q", test.permissions, deny)
		assert.False(t, rules.MatchAny(file.servers[1].Tools.Deny, "x"), test.permissions)
		if test.note == "" {
			assert.Empty(t, file.notes, test.permissions)
		} else if assert.Len(t, file.notes, 1, test.permissions) {
			assert.Contains(t, file.notes[0], test.note)
		}
	}
}

// What "permissions" says in another shape is not taken for granted.
func TestPermissionsInOtherShapes(t *testing.T) {
	t.Parallel()
	for _, permissions := range []string{
		`"deny"`, `false`, `{"deny": "mcp__gh__x"}`, `{"deny": {"mcp__gh__x": true}}`, `{"deny": [{"tool": "mcp__gh__x"}]}`, `{"ask": {"mcp__gh": true}}`, `{"allow": "mcp__gh"}`,
		`{"mcp": {"deny": ["gh"]}}`, `{"mcp__gh__x": "deny"}`, `{"gh": false}`, `{"gh/x": "ask"}`, `{"servers": ["gh"]}`, `{"x": {"y": {"disabled": true}}}`,
		`{"blocked": ["x"]}`, `{"denyTools": ["x"]}`, `{"defaultMode": "dontAsk"}`, `{"defaultMode": ["x"]}`, `{"denyInsteadOfPrompting": true}`, `{"additionalDirectories": {"deny": ["x"]}}`,
		`{"deny": [], "deny": ["mcp__gh"]}`, `[{"tool": "mcp__gh__x", "effect": "block"}]`, `[{"action": "gh_x", "effect": "off"}]`, `[{"action": "gh_x", "effect": false}]`, `["deny mcp__gh__x"]`,
	} {
		_, err := beside("claude-code", `"permissions": `+permissions)
		assert.ErrorContains(t, err, `"permissions`, permissions)
	}
	for _, permission := range []string{
		`["gh_x"]`, `false`, `"off"`, `""`, `{"gh_x": false}`, `{"gh_x": ["deny"]}`, `{"gh_x": {"*": false}}`, `{"gh_x": {"*": "off"}}`, `{"gh_x": {"*": "deny", "*": "ask"}}`,
	} {
		_, err := beside("opencode", `"permission": `+permission)
		assert.ErrorContains(t, err, `"permission"`, permission)
	}
	for permission, off := range map[string]bool{`"Deny"`: true, `{"gh_x": {"**": "deny"}}`: true, `{"gh_x": {"?": "deny"}}`: true, `{"gh_x": {"a": "deny"}}`: false, `{"gh_x": null}`: false} {
		file, err := beside("opencode", `"permission": `+permission)
		require.NoError(t, err, permission)
		assert.Equal(t, off, rules.MatchAny(file.servers[0].Tools.Deny, "x"), permission)
	}
}

// A list beside the servers that does not say of what, or names a server or its tool,
// starts nothing; neither does one in a server.
func TestListsOfWhatIsOff(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"deny": ["gh/x"]`, `"deny": ["*"]`, `"denied": "x"`, `"denylist": ["gh.x"]`, `"blocklist": ["x"]`, `"block_list": ["gh/x"]`, `"blacklist": {"gh": ["x"]}`, `"exclude": ["gh/x"]`,
		`"exclusions": ["x"]`, `"banned": ["gh"]`, `"policy": {"deny": ["gh/x"]}`, `"policy": {"gh/x": "never"}`, `"policy": "strict"`, `"policies": [{"tool": "x", "effect": "block"}]`,
		`"settings": {"deny": ["x"]}`, `"mcp": {"deny": ["x"]}`, `"excludePatterns": ["gh/x"]`, `"hiddenItems": ["mcp__gh__x"]`, `"skipThese": ["GH"]`, `"blockedCalls": {"gh:x": 1}`, `"onlyThese": ["gh*"]`,
		`"overrides": {"gh/x": false}`, `"overrides": [{"tool": "mcp__gh__x", "enabled": false}]`, `"overrides": {"Gh": "disabled"}`,
	} {
		_, err := beside("mcphybrid", member)
		assert.ErrorContains(t, err, "is not known here and may switch servers or tools off", member)
	}
	for _, member := range []string{
		`"deny": ["x"]`, `"blocklist": ["x"]`, `"exclude": ["gh/x"]`, `"policy": {"x": "deny"}`, `"policy": {"x": "never"}`, `"policy": {"x": false}`, `"policy": {"deny": ["x"]}`, `"permissions": {"x": "block"}`,
	} {
		s, _ := one(t, source{}, `"command": "run", `+member)
		assert.ErrorContains(t, s.err, "may switch something off", member)
	}
	for _, member := range []string{
		`"deny": []`, `"policy": {}`, `"exclude": null`, `"excludePaths": ["node_modules", "*.log"]`, `"bankAccounts": ["x"]`, `"ignoreCase": true`, `"overrides": {"x": false}`, `"policyPaths": ["p"]`,
	} {
		_, err := beside("mcphybrid", member)
		assert.NoError(t, err, member)
	}
}

// A name that switches something off does so in any letter case, and one that switches
// something on only as it is.
func TestCaseOfNames(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"disabledMcpServers": ["GH"]`, `"excludeMCPServers": ["Gh"]`, `"mcp": {"excluded": ["GH"]}`, `"deniedMcpServers": [{"serverName": "GH"}]`,
		`"allowMCPServers": ["GH", "b"]`, `"allowedMcpServers": [{"serverName": "GH"}, {"serverName": "b"}]`,
	} {
		file, err := beside("mcphybrid", member)
		require.NoError(t, err, member)
		assert.Equal(t, []Server{{Name: "gh", Disabled: true}, {Name: "b", Command: "y"}}, serversIn(file), member)
	}
	for dialect, member := range map[string]string{
		"claude-code": `"permissions": {"deny": ["mcp__GH__x"]}`, "opencode": `"tools": {"GH_x": false}`, "crush": `"options": {"disabled_tools": ["mcp_GH_x"]}`, "gemini": `"tools": {"exclude": ["GH__x"]}`,
		"mcphybrid": `"disallowedTools": ["GH/x"]`,
	} {
		file, err := beside(dialect, member)
		require.NoError(t, err, member)
		assert.True(t, rules.MatchAny(file.servers[0].Tools.Deny, "x"), member)
		assert.False(t, rules.MatchAny(file.servers[1].Tools.Deny, "x"), member)
	}
}

// However an address is written that a policy denies, it is denied; and none is allowed
// by another that a server may tell from it.
func TestAddressesOfPolicies(t *testing.T) {
	t.Parallel()
	load := func(key, pattern, address string) outcome {
		file, err := parse(fmt.Appendf(nil, `{"mcpServers": {"gh": {"url": %q}}, %q: [{"serverUrl": %q}]}`, address, key, pattern), source{env: environment()})
		require.NoError(t, err)
		return file.servers[0]
	}
	for _, test := range []struct{ pattern, address string }{
		{"https://mcp.x.com/*", "https://mcp.x.com./mcp"},
		{"https://mcp.x.com./*", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com.:443/*", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com/*", "https://mcp.x.com.:443/mcp"},
		{"https://mcp.x.com/*", "https://mcp.x.com:/mcp"},
		{"*://mcp.x.com./*", "https://mcp.x.com/mcp"},
		{"*://mcp.x.com:443/*", "https://mcp.x.com/mcp"},
		{"mcp.x.com./*", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com/mcp", "https://mcp.x.com/%6dcp"},
		{"https://mcp.x.com/%6Dcp", "https://mcp.x.com/mcp"},
		{"https://%6dcp.x.com/*", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com/a/b", "https://mcp.x.com/a%2fb"},
		{"https://mcp.x.com/a%2Fb", "https://mcp.x.com/a/b"},
		{"https://mcp.x.com/mcp", "https://mcp.x.com/a/../mcp"},
		{"https://mcp.x.com/mcp", "https://mcp.x.com//./mcp"},
		{"https://user@mcp.x.com/*", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com?*", "https://mcp.x.com/?a=b"},
		{"https://mcp.x.com/mcp?a=?", "https://mcp.x.com/mcp?a=?"},
		{"https://x.com/*", "https://x.com:0443/mcp"}, {"https://x.com:0443/*", "https://x.com/mcp"}, {"https://x.com:08443/*", "https://x.com:8443/mcp"},
		{"*.x.com", "https://m.x.com/"}, {"*.x.com", "https://m.x.com:443"}, {"*.x.com", "https://m.x.com."}, {"*.x.com./mcp", "https://m.x.com/mcp"},
		{"*@m.x.com/mcp", "https://m.x.com/mcp"}, {"http*.x.com./mcp", "https://m.x.com/mcp"},
		{"https://x.com/mcp?k=a", "https://x.com/mcp/?k=a"}, {"https://x.com/mcp?k=a", "https://x.com/b/../mcp?k=a"}, {"https://x.com/mcp?k=a", "https://x.com/mcp"},
		{"https://x.com/mcp?k=a", "https://x.com/mcp?k=b"}, {"https://x.com?k=a", "https://x.com/?k=b"}, {"*mcp?k=a", "https://x.com/mcp"}, {"https://x.com/mcp#a", "https://x.com/mcp"},
		{"https://x.com/a//b", "https://x.com/a//b/"}, {"https://x.com/a//b/", "https://x.com/a//b"}, {"https://x.com/a/../mcp", "https://x.com/mcp"}, {"https://x.com/a%3fb", "https://x.com/a%3Fb/"},
		{"*?token=*", "https://x.com/mcp?token=a"}, {"http://localhost:*/*", "http://localhost:x@127.0.0.1:8080/mcp"},
	} {
		assert.Equal(t, outcome{Server: Server{Name: "gh", Disabled: true}}, load("deniedMcpServers", test.pattern, test.address), test)
	}
	for _, test := range []struct{ pattern, address string }{
		{"https://mcp.x.com/mcp", "https://mcp.x.com./%6dcp"}, {"https://mcp.x.com./%6Dcp", "https://mcp.x.com:443/mcp"}, {"https://mcp.x.com?*", "https://mcp.x.com/?a"},
		{"https://x.com/mcp", "https://user@x.com/mcp#a"}, {"https://x.com:*", "https://x.com:443/mcp"}, {"https://x.com:443/mcp", "https://x.com:0443/mcp"}, {"http://localhost:*/*", "http://localhost:8080/mcp"},
	} {
		assert.False(t, load("allowedMcpServers", test.pattern, test.address).Disabled, test)
	}
	for _, test := range []struct{ pattern, address string }{
		{"https://mcp.x.com/a/b", "https://mcp.x.com/a%2fb"}, {"https://mcp.x.com/mcp", "https://mcp.x.com/a/../mcp"}, {"https://mcp.x.com/%2a", "https://mcp.x.com/secret"},
		{"https://mcp.x.com?*", "https://mcp.x.com.evil.com/x"}, {"https://mcp?x.com/*", "https://mcp.x.com/mcp"}, {"https://mcp.x.com/mc?", "https://mcp.x.com/mcp"},
		{"https://mcp.x.com/mcp", "http://mcp.x.com/mcp"}, {"https://mcp.x.com/mcp", "https://mcp.x.com:8443/mcp"},
		{"http://localhost:*/*", "http://localhost:x@127.0.0.1:8080/mcp"}, {"https://good.com:*", "https://good.com:443@evil.com/mcp"}, {"https://*.good.com/mcp", "https://evil.com/#.good.com/mcp"},
		{"https://*.good.com/mcp", "https://evil.com#.good.com/mcp"}, {"https://good.com*", "https://good.com@evil.com"}, {"https://x.com:0*/mcp", "https://x.com:8443/mcp"},
	} {
		assert.True(t, load("allowedMcpServers", test.pattern, test.address).Disabled, test)
	}
	for _, address := range []string{"https://ｍcp.x.com/mcp", "https://%6dcp.x.com/mcp", "https://mcp\u3002x.com"} {
		assert.ErrorContains(t, load("deniedMcpServers", "https://mcp.x.com/*", address).err, `"deniedMcpServers" and "allowedMcpServers" can't tell addresses`, address)
	}
	for _, test := range []struct{ pattern, address string }{
		{"https://mcp.x.com/*", "https://mcp.x.org/mcp"}, {"*?token=*", "https://x.com/mcp"}, {"https://*/*?token=*", "https://x.com/mcp"}, {"https://x.com?*", "https://x.com/mcp"},
		{"https://x.com/a%3fb", "https://x.com/a"}, {"*.x.com", "https://m.x.com/mcp"}, {"https://x.com:0*/mcp", "https://x.com:8443/mcp"},
	} {
		assert.False(t, load("deniedMcpServers", test.pattern, test.address).Disabled, test)
	}
}
