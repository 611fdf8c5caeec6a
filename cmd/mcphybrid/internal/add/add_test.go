package add

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/config"
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
		folder: "has no server", "/no/such": "no such file", "http://mcp.example/x": "want an https address", web.URL + "/nowhere": "status 404",
		web.URL + "/endless": "not among its first 20 pages", web.URL + "/away": "leads elsewhere", web.URL + "/large": "more than 4194304 bytes",
		commandtest.WriteFile(t, "x.json", "{"): "unexpected end",
	} {
		_, err := find(t.Context(), place, "sun")
		assert.ErrorContains(t, err, want, place)
	}
	_, err := find(t.Context(), commandtest.WriteFile(t, "list.json", `[{"name": "a/x"}, {"name": "b/x"}]`), "x")
	assert.ErrorContains(t, err, "name one of a/x, b/x")
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
