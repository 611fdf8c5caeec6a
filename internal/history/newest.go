package history

import (
	"slices"
	"sync"
)

// A Newest holds the values that were added last, and at most so many. It may be used
// concurrently. It is empty at first.
type Newest[T any] struct {
	most int

	mu   sync.Mutex
	ring []T
	next int // place of the oldest, once there are most
}

// NewNewest returns a Newest of at most so many values.
func NewNewest[T any](most int) *Newest[T] { return &Newest[T]{most: most} }

// Add adds a value in place of the oldest, if there are as many as can be.
func (n *Newest[T]) Add(v T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(v)
}

func (n *Newest[T]) addLocked(v T) {
	if len(n.ring) < n.most {
		n.ring = append(n.ring, v)
		return
	}
	n.ring[n.next] = v
	n.next = (n.next + 1) % n.most
}

// Merge replaces the newest value for which of holds by what into returns for it, which is
// then the newest of all. It adds v if there is none, or into returns false.
func (n *Newest[T]) Merge(v T, of func(T) bool, into func(old T) (merged T, ok bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := slices.Concat(n.ring[n.next:], n.ring[:n.next])
	for i := len(list) - 1; i >= 0; i-- {
		if !of(list[i]) {
			continue
		}
		if merged, ok := into(list[i]); ok {
			n.ring, n.next = append(slices.Delete(list, i, i+1), merged), 0
			return
		}
		break
	}
	n.addLocked(v)
}

// All returns the values, newest first. The caller owns the slice.
func (n *Newest[T]) All() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := slices.Concat(n.ring[n.next:], n.ring[:n.next])
	slices.Reverse(list)
	return list
}

// Change replaces each value by what change returns for it.
func (n *Newest[T]) Change(change func(T) T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, v := range n.ring {
		n.ring[i] = change(v)
	}
}
