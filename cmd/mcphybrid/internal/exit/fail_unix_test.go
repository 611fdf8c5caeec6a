//go:build unix

package exit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each signal that asks a gateway to end ends its context. A client that reads no more does not,
// nor does a terminal that is closed if who started the program had that ignored.
func TestSignals(t *testing.T) {
	ends := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	spared := []syscall.Signal{syscall.SIGPIPE}
	if signal.Ignored(syscall.SIGHUP) {
		t.Log("this program was started with nohup")
		ends, spared = ends[:2], append(spared, ends[2])
	}
	for _, s := range ends {
		ctx, stop := Signals(t.Context())
		for _, s := range spared {
			require.NoError(t, syscall.Kill(os.Getpid(), s))
		}
		assert.NoError(t, ctx.Err())
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		<-ctx.Done()
		assert.NoError(t, t.Context().Err(), s)
		stop()
	}
}

// The first signal ends the context of a command, and the next one the command.
func TestInterrupts(t *testing.T) {
	if os.Getenv("EXIT_CHILD") != "" {
		ctx, stop := Interrupts(t.Context())
		defer stop()
		fmt.Println("waits")
		<-ctx.Done()
		fmt.Println("interrupted")
		select {}
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			t.Logf("who started this program had %v ignored", s)
			continue
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestInterrupts$")
		child.Env = append(os.Environ(), "EXIT_CHILD=1")
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for _, want := range []string{"waits", "interrupted"} {
			require.True(t, lines.Scan())
			assert.Equal(t, want, lines.Text())
			require.NoError(t, child.Process.Signal(s))
		}
		require.Error(t, child.Wait())
		assert.Equal(t, s, child.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
}
