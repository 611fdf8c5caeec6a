package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parseConfig is [Load] for bytes; lookup reads the environment.
func parseConfig(data []byte, lookup func(string) (string, bool)) (*File, error) {
	found, err := parse(data, source{env: lookup})
	file, problems := found.file()
	return file, cmp.Or(err, problems)
}

// parseOne parses a file whose only server, s, has the given members.
func parseOne(members string, env ...string) (*File, error) {
	return parseConfig([]byte(`{"mcpServers": {"s": {`+members+`}}}`), environment(env...))
}

func serverNames(cfg *File) []string {
	var names []string
	for _, sc := range cfg.Servers {
		names = append(names, sc.Name)
	}
	return names
}

func TestKeepsTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	want := []string{"zeta", "alpha", "10", "9", "mike", "Beta", "beta", "文件", "_x", "delta", "a b", "-"}
	var members []string
	for _, name := range want {
		members = append(members, fmt.Sprintf("%q: {%q: %q}", name, "command", "run-"+name))
	}
	data := []byte(`{"mcpServers": {` + strings.Join(members, ", ") + `}}`)
	for range 20 {
		cfg, err := parseConfig(data, environment())
		require.NoError(t, err)
		require.Equal(t, want, serverNames(cfg))
		for _, sc := range cfg.Servers {
			require.Equal(t, "run-"+sc.Name, sc.Command)
		}
	}
}

func TestEveryKey(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]byte(`{
		"otherClientsKey": [1, {"a": null}],
		"mcpServers": {
			"child": {
				"type": "stdio",
				"command": "npx",
				"args": ["-y", "server", ""],
				"env": {"TOKEN": "t", "EMPTY": ""},
				"cwd": "/srv",
				"disabled": false,
				"tools": {"allow": ["get_*", "list"], "deny": ["get_secret"]},
				"needs": {"get_page": ["list", "get_index"]},
				"resultSelect": {"get_page": "{title, n: [.items[] | \"${n}\"]}"},
				"prefix": "ops",
				"protocol": "2025-11-25",
				"noInstructions": true,
				"noSkills": true,
				"unlistedResources": true,
				"timeout": "20s",
				"callTimeout": 30000,
				"autoApprove": ["x"], "description": 7
			},
			"web": {
				"type": "http",
				"url": "https://example.com/mcp?x=1",
				"headers": {"Authorization": "Bearer t", "X-Empty": ""}
			},
			"off": {"disabled": true},
			"plain": {"command": "run"}
		}
	}`), environment())
	require.NoError(t, err)
	assert.Equal(t, []Server{
		{
			Name:              "child",
			Command:           "npx",
			Args:              []string{"-y", "server", ""},
			Env:               map[string]string{"TOKEN": "t", "EMPTY": ""},
			Dir:               "/srv",
			Tools:             Access{Allow: []string{"get_*", "list"}, Deny: []string{"get_secret"}},
			Needs:             map[string][]string{"get_page": {"list", "get_index"}},
			ResultSelect:      map[string]string{"get_page": `{title, n: [.items[] | "${n}"]}`},
			Prefix:            "ops",
			Protocol:          "2025-11-25",
			NoInstructions:    true,
			NoSkills:          true,
			UnlistedResources: true,
			StartTimeout:      20 * time.Second,
			CallTimeout:       30 * time.Second,
		},
		{
			Name:    "web",
			URL:     "https://example.com/mcp?x=1",
			Headers: map[string]string{"Authorization": "Bearer t", "X-Empty": ""},
		},
		{Name: "off", Disabled: true},
		{Name: "plain", Command: "run"},
	}, cfg.Servers)
}

