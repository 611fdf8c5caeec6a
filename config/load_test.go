package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// environment returns a lookup function for NAME=value pairs.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if key, value, _ := strings.Cut(p, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

// one reads a file whose only server, s, has the given members.
func one(t *testing.T, o source, members string) (outcome, []string) {
	t.Helper()
	if o.env == nil {
		o.env = environment()
	}
	if o.Dialect == "" {
		o.Dialect = "mcphybrid"
	}
	document := fmt.Sprintf(`{"mcpServers": {"s": {%s}}}`, members)
	for _, d := range dialects {
		if d.name == o.Dialect {
			document = strings.Replace(document, "mcpServers", strings.ReplaceAll(d.at[0], ".", `": {"`), 1) + strings.Repeat("}", strings.Count(d.at[0], "."))
		}
	}
	file, err := parseJSON([]byte(document), o)
	require.NoError(t, err, document)
	require.Len(t, file.servers, 1)
	return file.servers[0], file.notes
}

func TestRecognition(t *testing.T) {
	server := `{"s": {"command": "run"}}`
	tests := []struct {
		path, data, want string
	}{
		{"", `{"mcpServers": ` + server + `}`, "mcphybrid"},
		{"dir/mcp.json", `{"mcpServers": ` + server + `}`, "mcphybrid"},
		{"/home/ann/.cursor/mcp.json", `{"mcpServers": ` + server + `}`, "cursor"},
		{"x.cursor/mcp.json", `{"mcpServers": ` + server + `}`, "mcphybrid"},
		{".mcp.json", `{"mcpServers": ` + server + `}`, "claude-code"},
		{"a.mcp.json", `{"mcpServers": ` + server + `}`, "mcphybrid"},
		{"claude_desktop_config.json", `{"mcpServers": ` + server + `}`, "claude-desktop"},
		{"/home/ann/.claude.json", `{"projects": {}}`, "claude-code"},
		{"/home/ann/.gemini/settings.json", `{"mcpServers": ` + server + `, "mcp": {"allowed": ["s"]}}`, "gemini"},
		{"settings.json", `{"mcpServers": ` + server + `, "mcp": {"allowed": ["s"]}}`, "gemini"},
		{"a.json", `{"mcpServers": {"s": {"httpUrl": "http://h", "type": "http"}, "t": {"command": "x", "trust": true, "autoApprove": []}}, "mcp": {"allowed": ["s"]}}`, "gemini"},
		{"a.json", `{"mcpServers": {"s": {"httpUrl": "http://h", "type": "http"}}, "mcp": {"x": 1}, "extensions": {}}`, "gemini"},
		{"a.json", `{"mcpServers": [{"name": "s", "url": "http://h", "requestOptions": {}}]}`, "continue"},
		{"a.json", `{"mcpServers": [{"name": "s", "command": "a"}]}`, "mcphybrid"},
		{"config.yaml", `{"mcpServers": [{"name": "s", "command": "a"}]}`, "continue"},
		{"config.yaml", `{"extensions": {"s": {"type": "stdio", "cmd": "a"}}}`, "goose"},
		{"settings.json", `{"amp.mcpServers": ` + server + `}`, "amp"},
		{"x.json", `{"name": "a/b", "packages": [{"registryType": "npm", "identifier": "x"}]}`, "registry"},
		{"x.json", `{"name": "b", "server": {"mcp_config": {"command": "x"}}}`, "mcpb"},
		{"plugin.json", `{"mcpServers": ` + server + `, "packages": [], "server": {"mcp_config": {}}}`, "mcphybrid"},
		{"a.json", `{"mcpServers": {"s": {"httpUrl": "http://h"}}}`, "gemini"},
		{"a.json", `{"mcpServers": {"s": {"serverUrl": "http://h"}}}`, "windsurf"},
		{"a.json", `{"mcpServers": {"s": {"command": "a", "autoApprove": []}}}`, "cline"},
		{"a.json", `{"mcpServers": {"s": {"command": "a", "autoApprove": [], "trust": true}}}`, "mcphybrid"},
		{"a.json", `{"mcpServers": {"s": {"baseUrl": "http://h"}}}`, "cherry-studio"},
		{"a.json", `{"mcpServers": {"s": {"command": "a", "registryUrl": "http://h"}}}`, "cherry-studio"},
		{"mcp_settings.json", `{"mcpServers": ` + server + `}`, "cline"},
		{".cursor/mcp.json", `{"servers": ` + server + `}`, "vscode"},
		{"a.json", `{"servers": ` + server + `}`, "vscode"},
		{"settings.json", `{"mcp": {"servers": ` + server + `}}`, "vscode"},
		{"settings.json", `{"mcp": {"servers": {"s": {"type": "local", "command": ["a"]}}}}`, "opencode"},
		{"a.json", `{"mcp": {"s": {"type": "local", "command": ["a"]}}}`, "opencode"},
		{"a.json", `{"mcp": {"s": {"type": "stdio", "command": "a"}}}`, "crush"},
		{"crush.json", `{"mcp": ` + server + `}`, "crush"},
		{"a.json", `{"context_servers": ` + server + `}`, "zed"},
		{"config.toml", `{"mcp_servers": ` + server + `}`, "codex"},
	}
	for _, test := range tests {
		t.Run(test.path+" "+test.data, func(t *testing.T) {
			t.Parallel()
			file, err := parseJSON([]byte(test.data), source{path: test.path, env: environment()})
			require.NoError(t, err)
			assert.Equal(t, test.want, file.dialect)
		})
	}
}

