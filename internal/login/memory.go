package login

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/locks"
)

// Memory is a [store.Tokens] in memory. The zero value is empty.
type Memory struct {
	locks locks.Keys

	mu        sync.Mutex
	documents map[string][]byte // by key; a document is used by who has locked the key
}

// maxKept is how many documents a [Memory] keeps.
const maxKept = 10_000

func (m *Memory) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	unlock, err := m.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
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
