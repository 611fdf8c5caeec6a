package upstream

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A child that is at work before it says anything is not ended by the start timeout: one
// that writes to standard error, and on Linux one that uses a processor, itself or by a
// process of its own.
func TestChildAtWork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	works := map[string]string{"writes": "echo . >&2; sleep 0.05"}
	if runtime.GOOS == "linux" {
		works["computes"], works["has another compute"] = ":", "i=0; (while [ $i -lt 20000 ]; do i=$((i+1)); done); :"
	}
	for name, work := range works {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := child(t, "slow", "plain")
			done := filepath.Join(t.TempDir(), "done")
			cfg.Args = []string{"-c", "while [ ! -e '" + done + "' ]; do " + work + "; done; exec '" + cfg.Command + "'"}
			cfg.Command = "/bin/sh"
			srv := newTest(t, cfg, config.Limits{StartTimeout: 8 * time.Second, Reconnect: -1})
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			err := srv.Start(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, "the start timeout ends nothing")
			assert.ErrorIs(t, err, errAtWork, "it says why it takes long")
			assert.Equal(t, Connecting, srv.Status().State)
			assert.Equal(t, errAtWork, srv.Status().Err)
			require.NoError(t, os.WriteFile(done, nil, 0o600))
			require.NoError(t, srv.Start(t.Context()), "the attempt goes on")
			assert.NoError(t, srv.Status().Err)
			assert.Zero(t, srv.Status().Failures)
		})
	}
}

// One that only waits is ended in time, and so is one that works once it has spoken.
func TestChildThatHangs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	for _, script := range []string{"sleep 60", "echo; while :; do echo . >&2; sleep 0.05; done"} {
		srv := newTest(t, config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", script}}, config.Limits{StartTimeout: 2 * time.Second, Reconnect: -1})
		begun := time.Now()
		err := srv.Start(t.Context())
		assert.ErrorContains(t, err, "no answer within 2s", script)
		assert.NotErrorIs(t, err, errAtWork, script)
		assert.Less(t, time.Since(begun), 10*time.Second)
		assert.Equal(t, Down, srv.Status().State)
	}
}

// A launcher of packages that says nothing may wait for another one: its error says so.
func TestSilentLauncher(t *testing.T) {
	t.Parallel()
	mcptest.SkipUnlessUnix(t)
	npx := filepath.Join(t.TempDir(), "npx")
	require.NoError(t, os.WriteFile(npx, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	srv := newTest(t, config.Server{Name: "x", Command: npx, Args: []string{"-y", "server-x"}}, config.Limits{StartTimeout: time.Second, Reconnect: -1})
	err := srv.Start(t.Context())
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "no answer within 1s, and not a word: its launcher waits while another one installs")
}

// The clock stands still only while the child is at work, and five minutes at most.
func TestHoldWhileAtWork(t *testing.T) {
	for name, test := range map[string]struct {
		busy func(looks int) bool
		want time.Duration
	}{
		"idle":                {func(int) bool { return false }, 20 * time.Second},
		"busy for a minute":   {func(n int) bool { return n <= 24 }, 20*time.Second + time.Minute},
		"busy now and then":   {func(n int) bool { return n%2 == 0 && n <= 20 }, 20*time.Second + 15*time.Second},
		"busy without an end": {func(int) bool { return true }, maxAtWork + 20*time.Second - 2500*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, release := hostcode.WithClock(t.Context(), 20*time.Second)
				defer release()
				looked, holds := 0, false
				begun := time.Now()
				go holdWhile(ctx, lookEach(20*time.Second), func() bool { looked++; return test.busy(looked) }, nil, nil, func(held bool) { holds = held })
				<-ctx.Done()
				synctest.Wait()
				assert.Equal(t, test.want, time.Since(begun))
				assert.False(t, holds)
			})
		})
	}
}

// What a process of the child does counts as the child's.
func TestWorkOfAChildIsCounted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems don't say how long a process has worked")
	}
	p, err := startProcess(&config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", "(while kill -0 $$; do :; done)"}}, newSecrets(&config.Server{}, nil))
	require.NoError(t, err)
	defer p.stop(0)
	mcptest.Soon(t, func() bool { worked, _ := p.strays.worked(); return worked >= 100*time.Millisecond })
	assert.Zero(t, p.stderr.total())

	_, _ = p.stderr.Write([]byte(strings.Repeat("x", 3*stderrTail)))
	assert.Equal(t, 3*stderrTail, p.stderr.total(), "what is forgotten counts")
}

// A look finds a child at work by what it did since the one before, or, if the machine left it no
// processor for that, by what it waits for.
func TestWorkSinceTheLastLook(t *testing.T) {
	t.Parallel()
	before := work{computed: time.Minute, written: 5}
	for name, test := range map[string]struct {
		now  work
		want bool
	}{
		"waits":            {work{computed: time.Minute + 10*time.Millisecond, written: 5}, false},
		"computed":         {work{computed: time.Minute + 50*time.Millisecond, written: 5}, true},
		"wrote":            {work{computed: time.Minute, written: 6}, true},
		"got no processor": {work{computed: time.Minute, runnable: true, written: 5}, true},
		"a part has ended": {work{computed: time.Second, written: 5}, false},
	} {
		assert.Equal(t, test.want, test.now.isMore(before, 2500*time.Millisecond), name)
	}
}