// Where other clients have something else in "tools" than switches, it is nothing to us.
func TestToolsOfOtherClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ dialect, data string }{
		{"", `{"mcpServers": {"s": {"command": "a"}}, "tools": true}`},
		{"", `{"mcpServers": {"s": {"command": "a"}}, "tools": ["a"]}`},
		{"", `{"mcpServers": {"s": {"command": "a"}}, "tools": {"a": "x", "b": 1}}`},
		{"opencode", `{"mcp": {"s": {"type": "local", "command": ["a"]}}, "tools": null}`},
		{"opencode", `{"mcp": {"s": {"type": "local", "command": ["a"]}}, "tools": {"a": null, "b": true}}`},
	} {
		file, err := Parse([]byte(test.data), "a.json", &Options{Dialect: test.dialect})
		require.NoError(t, err, test.data)
		require.Len(t, file.Servers, 1, test.data)
		assert.Empty(t, file.Servers[0].Tools, test.data)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, dialect, data, want string }{
		{"", "", `{"mcpServers": {}, "servers": {}}`, "different clients' servers are in it: name one of the dialects mcphybrid, "},
		{"", "", `{"mcpServers": {}, "mcpServers": {}}`, `"mcpServers" is there twice`},
		{"", "", `{"mcp": {"servers": {}, "servers": {}}}`, `"mcp": "servers" is there twice`},
		{"", "claude", `{"mcpServers": {}}`, `there is no dialect "claude": want one of mcphybrid, claude-desktop, `},
		{"", "vscode", `{"mcpServers": {}}`, `no "servers" object, where vscode has its servers`},
		{"a.toml", "", ``, `no "mcp_servers" table`},
		{"", "codex", `{"mcp_servers": {}}`, "line 1, column 1: "},
		{"", "", `{"mcpServers": {}, "enabledMcpServers": {"s": true}}`, `"enabledMcpServers" is a JSON object, want a list of strings`},
		{"/x/.claude.json", "", `{"mcpServers": {"s": {}}, "projects": {"/w": {"enabledMcpServers": "s"}}}`, `"enabledMcpServers" is a JSON string, want a list of strings`},
		{"", "", `{"mcpServers": {}, "disabledMcpServers": "s"}`, `"disabledMcpServers" is a JSON string, want a list of strings`},
		{"", "", `{"mcpServers": {}, "mcp": {"excluded": [1]}}`, `"mcp.excluded" is a JSON array, want a list of strings`},
		{"", "", `{"mcpServers": {}, "mcp": {"excluded": {"s": true}}}`, `"mcp.excluded" is a JSON object, want a list of strings`},
		{"", "", `{"mcpServers": {}, "mcp": {"allowed": {"s": true}}}`, `"mcp.allowed" is a JSON object, want a list of strings`},
		{"", "", `{"mcpServers": [{"name": "a", "command": "x"}, {"name": "b", "Name": "a", "command": "x"}]}`, `"mcpServers": number 2 of the list: "Name" is there twice`},
		{"", "", `{"mcpServers": {}, "mcp": {"excluded": [], "excluded": ["s"]}}`, `"mcp": "excluded" is there twice`},
		{"", "", `{"mcpServers": {}, "excludeTools": ["` + strings.Repeat(`a", "`, maxSwitches) + `a"]}`, "lists of tools have more than 1000 entries"},
		{"", "", `{"mcpServers": {}, "tools": {"a": false, "a": true}}`, `"tools": "a" is there twice`},
		{"", "", `{"mcpServers": {}, "tools": {"exclude": {"a": true}}}`, `"tools.exclude" is a JSON object, want a list of strings`},
		{"", "opencode", `{"mcp": {}, "tools": {"a*": "false"}}`, `"tools": "a*" is a JSON string, want true or false`},
		{"", "opencode", `{"mcp": {}, "tools": true}`, `"tools": is not a JSON object`},
		{"/x/.claude.json", "", `{"projects": []}`, `"projects": `},
	}
	for _, test := range tests {
		_, err := parse([]byte(test.data), source{path: test.path, Options: Options{Dialect: test.dialect, Workspace: "/w"}, env: environment()})
		assert.ErrorContains(t, err, test.want, test.data)
	}
	var many strings.Builder
	for i := range 1000 + 1 {
		fmt.Fprintf(&many, `"%d": {}, `, i)
	}
	_, err := parse([]byte(`{"mcpServers": {`+many.String()+`}}`), source{env: environment()})
	assert.EqualError(t, err, `"mcpServers": more than 1000 servers`)
	_, err = parse([]byte(strings.Repeat(" ", 256<<10+1)), source{Options: Options{Dialect: "codex"}})
	assert.EqualError(t, err, "larger than 262144 bytes")
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"disabled": true`, `"Disabled": true`, `"enabled": false`, `"isActive": false`, `"is_active": false`, `"disabled": true, "enabled": true`,
		`"enabled": false, "disabled": false`, `"disabled": true, "args": 7`, `"disabled": true, "url": "${NOT_SET}", "oauth": 5, "autoApprove": []`,
	} {
		for _, d := range dialects {
			if d.rewrite != nil { // a file with one server, which is not switched off there
				continue
			}
			name := d.name
			o := source{Options: Options{Dialect: name}}
			s, notes := one(t, o, `"command": "run", `+member)
			assert.Equal(t, Server{Name: "s", Disabled: true}, s.Server, "%s: %s", name, member)
			assert.Empty(t, notes)
		}
	}
	for _, member := range []string{`"disabled": false`, `"enabled": true`, `"isActive": true`, `"disabled": null`, `"enabled": null`} {
		s, _ := one(t, source{}, `"command": "run", `+member)
		assert.Equal(t, Server{Name: "s", Command: "run"}, s.Server, member)
	}
	file, err := parse([]byte(`{"mcpServers": {"s": {"command": "run"}, "t": {"command": "run"}, "s": {"disabled": true}, "s": {"command": "run"}}}`), source{env: environment()})
	require.NoError(t, err)
	require.Len(t, file.servers, 2)
	assert.EqualError(t, file.servers[0].err, "it is defined 3 times, in line 1: keep one, or give each a name of its own")
	assert.NoError(t, file.servers[1].err)

	// A switch of the wrong kind starts nothing.
	for _, member := range []string{
		`"disabled": "true"`, `"enabled": 0`, `"disabled": false, "disabled": true`, `"omit_tools_from": ["all"]`, `"omit_tools_from": "direct"`, `"omit_tools_from": ["direct", null]`,
		`"disabledTools": "a"`, `"disabledTools": [null]`, `"enabledTools": {"a": true}`, `"enabledTools": ["a"], "includeTools": ["b"]`, `"tools": {"allow": ["a"]}, "enabledTools": ["b"]`,
	} {
		s, _ := one(t, source{}, `"command": "run", `+member)
		assert.Error(t, s.err, member)
		assert.Equal(t, Server{Name: "s"}, s.Server, member)
	}
}

func TestToolLists(t *testing.T) {
	t.Parallel()
	tests := []struct {
		member      string
		allow, deny []string
	}{
		{`"disabledTools": ["a", "b*"]`, nil, []string{"a", "b*"}},
		{`"disabled_tools": ["a"], "excludeTools": ["b"], "disabledTools": ["c"]`, nil, []string{"a", "b", "c"}},
		{`"enabledTools": ["a"]`, []string{"a"}, nil},
		{`"enabled_tools": []`, nil, []string{"*"}},
		{`"includeTools": ["a(x)"], "excludeTools": ["b(y)"]`, []string{"a(x)", "a"}, []string{"b(y)", "b"}},
		{`"tools": ["*"]`, []string{"*"}, nil},
		{`"tools": []`, nil, []string{"*"}},
		{`"tools": {"allow": ["a"], "deny": ["b"]}, "disabledTools": ["c"]`, []string{"a"}, []string{"b", "c"}},
		{`"tools": {"allow": []}`, nil, nil},
		{`"tools": {"a": {"enabled": false}, "b": {"approval_mode": "auto", "disabled": true}, "c": {"enabled": true}}`, nil, []string{"a", "b"}},
		{`"tools": null`, nil, nil},
		{`"omit_tools_from": ["deferred", "direct", "code_mode"]`, nil, []string{"*"}},
		{`"omit_tools_from": ["direct", "deferred"]`, nil, []string{"*"}},
		{`"omit_tools_from": ["direct", "code_mode"]`, nil, nil},
		{`"omit_tools_from": ["deferred"], "enabled_tools": ["a"]`, []string{"a"}, nil},
		{`"omit_tools_from": []`, nil, nil},
	}
	for _, test := range tests {
		s, _ := one(t, source{}, `"command": "run", `+test.member)
		require.NoError(t, s.err, test.member)
		assert.Equal(t, test.allow, s.Tools.Allow, test.member)
		assert.Equal(t, test.deny, s.Tools.Deny, test.member)
	}
}

func TestSwitchesOfTheFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dialect, members string
		off              []string
		deny             []string // of server a
	}{
		{"mcphybrid", `"disabledMcpServers": ["a"]`, []string{"a"}, nil},
		{"mcphybrid", `"disabledMcpjsonServers": ["a", "x"], "excludeMCPServers": ["b"]`, []string{"a", "b"}, nil},
		{"claude-code", `"enabledMcpServers": ["b", "x"]`, []string{"a"}, nil},
		{"mcphybrid", `"enabledMcpServers": []`, []string{"a", "b"}, nil},
		{"mcphybrid", `"enabledMcpServers": ["a", "b"], "disabledMcpServers": ["b"]`, []string{"b"}, nil},
		{"gemini", `"mcp": {"allowed": ["a", "b"]}, "allowMCPServers": ["b"]`, []string{"a"}, nil},
		{"gemini", `"mcp": {"allowed": []}`, []string{"a", "b"}, nil},
		{"gemini", `"tools": {"exclude": ["x", "a__y", "mcp_a_z", "b__w"]}`, nil, []string{"a??y", "b??w", "mcp?a?z", "x", "y", "z"}},
		{"mcphybrid", `"excludeTools": ["x"]`, nil, []string{"x"}},
		{"vscode", `"chat.mcp.enabled": false`, []string{"a", "b"}, nil},
		{"vscode", `"chat.mcp.access": "none"`, []string{"a", "b"}, nil},
		{"zed", `"disable_ai": true`, []string{"a", "b"}, nil},
		{"vscode", `"chat.disableAIFeatures": true`, []string{"a", "b"}, nil},
		{"opencode", `"tools": {"*": false, "bash": true}`, nil, []string{"*"}},
		{"opencode", `"tools": {"a_?x": false, "b_*": false}`, nil, []string{"?x"}},
		{"opencode", `"tools": {"a**` + strings.Repeat("*", 990) + `x": false}`, nil, []string{"*x"}},
		{"crush", `"options": {"disabled_tools": ["x", "mcp_a_x"]}`, nil, []string{"x"}},
		{"opencode", `"tools": {"a_issue_delete": false}`, nil, []string{"issue?delete"}}, // of issue.delete too
	}
	for _, test := range tests {
		var at string
		for _, d := range dialects {
			if d.name == test.dialect {
				at = d.at[len(d.at)-1]
			}
		}
		if test.dialect == "vscode" {
			at = "servers"
		}
		file, err := parse(fmt.Appendf(nil, `{%q: {"a": {"command": "run"}, "b": {"command": "run"}}, %s}`, at, test.members), source{Options: Options{Dialect: test.dialect}, env: environment()})
		require.NoError(t, err, test.members)
		var off []string
		for _, s := range file.servers {
			require.NoError(t, s.err)
			if s.Disabled {
				off = append(off, s.Name)
			}
		}
		assert.Equal(t, test.off, off, test.members)
		assert.Equal(t, test.deny, file.servers[0].Tools.Deny, test.members)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s, notes := one(t, source{}, `"command": "run", "comand": "x", "whatever": 1, "description": "d", "autoApprove": ["a"], "trust": false, "required": null, "x\ny": 1`)
	require.NoError(t, s.err)
	assert.Equal(t, []string{
		`server "s": "comand" is not known here and has no effect; did you mean "command"?`,
		`server "s": "whatever" is not known here and has no effect`,
		`server "s": "autoApprove": there are no approvals here, so it has no effect`,
		`server "s": "x\ny" is not known here and has no effect`,
	}, notes)

	var many strings.Builder
	for i := range 100 + 5 {
		fmt.Fprintf(&many, `, "x%d": 1`, i)
	}
	_, notes = one(t, source{}, `"command": "run"`+many.String()+`, "`+strings.Repeat("x", 10_000)+`": 1`)
	require.Len(t, notes, 100+1)
	assert.Equal(t, "there are 6 more notes", notes[100])
	_, notes = one(t, source{}, `"command": "run", "`+strings.Repeat("x", 10_000)+`": 1`)
	assert.LessOrEqual(t, len(notes[0]), 2010)
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dialect, member string
		start, call     time.Duration
		err             string
	}{
		{"mcphybrid", `"timeout": 30000, "callTimeout": "5s"`, 30 * time.Second, 5 * time.Second, ""},
		{"mcphybrid", `"timeout": 30`, 0, 0, `a number means milliseconds, from 100 up to a day; or write "30s"`},
		{"vscode", `"timeout": 30000`, 30 * time.Second, 0, ""},
		{"claude-code", `"timeout": 30000`, 0, 30 * time.Second, ""},
		{"cline", `"timeout": 60`, 0, time.Minute, ""},
		{"cline", `"timeout": "20s"`, 20 * time.Second, 0, ""}, // ours
		{"cline", `"timeout": 60000`, 0, 0, "a number means seconds, from 0.001 up to an hour"},
		{"zed", `"timeout": 60`, 0, time.Minute, ""},
		{"gemini", `"timeout": 60000`, time.Minute, time.Minute, ""},
		{"opencode", `"timeout": 5000`, 5 * time.Second, 5 * time.Second, ""},
		{"crush", `"timeout": 120`, 2 * time.Minute, 0, ""},
		{"mcphybrid", `"startup_timeout_ms": 5000, "startup_timeout_sec": 0.5, "tool_timeout_sec": 7200`, 500 * time.Millisecond, 2 * time.Hour, ""},
		{"mcphybrid", `"tool_timeout_sec": 1e5`, 0, 0, "a number means seconds, from 0.001 up to a day"},
		{"mcphybrid", `"tool_timeout_sec": 0`, 0, 0, "a number means seconds"},
		{"opencode", `"timeout": {"startup": 10000, "request": 60000}`, 10 * time.Second, time.Minute, ""},
		{"mcphybrid", `"timeout": {"request": 60000}`, 0, time.Minute, ""},
		{"mcphybrid", `"timeout": {"start": 1}`, 0, 0, `"timeout.start" is not known here: want "startup" and "request"`},
		{"mcphybrid", `"timeout": {"startup": true}`, 0, 0, `"timeout.startup" is a JSON bool`},
		{"mcphybrid", `"timeout": {"startup": 500, "startup": 600}`, 0, 0, `"timeout": "startup" is there twice`},
		{"mcphybrid", `"timeout": [1]`, 0, 0, `"timeout" is a JSON array, want a duration such as "20s", or milliseconds`},
	}
	for _, test := range tests {
		s, _ := one(t, source{Options: Options{Dialect: test.dialect}}, `"command": "run", `+test.member)
		if test.err != "" {
			assert.ErrorContains(t, s.err, test.err, test.member)
			continue
		}
		require.NoError(t, s.err, test.member)
		assert.Equal(t, test.start, s.StartTimeout, test.member)
		assert.Equal(t, test.call, s.CallTimeout, test.member)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, data string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(data), 0o600))
	}
	write("token", " ${A} \n")
	write("large", strings.Repeat("x", 1<<20+1))
	o := source{path: filepath.Join(folder, "x.json"), Options: Options{Workspace: "/home/me/space"}, env: environment("A=1", "EMPTY=", "B=$A", "_09azAZ=2", "az=3", "zA=4", "Za=5")}
	tests := []struct {
		dialect, text, want, err string
	}{
		{"mcphybrid", "${A}${env:A}-${B}", "11-$A", ""},
		{"mcphybrid", "${X:-x}${env:X:-y}${EMPTY:-z}", "xy", ""},
		{"mcphybrid", "${A:?must}", "1", ""},
		{"mcphybrid", "${X:?must}", "", "environment variables not set: X"},
		{"mcphybrid", "${workspaceFolder}/${workspaceFolderBasename}", "/home/me/space/space", ""},
		{"mcphybrid", "${file:token}", "${A}", ""},
		{"mcphybrid", "${file:none}", "", `none": no such file`},
		{"mcphybrid", "${file:large}", "", `large": larger than 1048576 bytes`},
		{"mcphybrid", "${file:.}", "", `is not a regular file`},
		{"mcphybrid", "$A {env:A} $(A) {A}", "$A {env:A} $(A) {A}", ""},
		{"gemini", "$A/${A}/$A_/$ $5", "", "environment variables not set: A_"},
		{"gemini", "$A/$ $5$", "1/$ $5$", ""},
		{"gemini", "$A:$A@$A[$A`$A{", "1:1@1[1`1{", ""},
		{"gemini", "$_09azAZ/$az/$zA/$Za", "2/3/4/5", ""},
		{"crush", "x$(date)", "", `"$(…)" runs a command`},
		{"crush", "$A${X:-y}", "1y", ""},
		{"opencode", "{env:A}{file:token}{env:A", "1${A}{env:A", ""},
		{"opencode", "{env:X}", "", "environment variables not set: X"},
		{"opencode", "{file:~/surely/not/there}", "", "no such file"},
		{"mcphybrid", "${input:x}", "", `"${input:x}": "inputs" does not have it`},
		{"mcphybrid", "x${A", "", `"${" has no "}"`},
		{"mcphybrid", "x${{ A }}", "", `"${{" is not a reference that is known here: want ${{ secrets.NAME }}`},
		{"mcphybrid", "x${{ secrets.A", "", `"${{" is not a reference that is known here: want ${{ secrets.NAME }}`},
		{"mcphybrid", "${X:-${A}}", "", `"${X:-…}": a reference within a reference is not supported`},
		{"crush", "${X:-$A}", "", "a reference within a reference"},
		{"crush", "${X:-a$(cat b)}", "", "a reference within a reference"},
		{"opencode", "${X:-{env:A}}", "", "a reference within a reference"},
		{"opencode", "${X:-$A}", "$A", ""},
		{"crush", "${X:-$}", "$", ""},
		{"mcphybrid", "${env:}", "", `"${env:}" is not a reference that is known here`},
	}
	for _, test := range tests {
		o.Dialect = test.dialect
		s, _ := one(t, o, fmt.Sprintf(`"command": "run", "args": [%q]`, test.text))
		if test.err != "" {
			assert.ErrorContains(t, s.err, test.err, test.text)
			assert.Equal(t, Server{Name: "s"}, s.Server)
			continue
		}
		require.NoError(t, s.err, test.text)
		assert.Equal(t, []string{test.want}, s.Args, test.text)
	}
}

