package search

const pageSize = 32

// A paged is a slice of which copies share the pages that they do not change.
// Each copy belongs to a generation, and may change what is its own.
type paged[T any] struct {
	pages []*page[T]
}

type page[T any] struct {
	generation uint64
	items      [pageSize]T
}

// at returns item i, which must not be changed.
func (p *paged[T]) at(i uint32) *T { return &p.pages[i/pageSize].items[i%pageSize] }

// grow adds zero items so that there are at least n.
func (p *paged[T]) grow(n int, generation uint64) {
	for len(p.pages)*pageSize < n {
		p.pages = append(p.pages, &page[T]{generation: generation})
	}
}

// change returns item i, to be changed by its generation.
func (p *paged[T]) change(i uint32, generation uint64) *T {
	own := p.pages[i/pageSize]
	if own.generation != generation {
		c := *own
		own = &c
		own.generation = generation
		p.pages[i/pageSize] = own
	}
	return &own.items[i%pageSize]
}
