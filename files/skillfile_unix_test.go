//go:build unix

package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A link out of the folder is not followed, then or later.
func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write(filepath.Join(outside, "secret", "SKILL.md"), frontMatter("secret", ""))
	write(filepath.Join(dir, "store", "inner", "SKILL.md"), frontMatter("inner", ""))
	write(filepath.Join(dir, "plain", "SKILL.md"), frontMatter("plain", ""))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "file"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "pipe"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret", "SKILL.md"), filepath.Join(dir, "file", "SKILL.md")))
	require.NoError(t, os.Symlink("store", filepath.Join(dir, "alias")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "store", "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe", "SKILL.md"), 0o644))
	list, err := LoadSkills(dir)
	text := err.Error()
	assert.Contains(t, text, filepath.Join(dir, "folder")+": ")
	assert.Contains(t, text, filepath.Join(dir, "file", "SKILL.md")+": ")
	assert.Contains(t, text, "escapes from parent")
	assert.Contains(t, text, filepath.Join(dir, "pipe", "SKILL.md")+": it is no regular file")
	assert.ElementsMatch(t, []string{"inner", "plain"}, skillNames(list))

	i := 0
	for ; list[i].Name != "plain"; i++ {
	}
	file := filepath.Join(dir, "plain", "SKILL.md")
	write(file, frontMatter("plain", "")+"More.\n")
	body, err := list[i].Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Do plain.\nMore.", body)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret", "SKILL.md"), file))
	_, err = list[i].Load(t.Context())
	assert.ErrorContains(t, err, "escapes from parent")
	require.NoError(t, os.Remove(file))
	_, err = list[i].Load(t.Context())
	assert.ErrorIs(t, err, fs.ErrNotExist)
	write(file, strings.Repeat("x", 1<<20+1))
	_, err = list[i].Load(t.Context())
	assert.ErrorContains(t, err, "more than 1048576 bytes")
	require.NoError(t, os.RemoveAll(dir))
	_, err = list[i].Load(t.Context())
	assert.ErrorIs(t, err, fs.ErrNotExist, "without the folder itself")
}