func TestTypes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		members string
		want    string // in the error; "" if there is none
	}{
		{`"type": "stdio", "command": "run"`, ""},
		{`"type": "http", "url": "http://localhost:80/mcp"`, ""},
		{`"type": "streamable-http", "url": "http://localhost"`, ""},
		{`"type": "streamableHttp", "url": "http://localhost"`, ""},
		{`"type": "streamable_http", "url": "http://localhost"`, ""},
		{`"type": "", "url": "http://localhost"`, ""},
		{`"type": "sse", "url": "http://localhost"`, ""},
		{`"type": "sse", "command": "run"`, `type "sse" contradicts`},
		{`"type": "STDIO", "command": "run"`, `type "STDIO" is not supported`},
		{`"type": "stdio", "url": "http://localhost"`, `type "stdio" contradicts`},
		{`"type": "http", "command": "run"`, `type "http" contradicts`},
		{`"command": "run", "url": "http://localhost"`, "want exactly one of command and url"},
		{`"type": "stdio"`, "want exactly one of command and url"},
		{`"type": "http"`, "want exactly one of command and url"},
		{``, "want exactly one of command and url"},
		{`"command": "", "url": ""`, "want exactly one of command and url"},
		{`"command": "run", "protocol": "2025-11-26"`, "the protocol is not known here: want one of 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"},
	}
	for _, test := range tests {
		t.Run(test.members, func(t *testing.T) {
			cfg, err := parseOne(test.members)
			require.NotNil(t, cfg)
			if test.want == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{"s"}, serverNames(cfg))
				return
			}
			require.ErrorContains(t, err, `server "s": `)
			require.ErrorContains(t, err, test.want)
			assert.Empty(t, cfg.Servers)
		})
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	cfg, err := parseOne(`
		"command": "${HOME}/bin/${NAME:-x}",
		"args": ["${A}${B}", "${UNSET:-a default}", "${UNSET:-}", "${EMPTY:-not used}", "a${A}b${UNSET:-c}d"],
		"env": {"KEY": "${SECRET}", "PLAIN": "plain"},
		"cwd": "${HOME}"`,
		"HOME=/home/me", "NAME=tool", "A=1", "B=2", "EMPTY=", "SECRET=${A}")
	require.NoError(t, err)
	assert.Equal(t, []Server{{
		Name:    "s",
		Command: "/home/me/bin/tool",
		Args:    []string{"12", "a default", "", "", "a1bcd"},
		Env:     map[string]string{"KEY": "${A}", "PLAIN": "plain"}, // a value is not expanded again
		Dir:     "/home/me",
	}}, cfg.Servers)

	cfg, err = parseOne(`"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${SECRET}"}`, "HOST=example.com", "SECRET=t")
	require.NoError(t, err)
	assert.Equal(t, "https://example.com/mcp", cfg.Servers[0].URL)
	assert.Equal(t, map[string]string{"Authorization": "Bearer t"}, cfg.Servers[0].Headers)
}

func TestNothingElseIsAVariable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$A", "$A}", "$A$A", "%A%", "$$A", "$(A)", "{env:A}", "{A}", "$ {A}", "~", "`A`", "*"} {
		cfg, err := parseOne(fmt.Sprintf(`"command": "run", "args": [%q]`, text), "A=changed")
		require.NoError(t, err, text)
		assert.Equal(t, []string{text}, cfg.Servers[0].Args)
	}
}

// Text that looks like a reference but is none is an error and is not passed
// on.
func TestBadReferences(t *testing.T) {
	for _, text := range []string{"${}", "${1A}", "${A", "${A-x}", "${A:x}", "${A B}", "${A:-${A}}", "${command:pick}", "${workspaceFolder:x}", "${env:}"} {
		cfg, err := parseOne(fmt.Sprintf(`"command": "run", "args": [%q]`, text), "A=changed")
		assert.ErrorContains(t, err, `server "s": "${`, text)
		assert.Empty(t, cfg.Servers, text)
	}
	cfg, err := parseOne(`"command": "run", "args": ["${NONE:-$}{A}"]`, "A=changed")
	require.NoError(t, err, "the way to write it all the same")
	assert.Equal(t, []string{"${A}"}, cfg.Servers[0].Args)
}

func TestMissingVariables(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]byte(`{"mcpServers": {
		"first": {"command": "${A}", "args": ["${B}", "${SET}", "${A}"], "env": {"Z": "${E}", "Y": "${D:-d}"}, "cwd": "${C}"},
		"fine": {"command": "run"},
		"second": {"url": "https://${HOST}", "headers": {"X": "${H}"}},
		"off": {"disabled": true, "command": "${OFF}"}
	}}`), environment("SET=x"))
	require.NoError(t, err, "each fails when it should start")
	assert.Equal(t, []Server{{Name: "first", Unset: []string{"A", "B", "E", "C"}}, {Name: "fine", Command: "run"}, {Name: "second", Unset: []string{"HOST", "H"}}, {Name: "off", Disabled: true}}, cfg.Servers)
	require.EqualError(t, cfg.Servers[0].Validate(), "environment variables not set: A, B, E, C")
	copied := cfg.Servers[0].Clone()
	copied.Unset[0] = "changed"
	assert.Equal(t, "A", cfg.Servers[0].Unset[0])

	cfg, err = parseOne(`"command": "${A}", "args": ["${"]`)
	require.ErrorContains(t, err, `server "s": `, "it lacks more than variables")
	assert.Empty(t, cfg.Servers)
}

