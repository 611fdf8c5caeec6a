package adaptertest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Example tests that the README of an adapter has its example/main.go as its one block of
// Go, and that this has at most 40 lines.
func Example(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example/main.go")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(readme), "```go\n")
	block, rest, _ := strings.Cut(block, "```\n")
	assert.Equal(t, string(example), block)
	assert.NotContains(t, rest, "```go")
	assert.LessOrEqual(t, strings.Count(block, "\n"), 40)
}
