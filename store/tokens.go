package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcphybrid/mcphybrid/internal/locks"
)

// Tokens keep what logins gave us: one document of at most 64 KiB for each key. A key names a
// user, a server and a hash of its URL, or the client of a ClientSecret. Documents have tokens
// and must be kept secret. The methods may be called concurrently.
type Tokens interface {
	// Update calls change once and replaces a document with what it returns. Either
	// is nil if there is none. Until change returns, no other Update of that key may
	// begin, in any process that shares the store: a refresh token can be used once.
	// That takes up to a minute. If change returns an error, nothing changes, and
	// Update returns that error. Nobody waits for an Update whose ctx has ended.
	Update(ctx context.Context, key string, change func(document []byte) ([]byte, error)) error
}

// FileTokens is the path of a folder that keeps [Tokens], with a file for each key and another
// that locks it. Several processes may share it. Only the owner may read or write the files
// (mode 0600). Update creates the folder if need be. In one where nothing can be written, it
// fails only if change changes the document.
type FileTokens string

// Update implements [Tokens].
func (f FileTokens) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if f == "" {
		return errNoPath
	}
	path, unlock, err := locks.InFolder(ctx, string(f), key)
	if err == nil {
		defer unlock()
	}
	unwritable := err
	if err != nil && (path == "" || !locks.IsUnwritable(err)) {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	var own error // of change
	begun := false
	err = File(path + ".json").change(func(document []byte) (changed []byte, err error) {
		begun = true
		changed, own = change(document)
		if own == nil && unwritable != nil && !bytes.Equal(document, changed) {
			return nil, unwritable
		}
		return changed, own
	})
	if err == nil || own != nil || !begun {
		return err
	}
	if at := new(fs.PathError); errors.As(err, &at) {
		err = at.Err // its path may be of a file that is there for a moment
	}
	return fmt.Errorf("mcphybrid: %s.json can't be written: %w; make room there, let your user write to that folder, or name another one", path, err)
}
