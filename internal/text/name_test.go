package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsSafeName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "mcp_my-server__Run9": true, "-": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 64+1): false, "a.b": false, "a b": false, "é": false, "a\x00": false,
	} {
		assert.Equal(t, want, IsSafeName(name), "%q", name)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Names(nil))
	assert.Equal(t, `"a", "b c"`, Names([]string{"a", "b\nc"}), "each one line")
	assert.Equal(t, strings.Repeat(`"x", `, 9)+`"x" and 2 more`, Names(strings.Split(strings.Repeat("x", 12), "")))
	assert.Less(t, len(Names([]string{strings.Repeat("x", 1000)})), 2*64)
}
