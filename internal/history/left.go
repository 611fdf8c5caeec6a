package history

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"
)

// The bounds of a [Left].
const (
	MaxLeftEach = 1_000  // of one group
	MaxLeft     = 20_000 // of all
)

// A Departure is a thing that has left.
type Departure[T any] struct {
	Value  T
	Group  string // what it was a part of
	Since  time.Time
	number int // ascending
}

// Left has what has left and not come back, by name. Of each group it keeps the last
// [MaxLeftEach], or if all have more than [MaxLeft], fewer of those groups that have
// the most: so a group makes it forget its own. It never changes, and nil is empty.
type Left[T any] map[string]Departure[T]

// With returns l with what has left now, without what has come.
func (l Left[T]) With(now map[string]Departure[T], come []string) Left[T] {
	isHere := func(name string) bool { _, ok := l[name]; return ok }
	if len(now) == 0 && !slices.ContainsFunc(come, isHere) {
		return l
	}
	next := make(Left[T], len(l)+len(now))
	last := 0
	for name, d := range l {
		next[name] = d
		last = max(last, d.number)
	}
	for _, name := range come {
		delete(next, name)
	}
	for i, name := range slices.Sorted(maps.Keys(now)) {
		d := now[name]
		d.number = last + 1 + i
		next[name] = d
	}
	next.bound()
	return next
}

// bound drops what is beyond the bounds, the oldest of a group first.
func (l Left[T]) bound() {
	counts := make(map[string]int)
	for _, d := range l {
		counts[d.Group]++
	}
	beyond := sort.Search(MaxLeftEach, func(n int) bool { // so many and one more of each is too much
		sum := 0
		for _, count := range counts {
			sum += min(count, n+1)
		}
		return sum > MaxLeft
	})
	each := max(beyond, 1)
	newest := slices.SortedFunc(maps.Keys(l), func(a, b string) int { return cmp.Compare(l[b].number, l[a].number) })
	kept, all := make(map[string]int), 0
	for _, name := range newest {
		group := l[name].Group
		if kept[group] == each || all == MaxLeft {
			delete(l, name)
			continue
		}
		kept[group]++
		all++
	}
}
