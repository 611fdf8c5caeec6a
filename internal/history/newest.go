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
	if len(n.ring) < n.most {
		n.ring = append(n.ring, v)
		return
	}
	n.ring[n.next] = v
	n.next = (n.next + 1) % n.most
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
