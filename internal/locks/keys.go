package locks

import (
	"context"
	"sync"
)

// Keys has a lock for each key. The zero value is ready.
type Keys struct {
	mu   sync.Mutex
	keys map[string]*key // those that have users
}

type key struct {
	users int           // that have the lock or wait for it; guarded by mu of the Keys
	taken chan struct{} // has room for the one who has it
}

// Lock waits until nobody else has the lock of that name.
func (k *Keys) Lock(ctx context.Context, name string) (unlock func(), err error) {
	k.mu.Lock()
	if k.keys == nil {
		k.keys = make(map[string]*key)
	}
	one := k.keys[name]
	if one == nil {
		one = &key{taken: make(chan struct{}, 1)}
		k.keys[name] = one
	}
	one.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(k.keys, name)
		}
	}
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
