package add

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/jsonc"
)

const weather = `{"name": "io.example/weather", "description": "Tells the weather", "version": "1.2.0",
	"packages": [{"registryType": "npm", "identifier": "@example/weather", "version": "1.2.0", "transport": {"type": "stdio"},
		"environmentVariables": [{"name": "WEATHER_KEY", "isRequired": true, "isSecret": true, "description": "The key of your account"}]}]}`

const remote = `{"name": "io.example/far", "description": "Far away", "version": "1.0.0",
	"remotes": [{"type": "streamable-http", "url": "https://mcp.example/mcp", "headers": [{"name": "Authorization", "value": "Bearer {token}", "isSecret": true,
		"variables": {"token": {"isRequired": true, "isSecret": true, "description": "A token"}}}]}]}`

// added runs the command, with an answer to its question.
func added(t *testing.T, answer string, args ...string) (stdout string, err error) {
	t.Helper()
	stdout, _, err = commandtest.Command(func(ctx context.Context, args []string, out, errs *os.File) error {
		return run(ctx, args, strings.NewReader(answer), out, errs)
	}).Run(t, args...)
	return stdout, err
}

// What a server would run and ask for is shown, and written if the user agrees. The gateway
// reads what was written.
func TestAdd(t *testing.T) {
	from := commandtest.WriteFile(t, "server.json", weather)
	path := commandtest.WriteFile(t, "mcp.json", "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"}\n  }\n}\n")
	for _, answer := range []string{"", "n\n", "maybe\n"} {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = added(t, answer, "-registry", from, "-config", path, "weather")
		assert.EqualError(t, err, "nothing was added")
		after, _ := os.ReadFile(path)
		assert.Equal(t, before, after)
	}
	require.NoError(t, os.Chmod(path, 0o640))
	stdout, err := added(t, "y\n", "-registry", from, "-config", path, "io.example/weather")
	require.NoError(t, err)
	for _, want := range []string{"Tells the weather", "npx -y -- '@example/weather@1.2.0'", "env WEATHER_KEY: ${WEATHER_KEY}", "set the variable WEATHER_KEY, a secret: The key of your account"} {
		assert.Contains(t, stdout, want)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o640, info.Mode().Perm())
	t.Setenv("WEATHER_KEY", "k")
	file, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Len(t, file.Servers, 2)
	assert.Equal(t, "weather", file.Servers[1].Name)
	assert.Equal(t, "k", file.Servers[1].Env["WEATHER_KEY"])
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"},\n    \"weather\": {"), "%s", text)

	_, err = added(t, "", "-yes", "-registry", from, "-config", path, "weather")
	assert.ErrorContains(t, err, `it has a server "weather" already`)
	_, err = added(t, "", "-yes", "-registry", commandtest.WriteFile(t, "server.json", remote), "-config", path, "-as", "two", "far")
	require.NoError(t, err)
	t.Setenv("TOKEN", "t")
	file, err = config.Load(path, nil)
	require.NoError(t, err)
	require.Len(t, file.Servers, 3)
	assert.Equal(t, "two", file.Servers[2].Name)
	assert.Equal(t, "Bearer t", file.Servers[2].Headers["Authorization"])

	fresh := filepath.Join(t.TempDir(), "mcp.json")
	_, err = added(t, "", "-yes", "-registry", from, "-config", fresh, "weather")
	require.NoError(t, err)
	_, err = config.Load(fresh, nil)
	assert.NoError(t, err)
	_, err = added(t, "", "-yes", "-registry", from, "-config", filepath.Join(t.TempDir(), "config.toml"), "weather")
	assert.ErrorContains(t, err, "only JSON is written")
	for _, args := range [][]string{nil, {"x"}, {"-registry", from}, {"-registry", from, "x", "y"}, {"-nonsense"}} {
		_, err := added(t, "", args...)
		assert.Error(t, err, args)
	}
}

// A server of a foreign file must not have the user's variables read.
func TestForeignReferences(t *testing.T) {
	t.Setenv("HOME_SECRET", "abcd")
	_, err := propose([]byte(strings.Replace(weather, `"isRequired": true`, `"value": "${HOME_SECRET}"`, 1)))
	assert.ErrorContains(t, err, "no meaning in a server.json")
}

