package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsSafeName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "mcp_my-server__Run9": true, "-": true, strings.Repeat("x", MaxName): true,
		"": false, strings.Repeat("x", MaxName+1): false, "a.b": false, "a b": false, "é": false, "a\x00": false,
	} {
		assert.Equal(t, want, IsSafeName(name), "%q", name)
	}
}
