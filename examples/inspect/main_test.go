package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the tests, or a server that they start as a child: "1" has 50 tools, and
// "raw" those of $LIST.
func TestMain(m *testing.M) { mcptest.Main(m, map[string]func(){"1": serveKitchen}) }

func serveKitchen() {
	s := server.NewMCPServer("child", "1")
	for i := range 50 {
		s.AddTool(mcp.NewTool(fmt.Sprintf("tool_%02d", i), mcp.WithDescription(fmt.Sprintf("Cooks dish %d", i)), mcp.WithString("text")),
			func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("cooked " + r.GetString("text", "nothing")), nil
			})
	}
	_ = server.ServeStdio(s)
}

// inspect runs the command and returns what it printed.
func inspect(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	defer out.Close()
	errs, err := os.Create(filepath.Join(dir, "err"))
	require.NoError(t, err)
	defer errs.Close()
	err = run(t.Context(), args, out, errs)
	printed, readErr := os.ReadFile(out.Name())
	require.NoError(t, readErr)
	complained, readErr := os.ReadFile(errs.Name())
	require.NoError(t, readErr)
	return string(printed), string(complained), err
}

func writeConfig(t *testing.T, more string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "mcp.json")
	config := fmt.Sprintf(`{"mcpServers": {"kitchen": {"command": %q, "env": {"TEST_SERVER": "1", "GORACE": "atexit_sleep_ms=0"}}%s}}`, self, more)
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	return path
}

func TestInspectJSON(t *testing.T) {
	config := writeConfig(t, `, "gone": {"command": "no-such-program-anywhere"}`)
	args := []string{"-config", config, "-json", "-query", "dish 47", "-call", "mcp_kitchen__tool_45", "-args", `{"text": "soup"}`}
	stdout, stderr, err := inspect(t, args...)
	require.NoError(t, err)
	assert.Empty(t, stderr, "nothing but the answer when piped")
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

	again, _, err := inspect(t, args...)
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
	stdout, stderr, err := inspect(t, "-config", writeConfig(t, ""), "-query", "dish 41", "-call", "mcp_kitchen__nope")
	require.NoError(t, err)
	assert.Contains(t, stdout, "kitchen              ready          50 tools")
	assert.Contains(t, stdout, "40 inline, 10 deferred")
	assert.Regexp(t, `\nkitchen +\d+ +\d+ +\d+  █{27}░{6}\n`, stdout, "40 of 50 alike tools")
	assert.Contains(t, stdout, "mcp_kitchen__tool_41 (kitchen)")
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
		stdout, stderr, err := inspect(t, append(args, "-config", path)...)
		require.NoError(t, err)
		assert.Contains(t, stdout, "kitchen              ready           1 tools")
		assert.Contains(t, stdout, "mcp_kitchen__tool_00")
		assert.NotContains(t, stdout, "off")
		assert.Contains(t, stderr, path+`: server "kitchen": "required": `)
		assert.Contains(t, stderr, path+`: server "off" is switched off`)
	}
	_, _, err = inspect(t, "-config", path, "-dialect", "nobody")
	assert.ErrorContains(t, err, `there is no dialect "nobody": want one of mcphybrid, claude-desktop, `)
}

func TestInspectRefusals(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-config", "nowhere.json"}, "nowhere.json: no such file"},
		{[]string{"-config", writeConfig(t, ""), "more"}, `unexpected argument "more"`},
	} {
		stdout, _, err := inspect(t, test.args...)
		assert.ErrorContains(t, err, test.want)
		assert.Empty(t, stdout)
	}
	stdout, stderr, err := inspect(t, "-config", writeConfig(t, `, "bad": {"command": "x", "timeout": 5}`), "-json")
	require.NoError(t, err, "the other servers work")
	assert.Contains(t, stderr, `server "bad"`)
	assert.Contains(t, stdout, "mcp_kitchen__tool_00")
}

// A flag that would have no effect beside the others is refused before anything starts,
// and not ignored.
func TestInspectFlagsThatClash(t *testing.T) {
	config := writeConfig(t, "")
	doctor := []string{"-doctor", "-config", config}
	for _, test := range []struct {
		args []string
		want string
	}{
		{append(doctor, "-query", "dish"), "-query has no effect with -doctor"},
		{append(doctor, "-call", "mcp_kitchen__tool_00"), "-call has no effect with -doctor"},
		{append(doctor, "-args", "{}"), "-args has no effect with -doctor"},
		{append(doctor, "-login", "kitchen"), "-login has no effect with -doctor"},
		{append(doctor, "-logout", "kitchen"), "-logout has no effect with -doctor"},
		{append(doctor, "-cache", filepath.Join(t.TempDir(), "cache")), "-cache has no effect with -doctor"},
		{append(doctor, config), "-config has no effect with files behind the flags"},
		{[]string{"-config", config, "-args", "{}"}, "-args has no effect without -call"},
		{[]string{"-config", config, "-logout", "kitchen", "-login", "kitchen"}, "-login has no effect with -logout"},
	} {
		stdout, stderr, err := inspect(t, test.args...)
		assert.EqualError(t, err, test.want, "%q", test.args)
		assert.Equal(t, 2, status(err))
		assert.Empty(t, stdout+stderr)
	}
	for _, args := range [][]string{
		append(doctor, "-json", "-tokens", t.TempDir(), "-dialect", "mcphybrid"), {"-doctor", config},
		{"-doctor=false", "-config", config, "-query", "dish", "-call", "mcp_kitchen__tool_00"},
	} {
		_, _, err := inspect(t, args...)
		assert.NoError(t, err, "%q", args)
	}
}

func TestStartLine(t *testing.T) {
	now := time.Unix(100, 0)
	var lines []string
	for _, s := range []mcphybrid.ServerStatus{
		{Name: "a", State: mcphybrid.StateConnecting, Since: now.Add(-1500 * time.Millisecond)},
		{Name: "a name that is too long", State: mcphybrid.StateReady, Took: 250 * time.Millisecond, Tools: 7},
		{Name: "c", State: mcphybrid.StateDown, Took: 2 * time.Second, Err: fmt.Errorf("no luck")},
		{Name: "d", State: mcphybrid.StateUnauthorized, Took: 2 * time.Second},
	} {
		lines = append(lines, startLine(s, now))
	}
	assert.Equal(t, []string{
		"… a                      1.50s  connecting",
		"✓ a name that is too …   0.25s  ready, 7 tools",
		"✗ c                      2.00s  failed: no luck",
		"✗ d                      2.00s  wants a login: run with -login d",
	}, lines)
}

// The bars of the servers add up to the report's counts.
func TestCosts(t *testing.T) {
	path := writeConfig(t, `, "gone": {"command": "no-such-program-anywhere"}`)
	cfg, err := mcphybrid.LoadConfig(path)
	require.NoError(t, err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers, Limits: mcphybrid.ServerLimits{Reconnect: -1}, Rules: []mcphybrid.Rule{
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
