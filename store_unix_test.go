//go:build unix

package mcphybrid

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe in the place of a stored file is no document. Nobody waits for a writer. A
// Manager overwrites nothing that it can't read, and Save puts a file in its place.
func TestFileIsAPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	doc := store.File(path)
	_, err := doc.Load()
	assert.EqualError(t, err, "mcphybrid: "+path+" is not a regular file")
	m := NewManager(&Options{Cache: doc, TrustStore: doc, Servers: []ServerConfig{inProcess("a", 1)}})
	defer m.Close()
	require.NoError(t, m.Start(t.Context()))
	assert.Equal(t, 1, m.Stats().Tools)
	_, err = doc.Load()
	assert.ErrorContains(t, err, "is not a regular file")
	require.NoError(t, m.Close()) // which would save
	require.NoError(t, doc.Save([]byte("{}")))
	data, err := doc.Load()
	assert.NoError(t, err)
	assert.Equal(t, "{}", string(data))
	_, err = store.File(t.TempDir()).Load()
	assert.ErrorContains(t, err, "is not a regular file")
}
