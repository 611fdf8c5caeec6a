package document

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Parts are documents that don't change, each under its key: see [KeyOf]. Put removes a
// part if it is nil. Get returns nil if there is none.
type Parts interface {
	Put(key string, part []byte) error
	Get(key string) (part []byte, err error)
}

// KeyOf returns the key of a part: its hash, of 43 letters, digits, "-" and "_".
func KeyOf(part []byte) string {
	sum := sha256.Sum256(part)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsKey reports whether key may be one of [KeyOf].
func IsKey(key string) bool {
	sum, err := base64.RawURLEncoding.DecodeString(key)
	return err == nil && len(sum) == sha256.Size
}

// A Folder is the path of a folder that has [Parts], each in a file. Put makes the folder,
// and those above it, if need be.
type Folder string

func (f Folder) part(key string) File {
	if f == "" {
		return "" // and not a file of the current folder
	}
	return File(filepath.Join(string(f), key))
}

// Get implements [Parts].
func (f Folder) Get(key string) ([]byte, error) { return f.part(key).Load() }

// Put implements [Parts].
func (f Folder) Put(key string, part []byte) error { return f.put(key, part, os.MkdirAll) }

func (f Folder) put(key string, part []byte, create func(string, fs.FileMode) error) error {
	file := f.part(key)
	if part == nil {
		return file.remove()
	}
	err := file.write(part)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := create(string(f), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	return file.write(part)
}

// parts has the parts that belong to a file.
func (s File) parts() Folder {
	if s == "" {
		return ""
	}
	return Folder(string(s) + ".parts")
}

// Get implements [Parts] by a folder whose name has .parts at the end.
func (s File) Get(key string) ([]byte, error) { return s.parts().Get(key) }

// Put implements [Parts] likewise. The folder of the file must exist.
func (s File) Put(key string, part []byte) error { return s.parts().put(key, part, os.Mkdir) }
