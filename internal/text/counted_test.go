package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 tools", 1: "1 tool", 2: "2 tools"} {
		assert.Equal(t, want, Counted(n, "tool"))
	}
}
