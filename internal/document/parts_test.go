package document

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error names the library once.
func TestPartsInNoFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a-file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	err := Folder(path).Put("a", []byte("1"))
	require.ErrorContains(t, err, "mcphybrid: ")
	assert.NotContains(t, err.Error(), "mcphybrid: mcphybrid: ")
}

func TestParts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.json")
	s := File(path)
	load := func(name string) []byte {
		data, err := File(path).Get(name)
		require.NoError(t, err)
		return data
	}
	require.Nil(t, load("a"))
	require.NoError(t, s.Put("a", nil), "there is none already")
	require.NoDirExists(t, path+".parts")
	require.NoError(t, s.Put("a", []byte("1")))
	require.NoError(t, s.Put("b-changes", []byte("2")))
	require.NoError(t, s.Put("a", []byte("3")))
	require.NoError(t, s.Put("c", []byte{}))
	require.Equal(t, "3", string(load("a")))
	require.Equal(t, "2", string(load("b-changes")))
	require.NotNil(t, load("c"))
	require.NoFileExists(t, path, "it is no part")
	if runtime.GOOS != "windows" {
		for file, mode := range map[string]fs.FileMode{path + ".parts": fs.ModeDir | 0o700, path + ".parts/a": 0o600} {
			info, err := os.Stat(file)
			require.NoError(t, err)
			assert.Equal(t, mode, info.Mode(), file)
		}
	}
	require.NoError(t, s.Put("a", nil))
	require.Nil(t, load("a"))
	assert.Equal(t, []string{"b-changes", "c"}, filesIn(t, path+".parts"))

	assert.ErrorIs(t, File(filepath.Join(path, "none")).Put("a", []byte("x")), fs.ErrNotExist, "the file's folder must exist")
	require.NoError(t, os.WriteFile(path+"2.parts", nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(path+".parts", "d", "x"), 0o700))
	for _, err := range []error{
		File(filepath.Join(path, "none")).Put("a", []byte("x")),
		File(path+"2").Put("a", []byte("x")), // a file is where its folder would be
		s.Put("d", nil),
	} {
		require.Error(t, err)
		assert.Equal(t, 1, strings.Count(err.Error(), "mcphybrid: "), err)
	}
}

// What crashed programs left among the parts goes with the next save of the file.
func TestPartsStaleFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.json")
	s := File(path)
	require.NoError(t, s.Put("a", []byte("1")))
	old := time.Now().Add(-11 * time.Minute)
	for _, name := range []string{"a.1.tmp", "b.23.tmp", "c.x.tmp", "d.4.tmp"} {
		file := filepath.Join(path+".parts", name)
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		if name != "d.4.tmp" { // somebody is still writing it
			require.NoError(t, os.Chtimes(file, old, old))
		}
	}
	require.NoError(t, s.Save([]byte("x")))
	assert.Equal(t, []string{"a", "c.x.tmp", "d.4.tmp"}, filesIn(t, path+".parts"))
}