func TestOneBadServerCostsNoOther(t *testing.T) {
	t.Parallel()
	bad := map[string]string{
		"a wrong kind":     `{"command": 5}`,
		"not an object":    `"run"`,
		"a list":           `["run"]`,
		"null":             `null`,
		"nothing":          `{}`,
		"a timeout":        `{"command": "run", "timeout": 5}`,
		"an url":           `{"url": "ftp://x"}`,
		"a header":         `{"url": "http://x", "headers": {"a b": "c"}}`,
		"an env":           `{"command": "run", "env": {"A=B": "c"}}`,
		"quotes \" \n etc": `{}`,
	}
	for name, value := range bad {
		t.Run(name, func(t *testing.T) {
			cfg, err := parseConfig(fmt.Appendf(nil, `{"mcpServers": {"before": {"command": "a"}, %q: %s, "after": {"command": "b"}}}`, name, value), environment())
			require.ErrorContains(t, err, fmt.Sprintf("server %q: ", name))
			assert.NotContains(t, err.Error(), "before")
			assert.NotContains(t, err.Error(), "after")
			assert.Equal(t, []string{"before", "after"}, serverNames(cfg))
		})
	}
}

func TestAllProblemsOfAServer(t *testing.T) {
	t.Parallel()
	_, err := parseOne(`"env": {"": "x", "A": "a\u0000b"}, "headers": {"a:b": "x", "C": "c\r\nd"}`)
	for _, want := range []string{
		"want exactly one of command and url", `the environment variable "" can't be set`, `the environment variable "A" can't be set`,
		`the header "a:…" is malformed`, `the header "C" is malformed`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]byte(`{"mcpServers": {"a": {"command": "first"}, "b": {"command": "b"}, "a": {"command": "second"}, "a": {"disabled": true}}}`), environment())
	require.EqualError(t, err, `server "a": it is defined 3 times, in line 1: keep one, or give each a name of its own`)
	assert.Equal(t, []string{"b"}, serverNames(cfg), "one of them switches it off")

	cfg, err = parseConfig([]byte(`{"mcpServers": {"": {"command": "run"}}}`), environment())
	require.EqualError(t, err, `server "": the name is empty`)
	assert.Empty(t, cfg.Servers)
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"secret", "secret.example.com/mcp", "ftp://secret", "http://", "http:secret", "https:///secret", "http://secret:x y/", "://secret", "http://se cret/", "http://[secret", "http://h/%zzsecret", "file:///secret", "\x7fhttp://secret"} {
		cfg, err := parseOne(`"url": "${URL}"`, "URL="+url)
		require.EqualError(t, err, `server "s": the url is not an http or https URL`, "url %q", url)
		assert.Empty(t, cfg.Servers)
	}
	for _, url := range []string{"http://localhost", "https://user:secret@example.com:8443/mcp?key=1", "HTTP://EXAMPLE.COM", "http://[::1]:80/"} {
		_, err := parseOne(fmt.Sprintf(`"url": %q`, url))
		assert.NoError(t, err, "url %q", url)
	}
}

func TestSecretsAreNotInErrors(t *testing.T) {
	t.Parallel()
	for _, members := range []string{
		`"url": "http://h", "headers": {"Authorization": "${TOKEN}\n"}`,
		`"url": "http://h", "headers": {"bad name": "${TOKEN}"}`,
		`"url": "http://${TOKEN}:x/"`,
		`"command": "${TOKEN}", "url": "http://${TOKEN}"`,
		`"command": "run", "env": {"A": "${TOKEN}\u0000"}`,
		`"command": "run", "env": {"A=": "${TOKEN}"}`,
	} {
		_, err := parseOne(members, "TOKEN=hunter2")
		require.Error(t, err, members)
		assert.NotContains(t, err.Error(), "hunter2", members)
	}
	cfg, err := parseOne(`"command": "run", "args": ["${TOKEN}", "${UNSET}"]`, "TOKEN=hunter2")
	require.NoError(t, err)
	assert.Equal(t, []Server{{Name: "s", Unset: []string{"UNSET"}}}, cfg.Servers)
	for _, members := range []string{
		`"headers": "hunter2"`, `"headers": ["hunter2"]`, `"headers": {"Authorization": ["hunter2"]}`, `"env": "hunter2"`, `"args": "hunter2"`, `"url": ["hunter2"]`,
	} {
		_, err := parseOne(members)
		require.Error(t, err, members)
		assert.NotContains(t, err.Error(), "hunter2", members)
	}
}

