package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/document"
)

// A Store keeps documents by key. Its methods may be called concurrently.
type Store interface {
	// Update replaces the document with what change returns for it. Either may be
	// nil, for none. Until change returns, no other Update of that key begins, in
	// any process. If change fails, nothing changes and Update returns the error.
	Update(ctx context.Context, key string, change func(document []byte) ([]byte, error)) error
}

// Memory is a [Store] in memory. The zero value is empty.
type Memory struct {
	turns turns // of the keys

	mu        sync.Mutex
	documents map[string][]byte // by key; a document is used by who has the turn
}

// maxKept is how many documents a [Memory] keeps.
const maxKept = 10_000

func (m *Memory) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	end, err := m.turns.take(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	m.mu.Lock()
	document := m.documents[key]
	m.mu.Unlock()
	if document, err = change(document); err != nil {
		return err
	}
	return m.set(key, document)
}

func (m *Memory) set(key string, document []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if document == nil {
		delete(m.documents, key)
		return nil
	}
	if m.documents[key] == nil && len(m.documents) >= maxKept {
		return fmt.Errorf("there are %d logins in memory, the limit: set Options.TokenStore", maxKept)
	}
	if m.documents == nil {
		m.documents = make(map[string][]byte)
	}
	m.documents[key] = document
	return nil
}

// Files is a [Store] in the folder of that name, with a file for each key and another
// that locks it.
type Files string

func (f Files) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if f == "" {
		return document.ErrNoPath
	}
	path, unlock, err := Lock(ctx, string(f), key)
	if err != nil {
		return fmt.Errorf("mcphybrid: %w", err)
	}
	defer unlock()
	return document.File(path + ".json").Change(change)
}

// Lock waits until nobody else has the lock of key, in any process. It is a file of
// folder, whose path has another ending. The folder is created if need be.
func Lock(ctx context.Context, folder, key string) (path string, unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(key))
	path = filepath.Join(folder, hex.EncodeToString(sum[:16]))
	if unlock, err = document.Lock(ctx, path+".lock"); err != nil {
		err = fmt.Errorf("locking %s: %w", path, err)
	}
	return path, unlock, err
}