// What is no value stays as it is, so a reference there is an error.
func TestReferencesInNames(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		`"env": {"${A}": "x"}`:                       "the name of an environment variable has a reference",
		`"env": {"a${": "x"}`:                        "the name of an environment variable has a reference",
		`"env_vars": ["${A}"]`:                       "the name of an environment variable has a reference",
		`"headers": {"${A}": "x"}`:                   "the name of a header has a reference",
		`"env_http_headers": {"${A}": "A"}`:          "the name of a header has a reference",
		`"prefix": "${A}"`:                           `"prefix" has a reference`,
		`"disabledTools": ["${A}"]`:                  "a list of tools has a reference",
		`"tools": {"allow": ["x", "${A}"]}`:          "a list of tools has a reference",
		`"needs": {"${A}": ["x"]}`:                   `"needs" has a reference`,
		`"needs": {"x": ["${A}"]}`:                   `"needs" has a reference`,
		`"env": {"A": "${A}", "$A": "", "{A}": "x"}`: "",
	} {
		s, _ := one(t, source{env: environment("A=1")}, `"command": "run", `+member)
		if want == "" {
			assert.NoError(t, s.err, member)
		} else {
			assert.ErrorContains(t, s.err, want, member)
		}
	}
	for dialect, reference := range map[string]string{"crush": "$A", "gemini": "$A", "opencode": "{env:A}"} {
		s, _ := one(t, source{Options: Options{Dialect: dialect}, env: environment("A=1")}, `"command": "run", "env": {"`+reference+`": "x"}`)
		assert.ErrorContains(t, s.err, "the name of an environment variable has a reference", dialect)
	}
	file, err := parse([]byte(`{"mcpServers": {"${A}": {"command": "x"}}}`), source{env: environment("A=1")})
	require.NoError(t, err)
	assert.ErrorContains(t, file.servers[0].err, "the name of the server has a reference")
	for dialect, data := range map[string]string{
		"opencode": `{"mcp": {}, "tools": {"{env:A}*": false}}`, "claude-code": `{"mcpServers": {}, "disabledMcpServers": ["${A}"]}`,
		"gemini": `{"mcpServers": {}, "mcp": {"allowed": ["$A"]}}`,
	} {
		_, err = parse([]byte(data), source{Options: Options{Dialect: dialect}, env: environment("A=1")})
		assert.ErrorContains(t, err, "a list of servers or tools has a reference", dialect)
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	parse := func(servers string, input func(Input) (string, error)) found {
		file, err := parse([]byte(`{"inputs": [
			{"type": "promptString", "id": "a", "description": "The key", "password": true, "default": "d"},
			{"type": "pickString", "id": "b", "options": ["x", {"label": "Y", "value": "y"}]}
		], "servers": {`+servers+`}}`), source{Options: Options{Input: input}, env: environment()})
		require.NoError(t, err)
		return file
	}
	var asked []Input
	ask := func(in Input) (string, error) {
		asked = append(asked, in)
		if in.ID == "b" {
			return "", errors.New("the user went away")
		}
		return "${A}", nil
	}
	file := parse(`
		"off": {"command": "${input:a}", "disabled": true},
		"bad": {"command": "${input:a}", "args": ["${NOT_SET}"]},
		"one": {"command": "${input:a}", "args": ["${input:a}"]},
		"two": {"command": "${input:b}"},
		"three": {"url": "${input:a}", "headers": {"X": "${input:b}"}}`, ask)
	assert.Equal(t, []Input{{ID: "a", Description: "The key", Password: true, Default: "d"}, {ID: "b", Choices: []string{"x", "y"}}}, asked)
	assert.EqualError(t, file.servers[1].err, "environment variables not set: NOT_SET")
	assert.Equal(t, Server{Name: "one", Command: "${A}", Args: []string{"${A}"}, Secrets: []string{"${A}"}}, file.servers[2].Server, "an answer is not expanded")
	assert.EqualError(t, file.servers[3].err, `"${input:b}": the user went away`)
	assert.EqualError(t, file.servers[4].err, `"${input:b}": the user went away`)

	file = parse(`"one": {"command": "${input:a}"}`, nil)
	assert.EqualError(t, file.servers[0].err, `"${input:a}": the user must be asked for "The key": set a function that does, or write the value in its place`)
}

