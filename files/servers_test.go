package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadServersOfContinue(t *testing.T) {
	t.Setenv("TICKETS_TOKEN", "t")
	cfg, err := LoadServers("testdata/continue/config.yaml", nil)
	assert.EqualError(t, err, "mcphybrid: testdata/continue/config.yaml: server \"example/hub-server\": \"uses\": a block of Continue's hub is not fetched: write the server out")
	assert.Equal(t, "continue", cfg.Dialect)
	env := map[string]string{"LOG_LEVEL": "debug", "PORT": "8080"}
	token := map[string]string{"Authorization": "Bearer t"}
	assert.Equal(t, []config.Server{
		{Name: "sqlite", Command: "npx", Args: []string{"-y", "mcp-sqlite", "/home/ann/shop.db"}, Env: env, StartTimeout: 30 * time.Second},
		{Name: "tickets", URL: "https://tickets.example.com/mcp", Headers: token},
		{Name: "events", URL: "https://events.example.com/sse", SSE: true, Headers: token},
		{Name: "copy", Command: "copy-server", Env: env},
		{Name: "unset", Unset: []string{"UNSET_KEY"}},
	}, cfg.Servers)
	assert.Equal(t, []string{`testdata/continue/config.yaml: server "tickets": "requestOptions.timeout" is not known here and has no effect`}, cfg.Notes)
}

func TestLoadServersOfGoose(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "t")
	cfg, err := LoadServers("testdata/goose/config.yaml", nil)
	require.NoError(t, err)
	assert.Equal(t, "goose", cfg.Dialect)
	assert.Equal(t, []config.Server{
		{Name: "developer", Disabled: true},
		{
			Name: "github", Command: "npx", Args: []string{"-y", "@example/github-server"}, Env: map[string]string{"LANG_OF_ANSWERS": "en", "GITHUB_TOKEN": "t"},
			Tools: config.Access{Allow: []string{"get_issue", "list_issues"}}, StartTimeout: 2 * time.Minute, CallTimeout: 2 * time.Minute,
		},
		{
			Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}, Env: map[string]string{},
			StartTimeout: 30 * time.Second, CallTimeout: 30 * time.Second,
		},
		{Name: "older", URL: "https://older.example.com/sse", SSE: true},
		{Name: "locked", Unset: []string{"UNSET_KEY"}},
		{Name: "off", Disabled: true},
	}, cfg.Servers)
	assert.Equal(t, []string{`testdata/goose/config.yaml: server "developer": "type": "builtin" is inside its client, so it is not started here`}, cfg.Notes)
}

// Other files are those of config.Load, which names this function for YAML.
func TestLoadServersOfOtherFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {"a": {"command": "run"}}} // c`), 0o600))
	cfg, err := LoadServers(path, &config.Options{Dialect: "vscode"})
	assert.ErrorContains(t, err, `no "servers" object, where vscode has its servers`)
	assert.Empty(t, cfg.Servers)
	cfg, err = LoadServers(path, nil)
	require.NoError(t, err)
	assert.Equal(t, []config.Server{{Name: "a", Command: "run"}}, cfg.Servers)

	cfg, err = config.Load("testdata/goose/config.yaml", nil)
	assert.EqualError(t, err, "mcphybrid: testdata/goose/config.yaml: YAML is not read here: LoadServers of the package files reads it")
	assert.Empty(t, cfg.Servers)
	_, err = LoadServers("testdata/none.yaml", nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.EqualError(t, err, "mcphybrid: testdata/none.yaml: no such file or directory")
}

func TestYAMLToJSON(t *testing.T) {
	t.Parallel()
	data, err := yamlToJSON([]byte("b: [1, 0x10, 1.5, .inf, yes, true, null, ~, 2026-01-02, '7']\na: &x {k: v, k: w}\nc: *x\n\"1\": {}\n"))
	require.NoError(t, err)
	assert.Equal(t, `{"b":[1,16,1.5,".inf","yes",true,null,null,"2026-01-02","7"],"a":{"k":"v","k":"w"},"c":{"k":"v","k":"w"},"1":{}}`, string(data))
	for document, want := range map[string]string{
		"":                             "line 1, column 1: the document is empty",
		"a: 1\n---\nb: 2\n":            "a second document begins",
		"a: [1\n":                      "line 2, column 1",
		"a: &x\n  b: *x\n":             "nested too deep",
		"a: &x {b: 1}\nc:\n  <<: *x\n": "merge keys are not supported",
		"? [1, 2]\n: 3\n":              "a key must be a text",
		"a: \xff":                      "is not UTF-8",
		"a: &a [x, x, x, x, x, x, x, x]\n" + bomb(9): "aliases make it too large",
	} {
		_, err := yamlToJSON([]byte(document))
		assert.ErrorContains(t, err, want, document)
	}
}

// bomb returns lists each of which has the one before several times.
func bomb(lists int) string {
	var b strings.Builder
	for i := range lists {
		name, next := string(rune('a'+i)), string(rune('b'+i))
		b.WriteString(next + ": &" + next + " [" + strings.Repeat("*"+name+" , ", 8) + "]\n")
	}
	return b.String()
}

// FuzzYAMLToJSON: what is converted is JSON.
func FuzzYAMLToJSON(f *testing.F) {
	for _, path := range []string{"testdata/continue/config.yaml", "testdata/goose/config.yaml"} {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("a: &x [1, 0x1, .nan, !!bool 1, !!int x]\nb: *x\n"))
	f.Fuzz(func(t *testing.T, document []byte) {
		if data, err := yamlToJSON(document); err == nil {
			require.True(t, json.Valid(data), "%q", data)
		}
	})
}
