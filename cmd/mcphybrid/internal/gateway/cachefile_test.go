package gateway

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// firstList starts a gateway, as a client that lists the tools once, and returns them and
// what the gateway logged.
func firstList(t *testing.T, env []string, args ...string) (names []string, log string) {
	t.Helper()
	var errs strings.Builder
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(append(os.Environ(), gatewayEnv()...), env...)
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write([]byte(ping + "\n" + initialized + "\n" + listTools + "\n"))
	require.NoError(t, err)
	for lines := json.NewDecoder(out); names == nil; {
		var l line
		require.NoError(t, lines.Decode(&l))
		names = l.names()
	}
	in.Close()
	assert.NoError(t, cmd.Wait(), errs.String())
	return names, errs.String()
}

// addEnv sets a variable of all servers of a configuration.
func addEnv(t *testing.T, config, key, value string) {
	t.Helper()
	var c struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	data, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &c))
	for _, s := range c.Servers {
		s.Env[key] = value
	}
	data, err = json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, data, 0o600))
}

// A second start has the tools at once, whether the servers are slow or down, though
// nobody asked for a cache.
func TestSecondStart(t *testing.T) {
	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer late.Close()
	for name, env := range map[string][2]string{"slow": {"TEST_WAIT", late.Addr().String()}, "down": {"TEST_DEAD", "1"}} {
		t.Run(name, func(t *testing.T) {
			home, config := cacheHome(t.TempDir()), writeConfig(t, "kitchen", "cellar")
			first, _ := firstList(t, home, "-config", config, "-wait", "1m")
			require.Contains(t, first, "mcp_cellar__a_arguments")
			addEnv(t, config, env[0], env[1])
			second, _ := firstList(t, home, "-config", config, "-wait", "1h")
			assert.Equal(t, first, second)

			none, _ := firstList(t, home, "-config", config, "-wait", "1ms", "-cache", "off")
			assert.NotContains(t, none, "mcp_cellar__a_arguments")
		})
	}
}

// Several gateways with one file start and end at once. Each has all tools, and so does
// the next one, without the servers.
func TestGatewaysShareACache(t *testing.T) {
	config := writeConfig(t, "kitchen", "cellar")
	file := filepath.Join(t.TempDir(), "lists.json")
	lists := make([][]string, 4)
	var all sync.WaitGroup
	for i := range lists {
		all.Go(func() { lists[i], _ = firstList(t, nil, "-config", config, "-wait", "1m", "-cache", file) })
	}
	all.Wait()
	addEnv(t, config, "TEST_DEAD", "1")
	next, log := firstList(t, nil, "-config", config, "-wait", "1h", "-cache", file)
	for _, list := range lists {
		assert.Equal(t, next, list)
	}
	assert.Contains(t, next, "mcp_cellar__a_arguments")
	assert.NotRegexp(t, `level=WARN[^\n]*(cache|catalog)`, log)
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

// Without a folder for it, nothing is cached, and the user is told.
func TestNoCacheFolder(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	names, log := firstList(t, cacheHome(blocked), "-config", writeConfig(t, "kitchen"), "-wait", "1m")
	assert.Contains(t, names, "mcp_kitchen__a_arguments")
	assert.Contains(t, log, "nothing is cached")
}

// Each configuration has a file, which stays as long as it is used.
func TestCacheFile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a[b", "mcphybrid")
	mine, err := cacheFile(folder, "mcp.json")
	require.NoError(t, err)
	info, err := os.Stat(folder)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, fs.ModeDir|0o700, info.Mode())
	}
	other, err := cacheFile(folder, "other.json")
	require.NoError(t, err)
	assert.NotEqual(t, mine, other)
	assert.Equal(t, folder, filepath.Dir(mine))

	recent, foreign := filepath.Join(folder, "gateway-1.json"), filepath.Join(folder, "vectors.json")
	for _, path := range []string{mine, other, recent, foreign} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		if path != recent {
			old := time.Now().Add(-cacheAge - time.Hour)
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	require.NoError(t, os.WriteFile(other+".lock", nil, 0o600))
	for _, path := range []string{mine, other} {
		require.NoError(t, os.Mkdir(path+".parts", 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path+".parts", "a"), nil, 0o600))
	}
	again, err := cacheFile(folder, "mcp.json")
	require.NoError(t, err)
	assert.Equal(t, mine, again)
	left, err := filepath.Glob(filepath.Join(strings.ReplaceAll(folder, "[", `\[`), "*"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{mine, mine + ".parts", recent, foreign}, left)
}
