package mcphybrid

import (
	"cmp"
	"maps"
	"slices"
)

// When a session used its active tools, in turns. [Session.Compact] drops by it.

// A lastUse is what a session knows of the use of an active tool.
type lastUse struct {
	turn       int // of the last use
	activation int // its place in the order of the session's activations
}

// use records that t is used, and if fresh is set, that it was activated. The
// caller holds mu.
func (s *Session) use(t *BridgeTool, fresh bool) {
	if s.lastUsed == nil {
		s.lastUsed = make(map[string]lastUse)
	}
	u := s.lastUsed[t.name]
	u.turn = s.userTurn
	if fresh {
		s.activations++
		u.activation = s.activations
	}
	s.lastUsed[t.name] = u
}

// inUse reports whether t and the tools that it needs are inline or active, in
// their current version. It records their use.
func (s *Session) inUse(t *BridgeTool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	use := func(t *BridgeTool) bool {
		if there, st := v.lookup(t.name); st == inline {
			return there == t
		}
		if !slices.Contains(v.active, t) {
			return false
		}
		s.use(t, false)
		return true
	}
	return use(t) && !slices.ContainsFunc(v.needed(t), func(n *BridgeTool) bool { return !use(n) })
}

// forgetUnused forgets the last use of tools that are not active. The caller
// holds mu.
func (s *Session) forgetUnused() {
	if len(s.lastUsed) == 0 {
		return
	}
	known := make(map[string]bool, len(s.lastUsed))
	for _, name := range namesOf(slices.Concat(s.active, s.unavailable)) {
		known[name] = true
	}
	maps.DeleteFunc(s.lastUsed, func(name string, _ lastUse) bool { return !known[name] })
}

// inOrder returns the tools of both lists in activation order. The caller holds mu.
func (s *Session) inOrder(list, more []*BridgeTool) []*BridgeTool {
	all := slices.Concat(list, more)
	slices.SortStableFunc(all, func(a, b *BridgeTool) int {
		return cmp.Compare(s.lastUsed[a.name].activation, s.lastUsed[b.name].activation)
	})
	return all
}
