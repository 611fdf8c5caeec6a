package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChildServerResultTooLarge(t *testing.T) {
	srv := started(t, child(t, "child", "plain"), config.Limits{MaxMessage: 100_000})
	_, err := srv.Call(t.Context(), Tool{Name: "big"}, json.RawMessage(`{"n": 1000000}`))
	assert.ErrorContains(t, err, "a message has more bytes than the limit of 100000")
	// Only this call fails, not the server.
	r, err := srv.Call(t.Context(), Tool{Name: "big"}, json.RawMessage(`{"n": 3}`))
	require.NoError(t, err)
	assert.Equal(t, "xxx", mcptest.Text(t, r))
}

func TestCloseLeavesNoProcess(t *testing.T) {
	for _, mode := range []string{"plain", "late", "parent"} {
		srv := newTest(t, child(t, "child", mode), config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		if mode == "parent" {
			require.Len(t, mcptest.Children(os.Getpid()), 3)
		}
		srv.Close()
		assert.Empty(t, mcptest.Children(os.Getpid()), mode)
	}
}

// A child that can no longer answer is ended, so that its state is clear.
func TestChildClosesItsOutput(t *testing.T) {
	srv := started(t, child(t, "mute", "plain"), config.Limits{Reconnect: time.Hour})
	_, err := srv.call(t.Context(), "mute")
	assert.ErrorIs(t, err, ErrDown)
	mcptest.Soon(t, func() bool { return srv.Status().State == Down })
	assert.Empty(t, mcptest.Children(os.Getpid()))
}

func TestChildEnv(t *testing.T) {
	env := map[string]string{"PATH": "/bin", "HOME": "/root", "AWS_SECRET": "x", "LANG": "C"}
	got := childEnv(map[string]string{"LANG": "de", "KEY": "v"}, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	assert.Equal(t, []string{"HOME=/root", "KEY=v", "LANG=de", "PATH=/bin"}, got)
}

// A program is looked for in the PATH that its server has of its own, and then in ours.
func TestProgramInOwnPath(t *testing.T) {
	t.Parallel()
	cfg := child(t, "child", "plain")
	dir := t.TempDir()
	require.NoError(t, os.Symlink(cfg.Command, filepath.Join(dir, "a-program-of-its-own")))
	cfg.Command, cfg.Env["PATH"] = "a-program-of-its-own", "relative"+string(filepath.ListSeparator)+dir
	started(t, cfg, config.Limits{})

	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	assert.Equal(t, "sh", findProgram("sh", dir), "ours is looked through by os/exec")
	assert.Equal(t, "sh", findProgram("sh", ""))
	assert.Equal(t, "./sh", findProgram("./sh", filepath.Dir(sh)))
}

// A folder that is not there is named, and not the program.
func TestChildWithoutItsFolder(t *testing.T) {
	t.Parallel()
	cfg := child(t, "child", "plain")
	for _, cfg.Dir = range []string{filepath.Join(t.TempDir(), "gone"), cfg.Command} {
		err := newTest(t, cfg, config.Limits{Reconnect: time.Hour}).Start(t.Context())
		assert.EqualError(t, err, fmt.Sprintf("its folder %q is not there", cfg.Dir))
	}
}

// A child of a child is told apart from the child of another.
func TestMarks(t *testing.T) {
	assert.Equal(t, mcptest.ChildMark, childMark)
	none := func(string) (string, bool) { return "", false }
	mark := newMark(none)
	assert.NotEqual(t, mark, newMark(none))
	nested := newMark(func(string) (string, bool) { return mark, true })
	assert.True(t, strings.HasPrefix(nested, mark+"/"))
}

// Bytes without end on standard error are read at a bounded rate, as long as the child
// lives.
func TestStandardErrorIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var kept tail
		ended := make(chan struct{})
		kept.readAll(io.LimitReader(endless{}, 5*maxStderr/2), ended)
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Len(t, kept.String(), stderrTail)
		time.AfterFunc(time.Second/2, func() { close(ended) })
		kept.readAll(io.LimitReader(endless{}, 5*maxStderr/2), ended)
		assert.Equal(t, 5*time.Second/2, time.Since(begun))
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A child gets the environment of its configuration, and from ours only what
// programs need.
func TestChildHasNotOurEnvironment(t *testing.T) {
	t.Setenv("MY_SECRET", "s3cret")
	srv := started(t, child(t, "child", "plain"), config.Limits{})
	r, err := srv.call(t.Context(), "env")
	require.NoError(t, err)
	env := mcptest.Text(t, r)
	assert.NotContains(t, env, "s3cret")
	assert.Contains(t, env, "PATH=")
	assert.Contains(t, env, "TEST_SERVER=plain")
}

// A child that reads nothing is killed when its input has been full for too
// long.
func TestChildThatReadsNothingIsKilled(t *testing.T) {
	cfg := child(t, "deaf", "deaf")
	p, err := startProcess(&cfg, newSecrets(&cfg, nil))
	require.NoError(t, err)
	defer p.stop(0)
	p.patience = 50 * time.Millisecond
	_, err = p.Write(make([]byte, 1<<20))
	assert.ErrorIs(t, err, errUnread)
	<-p.exited
	assert.ErrorIs(t, p.err, errUnread)
}

// A child gets SIGTERM and may clean up.
func TestChildIsAskedToEnd(t *testing.T) {
	cfg := child(t, "tidy", "tidy")
	cfg.Env["ENDED"] = filepath.Join(t.TempDir(), "ended")
	p, err := startProcess(&cfg, newSecrets(&cfg, nil))
	require.NoError(t, err)
	_, err = p.out.Read(make([]byte, 1)) // it listens for the signal now
	require.NoError(t, err)
	p.stop(0)
	assert.FileExists(t, cfg.Env["ENDED"])
}

// No pipe of a child stays open, also before the garbage collector finds it.
func TestPipesOfAChildAreClosed(t *testing.T) {
	open := func() (pipes []string) {
		list, err := filepath.Glob("/proc/self/fd/*")
		if err != nil || list == nil {
			t.Skip("there is no list of open files here: ", err)
		}
		for _, fd := range list {
			if file, _ := os.Readlink(fd); strings.HasPrefix(file, "pipe:") {
				pipes = append(pipes, file)
			}
		}
		return pipes
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := open()
	for range 3 {
		cfg := child(t, "tidy", "tidy")
		cfg.Env["ENDED"] = filepath.Join(t.TempDir(), "ended")
		p, err := startProcess(&cfg, newSecrets(&cfg, nil))
		require.NoError(t, err)
		p.stop(0)
	}
	assert.Subset(t, before, open())
}

// A program that says something else than messages on its standard output, ended or not, is told by
// the beginning of that, without secrets. One that sends a message may have said what it likes before;
// and what is on standard error at its end tells more.
func TestFirstWordsOfAChild(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	shell := func(script string, l config.Limits) error {
		secret := map[string]string{"TOKEN": "abcd-0123-abcd-0123"}
		cfg := config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", script}, Env: secret}
		l.Reconnect = -1
		return newTest(t, cfg, l).Start(t.Context())
	}
	const noMessage = "what it writes to its standard output is no MCP message: "
	assert.EqualError(t, shell("echo hello; echo world", config.Limits{}), noMessage+`"hello world" (the process ended)`)
	hangs := shell("printf 'port 3000, token '$TOKEN'? '; sleep 60", config.Limits{StartTimeout: time.Second})
	assert.ErrorContains(t, hangs, noMessage+`"port 3000, token [hidden]?" (no answer within 1s: `)
	assert.ErrorIs(t, hangs, context.DeadlineExceeded)
	assert.EqualError(t, shell("printf '%0140d' 0; echo $TOKEN", config.Limits{}), noMessage+`"`+strings.Repeat("0", 140)+`[hidden]…" (the process ended)`)
	assert.EqualError(t, shell("echo hello; echo 'no port' >&2; exit 3", config.Limits{}), `exit status 3; its last words: "no port"`)
	refuses := shell(`echo hello; while read -r line; do id=${line#*\"id\":}; echo '{"jsonrpc":"2.0","id":'${id%%[!0-9]*}',"error":{"code":-32000,"message":"not today"}}'; done`, config.Limits{})
	assert.ErrorContains(t, refuses, "not today")
	assert.NotContains(t, refuses.Error(), noMessage)
}

// A server that ends says in its last words why.
func TestLastWordsOfAChild(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the command is that of a POSIX shell")
	}
	srv := newTest(t, config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", "echo 'no  such\nmodule' >&2; exit 3"}}, config.Limits{Reconnect: time.Hour})
	err := srv.Start(t.Context())
	assert.ErrorContains(t, err, `exit status 3; its last words: "no such module"`)
	silent := newTest(t, config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", "exit 3"}}, config.Limits{Reconnect: time.Hour})
	err = silent.Start(t.Context())
	assert.ErrorContains(t, err, "exit status 3")
	assert.NotContains(t, err.Error(), "last words")
}
