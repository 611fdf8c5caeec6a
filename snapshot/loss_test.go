package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]Loss{
		"Compact was called":                                    {Cause: LossCompact},
		`the provider says "model_changed"`:                     {Cause: LossProvider, Miss: "model_changed"},
		`Compact was called; the provider says "tools_changed"`: {Cause: LossCompact, Miss: "tools_changed"},
		"": {Cause: LossProvider},
	} {
		assert.Equal(t, want, l.Why())
	}
}
