package commandtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/terminal/terminaltest"
	"github.com/stretchr/testify/assert"
)

// Compare runs a command in a folder with [Screens]. The golden files are what terminals of
// 60, 80 and 120 columns, and a pipe, are sent. check is given each error.
func (run Command) Compare(t *testing.T, name string, check func(error), args ...string) {
	t.Chdir(t.TempDir())
	assert.NoError(t, os.WriteFile("mcp.json", []byte(Screens(t)), 0o600))
	for _, columns := range []int{60, 80, 120} {
		f, written := terminaltest.Open(t, columns, 24)
		check(run(t.Context(), args, f, Null(t)))
		text := Timeless(written())
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, terminal.Width(strings.TrimSuffix(line, "\n")), columns, "%q", line)
			assert.NotContains(t, line, "\x1b")
		}
		golden.Compare(t, fmt.Sprintf("%s%d.golden", name, columns), text)
	}
	stdout, _, err := run.Run(t, args...)
	check(err)
	assert.NotContains(t, stdout, "…", "nothing is cut in a pipe")
	golden.Compare(t, name+"-pipe.golden", Timeless(stdout))
}
