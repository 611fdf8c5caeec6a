package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbered returns a document that shows whether it is whole: n lines of n.
func numbered(n int) []byte {
	return bytes.Repeat([]byte(strconv.Itoa(n)+"\n"), n)
}

func assertNumbered(t *testing.T, data []byte) bool {
	t.Helper()
	first, _, _ := bytes.Cut(data, []byte("\n"))
	n, _ := strconv.Atoi(string(first))
	return assert.True(t, n > 0 && bytes.Equal(data, numbered(n)), "%d bytes, for %d", len(data), n)
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "trust [1]*.json")
	if runtime.GOOS == "windows" {
		path = filepath.Join(folder, "trust [1].json")
	}
	s := File(path)
	data, err := s.Load()
	require.NoError(t, err)
	require.Nil(t, data)

	for _, doc := range []string{"first", "a second, longer document", "3rd", ""} {
		require.NoError(t, s.Save([]byte(doc)))
		data, err := File(path).Load()
		require.NoError(t, err)
		require.NotNil(t, data)
		require.Equal(t, doc, string(data))
		require.Equal(t, []string{filepath.Base(path)}, filesIn(t, folder))
	}
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(path, 0o644))
		require.NoError(t, s.Save([]byte("x")))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

func TestFileInTheCurrentFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	s := File("trust.json")
	require.NoError(t, s.Save([]byte("x")))
	data, err := s.Load()
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))
	assert.Equal(t, []string{"trust.json"}, filesIn(t, "."))
}

func TestFileErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()

	t.Run("a folder as the path", func(t *testing.T) {
		path := filepath.Join(folder, "folder")
		require.NoError(t, os.Mkdir(path, 0o700))
		for _, path := range []string{path, path + string(filepath.Separator)} {
			_, err := File(path).Load()
			assert.ErrorContains(t, err, "mcphybrid: ")
			assert.ErrorContains(t, err, path)
			err = File(path).Save([]byte("x"))
			assert.ErrorContains(t, err, "mcphybrid: ")
			assert.ErrorContains(t, err, path)
		}
		assert.Empty(t, filesIn(t, path))
		assert.Equal(t, []string{"folder"}, filesIn(t, folder))
	})

	t.Run("no folder", func(t *testing.T) {
		path := filepath.Join(folder, "none", "trust.json")
		data, err := File(path).Load()
		assert.NoError(t, err)
		assert.Nil(t, data)
		err = File(path).Save([]byte("x"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, path)
	})

	t.Run("too large", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "trust.json")
		require.NoError(t, File(path).Save([]byte("x")))
		err := File(path).Save(make([]byte, 256<<20+1))
		assert.EqualError(t, err, "mcphybrid: the document of "+path+" has more than 256 MiB")
		data, err := File(path).Load()
		require.NoError(t, err)
		assert.Equal(t, "x", string(data))

		require.NoError(t, os.Truncate(path, 64<<20)) // makes it longer
		data, err = File(path).Load()
		require.NoError(t, err)
		assert.Len(t, data, 64<<20)
		require.NoError(t, os.Truncate(path, 256<<20+1))
		_, err = File(path).Load()
		assert.EqualError(t, err, "mcphybrid: the document of "+path+" has more than 256 MiB")
	})

	t.Run("permissions", func(t *testing.T) {
		if runtime.GOOS == "windows" || os.Geteuid() == 0 {
			t.Skip("root, and Windows, may read and write what the mode forbids")
		}
		folder := t.TempDir()
		path := filepath.Join(folder, "trust.json")
		require.NoError(t, File(path).Save([]byte("x")))
		require.NoError(t, os.Chmod(path, 0))
		_, err := File(path).Load()
		assert.ErrorIs(t, err, fs.ErrPermission)
		assert.ErrorContains(t, err, path)

		require.NoError(t, os.Chmod(path, 0o600))
		require.NoError(t, os.Chmod(folder, 0o500))
		defer os.Chmod(folder, 0o700)
		assert.ErrorIs(t, File(path).Save([]byte("y")), fs.ErrPermission)
		data, err := File(path).Load()
		require.NoError(t, err)
		assert.Equal(t, "x", string(data))
		assert.Equal(t, []string{"trust.json"}, filesIn(t, folder))
	})
}

func TestFileStaleFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	keep := []string{
		"trust.json.1.tmp.bak", "trust.json.12a.tmp", "trust.json.tmp", "trust.json.1.2.tmp",
		"atrust.json.3.tmp", "trust.json.4", "trust.json.5.tmp", "other.json.6.tmp",
	}
	stale := []string{"trust.json.7.tmp", "trust.json.123456789.tmp"}
	old := time.Now().Add(-11 * time.Minute)
	for _, name := range append(stale, keep...) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		if name != "trust.json.5.tmp" { // somebody is still writing it
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "trust.json.8.tmp"), 0o700))
	require.NoError(t, os.Chtimes(filepath.Join(folder, "trust.json.8.tmp"), old, old))
	require.NoError(t, File(filepath.Join(folder, "trust.json")).Save([]byte("x")))
	assert.ElementsMatch(t, append(keep, "trust.json", "trust.json.8.tmp"), filesIn(t, folder))
}

func TestFileConcurrently(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "trust.json")
	var saved, loaded sync.WaitGroup
	done := make(chan struct{})
	for w := range 8 {
		s := File(path)
		saved.Go(func() {
			for i := range 25 {
				assert.NoError(t, s.Save(numbered(1+1000*w+i)))
			}
		})
		if w >= 2 {
			continue // two readers keep a processor busy
		}
		loaded.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				data, err := s.Load()
				assert.NoError(t, err)
				if data != nil && !assertNumbered(t, data) {
					return
				}
			}
		})
	}
	saved.Wait()
	close(done)
	loaded.Wait()
	data, err := File(path).Load()
	require.NoError(t, err)
	assertNumbered(t, data)
	assert.Equal(t, []string{"trust.json"}, filesIn(t, folder))
}

// TestFileChild is not a test. It is the process that TestFileCrash kills: it saves
// until then, and meanwhile writes a byte after the other.
func TestFileChild(t *testing.T) {
	path := os.Getenv("TEST_FILE")
	if path == "" {
		return
	}
	go func() {
		for n := 1; ; n = n%50_000 + 7_919 {
			if err := File(path).Save(numbered(n)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
		}
	}()
	for {
		_, _ = os.Stdout.Write([]byte("."))
		runtime.Gosched()
	}
}

// TestFileCrash kills the child once it has written so many bytes.
func TestFileCrash(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	path := filepath.Join(folder, "trust.json")
	require.NoError(t, File(path).Save(numbered(1)))
	kills, random := mcptest.Long(50, 15), rand.New(rand.NewPCG(1, 2))
	for kill := 0; kill < kills || kill < 100*kills && len(filesIn(t, folder)) == 1; kill++ { // until one hits a Save
		cmd := exec.Command(self, "-test.run", "^TestFileChild$", "-test.timeout", "1m")
		cmd.Env = append(os.Environ(), "TEST_FILE="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.CopyN(io.Discard, out, 1+random.Int64N(20_000))
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		err = cmd.Wait()
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), "%v", err)
		data, err := File(path).Load()
		require.NoError(t, err)
		require.True(t, assertNumbered(t, data), "kill %d", kill)
	}
	left := filesIn(t, folder)
	assert.Greater(t, len(left), 1, "no kill hit a Save: all came between two")
	old := time.Now().Add(-time.Hour)
	for _, name := range left {
		require.True(t, strings.HasPrefix(name, "trust.json"), name)
		require.NoError(t, os.Chtimes(filepath.Join(folder, name), old, old))
	}
	require.NoError(t, File(path).Save([]byte("x")))
	assert.Equal(t, []string{"trust.json"}, filesIn(t, folder))
}
