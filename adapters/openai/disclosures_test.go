package mcpopenai_test

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
)

// The same conversation with the disclosures that a host may ask for.
func TestDisclosures(t *testing.T) {
	t.Parallel()
	for api, runtime := range map[string]func(streams bool) adaptertest.Runtime{"chat": chats, "responses": responding} {
		for _, d := range []mcphybrid.Disclosure{mcphybrid.ByActivation, mcphybrid.ByBridge} {
			for _, streams := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s by %s, stream %t", api, d, streams), func(t *testing.T) {
					t.Parallel()
					r := runtime(streams)
					r.Disclosure, r.Chosen, r.Fixed = d, d, false
					adaptertest.Run(t, r)
				})
			}
		}
	}
}
