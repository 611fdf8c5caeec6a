package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longName is longer than the names that providers accept.
var longName = strings.Repeat("long_name.", 8)

// FuzzParse: whatever a file of any dialect says, nothing that it switches off is
// started, each server is there once, and no reference goes out as it is.
func FuzzParse(f *testing.F) {
	err := filepath.WalkDir("testdata/clients", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for name := range uint8(len(dialects) + 1) {
			f.Add(data, name)
		}
		return err
	})
	require.NoError(f, err)
	for _, data := range []string{
		`{"mcpServers": {"a": {"command": "x", "disabled": true}, "a": {"command": "y"}, "b": {"url": "http://h", "enabled": false, "enabled": true}}}`,
		`{"mcpServers": {"a": {"command": "x", "disabledTools": ["t"], "enabledTools": []}, "b": {"command": "${X${Y}}", "Disabled": true}}, "excludeTools": ["q"]}`,
		"{\"servers\": {\"a\": {\"command\": \"x\", // c\r\"disabled\": true\n}}}",
		`{"mcp": {"servers": {"a": {"command": ["x"], "enabled": false}}, "excluded": ["b"]}, "tools": {"a*": false}}`,
		`{"mcpServers": {"a": {"command": "x${A", "args": ["${X:-${A}}", "$A ${A} {env:A} $(A)"], "env": {"E": "${}"}}}}`,
		`{"mcp": {"a.b": {"command": ["x"], "type": "local"}}, "tools": {"a_b_issue_delete": false}}`,
		`{"mcpServers": {"a": {"command": "x", "tools": {"deny": ["${A}", "a/issue*", "[x]"]}}}, "disallowedTools": ["mcp__a__issue_delete", "mcp__b"], "permissions": {"deny": ["x"]}}`,
		`{"mcpServers": {"a": {"command": "x"}, "b": {"baseUrl": "http://h", "isActive": true, "timeout": 60}}, "enabledMcpServers": ["b"]}`,
		`{"mcpServers": [{"name": "a", "command": "x", "workingDirectory": "/w"}, {"name": "b", "url": "http://h", "requestOptions": {"headers": {"A": "${{ secrets.A }} ${{ x }}"}}}, {"uses": "c"}, {"name": "a"}]}`,
		`{"extensions": {"a": {"type": "stdio", "cmd": "x", "args": ["$A"], "envs": {"E": "${A}"}, "env_keys": ["A", "N"], "timeout": 3}, "b": {"type": "builtin", "enabled": true}, "c": {"uri": "http://h", "available_tools": ["t"]}}}`,
		`{"amp.mcpServers": {"a": {"command": "x", "includeTools": ["t*"]}}, "amp.tools.disable": ["mcp__a__u"]}`,
		`{"mcpServers": {"a": {"httpUrl": "http://h", "url": "http://i", "command": "x", "headers": {"A": "$TOKEN"}, "type": "http"}}, "mcp": {"allowed": ["a"]}}`,
		`{"name": "n", "server": {"mcp_config": {"command": "${__dirname}/x", "args": ["${user_config.d}", "${user_config.k}", "${HOME}"], "env": {"K": "${user_config.k}"}, "platform_overrides": {"linux": {"args": []}}}}, "user_config": {"d": {"default": ["${DESKTOP}", 1]}, "k": {"sensitive": true}}}`,
		`{"name": "a/n", "packages": [{"registryType": "oci", "identifier": "x/y", "version": "1", "runtimeArguments": [{"type": "named", "name": "-v", "value": "{s}:/x", "variables": {"s": {"isRequired": true}}}], "environmentVariables": [{"name": "K", "isRequired": true, "choices": ["a"]}]}]}`,
		`{"name": "a/n", "remotes": [{"type": "sse", "url": "https://{t}.h/${A}", "variables": {"t": {"default": "x"}}, "headers": [{"name": "A", "value": "Bearer {k}", "variables": {"k": {"isRequired": true}}}]}]}`,
		"[mcp_servers.a]\ncommand = 'x'\nomit_tools_from = ['direct', 'deferred']\n[mcp_servers.b]\nurl = 'http://h'\nomit_tools_from = ['x']",
		"[mcp_servers]\na.command = 'x'\na.enabled = false\n\"b.c\" = { url = 'http://h' }",
	} {
		for name := range uint8(len(dialects) + 1) {
			f.Add([]byte(data), name)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, name uint8) {
		dialect := ""
		if i := int(name) % (len(dialects) + 1); i > 0 {
			dialect = dialects[i-1].name
		}
		checkFile(t, data, source{Options: Options{Dialect: dialect}})
	})
}

