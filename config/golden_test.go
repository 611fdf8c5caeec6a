package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// reading is a file and how it is read.
type reading struct {
	shows  string
	path   string // in the folder /here; "" is servers.json, "-" none
	opts   Options
	data   string
	answer string // the user's to each input; "" if nobody can be asked
	fails  bool   // asking fails
}

// picture returns all that reading the file shows. here is the folder that the golden file calls /here.
func (r reading) picture(here string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", r.shows)
	if r.path != "" || r.opts.Dialect != "" || r.opts.Workspace != "" {
		fmt.Fprintf(&b, "%s dialect=%q workspace=%q\n", r.path, r.opts.Dialect, r.opts.Workspace)
	}
	if len(r.data) < 2000 {
		fmt.Fprintf(&b, "%s\n", r.data)
	}
	var asked []string
	if r.answer != "" || r.fails {
		r.opts.Input = func(in Input) (string, error) {
			asked = append(asked, golden.Text(in))
			if r.fails {
				return "", os.ErrClosed
			}
			return r.answer, nil
		}
	}
	if r.opts.Workspace != "" {
		r.opts.Workspace = filepath.Join(here, r.opts.Workspace)
	}
	path := filepath.Join(here, cmp.Or(r.path, "servers.json"))
	if r.path == "-" {
		path = ""
	}
	env := environment("HOME=/home/ann", "TOKEN=t0ken", "EMPTY=", "A_B=ab", "a1=one")
	data := strings.NewReplacer("/here", here, `"this platform"`, `"`+runtime.GOOS+`"`).Replace(r.data)
	found, err := parse([]byte(data), source{Options: r.opts, path: path, env: env})
	file, problems := found.file()
	fmt.Fprintf(&b, "   dialect %q\n", file.Dialect)
	if n := len(file.Servers); n > 10 {
		fmt.Fprintf(&b, "   %d servers\n", n)
		file.Servers = file.Servers[n-1:]
	}
	for _, s := range file.Servers {
		fmt.Fprintf(&b, "   server %s\n", golden.Text(s))
	}
	for _, s := range asked {
		fmt.Fprintf(&b, "   asked  %s\n", s)
	}
	for _, s := range file.Notes {
		fmt.Fprintf(&b, "   note   %s\n", s)
	}
	for _, e := range []error{err, problems} {
		if e != nil {
			fmt.Fprintf(&b, "   error  %s\n", strings.ReplaceAll(e.Error(), "\n", "\n          "))
		}
	}
	return strings.ReplaceAll(b.String(), here, "/here") + "\n"
}

