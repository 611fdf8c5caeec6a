package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mcphybrid runs the program and returns what it printed.
func mcphybrid(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"in", "out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	status = run(t.Context(), args, files[0], files[1], files[2])
	out, err := os.ReadFile(files[1].Name())
	require.NoError(t, err)
	errs, err := os.ReadFile(files[2].Name())
	require.NoError(t, err)
	return status, string(out), string(errs)
}

// Every command is one line of the list, which fits a terminal.
func TestListOfCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"-help"}, {"--help"}, {"-h", "gateway"}, {"--help", "nonsense"}} {
		status, stdout, stderr := mcphybrid(t, args...)
		assert.Equal(t, 0, status)
		assert.Empty(t, stderr)
		assert.Equal(t, len(commands())+2, strings.Count(stdout, "\n"))
		for _, c := range commands() {
			assert.Contains(t, stdout, "\n  "+c.name+" ")
		}
		for line := range strings.Lines(stdout) {
			assert.LessOrEqual(t, len(line), 81, line)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	status, stdout, stderr := mcphybrid(t, "gatway", "-config", "mcp.json")
	assert.Equal(t, 2, status)
	assert.Empty(t, stdout)
	assert.True(t, strings.HasPrefix(stderr, `mcphybrid: there is no command "gatway"`+"\n"), stderr)
	_, list, _ := mcphybrid(t)
	assert.True(t, strings.HasSuffix(stderr, "\n\n"+list))
}

func TestVersion(t *testing.T) {
	status, stdout, stderr := mcphybrid(t, "version")
	assert.Equal(t, 0, status)
	assert.Empty(t, stderr)
	assert.Regexp(t, `^mcphybrid \S+, go\S+, \w+/\w+\n$`, stdout)
	status, stdout, stderr = mcphybrid(t, "version", "-json")
	assert.Equal(t, 2, status)
	assert.Empty(t, stdout)
	assert.Equal(t, "version: unexpected argument \"-json\"\n", stderr)
}

// Each command has its own flags, writes them to standard error, and knows no other.
func TestCommandsHaveFlags(t *testing.T) {
	for _, c := range commands() {
		if c.name == "version" || c.name == "completion" {
			continue
		}
		_, stdout, stderr := mcphybrid(t, c.name, "-h")
		assert.Empty(t, stdout)
		assert.Regexp(t, `(?m)^  -\w`, stderr, c.name)
		status, _, stderr := mcphybrid(t, c.name, "-nonsense")
		assert.Equal(t, 2, status, c.name)
		assert.True(t, strings.HasSuffix(stderr, "\n"+c.name+": flag provided but not defined: -nonsense\n"), stderr)
	}
}
