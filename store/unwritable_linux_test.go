package store_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unprivileged has the test go on with no more rights to files than their owner has, also if root
// runs it, and returns the path of a folder of that owner.
func unprivileged(t *testing.T) (folder string) {
	folder = t.TempDir()
	if os.Geteuid() != 0 {
		return folder
	}
	const nobody = 65534
	for _, path := range []string{filepath.Dir(folder), folder} {
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
	runtime.LockOSThread() // the user of this thread alone
	_, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
	require.Zero(t, errno)
	t.Cleanup(func() {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
		runtime.UnlockOSThread()
	})
	return folder
}

// What a folder has in which nothing can be written is of use. What can't be saved there is told
// by the name of its file, each time in the same words.
func TestTokensOfUnwritableFolder(t *testing.T) {
	folder := unprivileged(t)
	tokens := store.FileTokens(folder)
	write := func(text string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(text), nil }
	}
	has := func(key string) (text string) {
		t.Helper()
		require.NoError(t, tokens.Update(t.Context(), key, func(document []byte) ([]byte, error) {
			text = string(document)
			return document, nil
		}))
		return text
	}
	require.NoError(t, tokens.Update(t.Context(), "k", write("x")))
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NoError(t, os.Chmod(folder, 0o500))
	defer os.Chmod(folder, 0o700)

	for _, isLocked := range []bool{true, false} { // by a file that is there
		assert.Equal(t, "x", has("k"))
		first := tokens.Update(t.Context(), "k", write("y"))
		assert.ErrorContains(t, first, ".json can't be written: permission denied; make room there, let your user write to that folder, or name another one")
		assert.EqualError(t, tokens.Update(t.Context(), "k", write("z")), first.Error())
		assert.ErrorContains(t, tokens.Update(t.Context(), "k", write("")), "can't be written")
		assert.ErrorIs(t, tokens.Update(t.Context(), "k", func([]byte) ([]byte, error) { return nil, os.ErrInvalid }), os.ErrInvalid, "its own")
		assert.Equal(t, "x", has("k"))
		if isLocked {
			require.NoError(t, os.Chmod(folder, 0o700))
			for _, e := range list {
				if filepath.Ext(e.Name()) == ".lock" {
					require.NoError(t, os.Remove(filepath.Join(folder, e.Name())))
				}
			}
			require.NoError(t, os.Chmod(folder, 0o500))
		}
	}
	assert.Empty(t, has("another"))
	assert.ErrorContains(t, store.FileTokens(filepath.Join(folder, "none")).Update(t.Context(), "k", write("y")), "mcphybrid: mkdir ")
}
