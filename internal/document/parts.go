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

// A Folder is the path of a folder that has [Parts], each in a file. Put makes the folder
// if need be.
type Folder string

func (f Folder) part(key string) File { return File(filepath.Join(string(f), key)) }

// Get implements [Parts].
func (f Folder) Get(key string) ([]byte, error) { return f.part(key).Load() }

// Put implements [Parts].
func (f Folder) Put(key string, part []byte) error {
	file := f.part(key)
	if part == nil {
		return file.remove()
	}
	err := file.write(part)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(string(f), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	return file.write(part)
}

// parts has the parts that belong to a file.
func (s File) parts() Folder { return Folder(string(s) + ".parts") }

// Get and Put implement [Parts] by a folder whose name has .parts at the end.
func (s File) Get(key string) ([]byte, error)    { return s.parts().Get(key) }
func (s File) Put(key string, part []byte) error { return s.parts().Put(key, part) }
