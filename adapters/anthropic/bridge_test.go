package mcpanthropic_test

import (
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
)

// The conversation with a list of tools that never changes. There is nothing for blocks
// that add tools.
func TestByBridge(t *testing.T) {
	t.Parallel()
	for _, betas := range [][]anthropic.AnthropicBeta{nil, {anthropic.AnthropicBetaInlineTools2026_09_15}} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, stream %t", betas, streams), func(t *testing.T) {
				t.Parallel()
				r := runtime(streams, betas...)
				r.Disclosure = mcphybrid.ByBridge
				adaptertest.Run(t, r)
			})
		}
	}
}