func TestEnvFile(t *testing.T) {
	t.Parallel()
	variables, err := parseEnv("\ufeffA=1\r\n\r\n # c\nexport B = two words # c\nC='${A} #'\nD=\"a\\nb\\\"\\\\n\" # c\nE=\"x\ny\"\nF=\nG=a#b\nH=x=y\nA=2\nI=`q`\nJ='it\\'\nK= v\t \nL=v  # c")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"A": "2", "B": "two words", "C": "${A} #", "D": "a\nb\"\\n", "E": "x\ny", "F": "", "G": "a#b", "H": "x=y", "I": "q", "J": "it\\", "K": "v", "L": "v",
	}, variables)
	for data, want := range map[string]string{
		"A=1\nB":          "line 2: want NAME=value",
		"=x":              "line 1: want NAME=value",
		"A B=x":           "line 1: want NAME=value",
		"A='1\n2'\nB=\"x": "line 3: the value of B has no closing quote",
	} {
		_, err := parseEnv(data)
		assert.EqualError(t, err, want)
	}
	s, _ := one(t, source{}, `"command": "run", "envFile": "/not/there"`)
	assert.EqualError(t, s.err, `"envFile" "/not/there": no such file or directory`)
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	full := &OAuth{
		ClientID: "id", ClientSecret: "1", RedirectURI: "http://localhost:8080/callback", Scopes: []string{"a", "b"},
		MetadataURL: "https://m", AuthorizationURL: "https://a", TokenURL: "https://t",
	}
	for _, test := range []struct {
		member string
		want   *OAuth
		notes  []string
	}{
		{`"oauth": {"clientId": "id", "clientSecret": "${A}", "callbackPort": 8080, "authServerMetadataUrl": "https://m", "scopes": "a b", "authorizationUrl": "https://a", "tokenUrl": "https://t"}`, full, nil},
		{`"auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "1", "redirect_uri": "http://localhost:8080/callback", "authServerMetadataUrl": "https://m", "scope": ["a", "b"], "authorizationEndpoint": "https://a", "tokenEndpoint": "https://t"}`, full, nil},
		{`"scopes": ["a"], "oauth_resource": "r"`, &OAuth{Scopes: []string{"a"}, Resource: "r"}, nil},
		{`"oauth": {}`, &OAuth{}, nil},
		{`"oauth": {"client_id": "id", "callback_url": "http://localhost:81/x"}`, &OAuth{ClientID: "id", RedirectURI: "http://localhost:81/x"}, nil},
		{`"oauth": {"xaa": true}`, &OAuth{}, []string{`server "s": "oauth.xaa" is not known here and has no effect`}},
		{`"oauth": {"enabled": false, "clientId": "id"}`, nil, nil},
		{`"oauth": false`, nil, nil},
		{`"oauth": true`, &OAuth{}, nil},
		{`"auth": "oauth"`, &OAuth{}, nil},
		{`"oauth": true, "oauth_client_id": "id", "oauth_client_secret": "s", "oauth_callback_port": 81`, &OAuth{ClientID: "id", ClientSecret: "s", RedirectURI: "http://localhost:81/callback"}, nil},
		{`"oauth": {"grantType": "client_credentials", "clientId": "id", "privateKey": "key ${A}", "keyId": "k"}`, &OAuth{GrantType: ClientCredentials, ClientID: "id", PrivateKey: "key 1", KeyID: "k"}, nil},
		{`"auth": {"grant_type": "client_credentials", "client_id": "id", "client_secret": "s"}`, &OAuth{GrantType: ClientCredentials, ClientID: "id", ClientSecret: "s"}, nil},
		{`"oauth_grant_type": "client_credentials", "oauth_client_id": "id", "oauth_private_key": "key", "oauth_key_id": "k"`, &OAuth{GrantType: ClientCredentials, ClientID: "id", PrivateKey: "key", KeyID: "k"}, nil},
		{`"oauth_resource": null, "oauthNote": "x"`, nil, []string{`server "s": "oauthNote" is not known here and has no effect; did you mean "oauth"?`}},
		{`"oauth": null`, nil, nil},
	} {
		s, notes := one(t, source{env: environment("A=1")}, `"url": "http://h", `+test.member)
		require.NoError(t, s.err, test.member)
		assert.Equal(t, test.want, s.OAuth, test.member)
		assert.Equal(t, test.notes, notes, test.member)
	}
	for member, want := range map[string]string{
		`"oauth": "x"`:                    `"oauth" is a JSON string, want an object`,
		`"oauth_client_id": 5`:            `"oauth_client_id" is a JSON number, want a string`,
		`"oauth": {"clientId": 5}`:        `"oauth.clientId" is a JSON number, want a string`,
		`"oauth": {"callbackPort": 1e6}`:  `"oauth.callbackPort" is a JSON number, want a port`,
		`"oauth": {"scopes": [1]}`:        `"oauth.scopes" is a JSON array, want a list of strings`,
		`"oauth": {"clientId": "${NOT}"}`: `environment variables not set: NOT`,
	} {
		s, _ := one(t, source{}, `"url": "http://h", `+member)
		assert.EqualError(t, s.err, want)
	}
}

