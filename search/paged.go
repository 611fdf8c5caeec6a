package search

const pageSize = 32

// A paged is a copy-on-write slice. Copies share pages until one of them
// changes a page. Each copy belongs to a generation and may change only the
// pages of that generation.
type paged[T any] struct {
	pages []*page[T]
}

type page[T any] struct {
	generation uint64
	items      [pageSize]T
}

// at returns item i. The caller must not change it.
func (p *paged[T]) at(i uint32) *T { return &p.pages[i/pageSize].items[i%pageSize] }

// grow adds zero items until there are at least n.
func (p *paged[T]) grow(n int, generation uint64) {
	for len(p.pages)*pageSize < n {
		p.pages = append(p.pages, &page[T]{generation: generation})
	}
}

// change returns item i for the given generation to change. It copies a page
// that belongs to another generation.
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