// pictures compares with a golden file what readings show, in a folder with a few files.
func pictures(t *testing.T, name, shows string, all []reading) {
	if runtime.GOOS == "windows" {
		t.Skip("the golden files have paths as Unix writes them")
	}
	here, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for file, content := range map[string]string{
		"secret": "  s3cret\n", "variables": "A=from file\nB=x # comment\nTOKEN=mine", "broken": "A", "sub/key": "k3y",
	} {
		path := filepath.Join(here, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	t.Setenv("HOME", "/home/ann")
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", shows)
	for _, r := range all {
		b.WriteString(r.picture(here))
	}
	golden.Compare(t, name+".golden", b.String())
}

// testdata/dialects.golden has what the same keys mean in the file of each client.
func TestDialectsGolden(t *testing.T) {
	var all []reading
	all = append(all,
		reading{shows: "codex: numbers and texts as timeouts, references and folders", path: "a/.codex/config.toml", data: "[mcp_servers.s]\ncommand = 'run'\ntimeout = 120\nargs = ['$TOKEN', '${TOKEN}', '{env:TOKEN}', '$(x)']\n[mcp_servers.t]\ncommand = 'run'\ntimeout = '20s'\ncwd = 'sub'\n[mcp_servers.t.env]\nPORT = 80"},
		reading{shows: "mcpb: a number as timeout", path: "b/manifest.json", data: `{"name": "b", "server": {"mcp_config": {"command": "run", "timeout": 5000, "args": ["$TOKEN", "{env:TOKEN}"]}}}`},
	)
	for _, d := range dialects {
		if d.rewrite != nil || d.name == "codex" { // TOML
			continue
		}
		first, last, _ := strings.Cut(d.at[0], ".")
		if d.name == "amp" {
			first, last = d.at[0], ""
		}
		open, end := fmt.Sprintf("{%q: {", first), "}}"
		if last != "" {
			open, end = fmt.Sprintf("{%q: {%q: {", first, last), "}}}"
		}
		file := func(shows, servers, beside string) {
			r := reading{shows: d.name + ": " + shows, path: "a/.b/" + d.name + ".json", opts: Options{Dialect: d.name}, data: open + servers + end[:len(end)-1] + beside + "}"}
			all = append(all, r)
		}
		file("numbers as timeouts", `"s": {"command": "run", "timeout": 120, "type": "stdio"}, "u": {"url": "https://x.test", "timeout": 5000}`, "")
		file("a text, and an object, as timeout", `"s": {"command": "run", "timeout": "20s"}, "o": {"command": "run", "timeout": {"startup": 500, "request": 700}}`, "")
		file("references of clients", `"s": {"command": "run", "args": ["$TOKEN", "${TOKEN}", "{env:TOKEN}"]}, "c": {"command": "$(run)"}, "m": {"command": "$UNSET_ONE"}`, "")
		file("folders", `"s": {"command": "run"}, "r": {"command": "run", "cwd": "sub"}, "u": {"url": "https://x.test"}`, "")
		file("a number in the environment", `"s": {"command": "run", "env": {"PORT": 80, "NULL": null}}, "t": {"command": "run", "environment": {"PORT": 80}}, "l": {"command": "run", "envs": {"PORT": "80"}}`, "")
		file("tools beside the servers", `"s": {"command": "run"}`, `, "tools": {"s_x": false, "mcp_s_y": false, "z": true}`)
		file("switched off beside the servers", `"s": {"command": "run"}, "t": {"command": "run"}`, `, "disabledMcpServers": ["S"], "excludeTools": ["x(y)", "t__*"], "options": {"disabled_tools": ["mcp_t_q", "t_r"]}, "stable": {"disallowedTools": ["w"]}`)
	}
	pictures(t, "dialects", "What the same keys mean in the file of each client: the file, then what becomes of it.", all)
}

// testdata/files.golden has files as a whole: which client's they are, and what is beside the servers.
func TestFilesGolden(t *testing.T) {
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"s%d": {"disabled": true}`, i))
		}
		return `{"mcpServers": {` + strings.Join(all, ", ") + `}}`
	}
	long := strings.Repeat("k", 210)
	pictures(t, "files", "Files as a whole: which client's they are, and what is beside the servers. Each file, then what becomes of it.", []reading{
		{shows: "nothing", data: ``},
		{shows: "an empty object", data: `{}`},
		{shows: "no object", data: `[]`},
		{shows: "null", data: `null`},
		{shows: "not JSON", data: `{"mcpServers": x}`},
		{shows: "comments, a trailing comma and a mark at the start", data: "\ufeff{// one\r\"mcpServers\": {/* two, */ \"s\": {\"command\": \"run\",}, }, }"},
		{shows: "line breaks of all kinds, also at the end", data: "{\r// one\r\n// two\r\r\n\"mcpServers\": // three\r{}}\r"},
		{shows: "a comma without a value", data: "{\"mcpServers\":\n {/* x */ , \"s\": {}}}"},
		{shows: "a comma in a list", data: "{\"mcpServers\": {\"s\": {\"args\": [ // x, {\n ,]}}}"},
		{shows: "a comment without end", data: "{\"mcpServers\": {} /* x"},
		{shows: "quotes and escapes before a comma", data: `{"mcpServers": {"{\",": {"command": "\\", "args": ["[\"", ","]}}}`},
		{shows: "TOML that is wrong", path: "x.toml", data: "a = 1\nb = "},
		{shows: "TOML without servers", path: "x.toml", data: "a = 1"},
		{shows: "TOML", path: "config.TOML", data: "[mcp_servers.b]\ncommand = 'run'\nstartup_timeout_sec = 2.5\n[mcp_servers.a]\nurl = 'https://x.test'\nbearer_token_env_var = 'TOKEN'\n[mcp_servers.a.env_http_headers]\nX = 'A_B'\nY = 'NOT_SET'"},
		{shows: "Codex in another file", opts: Options{Dialect: "codex"}, data: "[mcp_servers.a]\ncommand = 'run'\ntool_timeout_sec = 3\nstartup_timeout_ms = 200\n[mcp_servers.a.tools.x]\nenabled = false\napproval_mode = 'x'\noutput_token_limit = 3\n[mcp_servers.a.tools.allow]\ndisabled = true"},
		{shows: "a dialect that is none", opts: Options{Dialect: "emacs"}, data: `{"mcpServers": {}}`},
		{shows: "a dialect without its servers", opts: Options{Dialect: "zed"}, data: `{"mcpServers": {}}`},
		{shows: "a dialect, though the servers are there twice", opts: Options{Dialect: "vscode"}, data: `{"mcp": {"servers": {}}, "mcp.servers": {}}`},
		{shows: "servers there twice", data: `{"amp": {"mcpServers": {}}, "amp.mcpServers": {}}`},
		{shows: "an object with a key twice on the way", data: `{"mcp": {"servers": {}, "servers": {}}}`},
		{shows: "null is as good as none", data: `{"mcpServers": null, "amp": {"mcpServers": {}}, "amp.mcpServers": null}`},
		{shows: "a key twice", data: `{"mcpServers": {}, "mcpServers": {}}`},
		{shows: "two keys twice", data: `{"mcpServers": {}, "a": 1, "a": 2, "mcpServers": {}}`},
		{shows: "servers of two clients", data: `{"mcpServers": {}, "context_servers": {}}`},
		{shows: "shared keys beside the servers", data: `{"extensions": {"a": true}, "mcpServers": {"s": {"command": "run"}}, "mcp": {"x": 1}, "packages": [], "remotes": []}`},
		{shows: "two shared keys only", data: `{"extensions": {}, "mcp": {}}`},
		{shows: "one server on top", data: `{"command": "run"}`},
		{shows: "one address on top", data: `{"url": "https://x.test"}`},
		{shows: "servers on top", data: `{"a": 1, "own": {"url": "https://x.test"}}`},
		{shows: "servers under a misspelled key", data: `{"mcpServer": {}}`},
		{shows: "a misspelled key that is no object", data: `{"mcpServer": []}`},
		{shows: "a name like a secret on top", data: `{"sk12345": {"command": "run"}}`},
		{shows: "known by a mark", data: `{"mcpServers": {"a": {}, "s": {"serverUrl": "https://x.test"}}}`},
		{shows: "marks of two clients", data: `{"mcpServers": {"a": {"serverUrl": "https://x.test"}, "s": {"httpUrl": "https://x.test"}}}`},
		{shows: "known by a mark with a text", data: `{"mcp": {"a": {"type": "stdio", "command": "run"}}}`},
		{shows: "known by a text, though not the mark's", data: `{"mcp": {"a": {"type": "x", "command": "run"}}}`},
		{shows: "known by what is beside", data: `{"mcpServers": {"a": {"command": "$TOKEN"}, "b": {"command": "run"}}, "mcp": {"allowed": ["a"]}}`},
		{shows: "known by the path", path: ".continue/mcpServers/x.json", data: `{"mcpServers": [{"name": "a", "command": "run", "connectionTimeout": 300}, {"uses": "x/y"}]}`},
		{shows: "a list with what is no server", data: `{"mcpServers": [{"name": "a"}, 3]}`},
		{shows: "a list with a server without name", data: `{"mcpServers": [{"name": "", "command": "run"}]}`},
		{shows: "a list with a name twice in one", data: `{"mcpServers": [{"name": "a", "Name": "b"}]}`},
		{shows: "a list that has a name twice", data: `{"mcpServers": [{"name": "a"}, {"name": "a"}, {"name": "a"}]}`},
		{shows: "servers that are a text", data: `{"mcpServers": "x"}`},
		{shows: "a server that is a number", data: `{"mcpServers": {"a": 3, "b": true, "c": null, "d": [], "e": "x", "f": {"a": 1, "a": 2}}}`},
		{shows: "a name twice, beside another", data: `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "a": {"command": "y"}}}`},
		{shows: "as many servers as may be", data: many(maxServers)}, // not shown
		{shows: "one server more", data: many(maxServers + 1)},
		{shows: "Claude Code without servers of its own", path: ".claude.json", data: `{"projects": {"/here/w": {"mcpServers": {"a": {"command": "run"}}, "disabledMcpServers": ["b"], "enabledMcpServers": ["x"]}}}`, opts: Options{Workspace: "w"}},
		{shows: "Claude Code by its name", opts: Options{Dialect: "claude-code", Workspace: "w"}, data: `{"projects": {"/here/w": {"mcpServers": {"a": {"command": "run"}, "b": {"command": "run"}}, "enabledMcpServers": ["a"]}}}`},
		{shows: "projects without the workspace", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"mcpServers": {}, "projects": {"/elsewhere": {}}}`},
		{shows: "no projects", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"mcpServers": {}, "projects": {}}`},
		{shows: "projects that are null", path: ".claude.json", data: `{"mcpServers": {"a": {"command": "run"}}, "projects": null}`},
		{shows: "projects that are a list", path: ".claude.json", data: `{"mcpServers": {}, "projects": []}`},
		{shows: "a project that is a list", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"projects": {"/here/w": []}}`},
		{shows: "a project's servers that are a text", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"projects": {"/here/w": {"mcpServers": "x"}}}`},
		{shows: "a project replaces, and adds", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"mcpServers": {"a": {"command": "1"}, "b": {"command": "2"}}, "projects": {"/here/w": {"mcpServers": {"a": {"command": "3"}, "c": {"command": "4"}}}}}`},
		{shows: "a project's server twice", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"projects": {"/here/w": {"mcpServers": {"a": {"command": "3"}, "a": {"command": "4"}}}}}`},
		{shows: "a project's switches of the wrong kind", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"projects": {"/here/w": {"enabledMcpServers": "x"}}}`},
		{shows: "too many servers in a project", path: ".claude.json", opts: Options{Workspace: "w"}, data: `{"projects": {"/here/w": ` + many(maxServers+1) + `}}`},
		{shows: "settings of releases", opts: Options{Dialect: "zed"}, data: `{"context_servers": {"a": {"command": "run"}}, "preview": {"disable_ai": false}, "linux": 3}`},
		{shows: "settings of releases switch all off", opts: Options{Dialect: "zed"}, data: `{"context_servers": {"a": {"command": "run"}}, "preview": {"disable_ai": true}}`},
		{shows: "settings of a release with a key twice", opts: Options{Dialect: "zed"}, data: `{"context_servers": {}, "preview": {"a": 1, "a": 2}}`},
		{shows: "switches of all servers", opts: Options{Dialect: "vscode"}, data: `{"servers": {"a": {"command": "run"}}, "chat": {"mcp.access": "all", "mcp": {"enabled": true}}, "chat.agent.enabled": {}}`},
		{shows: "a switch of all servers off", opts: Options{Dialect: "vscode"}, data: `{"servers": {"a": {"command": "run"}}, "chat": {"mcp.access": "none"}}`},
		{shows: "a switch of all servers twice", opts: Options{Dialect: "vscode"}, data: `{"servers": {"a": {"command": "run"}}, "chat": {"mcp.access": "all", "mcp": {"access": "none"}}}`},
		{shows: "lists of servers that are on", opts: Options{Dialect: "gemini"}, data: `{"mcpServers": {"a": {"command": "run"}, "b": {"command": "run"}, "A": {"command": "run"}}, "allowMCPServers": ["b", "a"], "mcp": {"allowed": ["a", "c"]}}`},
		{shows: "an empty list of servers that are on", opts: Options{Dialect: "gemini"}, data: `{"mcpServers": {"a": {"command": "run"}}, "allowMCPServers": []}`},
		{shows: "lists of the wrong kind", opts: Options{Dialect: "gemini"}, data: `{"mcpServers": {}, "allowMCPServers": "a"}`},
		{shows: "more lists of the wrong kind", opts: Options{Dialect: "gemini"}, data: `{"mcpServers": {}, "excludeMCPServers": {}, "disabledMcpServers": 4, "excludeTools": [1], "options.disabled_tools": true}`},
		{shows: "a reference in a list", data: `{"mcpServers": {}, "disabledMcpServers": ["${X}"]}`},
		{shows: "a reference in a list of tools", data: `{"mcpServers": {}, "excludeTools": ["x${X}"]}`},
		{shows: "a reference in a tool's arguments", data: `{"mcpServers": {"s": {"command": "run"}}, "excludeTools": ["x(${X})"]}`},
		{shows: "opencode's tools of the wrong kind", opts: Options{Dialect: "opencode"}, data: `{"mcp": {"s": {"command": ["run"]}}, "tools": {"a": null, "b": 3}}`},
		{shows: "opencode's tools that are a list", opts: Options{Dialect: "opencode"}, data: `{"mcp": {"s": {"command": ["run"]}}, "tools": []}`},
		{shows: "others' tools of any kind", data: `{"mcpServers": {"s": {"command": "run"}}, "tools": {"a": 3, "s__b": false}}`},
		{shows: "opencode's servers that have names of lists", opts: Options{Dialect: "opencode"}, data: `{"mcp": {"allowed": {"command": ["run"]}, "excluded": {"command": ["run", "x"]}}}`},
		{shows: "what is not read", data: `{"mcpServers": {}, "permissions": {}, "agent": {"profiles": []}, "allowedMcpServers": null}`},
		{shows: "tools off for all servers, in any client's words", data: `{"mcpServers": {"my git": {"command": "run"}, "é😀": {"command": "run"}}, "excludeTools": ["my_git__a", "mcp_My Git_b", "mcp__my_git", "m**c", "?y git/d_e", "mcp__e", "___f", "*g"], "disallowedTools": ["mcp_*_h", "*"]}`},
		{shows: "as many tools off as may be", data: `{"mcpServers": {}, "excludeTools": [` + strings.Repeat(`"a",`, maxSwitches-1) + `"b"]}`},
		{shows: "one tool more", data: `{"mcpServers": {}, "excludeTools": [` + strings.Repeat(`"a",`, maxSwitches) + `"b"]}`},
		{shows: "a tool as long as may be", data: `{"mcpServers": {}, "excludeTools": ["` + strings.Repeat("a", maxSwitches) + `"]}`},
		{shows: "a tool that is longer", data: `{"mcpServers": {}, "excludeTools": ["` + strings.Repeat("a", maxSwitches+1) + `"]}`},
		{shows: "a long name twice in what describes one server", opts: Options{Dialect: "mcpb"}, data: `{"server": {"mcp_config": {"` + long + `": 1, "` + strings.ToUpper(long) + `": 2}}}`},
		{shows: "no path", path: "-", data: `{"mcpServers": {"s": {"command": "run"}}}`},
		{shows: "inputs under mcp", opts: Options{Dialect: "vscode"}, data: `{"mcp": {"servers": {"s": {"command": "${input:a}"}}, "inputs": [{"id": "a", "type": "promptString"}]}}`, answer: "run"},
	})
}

