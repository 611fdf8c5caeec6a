package genkit_test

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
)

// The conversation with a list of tools that never changes.
func TestByBridge(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", streams), func(t *testing.T) {
			t.Parallel()
			r := runtime(streams)
			r.Disclosure = mcphybrid.ByBridge
			adaptertest.Run(t, r)
		})
	}
}
