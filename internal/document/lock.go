package document

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Shared is a [Store] that several processes may change. Until unlock is called, no
// other call of Lock returns, in any process.
type Shared interface {
	Store
	Lock(ctx context.Context) (unlock func(), err error)
}

// maxWait is how long a [Store] is waited for that others change.
const maxWait = 10 * time.Second

// LockShared locks a [Shared], and does nothing for another store.
func LockShared(s Store) (unlock func(), err error) {
	shared, ok := s.(Shared)
	if !ok {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	return shared.Lock(ctx)
}

// Lock implements [Shared], by a file beside it. Where files can't be locked, it does
// nothing.
func (s File) Lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = Lock(ctx, string(s)+".lock")
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("mcphybrid: locking %s: %w", s, err)
	}
	return unlock, nil
}

// Lock locks a file against everyone else who locks it, in any process. It creates the
// file if need be. The lock ends with the process at the latest.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
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