func TestHeaderAndEnvValues(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"\r", "\n", "\x00"} {
		_, err := parseOne(`"url": "http://h", "headers": {"X": "${V}"}`, "V=a"+c+"b")
		assert.ErrorContains(t, err, `the header "X" is malformed`, "%q", c)
	}
	_, err := parseOne(`"command": "run", "env": {"X": "${V}"}`, "V=a\x00b")
	assert.ErrorContains(t, err, `the environment variable "X" can't be set`)
	_, err = parseOne(`"command": "run", "env": {"X": "${V}"}`, "V=a\r\nb=c")
	assert.NoError(t, err)
}

// The system ends a string at a NUL byte, so no program can be given one.
func TestNULBytes(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"command": "${V}"`: "the command has a NUL byte",
		`"command": "run", "args": ["a", "--key=${V}", "${V}"]`: "argument 2 has a NUL byte",
		`"command": "run", "cwd": "/${V}"`:                      "the working directory has a NUL byte",
		`"command": "run", "env": {"X": "${V}"}`:                `the environment variable "X" can't be set: it has a NUL byte`,
		`"command": "run", "env": {"X\u0000hunter2": "v"}`:      `the environment variable "X\x00…" can't be set: it has a NUL byte`,
		`"url": "http://h", "headersHelper": "\u0000hunter2"`:   "headersHelper has a NUL byte",
	} {
		cfg, err := parseOne(members, "V=hunter2\x00hunter2")
		require.EqualError(t, err, `server "s": `+want+", which no program can be given", members)
		assert.Empty(t, cfg.Servers)
	}
}

func TestHeaderAndEnvNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "x-api_key", "X.1", "!#$%&'*+.^_`|~"} {
		_, err := parseOne(fmt.Sprintf(`"url": "http://h", "headers": {%q: "v"}`, name))
		assert.NoError(t, err, "header %q", name)
	}
	for name, quoted := range map[string]string{
		"": "", " ": " ", " b": " …", "a b": "a …", "a:": "a:", "a\n": "a\n", "é": "é", "\u212a": "\u212a", "a\"": "a\"", "a(b)": "a(b)", "a/b": "a/b", "a\x7f": "a\x7f",
	} {
		_, err := parseOne(fmt.Sprintf(`"url": "http://h", "headers": {%s: "v"}`, jsonString(t, name)))
		assert.ErrorContains(t, err, fmt.Sprintf("the header %q is malformed", quoted))
	}
	for _, name := range []string{"A", "a.b", "A B", "文", "1"} {
		_, err := parseOne(fmt.Sprintf(`"command": "run", "env": {%q: "v"}`, name))
		assert.NoError(t, err, "variable %q", name)
	}
	for name, quoted := range map[string]string{"": "", "A=B": "A=…", "=": "=", "=B": "=…", "A\x00B": "A\x00…"} {
		_, err := parseOne(fmt.Sprintf(`"command": "run", "env": {%s: "v"}`, jsonString(t, name)))
		assert.ErrorContains(t, err, fmt.Sprintf("the environment variable %q can't be set", quoted))
	}
}