// A secret in the place of a name is in no error and no note, and neither are values
// of references.
func TestErrorsAndNotesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-5ecret5ecret"
	for _, test := range []struct{ dialect, members, want string }{
		{"codex", `"url": "http://x/", "bearer_token_env_var": "` + secret + `"`, "environment variables not set: …; … stands for what may be a secret"},
		{"codex", `"url": "http://x/", "env_http_headers": {"X-Key": "` + secret + `"}`, `"env_http_headers": … is not set, so the header "X-Key" is not sent`},
		{"codex", `"command": "x", "env_vars": [{"name": "` + secret + `", "source": "` + secret + `"}]`, `"env_vars": "…" is to come from "…"`},
		{"mcphybrid", `"url": "http://x/", "headers": {"Authorization": "Bearer ${` + secret + `}"}`, `"${…}" is not a reference`},
		{"mcphybrid", `"url": "http://x/", "headers": {"Authorization": "Bearer ${command:` + secret + `}"}`, `"${command:…}" is not a reference`},
		{"mcphybrid", `"url": "http://x/", "headers": {"Authorization": "Bearer ${env:` + secret + `}"}`, "environment variables not set: …"},
		{"mcphybrid", `"command": "x", "args": ["${` + secret + `:-${A}}"]`, `"${…:-…}": a reference within a reference`},
		{"mcphybrid", `"command": "x", "args": ["${input:` + secret + `}"]`, `"${input:…}": "inputs" does not have it`},
		{"mcphybrid", `"command": "x", "type": "` + secret + `"`, `type "…" is not supported`},
		{"mcphybrid", `"command": "x", "timeout": "` + secret + `"`, `"timeout": timeout …: want a positive duration`},
		{"mcphybrid", `"command": "x", "envFile": "/none/${A}"`, `"envFile" "/none/${A}": no such file`},
		{"crush", `"type": "stdio", "command": "x", "env": {"PASSWORD": "hun$ter5ecret5ecret"}`, "environment variables not set: …"},
		{"opencode", `"command": ["x", "{env:` + secret + `}"]`, "environment variables not set: …"},
		{"mcphybrid", `"command": "x", "args": ["${NOT_SET}${S3_KEY}${AKIA5ECRET5ECRET5ECRET5}"]`, "environment variables not set: NOT_SET, S3_KEY, …"},
	} {
		o := source{Options: Options{Dialect: test.dialect}, env: environment("A=" + secret)}
		s, notes := one(t, o, test.members)
		text := fmt.Sprint(s.err, notes)
		assert.Contains(t, text, test.want, test.members)
		assert.NotContains(t, strings.ToLower(text), "5ecret", test.members)
	}
}

