package config

import (
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
		// Gemini CLI takes the first of several ways.
		{"gemini", `"command": "run", "args": ["a"], "cwd": "/x", "url": "http://u", "httpUrl": "http://h"`, Server{Name: "s", URL: "http://h"}},
		// Gemini CLI runs no commands: this one is for the shell.
		{"gemini", `"command": "run", "args": ["cd \"$(pwd)\""]`, Server{Name: "s", Command: "run", Args: []string{`cd "$(pwd)"`}}},
		{"mcphybrid", `"command": "run", "longRunning": false, "disabledAutoApproveTools": ["x"], "isActive": true`, run},
		{"mcphybrid", `"command": "run", "always_allow": ["x"], "auto_approve": ["y"], "_comment": "off", "capabilities": {"tools": {}}`, run},
		{"mcphybrid", `"command": "run", "disable": false, "enableLogging": true, "hidden": false, "skip": false, "blockedHosts": [], "restartOnFailure": false, "username": ""`, run},
		{"mcphybrid", `"command": "run", "workingDirectory": "/srv"`, Server{Name: "s", Command: "run", Dir: "/srv"}}, // JetBrains
		{"mcphybrid", `"command": "run", "status": "disabled", "autoStart": false, "blockedTools": ["x"]`, run},       // nobody documents them
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
		`"command": {"path": "run", "shell": true}`: `"command.shell" is not known here: remove it`,
		`"command": {"path": "run", "path": "x"}`:   `"command": "path" is there twice`,
		`"command": {"path": ["run"]}`:              `"command.path" is a JSON array, want a string`,
		`"settings": {"token": "t"}`:                `"settings": an extension of Zed starts the server`,
		`"type": "inMemory", "isActive": true`:      `type "inMemory" is not supported`,
		`"url": "http://h", "baseUrl": "http://h"`:  `"baseUrl" is one address too many: keep one`,
		`"command": "run", "sandbox_enabled": true`: `"sandbox_enabled": servers do not run in a sandbox here`,
		`"command": "run", "enableSandbox": true`:   `"enableSandbox": servers do not run in a sandbox here`,
	} {
		s, _ := one(t, source{Options: Options{Dialect: "zed"}}, members)
		assert.ErrorContains(t, s.err, want, members)
	}
	s, _ := one(t, source{}, `"command": "run", "disallowedTools": ["x"]`)
	assert.Equal(t, []string{"x"}, s.Tools.Deny)
}
