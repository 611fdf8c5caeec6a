package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/mcphybrid/mcphybrid/internal/foreign"
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
	mu   sync.Mutex
	keys map[string]*kept // those that have a document or a user
}

type kept struct {
	users    int           // that have the turn or wait for it; guarded by mu of the Memory
	turn     chan struct{} // has room for the one who may use document
	document []byte
}

// maxKept is how many documents a [Memory] keeps.
const maxKept = 10_000

func (m *Memory) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	if m.keys == nil {
		m.keys = make(map[string]*kept)
	}
	k := m.keys[key]
	if k == nil {
		k = &kept{turn: make(chan struct{}, 1)}
		m.keys[key] = k
	}
	k.users++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if k.users--; k.users == 0 && k.document == nil {
			delete(m.keys, key)
		}
	}()
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	document, err := change(k.document)
	if err == nil && k.document == nil && document != nil && m.size() > maxKept {
		err = fmt.Errorf("there are %d logins in memory, the limit: set Options.TokenStore", maxKept)
	}
	if err == nil {
		k.document = document
	}
	return err
}

func (m *Memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.keys)
}

// Guarded returns s with its panics turned into errors that begin with what.
func Guarded(s Store, what string) Store { return guarded{s, what} }

type guarded struct {
	of   Store
	what string
}

func (g guarded) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	_, err := foreign.Call(g.what, func() (struct{}, error) { return struct{}{}, g.of.Update(ctx, key, change) })
	return err
}

// Files is a [Store] in the folder of that name, with a file for each key and another
// that locks it.
type Files string

func (f Files) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	path, unlock, err := Lock(ctx, string(f), key)
	if err != nil {
		return err
	}
	defer unlock()
	file := document.File(path + ".json")
	old, err := file.Load()
	if err != nil {
		return err
	}
	changed, err := change(old)
	if err != nil || bytes.Equal(old, changed) {
		return err
	}
	if changed == nil {
		return os.Remove(path + ".json")
	}
	return file.Save(changed)
}

// Lock waits until nobody else has the lock of key, in any process. It is a file of
// folder, whose path has another ending. The folder is created if need be.
func Lock(ctx context.Context, folder, key string) (path string, unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(key))
	path = filepath.Join(folder, hex.EncodeToString(sum[:16]))
	if unlock, err = lock(ctx, path+".lock"); err != nil {
		err = fmt.Errorf("locking %s: %w", path, err)
	}
	return path, unlock, err
}

// lock locks a file against everyone else who locks it, in any process. The lock
// ends with the process at the latest.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, busy, err := tryLock(path)
		if err == nil && !busy {
			return func() { f.Close() }, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
