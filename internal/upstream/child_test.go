package upstream

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChildServerResultTooLarge(t *testing.T) {
	srv := started(t, child(t, "child", "plain"), Limits{MaxMessage: 100_000})
	_, err := srv.Call(t.Context(), "big", json.RawMessage(`{"n": 1000000}`), false)
	assert.ErrorContains(t, err, "a message has more bytes than the limit of 100000")
	// It costs this call, not the server.
	r, err := srv.Call(t.Context(), "big", json.RawMessage(`{"n": 3}`), false)
	require.NoError(t, err)
	assert.Equal(t, "xxx", mcptest.Text(t, r))
}

func TestCloseLeavesNoProcess(t *testing.T) {
	for _, mode := range []string{"plain", "late", "parent"} {
		srv := newTest(t, child(t, "child", mode), Limits{})
		require.NoError(t, srv.Start(t.Context()))
		if mode == "parent" {
			require.Len(t, mcptest.Children(os.Getpid()), 3)
		}
		srv.Close()
		assert.Empty(t, mcptest.Children(os.Getpid()), mode)
	}
}

// A child that can't answer any more is ended, so that its state is known.
func TestChildClosesItsOutput(t *testing.T) {
	srv := started(t, child(t, "mute", "plain"), Limits{})
	_, err := srv.call(t.Context(), "mute")
	assert.ErrorIs(t, err, ErrDown)
	require.Eventually(t, func() bool { return srv.Status().State == Down }, 10*time.Second, time.Millisecond)
	assert.Empty(t, mcptest.Children(os.Getpid()))
}

func TestChildEnv(t *testing.T) {
	env := map[string]string{"PATH": "/bin", "HOME": "/root", "AWS_SECRET": "x", "LANG": "C"}
	got := childEnv(map[string]string{"LANG": "de", "KEY": "v"}, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	assert.Equal(t, []string{"HOME=/root", "KEY=v", "LANG=de", "PATH=/bin"}, got)
}

// A child of a child can be told from the child of another.
func TestMarks(t *testing.T) {
	assert.Equal(t, mcptest.ChildMark, childMark)
	none := func(string) (string, bool) { return "", false }
	mark := newMark(none)
	assert.NotEqual(t, mark, newMark(none))
	nested := newMark(func(string) (string, bool) { return mark, true })
	assert.True(t, strings.HasPrefix(nested, mark+"/"))
}

// Bytes without end on standard error are read at a bounded rate.
func TestStandardErrorIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var kept tail
		kept.readAll(io.LimitReader(endless{}, 5*maxStderr/2))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Len(t, kept.String(), stderrTail)
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
