package inspect

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/terminal/terminaltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScreens(t *testing.T) {
	inspect.Compare(t, "inspect", func(err error) { assert.NoError(t, err) },
		"-query", "zyzzyva", "-call", "mcp_kitchen__tool_07", "-args", `{"text": "`+strings.Repeat("a soup of long words, ", 8)+`"}`)
}

// Standard error shows on a terminal how servers start, and which failed, in lines that fit it.
func TestProgressFits(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("TERM", "xterm")
	config := commandtest.WriteFile(t, "mcp.json", commandtest.Screens(t))
	f, written := terminaltest.Open(t, 60, 24)
	require.NoError(t, run(t.Context(), []string{"-config", config, "-call", "mcp_kitchen__tool_07"}, commandtest.Null(t), f))
	text := written()
	assert.Contains(t, text, "3 of 5 servers are ready\n")
	assert.Contains(t, text, "✗ ")
	assert.Contains(t, text, "calling mcp_kitchen__tool_07")
	escapes := regexp.MustCompile(`\x1b\[\d+[AK]`)
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, terminal.Width(strings.TrimSuffix(escapes.ReplaceAllString(line, ""), "\n")), 60, "%q", line)
	}
}