// checkFile reads data and fails if something is started that must not be. It
// returns how many servers are started.
func checkFile(t *testing.T, data []byte, o source) (started int) {
	o.env, o.Workspace = environment("A=1", "EMPTY="), "/w"
	asked := make(map[string]bool)
	o.Input = func(in Input) (string, error) {
		require.False(t, asked[in.ID], "%q is asked for twice", in.ID)
		asked[in.ID] = true
		return "answer", nil
	}
	file, err := parse(data, o)
	if err != nil {
		require.Empty(t, file.servers)
		return 0
	}
	require.LessOrEqual(t, len(file.notes), 100+1)
	written, off, top := serversOf(t, data, &o, file.dialect)
	seen := make(map[string]bool)
	for _, s := range file.servers {
		require.False(t, seen[s.Name], "%q is there twice", s.Name)
		seen[s.Name] = true
		if s.Disabled || s.err != nil {
			require.Equal(t, Server{Name: s.Name, Disabled: s.Disabled}, s.Server)
			continue
		}
		started++
		require.False(t, slices.ContainsFunc(off, func(name any) bool { text, ok := name.(string); return ok && strings.EqualFold(text, s.Name) }), "%q is off", s.Name)
		if file.dialect != "mcpb" && file.dialect != "registry" {
			checkSwitches(t, s.Server, written[s.Name])
		}
		require.False(t, file.dialect == "goose" && written[s.Name]["type"] == "builtin", "%q is inside the client", s.Name)
		checkFileSwitches(t, s.Server, top, file.dialect)
		if !strings.Contains(string(data), `:-`) && !strings.Contains(string(data), `file:`) {
			checkReferences(t, s.Server, file.dialect)
		}
	}
	return started
}

// The same of files that are made of what clients write, in any mixture.
func TestNothingOffIsStarted(t *testing.T) {
	t.Parallel()
	members := []string{
		`"disabled": true`, `"disabled": false`, `"enabled": false`, `"enabled": true`, `"Disabled": true`, `"is_active": false`, `"isActive": true`, `"disabled": "true"`, `"enabled": null`,
		`"disable": true`, `"off": true`, `"enable": false`, `"disabledTools": ["a", "b*"]`, `"disabled_tools": ["c"]`, `"excludeTools": ["d(x)"]`, `"disabledTools": {}`,
		`"enabledTools": ["a"]`, `"enabled_tools": []`, `"includeTools": ["a", "d"]`, `"tools": ["a"]`, `"tools": {"allow": ["a"], "deny": ["b"]}`, `"tools": {"a": {"enabled": false}}`,
		`"args": ["${A}", "$A"]`, `"args": ["${X}"]`, `"args": ["{env:A}"]`, `"args": ["$(A)"]`, `"env": {"E": "${env:A}"}`, `"env": {"E": "${"}`, `"cwd": "${workspaceFolder}"`, `"args": ["${input:i}"]`,
		`"status": "disabled"`, `"disabledTools": ["${A}"]`, `"url": "http://h/"`, `"env": {"${A}": "x"}`,
		`"omit_tools_from": ["deferred", "direct"]`, `"omit_tools_from": ["code_mode"]`, `"omitToolsFrom": ["all"]`,
		`"disallowedTools": ["a"]`, `"deactivated": true`, `"readOnly": true`, `"disable": false`, `"sandboxed": true`,
		`"type": "stdio"`, `"timeout": 60`, `"timeout": 60000`, `"autoApprove": ["a"]`, `"trust": true`, `"oauth": {}`, `"description": "x"`, `"unknown": 1`,
	}
	lists := []string{
		`"disabledMcpServers": ["s"]`, `"mcp": {"excluded": ["t"]}`, `"mcp": {"allowed": ["s", "u"]}`, `"excludeTools": ["a"]`, `"inputs": [{"id": "i", "type": "promptString"}]`,
		`"tools": {"u_issue_delete": false}`, `"options": {"disabled_tools": ["mcp_u_issue_delete"]}`, `"allowMCPServers": ["s"]`, `"disabledMcpServers": ["S"]`,
		`"admin": {"mcp": {"enabled": false}}`, `"disallowedTools": ["a"]`, `"enabledMcpServers": ["s", "x"]`, `"enabledMcpServers": []`, `"enabledMcpServers": {"s": true}`,
		`"permissions": {"deny": ["mcp__u__issue_delete", "mcp__s__x_y"]}`, `"deniedMcpServers": [{"serverName": "s"}]`, `"amp.tools.disable": ["mcp__u__a"]`,
		`"tools": {"s*": false}`, `"x": 1`, `"disabledServers": ["u"]`, `"excludeMCPServers": ["u"]`, `"extensions": {"x": 1}`,
	}
	space := []string{" ", "\n", "// \"disabled\": true\n", "/* } */", "\r\n", "// c\r"}
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	started, files := 0, 0
	for range 5000 {
		d := &dialects[random.IntN(len(dialects))]
		var b strings.Builder
		at, inner, nested := strings.Cut(d.at[random.IntN(len(d.at))], ".")
		fmt.Fprintf(&b, "{%q: {", at)
		if nested {
			fmt.Fprintf(&b, "%q: {", inner)
		}
		for range 1 + random.IntN(3) {
			fmt.Fprintf(&b, `%q: {"command": "run",`, pick([]string{"s", "t", "u", "v", "w"}))
			for range random.IntN(4) {
				b.WriteString(pick(space) + pick(members) + pick(space) + ",")
			}
			b.WriteString("},")
		}
		if nested {
			b.WriteString("},")
		}
		b.WriteString("},")
		for range random.IntN(3) {
			b.WriteString(pick(lists) + "," + pick(space))
		}
		b.WriteString("}")
		o := source{}
		if random.IntN(2) == 0 && d.name != "codex" {
			o.Dialect = d.name
		}
		n := checkFile(t, []byte(b.String()), o)
		started += n
		if n > 0 {
			files++
		}
	}
	assert.Greater(t, files, 1000, "of 5000")
	assert.Greater(t, started, 2000)
}

