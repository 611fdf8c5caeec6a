//go:build unix

package mcphybrid

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe where the document should be is an error at once, and Save puts a file in
// its place.
func TestFileStoreIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache.json")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := FileStore(path).Load()
	assert.EqualError(t, err, "mcphybrid: "+path+" is not a regular file")
	require.NoError(t, FileStore(path).Save([]byte("x")))
	data, err := FileStore(path).Load()
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))
}
