package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// To look writes nothing. From the approval on everything is written, also by who had begun
// before, and the onlooker says once that the approved hash is stored.
func TestOnlooker(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "known.json")
	o := newOnlooker(file, "abc")
	to := func(document string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(document), nil }
	}
	require.NoError(t, o.Update(t.Context(), to("seen")))
	assert.NoFileExists(t, file)

	require.NoError(t, o.Update(t.Context(), func([]byte) ([]byte, error) {
		o.writes.Store(true) // in another goroutine
		return []byte("seen"), nil
	}))
	assert.Empty(t, o.stored, "it has no abc")
	for range 2 {
		require.NoError(t, o.Update(t.Context(), to("seen abc")))
	}
	require.Len(t, o.stored, 1)
	assert.NoError(t, <-o.stored)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "seen abc", string(data))

	failed := errors.New("it is no history")
	assert.ErrorIs(t, o.Update(t.Context(), func([]byte) ([]byte, error) { return nil, failed }), failed)
	assert.ErrorIs(t, <-o.stored, failed)
}
