package mcphybrid

import (
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// These are how many patterns of servers are kept with the documents that they match, and
// how many times all documents these may be.
const (
	maxMatchedPatterns = 64
	maxMatchedTimes    = 4
)

// A docsByServer has the documents of each server: they are numbered from 0. It never
// changes.
type docsByServer struct {
	names []string // of the servers, in the order of their first documents
	of    map[string][]int

	mu      sync.Mutex
	matched map[string][]int // documents by pattern, so that a repeated search asks no server
	cached  int              // documents in matched
	most    int              // of these
}

// newDocsByServer returns n documents, each of the server of that name.
func newDocsByServer(n int, server func(doc int) string) *docsByServer {
	g := &docsByServer{of: make(map[string][]int), matched: make(map[string][]int), most: maxMatchedTimes * n}
	for i := range n {
		name := server(i)
		if g.of[name] == nil {
			g.names = append(g.names, name)
		}
		g.of[name] = append(g.of[name], i)
	}
	return g
}

// matching returns the documents of the servers that match pattern, server by server, each in
// ascending order. The caller must not change the list.
func (g *docsByServer) matching(pattern string) []int {
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
	if len(g.matched) >= maxMatchedPatterns || g.cached+len(list) > g.most {
		clear(g.matched)
		g.cached = 0
	}
	g.matched[pattern], g.cached = list, g.cached+len(list)
	return list
}
