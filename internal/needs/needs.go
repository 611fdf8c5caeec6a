// Package needs keeps which items need which others. It finds what an item brings
// along, and the items that need each other.
package needs

import (
	"math"
	"slices"
)

// A Graph has the items that each item needs directly, in order: not itself, and none
// twice.
type Graph[T comparable] map[T][]T

// Add adds the items with these names to what an item needs. find returns the zero
// value for a name that there is not. Add reports whether the item itself was among
// them, and the names that are missing, each once.
func (g Graph[T]) Add(item T, names []string, find func(name string) T) (itself bool, missing []string) {
	var none T
	list := g[item]
	for _, name := range names {
		switch n := find(name); {
		case n == none && !slices.Contains(missing, name):
			missing = append(missing, name)
		case n == item:
			itself = true
		case n != none && !slices.Contains(list, n):
			list = append(list, n)
		}
	}
	if len(list) > 0 {
		g[item] = list
	}
	return itself, missing
}

// Cycles returns the sets of two or more items that need each other: Tarjan's
// strongly connected components. It looks for them in the order of items. The items
// of a set are in the order in which a walk along the needs reaches them.
func (g Graph[T]) Cycles(items []T) (cycles [][]T) {
	if len(g) == 0 {
		return nil
	}
	const done = math.MaxInt
	numbers := make(map[T]int, len(g)) // from 1 in the order of the walk; or done
	var open []T                       // reached but not done, in this order
	var walk func(T) int
	walk = func(item T) int { // returns the smallest number that item leads to
		number, from := len(numbers)+1, len(open)
		numbers[item] = number
		open = append(open, item)
		least := number
		for _, n := range g[item] {
			to, walked := numbers[n]
			if !walked {
				to = walk(n)
			}
			least = min(least, to)
		}
		if least == number {
			if len(open)-from > 1 {
				cycles = append(cycles, slices.Clone(open[from:]))
			}
			for _, item := range open[from:] {
				numbers[item] = done
			}
			open = open[:from]
		}
		return least
	}
	for _, item := range items {
		if _, walked := numbers[item]; !walked && g[item] != nil {
			walk(item)
		}
	}
	return cycles
}

// Along returns the items that an item needs, then those that these need, and so on,
// each once and at most so many. It skips the items that may rejects, and what they
// need.
func Along[T comparable](item T, most int, needs func(T) []T, may func(T) bool) []T {
	if len(needs(item)) == 0 {
		return nil
	}
	all := []T{item}
	for i := 0; i < len(all); i++ {
		for _, n := range needs(all[i]) {
			if len(all) <= most && !slices.Contains(all, n) && may(n) {
				all = append(all, n)
			}
		}
	}
	return all[1:]
}
