package login

import (
	"context"
	"sync"
)

// turns lets one user of a key in at a time. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	keys map[string]*turn // those that have users
}

type turn struct {
	users int           // that have it or wait for it; guarded by mu of the turns
	taken chan struct{} // has room for the one who has it
}

// take waits for the turn of a key. Call the function that it returns at the end.
func (t *turns) take(ctx context.Context, key string) (end func(), err error) {
	t.mu.Lock()
	if t.keys == nil {
		t.keys = make(map[string]*turn)
	}
	k := t.keys[key]
	if k == nil {
		k = &turn{taken: make(chan struct{}, 1)}
		t.keys[key] = k
	}
	k.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(t.keys, key)
		}
	}
	select {
	case k.taken <- struct{}{}:
		return func() { <-k.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
