// Package history remembers in bounded room what there was: values by number, as long
// as others keep them, and samples, which reach back to the first.
package history

import (
	"slices"
	"sync"
	"time"
)

// minPrune is with how many values a [Living] first drops those that are gone.
const minPrune = 64

// A Living numbers values from 1, in the order in which they are added. It keeps none
// of them in memory. It may be used concurrently, and the zero value is empty. P is a
// type of pointers.
type Living[P comparable] struct {
	mu    sync.Mutex
	last  int
	list  []entry[P]
	prune int // with this many entries, we drop those that are gone
}

type entry[P comparable] struct {
	number int
	began  time.Time
	value  func() P
}

// A Value is one that somebody still keeps.
type Value[P comparable] struct {
	Value  P
	Number int
	Began  time.Time // when it was added
}

// Add adds a value, which is what the function returns: nil once it is gone, as by
// [weak.Pointer.Value]. It returns the value's number.
func (l *Living[P]) Add(value func() P) int {
	var gone P
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= max(l.prune, minPrune) {
		kept := make([]entry[P], 0, len(l.list))
		for _, e := range l.list {
			if e.value() != gone {
				kept = append(kept, e)
			}
		}
		l.list, l.prune = kept, 2*len(kept) // doubling keeps the cost per value constant
	}
	l.last++
	l.list = append(l.list, entry[P]{l.last, time.Now(), value})
	return l.last
}

// Newest returns the values that are left, newest first.
func (l *Living[P]) Newest() (values []Value[P]) {
	var gone P
	l.mu.Lock()
	list := l.list // its elements don't change
	l.mu.Unlock()
	for _, e := range slices.Backward(list) {
		if v := e.value(); v != gone {
			values = append(values, Value[P]{v, e.number, e.began})
		}
	}
	return values
}

// A Series holds at most so many samples: before there is one more, it drops every
// second one and doubles the time until the next. So they always reach back to the
// first. It may be used concurrently.
type Series[T any] struct {
	most int

	mu      sync.Mutex
	samples []T
	every   time.Duration
}

// NewSeries returns a Series of at most so many samples, which must be even. every is
// the time between the first samples.
func NewSeries[T any](most int, every time.Duration) *Series[T] {
	return &Series[T]{most: most, every: every}
}

// Add adds a sample. It returns the time until the next one is due.
func (s *Series[T]) Add(sample T) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == s.most {
		for i := range s.most / 2 {
			s.samples[i] = s.samples[2*i]
		}
		s.samples = s.samples[:s.most/2]
		s.every *= 2
	}
	s.samples = append(s.samples, sample)
	return s.every
}

// Run adds what sample returns whenever one is due, until done is closed.
func (s *Series[T]) Run(done <-chan struct{}, sample func() T) {
	for {
		next := time.NewTimer(s.Add(sample()))
		select {
		case <-next.C:
		case <-done:
			next.Stop()
			return
		}
	}
}

// All returns the samples, oldest first.
func (s *Series[T]) All() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples)
}
