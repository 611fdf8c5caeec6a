package store

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Parts keep parts: documents that don't change, each under a hash of it, [KeyOf]. The methods
// may be called concurrently, and may use the Manager.
//
// Options.StateParts is such a store, and Options.Cache may be one, too. Each of them needs
// parts of its own. For the cache, the library removes parts. For StateParts, it doesn't: a part
// to which new states refer is put again after an hour. So if states are kept for a week, drop
// what was not put for a week and an hour. Such parts have at most Options.MaxState bytes,
// and results that were cut at most 4 MiB.
type Parts interface {
	// Put keeps a part or, if it is nil, removes the one with that key.
	Put(key string, part []byte) error

	// Get returns the part with that key, or nil if there is none.
	Get(key string) (part []byte, err error)
}

// KeyOf returns the key of a part: its SHA-256 as 43 letters, digits, "-" and "_".
func KeyOf(part []byte) string {
	sum := sha256.Sum256(part)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsKey reports whether key consists of 43 letters, digits, "-" and "_".
func IsKey(key string) bool {
	sum, err := base64.RawURLEncoding.DecodeString(key)
	return err == nil && len(sum) == sha256.Size && len(key) == 43 // decoding skips ends of lines
}

// FileParts is the path of a folder that keeps [Parts], each in a file. Several processes may
// share it. Only the owner may read or write the files (mode 0600). Put creates the folder, and
// those above it, if need be. It writes a file anew, so its time says when the part was put last.
// Now and then it removes what a process that crashed left half written.
type FileParts string

func (f FileParts) part(key string) File {
	if f == "" {
		return "" // and not a file of the current folder
	}
	return File(filepath.Join(string(f), key))
}

// Get implements [Parts].
func (f FileParts) Get(key string) ([]byte, error) { return f.part(key).Load() }

// Put implements [Parts].
func (f FileParts) Put(key string, part []byte) error { return f.put(key, part, os.MkdirAll) }

func (f FileParts) put(key string, part []byte, create func(string, fs.FileMode) error) error {
	file := f.part(key)
	if part == nil {
		return file.remove()
	}
	if strings.HasPrefix(key, "A") { // one of 64 keys: looking for them reads the whole folder
		removeStale(string(f), "")
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
