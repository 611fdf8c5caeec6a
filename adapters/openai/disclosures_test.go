package mcpopenai_test

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
)

// The conversation with a list of tools that never changes.
func TestByBridge(t *testing.T) {
	t.Parallel()
	for api, runtime := range map[string]func(streams bool) adaptertest.Runtime{"chat": chats, "responses": responding} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", api, streams), func(t *testing.T) {
				t.Parallel()
				r := runtime(streams)
				r.Disclosure = mcphybrid.ByBridge
				adaptertest.Run(t, r)
			})
		}
	}
}
