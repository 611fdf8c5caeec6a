package store

import (
	"context"
	"fmt"

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
// (mode 0600). Update creates the folder if need be.
type FileTokens string

// Update implements [Tokens].
func (f FileTokens) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if f == "" {
		return errNoPath
	}
	path, unlock, err := locks.InFolder(ctx, string(f), key)
	if err != nil {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	defer unlock()
	return File(path + ".json").change(change)
}