// jsonString returns s as a JSON string.
func jsonString(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func TestOwnTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration
		err   string
	}{
		{`"20s"`, 20 * time.Second, ""},
		{`"1m30s"`, 90 * time.Second, ""},
		{`"5ms"`, 5 * time.Millisecond, ""},
		{`30000`, 30 * time.Second, ""},
		{`100`, 100 * time.Millisecond, ""},
		{`86400000`, 24 * time.Hour, ""},
		{`null`, 0, ""}, // ignored, like every other unknown key
		{`5`, 0, `a number means milliseconds, from 100 up to a day; or write "5s"`},
		{`99`, 0, `or write "99s"`},
		{`0`, 0, `a number means milliseconds`},
		{`-1`, 0, `a number means milliseconds`},
		{`86400001`, 0, `up to a day`},
		{`1e300`, 0, `up to a day`},
		{`9223372036854775807`, 0, `up to a day`},
		{`9223372036854775808`, 0, `up to a day`},
		{`30000.5`, 30*time.Second + 500*time.Microsecond, ``},
		{`"x"`, 0, `"x": want a positive duration such as "20s"`},
		{`""`, 0, `"": want a positive duration`},
		{`"20"`, 0, `"20": want a positive duration`},
		{`"0s"`, 0, `"0s": want a positive duration`},
		{`"-5s"`, 0, `"-5s": want a positive duration`},
		{`"9999999999h"`, 0, `want a positive duration`},
		{`true`, 0, `want a duration such as "20s", or milliseconds`},
		{`{}`, 0, `want a duration`},
		{`["20s"]`, 0, `want a duration`},
	}
	for _, test := range tests {
		t.Run(test.value, func(t *testing.T) {
			for _, key := range []string{"timeout", "callTimeout"} {
				cfg, err := parseOne(fmt.Sprintf(`"command": "run", %q: %s`, key, test.value))
				if test.err != "" {
					assert.ErrorContains(t, err, test.err)
					assert.ErrorContains(t, err, `server "s": `)
					assert.Empty(t, cfg.Servers)
					continue
				}
				if !assert.NoError(t, err) {
					continue
				}
				if key == "timeout" {
					assert.Equal(t, test.want, cfg.Servers[0].StartTimeout)
				} else {
					assert.Equal(t, test.want, cfg.Servers[0].CallTimeout)
				}
			}
		})
	}
}

// The hint in the error of a refused timeout must itself be accepted.
func TestTimeoutHint(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"1", "99", "0", "-1", "86400001"} {
		_, err := parseOne(`"command": "run", "timeout": ` + value)
		require.Error(t, err)
		if _, hint, ok := strings.Cut(err.Error(), "or write "); ok {
			_, err = parseOne(`"command": "run", "timeout": ` + hint)
			assert.NoError(t, err, "timeout %s", value)
		}
	}
}

func TestWrongKinds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		members string
		want    string
	}{
		{`"type": 1`, `"type" is a JSON number, want a string`},
		{`"command": ["run"]`, `"command" is there twice`},
		{`"args": "-y"`, `"args" is a JSON string, want a list of strings`},
		{`"env": ["A=B"]`, `"env" is a JSON array, want an object`},
		{`"cwd": {}`, `"cwd" is a JSON object, want a string`},
		{`"url": true`, `"url" is a JSON bool, want a string`},
		{`"headers": "X: y"`, `"headers" is a JSON string, want an object`},
		{`"disabled": "yes"`, `"disabled" is a JSON string, want true or false`},
		{`"tools": "a"`, `"tools" is a JSON string, want an object`},
		{`"tools": [1]`, `"tools" is a JSON array, want a list of strings`},
		{`"tools": {"denied": ["a"]}`, `"tools" has "denied"`},
		{`"tools": {"a": {"enabled": "no"}}`, `"tools.a.enabled" is a JSON string, want true or false`},
		{`"tools": {"allow": "a"}`, `"tools.allow" is a JSON string, want a list of strings`},
		{`"tools": {"deny": {}}`, `"tools.deny" is a JSON object, want a list of strings`},
		{`"needs": ["a"]`, `"needs" is a JSON array, want an object`},
		{`"needs": {"a": "b"}`, `needs`},
		{`"prefix": 7`, `"prefix" is a JSON number, want a string`},
		{`"args": ["-p", 80]`, `args`},
		{`"env": {"PORT": 80}`, `env`},
		{`"headers": {"X": 1}`, `headers`},
		{`"tools": {"allow": [1]}`, `tools.allow`},
		{`"timeout": true`, `timeout`},
		{`"callTimeout": true`, `callTimeout`},
	}
	for _, test := range tests {
		t.Run(test.members, func(t *testing.T) {
			cfg, err := parseOne(`"command": "run", ` + test.members)
			require.ErrorContains(t, err, `server "s": `)
			assert.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "Go ")
			assert.Empty(t, cfg.Servers)
		})
	}
}

