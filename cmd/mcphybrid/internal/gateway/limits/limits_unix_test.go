//go:build unix

package limits

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients take at most half of what a process may have open; the rest is for servers and files.
func TestConnectionsOfFewDescriptors(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 200
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) }()
	assert.Equal(t, 100, Limits{}.WithDefaults().Connections)
	assert.Equal(t, 150, Limits{Connections: 150}.WithDefaults().Connections, "somebody has said so")
}
