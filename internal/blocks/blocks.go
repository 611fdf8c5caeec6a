// Package blocks joins blocks of named items into one list. From one version of the
// list to the next most blocks stay as they are, and cost next to nothing.
package blocks

import "slices"

// A Block is a part of a list. Versions of the list share it, and nobody may change it.
type Block[T comparable, N any] struct {
	Items  []T
	Note   N              // what else the caller knows of them
	marked bool           // see List.Marked
	number int            // no other block with items in a list has it
	places map[string]int // index in Items, by name
}

// New returns a block with that number of items with these names. A list takes memory
// for all numbers from 0 up to the greatest.
func New[T comparable, N any](number int, items []T, name func(T) string, note N, marked bool) *Block[T, N] {
	b := &Block[T, N]{items, note, marked, number, make(map[string]int, len(items))}
	for i, item := range items {
		b.places[name(item)] = i
	}
	return b
}

// Find returns the item with that name, or the zero T.
func (b *Block[T, N]) Find(name string) (item T) {
	if i, ok := b.places[name]; ok {
		item = b.Items[i]
	}
	return item
}

// A List is one version of a list. It never changes, and the zero value is empty.
type List[T comparable, N any] struct {
	Items  []T
	Blocks []*Block[T, N] // nil for one without anything
	Marked []*Block[T, N] // those that were marked, so that nobody looks for them among all
	at     []place        // by the number of a block
}

// A place says where a block is. Its zero value says that it is not there.
type place struct {
	index int32 // in Blocks, from 1
	first int32 // index in Items
}

// Next returns the list of these blocks, whose numbers are below numbers. It may append
// to what l has, so it is called once for each list.
func (l *List[T, N]) Next(list []*Block[T, N], numbers int) (next List[T, N]) {
	same := 0
	for same < min(len(list), len(l.Blocks)) && list[same] == l.Blocks[same] {
		same++
	}
	next = List[T, N]{Items: l.Items, Blocks: list, Marked: l.Marked, at: append(l.at, make([]place, max(0, numbers-len(l.at)))...)}
	mine := false // next.at[:len(l.at)] is not that of l
	put := func(number int, at place) {
		if number < len(l.at) && !mine {
			next.at, mine = slices.Clone(next.at), true
		}
		next.at[number] = at
	}
	for _, b := range slices.Backward(l.Blocks[same:]) {
		if b != nil && len(b.Items) > 0 {
			n := l.at[b.number].first
			next.Items = l.Items[:n:n] // append copies it
			put(b.number, place{})
		}
		if b != nil && b.marked {
			next.Marked = next.Marked[:len(next.Marked)-1]
		}
	}
	next.Marked = slices.Clip(next.Marked)
	for i, b := range list[same:] {
		if b != nil && len(b.Items) > 0 {
			put(b.number, place{int32(same + i + 1), int32(len(next.Items))})
			next.Items = append(next.Items, b.Items...)
		}
		if b != nil && b.marked {
			next.Marked = append(next.Marked, b)
		}
	}
	return next
}

// Place returns the index in Items of an item by the number of its block and its name.
func (l *List[T, N]) Place(number int, name string) (i int, ok bool) {
	b := l.block(number)
	if b == nil {
		return 0, false
	}
	i, ok = b.places[name]
	return int(l.at[number].first) + i, ok
}

func (l *List[T, N]) block(number int) *Block[T, N] {
	if number < 0 || number >= len(l.at) || l.at[number].index == 0 {
		return nil
	}
	return l.Blocks[l.at[number].index-1]
}

// Without returns the items of the blocks of l that other does not have.
func (l *List[T, N]) Without(other *List[T, N]) (items []T) {
	for i, b := range l.Blocks {
		same := i < len(other.Blocks) && other.Blocks[i] == b // as most are
		if !same && b != nil && len(b.Items) > 0 && other.block(b.number) != b {
			items = append(items, b.Items...)
		}
	}
	return items
}