// serversOf returns the servers in data and the names in lists that switch some off,
// independently of the reader.
func serversOf(t *testing.T, data []byte, o *source, dialect string) (servers map[string]map[string]any, off []any, top map[string]any) {
	data, err := toJSON(data, o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &top))
	servers = make(map[string]map[string]any)
	add := func(value any) {
		list, _ := value.([]any)
		for _, server := range list {
			server, _ := server.(map[string]any)
			name, _ := server["name"].(string)
			if uses, _ := server["uses"].(string); name == "" {
				name = uses
			}
			servers[name] = server
		}
		members, _ := value.(map[string]any)
		for name, server := range members {
			if server, ok := server.(map[string]any); ok {
				servers[name] = server
			}
		}
	}
	mcp, _ := top["mcp"].(map[string]any)
	for _, list := range []any{top["disabledMcpServers"], top["disabledMcpjsonServers"], top["excludeMCPServers"], mcp["excluded"]} {
		names, _ := list.([]any)
		off = append(off, names...)
	}
	switch dialect {
	case "zed":
		add(top["context_servers"])
	case "goose":
		add(top["extensions"])
	case "amp":
		amp, _ := top["amp"].(map[string]any)
		add(amp["mcpServers"])
		add(top["amp.mcpServers"])
	case "codex":
		add(top["mcp_servers"])
	case "crush":
		add(mcp)
	case "opencode":
		if mcp["servers"] != nil {
			add(mcp["servers"])
		} else {
			add(mcp)
		}
	case "vscode":
		if top["servers"] != nil {
			add(top["servers"])
		} else {
			add(mcp["servers"])
		}
	default:
		add(top["mcpServers"])
		projects, _ := top["projects"].(map[string]any)
		project, _ := projects[o.Workspace].(map[string]any)
		if dialect == "claude-code" && o.Dialect != "" {
			add(project["mcpServers"])
		}
	}
	return servers, off, top
}

// checkFileSwitches fails if what stands beside the servers switches a server off that
// is started, or a tool that it would offer.
func checkFileSwitches(t *testing.T, s Server, top map[string]any, dialect string) {
	mcp, _ := top["mcp"].(map[string]any)
	for _, list := range []any{top["allowMCPServers"], top["enabledMcpServers"], mcp["allowed"]} {
		if names, ok := list.([]any); ok {
			require.Contains(t, names, s.Name)
		}
	}
	admin, _ := top["admin"].(map[string]any)
	servers, _ := admin["mcp"].(map[string]any)
	require.NotEqual(t, false, servers["enabled"], "all are off")
	if list, _ := top["disallowedTools"].([]any); slices.Contains(list, any("a")) {
		require.True(t, rules.MatchAny(s.Tools.Deny, "a"), "the tool is off for all servers")
	}
	options, _ := top["options"].(map[string]any)
	var off []any
	var prefix string
	switch dialect {
	case "opencode":
		prefix = "*_"
		tools, _ := top["tools"].(map[string]any)
		for name, on := range tools {
			if on == false {
				off = append(off, name)
			}
		}
	case "crush":
		prefix = "mcp_*_"
		off, _ = options["disabled_tools"].([]any)
	}
	refused := regexp.MustCompile("[^a-zA-Z0-9_-]")
	for _, tool := range []string{"a", "issue.delete", "issue_delete", "x/y", longName} {
		called := strings.Replace(prefix, "*", refused.ReplaceAllString(s.Name, "_"), 1) + refused.ReplaceAllString(tool, "_")
		for _, pattern := range off {
			if pattern, ok := pattern.(string); ok && prefix != "" && rules.Match(pattern, called) {
				require.True(t, rules.MatchAny(s.Tools.Deny, tool), "%q: the tool %q is off by %q", s.Name, tool, pattern)
			}
		}
	}
}

