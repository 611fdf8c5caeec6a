package mcphybrid

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// The bounds of [removedTools].
const (
	maxRemovedEach  = 1_000  // of one server
	maxRemovedTools = 20_000 // of all
)

// A removedTool is a tool that has left the catalog.
type removedTool struct {
	subject *rules.Subject // what patterns see of it
	since   time.Time
	number  int // ascending
}

// removedTools are the tools that have left the catalog and not come back, by registered
// name. Of each server there are the last maxRemovedEach, or if all have more than
// maxRemovedTools, fewer of those servers that have the most: so a server makes us forget
// its own. The map never changes, and nil is empty.
type removedTools map[string]removedTool

// with returns l with what has been removed now, without what has come.
func (l removedTools) with(now map[string]removedTool, come []string) removedTools {
	isHere := func(name string) bool { _, ok := l[name]; return ok }
	if len(now) == 0 && !slices.ContainsFunc(come, isHere) {
		return l
	}
	next := make(removedTools, len(l)+len(now))
	last := 0
	for name, r := range l {
		next[name] = r
		last = max(last, r.number)
	}
	for _, name := range come {
		delete(next, name)
	}
	for i, name := range slices.Sorted(maps.Keys(now)) {
		r := now[name]
		r.number = last + 1 + i
		next[name] = r
	}
	next.bound()
	return next
}

// bound drops what is beyond the bounds, the oldest of a server first.
func (l removedTools) bound() {
	counts := make(map[string]int)
	for _, r := range l {
		counts[r.subject.Server]++
	}
	beyond := sort.Search(maxRemovedEach, func(n int) bool { // so many and one more of each is too much
		sum := 0
		for _, count := range counts {
			sum += min(count, n+1)
		}
		return sum > maxRemovedTools
	})
	each := max(beyond, 1)
	newest := slices.SortedFunc(maps.Keys(l), func(a, b string) int { return cmp.Compare(l[b].number, l[a].number) })
	kept, all := make(map[string]int), 0
	for _, name := range newest {
		server := l[name].subject.Server
		if kept[server] == each || all == maxRemovedTools {
			delete(l, name)
			continue
		}
		kept[server]++
		all++
	}
}

// noteRemoved sets c.removed: the tools that left since prev, and those that left before
// and have not come back.
func (c *catalog) noteRemoved(prev *catalog) {
	left := make(map[string]removedTool)
	now := time.Now()
	for _, t := range prev.list.without(&c.list) {
		if c.tool(t.name) == nil {
			subject := t.def.subject()
			left[t.name] = removedTool{subject: &subject, since: now}
		}
	}
	c.removed = prev.removed.with(left, namesOf(c.list.without(&prev.list)))
}
