package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What people's files have, found in public repositories and in the clients'
// documentation, leaves no server out.
func TestFilesFromTheField(t *testing.T) {
	t.Parallel()
	run := Server{Name: "s", Command: "run"}
	for _, test := range []struct {
		dialect, members string
		want             Server
	}{
		// Older files of Zed have an object, and Zed writes empty settings.
		{"zed", `"command": {"path": "run", "args": ["a"], "env": {"E": "1"}}, "settings": {}`, Server{Name: "s", Command: "run", Args: []string{"a"}, Env: map[string]string{"E": "1"}}},
		{"zed", `"enabled": true, "url": "http://h", "settings": {}`, Server{Name: "s", URL: "http://h"}},
		{"zed", `"command": "run", "settings": {"enable_something": true}`, run},
		{"crush", `"type": "stdio", "command": "run", "channel_enabled": false`, run},
		{"codex", `"url": "http://h", "http_headers_helper": "print headers", "startup_readiness": "catalog", "tools": {"a": {"output_token_limit": 9}}`, Server{Name: "s", URL: "http://h", HeadersHelper: "print headers"}},
		{"cherry-studio", `"baseUrl": "http://h/sse", "type": "sse", "isActive": true, "timeout": 60, "longRunning": true, "tags": ["x"]`, Server{Name: "s", URL: "http://h/sse", SSE: true, CallTimeout: time.Minute}},
		{"crush", `"type": "stdio", "command": "run", "channel_enabled": true, "channel_reply": {"suppress_tools": ["send"]}`, run},
		// Gemini CLI runs no commands: this one is for the shell.
		{"gemini", `"command": "run", "args": ["cd \"$(pwd)\""]`, Server{Name: "s", Command: "run", Args: []string{`cd "$(pwd)"`}}},
		{"mcphybrid", `"command": "run", "longRunning": false, "disabledAutoApproveTools": ["x"], "isActive": true`, run},
		{"mcphybrid", `"command": "run", "always_allow": ["x"], "auto_approve": ["y"], "_comment": "off", "capabilities": {"tools": {}}`, run},
		{"mcphybrid", `"command": "run", "disable": false, "enableLogging": true, "hidden": false, "skip": false, "blockedHosts": [], "restartOnFailure": false, "username": ""`, run},
	} {
		s, _ := one(t, source{Options: Options{Dialect: test.dialect}}, test.members)
		require.NoError(t, s.err, test.members)
		assert.Equal(t, test.want, s.Server, test.members)
	}
	for members, told := range map[string]bool{
		`"autoApprove": []`: false, `"autoApprove": ["x"]`: true,
		`"omit_tools_from": ["deferred"]`: true, `"omit_tools_from": ["direct"]`: true, `"omit_tools_from": ["direct", "deferred"]`: true,
		`"omit_tools_from": ["code_mode"]`: false, `"omit_tools_from": ["direct", "deferred", "code_mode"]`: false,
	} {
		_, notes := one(t, source{}, `"command": "run", `+members)
		assert.Equal(t, told, len(notes) > 0, members)
	}
	for members, want := range map[string]string{
		`"command": {"path": "run", "shell": true}`:      `"command.shell" is not known here: remove it`,
		`"command": {"path": "run", "path": "x"}`:        `"command": "path" is there twice`,
		`"command": {"path": ["run"]}`:                   `"command.path" is a JSON array, want a string`,
		`"settings": {"token": "t"}`:                     `"settings": an extension of Zed starts the server`,
		`"type": "inMemory", "isActive": true`:           `type "inMemory" is not supported`,
		`"url": "http://h", "baseUrl": "http://h"`:       `"baseUrl" is one address too many: keep one`,
		`"command": "run", "sandbox_enabled": true`:      `"sandbox_enabled": servers do not run in a sandbox here`,
		`"command": "run", "enableSandbox": true`:        `"enableSandbox": servers do not run in a sandbox here`,
		`"command": "run", "deactivated": true`:          `"deactivated" is not known here and may switch something off`,
		`"command": "run", "readOnly": true`:             `"readOnly" is not known here and may switch something off`,
		`"command": "run", "diabled": false`:             `"diabled" is not known here and may switch something off`,
		`"command": "run", "useServer": false`:           `"useServer" is not known here and may switch something off`,
		`"command": "run", "allowList": ["x"]`:           `"allowList" is not known here and may switch something off`,
		`"command": "run", "features": {"tools": false}`: `"features" is not known here and may switch something off`,
	} {
		s, _ := one(t, source{Options: Options{Dialect: "zed"}}, members)
		assert.ErrorContains(t, s.err, want, members)
	}
	s, _ := one(t, source{}, `"command": "run", "disallowedTools": ["x"]`)
	assert.Equal(t, []string{"x"}, s.Tools.Deny)
}

