package upstream

import (
	"syscall"
	"testing"

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
