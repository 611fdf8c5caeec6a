package approve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// To look writes nothing. From the approval on everything is written, also by who had begun
// before.
func TestOnlooker(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "known.json")
	o := &onlooker{Shared: store.File(file)}
	require.NoError(t, o.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("seen"), nil }))
	assert.NoFileExists(t, file)
	require.NoError(t, o.Update(t.Context(), func(document []byte) ([]byte, error) {
		assert.Nil(t, document)
		o.writes.Store(true) // in another goroutine
		return []byte("approved"), nil
	}))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "approved", string(data))
}
