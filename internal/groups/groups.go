// Package groups finds items by the names of their groups, or by patterns of these.
package groups

import (
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// These are how many patterns are kept with the items that they match, and how many
// times all items these may be.
const (
	maxPatterns = 64
	maxTimes    = 4
)

// Groups are items, numbered from 0, each of a group. They never change.
type Groups struct {
	names []string // of the groups, in the order of their first items
	of    map[string][]int

	mu      sync.Mutex
	matched map[string][]int // items by pattern, so that a repeated search asks no group
	kept    int              // items in matched
	most    int              // of these
}

// New returns n items, each of the group of that name.
func New(n int, group func(item int) string) *Groups {
	g := &Groups{of: make(map[string][]int), matched: make(map[string][]int), most: maxTimes * n}
	for i := range n {
		name := group(i)
		if g.of[name] == nil {
			g.names = append(g.names, name)
		}
		g.of[name] = append(g.of[name], i)
	}
	return g
}

// Matching returns the items of the groups that match pattern, group by group, each in
// ascending order. The caller must not change the list.
func (g *Groups) Matching(pattern string) []int {
	if !strings.ContainsAny(pattern, "*?") {
		return g.of[pattern]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	list, known := g.matched[pattern]
	if known {
		return list
	}
	for _, name := range g.names {
		if rules.Match(pattern, name) {
			list = append(list, g.of[name]...)
		}
	}
	if len(g.matched) >= maxPatterns || g.kept+len(list) > g.most {
		clear(g.matched)
		g.kept = 0
	}
	g.matched[pattern], g.kept = list, g.kept+len(list)
	return list
}