// checkSwitches fails if a server that is started, or a tool that it would offer, is
// switched off by what is written.
func checkSwitches(t *testing.T, s Server, written map[string]any) {
	require.NotNil(t, written, "%q is started and not written", s.Name)
	offered := func(tool string) bool {
		return !rules.MatchAny(s.Tools.Deny, tool) && (len(s.Tools.Allow) == 0 || rules.MatchAny(s.Tools.Allow, tool))
	}
	for key, value := range written {
		list, _ := value.([]any)
		switch fold(key) {
		case "disabled":
			require.NotEqual(t, true, value, "%q is off by %q", s.Name, key)
		case "enabled", "isactive":
			require.NotEqual(t, false, value, "%q is off by %q", s.Name, key)
		case "sandboxed":
			require.NotEqual(t, true, value, "%q is restricted by %q", s.Name, key)
		case "availabletools":
			require.False(t, len(list) > 0 && !slices.Contains(list, any("*")) && offered("not listed"), "%q: %q does not hold", s.Name, key)
		case "disabledtools", "excludetools", "disallowedtools":
			require.True(t, value == nil || list != nil, "%q: %q is no list", s.Name, key)
			for _, tool := range list {
				require.False(t, offered(tool.(string)), "%q: the tool %q is off by %q", s.Name, tool, key)
			}
		case "omittoolsfrom":
			closed := slices.Contains(list, any("direct")) && slices.Contains(list, any("deferred"))
			require.False(t, closed && offered("not listed"), "%q: its tools are off by %q", s.Name, key)
			require.NotContains(t, list, any("all"), "%q: nobody knows what is off by %q", s.Name, key)
		case "enabledtools", "includetools":
			require.True(t, value == nil || list != nil, "%q: %q is no list", s.Name, key)
			if value != nil && !slices.ContainsFunc(list, func(tool any) bool { return rules.Match(tool.(string), "not listed") }) {
				require.False(t, offered("not listed"), "%q: %q does not hold", s.Name, key)
			}
		}
	}
}

func checkReferences(t *testing.T, s Server, dialect string) {
	dollar := slices.Contains([]string{"gemini", "crush", "goose"}, dialect)
	for _, text := range slices.Concat([]string{s.Command, s.Dir, s.URL}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers))) {
		require.NotContains(t, text, "${", "of %q", s.Name)
		require.False(t, dollar && strings.Contains(text, "$TOKEN"), "of %q", s.Name)
	}
}

// FuzzEnvFile: reading always ends, and what is written in one line is read.
func FuzzEnvFile(f *testing.F) {
	f.Add("A=1\n#x\nexport B='2'\nC=\"a\\n\nb\"", "v")
	f.Fuzz(func(t *testing.T, data, value string) {
		if variables, err := parseEnv(data); err == nil {
			for name := range variables {
				require.NotEmpty(t, name)
			}
		}
		if strings.ContainsAny(value, "'\r") {
			return
		}
		variables, err := parseEnv("LAST='" + value + "'")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"LAST": value}, variables)
	})
}

// Comments and trailing commas change nothing, and JSON without them stays as it is.
func TestPlainJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"a": "// no", "b": "/* no */", "c": ",]", "d\\": "\"//\\", "e": [1, 2], "f": {}}`, `"\\"`, `[]`, " {\n\t\r\n} ",
	} {
		assert.Equal(t, text, string(plainJSON([]byte(text))))
	}
	data := []byte("{// c\r\"a\": [1, /* , */ 2,\n ], // d\r\n \"b\": {\"c\": 1,},\n}")
	before := string(data)
	assert.JSONEq(t, `{"a": [1, 2], "b": {"c": 1}}`, string(plainJSON(data)))
	assert.Equal(t, before, string(data), "the caller's")
	assert.Len(t, plainJSON(data), len(data), "all keeps its place")
}