// The pages have each key, and say of the idle ones what becomes of them.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	var page string
	for _, name := range []string{"KEYS.md", "../docs/clients.md"} {
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		_, tables, _ := strings.Cut(string(file), "\n## ") // behind the introduction
		page += tables
	}
	documented := make(map[string]bool)
	effects := make(map[string]string) // by the keys of a row
	for line := range strings.Lines(page) {
		row := strings.Split(strings.Trim(line, "| \n"), " | ")
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			documented[m[1]], documented[fold(m[1])] = true, true
		}
		for _, m := range quoted.FindAllStringSubmatch(row[0], -1) {
			effects[fold(m[1])] = row[len(row)-1]
		}
	}
	want := append(dialectNames(), known...)
	for key := range idle {
		want = append(want, key)
	}
	for key := range refused {
		want = append(want, key)
	}
	for _, d := range dialects {
		want = append(want, d.files...)
	}
	for key := range idle {
		effect := effects[key]
		noted := strings.HasPrefix(effect, "a note")
		require.True(t, noted != strings.HasPrefix(effect, "nothing"), "%s: %s", key, effect)
		for _, value := range []string{`"x"`, `["x"]`, `{"disabled": true}`} {
			s, notes := one(t, source{}, fmt.Sprintf(`"command": "run", %q: %s`, key, value))
			assert.NoError(t, s.err, "%s: %s", key, value)
			assert.Equal(t, noted, len(notes) == 1, "%s: %s", key, value)
		}
	}
	for _, list := range [][]string{offServers, onServers, offTools, slices.Collect(maps.Keys(serverSwitches)), unread} {
		want = append(want, list...)
	}
	for _, name := range want {
		assert.True(t, documented[name], "no page has `%s`", name)
	}
	for _, limit := range []string{
		fmt.Sprintf("%d MiB", 4<<20>>20), fmt.Sprintf("%d KiB", 256<<10>>10), fmt.Sprintf("%d MiB each", 1<<20>>20), fmt.Sprintf("%d servers", 1000),
		fmt.Sprintf("%d entries", 1000), fmt.Sprintf("%d million", 50_000_000/1_000_000), fmt.Sprintf("%d notes", 100),
	} {
		assert.Contains(t, page, limit)
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Looking for many tools among those of many servers would take long.
func TestListsTooLongForTheServers(t *testing.T) {
	t.Parallel()
	load := func(servers, entries int) error {
		var b strings.Builder
		b.WriteString(`{"mcpServers": {`)
		for i := range servers {
			fmt.Fprintf(&b, `"%04d": {"command": "x"}, `, i)
		}
		b.WriteString(`}, "disallowedTools": [`)
		for range entries {
			fmt.Fprintf(&b, "%q, ", strings.Repeat("x", 1000))
		}
		_, err := parse([]byte(b.String()+"]}"), source{env: environment()})
		return err
	}
	const servers = 100
	most := 50_000_000 / (servers * (4 + 16)) / (1000 + 16)
	assert.NoError(t, load(servers, most))
	assert.EqualError(t, load(servers, most+1), fmt.Sprintf(`lists of tools with %d entries are too long for %d servers: write "disabledTools" into the servers`, most+1, servers))
	assert.NoError(t, load(servers/2, most+1))
}

// serversIn returns the servers that were found, with their errors left out.
func serversIn(f found) (list []Server) {
	for _, s := range f.servers {
		list = append(list, s.Server)
	}
	return list
}

// What Codex and Continue say of requests and variables is taken, and what they can't have is
// named.
func TestKeysOfOtherClients(t *testing.T) {
	t.Parallel()
	env := environment("A=a-value", "B=b-value")
	for _, test := range []struct {
		dialect, members, problem string
		env, headers              map[string]string
	}{
		{"codex", `"command": "run", "env_vars": ["A", {"name": "B", "source": "local"}]`, "", map[string]string{"A": "a-value", "B": "b-value"}, nil},
		{"codex", `"command": "run", "env_vars": [5]`, `"env_vars" has a JSON number, want names`, nil, nil},
		{"codex", `"command": "run", "env_vars": [""]`, `"env_vars" has a JSON string, want names`, nil, nil},
		{"codex", `"command": "run", "env_vars": [{"source": "local"}]`, `"env_vars" has a JSON object, want names`, nil, nil},
		{"codex", `"command": "run", "env_vars": [{"name": "A", "source": "remote"}]`, `"env_vars": "A" is to come from "remote": only variables of this process can be handed on`, nil, nil},
		{"continue", `"url": "https://h", "apiKey": "k", "requestOptions": {"headers": {"X": "y"}}`, "", nil, map[string]string{"Authorization": "Bearer k", "X": "y"}},
		{"mcphybrid", `"url": "https://h", "serverUrl": "https://i"`, `"serverUrl" is one address too many: keep one`, nil, nil},
	} {
		got, _ := one(t, source{Options: Options{Dialect: test.dialect}, env: env}, test.members)
		if test.problem != "" {
			assert.ErrorContains(t, got.err, test.problem, test.members)
			continue
		}
		assert.NoError(t, got.err, test.members)
		assert.Equal(t, test.headers, got.Headers, test.members)
		for name, value := range test.env {
			assert.Equal(t, value, got.Env[name], test.members)
		}
	}
}

// What no server can have is named.
func TestWhatNoServerCanHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Server)
		want   string
	}{
		"fine":            {func(*Server) {}, ""},
		"no name":         {func(s *Server) { s.Name = "" }, "the name is empty"},
		"a torn name":     {func(s *Server) { s.Name = "a\xff" }, "the name is not valid UTF-8"},
		"two ways":        {func(s *Server) { s.Command = "run" }, "want exactly one of command and url"},
		"no way":          {func(s *Server) { s.URL = "" }, "want exactly one of command and url"},
		"a start timeout": {func(s *Server) { s.StartTimeout = -1 }, "a timeout is negative"},
		"a call timeout":  {func(s *Server) { s.CallTimeout = -1 }, "a timeout is negative"},
		"metadata":        {func(s *Server) { s.OAuth = &OAuth{ClientMetadataURL: "https://h/c"} }, ""},
		"itself":          {func(s *Server) { s.OAuth = &OAuth{GrantType: ClientCredentials, ClientID: "c", ClientSecret: "s"} }, ""},
		"itself by a key": {func(s *Server) {
			s.OAuth = &OAuth{GrantType: ClientCredentials, ClientID: "c", PrivateKey: "k", KeyID: "1"}
		}, ""},
		"a user":            {func(s *Server) { s.OAuth = &OAuth{GrantType: "authorization_code"} }, ""},
		"unknown grant":     {func(s *Server) { s.OAuth = &OAuth{GrantType: "password"} }, "want authorization_code or client_credentials"},
		"itself, no client": {func(s *Server) { s.OAuth = &OAuth{GrantType: ClientCredentials, ClientSecret: "s"} }, "wants a client ID, and either a client secret or a private key"},
		"itself, no proof":  {func(s *Server) { s.OAuth = &OAuth{GrantType: ClientCredentials, ClientID: "c"} }, "wants a client ID, and either a client secret or a private key"},
		"itself, by both": {func(s *Server) {
			s.OAuth = &OAuth{GrantType: ClientCredentials, ClientID: "c", ClientSecret: "s", PrivateKey: "k"}
		}, "wants a client ID, and either a client secret or a private key"},
		"a user's key":      {func(s *Server) { s.OAuth = &OAuth{ClientID: "c", PrivateKey: "k"} }, "goes with the grant type client_credentials"},
		"a name of no key":  {func(s *Server) { s.OAuth = &OAuth{KeyID: "1"} }, "the key ID in oauth goes with a private key"},
		"plain metadata":    {func(s *Server) { s.OAuth = &OAuth{ClientMetadataURL: "http://h/c"} }, "is not an https URL with a path"},
		"metadata by /":     {func(s *Server) { s.OAuth = &OAuth{ClientMetadataURL: "https://h//"} }, "is not an https URL with a path"},
		"metadata nowhere":  {func(s *Server) { s.OAuth = &OAuth{ClientMetadataURL: "https:///c"} }, "is not an https URL with a path"},
		"torn metadata":     {func(s *Server) { s.OAuth = &OAuth{ClientMetadataURL: "https://h/%zz"} }, "is not an https URL with a path"},
		"a helper's NUL":    {func(s *Server) { s.HeadersHelper = "a\x00" }, "headersHelper has a NUL byte"},
		"a folder's NUL":    {func(s *Server) { s.Dir = "a\x00" }, "the working directory has a NUL byte"},
		"an argument's NUL": {func(s *Server) { s.Args = []string{"a", "b\x00"} }, "argument 2 has a NUL byte"},
		"a name's sign":     {func(s *Server) { s.Env = map[string]string{"a=b": "c"} }, "its name is empty or has an equals sign"},
		"a value's NUL":     {func(s *Server) { s.Env = map[string]string{"a": "c\x00"} }, "it has a NUL byte"},
		"a header's break":  {func(s *Server) { s.Headers = map[string]string{"A": "c\rd"} }, `the header "A" is malformed`},
		"an odd scheme":     {func(s *Server) { s.URL = "ftp://h" }, "the url is not an http or https URL"},
		"no host":           {func(s *Server) { s.URL = "https:///x" }, "the url is not an http or https URL"},
		"an old protocol":   {func(s *Server) { s.Protocol = "2020-01-01" }, "the protocol is not known here"},
		"no url":            {func(s *Server) { s.URL, s.Command, s.OAuth = "", "run", new(OAuth) }, "HTTPClient and oauth go with url"},
	} {
		s := Server{Name: "a", URL: "https://h"}
		test.change(&s)
		err := s.Validate()
		if test.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, test.want, name)
		}
	}
}
