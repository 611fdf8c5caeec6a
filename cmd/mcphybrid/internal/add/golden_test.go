package add

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a file becomes with one more server, or why it is left as it is.
func TestFilesWithOneMore(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What files become with one more server, or why they are left as they are.\n")
	value := entry{Type: "sse", Command: "a<b>", Args: []string{"x", "y z"}, Env: map[string]string{"K": "${K}"}, URL: "https://e.example/?a&b", Headers: map[string]string{"H": "v"}}
	for _, data := range []string{
		"", "{", "[]", "5", "null", "{}", `{"mcpServers": []}`, `{"mcpServers": {}}`, `{"mcpServers": {}} x`, `{"mcpServers": null}`, `{"servers": {}}`, `{"mcpservers": {}}`,
		"{\n  \"mcpServers\": {\n  }\n}\n", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},}, }", "{\"other\": {\"mcpServers\": 1}, \"mcpServers\": {\"a\": 1, \"b\": {\"c\": [1, {\"}\": 2}]}}, \"last\": true}",
		"// first\n{\n  \"mcpServers\": { // inside\n    \"a\": 1 // behind\n    /* end */\n  } // after\n}", `{"mcpServers": {"NEW": 1}}`, `{"mcpServers": {"new ": 1}}`, `{"mcpServers": {"a": 1}, "mcpServers": {"new": 1}}`, "{\n  \"mcpServers\": {}, // the first\n  \"other\": {\"mcpServers\": {}},\n  \"mcpServers\": {}\n}", "{\"mcpServers\": {},\n\"mcp\\u0053ervers\": 1,\n\"mcpServers\": {}}", `{"mcpServers": {"\u006eew": 1}}`,
	} {
		next, err := inserted([]byte(data), "new", value)
		fmt.Fprintf(&b, "\n======== %s\n%s%s\n", data, next, saysWhy(err))
	}
	for _, name := range []string{`a"b`, "é\n", "<x>"} {
		next, err := inserted([]byte(`{"mcpServers": {}}`), name, entry{URL: "u"})
		fmt.Fprintf(&b, "\n======== the name %q\n%s%s\n", name, next, saysWhy(err))
	}
	for _, n := range []int{maxBytes, maxBytes + 1} {
		const empty = `{"mcpServers": {}}`
		next, err := inserted([]byte(empty+strings.Repeat(" ", n-len(empty))), "new", entry{})
		fmt.Fprintf(&b, "\n======== %d bytes\n%d bytes%s\n", n, len(next), saysWhy(err))
	}
	dir := t.TempDir()
	for _, path := range []string{"none.json", "a.TOML", "a.yaml", "a.yml", "a.txt", "folder"} {
		path = filepath.Join(dir, path)
		if filepath.Base(path) == "folder" {
			require.NoError(t, os.Mkdir(path, 0o700))
		}
		for _, name := range []string{"", "x${y}", "new"} {
			next, err := insert(path, &proposal{name: name, entry: entry{Command: "c"}})
			fmt.Fprintf(&b, "\n======== %s, name %q\n%s%s\n", filepath.Base(path), name, next, saysWhy(err))
		}
	}
	golden.Compare(t, "inserted.golden", strings.ReplaceAll(b.String(), dir+string(filepath.Separator), ""))
}

func saysWhy(err error) string {
	if err == nil {
		return ""
	}
	return "refused: " + err.Error()
}

// What is proposed for a server.json, and how it is shown.
func TestProposals(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is proposed for each server.json: as it is shown, and as it is written.\n")
	const pack = `{"registryType": "npm", "identifier": "e", "version": "1.0.0", "transport": {"type": "stdio"}`
	for _, data := range []string{
		weather, remote, `{}`, `[]`, `{"name": "io.example/x"}`, `{`,
		`{"name": "io.example/odd name", "description": "two\nlines \u202e", "packages": [{"registryType": "pypi", "identifier": "e", "version": "2", "runtimeHint": "uvx", "transport": {"type": "stdio"}, "packageArguments": [{"type": "positional", "value": "a b"}, {"type": "named", "name": "--key", "value": "{k}", "variables": {"k": {"isSecret": true, "description": "A key"}}}]}]}`,
		`{"name": "io.example/sse", "description": "", "remotes": [{"type": "sse", "url": "https://e.example/sse"}]}`,
		`{"name": "io.example/none", "packages": [` + pack + `, "environmentVariables": [{"name": "A", "isRequired": true, "description": "First"}, {"name": "a", "isRequired": true}]}]}`,
		`{"name": "io.example/digits", "packages": [` + pack + `, "environmentVariables": [{"name": "12", "isRequired": true}]}]}`,
		`{"name": "io.example/many", "packages": [` + pack + `, "environmentVariables": [{"name": "z-key_9a", "isRequired": true, "isSecret": true, "description": "` + strings.Repeat("long ", 60) + `"}, {"name": "B", "value": "fixed"}, {"name": "C", "default": "d"}, {"name": "OPTIONAL"}]}]}`,
	} {
		fmt.Fprintf(&b, "\n======== %.80s\n", data)
		p, err := propose([]byte(data))
		if err != nil {
			b.WriteString(saysWhy(err) + "\n")
			continue
		}
		p.show(terminal.Paper(&b, 100), "mcp.json")
		written, err := json.Marshal(p.entry)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %s\n", p.name, written)
	}
	for _, id := range []string{"", "a", "Z", "aZ09", "0a9", "_a_", "a-b.c/d", "é", "@[`{", "az", "AZ", "9"} {
		fmt.Fprintf(&b, "\nthe variable of %q is %q", id, variable(id))
	}
	golden.Compare(t, "proposals.golden", b.String()+"\n")
}

