package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Why there is no pipe for a child is its error.
func TestNoPipe(t *testing.T) {
	cfg := child(t, "child", "plain")
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := startProcess(&cfg, newSecrets(&cfg, nil))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	assert.ErrorIs(t, err, syscall.EMFILE)
	assert.ErrorContains(t, err, "no pipe for the process: ")
}

// A program that can't be started keeps no pipe.
func TestNoProgramKeepsNoPipe(t *testing.T) {
	cfg := config.Server{Name: "none", Command: filepath.Join(t.TempDir(), "none")}
	pipes := func() (n int) {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(open)
	}
	const starts = 20
	collect := debug.SetGCPercent(-1) // a collection closes files too
	defer debug.SetGCPercent(collect)
	before := pipes()
	for range starts {
		_, err := startProcess(&cfg, newSecrets(&cfg, nil))
		require.Error(t, err)
	}
	assert.Less(t, pipes(), before+starts, "each start has six")
}

// sleepers returns the processes that sleep for that time.
func sleepers(seconds string) (pids []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, _ := os.ReadFile(path); string(line) == "sleep\x00"+seconds+"\x00" {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// What a server has started ends with it, also in a session of its own and without its
// environment, while its parent lives, and what that has started in the same way.
func TestCloseEndsWhatDroppedTheEnvironment(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid: ", err)
	}
	for i, mode := range []string{"plain", "late"} {
		seconds := fmt.Sprintf("77.%d%d", os.Getpid(), i)
		self, env := mcptest.Child(t, mode)
		const script = `setsid env -i sleep "$1" >/dev/null 2>&1 </dev/null &
			env -i setsid sh -c 'env -i setsid sleep "$0" & wait' "$1" >/dev/null 2>&1 </dev/null &
			exec "$0"`
		srv := newTest(t, config.Server{Name: "child", Command: "sh", Args: []string{"-c", script, self, seconds}, Env: env}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		mcptest.Soon(t, func() bool { return len(sleepers(seconds)) == 2 })
		srv.Close()
		left := sleepers(seconds)
		assert.Empty(t, left, mode)
		for _, pid := range left {
			_ = exec.Command("kill", "-9", pid).Run()
		}
	}
}

// What a child leaves behind in its group ends with it, also without the environment of the child.
func TestEndOfAChildEndsItsGroup(t *testing.T) {
	t.Parallel()
	seconds := fmt.Sprintf("78.%d", os.Getpid())
	srv := newTest(t, config.Server{Name: "child", Command: "sh", Args: []string{"-c", `env -i sleep "$0" >/dev/null 2>&1 </dev/null & exit 4`, seconds}}, config.Limits{Reconnect: -1})
	require.ErrorContains(t, srv.Start(t.Context()), "exit status 4")
	mcptest.Soon(t, func() bool { return len(sleepers(seconds)) == 0 })
}

// A name with parentheses and spaces does not shift what is read of a process, and a process
// that has another's number is another.
func TestStrays(t *testing.T) {
	name := filepath.Join(t.TempDir(), ") R 1 (")
	self, env := mcptest.Child(t, "stubborn")
	require.NoError(t, os.Symlink(self, name))
	cmd := exec.Command(name)
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	require.NoError(t, cmd.Start())
	var s strays
	s.follow(cmd.Process.Pid, "")
	is := readStat(fmt.Sprint(cmd.Process.Pid))
	assert.Equal(t, os.Getpid(), is.parent)
	assert.NotEmpty(t, is.began)
	s.seen[cmd.Process.Pid] += "0"
	assert.False(t, s.signal(cmd.Process.Pid, syscall.SIGKILL), "it began at another time")
	s.follow(cmd.Process.Pid, "")
	assert.True(t, s.signal(cmd.Process.Pid, syscall.SIGKILL))
	assert.Error(t, cmd.Wait())
	assert.False(t, s.signal(cmd.Process.Pid, syscall.SIGKILL), "it is gone")
	assert.Empty(t, readStat("0").began)
}

// A child of which the kernel could not tell, for want of descriptors, is found by its mark.
func TestStraysOfAnUnknownChild(t *testing.T) {
	self, env := mcptest.Child(t, "stubborn")
	cmd := exec.Command(self)
	const mark = "unknown-child"
	cmd.Env = []string{childMark + "=" + mark}
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	require.NoError(t, cmd.Start())
	var s strays
	s.follow(0, mark)
	s.kill()
	assert.Error(t, cmd.Wait())
	assert.Contains(t, s.seen, cmd.Process.Pid)
}

// Those who ask for the processes while they are read share the next reading, which begins
// after they asked.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := 0
		table := processTable{all: func() map[int]processInfo {
			readings++ // by one at a time
			time.Sleep(time.Second)
			return map[int]processInfo{readings: {}}
		}}
		var all sync.WaitGroup
		ask := func(want int) {
			all.Go(func() { assert.Contains(t, table.read(), want) })
			synctest.Wait()
		}
		ask(1)
		for range 30 {
			ask(2)
		}
		time.Sleep(time.Second + time.Second/2)
		ask(3)
		all.Wait()
		assert.Equal(t, 3, readings)
	})
}

// Once a child and its group are gone, another group may have its number. It gets no signal.
func TestReapedGroupGetsNoSignal(t *testing.T) {
	t.Parallel()
	another := exec.Command("sleep", "60")
	ownGroup(another)
	require.NoError(t, another.Start())
	p := &process{cmd: another}
	p.reaped.Store(true)
	p.signalGroup(terminateGroup)
	p.killGroup()
	require.NoError(t, another.Process.Signal(syscall.SIGXCPU)) // comes after the others, if there are any
	_ = another.Wait()
	assert.Equal(t, syscall.SIGXCPU, another.ProcessState.Sys().(syscall.WaitStatus).Signal())
}