// A server is found in a file, a list, a folder and at an address, by its name or the last
// part of that, in its latest version.
func TestFind(t *testing.T) {
	old := strings.ReplaceAll(weather, "1.2.0", "1.0.0")
	wrapped := func(server, more string) string { return fmt.Sprintf(`{"server": %s%s}`, server, more) }
	list := `{"servers": [` + wrapped(weather, `, "_meta": {"x/official": {"isLatest": true}}`) + `, ` + wrapped(old, "") + `, 5, {"server": 5}, ` + remote + `], "metadata": {"count": 3}}`
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "a"), 0o700))
	for name, text := range map[string]string{"a/1.json": old, "a/2.json": weather, "a/3.json": "{", "other.txt": "x", "far.json": remote} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/endless":
			fmt.Fprintf(w, `{"servers": [], "metadata": {"nextCursor": "%sx"}}`, r.FormValue("cursor"))
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		case r.URL.Path == "/large":
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxBytes+1))
		case r.URL.Path != "/v0/servers" || r.FormValue("search") != "weather" && r.FormValue("search") != "far":
			http.NotFound(w, r)
		case r.FormValue("cursor") == "":
			fmt.Fprint(w, `{"servers": [], "metadata": {"nextCursor": "2"}}`)
		default:
			fmt.Fprint(w, list)
		}
	}))
	defer web.Close()
	for _, place := range []string{commandtest.WriteFile(t, "list.json", list), commandtest.WriteFile(t, "list.json", "["+old+","+weather+"]"), folder, web.URL + "/v0/servers"} {
		for _, name := range []string{"weather", "io.example/weather"} {
			data, err := find(t.Context(), place, name)
			require.NoError(t, err, place)
			assert.Contains(t, string(data), "1.2.0", place)
		}
	}
	for place, want := range map[string]string{
		"http://[": "missing ']'", folder: "has no server", "/no/such": "no such file", "http://mcp.example/x": "want an https address", web.URL + "/nowhere": "status 404",
		web.URL + "/endless": "not among its first 20 pages", web.URL + "/away": "leads elsewhere", web.URL + "/large": "more than 4194304 bytes",
		commandtest.WriteFile(t, "x.json", "{"): "unexpected end",
	} {
		_, err := find(t.Context(), place, "sun")
		assert.ErrorContains(t, err, want, place)
	}
	_, err := find(t.Context(), commandtest.WriteFile(t, "list.json", `[{"name": "a/x"}, {"name": "b/x"}]`), "x")
	assert.ErrorContains(t, err, "name one of a/x, b/x")
	for _, list := range []string{`[{"name": "x"}, {"name": "a/x"}]`, `[{"name": "a/x"}, {"name": "x"}]`} {
		data, err := find(t.Context(), commandtest.WriteFile(t, "list.json", list), "x")
		require.NoError(t, err, list)
		assert.JSONEq(t, `{"name": "x"}`, string(data), "a whole name goes before the last part of one")
	}
}

// A file may have 4 MiB, and a registry may lead a client on within itself five times.
func TestLimitsOfRegistries(t *testing.T) {
	t.Parallel()
	padded := func(size int) string { return weather + strings.Repeat(" ", size-len(weather)) }
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(r.FormValue("left")); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprint("/?left=", n-1), http.StatusFound)
			return
		}
		fmt.Fprint(w, "["+weather+"]")
	}))
	defer web.Close()
	for place, want := range map[string]string{
		commandtest.WriteFile(t, "list.json", padded(maxBytes)):   "",
		commandtest.WriteFile(t, "list.json", padded(maxBytes+1)): "more than 4194304 bytes",
		web.URL + "?left=5": "",
		web.URL + "?left=6": "it leads elsewhere",
	} {
		data, err := find(t.Context(), place, "weather")
		if want != "" {
			assert.ErrorContains(t, err, want, place)
		} else if assert.NoError(t, err, place) {
			assert.JSONEq(t, weather, string(data), place)
		}
	}
}

// What comes last in a list that goes on for as many pages as are read is found, and so is
// what came before it went on for more.
func TestPagesOfRegistries(t *testing.T) {
	t.Parallel()
	const has = `{"servers": [` + weather + `], "metadata": {"nextCursor": %q}}`
	for _, test := range []struct {
		at, pages int
		want      string // in the error
	}{
		{1, maxPages + 1, ""},
		{maxPages, maxPages, ""},
		{maxPages, maxPages + 1, ""},
		{maxPages + 1, maxPages + 1, "not among its first 20 pages"},
	} {
		var asked atomic.Int32
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, next := int(asked.Add(1)), ""
			if page < test.pages {
				next = fmt.Sprint(page)
			}
			if page == test.at {
				fmt.Fprintf(w, has, next)
			} else {
				fmt.Fprintf(w, `{"servers": [], "metadata": {"nextCursor": %q}}`, next)
			}
		}))
		_, err := find(t.Context(), web.URL, "weather")
		web.Close()
		if test.want != "" {
			assert.ErrorContains(t, err, test.want)
		} else {
			assert.NoError(t, err, "%+v", test)
		}
		assert.EqualValues(t, min(test.pages, maxPages), asked.Load(), "%+v", test)
	}
}

