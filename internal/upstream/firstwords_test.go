package upstream

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of a child that says much that is no message, no more is kept than is told.
func TestFirstWordsAreBounded(t *testing.T) {
	t.Parallel()
	f := &firstWords{Reader: strings.NewReader(strings.Repeat("x", 10*maxFirstWords)), spoke: make(chan struct{})}
	for b := make([]byte, 100); ; {
		n, err := f.Read(b)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Positive(t, n)
	}
	assert.Len(t, f.kept, maxFirstWords+1)
	assert.False(t, f.isSilent())
	f.areOver()
	assert.Empty(t, f.kept)
}
