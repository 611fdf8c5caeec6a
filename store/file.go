package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/locks"
)

// A File is the path of a file that is a [Shared] document of at most 256 MiB. The file's
// folder must exist. It is [Parts], too: files in a folder whose name has .parts at the end.
// Only the owner may read or write them (mode 0600).
type File string

const tooLarge = "mcphybrid: the document of %s has more than 256 MiB"

var errNoPath = errors.New("mcphybrid: the path is empty")

// Load implements [Document]. It reads only a regular file.
func (s File) Load() (data []byte, err error) {
	if s == "" {
		return nil, errNoPath
	}
	info, err := os.Stat(string(s)) // to open a pipe would wait for who writes to it
	if err == nil && info.Mode().IsRegular() {
		var f *os.File
		if f, err = os.Open(string(s)); err == nil {
			defer f.Close()
			info, err = f.Stat() // another process may have replaced the file
		}
		if err == nil && info.Size() <= MaxDocument {
			data = make([]byte, info.Size())
			_, err = io.ReadFull(f, data)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("mcphybrid: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("mcphybrid: %s is not a regular file", s)
	case info.Size() > MaxDocument:
		return nil, fmt.Errorf(tooLarge, s)
	}
	return data, nil
}

// Save implements [Document]. A crash leaves either the old or the new document. If several
// processes call it at once, the last one wins. It replaces the file, even if that is a
// symbolic link.
func (s File) Save(data []byte) error {
	removeStale(filepath.Dir(string(s)), filepath.Base(string(s)))
	removeStale(string(s.parts()), "")
	return s.write(data)
}

// Update implements [Shared]. It locks the file by another one, whose name has .lock at the
// end. On a system that has no locks, processes must not call it at once.
func (s File) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	if s == "" {
		return errNoPath
	}
	unlock, err := locks.File(ctx, string(s)+".lock")
	switch {
	case err == nil:
		defer unlock()
	case !errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("mcphybrid: locking %s: %w", s, err)
	}
	return s.change(change)
}

// change is [File.Update] without the lock, for a caller that holds it.
func (s File) change(change func([]byte) ([]byte, error)) error {
	old, err := s.Load()
	if err != nil {
		return err
	}
	changed, err := change(old)
	switch {
	case err != nil || bytes.Equal(old, changed):
		return err
	case changed == nil:
		return s.remove()
	}
	return s.Save(changed)
}

// parts returns the parts that belong to the file.
func (s File) parts() FileParts {
	if s == "" {
		return ""
	}
	return FileParts(string(s) + ".parts")
}

// Get implements [Parts] by a folder whose name has .parts at the end.
func (s File) Get(key string) ([]byte, error) { return s.parts().Get(key) }

// Put implements [Parts] likewise. The folder of the file must exist.
func (s File) Put(key string, part []byte) error { return s.parts().put(key, part, os.Mkdir) }

func (s File) write(data []byte) error {
	if s == "" {
		return errNoPath
	}
	if len(data) > MaxDocument {
		return fmt.Errorf(tooLarge, s)
	}
	folder, base := filepath.Dir(string(s)), filepath.Base(string(s))
	f, err := os.CreateTemp(folder, base+".*.tmp") // mode 0600
	if err != nil {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = replace(string(s), f.Name())
	}
	if err != nil {
		return fmt.Errorf("mcphybrid: %w", errors.Join(err, os.Remove(f.Name())))
	}
	if d, err := os.Open(folder); err == nil {
		_ = errors.Join(d.Sync(), d.Close()) // no error from here: the new document is in place
	}
	return nil
}

// remove removes the file if it is there.
func (s File) remove() error {
	if s == "" {
		return errNoPath
	}
	if err := os.Remove(string(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	return nil
}

func replace(path, by string) (err error) {
	for range 20 {
		if err = os.Rename(by, path); err == nil || runtime.GOOS != "windows" {
			return err
		}
		time.Sleep(10 * time.Millisecond) // Windows refuses while a process has the file open
	}
	return err
}

// staleAge is how old a temporary file is that nobody writes any more. A write that takes longer
// fails.
const staleAge = 10 * time.Minute

// removeStale removes old temporary files, which programs left that crashed while they wrote:
// those of base, or all if base is empty.
func removeStale(folder, base string) {
	list, _ := os.ReadDir(folder)
	var now time.Time
	for _, e := range list {
		random, ours := strings.CutPrefix(e.Name(), base+".")
		if base == "" {
			_, random, ours = strings.Cut(e.Name(), ".")
		}
		if !ours || strings.TrimLeft(random, "0123456789") != ".tmp" {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) <= staleAge {
			continue
		}
		if now.IsZero() {
			now = clockOf(folder, base)
		}
		if now.Sub(info.ModTime()) > staleAge {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// clockOf returns the time by the clock that gives files of a folder theirs, or the zero time if
// it can't be told. Ours may be ahead of it, where machines share the folder.
func clockOf(folder, base string) (now time.Time) {
	f, err := os.CreateTemp(folder, cmp.Or(base, "clock")+".*.tmp")
	if err != nil {
		return now
	}
	if info, err := f.Stat(); err == nil {
		now = info.ModTime()
	}
	_ = errors.Join(f.Close(), os.Remove(f.Name()))
	return now
}
