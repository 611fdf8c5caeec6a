package search

import "slices"

const pageSize = 32

// A paged is a copy-on-write slice. Copies share pages until one of them
// changes a page.
type paged[T any] struct {
	pages []*[pageSize]T
	own   []bool // by page: no other copy has it
}

// clone returns a copy of p. Neither may change the pages of the other.
func (p *paged[T]) clone() paged[T] {
	return paged[T]{slices.Clone(p.pages), make([]bool, len(p.pages))}
}

// at returns item i. The caller must not change it.
func (p *paged[T]) at(i uint32) *T { return &p.pages[i/pageSize][i%pageSize] }

// grow adds zero items until there are at least n.
func (p *paged[T]) grow(n int) {
	for len(p.pages)*pageSize < n {
		p.pages, p.own = append(p.pages, new([pageSize]T)), append(p.own, true)
	}
}

// change returns item i for the caller to change. It copies a page that p shares.
func (p *paged[T]) change(i uint32) *T {
	at := i / pageSize
	if !p.own[at] {
		c := *p.pages[at]
		p.pages[at], p.own[at] = &c, true
	}
	return &p.pages[at][i%pageSize]
}
