package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFileUpdate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trust.json")
	to := func(data []byte) error {
		return File(path).Update(t.Context(), func([]byte) ([]byte, error) { return data, nil })
	}
	require.NoError(t, to([]byte("a")))
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, to([]byte("a")))
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "equal documents are not written")
	require.NoError(t, to(nil))
	assert.NoFileExists(t, path)
	require.NoError(t, to(nil), "there is none already")
	instead := func(do func() error) error {
		require.NoError(t, to([]byte("a")))
		return File(path).Update(t.Context(), func([]byte) ([]byte, error) { return nil, errors.Join(os.Remove(path), do()) })
	}
	require.NoError(t, instead(func() error { return nil }), "somebody has removed it")
	err = instead(func() error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) })
	assert.ErrorContains(t, err, "mcphybrid: remove "+path)
	require.NoError(t, os.RemoveAll(path))

	err = File(filepath.Join(path, "none")).Update(t.Context(), nil)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "mcphybrid: locking "+path)
}

// Whoever has the lock of a file is waited for, until the context ends.
func TestUpdateWaits(t *testing.T) {
	t.Parallel()
	file := File(filepath.Join(t.TempDir(), "trust.json"))
	require.NoError(t, file.Update(t.Context(), func([]byte) ([]byte, error) {
		ended, end := context.WithCancel(t.Context())
		end()
		assert.EqualError(t, file.Update(ended, nil), "mcphybrid: locking "+string(file)+": somebody else has the lock: context canceled")
		return []byte("x"), nil
	}))
}

// Updates at once lose nothing of each other.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	file := File(filepath.Join(t.TempDir(), "count"))
	const most = 20
	var all sync.WaitGroup
	var inside atomic.Int32
	for range most {
		all.Go(func() {
			assert.NoError(t, file.Update(t.Context(), func(document []byte) ([]byte, error) {
				assert.EqualValues(t, 1, inside.Add(1))
				defer inside.Add(-1)
				for range 100 {
					runtime.Gosched() // to those that the lock lets in, if it does
				}
				n, _ := strconv.Atoi(string(document)) // 0 at first
				return []byte(strconv.Itoa(n + 1)), nil
			}))
		})
	}
	all.Wait()
	document, err := file.Load()
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(most), string(document))
}
