package mcphybrid

import "github.com/mcphybrid/mcphybrid/internal/document"

// A Store keeps one document from one run of a program to the next. Its methods
// may be called concurrently.
type Store interface {
	// Load returns the document that was saved last, or nil if there is none
	// yet. Start, AddServer and AddTools wait for it, so it must not call them.
	Load() ([]byte, error)

	// Save replaces the document with data. If it returns an error, the old
	// document is unchanged.
	Save(data []byte) error
}

// FileStore returns a [Store] that keeps its document in a file of at most 256
// MiB. The file's folder must exist. A crash leaves either the old or the new
// document. If several processes save at once, the last one wins. Only the file's
// owner may read or write it (mode 0600). Load reads only a regular file. Save
// replaces the file, even if it is a symbolic link.
func FileStore(path string) Store { return document.File(path) }