// VS Code's variables may be numbers, and a null is none. Nothing else is taken for text.
func TestNumbersOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ dialect, value, want, problem string }{
		{"vscode", `"a"`, "a", ""},
		{"vscode", `80`, "80", ""},
		{"vscode", `1.50`, "1.50", ""},
		{"vscode", `true`, "", `"env" has a JSON bool, want strings`},
		{"vscode", `["80"]`, "", `"env" has a JSON array, want strings`},
		{"vscode", `{"a": 1}`, "", `"env" has a JSON object, want strings`},
		{"cursor", `80`, "", `"env" has a JSON number, want strings`},
	} {
		servers := map[string]string{"vscode": "servers", "cursor": "mcpServers"}[test.dialect]
		file, err := Parse([]byte(`{"`+servers+`": {"s": {"command": "a", "env": {"PORT": `+test.value+`, "NONE": null}}}}`), "a.json", &Options{Dialect: test.dialect})
		if test.problem != "" {
			assert.ErrorContains(t, err, test.problem, "%+v", test)
			continue
		}
		if assert.NoError(t, err, "%+v", test) && assert.Len(t, file.Servers, 1) {
			assert.Equal(t, map[string]string{"PORT": test.want}, file.Servers[0].Env, "%+v", test)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data, want string
	}{
		{"first character", `x`, "line 1, column 1: "},
		{"a missing colon", `{"mcpServers" {}}`, "line 1, column 15: "},
		{"two trailing commas", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"},,\n  }\n}", "line 4, column 3: "},
		{"in a server", "{\"mcpServers\": {\n\"a\": {\"command\": 'b'}}}", "line 2, column 18: "},
		{"behind comments", "{\n// none\n/* none */ x\n}", "line 3, column 12: "},
		{"a comment without end", "{} /* none", "line 1, column 4: "},
		{"behind the end", "{\"mcpServers\": {}}\n}", "line 2, column 1: "},
		{"behind a BOM", "\ufeff{,", "line 1, column 2: "},
		{"a line break in a string", "{\"a\nb\": 1}", "line 1, column 4: "},
		{"cut off", `{"mcpServers": {`, "unexpected end"},
		{"empty", ``, "unexpected end"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "line 1, column 1: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := parseConfig([]byte(test.data), environment())
			require.ErrorContains(t, err, test.want)
			require.NotNil(t, cfg)
			assert.Empty(t, cfg.Servers)
		})
	}
}

func TestShapeOfTheFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data, want string
	}{
		{"BOM", "\ufeff" + `{"mcpServers": {}}`, ""},
		{"white space", " \r\n\t{\"mcpServers\": {}}\n\n", ""},
		{"no servers", `{"mcpServers": {}}`, ""},
		{"an array", `[]`, "is a JSON array, want an object"},
		{"a string", `"x"`, "is a JSON string, want an object"},
		{"null", `null`, "is not a JSON object"},
		{"no mcpServers", `{"server": {}}`, `no "mcpServers" object`},
		{"mcpServers is null", `{"mcpServers": null}`, `no "mcpServers" object`},
		{"mcpServers is a list", `{"mcpServers": [{"name": "a", "command": "x"}]}`, ""},
		{"no name in a list", `{"mcpServers": [{"name": "a", "command": "x"}, {"command": "y"}]}`, `"mcpServers": number 2 of the list is no object with a "name"`},
		{"a number in a list", `{"mcpServers": [{"name": 7}]}`, `number 1 of the list is no object with a "name"`},
		{"mcpServers is a string", `{"mcpServers": "a"}`, `"mcpServers": is not a JSON object`},
		{"too large", strings.Repeat(" ", 4<<20-1) + "{}", "larger than 4194304 bytes"},
		{"nested too deep", strings.Repeat("[", 20_000), "exceeded max depth"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := parseConfig([]byte(test.data), environment())
			require.NotNil(t, cfg)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			assert.Empty(t, cfg.Servers)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		return path
	}
	t.Setenv("MCPHYBRID_TEST_TOKEN", "t0k")

	cfg, err := Load(write("good.json", `{"mcpServers": {"b": {"command": "run", "args": ["${MCPHYBRID_TEST_TOKEN}"]}, "a": {"url": "http://h"}}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "a"}, serverNames(cfg))
	assert.Equal(t, []string{"t0k"}, cfg.Servers[0].Args)

	path := write("bad.json", `{"mcpServers": {"b": {"command": "run"}, "a": {}, "c": {"command": "${MCPHYBRID_TEST_UNSET}"}}}`)
	cfg, err = Load(path, nil)
	require.EqualError(t, err, "mcphybrid: "+path+": server \"a\": want exactly one of command and url")
	assert.Equal(t, []string{"b", "c"}, serverNames(cfg))

	path = filepath.Join(dir, "missing.json")
	cfg, err = Load(path, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, 1, strings.Count(err.Error(), path), err)
	require.NotNil(t, cfg)
	assert.Empty(t, cfg.Servers)

	path = write("large.json", `{"mcpServers": {"a": {"command": "run"}}}`+strings.Repeat(" ", 4<<20))
	cfg, err = Load(path, nil)
	require.EqualError(t, err, "mcphybrid: "+path+": larger than 4194304 bytes")
	require.NotNil(t, cfg)
	assert.Empty(t, cfg.Servers)

	cfg, err = Load(dir, nil)
	require.ErrorContains(t, err, "is a directory")
	assert.Equal(t, 1, strings.Count(err.Error(), dir), err)
	require.NotNil(t, cfg)
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"mcpServers": {}}`, `{"mcpServers": null}`, "\ufeff{\"mcpServers\": {\"a\": {\"command\": \"b\"}}}",
		`{"mcpServers": {"a": {"command": "${SET} ${UNSET:-x}", "args": ["$A"], "env": {"A": "${UNSET}"}}}}`,
		`{"mcpServers": {"a": {"url": "http://h", "headers": {"a b": "c"}, "timeout": 5}, "b": {"url": "x"}, "a": {"disabled": true}}}`,
		`{"mcpServers": {"\ud800\n": {"type": "sse"}, "": {"command": "x"}, "d": {"tools": {"allow": ["["]}, "callTimeout": "-1s"}}}`,
		`{"mcpServers": {"a": [], "b": 1, "c": null, "d": {"args": 1}}`, `{"mcpservers": {"a": {"command": "b"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := parseConfig(data, environment("SET=a b", "EMPTY="))
		require.NotNil(t, cfg)
		seen := make(map[string]bool)
		for _, sc := range cfg.Servers {
			if !sc.Disabled && sc.Unset == nil {
				require.NoError(t, sc.Validate())
			}
			require.False(t, seen[sc.Name], "server %q is there twice", sc.Name)
			seen[sc.Name] = true
		}
		members := membersOfServers(data)
		if members == nil {
			return
		}
		slices.Sort(members)
		members = slices.Compact(members)
		var problems []error
		if err != nil {
			problems = err.(interface{ Unwrap() []error }).Unwrap()
		}
		require.Equal(t, len(members), len(cfg.Servers)+len(problems))
		for _, problem := range problems {
			named := false
			for _, m := range members {
				named = named || strings.HasPrefix(problem.Error(), fmt.Sprintf("server %q: ", m))
			}
			require.True(t, named, "no server is named in %q", problem)
		}
	})
}

// membersOfServers returns the names in the mcpServers object, including
// repeated ones. It returns nil if data has no such object.
func membersOfServers(data []byte) []string {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var file map[string]json.RawMessage
	if len(data) > 4<<20 || json.Unmarshal(data, &file) != nil || len(file) > 1 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(file["mcpServers"]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	names := []string{}
	for dec.More() {
		name, _ := dec.Token()
		names = append(names, name.(string))
		var value json.RawMessage
		_ = dec.Decode(&value)
	}
	return names
}

// A configuration that holds a function can still be written as JSON.
func TestServerJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(Server{Name: "a", OnNotification: func(mcp.JSONRPCNotification) {}, InProcess: mcptest.Server("a")})
	require.NoError(t, err)
	assert.NotContains(t, string(data), "OnNotification")
	assert.NotContains(t, string(data), "InProcess")
}

// A key that is there twice is an error, wherever it is: the second "deny" would
// switch on what the first one switches off.
func TestKeysTwiceWithinAServer(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		`{"command": "x", "tools": {"deny": ["rm"], "deny": []}}`,
		`{"command": "x", "tools": {"allow": ["a"], "allow": ["a", "rm"]}}`,
		`{"command": "x", "env": {"A": "1", "A": "2"}}`,
		`{"url": "http://x", "headers": {"A": "1", "A": "2"}}`,
		`{"command": "x", "needs": {"A": ["b"], "A": []}}`,
	} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {"s": `+server+`}}`), 0o600))
		cfg, err := Load(path, nil)
		assert.ErrorContains(t, err, "is there twice", server)
		assert.Empty(t, cfg.Servers)
	}
}