// Which server of a list is meant by a name.
func TestMatches(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Which server of a list is meant by a name: its data, where the list goes on, or why there is none.\n")
	one := func(name, version string) string { return fmt.Sprintf(`{"name": %q, "version": %q}`, name, version) }
	in := func(server string, latest bool) string {
		return fmt.Sprintf(`{"server": %s, "_meta": {"a": {"isLatest": false}, "b": {"isLatest": %v}}}`, server, latest)
	}
	lists := []struct{ what, data string }{
		{"one server", one("io.example/x", "1")},
		{"an empty list", `[]`}, {"nothing", ``}, {"a number", `5`}, {"an object of nothing", `{}`}, {"a wrong type", `{"servers": 5}`}, {"a wrong name", `{"name": 5}`},
		{"an empty list with a name", `{"name": "io.example/x", "servers": []}`},
		{"two versions", `[` + one("io.example/x", "1") + `, ` + one("io.example/x", "2") + `]`},
		{"two versions, the first is the latest", `{"servers": [` + in(one("io.example/x", "2"), true) + `, ` + in(one("io.example/x", "1"), false) + `], "metadata": {"nextCursor": "more"}}`},
		{"two of that last part", `[` + one("io.z/x", "1") + `, ` + one("io.a/x", "1") + `, ` + one("io.z/x", "2") + `]`},
		{"one has the name itself", `[` + one("io.z/x", "1") + `, ` + one("x", "2") + `, ` + one("io.a/x", "3") + `]`},
		{"malformed ones", `[5, {"name": 5}, {"server": 5}, {"name": ""}, ` + one("io.example/x", "1") + `]`},
		{"a name that only ends so", `[` + one("io.example/ax", "1") + `]`},
	}
	for _, list := range lists {
		for _, name := range []string{"x", "io.example/x", "io.z/x"} {
			m := matches{name: name}
			next, err := m.take([]byte(list.data))
			fmt.Fprintf(&b, "\n%s, by %s: ", list.what, name)
			if err != nil {
				b.WriteString(saysWhy(err))
				continue
			}
			data, err := m.one()
			fmt.Fprintf(&b, "%s%s", data, saysWhy(err))
			if next != "" {
				fmt.Fprintf(&b, ", goes on at %q", next)
			}
		}
	}
	golden.Compare(t, "matches.golden", b.String()+"\n")
}

// All that the command prints, when it asks and when it does not.
func TestWhatIsPrinted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, path := filepath.Join(dir, "server.json"), filepath.Join(dir, "mcp file.json")
	require.NoError(t, os.WriteFile(from, []byte(weather), 0o600))
	var b strings.Builder
	b.WriteString("All that the command prints, and the file if it has changed.\n")
	last := ""
	for _, test := range []struct {
		answer string
		args   []string
	}{
		{"n\n", []string{"weather"}}, {"", []string{"weather"}}, {"yess\n", []string{"weather"}}, {strings.Repeat(" ", 100) + "y\n", []string{"weather"}}, {" YES \n", []string{"weather"}}, {"Y", []string{"-as", "two", "weather"}}, {"n\n", []string{"-as", "three", "-yes", "weather"}},
		{"", []string{"weather"}}, {"", []string{"-as", "${x}", "weather"}}, {"", []string{"rain"}}, {"", []string{"weather", "rain"}}, {"", nil},
	} {
		out, err := added(t, test.answer, append([]string{"-registry", from, "-config", path}, test.args...)...)
		fmt.Fprintf(&b, "\n======== %q, answered %q\n%s\n%s\n", test.args, strings.TrimLeft(test.answer, " "), out, saysWhy(err))
		if file, _ := os.ReadFile(path); string(file) != last {
			fmt.Fprintf(&b, "-------- the file\n%s", file)
			last = string(file)
		}
	}
	out, err := added(t, "", "weather")
	fmt.Fprintf(&b, "\n======== without -registry\n%s%s\n", out, saysWhy(err))
	left, err := filepath.Glob(filepath.Join(dir, ".mcp-*"))
	require.NoError(t, err)
	require.Empty(t, left, "no temporary file stays")
	golden.Compare(t, "printed.golden", strings.ReplaceAll(b.String(), dir, "DIR"))
}

// An address is asked over https, and by a number of loopback also over http: by no name, which somebody else may answer to.
func TestAddressesOfRegistries(t *testing.T) {
	t.Parallel()
	const refused = "want an https address"
	for _, address := range []string{"http://registry.example/", "http://localhost:1/", "http://10.0.0.1/", "ftp://127.0.0.1/", "file:///etc/passwd", "http://user:hunter22@h.example/"} {
		_, err := find(t.Context(), address, "x")
		require.ErrorContains(t, err, refused, address)
		assert.NotContains(t, err.Error(), "hunter22")
	}
	for _, address := range []string{"https://127.0.0.1:1/", "http://127.0.0.1:1/", "http://[::1]:1/"} { // nobody answers there
		_, err := find(t.Context(), address, "x")
		require.Error(t, err)
		assert.NotContains(t, err.Error(), refused, address)
	}
	_, err := find(t.Context(), "https://%zz/", "x")
	assert.Error(t, err)
}