// The rest of a file stays as it is.
func TestInserted(t *testing.T) {
	t.Parallel()
	const entryText = "\"n\": {\n      \"command\": \"c\"\n    }"
	for before, want := range map[string]string{
		`{"mcpServers": {}}`:                               "{\"mcpServers\": {\n    " + entryText + "\n  }}",
		`{"x": [1], "mcpServers": {"a": {}}, "y": 2}`:      "{\"x\": [1], \"mcpServers\": {\"a\": {},\n    " + entryText + "}, \"y\": 2}",
		"{\"mcpServers\": {\"a\": {} // one\n  }}":         "{\"mcpServers\": {\"a\": {},\n    " + entryText + " // one\n  }}",
		"{\"mcpServers\": {\"a\": {},}, /* } */ \"b\": 1}": "{\"mcpServers\": {\"a\": {},\n    " + entryText + ",}, /* } */ \"b\": 1}",
	} {
		got, err := inserted([]byte(before), "n", entry{Command: "c"})
		if assert.NoError(t, err, before) {
			assert.Equal(t, want, string(got))
		}
	}
	for before, want := range map[string]string{"": "not JSON", "[]": "no object", `{"servers": {}}`: "no \"mcpServers\"", `{"mcpServers": []}`: "is no object", `{"mcpServers": {"N": {}}}`: "already"} {
		_, err := inserted([]byte(before), "n", entry{})
		assert.ErrorContains(t, err, want, before)
	}
	_, err := inserted([]byte(`{"mcpServers": {}}`), "n\xff", entry{})
	assert.EqualError(t, err, "there is no place to write the server to", "JSON can't have that name")
}

// Whatever a file has, one server more is in it, and all others are as they were, in their
// order.
func FuzzInserted(f *testing.F) {
	for _, s := range []string{`{"mcpServers": {}}`, `{"mcpServers": {"a": {}, /* , */ }}`, "{\"mcpServers\": {\"a\": 1 //}\n}}", `{"mcpServers": {"a": 1}, "mcpServers": {}}`} {
		f.Add([]byte(s), "n")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		next, err := inserted(data, name, entry{Command: "c"})
		if err != nil {
			return
		}
		before, _, err := members(jsonc.ToJSON(data))
		require.NoError(t, err)
		after, _, err := members(jsonc.ToJSON(next))
		require.NoError(t, err)
		require.Equal(t, append([]string{}, before...), after[:len(before)])
		require.Len(t, after, len(before)+1)
	})
}

// Whatever a registry says, a proposal asks for what it has references to, and is JSON.
func FuzzPropose(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte(remote))
	f.Add([]byte(`{"servers": [{"server": ` + weather + `}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := matches{name: "weather"}
		_, _ = m.take(data)
		p, err := propose(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(p.entry)
		require.NoError(t, err)
		require.Equal(t, len(p.asks) > 0, strings.Contains(string(text), "${"))
	})
}

// What can't be written to, or under that name, is told before anything is.
func TestInsertRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large := commandtest.WriteFile(t, "mcp.json", `{"mcpServers": {}}`+strings.Repeat(" ", maxBytes))
	full := strings.TrimSuffix(`{"mcpServers": {}}`+strings.Repeat(" ", maxBytes-18), "")
	for _, test := range []struct{ path, name, want string }{
		{folder, "a", "is a directory"},
		{large, "a", "it has more than 4194304 bytes"},
		{filepath.Join(folder, "new.json"), "", `"" can't be its name: -as NAME gives another`},
		{filepath.Join(folder, "new.json"), "a${B}", `"a${B}" can't be its name: -as NAME gives another`},
		{filepath.Join(folder, "a.TOML"), "a", "only JSON is written"},
		{filepath.Join(folder, "a.yaml"), "a", "only JSON is written"},
		{filepath.Join(folder, "a.yml"), "a", "only JSON is written"},
		{commandtest.WriteFile(t, "mcp.json", `{"mcpServers": {"a": {}}}`), "A", `it has a server "a" already`},
		{commandtest.WriteFile(t, "mcp.json", `{"mcpServers": {}, "mcpServers": {"x"}}`), "a", "it is not JSON"},
	} {
		data, err := insert(test.path, &proposal{name: test.name})
		assert.ErrorContains(t, err, test.want)
		assert.Nil(t, data, test.want)
	}
	next, err := inserted([]byte(full), "a", entry{URL: "https://a.example/?x=1&y=<2>"})
	require.NoError(t, err)
	assert.Contains(t, string(next), `"https://a.example/?x=1&y=<2>"`, "as a person writes it")
	assert.Error(t, write(filepath.Join(folder, "none", "mcp.json"), nil))
}

// A file that is reached by a link is replaced where it is, all at once.
func TestWriteThroughALink(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	t.Parallel()
	folder := t.TempDir()
	target, link := filepath.Join(folder, "a.json"), filepath.Join(folder, "link.json")
	require.NoError(t, write(target, []byte("one")))
	info, err := os.Stat(target)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm(), "a new file is the owner's")
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, write(link, []byte("two")))
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "two", string(data))
	info, err = os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 2, "nothing is left beside them")
}

