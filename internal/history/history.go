// Package history remembers in bounded room what there was: values by number, as long
// as others keep them, and samples, which reach back to the first.
package history

import (
	"slices"
	"sync"
	"time"
	"weak"
)

// minPrune is with how many values a [Living] first drops those that are gone.
const minPrune = 64

// A Living numbers values from 1, in the order in which they are added. It keeps none
// of them in memory. It may be used concurrently, and the zero value is empty.
type Living[T any] struct {
	mu    sync.Mutex
	last  int
	list  []entry[T]
	prune int // with this many entries, we drop those that are gone
}

type entry[T any] struct {
	number int
	began  time.Time
	value  weak.Pointer[T]
}

// A Value is one that somebody still keeps.
type Value[T any] struct {
	Value  *T
	Number int
	Began  time.Time // when it was added
}

// Add adds a value.
func (l *Living[T]) Add(value *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= max(l.prune, minPrune) {
		kept := make([]entry[T], 0, len(l.list))
		for _, e := range l.list {
			if e.value.Value() != nil {
				kept = append(kept, e)
			}
		}
		l.list, l.prune = kept, 2*len(kept) // doubling keeps the cost per value constant
	}
	l.last++
	l.list = append(l.list, entry[T]{l.last, time.Now(), weak.Make(value)})
}

// Newest returns the values that are left, newest first.
func (l *Living[T]) Newest() (values []Value[T]) {
	l.mu.Lock()
	list := slices.Clip(l.list) // its elements don't change
	l.mu.Unlock()
	for _, e := range slices.Backward(list) {
		if v := e.value.Value(); v != nil {
			values = append(values, Value[T]{v, e.number, e.began})
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

// All returns the samples, oldest first.
func (s *Series[T]) All() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples)
}