// The same of what stands beside the servers.
func TestSettingsFromTheField(t *testing.T) {
	t.Parallel()
	load := func(members string) (found, error) {
		return parse([]byte(`{"mcp": {"servers": {"git": {"command": "run", "type": "stdio"}}}, `+members+`}`), source{Options: Options{Dialect: "vscode"}, env: environment()})
	}
	for _, members := range []string{
		`"github.copilot.enable": {"*": true, "git": false}`, `"roo-cline.allowedCommands": ["git"]`, `"chat.tools.terminal.autoApprove": {"git": true}`,
		`"git.ignoredRepositories": ["git"]`, `"chat.mcp.collisionBehavior": "disable"`, `"chat.mcp.access": true`, `"chat.mcp.serverSampling": {"git": {"allowedModels": []}}`,
		`"permissions": ["git"]`, `"admin": {"mcp": {"enabled": true, "config": {}}}`, `"admin": {"mcp": null}`, `"admin": {"extensions": {"enabled": false}}`,
	} {
		file, err := load(members)
		require.NoError(t, err, members)
		assert.Equal(t, []Server{{Name: "git", Command: "run"}}, serversIn(file), members)
	}
	for members, want := range map[string]string{
		`"admin": {"mcp": {"config": {"git": {}}}}`:         `"admin.mcp.config" may switch servers off and is not read here`,
		`"admin": {"mcp": {"enabled": true, "enabled": 0}}`: `"admin.mcp": "enabled" is there twice`,
		`"admin": {"mcp": {}, "mcp": {"enabled": false}}`:   `"admin": "mcp" is there twice`,
		`"hidden": ["git"]`:                   `"hidden" is not known here`,
		`"chat.mcp.disabledServers": ["git"]`: `"chat.mcp.disabledServers" is not known here`,
		`"disallowedTools": "x"`:              `"disallowedTools" is a JSON string, want a list of strings`,
	} {
		_, err := load(members)
		assert.ErrorContains(t, err, want, members)
	}
	file, err := load(`"admin": {"mcp": {"enabled": false}}`)
	require.NoError(t, err)
	assert.Equal(t, []Server{{Name: "git", Disabled: true}}, serversIn(file))
	file, err = load(`"disallowedTools": ["git__push"]`)
	require.NoError(t, err)
	assert.Contains(t, file.servers[0].Tools.Deny, "push")
}

// The rules of opencode for all tools.
func TestRulesOfOpencode(t *testing.T) {
	t.Parallel()
	load := func(rules string) (found, error) {
		return parse(fmt.Appendf(nil, `{"mcp": {"servers": {"s": {"type": "local", "command": ["run"]}}}, "permissions": %s}`, rules), source{Options: Options{Dialect: "opencode"}, env: environment()})
	}
	for rules, deny := range map[string][]string{
		`[{"action": "s_write", "resource": "*", "effect": "deny"}]`:   {"write"},
		`[{"action": "s_*", "effect": "deny"}]`:                        {"*"},
		`[{"action": "*", "resource": "*", "effect": "deny"}]`:         {"*"},
		`[{"action": "s_write", "resource": "a/*", "effect": "deny"}]`: nil, // by arguments
		`[{"action": "s_write", "resource": "*", "effect": "ask"}]`:    nil,
		`[]`: nil,
	} {
		file, err := load(rules)
		require.NoError(t, err, rules)
		assert.Equal(t, deny, file.servers[0].Tools.Deny, rules)
	}
	for _, rules := range []string{`["s_write"]`, `[{"effect": "deny"}]`, `[{"action": "x", "action": "s_write", "effect": "deny"}]`, `[{"action": ["s_write"], "effect": "deny"}]`} {
		_, err := load(rules)
		assert.EqualError(t, err, `"permissions": want a list of objects with "action", "resource" and "effect"`, rules)
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
