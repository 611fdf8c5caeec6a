package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error names the library once.
func TestPartsInNoFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a-file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	err := FileParts(path).Put("a", []byte("1"))
	require.ErrorContains(t, err, "mcphybrid: ")
	assert.NotContains(t, err.Error(), "mcphybrid: mcphybrid: ")
}

// Put makes the folders above its own, too. An empty path is not the folder that the
// program happens to run in.
func TestFileParts(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, folder := range []string{"a/b/c", "./d/", filepath.Join(t.TempDir(), "e", "f")} {
		f := FileParts(folder)
		part, err := f.Get("k")
		require.NoError(t, err)
		require.Nil(t, part)
		require.NoError(t, f.Put("k", nil), "there is none")
		require.NoDirExists(t, folder)
		require.NoError(t, f.Put("k", []byte("1")))
		part, err = f.Get("k")
		require.NoError(t, err)
		assert.Equal(t, "1", string(part))
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat("a")
		require.NoError(t, err)
		assert.Equal(t, fs.ModeDir|0o700, info.Mode())
	}
	require.NoError(t, os.WriteFile("k", []byte("not ours"), 0o600))
	for _, parts := range []Parts{FileParts(""), File("")} {
		_, err := parts.Get("k")
		assert.Equal(t, errNoPath, err)
		assert.Equal(t, errNoPath, parts.Put("k", []byte("1")))
		assert.Equal(t, errNoPath, parts.Put("k", nil))
	}
	_, err := File("").Load()
	assert.Equal(t, errNoPath, err)
	assert.Equal(t, errNoPath, File("").Save([]byte("1")))
	assert.Equal(t, errNoPath, File("").Update(t.Context(), func([]byte) ([]byte, error) { return []byte("1"), nil }))
	data, err := os.ReadFile("k")
	require.NoError(t, err)
	assert.Equal(t, "not ours", string(data))
	assert.Equal(t, []string{"a", "d", "k"}, filesIn(t, "."))
}

func TestPartsOfAFile(t *testing.T) {
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

// What a crash left in a folder of parts goes too, though no document is saved beside it.
func TestFilePartsStaleFiles(t *testing.T) {
	t.Parallel()
	parts := FileParts(t.TempDir())
	stale := filepath.Join(string(parts), KeyOf([]byte("x"))+".123.tmp")
	require.NoError(t, os.WriteFile(stale, []byte("half"), 0o600))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(stale, long, long))
	for i := range 1000 {
		part := fmt.Append(nil, i)
		require.NoError(t, parts.Put(KeyOf(part), part))
		if _, err := os.Stat(stale); err != nil {
			return
		}
	}
	assert.NoFileExists(t, stale)
}

// A key has one form only: decoders skip ends of lines.
func TestIsKey(t *testing.T) {
	t.Parallel()
	key := KeyOf([]byte("a part"))
	assert.Equal(t, "NROuGjkIbConONqmMLni8wT0G1lFIo4HQaEXpQj8Ubk", key)
	assert.True(t, IsKey(key))
	for _, bad := range []string{"", key[1:], key + "A", key + "\n", key[:20] + "\n" + key[20:], key[:42] + "\n", key[:42] + "/", key[:42] + "="} {
		assert.False(t, IsKey(bad), "%q", bad)
	}
}

// An id has 1 to MaxID bytes of UTF-8 without NUL.
func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"a": "", "ä/..": "", strings.Repeat("x", 256): "",
		"": "the id is empty", strings.Repeat("x", 257): `the id "xxxxxxxxxxxxxxxxxxxx"… has 257 bytes, more than 256`,
		"a\x00": `the id "a\x00" is not UTF-8 without NUL`, "\xff": `the id "\xff" is not UTF-8 without NUL`,
	} {
		if err := CheckID(id); want == "" {
			assert.NoError(t, err, "%q", id)
		} else {
			assert.EqualError(t, err, want)
		}
	}
}

// What another machine writes just now stays, even if the clock here is hours ahead of its.
func TestStaleFilesByTheirOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		file := File(filepath.Join(folder, "catalog.json"))
		require.NoError(t, file.Put("a", []byte("1")))
		var written []string
		for _, name := range []string{"catalog.json.1.tmp", "catalog.json.parts/a.2.tmp"} {
			written = append(written, filepath.Join(folder, name))
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		}
		info, err := os.Stat(written[0])
		require.NoError(t, err)
		time.Sleep(time.Until(info.ModTime().Add(2 * time.Hour)))
		require.NoError(t, file.Save([]byte("x")))
		for _, path := range written {
			assert.FileExists(t, path)
			old := info.ModTime().Add(-11 * time.Minute)
			require.NoError(t, os.Chtimes(path, old, old))
		}
		require.NoError(t, file.Save([]byte("y")))
		assert.Equal(t, []string{"a"}, filesIn(t, folder+"/catalog.json.parts"))
		assert.Equal(t, []string{"catalog.json", "catalog.json.parts"}, filesIn(t, folder))
	})
}
