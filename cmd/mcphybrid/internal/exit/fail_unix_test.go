//go:build unix

package exit

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

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