// testdata/servers.golden has keys of one server.
func TestServersGolden(t *testing.T) {
	one := func(shows, members string) reading {
		return reading{shows: shows, opts: Options{Dialect: "mcphybrid"}, data: `{"mcpServers": {"s": {` + members + `}}}`}
	}
	in := func(dialect string, r reading) reading { r.opts.Dialect = dialect; return r }
	asks := func(answer string, r reading) reading {
		r.answer = answer
		r.data = r.data[:len(r.data)-1] + `, "inputs": [{"id": "a", "type": "promptString", "description": "An a", "password": true, "default": "d"}, {"id": "b", "type": "pickString", "options": ["x", {"label": "Y", "value": "y"}, 3]}, {"id": "c", "type": "command"}]}`
		return r
	}
	failing := asks("", one("asking fails", `"command": "${input:b}", "args": ["${input:b}"]`))
	failing.fails = true
	pictures(t, "servers", "Keys of one server: the file, then what becomes of it.", []reading{
		one("nothing", ``),
		one("both ways", `"command": "run", "url": "https://x.test"`),
		one("off, in any spelling", `"Is_Active": false`),
		one("off twice, by one of them", `"disabled": false, "enabled": false, "command": 3`),
		one("on", `"disabled": false, "enabled": true, "isActive": true, "command": "run"`),
		one("switches of the wrong kind", `"disabled": "yes", "enabled": null, "command": "run"`),
		one("values of the wrong kind", `"command": 1, "args": "a", "env": [], "cwd": {}, "url": 2, "headers": 3, "eager": "x", "needs": [], "resultSelect": 1, "prefix": 1, "protocol": 1, "noInstructions": 1, "noSkills": 1, "unlistedResources": 1, "tools": 1, "type": 1, "timeout": [], "callTimeout": {}, "envFile": 1, "oauth": 1, "headersHelper": 1`),
		one("nulls are as good as none", `"command": "run", "args": null, "env": null, "cwd": null, "url": null, "headers": null, "eager": null, "needs": null, "prefix": null, "tools": null, "type": null, "timeout": null, "oauth": null`),
		one("a null in lists and tables", `"command": "run", "args": ["a", null]`),
		one("nulls, numbers and lists in tables", `"command": "run", "env": {"A": null, "B": 1, "C": []}`),
		one("an object with a key twice", `"command": "run", "env": {"A": "1", "A": "2"}`),
		one("an object with one key in two spellings of its letters", `"command": "run", "env": {"A": "1", "a": "2"}`),
		one("commands of other names", `"cmd": "run", "args": [], "workingDirectory": "sub", "environment": {"A": "1"}, "envs": {"B": "2"}, "env": {"C": "3"}`),
		one("a command that is a list", `"command": ["run", "a"], "args": ["b"]`),
		one("a command that is an empty list", `"command": []`),
		one("a command that is an object", `"command": {"path": "run", "args": ["a"], "env": {"A": "1"}, "x": 1}`),
		one("a command that is an object of known members", `"command": {"path": "run", "args": ["a"], "env": {"A": "1"}}, "args": ["b"], "env": {"B": "2"}`),
		one("a number in the environment of such an object", `"command": {"path": "run", "env": {"A": 1}}`),
		one("a command that is an object with a key twice", `"command": {"path": "run", "path": "walk"}`),
		one("variables handed on", `"command": "run", "env_keys": ["TOKEN", "A_B"], "env": {"A_B": "own"}, "env_vars": ["a1", {"name": "EMPTY"}, {"name": "NOT_SET", "source": "local"}]`),
		one("variables handed on that can't be", `"command": "run", "env_vars": [3, "", {"name": ""}, {"name": "X", "source": "remote"}, {"name": "sk-123", "source": "a1b"}, {"source": "remote"}]`),
		one("a variable that Goose needs and nobody has", `"command": "run", "env_keys": ["NOT_SET"]`),
		one("addresses of other names", `"serverUrl": "https://x.test/a"`),
		one("two addresses", `"url": "https://x.test/a", "uri": "https://x.test/b"`),
		in("gemini", one("Gemini takes the first", `"command": "run", "args": ["a"], "cwd": "x", "env": {"A": "1"}, "httpUrl": "https://x.test/a", "url": "https://x.test/b"`)),
		in("gemini", one("Gemini without an address", `"command": "run", "args": ["a"], "cwd": "x"`)),
		one("an empty address", `"url": "", "command": "run"`),
		one("headers of all kinds", `"url": "https://x.test", "headers": {"A": "1"}, "http_headers": {"B": "2"}, "env_http_headers": {"C": "TOKEN", "D": "NOT_SET", "A": "A_B"}, "bearer_token_env_var": "TOKEN", "apiKey": "k", "requestOptions": {"headers": {"E": "5"}, "timeout": 3}, "http_headers_helper": "help"`),
		one("numbers in headers", `"url": "https://x.test", "headers": {"A": 1}, "http_headers": {"B": 2}, "env_http_headers": {"C": 3}, "requestOptions": {"headers": {"E": 5}}`),
		one("an API key", `"url": "https://x.test", "apiKey": "k"`),
		one("requestOptions of the wrong kind", `"url": "https://x.test", "requestOptions": 3`),
		in("goose", reading{shows: "servers inside their client", data: `{"extensions": {"a": {"type": "BuiltIn"}, "b": {"Type": "platform"}, "c": {"type": "stdio", "cmd": "run"}, "d": {"type": 3, "cmd": "run"}, "e": {"kind": "builtin", "cmd": "run"}}}`}),
		one("a type that fits", `"type": "local", "command": "run"`),
		one("a type that contradicts", `"type": "stdio", "url": "https://x.test"`),
		one("another that contradicts", `"transport": "sse", "command": "run"`),
		one("the older transport", `"transportType": "sse", "url": "https://x.test"`),
		one("a type that is not known", `"type": "websocket", "url": "https://x.test"`),
		one("a server one level too deep", `"inner": {"command": "run"}, "x": 1`),
		one("what looks like one inside a server", `"command": "run", "inner": {"command": "run"}`),
		one("keys that are not known", `"command": "run", "comand": 1, "trust": true, "alwaysAllow": [], "autoApprove": ["x"], "alwaysLoad": false, "required": true, "icon": "x", "metadata": {}, "longRunning": null, "a.b": 1`),
		one("keys that are refused", `"command": "run", "sandboxed": true, "bearerToken": "x", "uses": "x", "source": "extension", "authProviderType": "google", "environment_id": "cloud"`),
		one("keys that are refused, but for their values", `"command": "run", "sandboxed": false, "bearer_token": null, "source": "custom", "settings": {}, "authProviderType": "dynamic_discovery", "environmentId": "local"`),
		one("settings of an extension", `"settings": {"a": 1}`),
		one("lists of tools", `"command": "run", "tools": {"allow": ["a(b)"], "deny": ["c"]}, "disabledTools": ["d"], "exclude_tools": ["e(f)"]`),
		one("two lists of tools", `"command": "run", "tools": ["a"], "includeTools": ["b"]`),
		one("an empty list of tools", `"command": "run", "tools": []`),
		one("an empty list of those allowed", `"command": "run", "tools": {"allow": []}`),
		one("empty lists of other clients", `"command": "run", "enabledTools": []`),
		one("Goose's empty list is all", `"command": "run", "available_tools": []`),
		one("Goose's list", `"command": "run", "available_tools": ["x"]`),
		one("an object of tools with another key", `"command": "run", "tools": {"block": ["x"]}`),
		one("tools by name", `"command": "run", "tools": {"x": {"enabled": true, "disabled": false}, "y": {"disabled": true}, "z": {"enabled": 3, "other": 1}, "w": {"a": 1, "a": 2}}`),
		one("tools left out of a way", `"command": "run", "omit_tools_from": ["direct"]`),
		one("tools left out of another way", `"command": "run", "omit_tools_from": ["code_mode"]`),
		one("tools left out of both ways", `"command": "run", "omit_tools_from": ["direct", "deferred"]`),
		one("tools left out of all ways", `"command": "run", "omit_tools_from": ["direct", "deferred", "code_mode"]`),
		one("tools left out of an unknown way", `"command": "run", "omit_tools_from": ["else where1"]`),
		one("our own keys", `"command": "run", "needs": {"a": ["b"]}, "resultSelect": {"a": "${x}"}, "prefix": "p", "protocol": "2025-11-25", "eager": true, "noInstructions": true, "noSkills": true, "unlistedResources": true, "callTimeout": "1m"`),
		one("signing in", `"url": "https://x.test", "oauth": {"client_id": "c", "clientSecret": "x", "scope": "a b", "callbackPort": 8080, "enabled": true, "x": 1, "resource": null}`),
		one("signing in by a word", `"url": "https://x.test", "auth": "oauth"`),
		one("settings to sign in that are in no object", `"url": "https://x.test", "clientId": "c", "client_secret": "x", "scope": "a", "grantType": "client_credentials"`),
		one("signing in, switched off", `"url": "https://x.test", "oauth": false, "auth": {"enabled": false, "clientId": "c"}`),
		one("signing in in other words", `"url": "https://x.test", "oauth": true, "scopes": ["a"], "oauth_resource": "https://r.test", "oauth_client_id": "c", "oauth_callback_port": 70000`),
		one("signing in, with lists and wrong kinds", `"url": "https://x.test", "oauth": {"scopes": ["a", "b"], "clientId": 3, "enabled": "x", "redirectUri": "http://127.0.0.1:1/", "authorizationUrl": "https://a.test", "token_endpoint": "https://t.test"}`),
		one("signing in as itself", `"url": "https://x.test", "oauth": {"grantType": "client_credentials", "clientId": "c", "privateKey": "k", "keyId": "i"}`),
		one("signing in in a way that is not known", `"url": "https://x.test", "oauth": {"grantType": "password", "keyId": "i", "clientMetadataUrl": "https://x.test/"}`),
		one("signing in as itself without what that takes", `"url": "https://x.test", "oauth": {"grantType": "client_credentials"}`),
		one("a key with the other way to sign in", `"url": "https://x.test", "oauth": {"privateKey": "k", "clientMetadataUrl": "http://x.test/a"}`),
		one("signing in goes with an address", `"command": "run", "oauth": {}, "headersHelper": "h"`),
		one("timeouts of all names", `"command": "run", "connectionTimeout": 300, "callTimeout": 400, "startup_timeout_ms": 500, "startup_timeout_sec": 6, "tool_timeout_sec": 0.5`),
		one("timeouts at their limits", `"command": "run", "timeout": 100, "callTimeout": 86400000`),
		one("timeouts that are too short", `"command": "run", "timeout": 99, "callTimeout": 0, "startup_timeout_sec": 0.0009`),
		one("timeouts that are too long", `"command": "run", "timeout": 86400001, "callTimeout": 1e400, "startup_timeout_sec": 86401`),
		in("cline", one("seconds at their limit", `"command": "run", "timeout": 3600`)),
		in("cline", one("seconds beyond it", `"command": "run", "timeout": 3601`)),
		in("cline", one("the least number of seconds", `"command": "run", "timeout": 0.001`)),
		one("texts as timeouts", `"command": "run", "timeout": "0s", "callTimeout": "-1000h0m0s", "startup_timeout_ms": "this is no duration", "tool_timeout_sec": "1h"`),
		one("an empty object as timeout", `"command": "run", "timeout": {}`),
		one("an object as timeout, with another member", `"command": "run", "timeout": {"startup": 300, "x": 3}`),
		one("references", `"command": "${HOME}", "args": ["$HOME", "$${TOKEN}", "${env:TOKEN}", "${NOT_SET:-text}", "${EMPTY:-text}", "${TOKEN:-text}", "${a1}", "{env:TOKEN}", "a${userHome}b${/}", "${workspaceFolder}|${workspaceFolderBasename}|${__dirname}|${pathSeparator}"]`),
		one("what are references of other clients", `"command": "run", "args": ["${NOT_SET:-{env:X}", "${NOT_SET:-$X}", "${NOT_SET:-$(x)}"], "env": {"{env:A}": "1", "$B": "2", "$(c)": "3"}`),
		in("opencode", reading{shows: "opencode's references in a default and a name", data: `{"mcp": {"s": {"command": ["run", "${X:-{env:Y}"]}, "t": {"command": ["run"], "environment": {"{env:A}": "1"}}}}`}),
		{shows: "a server of a workspace that is named", path: "servers.json", opts: Options{Dialect: "vscode", Workspace: "w"}, data: `{"servers": {"s": {"command": "run"}}}`},
		{shows: "a server of a workspace that is not", path: "servers.json", opts: Options{Dialect: "vscode"}, data: `{"servers": {"s": {"command": "run"}}}`},
		one("references that are not known", `"command": "run", "args": ["${}", "${x y}", "${other:thing}", "${secret12345}", "${unclosed", "${A:-${B}}", "${env:}", "${A:?must}", "${input:a:-b}"]`),
		one("names that begin with a digit", `"command": "run", "args": ["${0A}", "${9A}", "${A0}", "${env:0A}", "${env:9A}", "${env:1_A}"]`),
		one("variables that are not set", `"command": "${NOT_SET}", "args": ["${NOT_SET}", "${ALSO_NOT}", "${sk_live_123}"]`),
		one("variables that are not set, and another problem", `"command": "${NOT_SET}", "prefix": 3`),
		one("references where names are", `"command": "run", "env": {"${A}": "1"}, "headers": {"${B}": "2"}, "prefix": "${C}", "tools": {"allow": ["${D}"]}, "needs": {"x": ["${E}"]}, "resultSelect": {"${F}": "."}`),
		{shows: "a reference in the name of a server", data: `{"mcpServers": {"${A}": {"command": "run"}}}`},
		one("content of files", `"command": "run", "args": ["${file:secret}", "${file:sub/key}", "${file:/here/secret}"]`),
		one("files that are not there", `"command": "run", "args": ["${file:none}", "${file:sub}", "${file:~/none}"]`),
		{shows: "content of files, as opencode writes them", opts: Options{Dialect: "opencode"}, data: `{"mcp": {"s": {"command": ["run", "{file:secret}", "{env:TOKEN}", "{env:TOKEN", "{x}"]}, "t": {"command": ["{env:NOT_SET}"]}}}`},
		{shows: "variables, as crush writes them", opts: Options{Dialect: "crush"}, data: `{"mcp": {"s": {"command": "$TOKEN", "args": ["$A_B-x", "$1", "a$", "${A_B}"]}, "t": {"command": "$TOKENS"}}}`},
		{shows: "a reference in a default, as crush writes them", opts: Options{Dialect: "crush"}, data: `{"mcp": {"s": {"command": "${X:-$TOKEN}"}}}`},
		one("a file of variables", `"command": "run", "envFile": "variables", "env": {"A": "own"}`),
		one("a file of variables that is wrong", `"command": "run", "envFile": "broken"`),
		one("a file of variables that is not there", `"command": "run", "envFile": "${file:sub/key}"`),
		asks("va", one("inputs", `"command": "${input:a}", "args": ["${input:b}", "x${input:a}y"]`)),
		asks("https://x.test", one("an address that the user says", `"url": "${input:a}", "headers": {"A": "${input:b}"}`)),
		asks("", one("nobody to ask", `"command": "${input:a}"`)),
		{shows: "nobody to ask for what is told at length", data: `{"mcpServers": {"s": {"command": "${input:a}"}}, "inputs": [{"id": "a", "type": "promptString", "description": "` + strings.Repeat("d", 201) + `"}]}`},
		asks("x", one("inputs that are not there or not known", `"command": "${input:z}", "args": ["${input:c}", "${input:sk12}"]`)),
		asks("x", one("nobody is asked if something else is missing", `"command": "${input:a}", "args": ["${NOT_SET}"]`)),
		asks("variables", one("a file of variables that the user says", `"command": "run", "envFile": "${input:b}"`)),
		failing,
		{shows: "inputs that are no list", opts: Options{Dialect: "mcphybrid"}, data: `{"mcpServers": {"s": {"command": "${input:a}"}}, "inputs": {}}`, answer: "x"},
		one("names of variables and headers that can't be", `"command": "run", "env": {"": "1", "A=sk-1": "2", "B": "\u0000"}`),
		one("headers that can't be", `"url": "https://x.test", "headers": {"": "1", "A b": "2", "C": "\r", "D: sk-2": "3"}`),
		one("NUL bytes", `"command": "r\u0000", "args": ["\u0000"]`),
		one("a NUL byte in an argument", `"command": "run", "args": ["a", "\u0000"]`),
		one("an address that is none", `"url": "x.test"`),
		one("a protocol that is none", `"command": "run", "protocol": "1"`),
	})
}

