package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/config"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

var inspect = commandtest.Command(run)

func writeConfig(t *testing.T, more string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "mcp.json")
	config := fmt.Sprintf(`{"mcpServers": {"kitchen": {"command": %q, "env": {"TEST_SERVER": "1", "GORACE": "atexit_sleep_ms=0"}}%s}}`, self, more)
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	return path
}

// withoutWaits returns lines without those about servers that are slow on a busy machine.
func withoutWaits(lines string) string {
	return regexp.MustCompile(`(?m)^waiting for .* to start\n`).ReplaceAllString(lines, "")
}

func TestInspectJSON(t *testing.T) {
	config := writeConfig(t, `, "gone": {"command": "no-such-program-anywhere"}`)
	args := []string{"-config", config, "-json", "-query", "dish 47", "-call", "mcp_kitchen__tool_45", "-args", `{"text": "soup"}`}
	stdout, stderr, err := inspect.Run(t, args...)
	require.NoError(t, err)
	assert.Empty(t, withoutWaits(stderr), "nothing but the answer when piped")
	var r struct {
		Servers []struct {
			Name, State, Error string
			Tools              int
		}
		Inline, Deferred []string
		Tokens           struct{ All, Inline, Sections int }
		Hits             []struct {
			Name, Server string
			Score        float64
		}
		Result struct {
			Content []struct{ Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &members))
	assert.Equal(t, []string{"deferred", "hits", "inline", "problems", "result", "servers", "tokens"}, slices.Sorted(maps.Keys(members)))
	require.Len(t, r.Servers, 2)
	assert.Equal(t, "kitchen ready 50 ", fmt.Sprintf("%s %s %d %s", r.Servers[0].Name, r.Servers[0].State, r.Servers[0].Tools, r.Servers[0].Error))
	assert.Equal(t, "gone down", r.Servers[1].Name+" "+r.Servers[1].State)
	assert.Contains(t, r.Servers[1].Error, "executable file not found")
	assert.Len(t, r.Inline, 40)
	assert.Len(t, r.Deferred, 10)
	assert.Greater(t, r.Tokens.All, r.Tokens.Inline)
	assert.Positive(t, r.Tokens.Sections)
	require.NotEmpty(t, r.Hits)
	assert.Equal(t, "mcp_kitchen__tool_47", r.Hits[0].Name)
	assert.Equal(t, "cooked soup", r.Result.Content[0].Text)

	again, _, err := inspect.Run(t, args...)
	require.NoError(t, err)
	var other map[string]any
	require.NoError(t, json.Unmarshal([]byte(again), &other))
	for _, m := range []map[string]any{members, other} { // mcp-go asks a slow child with an older protocol, which adds less to a result
		m["result"] = m["result"].(map[string]any)["content"]
	}
	assert.Equal(t, members, other)
	assert.Equal(t, stdout[:strings.Index(stdout, `"result"`)], again[:strings.Index(again, `"result"`)], "to the byte")
}

func TestInspectText(t *testing.T) {
	stdout, stderr, err := inspect.Run(t, "-config", writeConfig(t, ""), "-query", "dish 41", "-call", "mcp_kitchen__nope")
	assert.Equal(t, 1, exit.Status(err))
	assert.Contains(t, stdout, "kitchen              ready          50 tools")
	assert.Contains(t, stdout, "40 inline, 10 deferred")
	assert.Regexp(t, `\nkitchen +\d+ +\d+ +\d+  █{27}░{6}\n`, stdout, "40 of 50 alike tools")
	assert.Contains(t, stdout, "mcp_kitchen__tool_41 (kitchen, deferred)")
	assert.Contains(t, stdout, `There is no tool named "mcp_kitchen__nope"`)
	assert.Contains(t, stderr, "unknown tool")
}

// The file of another client: it says what is off and what has no effect.
func TestInspectOtherClients(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
		[mcp_servers.kitchen]
		command = %q
		env = { TEST_SERVER = "1", GORACE = "atexit_sleep_ms=0" }
		enabled_tools = ["tool_00", "tool_01"]
		disabled_tools = ["tool_01"]
		required = true

		[mcp_servers.off]
		command = "surely-not-there"
		enabled = false
	`, self), 0o600))
	for _, args := range [][]string{nil, {"-dialect", "codex"}} {
		stdout, stderr, err := inspect.Run(t, append(args, "-config", path)...)
		require.NoError(t, err)
		assert.Contains(t, stdout, "kitchen              ready            1 tool")
		assert.Contains(t, stdout, "mcp_kitchen__tool_00")
		assert.NotContains(t, stdout, "off")
		assert.Contains(t, stderr, path+`: server "kitchen": "required": `)
		assert.Contains(t, stderr, path+`: server "off" is switched off`)
	}
	_, _, err = inspect.Run(t, "-config", path, "-dialect", "nobody")
	assert.ErrorContains(t, err, `there is no dialect "nobody": want one of mcphybrid, claude-desktop, `)
}

func TestInspectRefusals(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-config", "nowhere.json"}, "nowhere.json: no such file"},
		{[]string{"-config", writeConfig(t, ""), "more"}, `unexpected argument "more": name the file by -config`},
	} {
		stdout, _, err := inspect.Run(t, test.args...)
		assert.ErrorContains(t, err, test.want)
		assert.Empty(t, stdout)
	}
	stdout, stderr, err := inspect.Run(t, "-config", writeConfig(t, `, "bad": {"command": "x", "timeout": 5}`), "-json")
	require.NoError(t, err, "the other servers work")
	assert.Contains(t, stderr, `server "bad"`)
	assert.Contains(t, stdout, "mcp_kitchen__tool_00")
}

// A flag that would have no effect beside the others is refused before anything starts,
// and not ignored.
func TestInspectFlagsThatClash(t *testing.T) {
	config := writeConfig(t, "")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-config", config, "-args", "{}"}, "-args has no effect without -call"},
		{[]string{"-config", config, "-logout", "kitchen", "-login", "kitchen"}, "-login has no effect with -logout"},
	} {
		stdout, stderr, err := inspect.Run(t, test.args...)
		assert.EqualError(t, err, test.want, "%q", test.args)
		assert.Equal(t, 2, exit.Status(err))
		assert.Empty(t, stdout+stderr)
	}
	_, _, err := inspect.Run(t, "-config", config, "-query", "dish", "-call", "mcp_kitchen__tool_00")
	assert.NoError(t, err)
}

// A call that was refused has its result printed, and exit status 1.
func TestInspectCallsThatFail(t *testing.T) {
	config := writeConfig(t, "")
	for _, test := range []struct{ arguments, want string }{
		{`{"text": 5}`, "/text"},
		{`no JSON`, "JSON"},
	} {
		for _, form := range []string{"-json", "-json=false"} {
			stdout, stderr, err := inspect.Run(t, "-config", config, form, "-call", "mcp_kitchen__tool_00", "-args", test.arguments)
			assert.ErrorIs(t, err, exit.ErrFound, test.arguments)
			assert.Equal(t, 1, exit.Status(err))
			assert.Contains(t, stdout, test.want)
			assert.Contains(t, stderr, test.want)
		}
	}
}

func TestInspectUsage(t *testing.T) {
	_, usage, err := inspect.Run(t, "-h")
	assert.Equal(t, 0, exit.Status(err))
	for line := range strings.Lines(usage) {
		assert.LessOrEqual(t, len(strings.ReplaceAll(line, "\t", "    ")), 81, line)
	}
}

// The bars of the servers add up to the report's counts.
func TestCosts(t *testing.T) {
	path := writeConfig(t, `, "gone": {"command": "no-such-program-anywhere"}`)
	cfg, err := mcphybrid.LoadConfig(path)
	require.NoError(t, err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers, Limits: config.Limits{Reconnect: -1}, Rules: []mcphybrid.Rule{
		{Name: "short", Action: mcphybrid.RuleSummarize, Patterns: []string{"tool_00"}},
		{Name: "never", Action: mcphybrid.RuleExclude, Patterns: []string{"tool_01"}},
	}})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()), "one is not there")
	list := costs(mgr)
	require.Len(t, list, 2)
	tokens := mgr.Stats().Tokens
	assert.Equal(t, cost{server: "kitchen", inline: tokens.Inline, deferred: tokens.All - tokens.Inline}, list[0])
	assert.Equal(t, 9*list[0].inline, 40*list[0].deferred, "of 50 alike tools, 40 are inline, one is excluded and one of the others summarized")
	assert.Equal(t, cost{server: "gone"}, list[1])
}

func TestChart(t *testing.T) {
	list := []cost{
		{"small", 1, 0}, {"even", 500, 500}, {"a server of a name that is long", 1000, 1}, {"none", 0, 0}, {"late", 0, 250}, {"much", 10, 3990},
	}
	assert.Equal(t, []string{
		"tokens                   all  inline deferred  █ inline ░ deferred",
		"small                      1       1        0  █",
		"even                    1000     500      500  █████░░░░",
		"a server of a name …    1001    1000        1  ████████░",
		"none                       0       0        0",
		"late                     250       0      250  ░░░",
		"much                    4000      10     3990  █" + strings.Repeat("░", 32),
	}, chart(list, 80, true))
	assert.Equal(t, "a s…    1001    1000        1  ██░", chart(list, 39, true)[3])
	assert.Equal(t, "a server of a name that is long    1001    1000        1  ██████░", chart(list, 84, false)[3], "no name is cut in a pipe")
	for columns := range 200 {
		for _, line := range chart(list, columns, true) {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), max(columns, 31), "%d: %s", columns, line)
		}
	}
	assert.Equal(t, "none"+strings.Repeat(" ", 16)+"       0       0        0", chart(list[3:4], 80, true)[1], "no tools at all")
}