// A folder has so many files, of so many bytes, and each is small.
func TestFoldersAreBounded(t *testing.T) {
	t.Parallel()
	file := func(folder, name string, bytes int) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(weather+strings.Repeat(" ", max(0, bytes-len(weather)))), 0o600))
	}
	many, large, one := t.TempDir(), t.TempDir(), t.TempDir()
	for i := range maxFiles {
		require.NoError(t, os.WriteFile(filepath.Join(many, fmt.Sprint(i, ".json")), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(many, "other.txt"), nil, 0o600)) // another kind of file
	require.NoError(t, new(matches).read(many))
	file(many, "z.json", 0)
	assert.EqualError(t, new(matches).read(many), fmt.Sprintf("%s has more than %d files", many, maxFiles))
	for size := 0; size < maxFolders; size += maxBytes {
		file(large, fmt.Sprint(size, ".json"), maxBytes)
	}
	require.NoError(t, new(matches).read(large))
	file(large, "z.json", 0)
	assert.EqualError(t, new(matches).read(large), fmt.Sprintf("%s has more than %d bytes", large, maxFolders))
	file(one, "a.json", maxBytes+1)
	assert.EqualError(t, new(matches).read(one), fmt.Sprintf("%s: more than %d bytes", filepath.Join(one, "a.json"), maxBytes))
}

// A proposal is one server that is switched on, whose variables have names of their own.
func TestPropose(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{`:                               "JSON",
		`{"name": "a/b", "version": "1"}`: "",
		strings.ReplaceAll(strings.Replace(remote, `{"name": "Authorization"`, `{"name": "X", "value": "{TOKEN}", "variables": {"TOKEN": {"isRequired": true}}}, {"name": "Authorization"`, 1), "\t", ""): `is no name for a variable of its own`,
	} {
		p, err := propose([]byte(data))
		assert.ErrorContains(t, err, want, data)
		assert.Nil(t, p, data)
	}
	for length, shown := range map[int]string{200: strings.Repeat("1", 200), 201: strings.Repeat("1", 199) + "…"} {
		name := strings.Repeat("1", length)
		_, err := propose([]byte(`{"name": "a/b", "remotes": [{"type": "streamable-http", "url": "https://mcp.example/{` + name + `}", "variables": {"` + name + `": {"isRequired": true}}}]}`))
		assert.ErrorContains(t, err, `"`+shown+`" is no name`, length)
	}
	long := strings.Replace(strings.Replace(remote, "A token", strings.Repeat("a", 201), 1), "Far away", strings.Repeat("f", 201), 1)
	p, err := propose([]byte(long))
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("f", 199)+"…", p.description)
	assert.Equal(t, strings.Repeat("a", 199)+"…", p.asks[0].description)
	p, err = propose([]byte(strings.Replace(remote, "streamable-http", "sse", 1)))
	require.NoError(t, err)
	assert.Equal(t, &proposal{registered: "io.example/far", name: "far", description: "Far away",
		entry: entry{Type: "sse", URL: "https://mcp.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
		asks:  []asked{{"TOKEN", "A token", true}}}, p)
	for id, want := range map[string]string{"azAZ09": "AZAZ", "a09z": "A09Z", "a-b c": "A_B_C", "é": "", "_x_": "X"} {
		assert.Equal(t, want, variable(id), id)
	}
}

// Errors of the flags are another status than those of what they name.
func TestStatusOfAdd(t *testing.T) {
	t.Parallel()
	from := commandtest.WriteFile(t, "server.json", weather)
	for want, args := range map[int][]string{
		2: {"-nonsense"}, 1: {"-registry", from, "sun"},
	} {
		_, err := added(t, "", args...)
		assert.Equal(t, want, exit.Status(err), "%v: %v", args, err)
	}
	_, err := added(t, "", "-nonsense")
	assert.EqualError(t, err, "flag provided but not defined: -nonsense")
	_, err = added(t, "", "-h")
	assert.ErrorIs(t, err, flag.ErrHelp)
	_, err = added(t, "", "-yes", "-registry", commandtest.WriteFile(t, "server.json", `{"name": "a/sun", "version": "1"}`), "sun")
	assert.ErrorContains(t, err, `server "sun": `)
	_, err = added(t, "", "-yes", "-registry", from, "-config", t.TempDir(), "weather")
	assert.ErrorContains(t, err, "is a directory")
	stdout, err := added(t, "", "-yes", "-registry", from, "-config", filepath.Join(t.TempDir(), "none", "mcp.json"), "weather")
	assert.ErrorContains(t, err, "no such file")
	assert.NotContains(t, stdout, "added to")
}
