package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// A Shared is a [Store] whose document several processes may change.
type Shared interface {
	Store

	// Update replaces the document with what change returns for it. Either is nil if
	// there is none. If another process changes the document meanwhile, Update calls
	// change once more. If change fails, nothing changes and Update returns the error.
	Update(ctx context.Context, change func(document []byte) ([]byte, error)) error
}

// MaxWait is how long a save may wait for those of other processes.
const MaxWait = 10 * time.Second

// Update replaces the document of s with what change returns for it. Unless s is a
// [Shared], what others save meanwhile is lost.
func Update(ctx context.Context, s Store, change func(document []byte) ([]byte, error)) error {
	if shared, ok := s.(Shared); ok {
		return shared.Update(ctx, change)
	}
	document, err := s.Load()
	if err == nil {
		document, err = change(document)
	}
	if err != nil {
		return err
	}
	return s.Save(document)
}

// Update implements [Shared]. It locks the file by another one, whose name has .lock at the
// end. On a system that has no locks, processes must not call it at once.
func (s File) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	if s == "" {
		return ErrNoPath
	}
	unlock, err := Lock(ctx, string(s)+".lock")
	switch {
	case err == nil:
		defer unlock()
	case !errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("mcphybrid: locking %s: %w", s, err)
	}
	return s.Change(change)
}

// Change is [File.Update] without the lock, for a caller that holds it.
func (s File) Change(change func([]byte) ([]byte, error)) error {
	old, err := s.Load()
	if err != nil {
		return err
	}
	changed, err := change(old)
	switch {
	case err != nil || bytes.Equal(old, changed):
		return err
	case changed == nil:
		return s.remove()
	}
	return s.Save(changed)
}
