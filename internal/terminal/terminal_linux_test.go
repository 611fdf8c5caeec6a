package terminal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/terminal/terminaltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	t.Parallel()
	f, _ := terminaltest.Open(t, 61, 24)
	columns, rows, ok := terminal.Size(f)
	assert.Equal(t, "61 24 true", fmt.Sprint(columns, rows, ok))
	for _, half := range [][2]int{{0, 0}, {0, 30}, {61, 0}} {
		f, _ = terminaltest.Open(t, half[0], half[1])
		columns, rows, ok = terminal.Size(f)
		assert.Equal(t, "80 24 true", fmt.Sprint(columns, rows, ok), "one that does not say")
	}

	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	for _, f := range []*os.File{file, null} {
		_, _, ok = terminal.Size(f)
		assert.False(t, ok)
	}
}

// A Progress redraws its lines in their place, and leaves the last ones or none.
func TestProgress(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("TERM", "xterm")
	for _, keep := range []bool{true, false} {
		f, written := terminaltest.Open(t, 20, 24)
		drawn, step := make(chan struct{}), 0
		p := terminal.Show(f, func() []string {
			if step++; step == 2 {
				close(drawn)
			}
			return []string{fmt.Sprint("step ", step), "a line that is too long for it"}
		})
		<-drawn
		p.Stop(keep)
		text := written()
		assert.True(t, strings.HasPrefix(text, "\x1b[2Kstep 1\n\x1b[2Ka line that is too …\n\x1b[2A\x1b[2Kstep 2\n"), "%q", text)
		last := text[strings.LastIndex(strings.TrimSuffix(text, "\x1b[2A"), "\x1b[2A"):]
		if keep {
			assert.Regexp(t, `^\x1b\[2A\x1b\[2Kstep \d+\n\x1b\[2Ka line that is too …\n$`, last)
		} else {
			assert.Equal(t, "\x1b[2A\x1b[2K\n\x1b[2K\n\x1b[2A", last)
		}
	}
}

func TestProgressNeedsAPerson(t *testing.T) {
	for _, test := range []struct{ name, ci, term string }{{"CI", "true", "xterm"}, {"a terminal without escapes", "", "dumb"}} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("CI", test.ci)
			t.Setenv("TERM", test.term)
			f, written := terminaltest.Open(t, 20, 24)
			terminal.Show(f, func() []string { t.Error("drawn"); return nil }).Stop(true)
			assert.Empty(t, written())
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		t.Setenv("CI", "")
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		defer w.Close()
		terminal.Show(w, func() []string { t.Error("drawn"); return nil }).Stop(true)
	})
}