// testdata/published.golden has files that describe one server: bundles and server.json.
func TestPublishedGolden(t *testing.T) {
	bundle := func(shows, launch, settings string) reading {
		return reading{shows: "bundle: " + shows, path: "b/manifest.json", answer: "said", data: `{"name": "b", "server": {"mcp_config": {` + launch + `}}, "user_config": {` + settings + `}}`}
	}
	pack := func(shows, members string) reading {
		return reading{shows: "package: " + shows, path: "server.json", answer: "said", data: `{"name": "org/p", "packages": [{` + members + `}]}`}
	}
	npm := func(shows, members string) reading {
		return pack(shows, `"registryType": "npm", "identifier": "p", `+members)
	}
	remote := func(shows, members string) reading {
		return reading{shows: "remote: " + shows, path: "server.json", answer: "said", data: `{"name": "org/r", "remotes": [{` + members + `}]}`}
	}
	off := bundle("off", `"command": "run"`, ``)
	off.data = `{"disabled": true, ` + off.data[1:]
	pictures(t, "published", "Files that describe one server, bundles and server.json: the file, then what becomes of it.", []reading{
		bundle("folders and settings", `"command": "${__dirname}/run", "args": ["${user_config.a}", "-x=${user_config.a}", "${user_config.list}", "${user_config.no}", "${HOME}", "${DESKTOP}/x"], "env": {"A": "${user_config.secret}", "B": "${user_config.n}"}, "cwd": "${user_config.a}", "disabled_tools": ["t"]`,
			`"a": {"title": "An A", "default": "d"}, "list": {"default": ["${HOME}", "y", null]}, "secret": {"title": "T", "description": "D", "sensitive": true}, "n": {"default": 3}, "no": {"default": null}`),
		bundle("a list within a text", `"command": "run", "args": ["x${user_config.list}"]`, `"list": {"default": ["x", "y"]}`),
		bundle("a list of one within a text", `"command": "run", "args": ["x${user_config.list}", "${user_config.list}"]`, `"list": {"default": ["x"]}`),
		bundle("an empty list", `"command": "run", "args": ["${user_config.list}"]`, `"list": {"default": []}`),
		bundle("a setting that is not there", `"command": "run", "args": ["${user_config.z}"]`, ``),
		bundle("this platform", `"command": "run", "args": ["a"], "env": {"A": "1", "B": "2"}, "x": 1, "platform_overrides": {"this platform": {"command": "walk", "args": ["b"], "env": {"B": "3"}, "x": null}}`, ``),
		bundle("this platform without arguments", `"command": "run", "args": ["a"], "platform_overrides": {"this platform": {"args": []}}`, ``),
		bundle("this platform without a word of arguments", `"command": "run", "args": ["a"], "platform_overrides": {"this platform": {"env": {}}}`, ``),
		bundle("another platform", `"command": "run", "platform_overrides": {"plan9": {"command": "walk"}}`, ``),
		bundle("wrong kinds", `"command": 3`, ``),
		bundle("a key twice", `"command": "run", "Command": "walk"`, ``),
		bundle("variables of both spellings", `"command": "run", "env": {"a": "1", "A": "2"}`, ``),
		off,
		npm("an argument of each kind", `"version": "1.2", "runtimeArguments": [{"value": "--quiet"}], "packageArguments": [{"type": "named", "name": "--a", "value": "1"}, {"type": "named", "name": "--b"}, {"value": ""}, {"default": "d"}, {"valueHint": "hint", "isRequired": true, "description": "A hint"}, {"name": "pick", "isRequired": true, "choices": ["x", "y"], "isSecret": true}], "environmentVariables": [{"name": "K", "value": "v"}, {"name": "L"}]`),
		npm("variables", `"packageArguments": [{"value": "{a}-{b}-{a}{json: 1}", "variables": {"a": {"value": "1"}, "b": {"default": "2"}}}, {"value": "{c}", "variables": {"c": {}}}, {"value": "{d}", "default": "fallback", "variables": {"d": {}}}]`),
		npm("several variables that are asked for", `"packageArguments": [{"value": "{a}-{b}/{c}{d}", "variables": {"a": {"isRequired": true}, "b": {"isRequired": true}, "c": {"value": "C"}, "d": {"isRequired": true}}}]`),
		npm("a variable that is not there", `"packageArguments": [{"value": "{a}"}]`),
		npm("references", `"packageArguments": [{"value": "${HOME}"}]`),
		npm("a reference put together", `"packageArguments": [{"value": "${b}", "variables": {"b": {"value": "{HOME}"}}}]`),
		npm("a name that can't be asked for", `"packageArguments": [{"name": "a{b", "isRequired": true}]`),
		npm("a NUL byte", `"packageArguments": [{"name": "n", "value": "\u0000"}]`),
		npm("another registry", `"registryBaseUrl": "https://registry.evil.test"`),
		npm("the usual registry", `"registryBaseUrl": "https://packages.npmjs.example"`),
		npm("a registry that is no address", `"registryBaseUrl": "http://[x"`),
		npm("a registry of one word", `"registryBaseUrl": "https://npmjs"`),
		npm("options that take it from elsewhere", `"runtimeArguments": [{"value": "--reg=x"}]`),
		npm("short options that do", `"runtimeArguments": [{"value": "-qc"}]`),
		npm("short options that don't", `"runtimeArguments": [{"value": "-q"}, {"value": "-"}, {"value": "--r"}]`),
		npm("folders", `"runtimeArguments": [{"value": "./x"}]`),
		npm("an option's folder", `"runtimeArguments": [{"value": "--x=./x"}]`),
		npm("an address", `"runtimeArguments": [{"value": "git:x"}]`),
		npm("an option of a scope", `"runtimeArguments": [{"value": "--@a:registry"}]`),
		npm("what the user says is up to the user", `"runtimeArguments": [{"name": "where", "isRequired": true}]`),
		npm("settings of npm", `"environmentVariables": [{"name": "npm_config_x", "value": "v"}]`),
		npm("off", `"disabled": true`),
		pack("no package", `"registryType": "npm", "identifier": "-p"`),
		pack("of PyPI", `"registryType": "pypi", "identifier": "p", "version": "1", "runtimeArguments": [{"value": "--index"}]`),
		pack("of PyPI, whole", `"registryType": "pypi", "identifier": "p[x]", "version": "1", "runtimeArguments": [{"value": "--ind"}], "transport": {"type": "stdio"}`),
		pack("an image", `"registryType": "oci", "identifier": "ghcr.io/a/b", "version": "1", "runtimeArguments": [{"value": "--network=none"}], "environmentVariables": [{"name": "K", "value": "v"}, {"name": "J", "value": "w"}]`),
		pack("an image with its version", `"registryType": "oci", "identifier": "a/b:2", "version": "1"`),
		pack("over HTTP", `"registryType": "npm", "identifier": "p", "transport": {"type": "sse"}`),
		pack("of another kind", `"registryType": "nuget", "identifier": "p"`),
		pack("wrong kinds", `"registryType": 3`),
		remote("an address", `"type": "streamable-http", "url": "https://x.test/{a}", "variables": {"a": {"description": "An a"}}, "headers": [{"name": "H", "value": "Bearer {t}", "variables": {"t": {"isRequired": true, "isSecret": true}}}, {"name": "I"}]`),
		remote("an address with a default", `"type": "sse", "url": "https://x.test/{a}", "variables": {"a": {"default": "d"}}, "disabled": false`),
		remote("an address off", `"type": "sse", "url": "https://x.test", "disabled": true`),
		{shows: "the first package that can be started", path: "server.json", data: `{"name": "p", "packages": [{"registryType": "nuget", "identifier": "a"}, {"registryType": "pypi", "identifier": "b"}, {"registryType": "npm", "identifier": "c"}], "remotes": [{"url": "https://x.test"}]}`},
		{shows: "a remote if no package can", path: "server.json", data: `{"name": "a/b/p", "packages": [{"registryType": "nuget", "identifier": "a"}], "remotes": [{"type": "sse", "url": "https://x.test"}, {"type": "sse", "url": "https://y.test"}]}`},
		{shows: "wrong kinds of packages", path: "server.json", data: `{"name": 3, "packages": [{"registryType": "npm"}]}`},
		npm("a value as long as may be", `"packageArguments": [{"value": "{a}{a}", "variables": {"a": {"value": "`+strings.Repeat("x", maxValue/2)+`"}}}]`).withoutServers(),
		npm("a value that is longer", `"packageArguments": [{"value": "{a}{a}", "variables": {"a": {"value": "`+strings.Repeat("x", maxValue/2+1)+`"}}}]`),
		npm("values that are too long together", `"packageArguments": [`+strings.Repeat(`{"value": "`+strings.Repeat("x", maxValue)+`"},`, 16)+`{"value": "x"}]`),
	})
}

// withoutServers leaves a server out of the picture that would be too long in it.
func (r reading) withoutServers() reading {
	r.opts.Dialect = "registry"
	r.shows += ", off"
	r.data = strings.Replace(r.data, `"registryType"`, `"disabled": true, "registryType"`, 1)
	return r
}
