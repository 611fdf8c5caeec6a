//go:build unix

package exit

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each signal that asks a gateway to end ends its context. A client that reads no more does not.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := Signals(t.Context())
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGPIPE))
		assert.NoError(t, ctx.Err())
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		<-ctx.Done()
		assert.NoError(t, t.Context().Err(), s)
		stop()
	}
}
