package gateway

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What the environment says of garbage and processors counts.
func TestTune(t *testing.T) {
	garbage, procs := debug.SetGCPercent(80), runtime.GOMAXPROCS(2)
	defer func() { debug.SetGCPercent(garbage); runtime.GOMAXPROCS(procs) }()

	t.Setenv("GOGC", "80")
	t.Setenv("GOMAXPROCS", "2")
	tune()
	assert.Equal(t, 2, runtime.GOMAXPROCS(0))
	assert.Equal(t, 80, debug.SetGCPercent(80))

	t.Setenv("GOGC", "")
	t.Setenv("GOMAXPROCS", "")
	tune()
	assert.Equal(t, leastProcs, runtime.GOMAXPROCS(0))
	assert.Equal(t, 50, debug.SetGCPercent(80))

	runtime.GOMAXPROCS(leastProcs + 1)
	tune()
	assert.Equal(t, leastProcs+1, runtime.GOMAXPROCS(0), "a larger machine's are kept")
}
