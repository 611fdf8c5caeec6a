package upstream

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/require"
)

// A child is runnable if a process of its own is.
func TestRunnableChildren(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{"(while kill -0 $$; do :; done); :": true, "sleep 60; :": false} {
		p, err := startProcess(&config.Server{Name: "x", Command: "/bin/sh", Args: []string{"-c", script}}, newSecrets(&config.Server{}, nil))
		require.NoError(t, err)
		defer p.stop(0)
		mcptest.Soon(t, func() bool {
			_, runnable := p.strays.worked()
			p.strays.mu.Lock()
			defer p.strays.mu.Unlock()
			return runnable == want && len(p.strays.seen) == 2 // it has its own
		})
	}
}
