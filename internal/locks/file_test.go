package locks

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file is locked once at a time. Who waits gets it, or ends with its context.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := File(t.Context(), path)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = File(short, path)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "somebody else has the lock")
	other, err := File(t.Context(), path+"2")
	require.NoError(t, err, "each file has its own")
	other()
	got := make(chan error)
	go func() {
		unlock, err := File(t.Context(), path)
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	assert.NoError(t, <-got)
	_, err = File(t.Context(), filepath.Join(path, "in", "no", "folder"))
	assert.Error(t, err)
}

// A key has a file in the folder, which is made for it and nobody else reads.
func TestInFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a", "b")
	path, unlock, err := InFolder(t.Context(), folder, "key/../x")
	require.NoError(t, err)
	assert.Equal(t, folder, filepath.Dir(path))
	assert.Len(t, filepath.Base(path), 32)
	assert.NoFileExists(t, path, "it is the caller's")
	assert.FileExists(t, path+".lock")
	if at, err := os.Stat(folder); assert.NoError(t, err) {
		assert.Zero(t, at.Mode().Perm()&0o077)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = InFolder(ended, folder, "key/../x")
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "locking "+path+": ")
	other, unlockOther, err := InFolder(t.Context(), folder, "key")
	require.NoError(t, err)
	assert.NotEqual(t, path, other)
	unlockOther()
	unlock()
	again, unlock, err := InFolder(t.Context(), folder, "key/../x")
	require.NoError(t, err)
	assert.Equal(t, path, again)
	unlock()
	none, unlock, err := InFolder(t.Context(), path+".lock", "key")
	assert.Error(t, err, "a file is no folder")
	assert.Empty(t, none)
	assert.Nil(t, unlock)
}

// Where nobody may write, or nothing has room, no lock can be had, and others have none either.
func TestIsUnwritable(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		fs.ErrPermission: true, syscall.EACCES: true, syscall.EPERM: true, syscall.EROFS: true, syscall.ENOSPC: true, syscall.EDQUOT: true,
		syscall.ENOENT: false, syscall.EMFILE: false, context.Canceled: false, nil: false,
	} {
		assert.Equal(t, want, IsUnwritable(err), "%v", err)
		if err != nil {
			assert.Equal(t, want, IsUnwritable(fmt.Errorf("locking: %w", &fs.PathError{Op: "open", Err: err})), "%v", err)
		}
	}
}
