package files

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A changed file that can't be read is read again until it can be, and the log says why it
// can't, once. Otherwise, a token that was taken away would stay one.
func TestFilesAreReadUntilTheyCanBe(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "secret", "one")
	book := new(mcptest.Log)
	log := slog.New(slog.NewJSONHandler(book, nil))
	var failure error
	reads, used := 0, 0
	f := Follow(func() error { reads++; return failure }, file)
	f.Then = func() { used++ }
	look := func() { f.Check(log) }
	look()
	assert.Zero(t, reads, "nothing has changed")

	commandtest.ReplaceFile(t, file, "two")
	failure = errors.New("too many open files")
	look()
	look()
	look()
	assert.Equal(t, 3, reads)
	assert.Equal(t, 1, strings.Count(book.String(), "too many open files"), "%s", book)
	failure = errors.New("a stale handle")
	look()
	assert.Equal(t, 1, strings.Count(book.String(), "a stale handle"))
	assert.Zero(t, used)
	failure = nil
	look()
	look()
	assert.Equal(t, 5, reads)
	assert.Equal(t, 1, used)
	assert.Equal(t, 1, strings.Count(book.String(), "a changed file is used"))

	commandtest.ReplaceFile(t, file, "three")
	failure = errors.New("a stale handle")
	look()
	assert.Equal(t, 2, strings.Count(book.String(), "a stale handle"), "it worked in between")
}

// Whatever differs of a file, it has changed: its bytes, its time, its mode, or which file it is.
func TestWhatChangesAFile(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	t.Parallel()
	file := commandtest.WriteFile(t, "secret", "one")
	at := time.Unix(1_700_000_000, 0)
	write := func(path, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	write(file, "one")
	f := Follow(nil, file)
	assert.False(t, f.hasChanged())
	for name, change := range map[string]func(){
		"its length": func() { write(file, "three") },
		"its time":   func() { require.NoError(t, os.Chtimes(file, at, at.Add(time.Second))) },
		"its mode":   func() { require.NoError(t, os.Chmod(file, 0o640)) },
		"another file": func() {
			write(file+".new", "one")
			require.NoError(t, os.Rename(file+".new", file))
		},
	} {
		require.NoError(t, os.Chmod(file, 0o600))
		write(file, "one")
		f.hasChanged()
		change()
		assert.True(t, f.hasChanged(), name)
		assert.False(t, f.hasChanged(), name)
	}
}

// A file that people write counts when it has stayed the same for a look.
func TestSlowFilesAreReadWhenTheyAreDone(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "rules", "one")
	reads := 0
	f := Follow(func() error { reads++; return nil }, file)
	f.Slow = true
	log := slog.New(slog.DiscardHandler)
	for i, want := range []int{0, 0, 0, 1, 1} {
		if i == 1 || i == 2 {
			commandtest.ReplaceFile(t, file, strings.Repeat("x", i))
		}
		f.Check(log)
		assert.Equal(t, want, reads, i)
	}
}

// Files with secrets are refused if others may read them.
func TestModesOfSecrets(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	file := commandtest.WriteFile(t, "secret", "secret")
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o644: false, 0o620: false, 0o606: false} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := ReadSecret(file)
		if good {
			assert.NoError(t, err, "%v", mode)
			continue
		}
		if assert.Error(t, err, "%v", mode) {
			assert.Contains(t, err.Error(), file)
			assert.Contains(t, err.Error(), fmt.Sprintf("%04o", mode))
		}
	}
	if os.Geteuid() == 0 { // who else can't make a file of another user
		require.NoError(t, os.Chown(file, 1, -1))
		for mode, want := range map[os.FileMode]string{0o640: "", 0o440: "", 0o660: "chmod 640", 0o644: "chmod 640"} {
			require.NoError(t, os.Chmod(file, mode))
			_, err := ReadSecret(file)
			assert.Equal(t, want == "", err == nil, "%v", mode)
			if want != "" {
				assert.ErrorContains(t, err, want)
			}
		}
		assert.ErrorContains(t, CheckOwn(file), "belongs to the user with the number 1")
		require.NoError(t, os.Chown(file, 0, -1))
	}
	_, err := ReadSecret(t.TempDir())
	assert.ErrorContains(t, err, "not a regular file")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.Truncate(file, 1<<20+1))
	_, err = ReadSecret(file)
	assert.ErrorContains(t, err, "more than")
}

// A file that says what to trust may be read by all, and written by its owner only.
func TestUnsharedFiles(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	file := commandtest.WriteFile(t, "secret", "known")
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o620: false, 0o602: false} {
		require.NoError(t, os.Chmod(file, mode))
		assert.Equal(t, good, CheckUnshared(file) == nil, "%v", mode)
	}
	assert.NoError(t, CheckUnshared(file+"x"), "it is not there yet")
}

// A file with a secret or a key has a megabyte at most, and is one.
func TestFilesThatAreRead(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{0: true, 1 << 20: true, 1<<20 + 1: false} {
		file := commandtest.WriteFile(t, "cert", strings.Repeat("x", n))
		data, err := Read(file)
		if ok {
			assert.NoError(t, err)
			assert.Len(t, data, n)
		} else {
			assert.EqualError(t, err, file+" has more than 1048576 bytes")
		}
	}
	_, err := Read(t.TempDir())
	assert.ErrorContains(t, err, "is not a regular file")
	_, err = Read("/no/such/file")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Files are looked at each second, until that is stopped. One that comes and one that goes has
// changed.
func TestFollowAll(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "secret", "one")
	synctest.Test(t, func(t *testing.T) {
		var reads, quiet atomic.Int32
		f, g := Follow(func() error { reads.Add(1); return nil }, file), Follow(func() error { quiet.Add(1); return nil }, file+".other", file)
		g.Quiet = true
		book := new(mcptest.Log)
		stop := FollowAll([]*Followed{f, g}, slog.New(slog.NewTextHandler(book, nil)))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Zero(t, reads.Load()+quiet.Load())
		require.NoError(t, os.WriteFile(file+".other", nil, 0o600))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []int32{0, 1}, []int32{reads.Load(), quiet.Load()})
		require.NoError(t, os.Remove(file))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []int32{1, 2}, []int32{reads.Load(), quiet.Load()})
		assert.Equal(t, 1, strings.Count(book.String(), "a changed file is used"), "one of them is quiet")
		stop()
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		time.Sleep(5 * time.Second)
		assert.EqualValues(t, 1, reads.Load())
	})
	FollowAll(nil, nil)()
}
