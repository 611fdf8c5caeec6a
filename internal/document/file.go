// Package document says where one document is kept from one run of a program to
// the next, and keeps it in a file. It also locks files between processes.
package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Store keeps one document. Load returns nil if there is none.
type Store interface {
	Load() ([]byte, error)
	Save(data []byte) error
}

const (
	maxBytes = 256 << 20 // enough for the vectors of many thousand tools
	tooLarge = "mcphybrid: the document of %s has more than 256 MiB"
)

// ErrNoPath is the error of a [File] or a [Folder] whose path is empty.
var ErrNoPath = errors.New("mcphybrid: the path is empty")

// A File is the path of a file that is a [Store]. Hosts read its errors.
type File string

// Load implements [Store].
func (s File) Load() (data []byte, err error) {
	if s == "" {
		return nil, ErrNoPath
	}
	info, err := os.Stat(string(s)) // to open a pipe would wait for who writes to it
	if err == nil && info.Mode().IsRegular() {
		var f *os.File
		if f, err = os.Open(string(s)); err == nil {
			defer f.Close()
			info, err = f.Stat() // another process may have replaced the file
		}
		if err == nil && info.Size() <= maxBytes {
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
	case info.Size() > maxBytes:
		return nil, fmt.Errorf(tooLarge, s)
	}
	return data, nil
}

// Save implements [Store]. A crash leaves either the old or the new document.
func (s File) Save(data []byte) error {
	removeStale(filepath.Dir(string(s)), filepath.Base(string(s)))
	removeStale(string(s.parts()), "")
	return s.write(data)
}

func (s File) write(data []byte) error {
	if s == "" {
		return ErrNoPath
	}
	if len(data) > maxBytes {
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
		return ErrNoPath
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

// removeStale removes temporary files older than ten minutes, which programs left that crashed
// while they wrote: those of base, or all if base is empty. A write that takes longer fails.
func removeStale(folder, base string) {
	list, _ := os.ReadDir(folder)
	for _, e := range list {
		random, ours := strings.CutPrefix(e.Name(), base+".")
		if base == "" {
			_, random, ours = strings.Cut(e.Name(), ".")
		}
		if !ours || strings.TrimLeft(random, "0123456789") != ".tmp" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > 10*time.Minute {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}
