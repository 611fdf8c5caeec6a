package mcphybrid

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Tools that have left are remembered, so that the call of one is told so. They leave with their
// server (RemoveServer in addserver.go) or by its new list (receive.go). The list of a model that
// has them takes them back (list.go, appendnew.go).

// The bounds of [removedTools].
const (
	maxRemovedEach  = 1_000  // of one server
	maxRemovedTools = 20_000 // of all
)

// A removedTool is a tool that has left the catalog.
type removedTool struct {
	name    string
	subject rules.Subject // what patterns see of it
	since   time.Time
	number  int // ascending
}

// removedTools are the tools that have left the catalog and not come back. Of each server there
// are the last maxRemovedEach, or if all have more than maxRemovedTools, fewer of those servers
// that have the most: so a server makes us forget its own. The lists never change, and the zero
// value is empty.
type removedTools struct {
	byServer map[string][]*removedTool // the oldest first
	last     int                       // the number of the newest
}

// named returns the tool with that registered name, or nil.
func (l removedTools) named(name string) *removedTool {
	for _, of := range l.byServer {
		for _, r := range of {
			if r.name == name {
				return r
			}
		}
	}
	return nil
}

// with returns l with what has been removed now, without what has come.
func (l removedTools) with(now []*removedTool, come []string) removedTools {
	if len(now) == 0 && (len(come) == 0 || len(l.byServer) == 0) {
		return l
	}
	next := removedTools{maps.Clone(l.byServer), l.last}
	next.takeOut(come)
	fresh := make(map[string][]*removedTool)
	for _, r := range now {
		next.last++
		r.number = next.last
		fresh[r.subject.Server] = append(fresh[r.subject.Server], r)
	}
	if next.byServer == nil {
		next.byServer = make(map[string][]*removedTool, len(fresh))
	}
	for server, of := range fresh {
		next.byServer[server] = lastOf(slices.Concat(next.byServer[server], of), maxRemovedEach)
	}
	next.bound()
	return next
}

// takeOut takes out the tools with these names. It does not change the lists.
func (l removedTools) takeOut(names []string) {
	if len(names) == 0 {
		return
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	isOut := func(r *removedTool) bool { return set[r.name] }
	for server, of := range l.byServer {
		if !slices.ContainsFunc(of, isOut) {
			continue
		}
		if l.byServer[server] = slices.DeleteFunc(slices.Clone(of), isOut); len(l.byServer[server]) == 0 {
			delete(l.byServer, server)
		}
	}
}

// bound drops what is beyond maxRemovedTools, the oldest of a server first.
func (l removedTools) bound() {
	sum := func(each int) (sum int) {
		for _, of := range l.byServer {
			sum += min(len(of), each)
		}
		return sum
	}
	if sum(maxRemovedEach) <= maxRemovedTools {
		return
	}
	each := sort.Search(maxRemovedEach, func(n int) bool { return sum(n+1) > maxRemovedTools })
	for server, of := range l.byServer {
		l.byServer[server] = lastOf(of, max(each, 1))
	}
	if each == 0 { // not each server can have one
		oldest := slices.SortedFunc(maps.Keys(l.byServer), func(a, b string) int {
			return cmp.Compare(l.byServer[a][0].number, l.byServer[b][0].number)
		})
		for _, server := range oldest[:len(oldest)-maxRemovedTools] {
			delete(l.byServer, server)
		}
	}
}

// lastOf returns the last n of a list.
func lastOf(list []*removedTool, n int) []*removedTool { return list[max(len(list)-n, 0):] }

// noteRemoved sets c.removed: the tools that left since prev, and those that left before
// and have not come back.
func (c *catalog) noteRemoved(prev *catalog) {
	var left []*removedTool
	now := time.Now()
	for _, t := range prev.list.without(&c.list) {
		if c.tool(t.name) == nil {
			left = append(left, &removedTool{name: t.name, subject: t.def.subject(), since: now})
		}
	}
	c.removed = prev.removed.with(left, namesOf(c.list.without(&prev.list)))
}
