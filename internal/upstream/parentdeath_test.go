package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveHost is a host that has a server which never ends by itself. It prints the
// server's process ID.
func serveHost() {
	cfg := config.Server{Name: "stubborn", Command: os.Args[0], Env: map[string]string{"TEST_SERVER": "stubborn"}}
	p, err := startProcess(&cfg, newSecrets(&cfg, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.cmd.Process.Pid)
	select {}
}

// A server that ignores signals and that its input closes ends with its host, when that is
// killed.
func TestNoOrphan(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no list of processes here: ", err)
	}
	command, env := mcptest.Child(t, "host")
	host := exec.Command(command)
	host.Env = append(os.Environ(), "TEST_SERVER="+env["TEST_SERVER"])
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	server := "/proc/" + strings.TrimSpace(line) + "/stat"
	isAlive := func() bool {
		stat, err := os.ReadFile(server)
		return err == nil && !bytes.Contains(stat, []byte(") Z ")) // nobody may wait for it
	}
	assert.True(t, isAlive())
	require.NoError(t, host.Process.Kill())
	_ = host.Wait()
	assert.Eventually(t, func() bool { return !isAlive() }, 10*time.Second, time.Millisecond)
}

// A child lives on when the thread is gone of whoever asked for it.
func TestChildOutlivesAThread(t *testing.T) {
	t.Parallel()
	cfg := child(t, "deaf", "deaf")
	var p *process
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocks it, so that the thread ends with the goroutine
		var err error
		p, err = startProcess(&cfg, newSecrets(&cfg, nil))
		assert.NoError(t, err)
	}()
	<-done
	require.NotNil(t, p)
	defer p.stop(0)
	assert.False(t, p.waitExit(time.Second))
}
